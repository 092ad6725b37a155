"""One run in a folder of its own: what took place, what was wrong, and the figures of many."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.support.redis_server import RedisServer

LIMIT: Final = 400.0  # real seconds for a run; most need ten


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One run: the points at which processes were killed, the other faults that took place, what was counted, what a
    fault excused, what was wrong, and how long it took in seconds. `log`: how a run went in which something was
    wrong."""

    schedule: Any
    killed_at: tuple[str, ...] = ()
    faults: Counter[str]
    counts: Counter[str]
    excused: Counter[str] = field(default_factory=Counter)
    problems: tuple[str, ...]
    seconds: float
    log: tuple[str, ...] = ()

    @property
    def seed(self) -> int:
        """Return the number that repeats the run."""
        return int(self.schedule.seed)

    def described(self) -> list[str]:
        """Return the schedule in words."""
        found: list[str] = self.schedule.described()
        return found


@dataclass(slots=True, kw_only=True)
class Trial:
    """A run on its way; the fields are those of its result. `told` says how it went. `server`: the address of a Redis
    server that holds nothing, for processes that live side by side; "": there is none."""

    schedule: Any
    folder: Path
    server: str = ""
    killed_at: tuple[str, ...] = ()
    faults: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    excused: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    told: Callable[[], Iterable[str]] = tuple
    began: float = field(default_factory=time.monotonic)
    log: tuple[str, ...] = ()

    def result(self) -> Result:
        """Return the result, once the run is over."""
        return Result(
            schedule=self.schedule,
            killed_at=self.killed_at,
            faults=self.faults,
            counts=self.counts,
            excused=self.excused,
            problems=tuple(self.problems),
            seconds=time.monotonic() - self.began,
            log=self.log,
        )


@asynccontextmanager
async def trial(schedule: Any, name: str, limit: float = LIMIT) -> AsyncIterator[Trial]:
    """A run in a folder that is removed. A TimeoutError is a problem of the run, and so is a run that lasts longer than
    `limit` real seconds: the log says where it waited."""
    folder = Path(tempfile.mkdtemp(prefix=f"legato-{name}-{schedule.seed}-"))
    run = Trial(schedule=schedule, folder=folder)
    waited: Sequence[str] = ()
    try:
        async with asyncio.timeout(limit) as deadline:
            yield run
    except TimeoutError as error:
        what = (
            f"it was not over after {limit:.0f} s" if deadline.expired() else "a process neither ended nor came to rest"
        )
        run.problems.append(what)
        waited = "".join(traceback.format_exception(error)).splitlines()
    except BaseException as error:
        error.add_note(f"in the run of seed {schedule.seed}, whose files are in {folder}")
        raise
    if run.problems:
        run.log = (*run.told(), *waited, *last_words(folder, 150))
    shutil.rmtree(folder)


@asynccontextmanager
async def on_store(
    store: str, perform: Callable[[RedisServer | None, Any], Awaitable[Result]], name: str
) -> AsyncIterator[Callable[[Any], Awaitable[Result]]]:
    """Perform runs on "sqlite", where each has a file of its own, or on a Redis server that all of them share."""
    if store == "sqlite":
        yield partial(perform, None)
        return
    folder = Path(tempfile.mkdtemp(prefix=f"legato-{name}-redis-"))
    server = RedisServer(folder)
    try:
        server.start()
        yield partial(perform, server)
    finally:
        server.kill()
        shutil.rmtree(folder)


def last_words(folder: Path, most: int) -> Sequence[str]:
    """The end of a run's log."""
    path = folder / "log"
    return path.read_text().splitlines()[-most:] if path.exists() else []


def summed(counts: Iterable[Counter[str]]) -> Counter[str]:
    """The counts of many runs together."""
    total = Counter[str]()
    for each in counts:
        total += each
    return total


def took(results: Sequence[Result]) -> str:
    """Return how long the runs took, in words."""
    seconds = sorted(result.seconds for result in results)
    return f"a run took {seconds[len(seconds) // 2]:.1f} s (median), {seconds[-1]:.1f} s at most"


def failed(results: Sequence[Result]) -> int:
    """Return how many runs have problems."""
    return sum(bool(result.problems) for result in results)
