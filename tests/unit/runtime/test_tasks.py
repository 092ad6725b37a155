"""Work that must not be broken off, and jobs that are ended before they began."""

from __future__ import annotations

import asyncio
import gc

import pytest
import structlog
from structlog.contextvars import bind_contextvars, merge_contextvars

from gateway.runtime.errors import StoreUnavailable
from gateway.runtime.tasks import Background, Crew, Later, Renewed, unbroken
from tests.support.fakes import ManualClock


async def test_a_second_cancellation_does_not_leave_the_work_running_behind_its_caller() -> None:
    """A deadline strikes, then a /stop: the caller goes on to write the turn's end, and must know what
    the write before it did."""
    go_on = asyncio.Event()
    done: list[str] = []

    async def work() -> None:
        await go_on.wait()
        done.append("written")

    async def caller() -> None:
        try:
            await unbroken(work())
        finally:
            done.append("caller went on")

    task = asyncio.create_task(caller())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    for _ in range(5):
        await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    for _ in range(5):
        await asyncio.sleep(0)
    assert done == ["written", "caller went on"]


async def test_work_that_fails_after_the_cancellation_leaves_no_unread_exception() -> None:
    loop = asyncio.get_running_loop()
    complaints: list[object] = []
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    go_on = asyncio.Event()

    async def work() -> None:
        await go_on.wait()
        raise ValueError("too late")

    task = asyncio.create_task(unbroken(work()))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    del task
    gc.collect()
    await asyncio.sleep(0)
    assert complaints == []


async def test_a_job_that_is_cancelled_before_it_began_is_closed() -> None:
    """A SIGTERM right at the start; Python warns of a coroutine that nobody ever awaited."""
    background = Background()

    async def job() -> None:
        await asyncio.sleep(1)

    background.start(job(), name="early")
    await background.aclose()
    gc.collect()


async def test_a_store_that_is_away_is_no_bug_of_the_job() -> None:
    background = Background()

    async def job(error: Exception) -> None:
        bind_contextvars(turn=str(error))  # for every line of this job, and only for these
        raise error

    with structlog.testing.capture_logs([merge_contextvars]) as logs:
        cut = background.start(job(StoreUnavailable("away")), name="cut")
        broken = background.start(job(ValueError("a bug")), name="broken")
        await background.idle()
    told = [(each["event"], each["job"], each["turn"]) for each in logs]
    assert told == [("job_cut_short", "cut", "away"), ("job_failed", "broken", "a bug")]
    assert logs[1]["exc_info"] is broken.exception()  # with its traceback
    assert cut.done()


async def test_what_is_no_longer_shown_is_not_cancelled_in_the_midst_of_a_call() -> None:
    clock, calls, answered = ManualClock(), 0, asyncio.Event()
    ended: list[str] = []
    renewed = Renewed(clock, 4.0)

    async def show() -> None:
        nonlocal calls
        calls += 1
        try:
            await answered.wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        ended.append("answered")

    renewed.begin("chat", show)
    await asyncio.sleep(0)
    renewed.end("chat")
    renewed.begin("chat", show)  # the next message comes at once
    await asyncio.sleep(0)
    renewed.end("chat")
    answered.set()
    await renewed.aclose()
    assert (calls, ended) == (2, ["answered", "answered"])


async def test_it_is_shown_again_until_it_is_ended() -> None:
    clock, calls = ManualClock(), 0
    renewed = Renewed(clock, 4.0)

    async def show() -> None:
        nonlocal calls
        calls += 1

    renewed.begin("chat", show)
    for _ in range(3):
        await asyncio.sleep(0)
        await clock.advance(4.0)
    renewed.end("chat")
    before = calls
    await clock.advance(40.0)
    await renewed.aclose()
    assert (before, calls) == (4, 4)


async def test_functions_are_called_later_unless_they_are_taken_back() -> None:
    background, clock, called = Background(), ManualClock(), list[str]()
    later = Later(background, clock, 20.0)
    for name in ("first", "second", "third"):
        later.call(name, lambda name=name: called.append(name))
        await clock.advance(5.0)
    later.take_back("second")
    later.call("first", lambda: called.append("first again"))
    await clock.advance(15.0)
    assert called == ["third"]
    await clock.advance(5.0)
    assert called == ["third", "first again"]
    later.call("last", lambda: called.append("last"))  # its job has ended
    await clock.advance(20.0)
    assert called == ["third", "first again", "last"]
    await background.aclose()


async def test_jobs_that_have_just_ended_are_waited_for_once() -> None:
    """Python 3.12 and later look at once whether all have ended: without a turn of the loop they stay for ever."""
    background = Background()
    ended: list[bool] = []

    async def job() -> None: ...

    async def closing() -> None:  # in the same round of the loop as the job's end, so before what is called at that end
        ended.append(short.done())
        await background.aclose()

    short = background.start(job(), name="short")
    await asyncio.create_task(closing())
    assert ended == [True]
    assert not background._jobs


async def test_a_crew_ends_with_the_first_error_and_takes_along_who_began_meanwhile() -> None:
    crew, ended = Crew(), list[str]()

    async def waits(name: str, later: str = "") -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)
            if later:
                crew.start(waits(later))
                await asyncio.sleep(0)

    async def fails() -> None:
        raise LookupError("the end")

    crew.start(waits("one", later="two"))
    crew.start(fails())
    with pytest.raises(LookupError, match="the end"):
        await crew.work()
    assert ended == ["one", "two"]
