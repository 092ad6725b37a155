"""The facts that the offline model can find: in a transcript, in a long text or by a sum."""

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
_COMMON: Final = frozenset(
    re.findall(
        r"\w+",
        "about after again also because been before being between could does down each from have here into just like "
        "more most much must only other over same should since some such than that their them then there these they "
        "this those through under until very were what when where which while will with would your",
    )
)


def requests_in(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the messages of people, oldest first; a summary is none."""
    return [text for message in messages if is_request(message) and (text := without_quotes(text_of(message)).strip())]


def recall_fact(thing: str, messages: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the value of the newest "my THING is VALUE" in a transcript, summaries included."""
    wanted = thing.lower()
    for message in reversed(messages):
        if message.get("role") != "user" and not is_summary(message):
            continue
        text = text_of(message)
        for match in reversed(list(_FACT.finditer(text))):
            asked = _QUESTION.search(text[max(0, match.start() - 12) : match.start()])
            if match["thing"].lower() == wanted and not asked:
                return match["value"].strip(" ,;…“”\"'")
    return None


def gist(text: str) -> str:
    """A few true things about a long text."""
    words = re.findall(r"\w+", text)
    telling = Counter(word.lower() for word in words if len(word) > 3 and word.lower() not in _COMMON)
    often = ", ".join(word for word, _ in telling.most_common(6))
    first = " ".join(re.split(r"(?<=[.!?])\s|\n", text.strip(), maxsplit=1)[0].split())[:200]
    lines = [
        f"That is a text of {counted(len(words), 'word')}, {len(text):,} characters.",
        f"It begins: “{first}”",
    ]
    if often:
        lines.append(f"Words that stand out: {often}.")
    return "\n\n".join(
        [*lines, "To have it understood rather than counted, set a real `model` in ~/.legato/config.yaml."]
    )


_OPERATORS: Final = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def arithmetic(text: str) -> str | None:
    """The value of a sum of plain numbers, or None if `text` is none."""
    try:
        value = _value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError):
        return None
    return f"{value:.10g}" if isinstance(value, float) else f"{value}"


def _value(node: ast.expr) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return float_or_int(_OPERATORS[type(node.op)](_value(node.left), _value(node.right)))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    raise ValueError("not a sum")


def float_or_int(value: Any) -> float:
    """Whole results without a decimal point."""
    number = float(value)
    return int(number) if number.is_integer() and abs(number) < 1e15 else number
