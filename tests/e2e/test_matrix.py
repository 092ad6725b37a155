"""People on Matrix, as they see the bot: on a real Synapse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adapters.matrix.codec import BUTTONS
from gateway.domain.chat import Outbound, SessionKey
from gateway.domain.message import text_of
from gateway.domain.place import ListenRules
from gateway.domain.turn import SessionSettings
from tests.support.live_bot import talk_in
from tests.support.matrix_live import Bot, on_matrix
from tests.support.model import FakeModel, Gate, Say, in_turn
from tests.support.synapse import Person, Synapse, running_synapse
from tests.support.tools import Payment, payments

pytest_plugins = ["tests.support.synapse"]


async def test_a_person_invites_the_bot_asks_it_and_says_yes_by_a_reaction(tmp_path: Path, synapse: Synapse) -> None:
    tool = Payment()
    model = FakeModel(in_turn(Say(text="**Hi** there"), payments(50), then=lambda *_: Say(text="Done.")))
    async with on_matrix(tmp_path, synapse, model=model, with_tools=[tool]) as bot:
        eve = synapse.person("Eve")
        ignored = await eve.opens(bot.account.id, direct=True)
        await bot.opens()
        await bot.says("Hello")
        await bot.until_shown("**Hi** there")
        (first,) = bot.anna.events(bot.chat, bot.account.id)
        assert first["content"]["formatted_body"] == "<p><strong>Hi</strong> there</p>"
        assert "m.relates_to" not in first["content"]
        await bot.says("Pay")
        question = await bot.until(lambda: bot.anna.events(bot.chat, bot.account.id)[1:])
        await bot.until(lambda: len(bot.anna.events(bot.chat, bot.account.id, "m.reaction")) >= 2)
        offered = bot.anna.events(bot.chat, bot.account.id, "m.reaction")
        await bot.anna.reacts(bot.chat, question[0]["event_id"], offered[0]["content"]["m.relates_to"]["key"])
        await bot.until(lambda: bot.shown()[-1:] == ["Done."])
        assert tool.paid == [50]
        await eve.looks()
        left = eve.events(ignored, bot.account.id, "m.room.member")
        assert [each["content"]["membership"] for each in left] == ["leave"]


@pytest.mark.slow
async def test_in_a_room_it_answers_who_names_it_or_answers_it(tmp_path: Path, synapse: Synapse) -> None:
    ben, eve = synapse.person("Ben"), synapse.person("Eve")
    async with on_matrix(tmp_path, synapse, allow=(f"matrix:{ben.id}",)) as bot:
        room = await _room(bot, ben, eve)
        await eve.says(room, "I listen")
        await ben.says(room, "I sing [alto]")
        asked = await bot.says("Legato: who sings?", room)
        (answer,) = await bot.until(lambda: bot.anna.events(room, bot.account.id))
        heard = bot.model.spoken(0)
        assert talk_in(heard[0][1]) == ["Ben: “I sing (alto)”"]
        assert heard[-1][1].endswith("who sings?")
        assert answer["content"]["m.relates_to"] == {"m.in_reply_to": {"event_id": asked}}
        assert answer["content"]["m.mentions"] == {"user_ids": [bot.anna.id]}
        reply = {"m.in_reply_to": {"event_id": answer["event_id"]}}
        await bot.says("and now?", room, **{"m.relates_to": reply, "m.mentions": {}})
        await bot.until(lambda: len(bot.shown(room)) == 2)
        assert "[in reply to you: " in bot.model.spoken(1)[-1][1]
        await eve.says(room, "Legato, and me?")
        await bot.says("!status", room)
        await bot.until(lambda: len(bot.shown(room)) == 3)
        await bot.quiet()
        assert len(bot.model.requests) == 2


async def _room(bot: Bot, *others: Person) -> str:
    """A room of Anna's with the bot and these people."""
    room = await bot.anna.opens(bot.account.id, *(each.id for each in others))
    await bot.comes(room)
    for each in others:
        await each.joins(room)
    await bot.anna.looks(0)
    return room


@pytest.mark.slow
async def test_a_thread_is_a_conversation_of_its_own(tmp_path: Path, synapse: Synapse) -> None:
    rules = ListenRules({"*": "thread"})
    async with on_matrix(tmp_path, synapse, listens=rules) as bot:
        room = await _room(bot, synapse.person("Ben"))
        root = await bot.says("one", room)
        (answer,) = await bot.until(lambda: bot.anna.events(room, bot.account.id))
        assert answer["content"]["m.relates_to"]["rel_type"] == "m.thread"
        assert answer["content"]["m.relates_to"]["event_id"] == root
        relation = {"rel_type": "m.thread", "event_id": root, "is_falling_back": True}
        relation["m.in_reply_to"] = {"event_id": answer["event_id"]}
        await bot.says("two", room, **{"m.relates_to": relation})
        await bot.says("other", room)
        await bot.until(lambda: len(bot.shown(room)) == 3)
        assert sorted(len(bot.model.spoken(number)) for number in range(3)) == [1, 1, 3]


@pytest.mark.slow
async def test_words_are_changed_and_taken_back_while_they_wait(tmp_path: Path, synapse: Synapse) -> None:
    gate = Gate()
    async with on_matrix(tmp_path, synapse, model=FakeModel(in_turn(Say(text="echo: first", gate=gate)))) as bot:
        await bot.opens()
        await bot.says("first")
        await gate.until_waiting()
        second, third = await bot.says("secnd"), await bot.says("third")
        await bot.anna.rewords(bot.chat, second, "second")
        await bot.anna.redacts(bot.chat, third)
        await bot.types(bot.chat)
        await bot.reads(bot.chat, await bot.says("fourth"))
        gate.open()
        await bot.quiet()
        await bot.anna.looks(0)
        assert bot.shown() == ["echo: first", "echo: second", "echo: fourth"]
        await bot.anna.redacts(bot.chat, second)  # which was answered
        await bot.says("fifth")
        await bot.until(lambda: bot.shown()[-1] == "echo: fifth")
        await bot.says("sixth")
        await bot.until(lambda: bot.shown()[-1] == "echo: sixth")
        said = "\n".join(map(text_of, bot.model.requests[-1].messages))
        assert "second" not in said
        assert "echo: first" in said


@pytest.mark.slow
async def test_files_go_both_ways(tmp_path: Path, synapse: Synapse) -> None:
    async with on_matrix(tmp_path, synapse) as bot:
        await bot.opens()
        address = await bot.anna.uploads("note.txt", b"The choir meets on Monday.", "text/plain")
        info = {"mimetype": "text/plain", "size": 26}
        await bot.says("When?", msgtype="m.file", filename="note.txt", url=address, info=info)
        await bot.until(bot.shown)
        assert "The choir meets on Monday." in bot.model.spoken(0)[-1][1]
        await bot.says("/export")
        sent = await bot.until(lambda: [e for e in bot.anna.events(bot.chat, bot.account.id) if "url" in e["content"]])
        content = await bot.anna.downloads(sent[0]["content"]["url"])
        assert b"The choir meets" in content
        assert sent[0]["content"]["info"]["size"] == len(content)


@pytest.mark.slow
async def test_what_was_missed_is_answered_and_nothing_twice(tmp_path: Path, synapse: Synapse) -> None:
    async with on_matrix(tmp_path, synapse) as bot:
        await bot.opens()
        await bot.says("Hello")
        await bot.until(bot.shown)
    for number in range(60):
        await bot.says(str(number))
    async with on_matrix(tmp_path, synapse, account=bot.account, anna=bot.anna) as again:
        again.chat = bot.chat
        shown = ["echo: Hello", *(f"echo: {number}" for number in range(60))]
        await again.until(lambda: len(again.shown()) >= len(shown))
        assert again.shown() == shown


@pytest.mark.slow
async def test_the_conversation_follows_its_room(tmp_path: Path, synapse: Synapse) -> None:
    async with on_matrix(tmp_path, synapse) as bot:
        room = await _room(bot, synapse.person("Ben"))
        await bot.says("Legato: one", room)
        await bot.until(lambda: bot.shown(room))
        told = await bot.anna.call("POST", f"rooms/{room}/upgrade", {"new_version": "11"})
        after = told["replacement_room"]
        await bot.anna.call("POST", f"rooms/{after}/invite", {"user_id": bot.account.id})
        await bot.comes(after)
        await bot.says("Legato: two", after)
        await bot.until(lambda: bot.shown(after))
        assert next(text for _, text in bot.model.spoken(1)).endswith("one")


@pytest.mark.slow
async def test_a_bot_that_is_sent_away_says_so_once_it_is_back(tmp_path: Path, synapse: Synapse) -> None:
    gate = Gate()
    async with on_matrix(tmp_path, synapse, model=FakeModel(in_turn(Say(text="one", gate=gate)))) as bot:
        room = await _room(bot, synapse.person("Ben"))
        await bot.says("Legato: one", room)
        await gate.until_waiting()
        await bot.anna.call("POST", f"rooms/{room}/kick", {"user_id": bot.account.id})
        gate.open()
        await bot.quiet()
        await bot.anna.call("POST", f"rooms/{room}/invite", {"user_id": bot.account.id})
        await bot.until(lambda: "!last" in "".join(bot.shown(room)))


@pytest.mark.slow
async def test_a_login_that_the_server_ended_is_renewed(tmp_path: Path, synapse: Synapse) -> None:
    async with on_matrix(tmp_path, synapse) as bot:
        await bot.opens()
        await bot.says("one")
        await bot.until_shown("echo: one")
        await bot.account.call("POST", "logout/all", {})
        await bot.says("two")
        await bot.until_shown("echo: one", "echo: two")


@pytest.mark.slow
async def test_a_servers_own_pace_is_kept_and_a_growing_answer_is_one_message(tmp_path: Path) -> None:
    gate = Gate()
    model = FakeModel(in_turn(Say(first="Look ", gate=gate, text="here.")))
    with running_synapse(tmp_path / "server", rc_message={"per_second": 1, "burst_count": 4}) as strict:
        async with on_matrix(tmp_path, strict, model=model, rules={"edit_seconds": 1}) as bot:
            await bot.opens()
            await bot.says("Hello")
            await bot.until_shown("Look …")
            gate.open()
            await bot.until_shown("Look here.")
            assert len(bot.anna.events(bot.chat, bot.account.id)) == 1
            for number in range(3):
                await bot.says(str(number))
            await bot.until_shown("Look here.", *(f"echo: {number}" for number in range(3)))


@pytest.mark.slow
async def test_reactions_are_heard_with_the_next_message_and_signs_are_shown(tmp_path: Path, synapse: Synapse) -> None:
    async with on_matrix(tmp_path, synapse, sessions=SessionSettings(reactions=True)) as bot:
        await bot.opens()
        asked = await bot.says("one")
        await bot.until_shown("echo: one")
        (answer,) = bot.anna.events(bot.chat, bot.account.id)
        await bot.anna.reacts(bot.chat, answer["event_id"], "👎")
        await bot.until(lambda: "✅" in _signs(bot, asked))
        await bot.says("two")
        await bot.until(lambda: len(bot.shown()) == 2)
        assert "reacted 👎" in bot.model.spoken(1)[-1][1]


def _signs(bot: Bot, message: str) -> list[str]:
    """What the bot put on a message of Anna's."""
    found = [
        each["content"].get("m.relates_to", {}) for each in bot.anna.events(bot.chat, bot.account.id, "m.reaction")
    ]
    return [each["key"] for each in found if each.get("event_id") == message]


@pytest.mark.slow
async def test_a_person_who_never_wrote_is_invited_into_one_room(tmp_path: Path, synapse: Synapse) -> None:
    async with on_matrix(tmp_path, synapse) as bot:
        key = SessionKey(platform="matrix", chat=bot.anna.id)
        await bot.until(lambda: bot.adapter.alive_at)
        for number in range(2):
            await bot.adapter.send(Outbound(id=f"r{number}", key=key, to=key.address, kind="notice", text=str(number)))
        invited = (await bot.anna.call("GET", "sync"))["rooms"]["invite"]
        (room,) = invited
        await bot.anna.joins(room)
        bot.chat = room
        await bot.until_shown("0", "1")
        await bot.says("Hello")
        await bot.until_shown("0", "1", "echo: Hello")


async def test_a_button_is_pressed_again_by_taking_the_reaction_away_and_a_late_press_means_nothing(
    tmp_path: Path, synapse: Synapse
) -> None:
    days = ("Monday", "Tuesday", "Friday")
    asked = {"question": "Which days?", "options": days, "multiple": True}
    model = FakeModel(in_turn(Say(calls=[("ask_person", json.dumps(asked))])))
    async with on_matrix(tmp_path, synapse, model=model) as bot:
        await bot.opens()
        await bot.says("Plan")
        (question,) = await bot.until(lambda: bot.anna.events(bot.chat, bot.account.id))
        message, keys = question["event_id"], [*question["content"][BUTTONS]]

        async def presses(*numbers: int) -> list[str]:
            return [await bot.anna.reacts(bot.chat, message, keys[each]) for each in numbers]

        async def ticked(*names: str) -> None:
            await bot.until(lambda: {each for each in days if f"✓ {each}" in bot.shown()[0]} == {*names})

        (done,) = await presses(3)  # nothing is chosen yet
        _, tuesday, _ = await presses(0, 1, 2)
        await ticked("Monday", "Tuesday", "Friday")
        await bot.anna.redacts(bot.chat, tuesday)
        await ticked("Monday", "Friday")
        await bot.anna.redacts(bot.chat, done)
        await bot.until(lambda: len(model.requests) == 2)
        assert text_of(model.requests[-1].messages[-1]) == "The person answered: Monday; Friday"
        await bot.until(lambda: len(bot.shown()) == 2)
        await presses(1)
        await bot.says("Fine")
        await bot.until(lambda: len(model.requests) == 3)
        assert model.spoken(2)[-1][1] == "Fine"
