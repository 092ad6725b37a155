"""The transcripts that this process has loaded, so that a turn reads only what is new.

A transcript only ever grows, and its messages never change: a cached transcript that is long enough is
right, and one that is too short lacks just its end.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from gateway.domain.message import Message


class _Entry:
    """Messages as a list to extend, and the tuple that was last handed out; a change makes a new tuple."""

    __slots__ = ("messages", "view")

    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages = list(messages)
        self.view: tuple[Message, ...] | None = None


class TranscriptCache:
    """Least recently used transcripts, at most `capacity` messages in total.

    Used from the event loop only. The messages are shared with their readers, who must not
    change them.
    """

    def __init__(self, capacity: int = 200_000) -> None:
        self._capacity = capacity
        self._size = 0
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    def __len__(self) -> int:
        """Messages in total; a message counts once for each transcript that holds it."""
        return self._size

    def get(self, session_id: str) -> tuple[Message, ...] | None:
        """The known part of a transcript, from its start; None: no part is known."""
        entry = self._entries.get(session_id)
        if entry is None:
            return None
        self._entries.move_to_end(session_id)
        if entry.view is None:
            entry.view = tuple(entry.messages)
        return entry.view

    def put(self, session_id: str, messages: Sequence[Message]) -> None:
        """Remember a whole transcript, unless a longer one is known already."""
        known = self._entries.get(session_id)
        if known is not None and len(known.messages) >= len(messages):
            return
        self.drop(session_id)
        self._entries[session_id] = _Entry(messages)
        self._size += len(messages)
        self._shrink()

    def append(self, session_id: str, position: int, messages: Sequence[Message]) -> None:
        """Messages were stored from `position` on. Nothing happens to a transcript that is not cached; one that would
        get a gap is forgotten."""
        entry = self._entries.get(session_id)
        if entry is None:
            return
        known = len(entry.messages)
        if position > known:
            self.drop(session_id)
            return
        new = messages[known - position :]
        if new:
            entry.messages.extend(new)
            entry.view = None
            self._size += len(new)
            self._entries.move_to_end(session_id)
            self._shrink()

    def drop(self, session_id: str) -> None:
        """Forget a transcript."""
        entry = self._entries.pop(session_id, None)
        if entry is not None:
            self._size -= len(entry.messages)

    def _shrink(self) -> None:
        # The newest transcript stays, even if it alone is over the capacity: its turn is running.
        while self._size > self._capacity and len(self._entries) > 1:
            _, oldest = self._entries.popitem(last=False)
            self._size -= len(oldest.messages)
