"""The transcripts that this process has loaded, so that a turn reads only new messages.

A transcript only ever grows, and its messages never change: a cached transcript that is long enough is
right, and one that is too short lacks just its end. Forgetting is the one exception: a session counts how often that
was done (`rewritten`), and older copies are dropped.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final

from gateway.domain.message import Message

MOST_BYTES: Final = 50_000_000
PER_MESSAGE: Final = 1_500  # bytes that a message takes beside its texts


class _Entry:
    """Messages as a growing list, and the tuple that was last handed out; after a change, a new tuple is made."""

    __slots__ = ("messages", "rewritten", "size", "used", "view")

    def __init__(self, rewritten: int = 0) -> None:
        self.messages: list[Message] = []
        self.rewritten = rewritten
        self.size = 0  # bytes
        self.used = True  # since the last rest
        self.view: tuple[Message, ...] | None = None


class TranscriptCache:
    """Least recently used transcripts, at most `capacity` bytes together (`size` are used). A message counts once for
    each transcript that holds it. Event loop only. Readers share the messages and must not change them."""

    def __init__(self, capacity: int = MOST_BYTES) -> None:
        self._capacity = capacity
        self.size = 0
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    def get(self, session_id: str, rewritten: int = 0) -> tuple[Message, ...] | None:
        """The known part of a transcript, from its start; None if nothing is known."""
        entry = self._entries.get(session_id)
        if entry is None:
            return None
        if entry.rewritten != rewritten:
            self.drop(session_id)
            return None
        self._entries.move_to_end(session_id)
        entry.used = True
        if entry.view is None:
            entry.view = tuple(entry.messages)
        return entry.view

    def put(self, session_id: str, messages: Sequence[Message], rewritten: int = 0, size: int | None = None) -> None:
        """Remember a whole transcript, unless a longer one is known. `size`: its bytes, if known."""
        known = self._entries.get(session_id)
        if known is not None and known.rewritten == rewritten and len(known.messages) >= len(messages):
            return
        self.drop(session_id)
        self._entries[session_id] = _Entry(rewritten)
        self.append(session_id, 0, messages, size)

    def append(self, session_id: str, position: int, messages: Sequence[Message], size: int | None = None) -> None:
        """Messages were stored from `position` on. A transcript that is not cached stays so; one that would get a gap
        is dropped."""
        entry = self._entries.get(session_id)
        if entry is None:
            return
        known = len(entry.messages)
        if position > known:
            self.drop(session_id)
            return
        new = messages[known - position :]
        if not new:
            return
        entry.messages.extend(new)
        entry.used = True
        entry.view = None
        more = sum(map(size_of, new)) if size is None else size
        entry.size += more
        self.size += more
        self._entries.move_to_end(session_id)
        # The newest transcript stays, even if it alone is over the capacity: its turn is running.
        while self.size > self._capacity and len(self._entries) > 1:
            _, oldest = self._entries.popitem(last=False)
            self.size -= oldest.size

    def drop(self, session_id: str) -> None:
        """Forget a transcript."""
        entry = self._entries.pop(session_id, None)
        if entry is not None:
            self.size -= entry.size

    def rest(self) -> int:
        """Drop transcripts that nobody asked for since the last call, and return their bytes."""
        before = self.size
        for session_id in [each for each, entry in self._entries.items() if not entry.used]:
            self.drop(session_id)
        for entry in self._entries.values():
            entry.used = False
        return before - self.size


def size_of(message: Message) -> int:
    """About how many bytes of memory a message takes. Its tokens would not tell: a thousand spaces are only a few."""
    size, left = PER_MESSAGE, list[Any](message.values())
    for value in left:  # it grows on the way
        kind = type(value)  # JSON has these alone
        if kind is str:
            size += sys.getsizeof(value)
        elif kind is dict:
            left += value.values()
        elif kind is list or kind is tuple:
            left += value
    return size
