"""Twelve ways to make a gateway deaf, stuck, full or slow: within a minute `/statusz` shows it, the log and the count
for Prometheus have it, and the operator's chat hears of it; that chat hears of each kind of news once an hour."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import pytest
from structlog.testing import capture_logs

from gateway.agent.caps import Caps
from gateway.app.config import Config
from gateway.app.config.models import AlertSettings
from gateway.app.problems import Kind
from gateway.domain.chat import Outbound
from gateway.providers.plugin import ModelPrices, ModelSettings
from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import DeliveryRefused, ProviderUnavailable
from gateway.store.port import PROCESSES_LOST, Store
from gateway.store.redis import RedisStore
from gateway.store.sqlite import SqliteStore
from tests.support.fakes import ManualClock
from tests.support.gateway import FakeAdapter, FakeModel, Gate, Live, Say, config_in, running
from tests.support.redis_server import RedisServer
from tests.support.redis_server import running as redis
from tests.support.source_tree import ROOT
from tests.support.waiting import eventually

LOOK = 10.0  # seconds
BOSS = "boss"  # the operator's chat
MEMBER = """
import asyncio, sys
from gateway.runtime.clock import SystemClock
from gateway.store.redis import RedisStore

async def live():
    store = RedisStore(sys.argv[1], clock=SystemClock())
    await store.open()
    print("here", flush=True)
    await asyncio.Event().wait()

asyncio.run(live())
"""


class Platform(FakeAdapter):
    """A platform whose server can be asked what it keeps, cannot be reached at times, and may refuse all but the
    operator's chat."""

    kept = 0
    unreached_since: float | None = None
    refuses = False

    async def unread(self) -> int:
        return self.kept

    async def send(self, outbound: Outbound) -> str:
        if self.refuses and outbound.to.chat != BOSS:
            raise DeliveryRefused("this bot is banned")
        return await super().send(outbound)


@dataclass
class World:
    """A gateway whose time passes only in looks. `each_look` is done before each. `away`: the store answers nobody."""

    live: Live
    clock: ManualClock
    adapter: Platform
    model: FakeModel
    folder: Path
    server: RedisServer | None = None
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    each_look: Callable[[], Awaitable[object]] | None = None
    mends: bool = True  # jobs that ended are begun anew
    away: bool = False

    async def look(self, seconds: float = LOOK) -> list[str]:
        """Let time pass, and look; the kinds of problems that `/statusz` shows then."""
        if self.each_look is not None:
            await self.each_look()
        await self.clock.advance(seconds)
        with self.live.gateway.metrics.counting():
            looking = asyncio.create_task(self.live.gateway.look() if self.mends else self.live.gateway.watchdog.look())
            await self._passing(looking)
            report = asyncio.create_task(self.live.gateway.watchdog.health.report())
            await self._passing(report)
        return [each["kind"] for each in (await report)["problems"]]

    async def _passing(self, task: asyncio.Task[Any]) -> None:
        """Let this end; for a store that is away it waits until its time is up."""
        while self.away and not task.done():
            await self.clock.advance(1.0)
            await asyncio.wait([task], timeout=0.05)
        await task

    def alerts(self) -> list[str]:
        return self.adapter.shown(BOSS)

    def beside(self, work: Awaitable[object]) -> None:
        """Have this done, if it can be, until the drill is over."""
        task = asyncio.ensure_future(work)

        async def ended() -> None:
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task

        self.stack.push_async_callback(ended)


# -- the twelve ---------------------------------------------------------------------------------


async def polls_hang(world: World) -> None:
    world.adapter.kept = 3  # the server has messages, and the poll never ends


async def another_polls(world: World) -> None:
    world.adapter.unreached_since = world.clock.monotonic()  # what Telegram's adapter says after a 409 (test_reach)


async def store_is_locked(world: World) -> None:
    other = apsw.Connection(str(world.folder / "legato.db"))
    world.stack.callback(other.close)
    other.set_busy_timeout(60_000)  # the gateway may be writing just now
    other.execute("BEGIN IMMEDIATE")
    world.beside(world.live.tell("hello"))
    world.each_look = partial(world.live.gateway.background.ended, "watchdog's write")  # which fails after a moment


async def writer_is_blocked(world: World) -> None:
    assert isinstance(world.live.store, SqliteStore)
    held, go = threading.Event(), threading.Event()
    world.stack.callback(go.set)

    def hold(_: apsw.Connection) -> None:
        held.set()
        assert go.wait(60)

    world.beside(world.live.store._database.writer.run(hold))
    await eventually(held.is_set)
    world.beside(world.live.tell("hello"))


async def disk_is_full(world: World) -> None:
    usage = shutil.disk_usage(world.folder)._replace(free=3_000_000)
    world.stack.enter_context(pytest.MonkeyPatch.context()).setattr("shutil.disk_usage", lambda _: usage)


async def process_is_stopped(world: World) -> None:
    assert world.server is not None
    ours = world.server.processes()
    frozen = await asyncio.create_subprocess_exec(
        sys.executable, "-c", MEMBER, world.server.url, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    world.stack.push_async_callback(frozen.communicate)
    world.stack.callback(frozen.kill)
    assert frozen.stdout is not None
    await frozen.stdout.readline()
    os.kill(frozen.pid, signal.SIGSTOP)
    world.server.let_die(*world.server.processes() - ours)  # which takes ten seconds
    await eventually(lambda: world.live.gateway.metrics.counts(PROCESSES_LOST))


async def model_never_answers(world: World) -> None:
    gate = Gate()
    world.stack.callback(gate.open)
    world.model.script = lambda *_: Say(text="late", gate=gate)
    await world.live.tell("hello")
    await eventually(lambda: gate.waiting)


async def model_fails(world: World) -> None:
    world.model.script = lambda *_: Say(error=ProviderUnavailable("The model's provider has a problem (500)."))
    await world.live.ask("hello")


async def sends_are_refused(world: World) -> None:
    world.adapter.refuses = True

    async def say() -> None:
        await world.live.tell("hello")
        await world.live.quiet()

    world.each_look = say


async def lane_is_stuck(world: World) -> None:
    world.mends = False
    world.live.gateway.background.stop("lanes")
    await world.live.gateway.background.ended("lanes")
    await world.live.tell("hello")


async def loop_is_blocked(world: World) -> None:
    await world.clock.advance(7.0)  # no look comes meanwhile, and the next one is late


async def redis_is_gone(world: World) -> None:
    assert world.server is not None
    world.server.kill()
    world.away = True


DRILLS: dict[Callable[[World], Awaitable[None]], Kind] = {
    polls_hang: "deaf",
    another_polls: "platform_down",
    store_is_locked: "store_away",
    writer_is_blocked: "writer_still",
    disk_is_full: "disk_low",
    process_is_stopped: "process_gone",
    model_never_answers: "model_silent",
    model_fails: "model_away",
    sends_are_refused: "sends_fail",
    lane_is_stuck: "lane_still",
    loop_is_blocked: "loop_lags",
    redis_is_gone: "store_away",
}
ON_REDIS = (process_is_stopped, redis_is_gone)


@contextmanager
def store_for(drill: object, folder: Path) -> Iterator[tuple[RedisServer | None, Store | None]]:
    if drill not in ON_REDIS:
        yield None, None
        return
    (folder / "redis").mkdir()
    with redis(folder / "redis", appendonly="yes") as server:
        yield server, RedisStore(server.url, clock=SystemClock())


@asynccontextmanager
async def world_for(
    folder: Path, server: RedisServer | None = None, store: Store | None = None, **sections: Any
) -> AsyncIterator[World]:
    clock, adapter, model = ManualClock(), Platform(), FakeModel()
    config: Config = config_in(folder, alerts=AlertSettings(to=f"fake:{BOSS}"), **sections)
    async with (
        running(folder, config=config, adapter=adapter, clock=clock, model=model, store=store) as live,
        AsyncExitStack() as stack,
    ):
        world = World(live, clock, adapter, model, folder, server, stack)
        await live.ask("good morning")
        await live.quiet()
        assert await world.look() == []  # all is well
        yield world


@pytest.mark.parametrize("drill", DRILLS, ids=lambda each: each.__name__)
async def test_it_is_noticed_within_a_minute(
    drill: Callable[[World], Awaitable[None]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.store.sqlite.connection.BUSY_MS", 50)
    kind = DRILLS[drill]
    with store_for(drill, tmp_path) as (server, store), capture_logs() as logs:
        async with world_for(tmp_path, server, store) as world:
            began = world.clock.monotonic()
            await drill(world)
            shown: list[str] = []
            while kind not in shown and world.clock.monotonic() - began <= 60 - LOOK:
                shown = await world.look()
            assert kind in shown, shown
            heard = asyncio.create_task(world.adapter.until(world.alerts))
            while not heard.done() and world.clock.monotonic() - began < 60:
                await world.clock.advance(1.0)
                await asyncio.wait([heard], timeout=0.05)
            await heard  # whose time has come: the rest takes as long as the machine does
            assert all(text.startswith("Legato — ") for text in world.alerts())
            assert any(each["event"] == "watchdog" and each["kind"] == kind for each in logs)
            assert world.live.gateway.metrics.totals()[f"legato_watchdog_total {kind}"] == 1.0


# -- once an hour -------------------------------------------------------------------------------


async def heard(world: World, count: int) -> list[str]:
    """The alerts, once there are so many and nothing more is on its way; but for that of the hour that passed at
    once."""

    def told() -> list[str]:
        return [each for each in world.alerts() if "everything stopped" not in each]

    await world.adapter.until(lambda: len(told()) >= count)
    await world.live.quiet()
    return told()


async def told_once_an_hour(world: World, again: Callable[[], Awaitable[object]], text: str) -> None:
    """It happens twice within an hour, and once more after that: the chat hears the first and the last."""
    for seconds, count in ((LOOK, 1), (LOOK, 1), (3_600.0, 2)):
        await again()
        await world.live.gateway.background.ended("watchdog's write")  # a disk may be slow, and an hour passes at once
        await world.look(seconds)
        assert await heard(world, count) == [f"Legato — {text}"] * count


async def test_a_disk_that_is_nearly_full_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    free = [usage.free]
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage._replace(free=free[0]))
    async with world_for(tmp_path) as world:

        async def fills() -> None:
            free[0] = 9_000_000_000
            await world.look()
            free[0] -= 8_600_000_000

        await told_once_an_hour(world, fills, "the store's disk has 400 MB left")


async def test_a_cap_that_was_met_is_told(tmp_path: Path) -> None:
    priced = ModelSettings(
        provider="openai", name="priced", context_length=50_000, prices=ModelPrices(input=1, output=1)
    )
    async with world_for(tmp_path, model=priced, budgets=Caps(daily_usd=1)) as world:

        async def asks() -> None:
            world.live.gateway.agents.metering.caps = Caps(daily_usd=0.000001)
            assert "spend cap" in await world.live.ask("hello")
            await world.live.quiet()

        await told_once_an_hour(world, asks, "a spend cap refused 1 model call")


async def test_messages_that_were_given_up_are_told(tmp_path: Path) -> None:
    async with world_for(tmp_path) as world:
        store = world.live.store
        world.live.gateway.background.stop("lanes")  # here the test is the process that gives them up
        await world.live.gateway.background.ended("lanes")
        world.mends = False

        async def dies() -> None:
            await world.live.tell("hello")
            claim = await store.claim_next("w")
            await store.finish_turn(claim.lease, None, claim.item, None, "dead", [])

        await told_once_an_hour(world, dies, "1 message could not be answered: see `legato dead list`")
