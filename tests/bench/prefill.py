"""Fills a store with sessions that somebody used once, quickly.

One session is made through the store's own port; the others are copies of its rows, written by SQL
in one transaction, so that 100,000 take seconds and the schema need not be known here.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import apsw

from tests.bench.world import Instant, quiet, running, said, settings

_PER_SESSION = ("inbox", "sessions", "prompts", "tips", "messages", "transcript", "outbox", "ledger")
_SEED = "known0"
_OWN = {"inbox": "id", "sessions": "seq", "messages": "id", "outbox": "seq", "ledger": "id"}


async def fill(path: Path, sessions: int) -> None:
    """A store at `path` that knows `sessions` sessions of two messages each, of chats `known0` on."""
    async with running(settings(path), provider=Instant()) as (gateway, chats):
        await chats.say(_SEED, said(0))
        await quiet(gateway)
    if sessions > 1:
        await asyncio.to_thread(_copy, path, sessions)
        async with running(settings(path), provider=Instant()):
            pass  # a start enters the copies in the search index: else what measures would do it
        await asyncio.to_thread(_write_back, path)


def _copy(path: Path, sessions: int) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA synchronous = OFF").fetchall()
    with connection:
        connection.execute(
            "CREATE TEMP TABLE numbers AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
            " SELECT i FROM n",
            (sessions - 1,),
        )
        for table in _PER_SESSION:
            _copy_table(connection, table)
    connection.close()


def _write_back(path: Path) -> None:
    """Leave nothing in the log, as a store that has known its sessions for a while."""
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()


def _copy_table(connection: apsw.Connection, table: str) -> None:
    """Every row once for each number: texts that name the seed's session or chat name another one
    instead, and rowids of the seed's two messages stay apart."""
    columns = [(row[1], row[2]) for row in connection.execute(f"PRAGMA table_info({table})").fetchall()]
    own = _OWN.get(table)
    (session_id,) = connection.execute(f"SELECT session_id FROM tips WHERE key LIKE '%{_SEED}'").fetchall()[0]
    names, values = [], []
    for name, kind in columns:
        names.append(name)
        if name == own:
            values.append(f"{name} + i * 2")
        elif name == "place":
            values.append("place + i * 2")
        elif name == "message_id":
            values.append("message_id + i * 2")
        elif kind == "TEXT" and name not in ("body", "text", "system_prompt"):
            unique = f"replace(replace({name}, '{_SEED}', 'known' || i), '{session_id}', 's_known' || i)"
            values.append(f"{name} || '-' || i" if (table, name) == ("outbox", "id") else unique)
        else:
            values.append(name)
    connection.execute(
        f"INSERT INTO {table}({', '.join(names)}) SELECT {', '.join(values)}"
        f" FROM (SELECT * FROM {table}) CROSS JOIN numbers"
    ).fetchall()
