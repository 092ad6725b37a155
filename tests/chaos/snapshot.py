"""The database between two processes, read as plain rows: what must never change can be compared."""

from __future__ import annotations

import sqlite3
from collections.abc import Set
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Row = tuple[Any, ...]

_ROWS = (
    "SELECT key, doc ->> '$.out.kind', doc ->> '$.out.text', doc ->> '$.out.answers',"
    " ifnull(doc ->> '$.out.state', 'pending') FROM \"row\" ORDER BY rows_at"
)
_COMPACTIONS = (
    "SELECT key, doc ->> '$.compaction.trigger', doc ->> '$.compaction.parent_id', doc ->> '$.compaction.child_id'"
    " FROM compaction ORDER BY key"
)


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
                (row[0], row[1]): row[2] for row in rows("SELECT name, place, number FROM series ORDER BY name, place")
            },
            inbox={
                row[0]: row[1:]
                for row in rows(
                    "SELECT substr(e.key, instr(e.key, '/') + 1), i.key, i.heard, i.doc ->> '$.outcome',"
                    " ifnull(i.doc ->> '$.attempts', 0), ifnull(i.doc ->> '$.bypass', 0)"
                    " FROM event e JOIN item i ON i.key = e.doc ->> '$.item' ORDER BY i.key"
                )
            },
            sessions={
                row[0]: row[1:]
                for row in rows(
                    "SELECT key, of_key, doc ->> '$.session.end_reason', doc ->> '$.session.ended_at',"
                    " ifnull(doc ->> '$.session.hook', 'none'),"
                    " doc ->> '$.session.continuation_id', doc ->> '$.session.started_at'"
                    " FROM session ORDER BY sessions_at"
                )
            },
            outbox={row[0]: row[1:] for row in rows(_ROWS)},
            compactions=rows(_COMPACTIONS),
            tips=dict(rows("SELECT present, key FROM session WHERE present IS NOT NULL")),
        )


def settled(path: Path, events: Set[str]) -> bool:
    """Say whether a running gateway has all these events, and has nothing left to do, to show or to tell."""
    if not _is_made(path):
        return False
    left = (
        "SELECT (SELECT count(*) FROM item WHERE doc ->> '$.outcome' IS NULL)"
        " + (SELECT count(*) FROM \"row\" WHERE ifnull(doc ->> '$.out.state', 'pending') NOT IN ('sent', 'refused'))"
        " + (SELECT count(*) FROM session WHERE owed IS NOT NULL)"
    )
    with closing(sqlite3.connect(path)) as connection:
        known = {row[0] for row in connection.execute("SELECT substr(key, instr(key, '/') + 1) FROM event")}
        return events <= known and connection.execute(left).fetchone() == (0,)


def _is_made(path: Path) -> bool:
    if not path.exists():
        return False
    with closing(sqlite3.connect(path)) as connection:
        made = connection.execute("SELECT 1 FROM sqlite_master WHERE name IN ('message', 'session')").fetchall()
    return len(made) > 1


def pass_a_week(path: Path) -> None:
    """Make every open session as old as it is after more than a week's silence: its time is over."""
    if _is_made(path):
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(
                "UPDATE session SET due_at = due_at - :gone, doc = json_set(doc,"
                " '$.session.last_active_at', doc ->> '$.session.last_active_at' - :gone,"
                " '$.session.expires_at', doc ->> '$.session.expires_at' - :gone)"
                " WHERE present IS NOT NULL AND due IS NOT NULL",
                {"gone": 8 * 86_400},
            )
