"""`legato run --workers N` keeps its workers running, and ends with them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from gateway.app.workers import Workers
from gateway.runtime.clock import SystemClock
from tests.support.fakes import ManualClock

# Says its pid, waits to be told to end, and says so.
WORKER = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # one that comes before the wait ends it, too
log = open(sys.argv[1], "a", buffering=1)
log.write(f"start {os.getpid()}\\n")
signal.sigwait({signal.SIGTERM})
log.write(f"end {os.getpid()}\\n")
"""


# The same, as a worker that hears of its parent's end; and a parent of two of them.
KEPT = """
import asyncio, os, sys
from gateway.app.workers import when_alone
log = open(sys.argv[1], "a", buffering=1)
async def work():
    ended = asyncio.Event()
    when_alone(sys.stdin.fileno(), ended.set)
    log.write(f"start {os.getpid()}\\n")
    await ended.wait()
    log.write(f"end {os.getpid()}\\n")
asyncio.run(work())
"""
PARENT = """
import asyncio, sys
from gateway.runtime.clock import SystemClock
from gateway.app.workers import Workers
asyncio.run(Workers(command=[sys.executable, "-c", sys.argv[1], sys.argv[2]], size=2, clock=SystemClock()).run())
"""


def said(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


async def lines(log: Path, count: int) -> list[str]:
    async with asyncio.timeout(60):
        while True:
            found = said(log)
            if len(found) >= count:
                return found
            await SystemClock().sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_killed_worker_is_started_again_and_all_end_together(tmp_path: Path, number: int) -> None:
    log = tmp_path / "log"
    clock = ManualClock()
    workers = Workers(command=[sys.executable, "-c", WORKER, str(log)], size=2, clock=clock)
    running = asyncio.create_task(workers.run())
    first = await lines(log, 2)
    victim = int(first[0].split()[1])
    os.kill(victim, signal.SIGKILL)
    await clock.until_pending(1)
    await clock.advance(1)
    again = await lines(log, 3)
    assert again[2].startswith("start")
    os.kill(os.getpid(), number)
    assert await running == 0
    ended = {line.split()[1] for line in (await lines(log, 5)) if line.startswith("end")}
    started = {line.split()[1] for line in again}
    assert ended == started - {str(victim)}


async def test_a_parent_that_is_killed_takes_its_workers_along(tmp_path: Path) -> None:
    log = tmp_path / "log"
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", PARENT, KEPT, str(log))
    started = await lines(log, 2)
    assert all(line.startswith("start") for line in started)
    parent.kill()
    await parent.wait()
    ended = (await lines(log, 4))[2:]
    assert {line.removeprefix("end ") for line in ended} == {line.removeprefix("start ") for line in started}


async def test_workers_that_cannot_run_at_all_are_not_tried_again(tmp_path: Path) -> None:
    workers = Workers(command=[sys.executable, "-c", "import sys; sys.exit(2)"], size=3, clock=ManualClock())
    async with asyncio.timeout(60):
        assert await workers.run() == 2
