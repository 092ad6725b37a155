"""The chats with rows that wait for a time. Memory only, event loop only.

The step that stores a row claims the row for sending, and the step that marks a row as sent claims the next. Left for
later are rows with a time of their own (retries), and rows of a process that is gone.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Final

from msgspec import Struct

from gateway.domain.chat import Outbound
from gateway.store.shared.platforms import Platforms

_SPARE: Final = 64  # void entries that are not worth a search


class Advance(Struct, frozen=True, kw_only=True):
    """The state of a chat's head: claimed for sending, or to be looked at again at `due_at`."""

    chat: str
    claimed: Outbound | None = None
    due_at: float | None = None


def rows_to_send(advances: Iterable[Advance]) -> tuple[Outbound, ...]:
    """The rows that were claimed."""
    return tuple(filter(None, map(_CLAIMED, advances)))


_CLAIMED: Final[Callable[[Advance], Outbound | None]] = attrgetter("claimed")


class Agenda:
    """Chats in text form (`chat_name`), by the time their head is due (seconds since the epoch)."""

    def __init__(self) -> None:
        self._due: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []
        self._sends = Platforms()
        self._elsewhere: dict[str, float] = {}  # this process does not send to their platform

    def serve(self, sends: Platforms) -> None:
        """Give only chats of these platforms from now on; the others wait until their platform is served. A process
        that shares its store gives them all, since its steps tell the processes that do serve the platform."""
        self._sends = sends
        waiting = {**self._elsewhere, **self._due}
        self._elsewhere, self._due, self._heap = {}, {}, []
        for chat, due_at in waiting.items():
            self.wait(chat, due_at)

    def note(self, advances: Iterable[Advance]) -> None:
        """Take up the new state of the heads of chats."""
        for advance in advances:
            if advance.due_at is not None:
                self.wait(advance.chat, advance.due_at)
            else:
                self._due.pop(advance.chat, None)

    def wait(self, chat: str, due_at: float) -> None:
        """Look at this chat at `due_at`, and at no other time."""
        if not self._sends.has_chat_of(chat):
            self._elsewhere[chat] = due_at
            return
        self._due[chat] = due_at
        heapq.heappush(self._heap, (due_at, chat))
        if len(self._heap) > 2 * len(self._due) + _SPARE:  # chats that are looked at often and due late
            self._heap = [(due, each) for each, due in self._due.items()]
            heapq.heapify(self._heap)

    def take(self, now: float, limit: int) -> list[str]:
        """Chats whose head is due, earliest first; they wait no more."""
        taken: list[str] = []
        while len(taken) < limit and (due_at := self.next_due()) is not None and due_at <= now:
            _, chat = heapq.heappop(self._heap)
            del self._due[chat]
            taken.append(chat)
        return taken

    def next_due(self) -> float | None:
        """Return the time when the next chat is to be looked at; None: no chat waits."""
        # Entries that `wait` or `note` made void are still in the heap; they are dropped when they come up.
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None
