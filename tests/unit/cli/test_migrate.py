"""`legato migrate`: what it shows while it works, and what it says when it is done."""

from __future__ import annotations

import asyncio
from unittest.mock import AsyncMock, MagicMock, Mock

import pytest

from gateway.cli import migrate as migrating
from gateway.cli.migrate import migrate_between, report_row, report_text
from gateway.store.transfer import MigrationProgress, Report, Tell

REPORT = Report(
    source="sqlite:///a.db",
    target="redis://host/0",
    copied={"session": 1_200, "message": 2},
    verified={"session": 1_200, "message": 1},
    copying_seconds=1.23456,
    verifying_seconds=0.5,
)


@pytest.mark.parametrize(("target", "secret"), [("redis://host/0", True), ("sqlite:///b.db", False)])
def test_a_report_has_each_kind_and_what_to_do_next(target: str, secret: bool) -> None:
    row = report_row(Report(**{**{name: getattr(REPORT, name) for name in REPORT.__struct_fields__}, "target": target}))
    assert (row["copying_seconds"], row["verifying_seconds"]) == (1.235, 0.5)
    assert row["kinds"][1] == {"kind": "message", "copied": 2, "verified": 1}
    lines = report_text(row).splitlines()
    assert [line.split() for line in lines[:3]] == [
        ["copied", "verified"], ["session", "1,200", "1,200"], ["message", "2", "1"],
    ]  # fmt: skip
    assert lines[-1].startswith(f"Set store.url to {target}")
    assert ("with its name and password" in lines[-1]) is secret


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_is_shown_each_stage_as_it_goes(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    console, progress = Mock(is_terminal=terminal), MagicMock()
    progress.__enter__.return_value = progress
    progress.add_task.side_effect, progress.tasks = [0, 1], {0: Mock(completed=7), 1: Mock(completed=2)}

    async def migrate(source: object, target: object, *, clock: object, tell: Tell) -> Report:
        for stage, done in (("copying", 3), ("copying", 7), ("verifying", 2)):
            tell(MigrationProgress(stage=stage, done=done, total=9))
        return REPORT

    monkeypatch.setattr(migrating, "Console", Mock(return_value=console))
    shown = Mock(return_value=progress)
    monkeypatch.setattr(migrating, "Progress", shown)
    monkeypatch.setattr(migrating, "migrate", AsyncMock(side_effect=migrate))
    logs = Mock()
    monkeypatch.setattr(migrating, "configure_logs", logs)
    found = asyncio.run(migrate_between("redis://me:pass%20word@127.0.0.1/0", "redis://127.0.0.1/1"))
    assert found is REPORT
    redact = logs.call_args.kwargs["redact"]
    assert "word" not in redact("me:pass%20word and pass word")
    assert shown.call_args.kwargs["disable"] is not terminal
    updates = [(call.args[0], call.kwargs) for call in progress.update.call_args_list]
    assert updates == [(0, {"completed": 3}), (0, {"completed": 7}), (0, {"total": 7}), (1, {"completed": 2})]
