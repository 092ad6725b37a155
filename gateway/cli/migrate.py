"""The output of `legato migrate`: its progress and its result, as a row with stable fields and as text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn

from gateway.runtime.clock import SystemClock
from gateway.runtime.logs import configure_logs
from gateway.runtime.redaction import Redactor
from gateway.store.transfer import MigrationProgress, Report, Tell, migrate, source_at, target_at


async def migrate_between(source: str, target: str) -> Report:
    """Migrate between two addresses of the form that `store.url` has, showing progress in a terminal;
    logs go to stderr, without the addresses' passwords."""
    passwords = [password for url in (source, target) if (password := urlsplit(url).password)]
    redact = Redactor([*passwords, *map(unquote, passwords)])
    configure_logs(level="warning", form="console", redact=redact)
    clock = SystemClock()
    with _shown_progress() as tell:
        return await migrate(source_at(source, clock), target_at(target, clock), clock=clock, tell=tell)


@contextmanager
def _shown_progress() -> Iterator[Tell]:
    """Shows it on stderr as it goes, if that is a terminal."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,} records"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as shown:
        tasks: dict[str, TaskID] = {}

        def tell(progress: MigrationProgress) -> None:
            if progress.stage not in tasks:
                for earlier in tasks.values():
                    shown.update(earlier, total=shown.tasks[earlier].completed)
                tasks[progress.stage] = shown.add_task(progress.stage, total=progress.total)
            shown.update(tasks[progress.stage], completed=progress.done)

        yield tell


def report_row(report: Report) -> dict[str, Any]:
    """source, target, kinds (kind, copied, verified), copying_seconds, verifying_seconds, next."""
    secret = "" if report.target.startswith("sqlite") else " (with its name and password, if it has them)"
    return {
        "source": report.source,
        "target": report.target,
        "kinds": [
            {"kind": kind, "copied": count, "verified": report.verified[kind]} for kind, count in report.copied.items()
        ],
        "copying_seconds": round(report.copying_seconds, 3),
        "verifying_seconds": round(report.verifying_seconds, 3),
        "next": f"Set store.url to {report.target}{secret} and start Legato again. The old store is unchanged. When "
        "all is well, delete the old store.",
    }


def report_text(row: dict[str, Any]) -> str:
    """The same to be read."""
    lines = [f"{'':<15} {'copied':>12} {'verified':>12}"]
    lines += [f"{each['kind']:<15} {each['copied']:>12,} {each['verified']:>12,}" for each in row["kinds"]]
    return "\n".join([*lines, "", row["next"]])
