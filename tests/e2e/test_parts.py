"""Messages that a client had to send in several: one turn each, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.app.config import Config
from gateway.domain.chat import CUT, TORN, Attachment, Inbound
from gateway.domain.message import text_of
from gateway.domain.notes import QUOTES_END
from gateway.domain.turn import BUSY, STOPPED, SessionSettings
from gateway.runtime.points import Point
from gateway.runtime.structs import replace
from gateway.store.records import MOST_ATTEMPTS
from gateway.turns.parts import DEBOUNCE
from gateway.turns.reception import PASSED_ON
from gateway.turns.turn import DEAD, EMPTY
from tests.emulators.telegram import TelegramServer
from tests.support.fakes import ManualClock
from tests.support.fast_clock import FastClock
from tests.support.gateway import FakeAdapter, FakeModel, Gate, KillAt, Live, Say, config_in, in_turn, running
from tests.support.model import PATIENCE
from tests.support.telegram_live import on_telegram
from tests.support.waiting import eventually

CLOCK = ("clock", "{}")
SEEN = "[sent with this message: a picture, which you cannot be shown: this model takes no pictures]"


def cut(adapter: FakeAdapter, *texts: str, mark: str = CUT, **where: Any) -> list[Inbound]:
    """The parts of a pasted text; all but the last look cut."""
    parts = [replace(adapter.inbound(text, **where), part_of=mark) for text in texts]
    return [*parts[:-1], replace(parts[-1], part_of=None)]


BOTH = "(1: a picture) one\n(2: a picture) two"


def album(adapter: FakeAdapter, *captions: str, name: str = "album 7") -> list[Inbound]:
    """Pictures that were sent at once."""
    files = (Attachment(kind="image", ref="r"),)
    return [replace(adapter.inbound(text), part_of=name, attachments=files) for text in captions]


def mode(folder: Path, busy_mode: Any) -> Config:
    return config_in(folder, sessions=SessionSettings(busy_mode=busy_mode))


async def until_joining(clock: ManualClock) -> None:
    """Return when a lane waits for another part."""
    await eventually(lambda: any(seconds <= DEBOUNCE for seconds in clock.pending))


async def transcript(live: Live) -> list[str]:
    tip = await live.tip()
    return [] if tip is None else [text_of(message) for message in await live.store.transcript(tip)]


# -- joining -------------------------------------------------------------------------------------


async def test_a_text_that_came_whole_waits_no_time(tmp_path: Path, clock: ManualClock) -> None:
    async with running(tmp_path, clock=clock) as live:  # time stands still
        parts = cut(live.adapter, "one", "two", "three")
        await live.adapter.receive(*parts)
        assert (await live.answer(parts[0].event_id)).text == "echo: one\ntwo\nthree"
        await live.quiet()
        assert live.adapter.shown() == ["echo: one\ntwo\nthree"]
        assert await live.ask("next") == "echo: next"


async def test_parts_that_come_one_by_one_are_waited_for_and_nobody_is_told_that_the_bot_is_busy(
    tmp_path: Path, clock: ManualClock
) -> None:
    async with running(tmp_path, clock=clock) as live:
        parts = cut(live.adapter, "one ", "two ", "three", mark=TORN)
        for part in parts:
            await live.adapter.receive(part)
            await until_joining(clock)
            await clock.advance(DEBOUNCE / 2)
        await clock.advance(DEBOUNCE)
        assert (await live.answer(parts[0].event_id)).text == "echo: one two three"
        await live.quiet()
        assert live.adapter.shown() == ["echo: one two three"]


async def test_an_album_is_one_message_whose_files_the_model_hears_of(tmp_path: Path, clock: ManualClock) -> None:
    async with running(tmp_path, clock=clock) as live:
        parts = album(live.adapter, "Rome", "", "Naples")
        await live.adapter.receive(*parts)
        await until_joining(clock)
        assert live.model.requests == []
        await clock.advance(DEBOUNCE)
        await live.answer(parts[0].event_id)
        await live.quiet()
        files = "; ".join(["a picture, which you cannot be shown: this model takes no pictures"] * 3)
        assert live.model.spoken() == [
            ("user", f"(1: a picture) Rome\n(3: a picture) Naples\n[sent with this message: {files}]")
        ]
        assert len(live.adapter.shown()) == 1


async def test_a_text_that_only_looked_cut_is_answered_after_a_short_wait(tmp_path: Path, clock: ManualClock) -> None:
    async with running(tmp_path, clock=clock) as live:
        await live.adapter.receive(alone := replace(live.adapter.inbound("alone"), part_of=TORN))
        await until_joining(clock)
        await clock.advance(DEBOUNCE)
        assert (await live.answer(alone.event_id)).text == "echo: alone"


async def test_a_command_ends_the_message(tmp_path: Path, clock: ManualClock) -> None:
    async with running(tmp_path, clock=clock) as live:
        first, last = cut(live.adapter, "one", "two")
        await live.adapter.receive(first, title := live.adapter.inbound("/title Two halves"), last)
        assert (await live.answer(first.event_id)).text == "echo: one"
        await live.answer(title.event_id)
        assert (await live.answer(last.event_id)).text == "echo: two"


async def test_in_a_group_everybody_goes_on_with_their_own(tmp_path: Path, clock: ManualClock) -> None:
    async with running(
        tmp_path, config=config_in(tmp_path, sessions=SessionSettings(groups="shared")), clock=clock
    ) as live:
        group: dict[str, Any] = {"chat_type": "group"}
        first, last = cut(live.adapter, "one", "two", **group, user="anna")
        await live.adapter.receive(first, between := live.adapter.inbound("hm", **group, user="bob"), last)
        assert (await live.answer(first.event_id)).text == "echo: [anna] one\ntwo"
        assert (await live.answer(between.event_id)).text == "echo: [bob] hm"


async def test_a_message_that_is_too_long_with_all_its_parts_is_refused_as_one(tmp_path: Path) -> None:
    async with running(tmp_path, model=FakeModel()) as live:
        word = "word " * 40_000
        parts = cut(live.adapter, word, word, word, word, word)
        await live.adapter.receive(*parts)
        assert (await live.answer(parts[0].event_id)).text.startswith("Your message is too long for the model")
        await live.quiet()
        assert len(live.adapter.shown()) == 1
        assert await live.ask("next") == "echo: next"
        assert await transcript(live) == ["next", "echo: next"]


@pytest.mark.parametrize(
    ("text", "heard"), [("", SEEN), ("what is it?", f"what is it?\n{SEEN}"), ("/queue what?", f"what?\n{SEEN}")]
)
async def test_a_picture_alone_is_no_empty_message(tmp_path: Path, text: str, heard: str) -> None:
    async with running(tmp_path) as live:
        files = (Attachment(kind="image", ref="r"),)
        await live.adapter.receive(picture := replace(live.adapter.inbound(text), attachments=files))
        await live.answer(picture.event_id)
        assert live.model.spoken() == [("user", heard)]
        assert await live.ask("") == EMPTY


# -- what happens meanwhile ----------------------------------------------------------------------


async def test_a_stop_ends_the_message_with_all_its_parts(tmp_path: Path, clock: ManualClock) -> None:
    model = FakeModel(in_turn(Say(text="never", gate=Gate())))
    async with running(tmp_path, model=model, clock=clock) as live:
        await live.adapter.receive(*album(live.adapter, "one", "two"))
        await until_joining(clock)
        assert (await live.ask("/stop")).startswith("Stopping.")
        await clock.advance(DEBOUNCE)
        await live.adapter.until(lambda: STOPPED in live.adapter.shown("c", "notice"))
        await live.quiet()
        assert len(live.adapter.shown()) == 2
        assert (await transcript(live))[0].startswith(f"{BOTH}\n[")


async def test_a_message_does_not_interrupt_its_own_beginning(tmp_path: Path, clock: ManualClock) -> None:
    gates = [Gate(), Gate()]
    model = FakeModel(in_turn(Say(text="never", gate=gates[0]), Say(text="here it is", gate=gates[1])))
    async with running(tmp_path, config=mode(tmp_path, "interrupt"), model=model, clock=clock) as live:
        await live.tell("a story")
        await gates[0].until_waiting()
        parts = cut(live.adapter, "no,", "a", "poem")
        await live.adapter.receive(parts[0])  # ends the story
        await until_joining(clock)
        for part in parts[1:]:
            await live.adapter.receive(part)
        await clock.advance(DEBOUNCE)
        await gates[1].until_waiting()
        gates[1].open()
        assert (await live.answer(parts[0].event_id)).text == "here it is"
        await live.quiet()
        assert model.spoken()[-1] == ("user", "no,\na\npoem")
        assert len(live.adapter.shown("c", "notice")) == 1
        assert model.closed_early == 1


async def test_a_running_turn_is_given_a_message_as_a_whole(tmp_path: Path, clock: ManualClock) -> None:
    gates = [Gate(), Gate()]
    steps = [Say(calls=[CLOCK], gate=gates[0]), Say(calls=[CLOCK], gate=gates[1]), Say(text="done")]
    model = FakeModel(in_turn(*steps))
    async with running(tmp_path, config=mode(tmp_path, "steer"), model=model, clock=clock) as live:
        event = await live.tell("work")
        await gates[0].until_waiting()
        parts = cut(live.adapter, "in metric ", "units", mark=TORN)
        await live.adapter.receive(parts[0])
        gates[0].open()
        await gates[1].until_waiting()
        assert [role for role, _ in model.spoken(1)] == ["user", "assistant", "tool"], "half of it says nothing"
        await live.adapter.receive(parts[1])
        gates[1].open()
        assert (await live.answer(event)).text == "done"
        await live.quiet()
        assert model.spoken(2)[-1] == ("user", "in metric units")
        assert live.adapter.shown("c", "notice") == [PASSED_ON]


async def test_in_steer_mode_a_message_is_not_given_its_own_parts_again(tmp_path: Path) -> None:
    async with running(tmp_path, config=mode(tmp_path, "steer")) as live:
        parts = cut(live.adapter, "one", "two")
        await live.adapter.receive(*parts)
        await live.answer(parts[0].event_id)
        await live.quiet()
        assert live.model.spoken() == [("user", "one\ntwo")]


async def test_a_message_that_waits_is_told_of_once(tmp_path: Path, clock: ManualClock) -> None:
    gate = Gate()
    async with running(tmp_path, clock=clock, model=FakeModel(in_turn(Say(text="done", gate=gate)))) as live:
        await live.tell("work")
        await gate.until_waiting()
        parts = album(live.adapter, "one", "two")
        await live.adapter.receive(parts[0])
        await live.adapter.until(lambda: live.adapter.shown("c", "notice") == [BUSY])
        await clock.advance(31)  # after which the next message would be told
        await live.adapter.receive(parts[1])
        gate.open()
        await until_joining(clock)
        await clock.advance(DEBOUNCE)
        assert (await live.answer(parts[0].event_id)).text.startswith(f"echo: {BOTH}\n[")
        assert live.adapter.shown("c", "notice") == [BUSY]


# -- crashes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["turn.claimed", "turn.model_called", "turn.tools_ran", "turn.step_recorded"])
async def test_a_crash_neither_loses_nor_doubles_a_part(tmp_path: Path, point: Point) -> None:
    async with running(tmp_path, points=(kill := KillAt(point)), model=FakeModel(in_turn(Say(calls=[CLOCK])))) as live:
        parts = cut(live.adapter, "one", "two", "three")
        await live.adapter.receive(*parts)
        async with asyncio.timeout(PATIENCE):
            await kill.passed.wait()
    async with running(tmp_path) as live:
        await live.answer(parts[0].event_id)
        await live.quiet()
        assert [text for text in await transcript(live) if "one" in text or "two" in text] == [
            "one\ntwo\nthree",
            "echo: one\ntwo\nthree",
        ]
        assert len(live.adapter.shown()) == 1


async def test_a_message_that_kills_the_process_takes_its_parts_along(tmp_path: Path) -> None:
    parts: list[Inbound] = []
    clock = ManualClock()
    for _ in range(MOST_ATTEMPTS):
        async with running(tmp_path, points=(kill := KillAt("turn.claimed")), clock=clock) as live:
            if not parts:
                parts = cut(live.adapter, "one", "two", "three")
                await live.adapter.receive(*parts)
            async with asyncio.timeout(PATIENCE):
                while not kill.passed.is_set():  # each attempt waits longer after a start
                    await clock.advance(30.0)
                    await asyncio.sleep(0.005)
    async with running(tmp_path) as live:
        assert (await live.answer(parts[0].event_id)).text == DEAD.format(attempts=MOST_ATTEMPTS)
        assert await live.ask("next") == "echo: next"
        await live.quiet()
        assert live.adapter.shown() == [DEAD.format(attempts=MOST_ATTEMPTS), "echo: next"]
        assert (await live.store.status()).dead == 1


# -- Telegram ------------------------------------------------------------------------------------


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    """Telegram without its limits."""
    async with TelegramServer(limits=None, clock=FastClock()) as server:
        yield server


async def test_what_is_pasted_on_telegram_is_one_message(tmp_path: Path, telegram: TelegramServer) -> None:
    anna = telegram.people.person("Anna")
    model = FakeModel(in_turn(Say(text="read")))
    pasted = "".join(f"{number:08}" for number in range(1_200))
    async with on_telegram(tmp_path, telegram, anna, model=model) as bot:
        assert len(telegram.people.paste(bot.chat, anna, pasted)) == 3
        await bot.until_shown("read")
        await bot.quiet()
        assert model.spoken() == [("user", pasted)]
        bot.says("next")
        await bot.until_shown("read", "echo: next")
        assert [message.text for message in telegram.shown(bot.chat)] == ["read", "echo: next"], "nobody was busy"


async def test_a_long_answer_to_a_message_says_once_what_it_answers(tmp_path: Path, telegram: TelegramServer) -> None:
    anna = telegram.people.person("Anna")
    model = FakeModel(in_turn(Say(text="asked"), Say(text="read")))
    pasted = "".join(f"{number:08}" for number in range(600))
    async with on_telegram(tmp_path, telegram, anna, model=model) as bot:
        bot.says("ask me")
        await bot.until_shown("asked")
        telegram.people.paste(bot.chat, anna, pasted, reply_to=telegram.shown(bot.chat)[0])
        await bot.until_shown("asked", "read")
        assert model.spoken()[-1] == ("user", f'[in reply to you: "asked"]\n{pasted}')


async def test_an_album_on_telegram_is_one_message(tmp_path: Path, telegram: TelegramServer) -> None:
    anna = telegram.people.person("Anna")
    model = FakeModel(in_turn(Say(text="seen")))
    async with on_telegram(tmp_path, telegram, anna, model=model) as bot:
        telegram.people.album(bot.chat, anna, [b"1", b"2"], caption="Both")
        await bot.until_shown("seen")
        await bot.quiet()
        ((_, heard),) = model.spoken()
        assert heard.startswith("Both\n[sent with this message: a picture ")
        assert [message.text for message in telegram.shown(bot.chat)] == ["seen"]


async def test_what_is_pasted_in_a_group_is_for_the_bot_to_its_end(tmp_path: Path, telegram: TelegramServer) -> None:
    anna, bob = telegram.people.person("Anna"), telegram.people.person("Bob")
    group = telegram.people.group("Team", anna, bob, bot="administrator")  # so that it sees everything
    name = f"@{telegram.bot.username}"
    pasted = "".join(f"{number:08}" for number in range(1_200))
    model = FakeModel(in_turn(Say(text="read"), Say(text="seen")))
    async with on_telegram(tmp_path, telegram, anna, model=model, allow=(f"telegram:{bob.id}",)) as bot:
        bot.says("not for the bot", group)
        first, *others = parts_of(f"{name} {pasted}")
        bot.says(first, group)
        telegram.people.say(group, bob, "what is that?")
        for part in others:
            bot.says(part, group)
        await bot.until_shown("read", chat=group)
        telegram.people.album(group, anna, [b"1", b"2", b"3"], caption=f"{name} Look")
        telegram.people.album(group, bob, [b"4", b"5"], caption="private")
        await bot.until_shown("read", "seen", chat=group)
        bot.says("not for the bot either", group)
        bot.says(f"/status{name}", group)
        await bot.until(lambda: len(bot.shown(group)) == 3)
        await bot.quiet()
        (_, heard), (_, _), (_, album) = model.spoken()
        assert heard == pasted
        album = album.rpartition(f"{QUOTES_END}\n\n")[2]  # behind what the group said
        assert album.startswith("Look\n")
        assert album.count("photo.jpg") == 3


def parts_of(text: str) -> list[str]:
    """As Telegram's clients cut it."""
    return [text[at : at + 4_096] for at in range(0, len(text), 4_096)]


async def test_a_later_part_is_known_by_what_is_stored_whoever_took_the_first(tmp_path: Path) -> None:
    gate = Gate()
    async with running(tmp_path, model=FakeModel(in_turn(Say(text="busy", gate=gate))), clock=ManualClock()) as live:
        await live.tell("something long")
        await gate.until_waiting()
        one, two, three = cut(live.adapter, "one", "two", "three")
        (taken,) = await live.adapter.receive(one)
        part, other = replace(two, only_as_part=True), replace(three, only_as_part=True)
        stranger = replace(live.adapter.inbound("hello", user="other"), only_as_part=True)
        assert [each.status for each in await live.adapter.receive(part, stranger)] == ["new", "refused"]
        assert [each.status for each in await live.adapter.receive(other)] == ["new"]
        late = replace(live.adapter.inbound("and more"), only_as_part=True)
        assert [each.status for each in await live.adapter.receive(late)] == ["refused"]
        gate.open()
        assert (await live.answer(taken.event_id)).text == "echo: one\ntwo\nthree"


async def test_a_later_part_of_nothing_is_nobodys(tmp_path: Path) -> None:
    async with running(tmp_path, clock=ManualClock()) as live:
        one, two = cut(live.adapter, "one", "two")
        alone = [replace(one, only_as_part=True), replace(two, only_as_part=True)]
        assert [each.status for each in await live.adapter.receive(*alone)] == ["refused", "refused"]
        assert live.model.requests == []


async def test_an_album_that_a_kill_cuts_is_one_message(tmp_path: Path, clock: ManualClock) -> None:
    async with running(tmp_path, clock=clock) as live:
        first, second = album(live.adapter, "look at", "these two")
        await live.adapter.receive(first)
        await until_joining(clock)
        await live.gateway.lanes.stop(0)  # as good as a crash
    clock.jump(60)
    async with running(tmp_path, clock=clock) as live:
        await eventually(lambda: any(1 < seconds <= 5 for seconds in clock.pending))
        await live.adapter.receive(second)
        await live.advance_until(lambda: live.adapter.shown(), seconds=1)
        assert (await transcript(live))[0].count("look at\n(2: a picture) these two") == 1
        assert len([text for text in await transcript(live) if "these two" in text]) == 2  # it, and its echo
