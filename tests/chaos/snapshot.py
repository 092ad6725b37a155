"""The database between two processes, read as plain rows: what must never change can be compared."""

from __future__ import annotations

import sqlite3
from collections.abc import Set
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Tables by their keys. Messages: id → (key, session, role, body, note, tokens, at); transcripts:
    (session, position) → message id; inbox: event id → (id, key, outcome, attempts, bypass); ended
    sessions: id → (key, reason, ended_at, hook, continuation); outbox: id → (kind, text, answers,
    state); compactions: (id, trigger, parent, child)."""

    messages: dict[int, Row]
    transcripts: dict[tuple[str, int], int]
    inbox: dict[str, Row]
    sessions: dict[str, Row]
    outbox: dict[str, Row]
    compactions: list[Row]
    tips: dict[str, str]


def snapshot(path: Path) -> Snapshot:
    """Read everything; an empty one if there is no database yet, or none whose making was finished."""
    if not _is_made(path):
        return Snapshot(messages={}, transcripts={}, inbox={}, sessions={}, outbox={}, compactions=[], tips={})
    with closing(sqlite3.connect(path)) as connection:

        def rows(query: str) -> list[Row]:
            return connection.execute(query).fetchall()

        return Snapshot(
            messages={
                row[0]: row[1:]
                for row in rows("SELECT id, key, session_id, role, body, note, tokens, at FROM messages ORDER BY id")
            },
            transcripts={
                (row[0], row[1]): row[2]
                for row in rows("SELECT session_id, position, message_id FROM transcript ORDER BY session_id, position")
            },
            inbox={
                row[0]: row[1:]
                for row in rows("SELECT event_id, id, key, outcome, attempts, bypass FROM inbox ORDER BY id")
            },
            sessions={
                row[0]: row[1:]
                for row in rows(
                    "SELECT id, key, end_reason, ended_at, hook, continuation_id, started_at FROM sessions ORDER BY seq"
                )
            },
            outbox={row[0]: row[1:] for row in rows("SELECT id, kind, text, answers, state FROM outbox ORDER BY seq")},
            compactions=rows('SELECT id, "trigger", parent_id, child_id FROM compactions ORDER BY id'),
            tips=dict(rows("SELECT key, session_id FROM tips")),
        )


def settled(path: Path, events: Set[str]) -> bool:
    """Say whether a running gateway has all these events, and has nothing left to do, to show or to tell."""
    if not _is_made(path):
        return False
    left = (
        "SELECT (SELECT count(*) FROM inbox WHERE outcome IS NULL)"
        " + (SELECT count(*) FROM outbox WHERE state NOT IN ('sent', 'refused'))"
        " + (SELECT count(*) FROM sessions WHERE hook = 'pending')"
    )
    with closing(sqlite3.connect(path)) as connection:
        known = {row[0] for row in connection.execute("SELECT event_id FROM inbox")}
        return events <= known and connection.execute(left).fetchone() == (0,)


def _is_made(path: Path) -> bool:
    if not path.exists():
        return False
    with closing(sqlite3.connect(path)) as connection:
        made = connection.execute("SELECT 1 FROM sqlite_master WHERE name IN ('messages', 'tips')").fetchall()
    return len(made) > 1


def pass_a_week(path: Path) -> None:
    """Make every open session as old as it is after more than a week's silence: its time is over."""
    if _is_made(path):
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(
                "UPDATE sessions SET last_active_at = last_active_at - :gone, expires_at = expires_at - :gone"
                " WHERE ended_at IS NULL",
                {"gone": 8 * 86_400},
            )
