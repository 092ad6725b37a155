"""The steps of one partition, which go to the server one after the other: a step of this process never finds that
another of its own has changed what the first one saw."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from msgspec import Struct
from msgspec.json import Encoder

from gateway.runtime.errors import StoreError, StoreUnavailable
from gateway.store.backend import News, nothing
from gateway.store.draft import Draft
from gateway.store.redis.connection import Argument, Job
from gateway.store.redis.partitions import PARTITIONS
from gateway.store.redis.records import Ask, Guess, Known, Writes, checks
from gateway.store.redis.wire import Wire

_TICKS: Final = 100_000  # a second
_MOST_RUNS: Final = 1_000  # of a step that others outpace
_KEPT_HERE: Final = ("forgotten", "due")  # news of which no other process makes anything

_packed: Callable[[Any], bytes] = Encoder().encode


class Work(Struct, eq=False):
    """A step that is to run, and who is told of its end. `only_looks`: it waits for no other, and puts nothing."""

    step: Callable[..., Any]
    args: Sequence[Any]
    future: asyncio.Future[Any]
    done: Callable[[Any], None] = nothing
    failed: Callable[[], None] = nothing
    abandoned: Callable[[Any], None] = nothing
    only_looks: bool = False
    runs: int = 0
    asks: list[Ask] = []
    writes: Writes | None = None
    news: list[News] = []
    result: Any = None
    error: Exception | None = None


class Fleet(Struct):
    """What all partitions share: the process's name, its time, what it is to hear, and the number of its steps."""

    owner: str
    now: Callable[[], float]
    hear: Callable[[News], None]
    wrote: Callable[[int, Writes], None]
    commits: int = 0
    last: int = 0  # the highest number that was taken or tried

    def above(self) -> int:
        """A number below all that may be taken now. Numbers follow the time, so that those of several partitions, and
        of several processes, stand in its order."""
        return max(self.last, int(self.now() * _TICKS) * PARTITIONS)

    def version(self) -> str:
        """A version that no other commit has, of no process."""
        self.commits += 1
        return f"{self.owner[:6]}{self.commits:x}"


class Runner:
    """Runs the steps of a partition."""

    def __init__(self, partition: int, wire: Wire, fleet: Fleet) -> None:
        self.known = Known(partition)
        self._partition = partition
        self._wire = wire
        self._fleet = fleet
        self._waiting: deque[Work] = deque()
        self._busy = False
        self._idle = asyncio.Event()

    def put(self, work: Work) -> None:
        """Run a step behind those that wait."""
        if work.only_looks:
            self._run(work)
        elif self._busy:
            self._waiting.append(work)
        else:
            self._busy = True
            self._run(work)

    async def idle(self) -> None:
        """Return when no step waits or is on its way."""
        while self._busy:
            self._idle.clear()
            await self._idle.wait()

    def _run(self, work: Work) -> None:
        known = self.known
        guess = Guess(known, self._fleet.above)
        draft = Draft(guess, guess.seen)
        writes = work.error = None
        try:
            work.result = work.step(draft, *work.args)
            if not work.only_looks:
                writes = Writes(known, guess, draft, self._fleet.version())
        except Exception as error:  # perhaps of what is not so; else it is the caller's
            work.error = error
        self._fleet.last = max(self._fleet.last, guess.highest)
        work.writes = writes
        work.news = [] if writes is None else draft.news
        work.asks = list(guess.asked)
        try:
            job = self._wire.carry(
                self._partition, "commit", self._arguments(guess, writes, work.news), writes=bool(writes or work.news)
            )
        except StoreUnavailable as error:
            self._end(work, error)
            return
        job.over.append(partial(self._answered, work))

    def _arguments(self, guess: Guess, writes: Writes | None, told: Sequence[News]) -> list[Argument]:
        found, text = checks(guess.asked.items()), b""
        if told and (news := [each for each in told if each[0] not in _KEPT_HERE]):
            text = b"%s %s" % (self._fleet.owner.encode(), _packed(news))
        if writes is None or not writes.arguments:
            return [0, len(guess.asked), *found, 0, 0, text]
        return [1, len(guess.asked), *found, writes.lowest, writes.highest, text, *writes.arguments]

    def _answered(self, work: Work, job: Job) -> None:
        error = job.future.exception()
        if error is not None:
            self._end(work, error)
            return
        status, *rest = job.future.result()
        if status == "done":
            if work.writes is not None:
                self.known.landed(work.writes)
                self._fleet.wrote(self._partition, work.writes)
            self._end(work, work.error)
            return
        self.known.last = max(self.known.last, int(rest[0]))
        stale = rest[1]
        for place in range(0, len(stale), 2):
            self.known.learn(work.asks[stale[place] - 1], stale[place + 1])
        work.runs += 1
        if work.runs == _MOST_RUNS:
            self._end(work, StoreError("The store changes too fast for this step."))
        else:
            self._run(work)

    def _end(self, work: Work, error: BaseException | None) -> None:
        if not work.only_looks and self._waiting:
            self._run(self._waiting.popleft())
        elif not work.only_looks:
            self._busy = False
            self._idle.set()
        if error is not None:
            work.failed()
            if not work.future.done():
                work.future.set_exception(error)
            return
        work.done(work.result)
        if work.future.cancelled():
            work.abandoned(work.result)
        else:
            work.future.set_result(work.result)
        for each in work.news:
            self._fleet.hear(each)
