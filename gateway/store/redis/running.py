"""The steps of one partition, which go to the server one commit after the other: a step of this process never finds
that another of its own has changed what the first one saw."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
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
    """Steps that go to the server together, with what they asked: all of them are done, or none is. They are taken from
    `waiting` at the last moment."""

    waiting: deque[Work]
    works: Sequence[Work] = ()
    asks: Sequence[Ask] = ()
    writes: Writes | None = None
    news: Sequence[News] = ()


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
    """Runs the steps of a partition. Those that wait when something can be sent go together: one commit of many costs
    this process and the server far less than one for each."""

    def __init__(self, partition: int, wire: Wire, fleet: Fleet) -> None:
        self.known = Known(partition)
        self._partition = partition
        self._wire = wire
        self._fleet = fleet
        self._waiting: deque[Work] = deque()
        self._looks: deque[Work] = deque()
        self._busy = False  # with those that wait, of which there is one commit at a time
        self._idle = asyncio.Event()

    def put(self, work: Work) -> None:
        """Run a step behind those that wait."""
        if work.only_looks:
            self._looks.append(work)
            if len(self._looks) == 1:
                self._begin(self._looks)
            return
        self._waiting.append(work)
        if not self._busy:
            self._busy = True
            self._begin(self._waiting)

    async def idle(self) -> None:
        """Return when no step waits or is on its way."""
        while self._busy:
            self._idle.clear()
            await self._idle.wait()

    def _begin(self, waiting: deque[Work]) -> None:
        """Carry what waits, and what comes to wait before that can be sent."""
        commit = Commit(waiting)
        try:
            job = self._wire.carry(
                self._partition, "commit", partial(self._run, commit), writes=waiting is self._waiting
            )
        except StoreUnavailable as error:
            self._fail(commit, error)
        else:
            job.over.append(partial(self._answered, commit))

    def _run(self, commit: Commit, job: Job) -> None:
        """Run what waits, and give the job what the server needs."""
        waiting = commit.waiting
        looks = waiting is self._looks
        some = min(_TOGETHER, len(waiting))
        while True:
            works = list(islice(waiting, some))
            guess = Guess(self.known, self._fleet.above)
            draft = Draft(guess, guess.seen)
            ran = 0
            try:
                for work in works:
                    work.result, work.error = work.step(draft, *work.args), None
                    ran += 1
                commit.writes = None if looks else Writes(self.known, guess, draft, self._fleet.version())
                commit.news = () if looks else draft.news
                job.arguments = self._arguments(guess, commit)
            except Exception as error:  # perhaps of what is not so; else it is the caller's
                if some > 1:  # the one that failed goes alone, since nothing of what it has put may be stored
                    some = ran if 0 < ran < some else 1
                    continue
                works[0].error, commit.writes, commit.news = error, None, ()
                job.arguments = self._arguments(guess, commit)
            break
        for _ in works:
            waiting.popleft()
        if waiting and looks:
            self._begin(waiting)
        self._fleet.last = max(self._fleet.last, guess.highest)
        commit.works, commit.asks = works, list(guess.asked)
        job.writes = bool(commit.writes or commit.news)

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
            self._fail(commit, error)
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
        first, waiting = commit.works[0], commit.waiting
        first.runs += 1
        if first.runs == _MOST_RUNS:
            self._end(commit, StoreError("The store changes too fast for this step."))
            return
        others = len(waiting)
        waiting.extendleft(reversed(commit.works))
        if not others or waiting is self._waiting:
            self._begin(waiting)

    def _fail(self, commit: Commit, error: BaseException) -> None:
        """Nothing was done. What was not even taken yet has no better prospects."""
        if not commit.works:
            commit.works = list(commit.waiting)
            commit.waiting.clear()
        self._end(commit, error)

    def _end(self, commit: Commit, error: BaseException | None) -> None:
        waiting = self._waiting
        if commit.waiting is waiting and waiting:
            self._begin(waiting)
        elif commit.waiting is waiting:
            self._busy = False
            self._idle.set()
        for work in commit.works:
            work.end(error or work.error)
        if error is None:
            for news in commit.news:
                self._fleet.hear(news)
