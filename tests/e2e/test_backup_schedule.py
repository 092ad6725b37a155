"""Backups that a running gateway makes by itself."""

from __future__ import annotations

import asyncio
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from gateway.app.backup.schedule import DailyBackups
from gateway.app.config.models import AlertSettings
from gateway.store.sqlite import SqliteStore
from tests.support.fakes import ManualClock
from tests.support.forks import ROOT
from tests.support.gateway import FakeModel, Live, config_in, running

DAY = 86_400.0


def at(live: Live, clock: ManualClock, command: Sequence[str], worker: str = "w") -> DailyBackups:
    """Backups at the hour that begins ten minutes after the clock's start, 22:13 UTC."""
    made = DailyBackups(
        at="22:23", zone=ZoneInfo("UTC"), command=command, store=live.gateway.store, clock=clock, worker=worker
    )
    live.gateway.watchdog.health.backups = made
    return made


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def counting(folder: Path, status: int = 0) -> list[str]:
    """A command that leaves a line, and fails as told."""
    code = (
        f"open({str(folder / 'calls')!r}, 'a').write('.'); import sys;"
        f" print('{{\"file\": \"there\"}}') if {status} == 0 else sys.exit('legato: The disk is full.')"
    )
    return [sys.executable, "-S", "-c", code]


def calls(folder: Path) -> int:
    path = folder / "calls"
    return len(path.read_text()) if path.exists() else 0


async def test_the_program_backs_itself_up_at_the_hour_and_people_talk_on(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("LEGATO_HOME", str(tmp_path))
    (tmp_path / "b").mkdir()
    (tmp_path / "config.yaml").write_text("backup: {to: b, keep: 7d}\nstore: {url: 'sqlite:///legato.db'}\n")
    async with running(tmp_path, config=config_in(tmp_path), clock=clock) as live:
        backups = at(live, clock, [sys.executable, "-m", "gateway", "backup", "--json"])
        await live.ask("my code is quizzaciously")
        await backups.look()
        assert (await live.gateway.watchdog.health.report())["backup"]["made_at"] is None
        await clock.advance(700)
        making = asyncio.get_running_loop().create_task(backups.look())
        assert await live.ask("and now?")
        await making
        report = (await live.gateway.watchdog.health.report())["backup"]
        assert (report["error"], report["next"]) == (None, "2023-11-15T22:23:00+00:00")
        with tarfile.open(tmp_path / report["file"]) as tar:
            assert "legato.db" in tar.getnames()


async def test_one_a_day_also_after_a_restart_and_by_one_of_several(tmp_path: Path, clock: ManualClock) -> None:
    command = counting(tmp_path)
    async with running(tmp_path, clock=clock) as live:
        for days in range(3):
            await clock.advance(DAY if days else 700)
            for worker in ("a", "b", "a"):
                await at(live, clock, command, worker).look()
        assert calls(tmp_path) == 0, "a gateway that was there at no hour has missed none"
        first = at(live, clock, command)
        await clock.advance(DAY)
        await asyncio.gather(first.look(), at(live, clock, command, "b").look())
        await first.look()
        assert calls(tmp_path) == 1
        await clock.advance(DAY)
        await at(live, clock, command, "began later").look()
        assert calls(tmp_path) == 2, "made up for, because the one before is too old"


async def test_a_failure_is_told_to_the_operator_and_tried_again_after_an_hour(
    tmp_path: Path, clock: ManualClock
) -> None:
    config = config_in(tmp_path).replace(alerts=AlertSettings(to="fake:ops"))
    async with running(tmp_path, config=config, clock=clock, model=FakeModel()) as live:
        backups = at(live, clock, counting(tmp_path, status=1))

        async def looked(seconds: float) -> Any:
            await clock.advance(seconds)
            await backups.look()
            await live.gateway.look()
            await live.quiet()
            problems = (await live.gateway.watchdog.health.report())["problems"]
            return [each["text"] for each in problems if each["kind"] == "backup_failed"]

        def told() -> list[str]:
            return [text for text in live.adapter.shown("ops") if "backup" in text]

        assert await looked(700) == ["the backup failed: The disk is full."]
        await live.adapter.until(told)
        assert told() == ["Legato — the backup failed: The disk is full."]
        assert await looked(1_800) == ["the backup failed: The disk is full."]
        assert calls(tmp_path) == 1
        again = at(live, clock, counting(tmp_path))
        await again.look()
        assert again.error == "The disk is full.", "a new process knows it, too"
        backups = again
        assert await looked(2_000) == []
        assert calls(tmp_path) == 2
        assert len(told()) == 1


async def test_what_does_not_start_or_ends_badly_is_a_failure(tmp_path: Path, clock: ManualClock) -> None:
    async with running(tmp_path, clock=clock) as live:
        backups = at(live, clock, [str(tmp_path / "nowhere")])
        await clock.advance(700)
        await backups.look()
        assert "No such file or directory" in (backups.error or "")
        assert isinstance(live.gateway.store, SqliteStore)
        silent = at(live, clock, [sys.executable, "-S", "-c", "import os; os._exit(9)"])
        await clock.advance(3_600)
        await silent.look()
        assert silent.error == "exit status 9"
