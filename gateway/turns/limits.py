"""The time of a turn: its deadline, how long it may show no sign of life, and signals that end it early."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from types import TracebackType

from msgspec import Struct

from gateway.agent.running import RunningTurn, RunningTurns
from gateway.domain.turn import STOPPED
from gateway.domain.wording import lasting
from gateway.runtime.clock import Clock, Deadline
from gateway.store.records import ItemOutcome

INTERRUPTED = "I stopped what I was doing to turn to your new message."
GAVE_UP = "I gave up on this answer because {why} for {time}. Ask again, perhaps in smaller parts."


class TurnTime(Struct, kw_only=True):
    """A block that is a turn. It raises TimeoutError at the deadline, after too long without a sign of life, or when a
    signal ends it; `why_ended` says which."""

    turn: RunningTurn
    running_turns: RunningTurns
    clock: Clock
    deadline: float  # seconds
    inactivity: float  # seconds
    stopped_at: float = 0.0  # seconds since the epoch: when a signal ended the turn
    _block: AbstractAsyncContextManager[Deadline] | None = None
    _limit: Deadline | None = None  # the deadline, or before it the end of patience

    async def __aenter__(self) -> None:
        self._block = self.clock.limit(min(self.deadline, self.inactivity))
        self._limit = await self._block.__aenter__()
        self.turn.end = lambda _: self._ended()
        self.running_turns.enter(self.turn)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._block is not None, "it was entered"
        self.over()
        self.running_turns.leave(self.turn)
        await self._block.__aexit__(kind, error, trace)

    def over(self) -> None:
        """The turn has ended, so its limits no longer move."""
        self._limit = None
        self.turn.end = lambda _: None

    def _ended(self) -> None:
        self.stopped_at = self.clock.now()
        if self._limit is not None:
            self._limit.extend(0)
            self._limit = None  # no sign of life puts it off

    def alive(self) -> None:
        """Something happened: start counting inactivity again."""
        self.turn.alive_at = now = self.clock.monotonic()
        if self._limit is not None:
            self._limit.extend(min(self.inactivity, self.turn.started_at + self.deadline - now))

    def patient(self) -> None:
        """The turn waits for a person, so it need not show a sign of life before the deadline."""
        if self._limit is not None:
            self._limit.extend(self.turn.started_at + self.deadline - self.clock.monotonic())

    def why_ended(self) -> tuple[ItemOutcome, str]:
        """The outcome of a turn that its limits ended, and a sentence about it."""
        if self.turn.ended_by is not None:
            return "stopped", STOPPED if self.turn.ended_by == "stop" else INTERRUPTED
        if self.clock.monotonic() - self.turn.alive_at >= self.inactivity:
            return "failed", GAVE_UP.format(why="nothing happened", time=lasting(self.inactivity))
        return "failed", GAVE_UP.format(why="it was not finished", time=lasting(self.deadline))
