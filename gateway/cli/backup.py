"""`legato backup`: a copy of the store in one file, also beside a running gateway."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gateway.runtime.errors import UserError
from gateway.store.port import Store
from gateway.store.sqlite import SqliteStore


def new_file(target: Path, now: float) -> Path:
    """The file of a backup: `target`, or in a folder a name with the time (seconds since the epoch). Raises
    UserError if it is there already."""
    if os.path.isdir(target):
        target = target / f"legato-{datetime.fromtimestamp(now, UTC):%Y%m%dT%H%M%SZ}.db"
    if os.path.lexists(target):  # it may be the only good copy
        raise UserError(f"{target} exists already: name a new file, or a folder")
    return target


async def back_up(store: Store, file: Path) -> None:
    """Copy the store into a new file. Raises UserError, StoreError."""
    if not isinstance(store, SqliteStore):
        raise UserError("a Redis store is backed up on its server: copy the files that the server writes")
    await store.backup(file)


def backup_row(file: Path) -> dict[str, Any]:
    """The finished copy: `file` and `bytes`."""
    return {"file": str(file), "bytes": file.stat().st_size}


def backup_text(row: dict[str, Any]) -> str:
    """One line for people."""
    return f"{row['file']} holds the whole store ({row['bytes'] / 1e6:,.1f} MB)."
