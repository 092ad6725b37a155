"""The questions of a turn."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from gateway.agent.tools.base import Question
from gateway.domain.approval import Approval
from gateway.people.approvals import Approvals, TurnQuestions


class Slow:
    """Stores a question, and says so when `going_on` is set."""

    def __init__(self) -> None:
        self.stored, self.going_on = asyncio.Event(), asyncio.Event()

    async def ask(self, *asked: Any, **more: Any) -> Approval:
        self.stored.set()
        await self.going_on.wait()
        return cast(Approval, asked[2])


async def test_a_turn_that_is_stopped_while_its_question_is_stored_knows_of_it() -> None:
    """Its end would not withdraw it otherwise, and its buttons would stay."""
    slow = Slow()
    some: Any = None
    questions = TurnQuestions(approvals=cast(Approvals, slow), lease=some, item=some, known={})
    asking = asyncio.create_task(questions.ask("c1", Question(text="Pay?"), "", None))
    await slow.stored.wait()
    asking.cancel()
    slow.going_on.set()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert list(questions.known) == ["c1"]
