"""The full-text index: a message is entered once, and its entry is never rewritten.

At the end of each transaction the index takes the messages that the transaction stored (those above the highest rowid
at its beginning), so that FTS5 writes its segments once for each commit and not for each operation. Results of tools
stand in the same table under other owners: a search for people's words does not meet them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Final

import apsw

from gateway.domain.chat import SessionKey
from gateway.domain.message import Message, said_in
from gateway.store.records import Found
from gateway.store.shared import text
from gateway.store.shared.searchable import KINDS, RETURNED, Kind, kind_of, owner_of, terms_of
from gateway.store.sqlite.connection import change, many, one
from gateway.store.sqlite.messages import MESSAGE_COLUMNS, message_from, message_of

_OWNER: Final = 12  # bytes of a key's digest
_PAGE: Final = 50  # candidates read at a time while some fail the check against the text


@contextmanager
def indexing(connection: apsw.Connection) -> Iterator[None]:
    """Index the messages that a transaction stores, at the transaction's end."""
    before = _highest(connection)
    yield
    rows = many(
        connection,
        "SELECT id, key, body, note FROM messages WHERE id > ?",
        (before,),
    )
    for number, key, body, note in rows:
        enter(connection, number, key, message_of(body, note))


def enter(connection: apsw.Connection, number: int, key: str, message: Message) -> None:
    """Index a message, if a search should find the message; an entry that is there is made anew."""
    kind = kind_of(message)
    terms = terms_of(message) if kind else []
    if terms:
        owner = owner_of(key, size=_OWNER)
        if kind == "returned":
            owner = f"{owner}{RETURNED} {RETURNED}"  # a term of the key's results, and one of all results
        change(
            connection,
            "INSERT OR REPLACE INTO message_search(rowid, owner, terms) VALUES (?,?,?)",
            (number, owner, " ".join(terms)),
        )


def search(connection: apsw.Connection, words: str, key: SessionKey | None, limit: int) -> list[Found]:
    """Original messages holding all the words: what was said, newest first, then what tools returned."""
    wanted = text.query(words)
    found: list[Found] = []
    for kind in KINDS if wanted else ():
        found += _search(connection, wanted, _expression(wanted, key, kind), limit - len(found))
    return found


def _search(connection: apsw.Connection, wanted: text.Query, expression: str, limit: int) -> list[Found]:
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


def _expression(wanted: text.Query, key: SessionKey | None, kind: Kind) -> str:
    """An FTS5 query. Terms hold no quotes: they are letters, digits and marks only."""
    needed = [f'"{term}"' for term in wanted.terms] + [f'"{prefix}" *' for prefix in wanted.prefixes]
    expression = f"terms : ({' AND '.join(needed)})"
    if key is not None:
        return f'owner : "{owner_of(str(key), size=_OWNER)}{RETURNED if kind == "returned" else ""}" AND {expression}'
    return f'{expression} {"AND" if kind == "returned" else "NOT"} owner : "{RETURNED}"'


def _highest(connection: apsw.Connection) -> int:
    row = one(connection, "SELECT max(id) FROM messages")
    return (row and row[0]) or 0
