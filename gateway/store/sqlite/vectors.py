"""Vectors of messages beside their index. `meta` says whose they are, and which messages were looked at: those between
two numbers, so that new messages come first and old ones follow. The file deletes a vector with its message."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Final

import apsw

from gateway.domain.chat import SessionKey
from gateway.domain.message import said_in
from gateway.store.records import Meaning, Unembedded, Vector
from gateway.store.shared.searchable import kind_of
from gateway.store.shared.vectors import MOST, by_signs, nearest, size_of
from gateway.store.sqlite.connection import change, many, one
from gateway.store.sqlite.messages import message_of

_STATE: Final = "vectors"  # in `meta`
_TOP: Final = (1 << 63) - 1


def unembedded(connection: apsw.Connection, model: str, length: int, limit: int) -> list[Unembedded]:
    """Messages of one conversation that were not looked at: new ones, oldest first, or else old ones, newest first."""
    of, size, lowest, highest = _state(connection)
    if of != model or (length and size and length != size):
        lowest, highest = _TOP, _TOP
    columns = "SELECT key, id, session_id, body, note FROM messages WHERE"
    rows = many(connection, f"{columns} id > ? ORDER BY id LIMIT ?", (highest, limit))
    rows = rows or many(connection, f"{columns} id < ? ORDER BY id DESC LIMIT ?", (lowest, limit))
    found = []
    for key, number, session_id, body, note in takewhile(lambda row: row[0] == rows[0][0], rows):
        message = message_of(body, note)
        text = said_in(message) if kind_of(message) == "said" else ""
        found.append(Unembedded(message_id=str(number), key=SessionKey.parse(key), session_id=session_id, text=text))
    return found


def keep(connection: apsw.Connection, model: str, vectors: Mapping[str, Vector]) -> None:
    """Keep vectors of messages that are still there, and note which ones were looked at."""
    of, length, lowest, highest = _state(connection)
    size = size_of(vectors)
    if of != model or (size and length and size != length):
        change(connection, "DELETE FROM message_vectors")
        length, lowest, highest = 0, _TOP, 0
    numbers = {int(name): each for name, each in vectors.items()}
    for number, (signs, values) in numbers.items():
        if values:
            put = "INSERT OR REPLACE INTO message_vectors SELECT id, ?2, ?3 FROM messages WHERE id = ?1"
            change(connection, put, (number, signs, values))
    state = (model, size or length, min(lowest, *numbers), max(highest, *numbers))
    put = "INSERT INTO meta(name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2"
    change(connection, put, (_STATE, json.dumps(state)))


def nearest_to(connection: apsw.Connection, meaning: Meaning, among: Sequence[int] | None) -> list[int]:
    """The messages among these (None: all) that mean nearly the same, nearest first."""
    if _state(connection)[0] != meaning.model:
        return []
    if among is None:
        newest = "SELECT id, signs FROM message_vectors ORDER BY id DESC LIMIT ?"
        rows = [(row[0], row[1]) for row in many(connection, newest, (MOST,))]
    else:
        rows = _of(connection, "signs", among[-MOST:])
    near = by_signs(meaning.vector[0], rows)
    return nearest(meaning.vector[1], _of(connection, "numbers", near))


def _of(connection: apsw.Connection, column: str, numbers: Sequence[int]) -> list[tuple[int, bytes]]:
    found = f"SELECT id, {column} FROM message_vectors WHERE id IN (SELECT value FROM json_each(?))"
    return [(row[0], row[1]) for row in many(connection, found, (json.dumps(list(numbers)),))]


def _state(connection: apsw.Connection) -> tuple[str, int, int, int]:
    """The model, the length of its vectors, and the lowest and the highest message that was looked at."""
    row = one(connection, "SELECT value FROM meta WHERE name = ?", (_STATE,))
    model, length, lowest, highest = json.loads(row[0]) if row else ("", 0, _TOP, 0)
    return model, length, lowest, highest
