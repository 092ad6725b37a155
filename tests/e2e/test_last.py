"""/last shows an answer again that may not have arrived."""

from __future__ import annotations

from pathlib import Path

from gateway.delivery.outbox import MAYBE_MISSING, OUTCOME_UNKNOWN
from gateway.domain.adapter import Limits
from gateway.runtime.errors import Ambiguous
from tests.support.asking import scene
from tests.support.fakes import ManualClock
from tests.support.gateway import FakeAdapter, running


async def test_all_parts_of_the_last_answer_are_shown_again(tmp_path: Path) -> None:
    adapter = FakeAdapter(limits=Limits(trusted=True, text_units=60))
    async with running(tmp_path, adapter=adapter) as live:
        assert await live.ask("/last") == "There is no answer of mine here yet; send a message first."
        words = " ".join(f"word{number}" for number in range(20))
        for said in (words, "/last", "/last"):
            await live.ask("/version")
            live.adapter.sent.clear()
            event = await live.tell(said)
            await live.adapter.until(lambda: "".join(live.adapter.shown()) == f"echo: {words}")
            assert [row.answers for row in live.adapter.sent] == [event] * 3


async def test_an_answer_that_was_lost_is_told_of_and_shown_again(tmp_path: Path, clock: ManualClock) -> None:
    async with running(tmp_path, clock=clock) as live:
        live.adapter.failures = [Ambiguous("lost")] * 30
        await live.tell("hello")
        await live.advance_until(lambda: live.adapter.sent, seconds=3_600.0)
        assert [text.removeprefix("↻ ") for text in live.adapter.shown()] == [MAYBE_MISSING]
        await live.ask("/version")  # its answer comes after that sentence was noted as shown
        _, newest, lost = await live.store.outbox(None, 9)
        assert (newest.state, lost.state, lost.error) == ("sent", "refused", OUTCOME_UNKNOWN)
        await live.tell("/last")
        await live.adapter.until(lambda: len(live.adapter.sent) == 3)
        assert live.adapter.shown()[2] == "echo: hello"


async def test_a_question_that_its_turn_waits_for_is_shown_again(tmp_path: Path) -> None:
    here = scene(tmp_path, 50)
    async with here.open() as live:
        event = await live.tell("pay")
        question = await here.adapter.question()
        await live.tell("/last")
        await here.adapter.until(lambda: len(here.adapter.shown("c", "question")) == 2)
        again = [row for row in here.adapter.sent if row.kind == "question"][1]
        assert (again.text, again.buttons) == (question.text, question.buttons)
        await here.adapter.press(again, "Approve")
        assert (await live.answer(event)).text == "done"


async def test_nobody_is_shown_the_answer_of_another_conversation(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        await live.ask("a secret of mine", user="anna", chat="g", chat_type="group")
        answer = await live.ask("/last", user="bob", chat="g", chat_type="group")
        assert answer.startswith("There is no answer of mine here yet")
