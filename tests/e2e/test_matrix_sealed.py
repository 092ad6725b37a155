"""Encrypted rooms on a real Synapse, with a person whose program strangers wrote (matrix-nio)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.matrix_live import Bot, on_matrix
from tests.support.matrix_stranger import SEALED, Stranger, stranger
from tests.support.model import FakeModel, Gate, Say, in_turn
from tests.support.synapse import Person, Synapse
from tests.support.tools import Payment, payments

pytest_plugins = ["tests.support.synapse"]
ON = {"encryption": True}


async def opened(anna: Stranger, bot: Person, *, direct: bool = True) -> str:
    """An encrypted room, once the bot is in it."""
    room = await anna.person.opens(bot.id, direct=direct, initial_state=[SEALED])
    await anna.until(lambda: [each for each in anna.seen if came(each, room, bot)])
    return room


def came(event: dict[str, Any], room: str, who: Person) -> bool:
    """Say whether this is somebody's coming into a room."""
    is_member = event["type"] == "m.room.member" and event["room"] == room and event["state_key"] == who.id
    return is_member and event["content"]["membership"] == "join"


@pytest.mark.slow
async def test_all_that_people_do_works_in_a_sealed_room_and_after_a_restart(tmp_path: Path, synapse: Synapse) -> None:
    account, tool, gate = synapse.person("Legato"), Payment(), Gate()
    payed = (payments(50), Say(text="Paid."))
    model = FakeModel(in_turn(Say(text="Hi"), Say(first="Look ", gate=gate, text="here."), *payed))
    async with stranger(synapse, tmp_path / "anna") as anna:
        again: dict[str, Any] = {"account": account, "anna": anna.person, "rules": {**ON, "edit_seconds": 1}}
        async with on_matrix(tmp_path, synapse, model=model, with_tools=[tool], **again) as bot:
            room = await opened(anna, account)
            await anna.says(room, "Hello")
            await anna.until(lambda: anna.shown(account.id) == ["Hi"])
            await anna.says(room, "Look")
            await anna.until(lambda: anna.shown(account.id) == ["Hi", "Look …"])
            gate.open()
            await anna.until(lambda: anna.shown(account.id) == ["Hi", "Look here."])
            await anna.says(room, "Pay")
            *_, question = await anna.until(lambda: anna.by(account.id)[2:])
            assert all(each["sealed"] for each in anna.by(account.id))
        async with on_matrix(tmp_path, synapse, model=model, with_tools=[tool], **again) as bot:
            await anna.person.reacts(room, question["event_id"], "1️⃣")
            await anna.until(lambda: anna.shown(account.id)[3:] == ["Paid."])
            assert tool.paid == [50]
            assert not await _plain(bot, room), "something was sent in the clear"


async def _plain(bot: Bot, room: str) -> list[Any]:
    """What stands in a room in the clear that somebody said."""
    told = await bot.anna.call("GET", f"rooms/{room}/messages", dir="b", limit="100")
    return [each for each in told["chunk"] if each["type"] == "m.room.message"]


@pytest.mark.slow
async def test_files_and_replies_are_sealed_both_ways(tmp_path: Path, synapse: Synapse) -> None:
    async with (
        stranger(synapse, tmp_path / "anna") as anna,
        on_matrix(tmp_path, synapse, anna=anna.person, rules=ON) as bot,
    ):
        room = await opened(anna, bot.account)
        file = await anna.does("upload", text="The choir meets on Monday.")
        await anna.says(room, "note.txt", msgtype="m.file", file=file, info={"mimetype": "text/plain", "size": 26})
        (answer,) = await anna.until(lambda: anna.by(bot.account.id))
        assert "The choir meets on Monday." in bot.model.spoken(0)[-1][1]
        reply = {"m.in_reply_to": {"event_id": answer["event_id"]}}
        await anna.says(room, "and when?", **{"m.relates_to": reply})
        await anna.until(lambda: len(anna.by(bot.account.id)) == 2)
        assert "[in reply to you: " in bot.model.spoken(1)[-1][1]
        await anna.says(room, "!export")
        found = await anna.until(lambda: [each for each in anna.by(bot.account.id) if "file" in each["content"]])
        assert "url" not in found[0]["content"]
        assert "The choir meets" in await anna.does("download", file=found[0]["content"]["file"])


@pytest.mark.slow
async def test_words_are_changed_and_taken_back_in_a_sealed_room(tmp_path: Path, synapse: Synapse) -> None:
    gate = Gate()
    model = FakeModel(in_turn(Say(text="echo: first", gate=gate)))
    async with (
        stranger(synapse, tmp_path / "anna") as anna,
        on_matrix(tmp_path, synapse, anna=anna.person, rules=ON, model=model) as bot,
    ):
        room = await opened(anna, bot.account)
        await anna.says(room, "first")
        await gate.until_waiting()
        second, third = await anna.says(room, "secnd"), await anna.says(room, "third")
        new = {"m.new_content": {"msgtype": "m.text", "body": "second"}}
        relation = {"rel_type": "m.replace", "event_id": second}
        await anna.says(room, "* second", **new, **{"m.relates_to": relation})
        await anna.person.redacts(room, third)
        await bot.reads(room, await anna.says(room, "fourth"))
        gate.open()
        await anna.until(lambda: len(anna.shown(bot.account.id)) == 3)
        assert anna.shown(bot.account.id) == ["echo: first", "echo: second", "echo: fourth"]


@pytest.mark.slow
async def test_who_comes_reads_on_and_who_leaves_reads_nothing_more(tmp_path: Path, synapse: Synapse) -> None:
    async with (
        stranger(synapse, tmp_path / "anna") as anna,
        stranger(synapse, tmp_path / "ben", "Ben") as ben,
        on_matrix(tmp_path, synapse, anna=anna.person, rules=ON) as bot,
    ):
        room = await opened(anna, bot.account, direct=False)
        await anna.says(room, "Legato: one")
        await anna.until(lambda: anna.shown(bot.account.id) == ["echo: one"])
        await anna.person.call("POST", f"rooms/{room}/invite", {"user_id": ben.id})
        await ben.does("join", room=room)
        await anna.until(lambda: [each for each in anna.seen if came(each, room, ben.person)])
        await anna.says(room, "Legato: two")
        await ben.until(lambda: ben.shown(bot.account.id)[-1:] == ["echo: two"])
        await anna.person.call("POST", f"rooms/{room}/kick", {"user_id": ben.id})
        await anna.says(room, "Legato: three")
        await anna.until(lambda: anna.shown(bot.account.id)[-1:] == ["echo: three"])
        (*_, two, three) = [each for each in await _sealed(bot, room) if each["sender"] == bot.account.id]
        assert two["content"]["session_id"] != three["content"]["session_id"]


async def _sealed(bot: Bot, room: str) -> list[Any]:
    told = await bot.anna.call("GET", f"rooms/{room}/messages", dir="b", limit="100")
    return [each for each in told["chunk"][::-1] if each["type"] == "m.room.encrypted"]


@pytest.mark.slow
async def test_a_new_home_is_a_new_device_and_says_which_keys_it_lacks(tmp_path: Path, synapse: Synapse) -> None:
    account = synapse.person("Legato")
    async with stranger(synapse, tmp_path / "anna") as anna:
        again: dict[str, Any] = {"account": account, "anna": anna.person, "rules": ON}
        async with on_matrix(tmp_path, synapse, **again):
            room = await opened(anna, account)
            await anna.says(room, "one")
            await anna.until(lambda: anna.shown(account.id) == ["echo: one"])
        await anna.says(room, "two")  # only the first device has its key
        (tmp_path / "home").rename(tmp_path / "elsewhere")
        async with on_matrix(tmp_path, synapse, **again):
            await anna.until(lambda: "its key did not reach me" in "".join(anna.shown(account.id)[1:]))
            await anna.says(room, "three")
            await anna.until(lambda: anna.shown(account.id)[-1:] == ["echo: three"])
        (tmp_path / "home").rename(tmp_path / "new")
        (tmp_path / "elsewhere").rename(tmp_path / "home")
        async with on_matrix(tmp_path, synapse, **again):  # it has the key of "three", as of all since it was there
            await anna.says(room, "four")
            await anna.until(lambda: anna.shown(account.id)[-1:] == ["echo: four"])
