"""What must reach a running turn: a registry of the turns that run in this process.

A `/stop` or an interrupting message leaves a durable signal in the store; the store tells every
process's listener; the list of the process that runs the turn ends it. `/status` reads this list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from gateway.domain.chat import SessionKey
from gateway.store.records import SignalKind

Phase = Literal[
    "starting", "fetching files", "compacting", "thinking", "running tools", "waiting for your yes or no", "finishing"
]


@dataclass(slots=True, kw_only=True)
class RunningTurn:
    """A turn as `/status` sees it. `end` is called at most once, with the reason. New messages do not
    end one that is not `interruptible`; a `/stop` does."""

    key: SessionKey
    started_at: float
    end: Callable[[SignalKind], None]
    phase: Phase = "starting"
    step: int = 0
    tools: tuple[str, ...] = ()
    ended_by: SignalKind | None = None
    interruptible: bool = True


@dataclass(slots=True)
class RunningTurns:
    """The running turns of this process, by key."""

    _running: dict[SessionKey, RunningTurn] = field(default_factory=dict)

    @contextmanager
    def register(self, turn: RunningTurn) -> Iterator[RunningTurn]:
        """List `turn` while the block runs."""
        self._running[turn.key] = turn
        try:
            yield turn
        finally:
            if self._running.get(turn.key) is turn:
                del self._running[turn.key]

    def of(self, key: SessionKey) -> RunningTurn | None:
        """The turn that runs for this key, if one does."""
        return self._running.get(key)

    def count(self) -> int:
        """How many turns run."""
        return len(self._running)

    def waits(self, key: SessionKey) -> bool:
        """Whether the key's turn waits for a person."""
        turn = self._running.get(key)
        return turn is not None and turn.phase == "waiting for your yes or no"

    def waiting(self) -> int:
        """How many turns do."""
        return sum(map(self.waits, self._running))

    def deliver(self, key: SessionKey, kind: SignalKind) -> None:
        """End the key's running turn, if it runs here; a second signal changes nothing."""
        turn = self._running.get(key)
        if turn is not None and turn.ended_by is None and (kind == "stop" or turn.interruptible):
            turn.ended_by = kind
            turn.end(kind)
