"""What comes between a question and its answer: other limits, other turns, other people."""

from __future__ import annotations

from pathlib import Path

from gateway.config.models import Hygiene
from tests.fakes_asking import results, scene
from tests.fakes_gateway import echo


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
