"""One backup a day, made by the program itself in a separate process, so no message waits for it. The result is in the
store, so a process that was away at the hour makes up for it, and only one of several processes makes it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import structlog
from msgspec import Struct

from gateway.domain.expiry import next_daily
from gateway.domain.wording import utc
from gateway.runtime.clock import Clock
from gateway.runtime.program import run
from gateway.store.port import Store

log = structlog.get_logger(__name__)

_AGAIN: Final = 3_600.0  # seconds after a failure; and the lease of whoever makes one
_LONGEST: Final = 6 * 3_600.0  # seconds
_ACCOUNT: Final = "backup"  # the notes about it, and the lease


class DailyBackups(Struct, kw_only=True):
    """Runs `command`, which is `legato backup --json`, each day `at` a time in a zone (None: this machine's)."""

    at: str
    zone: ZoneInfo | None
    command: Sequence[str]
    store: Store
    clock: Clock
    worker: str
    _began: float = 0.0
    _notes: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        self._began = self.clock.now()

    @property
    def error(self) -> str | None:
        """Why the last one failed; None: it did not."""
        return (self._notes or {}).get("error")

    async def look(self) -> None:
        """Make one, if it is due. Called every minute. Raises StoreUnavailable."""
        if self._notes is None or self.error is not None:
            self._notes = await self.store.notes(_ACCOUNT)
        if self.clock.now() < self._due_at():
            return
        if not await self.store.hold(_ACCOUNT, self.worker, _AGAIN):
            return
        try:
            self._notes = await self.store.notes(_ACCOUNT)  # another process may have made it
            if self.clock.now() >= self._due_at():
                await self._make()
        finally:
            await self.store.let_go(_ACCOUNT, self.worker)

    def report(self) -> dict[str, Any]:
        """The last one, and the next, for /statusz."""
        notes = self._notes or {}
        return {
            "made_at": utc(float(notes["made_at"])) if "made_at" in notes else None,
            "file": notes.get("file"),
            "next": utc(self._due_at()),
            "error": self.error,
        }

    def _due_at(self) -> float:
        notes = self._notes or {}
        if "failed_at" in notes:
            return float(notes["failed_at"]) + _AGAIN
        return next_daily(self.at, self.zone, float(notes.get("made_at", self._began)))

    async def _make(self) -> None:
        began = self.clock.now()
        row, error = await self._run()
        changes: dict[str, str | None]
        if error is None:
            changes = {"made_at": str(began), "file": row.get("file"), "failed_at": None, "error": None}
            log.info("backup_made", file=row.get("file"), bytes=row.get("bytes"))
        else:
            changes = {"failed_at": str(began), "error": error}
            log.error("backup_failed", error=error)
        known = {**(self._notes or {}), **changes}
        self._notes = {name: value for name, value in known.items() if value is not None}
        await self.store.set_notes(_ACCOUNT, changes)

    async def _run(self) -> tuple[dict[str, Any], str | None]:
        """What the process says that it made, or the reason why it made nothing."""
        command = ["nice", *self.command]  # answers come first
        try:
            ended = await run(
                command, folder=Path(), environment=os.environ, seconds=_LONGEST, clock=self.clock, apart=True, own=True
            )
        except OSError as error:
            return {}, f"Legato cannot start the process for the backup ({error.strerror})."
        if ended.late:
            return {}, f"Legato stopped the backup, because it had not finished after {_LONGEST / 3_600:g} hours."
        if ended.code:
            lines = ended.errors.strip().splitlines() or [f"exit status {ended.code}"]
            return {}, lines[-1].removeprefix("legato: ")
        row: dict[str, Any] = json.loads(ended.output)
        return row, None
