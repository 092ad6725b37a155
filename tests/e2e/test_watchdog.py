"""A gateway made deaf, stuck or slow: the log, /statusz and the operator's chat say so, and what can be mended is."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import apsw
import pytest
from structlog.testing import capture_logs

from gateway.app.config.models import AlertSettings
from gateway.domain.chat import ChatAddress
from gateway.runtime.supervisor import Supervisor
from gateway.store.sqlite import SqliteStore
from tests.support.fakes import ManualClock
from tests.support.gateway import FakeAdapter, FakeModel, Live, config_in, running
from tests.support.model import PATIENCE
from tests.support.waiting import eventually


class Begun(FakeAdapter):
    """Counts how often it is read, and says what its server keeps."""

    begun = 0
    kept = 0
    unreached_since: float | None = None

    async def run(self, accept: Any) -> None:
        self.begun += 1
        await super().run(accept)

    async def unread(self) -> int:
        return self.kept


class Recording(Supervisor):
    """Notes why the process would end."""

    def end(self, sentence: str) -> None:
        ended.append(sentence)


ended: list[str] = []


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def looked(live: Live, clock: ManualClock, seconds: float = 10.0) -> list[tuple[str, str]]:
    """Let time pass, and look; the problems that /statusz shows then."""
    await _told(live)
    await live.store.set_notes("nobody", {})  # a write that its thread has not ended by then would look still
    await clock.advance(seconds)
    with live.gateway.metrics.counting():  # else done by the task that serves
        await live.gateway.look()
    await _told(live)
    await live.quiet()
    report = await live.gateway.watchdog.health.report()
    return [(each["kind"], each["about"]) for each in report["problems"]]


async def _told(live: Live) -> None:
    """Let alerts be stored: their patience must not pass while the store's thread, which no clock sees, has them."""
    if jobs := [each for each in live.gateway.background._jobs if each.get_name().startswith("alert ")]:
        await asyncio.wait(jobs, timeout=PATIENCE)


def lines(logs: Any) -> list[tuple[str, str]]:
    return [(each["event"], each["kind"]) for each in logs if each["event"].startswith("watchdog")]


async def test_all_is_well(tmp_path: Path, clock: ManualClock) -> None:
    async with running(tmp_path, clock=clock) as live:
        await live.ask("hello")
        assert [await looked(live, clock) for _ in range(3)] == [[], [], []]
        report = await live.gateway.watchdog.health.report()
        assert report["platforms"]["fake"]["reader"] == "reads"
        assert report["platforms"]["fake"]["last_update"] == "2023-11-14T22:13:20+00:00"
        assert await live.gateway.watchdog.health.is_ready() is None
        assert "hello" not in str(report)


async def test_a_platform_that_cannot_be_reached_is_down_until_it_can(tmp_path: Path, clock: ManualClock) -> None:
    adapter = Begun()
    async with running(tmp_path, adapter=adapter, clock=clock) as live:
        adapter.unreached_since = clock.monotonic()
        assert [await looked(live, clock) for _ in range(2)] == [[], []]  # a short trouble
        assert await looked(live, clock) == [("platform_down", "fake")]
        assert (await live.gateway.watchdog.health.report())["platforms"]["fake"]["reader"] == "unreached"
        adapter.unreached_since = None
        assert await looked(live, clock) == []


async def test_a_platform_whose_server_keeps_messages_is_read_anew(tmp_path: Path, clock: ManualClock) -> None:
    adapter = Begun()
    async with running(tmp_path, adapter=adapter, clock=clock) as live:
        adapter.kept = 2
        with capture_logs() as logs:
            found = [await looked(live, clock) for _ in range(6)]
            assert found[:3] == [[], [], []]
            assert found[-1] == [("deaf", "fake")]
            await adapter.until(lambda: adapter.begun == 2)
            await live.tell("hello")
            adapter.kept = 0
            assert await looked(live, clock) == []
        assert lines(logs) == [("watchdog", "deaf"), ("watchdog_over", "deaf")]
        totals = live.gateway.metrics.totals()
        assert totals["legato_readers_restarted_total fake deaf"] == 1.0
        assert totals["legato_watchdog_total deaf"] == 1.0


async def test_reminders_and_what_else_is_repeated_are_begun_anew(tmp_path: Path, clock: ManualClock) -> None:
    async with running(tmp_path, clock=clock) as live:
        live.gateway.background.stop("jobs")
        await live.gateway.background.ended("jobs")
        assert await looked(live, clock) == [("job_ended", "jobs")]
        assert await looked(live, clock) == []


async def test_a_message_that_nobody_takes_up_is_seen(tmp_path: Path, clock: ManualClock) -> None:
    async with running(tmp_path, clock=clock) as live:
        live.gateway.background.stop("lanes")
        await live.gateway.background.ended("lanes")
        event = await live.tell("hello")
        await clock.advance(50.0)
        await live.gateway.watchdog.look()
        assert [each.name for each in live.gateway.watchdog.health.problems] == [("lane_still", "fake")]
        assert await looked(live, clock) == [("job_ended", "lanes")]  # and now they run again
        assert (await live.answer(event)).text == "echo: hello"
        assert await looked(live, clock) == []


async def test_a_write_that_never_ends_ends_the_process(tmp_path: Path, clock: ManualClock) -> None:
    ended.clear()
    async with running(tmp_path, clock=clock) as live:
        live.gateway.watchdog.supervisor = Recording()
        assert isinstance(live.store, SqliteStore)
        await live.ask("hello")
        await live.quiet()
        held, go = threading.Event(), threading.Event()

        def hold(_: apsw.Connection) -> None:
            held.set()
            assert go.wait(60)

        live.gateway.background.start(live.store._database.writer.run(hold), name="hold")
        await eventually(held.is_set)
        for seconds, found in ((10.0, []), (31.0, ["writer_still"]), (200.0, ["writer_still"])):
            await clock.advance(seconds)
            await live.gateway.look()
            assert [each.kind for each in live.gateway.watchdog.health.problems if each.kind != "loop_lags"] == found
        assert not ended
        assert await live.gateway.watchdog.health.is_ready() == "a write to the store has not finished for 4 minutes"
        await clock.advance(100.0)
        await live.gateway.look()
        assert ended == [
            "The store has not finished a write for minutes, so this process ends and can be started again."
        ]
        go.set()


async def test_a_loop_that_lags_is_seen(tmp_path: Path, clock: ManualClock) -> None:
    async with running(tmp_path, clock=clock) as live:
        found = [await looked(live, clock), await looked(live, clock, 15.0), await looked(live, clock)]
        assert found == [[], [("loop_lags", "")], []]
        assert live.gateway.metrics.totals()["legato_watchdog_total loop_lags"] == 1.0


async def test_the_operators_chat_hears_of_each_kind_once_an_hour(tmp_path: Path, clock: ManualClock) -> None:
    adapter = Begun()
    settings = config_in(tmp_path).replace(alerts=AlertSettings(to="fake:boss"))
    async with running(tmp_path, config=settings, adapter=adapter, clock=clock, model=FakeModel()) as live:
        assert live.gateway.watchdog.alerts.to == ChatAddress(platform="fake", chat="boss")
        await looked(live, clock)
        for _ in range(3):  # three times within the hour
            await looked(live, clock, 15.0)
            await looked(live, clock)

        def told() -> list[str]:
            return [row.text for row in adapter.sent if row.to.chat == "boss"]

        await adapter.until(told)
        await live.quiet()
        assert told() == ["Legato — everything stopped for 5 seconds"]
        await looked(live, clock, 3_610.0)
        await adapter.until(lambda: len(told()) == 2)


async def test_an_alert_whose_storing_takes_long_is_not_left_over(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = config_in(tmp_path).replace(alerts=AlertSettings(to="fake:boss"))
    async with running(tmp_path, config=settings, clock=clock, model=FakeModel()) as live:
        stored, told, emit = asyncio.Event(), asyncio.Event(), live.store.emit

        async def late(rows: Any) -> Any:
            emitted = await emit(rows)
            stored.set()
            await told.wait()
            return emitted

        await looked(live, clock)
        monkeypatch.setattr(live.store, "emit", late)
        await clock.advance(15.0)
        await live.gateway.watchdog.look()
        await stored.wait()
        await clock.advance(11.0)  # longer than an alert waits
        await live.adapter.until(lambda: live.adapter.shown("boss"))
        told.set()
        await live.quiet()
        assert set(live.adapter.shown("boss")) == {"Legato — everything stopped for 5 seconds"}
