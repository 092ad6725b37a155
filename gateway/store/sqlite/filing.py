"""The part of the store that keeps files, in two tables: what is known of them, and their contents."""

from __future__ import annotations

from typing import Final

import apsw

from gateway.domain.chat import SessionKey
from gateway.domain.file import KeptFile
from gateway.store.port import Store
from gateway.store.shared.documents import storable
from gateway.store.shared.fields import FILE
from gateway.store.sqlite.codec import marks
from gateway.store.sqlite.connection import change, many, one
from gateway.store.sqlite.database import Database

COLUMNS: Final = ", ".join(FILE.names)


class FilingStore(Store):
    """Files in an open `Database`. Contents are read in the reader's thread: they may be long."""

    _database: Database

    async def keep_file(self, key: SessionKey, file: KeptFile, content: bytes) -> KeptFile:
        return await self._database.writer.run(lambda connection: put(connection, key, file, content))

    async def kept_file(self, key: SessionKey, ref: str) -> KeptFile | None:
        return self._database.look(lambda connection: by_ref(connection, key, ref))

    async def kept_files(self, key: SessionKey, limit: int) -> list[KeptFile]:
        rows = await self._database.read(
            lambda connection: many(
                connection,
                f"SELECT {COLUMNS} FROM files WHERE key = ? ORDER BY at DESC, ref DESC LIMIT ?",
                (str(key), limit),
            )
        )
        return [FILE.of_row(row) for row in rows]

    async def file_content(self, key: SessionKey, digest: str) -> bytes | None:
        row = await self._database.read(
            lambda connection: one(
                connection, "SELECT content FROM contents WHERE key = ? AND digest = ?", (str(key), storable(digest))
            )
        )
        return None if row is None else bytes(row[0])


def put(connection: apsw.Connection, key: SessionKey, file: KeptFile, content: bytes) -> KeptFile:
    """Keep a file unless one of this ref is kept; returns the one that is."""
    known = by_ref(connection, key, file.ref)
    if known is not None:
        return known
    change(
        connection,
        "INSERT INTO contents(key, digest, content) VALUES (?,?,?) ON CONFLICT DO NOTHING",
        (str(key), file.digest, content),
    )
    facts = FILE.facts(file).values()
    change(connection, f"INSERT INTO files(key, {COLUMNS}) VALUES (?,{marks(COLUMNS)})", (str(key), *facts))
    kept = by_ref(connection, key, file.ref)
    assert kept is not None
    return kept


def by_ref(connection: apsw.Connection, key: SessionKey, ref: str) -> KeptFile | None:
    """The file of this ref."""
    row = one(connection, f"SELECT {COLUMNS} FROM files WHERE key = ? AND ref = ?", (str(key), storable(ref)))
    return None if row is None else FILE.of_row(row)
