"""The facts that the offline model can find: in a transcript, in its memory, in a long text or by a sum.

A request for what is to be remembered shows the facts that are known already, a line each, and the conversation, as
lines that begin with `[1] person:`.
"""

from __future__ import annotations

import ast
import operator
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gateway.domain.message import is_request, is_summary, text_of
from gateway.domain.notes import without_quotes
from gateway.domain.wording import counted

_FACT: Final = re.compile(r"\bmy (?P<thing>[\w' -]{2,40}?) (?:is|are) (?P<value>[^\n.!?|]{1,200})", re.IGNORECASE)
_QUESTION: Final = re.compile(r"\bwhat(?:'s| is| was| are) $", re.IGNORECASE)
_SAID: Final = re.compile(r"^\[(\d+)\] person: (?:\[[^\]\n]{1,60}\] )?(.*)$", re.MULTILINE)
_KNOWN: Final = re.compile(r"^- \d{4}-\d\d-\d\d: (?:[^:\n]{1,60}: )??(?P<fact>[^\n]+)$", re.MULTILINE)
_TELLING: Final = 6  # letters of a word that says something about a text


def requests_in(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the messages of people, oldest first; a summary is none."""
    return [text for message in messages if is_request(message) and (text := without_quotes(text_of(message)).strip())]


def recall_fact(thing: str, messages: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the value of the newest "my THING is VALUE" in a transcript, summaries included."""
    for message in reversed(messages):
        if message.get("role") != "user" and not is_summary(message):
            continue
        text = text_of(message)
        for match in reversed(list(_FACT.finditer(text))):
            asked = _QUESTION.search(text[max(0, match.start() - 12) : match.start()])
            if match["thing"].lower() == thing.lower() and not asked:
                return match["value"].strip(" ,;…“”\"'")
    return None


def remembered(thing: str, messages: Sequence[Mapping[str, Any]]) -> str | None:
    """The value of a thing that the memory in a system prompt names."""
    known = _known("\n".join(text_of(message) for message in messages if message.get("role") == "system"))
    return known.get(thing.casefold(), ("", None))[1]


def memories(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The arguments of the calls that answer a request for facts: each "my THING is VALUE" that is news."""
    prompt = "\n\n".join(text_of(message) for message in messages)
    known = _known(prompt)
    calls: list[dict[str, Any]] = []
    for said in _SAID.finditer(_within(prompt, "conversation")):
        for found in _FACT.finditer(said[2]):
            thing, value = found["thing"].casefold(), found["value"].partition(",")[0].strip().removesuffix(" now")
            old, before = known.get(thing, (None, None))
            if before == value or _QUESTION.search(said[2][: found.start()]):
                continue
            fact = f"{found['thing'].capitalize()}: {value}"
            call = {"action": "add", "about": "person"} if old is None else {"action": "replace", "fact": old}
            calls.append({**call, "text": fact, "message": int(said[1])})
            known[thing] = fact, value
    return calls


def _known(prompt: str) -> dict[str, tuple[str, str]]:
    """The facts in a prompt's memory, as written and their values, by their things."""
    facts = (found["fact"] for found in _KNOWN.finditer(_within(prompt, "memory")))
    return {fact.partition(": ")[0].casefold(): (fact, fact.partition(": ")[2]) for fact in facts if ": " in fact}


def _within(prompt: str, tag: str) -> str:
    """The text between two tags, each of which has a line of its own."""
    return prompt.rpartition(f"<{tag}>\n")[2].partition(f"\n</{tag}>")[0] if f"<{tag}>\n" in prompt else ""


def gist(text: str) -> str:
    """A few true things about a long text."""
    words = re.findall(r"\w+", text)
    often = ", ".join(
        word for word, _ in Counter(word.lower() for word in words if len(word) >= _TELLING).most_common(6)
    )
    first = " ".join(re.split(r"(?<=[.!?])\s|\n", text.strip(), maxsplit=1)[0].split())[:200]
    return "\n\n".join(
        [
            f"That is a text of {counted(len(words), 'word')}, {len(text):,} characters.",
            f"It begins: “{first}”",
            *([f"Words that stand out: {often}."] if often else []),
            "To have it understood rather than counted, set a real `model` in ~/.legato/config.yaml.",
        ]
    )


_OPERATORS: Final = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


def arithmetic(text: str) -> str | None:
    """The value of a sum of plain numbers, or None if `text` is none."""
    try:
        value = _value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError):
        return None
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.10g}"


def _value(node: ast.expr) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return float(node.value)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return float(_OPERATORS[type(node.op)](_value(node.left), _value(node.right)))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    raise ValueError("not a sum")
