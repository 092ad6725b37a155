"""Albums and long texts that a command or a mention stands in only once: it is about all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.chat import CUT, Attachment, Inbound
from gateway.domain.notes import QUOTES_END
from gateway.runtime.errors import StoreUnavailable
from gateway.runtime.structs import replace
from gateway.store.records import Arrival, Receipt
from gateway.store.sqlite.backend import SqliteStore
from gateway.turns.parts import DEBOUNCE
from tests.emulators.telegram import Message, TelegramServer
from tests.support.fakes import ManualClock
from tests.support.fast_clock import FastClock
from tests.support.gateway import FakeAdapter, FakeModel, Gate, Say, in_turn, running
from tests.support.telegram_live import Bot, on_telegram

CLOCK = ("clock", "{}")
THREE = [b"1", b"2", b"3"]


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    """Telegram without its limits."""
    async with TelegramServer(limits=None, clock=FastClock()) as server:
        yield server


def pictures(adapter: FakeAdapter, *captions: str, name: str = "album 7", **where: Any) -> list[Inbound]:
    """Pictures that were sent at once."""
    files = (Attachment(kind="image", ref="r"),)
    return [replace(adapter.inbound(text, **where), part_of=name, attachments=files) for text in captions]


async def album(bot: Bot, caption: str, captioned: int) -> list[Message]:
    """Anna's, once the bot has it all."""
    made = bot.telegram.people.album(bot.chat, bot.anna, THREE, caption=caption, captioned=captioned)
    await bot.until(lambda: not bot.telegram.cloud.updates)
    return made


@pytest.mark.parametrize("captioned", [0, 1, -1])
async def test_an_album_whose_caption_is_queue_waits_for_its_turn_with_all_its_pictures(
    tmp_path: Path, telegram: TelegramServer, captioned: int
) -> None:
    anna, gate = telegram.people.person("Anna"), Gate()
    model = FakeModel(in_turn(Say(text="one", gate=gate), Say(text="two")))
    async with on_telegram(tmp_path, telegram, anna, model=model) as bot:
        bot.says("work")
        await gate.until_waiting()
        await album(bot, "/queue what are these?", captioned)
        gate.open()
        await bot.until_shown("one", "two")
        await bot.quiet()
        _, heard = model.spoken()[-1]
        assert heard.startswith("what are these?\n[sent with this message: ")
        assert heard.count("photo.jpg") == 3
        assert len(model.requests) == 2


@pytest.mark.parametrize("place", range(3))
async def test_an_album_whose_caption_is_steer_reaches_the_running_turn_with_all_its_pictures(
    tmp_path: Path, clock: ManualClock, place: int
) -> None:
    gate = Gate()
    model = FakeModel(in_turn(Say(calls=[CLOCK], gate=gate), Say(text="done")))
    async with running(tmp_path, model=model, clock=clock) as live:
        event = await live.tell("work")
        await gate.until_waiting()
        captions = [""] * 3
        captions[place] = "/steer look, too"
        for part in pictures(live.adapter, *captions):
            await live.adapter.receive(part)
        await clock.advance(DEBOUNCE)
        gate.open()
        assert (await live.answer(event)).text == "done"
        await live.quiet()
        said = [text for role, text in model.spoken() if role == "user"]
        assert said[1].startswith("look, too\n[sent with this message: ")
        assert said[1].count("a picture") == 3
        assert len(said) == len(model.requests) == 2


async def test_in_a_group_the_pictures_before_the_one_that_names_the_bot_are_meant_too(
    tmp_path: Path, telegram: TelegramServer
) -> None:
    anna, bob = telegram.people.person("Anna"), telegram.people.person("Bob")
    group = telegram.people.group("Team", anna, bob, bot="administrator")  # so that it sees everything
    name = f"@{telegram.bot.username}"
    model = FakeModel(in_turn(Say(text="seen"), Say(text="queued")))
    async with on_telegram(tmp_path, telegram, anna, model=model, allow=(f"telegram:{bob.id}",)) as bot:
        telegram.people.album(group, bob, [b"4", b"5"], caption="private")
        telegram.people.album(group, anna, THREE, caption=f"{name} Look", captioned=-1)
        telegram.people.album(group, bob, [b"6", b"7"], caption="private, too")
        await bot.until_shown("seen", chat=group)
        telegram.people.album(group, anna, THREE, caption=f"/queue{name} And these?", captioned=1)
        await bot.until_shown("seen", "queued", chat=group)
        await bot.quiet()
        (_, heard), _, (_, queued) = model.spoken()
        heard, queued = (each.rpartition(f"{QUOTES_END}\n\n")[2] for each in (heard, queued))  # behind the group's talk
        assert heard.startswith("Look\n")
        assert heard.count("photo.jpg") == 3
        assert queued.startswith("And these?\n")
        assert queued.count("photo.jpg") == 3
        assert len(model.requests) == 2


async def test_what_was_overheard_is_taken_when_it_comes_again_and_once(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        first, second, last = pictures(live.adapter, "", "", "look")
        unmeant = [replace(each, only_as_part=True) for each in (first, second)]
        assert [each.status for each in await live.adapter.receive(*unmeant)] == ["refused", "refused"]
        assert [each.status for each in await live.adapter.receive(unmeant[1])] == ["refused"]
        assert (await live.store.status()).waiting == 0
        assert [each.status for each in await live.adapter.receive(last)] == ["new"]
        assert (await live.answer(first.event_id)).text.startswith("echo: look\n")
        await live.quiet()
        ((_, heard),) = live.model.spoken()
        assert heard.count("a picture") == 3


class Full(SqliteStore):
    """A store that can be read, but takes nothing while it is `full`."""

    full = False

    async def accept(self, arrivals: Sequence[Arrival], *, cap: int) -> list[Receipt]:
        if self.full:
            raise StoreUnavailable("The disk is full.")
        return await super().accept(arrivals, cap=cap)


async def test_what_was_overheard_is_kept_while_the_rest_of_its_album_cannot_be_stored(
    tmp_path: Path, clock: ManualClock
) -> None:
    store = Full(tmp_path / "legato.db", clock=clock, concurrency=4)
    async with running(tmp_path, store=store, clock=clock) as live:
        first, second, last = pictures(live.adapter, "", "", "look")
        first, second = (replace(each, only_as_part=True) for each in (first, second))
        await live.adapter.receive(first)
        store.full = True
        for _ in range(12):
            with pytest.raises(StoreUnavailable):
                await live.adapter.receive(second, last)
            await clock.advance(5)
        store.full = False
        await live.adapter.receive(second, last)
        await clock.until_pending()
        await clock.advance(DEBOUNCE)
        await live.answer(first.event_id)
        assert live.model.spoken()[0][1].count("a picture") == 3


@pytest.mark.parametrize(("passes", "jump", "heard"), [(29, 3_600, 2), (29, -3_600, 2), (31, 0, 1), (31, -3_600, 1)])
async def test_what_was_overheard_is_forgotten_after_half_a_minute_whatever_the_machine_says_of_the_time(
    tmp_path: Path, clock: ManualClock, passes: float, jump: float, heard: int
) -> None:
    async with running(tmp_path, clock=clock) as live:
        first, last = pictures(live.adapter, "", "look")
        await live.adapter.receive(replace(first, only_as_part=True))
        clock.jump(jump)
        await clock.advance(passes)
        await live.adapter.receive(last)
        await clock.until_pending()
        await clock.advance(DEBOUNCE)
        await live.adapter.until(lambda: live.adapter.sent)
        assert live.model.spoken()[0][1].count("a picture") == heard


@pytest.mark.parametrize("command", ["/status", "/title Cats", "/stauts"])
async def test_a_command_has_no_use_for_the_pictures_before_it(tmp_path: Path, command: str) -> None:
    async with running(tmp_path) as live:
        first, last = pictures(live.adapter, "", command, chat_type="group")
        await live.adapter.receive(replace(first, only_as_part=True))
        await live.adapter.receive(last)
        assert (await live.answer(last.event_id)).text
        await live.quiet()
        assert live.model.requests == []
        assert len(live.adapter.shown()) == 1


async def test_another_album_another_speaker_and_a_command_for_others_are_not_taken_along(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        before = [
            *pictures(live.adapter, "", name="album 8"),
            *pictures(live.adapter, "", user="other", chat_type="group"),
            *pictures(live.adapter, "/stop@another"),
        ]
        await live.adapter.receive(*(replace(each, only_as_part=True) for each in before))
        (last,) = pictures(live.adapter, "look")
        await live.adapter.receive(last)
        await live.answer(last.event_id)
        await live.quiet()
        assert live.model.spoken()[0][1].count("a picture") == 1
        assert len(live.adapter.shown()) == 1


async def test_a_long_text_behind_queue_is_one_message(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        first, last = (live.adapter.inbound(text) for text in ("/queue one", "two"))
        await live.adapter.receive(replace(first, part_of=CUT), last)
        assert (await live.answer(first.event_id)).text == "echo: one\ntwo"
        await live.quiet()
        assert len(live.adapter.shown()) == 1
