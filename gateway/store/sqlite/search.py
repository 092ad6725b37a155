"""The full-text index: filled once per message, never rewritten, and asked by people.

Filled at the end of each transaction with the messages it stored (those above the highest rowid
it began with), so that FTS5 writes its segments once per commit and not once per operation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from itertools import islice

import apsw

from gateway.domain.chat import SessionKey
from gateway.domain.message import said_in
from gateway.store import text
from gateway.store.base import Found
from gateway.store.sqlite.codec import MESSAGE_COLUMNS, message_from, message_of
from gateway.store.sqlite.connection import change, many, one

_ORIGINAL = "role IN ('user', 'assistant')"
_PAGE = 50  # candidates read at a time while some fail the check against the text


@contextmanager
def indexing(connection: apsw.Connection) -> Iterator[None]:
    """Index, at its end, the messages that were stored within; for the writer's transactions."""
    before = _highest(connection)
    yield
    rows = many(
        connection,
        f"SELECT id, key, body, note FROM messages WHERE id > ? AND {_ORIGINAL}",
        (before,),
    )
    for number, key, body, note in rows:
        if not is_rewritten(note):
            enter(connection, number, key, said_in(message_of(body, note)))


def enter(connection: apsw.Connection, number: int, key: str, content: str) -> None:
    """Index the text of one original message; one that is indexed already is indexed anew."""
    terms = text.terms(content)
    if terms:
        change(
            connection,
            "INSERT OR REPLACE INTO message_search(rowid, owner, terms) VALUES (?,?,?)",
            (number, _owner(key), " ".join(terms)),
        )


def search(connection: apsw.Connection, words: str, key: SessionKey | None, limit: int) -> list[Found]:
    """Original messages holding all the words, newest first."""
    wanted = text.query(words)
    if not wanted or limit < 1:
        return []
    expression = _expression(wanted, key)
    found: list[Found] = []
    below = 2**63 - 1
    while len(found) < limit:
        rows = many(
            connection,
            f"SELECT m.session_id, {MESSAGE_COLUMNS} FROM message_search f JOIN messages m ON m.id = f.rowid"
            " WHERE message_search MATCH ? AND f.rowid < ? ORDER BY f.rowid DESC LIMIT ?",
            (expression, below, _PAGE),
        )
        hits = (Found(session_id=row[0], message=message_from(row[1:]), at=row[5]) for row in rows)
        good = (hit for hit in hits if text.holds_runs(said_in(hit.message), wanted))
        found.extend(islice(good, limit - len(found)))
        if len(rows) < _PAGE:
            break
        below = rows[-1][1]
    return found


def _expression(wanted: text.Query, key: SessionKey | None) -> str:
    """An FTS5 query. Terms hold no quotes: they are letters, digits and marks only."""
    needed = [f'"{term}"' for term in wanted.terms] + [f'"{prefix}" *' for prefix in wanted.prefixes]
    expression = f"terms : ({' AND '.join(needed)})"
    return expression if key is None else f'owner : "{_owner(str(key))}" AND {expression}'


def _owner(key: str) -> str:
    """A key as one term, so that a search within it touches nobody else's messages."""
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def is_rewritten(note: str | None) -> bool:
    """Whether a compaction wrote this message: a summary, a fallback, a stub."""
    if note is None:
        return False
    facts = json.loads(note)
    return bool(facts.get("summary") or facts.get("fallback") or facts.get("derived_from"))


def _highest(connection: apsw.Connection) -> int:
    row = one(connection, "SELECT max(id) FROM messages")
    return (row and row[0]) or 0
