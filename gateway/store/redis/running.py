"""The steps of one partition, which go to the server one commit after the other: a step of this process never finds
that another of its own has changed what the first one saw."""

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
_TOGETHER: Final = 32  # steps in one commit: bounds what one that fails makes run again
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
    result: Any = None
    error: Exception | None = None

    def end(self, error: BaseException | None) -> None:
        """Hand out the result, or the error."""
        if error is not None:
            self.failed()
            if not self.future.done():
                self.future.set_exception(error)
            return
        self.done(self.result)
        if self.future.cancelled():
            self.abandoned(self.result)
        else:
            self.future.set_result(self.result)


class Commit(Struct, eq=False):
    """Steps that go to the server together, with what they asked: all of them are done, or none is."""

    works: Sequence[Work]
    asks: Sequence[Ask]
    writes: Writes | None
    news: Sequence[News]


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
    """Runs the steps of a partition. Steps that wait while others are on their way go together: one commit of many
    costs this process and the server far less than one for each."""

    def __init__(self, partition: int, wire: Wire, fleet: Fleet) -> None:
        self.known = Known(partition)
        self._partition = partition
        self._wire = wire
        self._fleet = fleet
        self._waiting: deque[Work] = deque()
        self._singly = 0  # so many of the next steps go one by one
        self._busy = False
        self._idle = asyncio.Event()

    def put(self, work: Work) -> None:
        """Run a step behind those that wait."""
        if work.only_looks:
            self._run([work])
        elif self._busy:
            self._waiting.append(work)
        else:
            self._busy = True
            self._run([work])

    async def idle(self) -> None:
        """Return when no step waits or is on its way."""
        while self._busy:
            self._idle.clear()
            await self._idle.wait()

    def _next(self) -> None:
        """Run steps that wait."""
        waiting = self._waiting
        if not waiting:
            self._busy = False
            self._idle.set()
            return
        most = 1 if self._singly else _TOGETHER
        self._singly -= bool(self._singly)
        self._run([waiting.popleft() for _ in range(min(most, len(waiting)))])

    def _run(self, works: Sequence[Work]) -> None:
        guess = Guess(self.known, self._fleet.above)
        draft = Draft(guess, guess.seen)
        writes: Writes | None = None
        ran = 0
        try:
            for work in works:
                work.result, work.error = work.step(draft, *work.args), None
                ran += 1
            if not work.only_looks:
                writes = Writes(self.known, guess, draft, self._fleet.version())
        except Exception as error:  # perhaps of what is not so; else it is the caller's
            if len(works) > 1:  # the one that failed goes alone, since nothing of what it has put may be stored
                some = ran if 0 < ran < len(works) else 1
                self._waiting.extendleft(reversed(works[some:]))
                self._run(works[:some])
                return
            works[0].error = error
        self._fleet.last = max(self._fleet.last, guess.highest)
        commit = Commit(works, list(guess.asked), writes, () if writes is None else draft.news)
        try:
            job = self._wire.carry(
                self._partition, "commit", self._arguments(guess, commit), writes=bool(writes or commit.news)
            )
        except StoreUnavailable as error:
            self._end(commit, error)
            return
        job.over.append(partial(self._answered, commit))

    def _arguments(self, guess: Guess, commit: Commit) -> list[Argument]:
        writes, text = commit.writes, b""
        if commit.news and (news := [each for each in commit.news if each[0] not in _KEPT_HERE]):
            text = b"%s %s" % (self._fleet.owner.encode(), _packed(news))
        found = checks(guess.asked.items())
        if writes is None or not writes.arguments:
            return [0, len(guess.asked), *found, 0, 0, text]
        return [1, len(guess.asked), *found, writes.lowest, writes.highest, text, *writes.arguments]

    def _answered(self, commit: Commit, job: Job) -> None:
        error = job.future.exception()
        if error is not None:
            self._failed(commit, error)
            return
        status, *rest = job.future.result()
        if status == "done":
            if commit.writes is not None:
                self.known.landed(commit.writes)
                self._fleet.wrote(self._partition, commit.writes)
            self._end(commit, None)
            return
        self.known.last = max(self.known.last, int(rest[0]))
        stale = rest[1]
        for place in range(0, len(stale), 2):
            self.known.learn(commit.asks[stale[place] - 1], stale[place + 1])
        first = commit.works[0]
        first.runs += 1
        if first.runs == _MOST_RUNS:
            self._end(commit, StoreError("The store changes too fast for this step."))
        else:
            self._run(commit.works)

    def _failed(self, commit: Commit, error: BaseException) -> None:
        """None of the steps was done. If it was not for the server's absence, perhaps one alone is to blame."""
        works = commit.works
        if len(works) == 1 or isinstance(error, StoreUnavailable):
            self._end(commit, error)
            return
        self._waiting.extendleft(reversed(works))
        self._singly = len(works)
        self._next()

    def _end(self, commit: Commit, error: BaseException | None) -> None:
        if not commit.works[0].only_looks:
            self._next()
        for work in commit.works:
            work.end(error or work.error)
        if error is None:
            for news in commit.news:
                self._fleet.hear(news)
