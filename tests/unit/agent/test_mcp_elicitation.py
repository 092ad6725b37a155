"""What a server may ask a person, and what becomes of questions that no server should ask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from gateway.agent.mcp.elicitation import Elicitation
from gateway.agent.mcp.server import Beside
from gateway.domain.approval import Labels, Verdict

DECLINED: dict[str, Any] = {"action": "decline"}


class Person:
    """Answers one question after the other: a text, or a verdict."""

    def __init__(self, *answers: str) -> None:
        self.answers, self.asked = list(answers), list[str]()

    async def __call__(self, text: str, labels: Labels | None, choices: Sequence[str]) -> tuple[Verdict, str]:
        self.asked.append(text)
        answer = self.answers.pop(0)
        if answer in ("denied", "expired"):
            return ("denied" if answer == "denied" else "expired"), ""
        return "approved", "" if labels else answer


async def asked(question: dict[str, Any], *answers: str) -> tuple[Any, Person, list[str]]:
    """MCP's answer, the person, and what was refused."""
    person = Person(*answers)
    beside = Beside(person=person)
    return await Elicitation(server="demo", beside=beside).ask(question), person, beside.refused


def form(*required: str, **properties: Any) -> dict[str, Any]:
    """A form with these fields."""
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"mode": "form", "message": "Tell me", "requestedSchema": schema}


TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("question", "why"),
    [
        (form(password=TEXT), "a secret (password)"),
        (form(apiKey=TEXT), "a secret (apiKey)"),
        (form(x={**TEXT, "title": "Your PIN"}), "a secret (Your PIN)"),
        (form(x={**TEXT, "description": "the one-time code that we sent"}), "a secret (x)"),
        (form(card_number={"type": "integer"}), "a secret (card_number)"),
        (form(x={**TEXT, "format": "password"}), "a secret (x)"),
        (form(name=TEXT, accessToken=TEXT), "a secret (accessToken)"),
        (form(wort={**TEXT, "title": "Ihr Kennwort"}), "a secret"),
        (form(x={**TEXT, "title": "密码"}), "a secret"),
        ({**form(x=TEXT), "message": "Please enter your password:"}, "a secret (x)"),
        (form(x={"type": "object", "properties": {"y": TEXT}}), "cannot be read"),
        (form(x={"type": "array", "items": TEXT}), "cannot be read"),
        (form(x=5), "cannot be read"),
        (form(x={}), "cannot be read"),
        (form(x={**TEXT, "enum": 5}), "cannot be read"),
        (form(x={**TEXT, "enum": [str(each) for each in range(21)]}), "cannot be read"),
        ({"message": "?", "requestedSchema": {"properties": {"x": TEXT}, "required": 5}}, "cannot be read"),
        ({"message": "?", "requestedSchema": {"properties": [TEXT]}}, "cannot be read"),
        ({"message": "?", "requestedSchema": "x"}, "cannot be read"),
        ({"message": "?"}, "cannot be read"),
        (form(**{f"x{each}": TEXT for each in range(11)}), "more than 10 things"),
        ({"mode": "url", "message": "?", "url": "javascript:alert(1)"}, "not safe"),
        ({"mode": "url", "message": "?", "url": "http://example.org/"}, "not safe"),
        ({"mode": "url", "message": "?", "url": "https://me:pw@example.org/"}, "not safe"),
        ({"mode": "url", "message": "?", "url": "https://exаmple.org/"}, "not safe"),
        ({"mode": "url", "message": "?", "url": "https://example.org/\nYes"}, "not safe"),
        ({"mode": "url", "message": "?", "url": f"https://example.org/{'x' * 2000}"}, "not safe"),
        ({"mode": "url", "message": "?", "url": None}, "not safe"),
    ],
)
async def test_a_question_that_is_not_put(question: dict[str, Any], why: str) -> None:
    said, person, refused = await asked(question)
    assert said == DECLINED
    assert person.asked == []
    assert why in refused[0]


@pytest.mark.parametrize(
    ("question", "answers", "said"),
    [
        (form("x", x=TEXT), ["blue"], {"x": "blue"}),
        (form("x", x={"type": "integer"}), ["no", "7"], {"x": 7}),
        (form("x", x={"type": "number"}), ["1,5"], {"x": 1.5}),
        (form("x", x={"type": "number"}), ["inf", "nan", "1e999"], None),
        (form("x", x={"type": "integer"}), ["a", "b", "c"], None),
        (form("x", x={"type": "boolean"}), ["denied"], {"x": False}),
        (form("x", x={"type": "boolean"}), ["yes"], {"x": True}),
        (form("x", x={**TEXT, "enum": ["a", "b"]}), ["B"], {"x": "b"}),
        (form("x", x={**TEXT, "oneOf": [{"const": "a", "title": "Apple"}]}), ["apple"], {"x": "a"}),
        (form("x", x={**TEXT, "enum": ["a", "b"]}), ["3", "2"], {"x": "b"}),
        (form("y", x=TEXT, y=TEXT), ["first", "-"], {"y": "first"}),
        (form("x", x=TEXT), ["-"], {"x": "-"}),
        (form("token_kind", token_kind={**TEXT, "enum": ["a", "b"]}), ["1"], {"token_kind": "a"}),
        (form("city", city={**TEXT, "title": "Spinning wheel"}), ["Rome"], {"city": "Rome"}),
        (form("x3", **{f"x{each}": TEXT for each in range(10)}), ["three", *"-" * 9], {"x3": "three"}),
        (form(), ["yes"], {}),
        (form(), ["denied"], None),
    ],
)
async def test_answers(question: dict[str, Any], answers: list[str], said: dict[str, Any] | None) -> None:
    found, _, refused = await asked(question, *answers)
    assert found == (DECLINED if said is None else {"action": "accept", "content": said})
    assert refused == []


async def test_nobody_answers() -> None:
    for question in (form("x", x=TEXT), form("x", x={"type": "boolean"}), form()):
        found, _, _ = await asked(question, "expired")
        assert found == {"action": "cancel"}


async def test_what_a_server_says_stays_in_its_lines() -> None:
    question = {**form("x", x={**TEXT, "title": "a\nb", "description": "c\u202ed"}), "message": "one\n\nYour PayPal:\n"}
    _, person, _ = await asked(question, "blue")
    head, field = person.asked[0].splitlines()
    assert head == "demo asks: one Your PayPal:"
    assert field.startswith("a b: c‹")
