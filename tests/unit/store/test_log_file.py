"""The log file of SQLite is longer than what is written to it."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from gateway.store.sqlite.connection import connect_writer, one

PAGE = 4_096 + 24


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of the database."""
    return tmp_path / "legato.db"


@pytest.fixture
def writer(path: Path) -> Iterator[apsw.Connection]:
    """Return a connection that writes, with a table of texts."""
    with closing(connect_writer(path)) as connection:
        connection.execute("CREATE TABLE texts(text)")
        yield connection


def write(connection: apsw.Connection, commits: int, *, size: int = 3_000) -> None:
    """Commit so many texts."""
    for _ in range(commits):
        connection.execute("INSERT INTO texts VALUES (?)", ("x" * size,)).fetchall()


def length(path: Path) -> int:
    """Return the size of the log in bytes."""
    return path.with_name("legato.db-wal").stat().st_size


def test_commits_write_over_what_is_there(writer: apsw.Connection, path: Path) -> None:
    lengths = set[int]()
    for _ in range(300):
        write(writer, 1)
        lengths.add(length(path))
    assert len(lengths) <= 4
    assert max(lengths) < 1_500 * PAGE


def test_a_log_with_room_is_read_after_a_kill(writer: apsw.Connection, path: Path, tmp_path: Path) -> None:
    write(writer, 10)
    shutil.copy(path, tmp_path / "killed.db")
    shutil.copy(path.with_name("legato.db-wal"), tmp_path / "killed.db-wal")
    with closing(apsw.Connection(str(tmp_path / "killed.db"))) as found:
        assert one(found, "SELECT count(*) FROM texts") == (10,)
        assert one(found, "PRAGMA integrity_check") == ("ok",)


def test_a_long_log_is_folded_back_and_used_again(writer: apsw.Connection, path: Path) -> None:
    write(writer, 120, size=400_000)  # about 100 pages each
    assert path.stat().st_size > 30_000_000
    assert length(path) < 5_000 * PAGE


def test_a_log_that_was_cut_off_has_room_again(writer: apsw.Connection, path: Path) -> None:
    write(writer, 10)
    writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    assert length(path) == 0
    write(writer, 1)
    assert length(path) > 200 * PAGE


def test_a_disk_without_room_for_it_takes_commits(
    writer: apsw.Connection, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    monkeypatch.setattr(os, "pwrite", full)
    write(writer, 5)
    assert one(writer, "SELECT count(*) FROM texts") == (5,)
    assert length(path) < 100 * PAGE
