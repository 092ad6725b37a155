"""Ids and arguments of earlier tool calls, as an API takes them. Pure.

Servers name calls as they like, and some begin anew with each answer; some models write arguments that are no object.
A conversation that moves to a stricter API must go on, so what that API would refuse is replaced. The same transcript
is always written alike.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from copy import copy
from math import isfinite
from typing import Any, Final, Self

from msgspec import MsgspecError
from msgspec.json import decode

SHORT_ID: Final = 9  # characters: the only length that Mistral takes, and short enough for all others
_SOUND: Final = re.compile(r"[a-zA-Z0-9_-]+")
_SHORT: Final = re.compile(rf"[a-zA-Z0-9]{{{SHORT_ID}}}")
_IDS_REFUSED: Final = re.compile(
    r"(?:(?:tool_?call|call|tool_?use)_?id|tool[ _]?(?:call|use)s?(?:\[\d+\])?[. ](?:\w+\.)?id).{0,120}?"
    r"(?:too long|max(?:imum)?[ _]?length|length of \d|length less than|at most \d+ char|match(?:es)? (?:the )?pattern"
    r"|must be a-z|alphanumeric)",
    re.DOTALL,
)


class CallNames:
    """Names the calls of one request, in the order of its messages: at most `limit` characters, each name once."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used: set[str] = set()
        self._latest: dict[str, str] = {}
        self._numbers: dict[str, int] = {}  # how often a name was wanted

    def copy(self) -> Self:
        """The same in its own right."""
        other = copy(self)
        other._used, other._latest, other._numbers = {*self._used}, {**self._latest}, {**self._numbers}
        return other

    def call(self, call_id: str) -> str:
        """The name of a call; results with this id belong to it from now on."""
        base = call_id if len(call_id) <= self._limit and _SOUND.fullmatch(call_id) else _digest(call_id)
        name, number = base, self._numbers.get(base, 1)
        while name in self._used:
            number += 1
            name = f"{base[: self._limit - 8]}_{number}"
        self._numbers[base] = number
        self._used.add(name)
        self._latest[call_id] = name
        return name

    def keep(self, call_ids: Iterable[str]) -> None:
        """Take over names that the API gave itself."""
        for call_id in call_ids:
            self._used.add(call_id)
            self._latest[call_id] = call_id

    def result(self, call_id: str) -> str:
        """The name of the call that a result belongs to."""
        return self._latest.get(call_id) or self.call(call_id)


def refuses_ids(lowered: str) -> bool:
    """Whether a refusal is about the form of a call's id."""
    return _IDS_REFUSED.search(lowered) is not None


def short_id(call_id: Any, limit: int) -> str:
    """A call's id in at most `limit` characters, the same one for the same call; with `SHORT_ID` in exactly so many
    letters and digits."""
    text = str(call_id)
    if limit == SHORT_ID:
        return text if _SHORT.fullmatch(text) else hashlib.sha256(text.encode(errors="replace")).hexdigest()[:limit]
    return text if len(text) <= limit else _digest(text)


def _digest(call_id: str) -> str:
    return "call_" + hashlib.sha256(call_id.encode(errors="replace")).hexdigest()[:32]


def arguments_text(arguments: Any) -> str:
    """A call's arguments as the text of a JSON object, unchanged if they are one already: one odd call of one model
    must not make a conversation unsendable to another."""
    # A text, nearly always, is told quicker than a Mapping.
    text = arguments if isinstance(arguments, str) or not isinstance(arguments, Mapping) else json.dumps(arguments)
    if not isinstance(text, str) or not text.strip():
        return "{}"
    return text if is_object(text) else json.dumps({"unreadable_arguments": text})


def is_object(text: str) -> bool:
    """Whether `text` is a complete JSON object, without the numbers that only Python reads: NaN, Infinity."""
    if not text.rstrip().endswith("}"):
        return False
    try:  # quick, and stricter than the other
        return isinstance(decode(text), dict)
    except (MsgspecError, UnicodeEncodeError):
        pass
    try:
        return isinstance(json.loads(text, parse_constant=_finite, parse_float=_finite), dict)
    except (ValueError, RecursionError):
        return False


def _finite(number: str) -> float:
    """Read a number. Raises ValueError for one that JSON cannot express, such as 1e999."""
    if not isfinite(read := float(number)):
        raise ValueError(number)
    return read
