"""The planned faults of the emulator, as python-telegram-bot's client meets them."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import aiohttp
import pytest
from telegram.error import BadRequest, NetworkError, RetryAfter, TimedOut

from tests.emulators.telegram import Disconnect, Flood, Limits, LoseAnswer, Refuse, Seeded, Slow
from tests.support.telegram_client import client, durations, emulated, started

__all__ = ["durations"]
pytestmark = pytest.mark.usefixtures("durations")


def seconds(error):
    """Return the seconds for which a 429 wants the chat left alone."""
    return error.value.retry_after.total_seconds()


def texts(server, chat):
    return [message.text for message in server.shown(chat)]


# Flood control


async def test_a_short_burst_in_a_chat_is_let_through(clock):
    async with emulated(clock=clock, limits=Limits(chat_burst=3)) as (server, bot):
        _, chat = started(server)
        for text in "abc":
            await bot.send_message(chat.id, text)
        with pytest.raises(RetryAfter) as refused:
            await bot.send_message(chat.id, "d")
        assert seconds(refused) == 1
        await clock.advance(1)
        await bot.send_message(chat.id, "d")
        assert (texts(server, chat), server.violations) == (["a", "b", "c", "d"], [])


async def test_a_call_before_its_time_is_a_violation_and_makes_nothing_longer(clock):
    async with emulated(clock=clock) as (server, bot):
        _, chat = started(server)
        _, other = started(server, "Ben")
        server.faults.add(Flood(seconds=30), method="sendMessage", chat_id=chat.id)
        with pytest.raises(RetryAfter):
            await bot.send_message(chat.id, "x")
        await clock.advance(10)
        await bot.send_message(other.id, "others go on")
        await bot.get_chat(chat.id)
        for call in (bot.send_message(chat.id, "x"), bot.send_chat_action(chat.id, "typing")):
            with pytest.raises(RetryAfter) as refused:
                await call
            assert seconds(refused) == 20
        assert [violation.method for violation in server.violations] == ["sendMessage", "sendChatAction"]
        await clock.advance(20)
        await bot.send_message(chat.id, "in time")
        assert texts(server, chat) == ["in time"]


async def test_twenty_a_minute_in_a_group(clock):
    async with emulated(clock=clock) as (server, bot):
        chat = server.people.group("Team", server.people.person("Anna"))
        for number in range(20):
            await bot.send_message(chat.id, f"{number}")
            await clock.advance(1)
        with pytest.raises(RetryAfter) as refused:
            await bot.send_message(chat.id, "one more")
        assert seconds(refused) == 40
        await clock.advance(40)
        await bot.send_message(chat.id, "one more")


async def test_thirty_a_second_over_all_chats(clock):
    async with emulated(clock=clock) as (server, bot):
        chats = [started(server, f"Person {number}")[1] for number in range(31)]
        for chat in chats[:30]:
            await bot.send_message(chat.id, "x")
        with pytest.raises(RetryAfter):
            await bot.send_message(chats[30].id, "x")
        await clock.advance(1)
        await bot.send_message(chats[30].id, "x")


async def test_edits_count_as_messages(clock):
    async with emulated(clock=clock, limits=Limits(chat_burst=2)) as (server, bot):
        _, chat = started(server)
        message = await bot.send_message(chat.id, "a")
        await bot.edit_message_text("ab", chat.id, message.message_id)
        with pytest.raises(RetryAfter):
            await bot.edit_message_text("abc", chat.id, message.message_id)
        assert texts(server, chat) == ["ab"]


async def test_flood_control_can_be_switched_off():
    async with emulated(limits=None) as (server, bot):
        _, chat = started(server)
        for number in range(40):
            await bot.send_message(chat.id, f"{number}")
        assert len(server.shown(chat)) == 40


# Faults


async def test_a_lost_answer_leaves_the_message():
    async with emulated() as (server, _), client(server, patience=0.2) as hasty:
        _, chat = started(server)
        server.faults.add(LoseAnswer(), method="sendMessage")
        with pytest.raises(TimedOut):
            await hasty.send_message(chat.id, "x")
        await server.until(lambda: texts(server, chat))
        call = next(server.journal.of("sendMessage"))
        assert (texts(server, chat), call.ambiguous, call.fault) == (["x"], True, "LoseAnswer")


async def test_a_slow_call_is_done_although_nobody_waits(clock):
    async with emulated(clock=clock) as (server, _), client(server, patience=0.2) as hasty:
        _, chat = started(server)
        server.faults.add(Slow(seconds=5), method="sendMessage")
        with pytest.raises(TimedOut):
            await hasty.send_message(chat.id, "x")
        await clock.until_due_in(5)
        assert texts(server, chat) == []
        await clock.advance(5)
        assert texts(server, chat) == ["x"]


async def test_a_call_that_came_before_the_chat_asked_for_rest_could_not_know(clock):
    async with emulated(clock=clock) as (server, bot):
        _, chat = started(server)
        server.faults.add(Slow(seconds=2), method="sendMessage")
        slow = asyncio.create_task(bot.send_message(chat.id, "slow"))
        await server.until(lambda: list(server.journal.of("sendMessage")))
        await clock.advance(1)
        server.faults.add(Flood(seconds=9), method="sendMessage")
        with pytest.raises(RetryAfter):
            await bot.send_message(chat.id, "next")
        await clock.advance(1)
        with pytest.raises(RetryAfter):
            await slow
        assert server.violations == []


@pytest.mark.parametrize(("fault", "shown"), [(Disconnect(), []), (Disconnect(done=True), ["x"])])
async def test_a_broken_connection(fault, shown):
    async with emulated() as (server, bot):
        _, chat = started(server)
        server.faults.add(fault, method="sendMessage")
        with pytest.raises(NetworkError):
            await bot.send_message(chat.id, "x")
        assert texts(server, chat) == shown
        assert next(server.journal.of("sendMessage")).ambiguous == bool(shown)


@pytest.mark.parametrize("fault", [Refuse(), Refuse(status=500), Refuse(status=504, body="")])
async def test_an_error_of_the_server(fault):
    async with emulated() as (server, bot):
        _, chat = started(server)
        server.faults.add(fault, method="sendMessage")
        with pytest.raises(NetworkError) as refused:
            await bot.send_message(chat.id, "x")
        assert not isinstance(refused.value, BadRequest | TimedOut)
        assert texts(server, chat) == []


async def test_the_nth_call_to_a_chat_and_the_one_after():
    async with emulated(limits=None) as (server, bot):
        _, chat = started(server)
        _, other = started(server, "Ben")
        server.faults.add(Refuse(), method="sendMessage", chat_id=chat.id, nth=2, times=2)
        for text in "abcd":
            await bot.send_message(other.id, text)
            if text in "bc":
                with pytest.raises(NetworkError):
                    await bot.send_message(chat.id, text)
            else:
                await bot.send_message(chat.id, text)
        assert (texts(server, chat), texts(server, other)) == (["a", "d"], ["a", "b", "c", "d"])


async def outcomes(seed):
    """Return the outcome of twenty calls in each of two chats at the same time, under a seeded schedule."""
    async with emulated(limits=None) as (server, bot), asyncio.TaskGroup() as group:
        chats = [started(server, name)[1] for name in ("Anna", "Ben")]
        server.faults.schedule = Seeded(seed, share=0.3, among=(Refuse(), Disconnect(), Disconnect(done=True)))

        async def write(chat):
            for number in range(20):
                with suppress(NetworkError):
                    await bot.send_message(chat.id, f"{number}")

        tasks = [group.create_task(write(chat)) for chat in chats]
        await asyncio.wait(tasks)
        return [[call.fault for call in server.journal.of("sendMessage", chat.id)] for chat in chats]


async def test_a_schedule_is_the_same_for_the_same_seed():
    first, again, other = await outcomes(7), await outcomes(7), await outcomes(8)
    assert first == again != other
    assert {bool(fault) for fault in first[0]} == {True, False}


async def test_a_download_can_break():
    async with emulated() as (server, bot):
        anna, chat = started(server)
        note = server.people.file(chat, anna, "document", b"notes", name="notes.txt")
        file = await bot.get_file(note.content["document"]["file_id"])
        server.faults.add(Refuse(), method="(download)")
        with pytest.raises(NetworkError):
            await file.download_as_bytearray()
        assert await file.download_as_bytearray() == b"notes"


# Inspection over HTTP


async def test_people_act_over_http_too():
    async with emulated(limits=None) as (server, bot), aiohttp.ClientSession() as http:

        async def do(what, **arguments):
            async with http.post(f"{server.url}/inspect/do/{what}", json=arguments) as response:
                assert response.status == 200, await response.text()
                return await response.json()

        anna = await do("person", first_name="Anna")
        await do("say", chat=anna["id"], user=anna["id"], text="Hello")
        sent = await bot.send_message(anna["id"], "Hi")
        group = await do("group", title="Team", members=[anna["id"]], forum=True)
        topic = await do("topic", chat=group["id"], user=anna["id"], name="Plans")
        await do("say", chat=group["id"], user=anna["id"], text="/plan", topic=topic)
        await do("react", chat=anna["id"], message=sent.message_id, user=anna["id"], emoji="👍")
        async with http.get(f"{server.url}/inspect/chats/{anna['id']}/messages") as response:
            assert [message["text"] for message in await response.json()] == ["Hello", "Hi"]
        async with http.get(f"{server.url}/inspect/calls") as response:
            assert [call["method"] for call in await response.json()] == ["sendMessage"]
        assert len(await bot.get_updates()) == 3


async def test_faults_are_set_over_http_too():
    async with emulated() as (server, bot), aiohttp.ClientSession() as http:
        _, chat = started(server)
        rule = {"fault": "Flood", "with": {"seconds": 9}, "method": "sendMessage", "chat_id": chat.id}
        async with http.post(f"{server.url}/inspect/faults", json=rule) as response:
            assert response.status == 200
        for _ in range(2):
            with pytest.raises(RetryAfter):
                await bot.send_message(chat.id, "x")
        async with http.get(f"{server.url}/inspect/violations") as response:
            assert [violation["method"] for violation in await response.json()] == ["sendMessage"]
        async with http.post(f"{server.url}/inspect/do/fly", json={}) as response:
            assert response.status == 404
