"""A key's pins, and the prompt of its session that holds them."""

from __future__ import annotations

import apsw

from gateway.domain.chat import SessionKey
from gateway.domain.pin import Pins
from gateway.domain.session import Session
from gateway.runtime.errors import SessionConflict
from gateway.store.records import Rebuilt
from gateway.store.shared.documents import pins_from, pins_json
from gateway.store.sqlite import sessions
from gateway.store.sqlite.connection import change, one


def of_key(connection: apsw.Connection, key: SessionKey) -> Pins:
    """No pins if it never had any."""
    row = one(connection, "SELECT rules FROM pins WHERE key = ?", (str(key),))
    return Pins() if row is None else pins_from(row[0])


def put(connection: apsw.Connection, key: SessionKey, pins: Pins) -> None:
    """Write a key's pins as they are."""
    change(
        connection,
        "INSERT INTO pins(key, rules) VALUES (?,?) ON CONFLICT (key) DO UPDATE SET rules = excluded.rules",
        (str(key), pins_json(pins)),
    )


def set_(connection: apsw.Connection, key: SessionKey, pins: Pins, rebuilt: Rebuilt | None) -> Session | None:
    """Replace a key's pins, in its present session's prompt, too. Raises SessionConflict."""
    if rebuilt is None:
        if sessions.tip(connection, key) is not None:
            raise SessionConflict("This key has a session, whose prompt must hold its pins.")
        put(connection, key, pins)
        return None
    session = sessions.rebuild(connection, key, rebuilt)
    put(connection, key, pins)
    return session
