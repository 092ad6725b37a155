"""When chats are to be looked at. Memory only, event loop only."""

from __future__ import annotations

import heapq
from typing import Final, Generic, TypeVar

Chat = TypeVar("Chat", str, tuple[int, str])  # as a store names it

_SPARE: Final = 64  # void entries that are not worth being looked for


class Timetable(Generic[Chat]):
    """Chats by the time their head is due."""

    def __init__(self) -> None:
        self._due: dict[Chat, float] = {}
        self._heap: list[tuple[float, Chat]] = []

    def wait(self, chat: Chat, due_at: float) -> None:
        """Look at this chat at `due_at` (seconds since the epoch), and at no other time."""
        self._due[chat] = due_at
        heapq.heappush(self._heap, (due_at, chat))
        if len(self._heap) > 2 * len(self._due) + _SPARE:  # chats that are looked at often and due late
            self._heap = [(due, each) for each, due in self._due.items()]
            heapq.heapify(self._heap)

    def forget(self, chat: Chat) -> None:
        """Nothing of this chat waits for a time."""
        self._due.pop(chat, None)

    def clear(self) -> dict[Chat, float]:
        """Nothing waits any more; what did, and for when."""
        waiting, self._due, self._heap = self._due, {}, []
        return waiting

    def take(self, now: float, limit: int) -> list[Chat]:
        """Chats whose head is due, earliest first; they wait no more."""
        taken: list[Chat] = []
        while len(taken) < limit and (due_at := self.next_due()) is not None and due_at <= now:
            _, chat = heapq.heappop(self._heap)
            del self._due[chat]
            taken.append(chat)
        return taken

    def next_due(self) -> float | None:
        """When a chat is to be looked at; None: none is."""
        # Entries that `wait` or `forget` made void are still in the heap; drop them when they come up.
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None
