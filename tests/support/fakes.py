"""Time and ids that a test owns: `ManualClock` and `SequentialIds`.

A test moves time itself: `await clock.advance(5)` runs, in order, everything that became due within
those five seconds, and returns when the event loop has nothing left to do. No test sleeps.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Self

from gateway.runtime.clock import Deadline

_MOST_ROUNDS = 100_000  # a task that spins forever must fail the test rather than hang it


class _Alarm:
    """Something to do at a moment of virtual monotonic time."""

    def __init__(self, at: float, order: int, strike: Callable[[], None]) -> None:
        self.at = at
        self.order = order
        self.strike = strike
        self.off = False

    def __lt__(self, other: _Alarm) -> bool:
        return (self.at, self.order) < (other.at, other.order)


class _ManualDeadline:
    """asyncio.timeout driven by virtual time."""

    def __init__(self, clock: ManualClock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._timeout = asyncio.timeout(None)
        self._alarm: _Alarm | None = None

    def extend(self, seconds: float) -> None:
        """Strike `seconds` from now instead."""
        self._disarm()
        self._timeout.reschedule(None)
        self._arm(seconds)

    def _arm(self, seconds: float) -> None:
        if seconds <= 0:
            self._strike()
        else:
            self._alarm = self._clock._set(seconds, self._strike)

    def _disarm(self) -> None:
        if self._alarm is not None:
            self._alarm.off = True

    def _strike(self) -> None:
        self._timeout.reschedule(asyncio.get_running_loop().time())

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        self._arm(self._seconds)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._disarm()
        await self._timeout.__aexit__(kind, error, trace)


class ManualClock:
    """A `gateway.runtime.clock.Clock` whose time passes only when the test says so.

    `now` is where wall time starts (seconds since the epoch); monotonic time starts at 0.
    """

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._start = now
        self._elapsed = 0.0
        self._alarms: list[_Alarm] = []
        self._order = itertools.count()
        self._sleepers_changed: asyncio.Event | None = None

    def now(self) -> float:
        """Virtual wall time, seconds since the epoch."""
        return self._start + self._elapsed

    def monotonic(self) -> float:
        """Virtual seconds since the clock was made."""
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        """Return once `seconds` of virtual time have passed."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not woken.done():
                woken.set_result(None)

        alarm = self._set(seconds, wake)
        try:
            await woken
        finally:
            alarm.off = True

    def limit(self, seconds: float) -> AbstractAsyncContextManager[Deadline]:
        """Cancel the enclosed block after `seconds` of virtual time; it raises TimeoutError."""
        return _ManualDeadline(self, seconds)

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward or back, as a machine's may be; nothing becomes due."""
        self._start += seconds

    @property
    def pending(self) -> tuple[float, ...]:
        """In how many seconds each sleeper and limit is due, soonest first."""
        return tuple(alarm.at - self._elapsed for alarm in sorted(self._alarms) if not alarm.off)

    async def until_pending(self, count: int = 1) -> None:
        """Wait until at least `count` sleepers and limits are waiting for this clock.

        For code whose way to its sleep leads through a thread or a socket, which `settle` cannot see.
        """
        while len(self.pending) < count:
            await self._one_more()

    async def until_due_in(self, seconds: float) -> None:
        """Wait until a sleeper or a limit is due in just so many seconds."""
        while seconds not in self.pending:
            await self._one_more()

    async def _one_more(self) -> None:
        self._sleepers_changed = asyncio.Event()
        await self._sleepers_changed.wait()

    async def advance(self, seconds: float) -> None:
        """Let `seconds` pass: wake what becomes due, in order, each with its consequences.

        What a woken task starts to wait for counts too, if it falls within the same `seconds`.
        """
        target = self._elapsed + seconds
        await self.settle()
        while (alarm := self._due(target)) is not None:
            self._elapsed = max(self._elapsed, alarm.at)
            alarm.strike()
            await self.settle()
        self._elapsed = target
        await self.settle()

    async def settle(self) -> None:
        """Return when no task can go on without time, a thread or a socket."""
        loop = asyncio.get_running_loop()
        for _ in range(_MOST_ROUNDS):
            await asyncio.sleep(0)
            if not loop._ready:  # type: ignore[attr-defined]  # exact, where a count of rounds would guess
                return
        raise AssertionError("the event loop never comes to rest: a task spins without waiting")

    def _set(self, seconds: float, strike: Callable[[], None]) -> _Alarm:
        alarm = _Alarm(self._elapsed + seconds, next(self._order), strike)
        heapq.heappush(self._alarms, alarm)
        if self._sleepers_changed is not None:
            self._sleepers_changed.set()
        return alarm

    def _due(self, target: float) -> _Alarm | None:
        while self._alarms and (self._alarms[0].off or self._alarms[0].at <= target):
            alarm = heapq.heappop(self._alarms)
            if not alarm.off:
                return alarm
        return None


class SequentialIds:
    """A `gateway.runtime.clock.Ids` that counts: `s_000001`, `o_000002`, … Ids sort by creation."""

    def __init__(self) -> None:
        self._count = itertools.count(1)

    def new(self, kind: str) -> str:
        """`kind`, then the next number of this instance."""
        return f"{kind}_{next(self._count):06d}"
