"""Chats in which nothing can be shown any more."""

from __future__ import annotations

import apsw

from gateway.store.shared.documents import storable
from gateway.store.sqlite.connection import change, one


def reason(connection: apsw.Connection, lane: str) -> str | None:
    """Why the chat is closed; None: it is not."""
    row = one(connection, "SELECT reason FROM closed_chats WHERE lane = ?", (lane,))
    return None if row is None else str(row[0])


def close(connection: apsw.Connection, lane: str, why: str) -> None:
    """Close a chat; its rows that wait are refused."""
    put(connection, lane, why)
    refuse_waiting(connection, lane, why)


def put(connection: apsw.Connection, lane: str, why: str) -> None:
    """Note that a chat is closed."""
    change(connection, "INSERT OR REPLACE INTO closed_chats(lane, reason) VALUES (?, ?)", (lane, storable(why)))


def reopen(connection: apsw.Connection, lane: str) -> None:
    """Open a chat; what is being sent there was begun before."""
    change(connection, "DELETE FROM closed_chats WHERE lane = ?", (lane,))
    change(
        connection,
        "UPDATE outbox SET heard = 1 WHERE lane = ?"
        " AND state IN ('streaming', 'pending', 'sending') AND state = 'sending'",  # the first is the index's condition
        (lane,),
    )


def refuse_waiting(connection: apsw.Connection, lane: str, why: str, generation: int | None = None) -> None:
    """End the rows of a closed chat that wait, and with `generation` those that only an earlier one was sending."""
    change(
        connection,
        "UPDATE outbox SET state = 'refused', error = ?1 WHERE lane = ?2"
        " AND (state = 'pending' OR (state = 'sending' AND claim != ?3))",  # nothing differs from NULL
        (storable(why), lane, generation),
    )
