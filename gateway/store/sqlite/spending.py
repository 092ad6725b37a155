"""Accounts of spend caps: money spent, and money reserved for calls under way. And the silence that platforms asked
for.

A reservation counts as spent at once, so that a crash needs no repair: the crash leaves behind only the note that
could have corrected the sum.
"""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from gateway.store.records import ACCOUNT_KEPT, CapReached, Reservation
from gateway.store.shared.documents import storable
from gateway.store.sqlite.connection import change, many, one


def reserve(connection: apsw.Connection, reservation: Reservation, now: float, generation: int) -> CapReached | None:
    """Count a reservation under all its caps, or under none."""
    change(connection, "DELETE FROM reservations WHERE generation < ?", (generation,))
    change(connection, "DELETE FROM spending WHERE forget_at IS NOT NULL AND forget_at < ?", (now,))
    new = [cap for cap in reservation.caps if _reserved(connection, reservation, cap.account, generation) is None]
    for cap in new:
        (present,) = spent(connection, [cap.account])
        if present + reservation.amount > cap.limit:
            return CapReached(cap=cap, spent=present)
    for cap in new:
        account = storable(cap.account)
        change(
            connection,
            "INSERT INTO spending(account, spent, forget_at) VALUES (?, ?, ?)"
            " ON CONFLICT (account) DO UPDATE SET spent = spent + excluded.spent",
            (account, reservation.amount, None if cap.resets_at is None else cap.resets_at + ACCOUNT_KEPT),
        )
        change(
            connection,
            "INSERT INTO reservations(generation, id, account, amount) VALUES (?, ?, ?, ?)",
            (generation, storable(reservation.id), account, reservation.amount),
        )
    return None


def settle(connection: apsw.Connection, reservation: Reservation, cost: int, generation: int) -> None:
    """Correct each account by the difference, if that was not done before."""
    for cap in reservation.caps:
        amount = _reserved(connection, reservation, cap.account, generation)
        if amount is None:
            continue
        account = storable(cap.account)
        change(connection, "UPDATE spending SET spent = spent + ? WHERE account = ?", (cost - amount, account))
        change(
            connection,
            "DELETE FROM reservations WHERE generation = ? AND id = ? AND account = ?",
            (generation, storable(reservation.id), account),
        )


def spent(connection: apsw.Connection, accounts: Sequence[str]) -> list[int]:
    """Money spent and reserved under each account."""
    rows = (one(connection, "SELECT spent FROM spending WHERE account = ?", (storable(each),)) for each in accounts)
    return [int(row[0]) if row is not None else 0 for row in rows]


def _reserved(connection: apsw.Connection, reservation: Reservation, account: str, generation: int) -> int | None:
    row = one(
        connection,
        "SELECT amount FROM reservations WHERE generation = ? AND id = ? AND account = ?",
        (generation, storable(reservation.id), storable(account)),
    )
    return int(row[0]) if row is not None else None


def rest(connection: apsw.Connection, account: str, bucket: str, until: float, seconds: float) -> None:
    """A platform asked for so many seconds of silence, until then."""
    change(
        connection,
        "INSERT INTO rests(account, bucket, until, seconds) VALUES (?1, ?2, ?3, ?4)"
        " ON CONFLICT DO UPDATE SET until = ?3, seconds = ?4 WHERE until < ?3",
        (storable(account), storable(bucket), until, seconds),
    )


def rests(connection: apsw.Connection, now: float) -> list[tuple[str, str, float, float]]:
    """(account, bucket, until when, how many seconds) of each silence that was asked for and is not over."""
    change(connection, "DELETE FROM rests WHERE until <= ?", (now,))
    return many(connection, "SELECT account, bucket, until, seconds FROM rests")
