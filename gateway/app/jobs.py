"""Work that is repeated for as long as the gateway serves. Its library takes a tenth of a start, so where a person
waits for the first answer this module is imported when the first job is due."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC

from apscheduler.schedulers.asyncio import AsyncIOScheduler

from gateway.runtime.tasks import Background

Work = Callable[[], Awaitable[object]]


@contextmanager
def repeated(jobs: Mapping[str, tuple[Work, float]], background: Background) -> Iterator[None]:
    """While in this block, do each job every so many seconds, in the background: the scheduler would call a stop in the
    middle of one an error."""
    # The machine's own time zone may be unreadable. A late or overlapping run of a job is not doubled.
    defaults = {"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
    scheduler = AsyncIOScheduler(timezone=UTC, job_defaults=defaults)
    for name, (work, seconds) in jobs.items():
        scheduler.add_job(_begin, "interval", (name, work, background), seconds=seconds)
    scheduler.start()
    try:
        yield
    finally:
        scheduler.shutdown(wait=False)


async def _begin(name: str, work: Work, background: Background) -> None:
    background.start_once(_job(work), name=name)


async def _job(work: Work) -> None:
    await work()
