"""Which chats' outbox rows are to be looked at, and when. Memory only, event loop only.

A row that is emitted, or follows one that was sent, is claimed in the same transaction; what is
left for later are rows with a time of their own (retries), and those of an earlier process.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gateway.domain.chat import Outbound
from gateway.store.shared.platforms import Platforms
from gateway.store.shared.timetable import Timetable
from gateway.store.sqlite.outbox import Advance


class Agenda:
    """Chats by the time their head is due, and claimed rows that nobody was handed."""

    def __init__(self, heads: Iterable[tuple[str, float]]) -> None:
        self._times = Timetable[str]()
        self._unclaimed: list[Outbound] = []
        self._sends = Platforms()
        self._elsewhere: dict[str, float] = {}  # this process does not send to their platform
        for lane, due_at in heads:
            self.wait(lane, due_at)

    def serve(self, sends: Platforms) -> None:
        """Give only chats of these platforms from now on."""
        self._sends = sends
        waiting, self._elsewhere = {**self._elsewhere, **self._times.clear()}, {}
        for lane, due_at in waiting.items():
            self.wait(lane, due_at)

    def wait(self, lane: str, due_at: float) -> None:
        """Look at this chat at `due_at` (seconds since the epoch), and at no other time."""
        if self._sends.has_chat_of(lane):
            self._times.wait(lane, due_at)
        else:
            self._elsewhere[lane] = due_at

    def note(self, advances: Iterable[Advance]) -> None:
        """Take up what became of the heads of chats."""
        for advance in advances:
            if advance.due_at is not None:
                self.wait(advance.lane, advance.due_at)

    def take_chats(self, now: float, limit: int) -> list[str]:
        """Chats whose head is due, earliest first; they leave the agenda."""
        return self._times.take(now, limit)

    def next_due(self) -> float | None:
        """When something is to be looked at; None: nothing is."""
        return 0.0 if self._unclaimed else self._times.next_due()

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


def rows_to_send(advances: Iterable[Advance]) -> tuple[Outbound, ...]:
    """The rows that were claimed."""
    return tuple(advance.claimed for advance in advances if advance.claimed is not None)
