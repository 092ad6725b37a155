"""/last shows an answer again that may not have arrived."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from gateway.commands.turn import NOT_SHOWN
from gateway.delivery.outbox import MAYBE_MISSING, OUTCOME_UNKNOWN
from gateway.domain.adapter import Limits
from gateway.domain.chat import ChatAddress, SessionKey
from gateway.runtime.errors import Ambiguous, ChatGone
from tests.support.asking import scene
from tests.support.fakes import ManualClock
from tests.support.gateway import FakeAdapter, FakeModel, echo, running
from tests.support.waiting import eventually


async def test_all_parts_of_the_last_answer_are_shown_again(tmp_path: Path) -> None:
    adapter = FakeAdapter(limits=Limits(trusted=True, text_units=60))
    async with running(tmp_path, adapter=adapter) as live:
        assert await live.ask("/last") == "I have not answered here yet. Send a message first."
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
        assert (newest.state, lost.state, lost.error) == ("sent", "withheld", OUTCOME_UNKNOWN)
        await live.tell("/last")
        await live.adapter.until(lambda: len(live.adapter.sent) == 4)
        assert live.adapter.shown()[2:] == [NOT_SHOWN, "echo: hello"]


async def test_what_a_closed_chat_was_not_shown_is_told_of_once_and_shown_once_by_last(tmp_path: Path) -> None:
    async with running(tmp_path, model=FakeModel(echo)) as live:
        for chat_type, whose in (("direct", "them"), ("group", "each person theirs")):
            place: dict[str, Any] = {"chat": chat_type, "chat_type": chat_type}
            here = ChatAddress(platform="fake", chat=chat_type)
            live.adapter.sent.clear()
            for said in ("one", "two"):
                live.adapter.failures = [ChatGone("the person has blocked the bot")]
                await live.tell(said, **place)
                await eventually(partial(live.store.closed, here))
                if said == "one":
                    await live.quiet()
                    await live.store.open_chat(here)
            await live.quiet()
            assert live.adapter.sent == []
            assert await live.ask("three", **place) == "echo: three"
            assert await live.ask("four", **place) == "echo: four"
            told = f"I could not show 2 answers here. /last shows {whose}."
            assert sorted(live.adapter.shown(chat_type)) == sorted([told, "echo: three", "echo: four"])
            assert await live.ask("/last", **place) == NOT_SHOWN
            await live.quiet()
            assert live.adapter.shown(chat_type)[4:] == ["echo: one", "echo: two"]
            assert {row.state for row in await live.store.outbox(here, 99)} == {"sent"}
            event = await live.tell("/last", **place)
            await live.quiet()
            assert [row.text for row in live.adapter.sent if row.answers == event] == ["echo: four"]


async def test_last_shows_a_crowd_of_answers_in_turns(tmp_path: Path) -> None:
    async with running(tmp_path, model=FakeModel(echo)) as live:
        here, key = ChatAddress(platform="fake", chat="c"), SessionKey(platform="fake", chat="c")
        await live.store.close_chat(here, "blocked")
        rows = [live.gateway.outbox.compose(key, here, "reply", f"answer {number}")[0] for number in range(25)]
        await live.gateway.outbox.emit(rows)
        assert await live.ask("/last") == f"{NOT_SHOWN} (5 messages more follow; send /last again)"
        await live.quiet()
        assert live.adapter.shown("c", "reply") == [f"answer {number}" for number in range(20)]
        assert await live.ask("/last") == NOT_SHOWN
        await live.quiet()
        assert live.adapter.shown("c", "reply")[20:] == [f"answer {number}" for number in range(20, 25)]


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
        await live.quiet()
        last = await live.tell("/last")
        await live.quiet()
        assert [row.text for row in here.adapter.sent if row.answers == last] == ["done"]


async def test_nobody_is_shown_the_answer_of_another_conversation(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        await live.ask("a secret of mine", user="anna", chat="g", chat_type="group")
        answer = await live.ask("/last", user="bob", chat="g", chat_type="group")
        assert answer.startswith("I have not answered here yet")


async def test_what_was_forgotten_is_no_answer_to_show_again(tmp_path: Path) -> None:
    async with running(tmp_path, model=FakeModel(echo)) as live:
        for said in ("one", "two"):
            await live.ask(said)
        await live.tell("/forget last")
        await live.adapter.until(lambda: any(row.kind == "question" for row in live.adapter.sent))
        await live.tell("y")
        await live.quiet()
        assert (await live.ask("/last")).startswith("I have not answered here yet")
