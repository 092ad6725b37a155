"""The line that people are shown while no word of an answer comes; the answer takes its place."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.domain.turn import STOPPED
from tests.emulators.telegram import TelegramServer
from tests.support.asking import Buttoned, settings
from tests.support.fakes import ManualClock
from tests.support.fast_clock import FastClock
from tests.support.gateway import FakeModel, Gate, Say, in_turn, running
from tests.support.model import Script
from tests.support.telegram_live import on_telegram
from tests.support.tools import Payment, payments


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    """Telegram without its limits."""
    async with TelegramServer(limits=None, clock=FastClock()) as server:
        yield server


PAUSES = "The model did not answer, so I try again in "


def pausing(gate: Gate, *then: Say) -> Script:
    """A model that is asked again in 40 seconds, but waits at a gate."""
    return in_turn(Say(text="the answer", pause=40.0, gate=gate), *then)


async def test_on_telegram_a_long_pause_is_a_line_that_becomes_the_answer(
    tmp_path: Path, telegram: TelegramServer
) -> None:
    anna, gate = telegram.people.person("Anna"), Gate()
    async with on_telegram(tmp_path, telegram, anna, model=FakeModel(pausing(gate))) as bot:
        bot.says("hello")
        await bot.until(lambda: bot.shown() and bot.shown()[0].startswith(PAUSES))
        assert "(0 s" not in bot.shown()[0]
        gate.open()
        await bot.until_shown("the answer")
        assert len(list(telegram.journal.of("sendMessage"))) == 1
        assert telegram.violations == []


async def test_on_telegram_a_stop_takes_the_place_of_the_line(tmp_path: Path, telegram: TelegramServer) -> None:
    anna, gate = telegram.people.person("Anna"), Gate()
    async with on_telegram(tmp_path, telegram, anna, model=FakeModel(pausing(gate))) as bot:
        bot.says("hello")
        await bot.until(lambda: bot.shown() and bot.shown()[0].startswith(PAUSES))
        bot.says("/stop")
        await bot.until(lambda: bot.shown()[0] == STOPPED)
        bot.says("and now?")
        await bot.until(lambda: bot.shown()[-1] == "echo: and now?")
        assert bot.shown() == [STOPPED, "Stopping.", "echo: and now?"]


async def test_on_telegram_a_question_does_not_leave_the_line_waiting(tmp_path: Path, telegram: TelegramServer) -> None:
    anna, gate = telegram.people.person("Anna"), Gate()
    asks = Say(calls=payments(50).calls, pause=40.0, gate=gate)
    model = FakeModel(in_turn(asks, Say(text="done")))
    async with on_telegram(tmp_path, telegram, anna, model=model, with_tools=[Payment()]) as bot:
        bot.says("pay")
        await bot.until(lambda: bot.shown() and bot.shown()[0].startswith(PAUSES))
        gate.open()
        await bot.until(lambda: len(bot.shown()) == 2)
        assert bot.shown()[0].startswith("My answer took ")
        bot.answers("y")
        await bot.until(lambda: bot.shown()[-1] == "done")


async def test_a_turn_without_a_word_is_told_of_after_a_while_and_again(tmp_path: Path, clock: ManualClock) -> None:
    gate, adapter = Gate(), Buttoned()
    model = FakeModel(in_turn(Say(text="the answer", gate=gate)))
    async with running(tmp_path, config=settings(tmp_path), clock=clock, adapter=adapter, model=model) as live:
        event = await live.tell("hello")
        await gate.until_waiting()
        await clock.advance(19)
        assert adapter.sent == []
        await clock.advance(2)
        await adapter.until(
            lambda: adapter.shown() == ["I am still working: thinking, 20 s so far. /stop ends my work."]
        )
        await clock.advance(20)
        await adapter.until(
            lambda: (
                [row.text for row in adapter.edited.values()]
                == ["I am still working: thinking, 40 s so far. /stop ends my work."]
            )
        )
        gate.open()
        await adapter.until(lambda: [row.text for row in adapter.edited.values()] == ["the answer"])
        assert len(adapter.sent) == 1
        assert adapter.sent[0].answers == event
