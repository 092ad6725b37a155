"""Functions that read foreign text, in a process of their own."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import partial

import pytest

from adapters.telegram.formatting import render, split
from gateway.app.plugins import platforms
from gateway.runtime.aside import MOST_MEMORY, WorkerProcess
from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import TookTooLong
from gateway.runtime.plugins import imported
from tests.support.fakes import ManualClock

ENDLESS = re.compile(r"(?:a+)+b")


def process_of(_: str) -> int:
    """Return the number of the process that runs this."""
    return os.getpid()


def never_ends(text: str) -> object:
    """Stand for a pattern that never ends on a text."""
    return ENDLESS.fullmatch(text)


def breaks(text: str) -> object:
    """Stand for a bug that breaks on a text."""
    raise LookupError(text)


@pytest.fixture(params=[60.0])
async def aside(request: pytest.FixtureRequest) -> AsyncIterator[WorkerProcess]:
    """Patient, as a busy machine needs; a test of the limit asks for a shorter one."""
    async with aclosing(WorkerProcess(clock=SystemClock(), seconds=request.param)) as made:
        yield made


async def test_a_reply_is_laid_out_in_another_process(aside: WorkerProcess) -> None:
    text = "a **bold** word. " * 500
    assert await aside(split, text) == split(text)
    assert await aside(render, "**bold**") == render("**bold**")
    assert await aside(process_of, "") not in (os.getpid(), os.getppid())


STAGES = {name: imported(each.rehearse) for name, each in platforms().items() if each.rehearse}
LONG = "A **bold** word, a [link](https://example.com/a), `code` and an emoji 🙂.\n\n" * 150


@pytest.mark.parametrize("name", sorted(STAGES))
async def test_each_platform_lays_long_answers_out_in_it(name: str, aside: WorkerProcess) -> None:
    stage = STAGES[name]
    parts = await aside(stage.limits.split_reply, LONG)
    assert parts == stage.limits.split_reply(LONG)
    assert await aside(partial(stage.bubble, kind="reply"), parts[0]) == stage.bubble(parts[0], "reply")
    if stage.limits.fits_caption is not None:
        assert await aside(stage.limits.fits_caption, LONG) is stage.limits.fits_caption(LONG)


async def test_what_another_process_cannot_be_given_counts_as_a_failure(aside: WorkerProcess) -> None:
    with pytest.raises(TookTooLong):
        await aside(lambda text: text, "a")


@pytest.mark.parametrize("aside", [1.0], indirect=True)
async def test_what_never_ends_is_ended_and_the_next_call_is_carried_out(aside: WorkerProcess) -> None:
    first = await aside(process_of, "")
    with pytest.raises(TookTooLong):
        await aside(never_ends, "a" * 60)
    assert await aside(process_of, "") != first
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)


async def test_what_breaks_costs_its_own_call(aside: WorkerProcess) -> None:
    with pytest.raises(TookTooLong):
        await aside(breaks, "x")
    assert await aside(render, "x") == render("x")


async def test_who_waits_for_too_long_is_refused() -> None:
    clock = ManualClock()
    async with aclosing(WorkerProcess(clock=clock, seconds=5.0)) as aside:
        await aside._turn.acquire()
        with pytest.raises(TookTooLong):
            await asyncio.gather(aside(render, "x"), clock.advance(11.0))
        aside._turn.release()


def hoards(size: int) -> int:
    """Stand for a small file that unpacks to a large one."""
    return len(bytes(size))


async def test_what_takes_too_much_memory_is_ended(aside: WorkerProcess) -> None:
    with pytest.raises(TookTooLong):
        await aside(hoards, MOST_MEMORY)
    assert await aside(hoards, 1_000) == 1_000


async def test_a_short_text_needs_no_other_process() -> None:
    async with aclosing(WorkerProcess(clock=SystemClock(), seconds=60.0, at_once=10)) as aside:
        assert await aside(process_of, "short") == os.getpid()
        assert await aside(process_of, "rather long") != os.getpid()
        with pytest.raises(TookTooLong):
            await aside(breaks, "short")
