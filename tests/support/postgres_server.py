"""A real PostgreSQL server for tests: a throwaway cluster in a temporary folder, of the programs that are installed.

`initdb` refuses to run as root. There the programs run as the user `postgres`, or else `nobody`, by `setpriv`.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import SkipTest

import pytest

from tests.support.redis_server import free_port, until

_INSTALLED = Path("/usr/lib/postgresql")
_OPTIONS = ("-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "max_connections=60", "-c", "jit=off")


class PostgresServer:
    """One server. It can be killed, and started again on the same folder."""

    def __init__(self, programs: Path, folder: Path, as_user: list[str]) -> None:
        self.port = free_port()
        self.folder = folder
        self._programs, self._as_user = programs, as_user
        self._process: subprocess.Popen[bytes] | None = None
        data = ["-D", str(folder / "data"), "-A", "trust", "-U", "legato", "-E", "UTF8", "--locale=C", "-N"]
        subprocess.run(self._command("initdb", *data), check=True, stdout=subprocess.DEVNULL, cwd=folder)

    @property
    def url(self) -> str:
        """The address of its database, as settings name it."""
        return f"postgresql://legato@127.0.0.1:{self.port}/postgres"

    def _command(self, program: str, *args: str) -> list[str]:
        return [*self._as_user, str(self._programs / program), *args]

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = ["-D", str(self.folder / "data"), "-p", str(self.port), "-k", str(self.folder), *_OPTIONS]
        with (self.folder / "server.log").open("ab") as output:
            self._process = subprocess.Popen(self._command("postgres", *options), stdout=output, stderr=output)
        until(self._is_up, f"the server on port {self.port} to start")

    def _is_up(self) -> bool:
        ready = self._command("pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port))
        return subprocess.run(ready, check=False).returncode == 0

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """End it at once, with all of its connections."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait()
            self._process = None

    def ask(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """What a person is told by `psql`."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement, values)
            return cursor.fetchall() if cursor.description else []

    def rows_with(self, *words: str) -> list[str]:
        """The rows of all tables, and the server's statistics of them, that hold one of the words."""
        named = "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname = 'legato'"
        tables = [row[0] for row in self.ask(named.replace("%", "%%"))]
        found = [
            (each, word)
            for each in tables
            for word in words
            if self.ask(f"SELECT 1 FROM {each} t WHERE position(%s in t::text) > 0", word)
        ]
        self.ask("ANALYZE")
        told = "SELECT 1 FROM pg_stats s WHERE schemaname = 'legato' AND position(%s in s::text) > 0"
        return [
            f"{word} in {each}"
            for each, word in [*found, *(("statistics", word) for word in words if self.ask(told, word))]
        ]

    def empty(self) -> None:
        """Leave nothing."""
        self.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'legato'")
        self.ask("DROP SCHEMA IF EXISTS legato CASCADE")

    def let_die(self, *owners: str) -> None:
        """The time of these processes is over; without a name, that of all."""
        over = """UPDATE legato.member SET members_at = 0, doc = json_build_object('owner', key, 'until', 0.0)"""
        self.ask(f"{over} WHERE key = ANY(%s) OR %s", list(owners), not owners)


def _as_user(folder: Path) -> list[str]:
    """What stands before a command so that root does not run it. The user then owns the folder."""
    if os.geteuid() != 0:
        return []
    found = [each for each in pwd.getpwall() if each.pw_name in ("postgres", "nobody")]
    if not found or shutil.which("setpriv") is None:
        raise SkipTest(
            "initdb cannot run as root, and there is no setpriv, or no user postgres or nobody, to run it as"
        )
    user = max(found, key=lambda each: each.pw_name)
    os.chown(folder, user.pw_uid, user.pw_gid)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


def programs() -> Path:
    """The folder of the newest PostgreSQL's programs; the test is skipped where none is installed."""
    versions = [each for each in _INSTALLED.glob("*/bin") if (each / "initdb").exists()]
    if versions:
        return max(versions, key=lambda each: int(each.parent.name))
    found = shutil.which("initdb")
    if found is None:
        raise SkipTest("no PostgreSQL server is installed here: apt install postgresql")
    return Path(found).resolve().parent


@contextmanager
def running() -> Iterator[PostgresServer]:
    """A server of one's own."""
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'legato[postgres]'")
    where = programs()
    with tempfile.TemporaryDirectory(prefix="legato-postgres-") as made:  # a short path, which its socket needs
        folder = Path(made)
        server = PostgresServer(where, folder, _as_user(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One server for all tests that leave it as they found it."""
    with running() as server:
        yield server
