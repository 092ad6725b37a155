"""/approve, /deny, /answer and /approvals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock

import pytest

from gateway.domain.approval import WORDS, Approval
from gateway.people.approvals import keep
from gateway.runtime.structs import replace
from tests.support.store_kit import key

if TYPE_CHECKING:
    from tests.unit.commands.conftest import Calling


def asked(number: int, person: str = "anna", **more: Any) -> Approval:
    facts: dict[str, Any] = {"token": f"t{number}", "key": key(), "item": "i", "call": f"c{number}", "number": number}
    facts |= {"person": person, "question": f"Do {number}?", "shown_as": "o", "asked_at": 1.0, "expires_at": 9.0}
    return Approval(**facts | more)


class Asking:
    """What somebody is asked here; `answered` has the numbers with the verdict and for how long it holds."""

    def __init__(self, call: Calling, *questions: Approval) -> None:
        approvals = call.people.approvals
        approvals.answerable.return_value = [*questions]
        approvals.came_before.side_effect = lambda _, each: each.number == 9
        approvals.answer = AsyncMock(side_effect=self._answer)
        self.answered: list[tuple[Any, ...]] = []

    async def _answer(self, each: Approval, verdict: str, _: object, lasts: str) -> str:
        self.answered.append((each.number, verdict, lasts))
        return f"told {each.number}"


DEED = {"deed": "ls"}


@pytest.mark.parametrize(
    ("said", "there", "answered"),
    [
        ("/approve", [asked(1)], [(1, "approved", "once")]),
        ("/deny", [asked(1)], [(1, "denied", "once")]),
        ("/approve 2", [asked(1), asked(2)], [(2, "approved", "once")]),
        ("/approve ALL", [asked(1), asked(2)], [(1, "approved", "once"), (2, "approved", "once")]),
        ("/approve session", [asked(1, **DEED)], [(1, "approved", "session")]),
        ("/approve 2 always", [asked(1), asked(2, **DEED)], [(2, "approved", "always")]),
        ("/approve all always", [asked(1), asked(2, **DEED)], [(1, "approved", "always"), (2, "approved", "always")]),
        ("/deny always", [asked(1)], [(1, "denied", "always")]),
        ("/deny 1", [asked(1, labels=WORDS)], [(1, "denied", "once")]),
        ("/approve", [asked(1), asked(2, labels=WORDS)], [(1, "approved", "once")]),
    ],
)
async def test_the_questions_that_are_meant_are_answered(
    call: Calling, said: str, there: list[Approval], answered: list[Any]
) -> None:
    asking = Asking(call, *there)
    told = await call(said)
    assert asking.answered == answered
    assert told == ("told 1" if answered[0][0] == 1 else "told 2") or told == "1. told 1\n2. told 2"


@pytest.mark.parametrize(
    ("said", "there", "told"),
    [
        ("/approve", [], "Nothing here is waiting for your yes or no."),
        ("/approve", [asked(1, labels=WORDS)], "Answer this question in your own words"),
        ("/approve always", [asked(1)], "You can only allow this once"),
        (
            "/approve",
            [asked(1, "ben")],
            "Say which question you mean, as in /approve 1, or send /approve all:\n1. Do 1?",
        ),
        ("/deny", [asked(1), asked(2)], "Say which question you mean, as in /deny 1, or send /deny all:"),
        ("/approve 7", [asked(1)], "There is no question with the number 7 here. Say which"),
        ("/approve one", [asked(1)], "Say which question you mean"),
        ("/approve 1", [asked(1), asked(1, "ben")], "Several people here have a question number 1."),
        ("/approve", [asked(9)], "Your message came before you could see my question"),
        ("/answer  ", [asked(1, labels=WORDS)], "Write your answer after the command"),
    ],
)
async def test_what_does_not_say_which_question_answers_none(
    call: Calling, said: str, there: list[Approval], told: str
) -> None:
    asking = Asking(call, *there)
    assert (await call(said)).startswith(told)
    assert asking.answered == []


async def test_an_answer_in_words_goes_to_its_question(call: Calling) -> None:
    call.people.approvals.answer_in_words = AsyncMock(return_value="Thank you.")
    assert await call("/answer  the blue one ") == "Thank you."
    assert call.people.approvals.answer_in_words.await_args.args[1:] == (key(), "the blue one")


async def test_yeses_that_last_are_listed_and_taken_back(call: Calling) -> None:
    session = await call.talk()
    assert await call("/approvals") == "You have not given me any lasting permissions here, so I ask every time."
    mine = asked(1, deed="ls", session=session.id)
    await keep(call.store, mine, "always", 1.0)
    await keep(call.store, replace(mine, deed="rm", question="Do 2?"), "session", 2.0)
    await keep(call.store, replace(mine, deed="no", person="ben"), "always", 3.0)
    Asking(call, asked(4))
    told = await call("/approvals")
    assert told.startswith("Waiting for your answer:\n4. Do 4?\n\nYou have allowed me")
    assert "\n1. Do 1? (always)\n2. Do 2? (in this session)\n/approvals remove" in told
    assert "There is no permission number 3." in await call("/approvals remove 3")
    assert (await call("/approvals remove")).startswith("Give the number of the permission")
    assert (await call("/approvals show")).startswith("Send /approvals to see your permissions")
    assert (await call("/approvals delete 1")).endswith("\n- Do 1?")
    assert "1. Do 2? (in this session)" in await call("/approvals")
    assert (await call("/approvals remove ALL")).endswith("\n- Do 2?")
    assert "You have not given me" in await call("/approvals")
    assert "1. Do 1? (always)" in await call("/approvals", "ben")
