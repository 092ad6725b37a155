"""`on_session_end` of an engine that raises, exits or hangs: called again, spaced, at most five times."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from gateway.agent.hooks import PAUSES
from gateway.domain.message import Message
from gateway.runtime.clock import SystemClock
from gateway.store.port import Store
from gateway.store.redis import RedisStore
from tests.support.fakes import ManualClock
from tests.support.gateway import Live, RecordingEngine, running

if TYPE_CHECKING:
    from tests.support.redis_server import RedisServer

pytest_plugins = ["tests.support.redis_server"]

Run = Callable[..., AbstractAsyncContextManager[Live]]


@pytest.fixture(params=["sqlite", pytest.param("redis", marks=pytest.mark.slow)])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    if request.param == "sqlite":
        return lambda **parts: running(tmp_path, **parts)
    server: RedisServer = request.getfixturevalue("redis_server")
    server.empty()

    @asynccontextmanager
    async def on_redis(**parts: Any) -> AsyncIterator[Live]:
        async with running(tmp_path, store=RedisStore(server.url, clock=SystemClock()), **parts) as live:
            yield live

    return on_redis


class Failing(RecordingEngine):
    """An engine whose first `times` calls of the hook fail; `called` has the moment of each call."""

    def __init__(self, clock: ManualClock, called: list[float], fail: Callable[[], object], times: int) -> None:
        super().__init__([])
        self.clock, self.called, self.fail, self.times = clock, called, fail, times

    async def on_session_end(self, session_id: str, messages: Sequence[Message]) -> None:  # type: ignore[override]
        self.called.append(self.clock.now())
        if len(self.called) <= self.times and (failing := self.fail()) is not None:
            assert isinstance(failing, asyncio.Future)
            await failing


def _raise() -> None:
    raise RuntimeError("the engine's disk is full")


def _leave() -> None:
    sys.exit(3)


def _hang() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


async def _hook(store: Store) -> str:
    (ended,) = [each for each in await store.sessions(None, 9) if each.ended_at is not None]
    return ended.hook


def _gaps(called: Sequence[float]) -> list[float]:
    return [later - earlier for earlier, later in pairwise(called)]


def _given_up(logs: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [line for line in logs if line["log_level"] == "error" and "hook" in line["event"]]


async def _reset(live: Live) -> None:
    """/new, which a hook that hangs holds up for a few seconds only."""
    await live.ask("hello")
    began = live.clock.now()
    event = await live.tell("/new")
    await live.advance_until(lambda: live.adapter.answer_to(event), seconds=1)
    assert live.clock.now() - began < 30


@pytest.mark.parametrize("fail", [_raise, _leave, _hang])
async def test_it_is_called_five_times_and_then_given_up(run: Run, fail: Callable[[], object]) -> None:
    clock, called = ManualClock(), list[float]()
    with capture_logs() as logs:
        async with run(clock=clock, engine=lambda: Failing(clock, called, fail, 99)) as live:
            await _reset(live)
            await live.advance_until(lambda: _given_up(logs), seconds=120)
            (line,) = _given_up(logs)
            (ended,) = [each for each in await live.store.sessions(None, 9) if each.ended_at is not None]
            assert (line["session"], line["calls"]) == (ended.id, 5)
            assert len(called) == 5
            assert all(gap >= pause for gap, pause in zip(_gaps(called), PAUSES, strict=True))
            await live.advance_until(_nothing_owed(live), seconds=30)
            assert await _hook(live.store) == "done"
            await live.advance_until(lambda: _is_noted_nowhere(live), seconds=30)  # the note goes behind the mark
            assert await live.ask("still there?") == "echo: still there?"


async def _is_noted_nowhere(live: Live) -> bool:
    return await live.store.notes("hooks") == {}


async def test_it_is_called_again_until_it_returns(run: Run) -> None:
    clock, called = ManualClock(), list[float]()
    async with run(clock=clock, engine=lambda: Failing(clock, called, _raise, 2)) as live:
        await _reset(live)
        assert await _hook(live.store) == "pending"
        await live.advance_until(_nothing_owed(live), seconds=30)
        assert len(called) == 3
        assert await _hook(live.store) == "done"
        await live.advance_until(lambda: _is_noted_nowhere(live), seconds=30)  # the note goes behind the mark


async def test_a_restart_keeps_the_count_and_the_pause(run: Run) -> None:
    clock, called = ManualClock(), list[float]()
    with capture_logs() as logs:
        async with run(clock=clock, engine=lambda: Failing(clock, called, _raise, 99)) as live:
            await _reset(live)
            await live.advance_until(partial(_noted, live, 1), seconds=1)
        for calls in (2, 3):
            async with run(clock=clock, engine=lambda: Failing(clock, called, _raise, 99)) as live:
                await live.advance_until(partial(_noted, live, calls), seconds=20)
        assert not _given_up(logs)
        async with run(clock=clock, engine=lambda: Failing(clock, called, _raise, 99)) as live:
            await live.advance_until(lambda: _given_up(logs), seconds=60)
    assert len(called) == 5
    assert all(gap >= pause for gap, pause in zip(_gaps(called), PAUSES, strict=True))


async def _noted(live: Live, calls: int) -> bool:
    return any(note.startswith(f"[{calls},") for note in (await live.store.notes("hooks")).values())


def _nothing_owed(live: Live) -> Callable[[], Any]:
    async def is_paid() -> bool:
        return not await live.store.pending_hooks(1)

    return is_paid
