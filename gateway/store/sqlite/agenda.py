"""Which chats' outbox rows are to be looked at, and when. Memory only, event loop only.

A row that is emitted, or follows one that was sent, is claimed in the same transaction; what is
left for later are rows with a time of their own (retries), and those of an earlier process.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

from gateway.domain.chat import Outbound
from gateway.store.platforms import Platforms
from gateway.store.sqlite.outbox import Advance


class Agenda:
    """Chats by the time their head is due, and claimed rows that nobody was handed."""

    def __init__(self, heads: Iterable[tuple[str, float]]) -> None:
        self._due: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []
        self._unclaimed: list[Outbound] = []
        self._sends = Platforms()
        self._elsewhere: dict[str, float] = {}  # off the heap: this process does not send to their platform
        for lane, due_at in heads:
            self.wait(lane, due_at)

    def serve(self, sends: Platforms) -> None:
        """Give only chats of these platforms from now on."""
        self._sends = sends
        set_aside, self._elsewhere = self._elsewhere, {}
        for lane, due_at in set_aside.items():
            self.wait(lane, due_at)

    def wait(self, lane: str, due_at: float) -> None:
        """Look at this chat at `due_at` (seconds since the epoch), and at no other time."""
        self._due[lane] = due_at
        heapq.heappush(self._heap, (due_at, lane))

    def note(self, advances: Iterable[Advance]) -> None:
        """Take up what became of the heads of chats."""
        for advance in advances:
            if advance.due_at is not None:
                self.wait(advance.lane, advance.due_at)

    def take_chats(self, now: float, limit: int) -> list[str]:
        """Chats whose head is due, earliest first; they leave the agenda."""
        taken: list[str] = []
        while len(taken) < limit and (due_at := self._earliest()) is not None and due_at <= now:
            _, lane = heapq.heappop(self._heap)
            del self._due[lane]
            taken.append(lane)
        return taken

    def next_due(self) -> float | None:
        """When something is to be looked at; None: nothing is."""
        return 0.0 if self._unclaimed else self._earliest()

    def hand_back(self, claimed: Iterable[Outbound]) -> None:
        """Claimed rows whose taker is gone."""
        self._unclaimed.extend(claimed)

    def take_unclaimed(self, limit: int) -> list[Outbound]:
        """Claimed rows that wait for somebody to send them."""
        taken, self._unclaimed = self._unclaimed[:limit], self._unclaimed[limit:]
        return taken

    def unclaimed(self) -> Sequence[Outbound]:
        """The same, left where they are."""
        return tuple(self._unclaimed)

    def _earliest(self) -> float | None:
        while self._heap:
            due_at, lane = self._heap[0]
            # Entries that `wait` replaced are still in the heap; drop them when they come up.
            current = self._due.get(lane) == due_at
            if current and self._sends.has_chat_of(lane):
                return due_at
            if current:
                self._elsewhere[lane] = self._due.pop(lane)
            heapq.heappop(self._heap)
        return None


def rows_to_send(advances: Iterable[Advance]) -> tuple[Outbound, ...]:
    """The rows that were claimed."""
    return tuple(advance.claimed for advance in advances if advance.claimed is not None)
