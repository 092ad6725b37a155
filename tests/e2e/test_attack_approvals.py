"""What comes between a question and its answer: other limits, other turns, other people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gateway.app.config.models import Hygiene, Sessions
from gateway.domain.chat import SessionKey
from gateway.turns.reception import ASKING, BUSY
from tests.support.asking import CommandContext, results, scene
from tests.support.gateway import Gate, Say, echo
from tests.support.tools import payments


async def test_a_question_outlives_a_conversation_that_is_too_long_at_the_restart(tmp_path: Path) -> None:
    """As with a model whose window is smaller: what is condensed before a turn must not close its open call."""
    here = scene(tmp_path, 50)
    paying, here.model.script = here.model.script, echo
    async with here.open() as live:
        for number in range(12):
            await live.ask(f"{number} " + "of many words " * 400)
        here.model.script = paying
        event = await live.tell("pay")
        question = await here.adapter.question()
        live.gateway.stop(grace=0)
    here.sections = {"hygiene": Hygiene(max_messages=10)}
    async with here.open() as live:
        await here.adapter.press(question, "Approve")
        await live.answer(event)
    assert here.tool.paid == [50]
    assert results(here.model) == ["Paid 50 €."]
    assert len(here.adapter.shown("c", "question")) == 1


async def test_a_turn_whose_lane_was_lost_takes_no_news_from_the_one_that_has_it(tmp_path: Path) -> None:
    """Both may wait in one process for a while, and the older one ends first."""
    async with scene(tmp_path).open() as live:
        approvals, key = live.gateway.approvals, SessionKey(platform="fake", chat="c")
        older, newer = approvals.listening(key), approvals.listening(key)
        older.__enter__()
        news = newer.__enter__()
        older.__exit__(None, None, None)
        approvals.heard(key)
        assert news.is_set()
        newer.__exit__(None, None, None)


async def test_a_flood_of_questions_is_no_flood_of_messages(tmp_path: Path) -> None:
    """A platform shows twenty messages a minute in a group, and /stop's answer would come behind them all."""
    here = scene(tmp_path, *[50] * 12)
    async with here.open() as live:
        event = await live.tell("pay")
        await here.adapter.question(10)
        await live.ask("/approve all")
        await live.answer(event)
    assert len(here.adapter.shown("c", "question")) == 10
    assert here.tool.paid == [50] * 10
    assert ["nobody was asked" in text for text in results(here.model)] == [False] * 10 + [True] * 2


async def test_a_command_that_waits_behind_a_question_is_told_so(tmp_path: Path) -> None:
    here = scene(tmp_path, 50)
    async with here.open() as live:
        await live.tell("pay")
        await here.adapter.question()
        await live.ask("/status")
        assert here.adapter.shown("c", "notice") == []
        fresh = await live.tell("/new")
        await here.adapter.until(lambda: here.adapter.shown("c", "notice") == [ASKING])
        await live.ask("/deny")
        await live.answer(fresh)


async def test_an_admin_is_not_told_of_others_questions_as_if_they_held_up_their_own(tmp_path: Path) -> None:
    gate = Gate()
    said = [payments(50), Say(text="thought", gate=gate)]
    here = CommandContext(tmp_path, *said, sessions=Sessions(groups="per_user"))
    where: dict[str, Any] = {"chat": "g", "chat_type": "group"}
    async with here.open() as live:
        await live.tell("pay", **where)
        await here.adapter.question()
        first = await live.tell("think", user="boss", **where)
        await gate.until_waiting()
        await live.tell("and then", user="boss", **where)
        await here.adapter.until(lambda: here.adapter.shown("g", "notice"))
        assert here.adapter.shown("g", "notice") == [BUSY]
        gate.open()
        await live.answer(first)
        await live.ask("/deny", **where)
