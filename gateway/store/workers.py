"""The workers of this process that wait for a lane, and lanes that it has claimed but not handed out. Event loop
only."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from math import inf

from gateway.runtime.clock import Clock
from gateway.runtime.structs import replace
from gateway.store.steps.lanes import Claimed


class LaneWorkers:
    """Hands out claimed lanes, and says when it is worth looking for more."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._claimed: deque[Claimed] = deque()
        self._waiting: deque[asyncio.Future[Claimed | None]] = deque()
        self._look_at = -inf  # by the monotonic clock: then there may be a lane to claim

    def offer(self, claimed: Claimed) -> None:
        """A lane is claimed for whoever comes first."""
        waiting = self._first()
        if waiting is None:
            self._claimed.append(replace(claimed, begins=None))  # by the time somebody comes it may be another
        else:
            waiting.set_result(claimed)

    def look(self) -> None:
        """There may be a lane to claim now."""
        self._look_at = -inf
        waiting = self._first()
        if waiting is not None:
            waiting.set_result(None)

    def looks(self) -> None:
        """A worker starts looking for a lane: what is told from now on is new."""
        self._look_at = inf

    def found_none(self, again_in: float | None, asked_at: float) -> None:
        """There was no lane to claim at that moment (monotonic); maybe there is one so many seconds after it. A worker
        that waits hears of it: whoever asked may be gone."""
        if again_in is not None:
            self._look_at = min(self._look_at, asked_at + again_in)
            waiting = self._first()
            if waiting is not None:
                waiting.set_result(None)

    @property
    def may_claim(self) -> bool:
        """Whether it is worth looking for a lane."""
        return self._look_at <= self._clock.monotonic()

    def take(self) -> Claimed | None:
        """A lane that was claimed for whoever comes first."""
        return self._claimed.popleft() if self._claimed else None

    @property
    def claimed(self) -> list[Claimed]:
        """The lanes that were claimed and not handed out."""
        return list(self._claimed)

    def close(self) -> list[Claimed]:
        """The lanes that were not handed out."""
        left, self._claimed = list(self._claimed), deque()
        return left

    async def wait(self) -> Claimed | None:
        """Wait for a claimed lane, or (None) until there may be one to claim."""
        future: asyncio.Future[Claimed | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            if self._look_at == inf:
                return await future
            with suppress(TimeoutError):
                async with self._clock.limit(max(0.0, self._look_at - self._clock.monotonic())):
                    await asyncio.shield(future)
            return future.result() if future.done() else None
        except asyncio.CancelledError:
            self._pass_on(future)
            raise
        finally:
            future.cancel()

    def _pass_on(self, future: asyncio.Future[Claimed | None]) -> None:
        """The next worker gets what was given to one that is gone."""
        if future.done() and not future.cancelled():
            claimed = future.result()
            if claimed is None:
                self.look()
            else:
                self.offer(claimed)

    def _first(self) -> asyncio.Future[Claimed | None] | None:
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                return future
        return None
