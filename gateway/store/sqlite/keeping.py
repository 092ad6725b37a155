"""Files and pins, which are kept for a key beside its conversations; and notes in folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import apsw

from gateway.domain.chat import KeptFile, SessionKey
from gateway.domain.rule import Pins
from gateway.domain.session import Session
from gateway.runtime.errors import SessionConflict
from gateway.store.records import Rebuilt
from gateway.store.shared.documents import pins_from, pins_json, storable
from gateway.store.shared.fields import FILE
from gateway.store.sqlite import sessions
from gateway.store.sqlite.connection import change, many, marks, one

UNDER: Final = "substr(account, instr(account || ' ', ' ') + 1)"  # the key that a folder lies under, if it is a key
FILE_COLUMNS: Final = ", ".join(FILE.names)

# -- files --------------------------------------------------------------------------------------


def keep_file(connection: apsw.Connection, key: SessionKey, file: KeptFile, content: bytes) -> KeptFile:
    """Keep a file, unless the key has a file of this ref; returns the file that is kept."""
    known = kept_file(connection, key, file.ref)
    if known is not None:
        return known
    change(
        connection,
        "INSERT INTO contents(key, digest, content) VALUES (?,?,?) ON CONFLICT DO NOTHING",
        (key.text, file.digest, content),
    )
    facts = FILE.row(file)
    change(connection, f"INSERT INTO files(key, {FILE_COLUMNS}) VALUES (?,{marks(FILE_COLUMNS)})", (key.text, *facts))
    kept = kept_file(connection, key, file.ref)
    assert kept is not None
    return kept


def kept_file(connection: apsw.Connection, key: SessionKey, ref: str) -> KeptFile | None:
    """The file of this ref."""
    row = one(connection, f"SELECT {FILE_COLUMNS} FROM files WHERE key = ? AND ref = ?", (key.text, storable(ref)))
    return None if row is None else FILE.of_row(row)


def kept_files(connection: apsw.Connection, key: SessionKey, limit: int) -> list[KeptFile]:
    """A key's files, newest first."""
    query = f"SELECT {FILE_COLUMNS} FROM files WHERE key = ? ORDER BY at DESC, ref DESC LIMIT ?"
    return [FILE.of_row(row) for row in many(connection, query, (key.text, limit))]


def file_content(connection: apsw.Connection, key: SessionKey, digest: str) -> bytes | None:
    """The content of one of a key's files."""
    query = "SELECT content FROM contents WHERE key = ? AND digest = ?"
    row = one(connection, query, (key.text, storable(digest)))
    return None if row is None else bytes(row[0])


def drop_files(connection: apsw.Connection, key: SessionKey, refs: Sequence[str]) -> None:
    """Keep these files no more, nor contents that no other file of the key has."""
    for ref in refs:
        change(connection, "DELETE FROM files WHERE key = ? AND ref = ?", (key.text, storable(ref)))
    if refs:
        change(
            connection,
            "DELETE FROM contents WHERE key = ?1 AND digest NOT IN (SELECT digest FROM files WHERE key = ?1)",
            (key.text,),
        )


# -- pins ---------------------------------------------------------------------------------------


def pins(connection: apsw.Connection, key: SessionKey) -> Pins:
    """No pins if the key never had any."""
    row = one(connection, "SELECT rules FROM pins WHERE key = ?", (key.text,))
    return Pins() if row is None else pins_from(row[0])


def put_pins(connection: apsw.Connection, key: SessionKey, pins: Pins) -> None:
    """Write a key's pins as they are."""
    change(
        connection,
        "INSERT INTO pins(key, rules) VALUES (?,?) ON CONFLICT (key) DO UPDATE SET rules = excluded.rules",
        (key.text, pins_json(pins)),
    )


def set_pins(connection: apsw.Connection, key: SessionKey, pins: Pins, rebuilt: Rebuilt | None) -> Session | None:
    """Replace a key's pins, in its present session's prompt, too. Raises SessionConflict."""
    if rebuilt is None and sessions.tip(connection, key) is not None:
        raise SessionConflict("This key has a session, whose prompt must hold its pins.")
    session = None if rebuilt is None else sessions.rebuild(connection, key, rebuilt)
    put_pins(connection, key, pins)
    return session


# -- notes --------------------------------------------------------------------------------------


def notes(connection: apsw.Connection, folder: str) -> dict[str, str]:
    """A folder's notes."""
    return dict(many(connection, "SELECT name, value FROM notes WHERE account = ?", (storable(folder),)))


def folders(connection: apsw.Connection, key: SessionKey) -> list[str]:
    """The folders under a key."""
    return [row[0] for row in many(connection, f"SELECT DISTINCT account FROM notes WHERE {UNDER} = ?", (str(key),))]


def set_notes(
    connection: apsw.Connection, folder: str, changes: Mapping[str, str | None], still: Mapping[str, str | None] | None
) -> bool:
    """Write notes, and forget those that are None; False: those of `still` are not as they were."""
    known = notes(connection, folder) if still else {}
    if any(known.get(name) != text for name, text in (still or {}).items()):
        return False
    for name, text in changes.items():
        if text is None:
            change(connection, "DELETE FROM notes WHERE account = ? AND name = ?", (storable(folder), storable(name)))
        else:
            row = (storable(folder), storable(name), storable(text))
            change(connection, "INSERT OR REPLACE INTO notes(account, name, value) VALUES (?, ?, ?)", row)
    return True
