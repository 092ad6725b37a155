"""The ids of tool calls, as an API takes them.

Servers name calls as they like, and some begin anew with each answer. A conversation that moves to a stricter API must
go on, so an id is replaced where that API would refuse it. The same transcript always gets the same ids. Pure.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Final

_SOUND: Final = re.compile(r"[a-zA-Z0-9_-]+")


class CallNames:
    """Names the calls of one request, in the order of its messages: at most `limit` characters, each name once."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used: set[str] = set()
        self._latest: dict[str, str] = {}
        self._numbers: dict[str, int] = {}  # how often a name was wanted

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


def _digest(call_id: str) -> str:
    return "call_" + hashlib.sha256(call_id.encode(errors="replace")).hexdigest()[:32]
