"""Queries for people and for inspection. They may lag behind, and run beside the writer."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from math import ceil
from typing import Final

import apsw

from gateway.domain.chat import OutboundState, SessionKey
from gateway.domain.session import Compaction, Session
from gateway.domain.usage import LedgerEntry, UsageTotal
from gateway.runtime.errors import StoreError
from gateway.store.records import OF_DAYS, Backlog, Call, ItemOutcome, Named, Pile, StoreStatus, UsageBy
from gateway.store.shared.fields import COMPACTION, SESSION, USAGE
from gateway.store.sqlite import inbox, messages, outbox, search, sessions
from gateway.store.sqlite.connection import many, one
from gateway.store.sqlite.outbox import UNFINISHED
from gateway.store.sqlite.sessions import COMPACTION_COLUMNS

DEAD: Final[ItemOutcome] = "dead"
_LABELS: Final = {
    "model": "model",
    "purpose": "purpose",
    "platform": "platform",
    "session": "session_id",
    "key": "key",
    "day": "date(at, 'unixepoch')",
}
_DAY: Final = 86_400
_DAYS: Final = f"(SELECT *, day * {_DAY} AS at FROM ledger_days WHERE day >= ?)"
_SUMMED: Final = f"{sessions.USAGE_COLUMNS}, cost_usd"


def listing(connection: apsw.Connection, key: SessionKey | None, limit: int, offset: int = 0) -> list[Session]:
    """Sessions of a key (None: of all), newest first."""
    condition, bindings = ("", ()) if key is None else (" WHERE s.key = ?", (key.text,))
    rows = many(
        connection,
        f"{sessions.SELECT_SESSION}{condition} ORDER BY s.seq DESC LIMIT ? OFFSET ?",
        (*bindings, limit, offset),
    )
    return [SESSION.of_row(row) for row in rows]


def conversations(connection: apsw.Connection, chat: SessionKey, limit: int) -> list[SessionKey]:
    """The keys with sessions of a chat, its threads among them, newest first."""
    rows = many(
        connection,
        "SELECT key FROM sessions WHERE (key = ?1 OR (key > ?1 || '/thread=' AND key < ?1 || '/thread>'))"
        " AND instr(key, '/helper=') = 0 GROUP BY key ORDER BY max(seq) DESC LIMIT ?2",
        (chat.text, limit),
    )
    return [SessionKey.parse(key) for (key,) in rows]


def compactions(connection: apsw.Connection, session_id: str) -> list[Compaction]:
    """The compactions that ended or opened a session, oldest first."""
    rows = many(
        connection,
        f"SELECT {COMPACTION_COLUMNS} FROM compactions WHERE parent_id = ? OR child_id = ? ORDER BY id",
        (session_id, session_id),
    )
    return [COMPACTION.of_row(row) for row in rows]


def usage(
    connection: apsw.Connection, since: float, by: UsageBy, session_id: str | None = None, key: SessionKey | None = None
) -> list[UsageTotal]:
    """Ledger totals from `since` on, most expensive first."""
    label, conditions, days = _LABELS[by], ["at >= ?"], ""
    bindings: list[float | str] = [since]
    if session_id is not None:
        # The ledger's index is by key, so a session's entries are found through the session's key.
        conditions += ["key = (SELECT key FROM sessions WHERE id = ?)", "session_id = ?"]
        bindings += [session_id, session_id]
    if key is not None:
        conditions.append("key = ?")
        bindings.append(key.text)
    if len(bindings) == 1 and by in OF_DAYS:
        whole = ceil(since / _DAY)  # the first day of which all counts: its sums are kept, and those of later ones
        conditions.append("at < ?")
        days = f" UNION ALL SELECT {label}, calls, {_SUMMED}, unpriced_calls FROM {_DAYS}"
        bindings += [whole * _DAY, whole]
    rows = many(
        connection,
        f"SELECT label, sum(calls), {', '.join(f'sum({name})' for name in USAGE.names)}, total(cost_usd), sum(unpriced)"
        f" FROM (SELECT {label} AS label, 1 AS calls, {_SUMMED}, cost_usd IS NULL AS unpriced FROM ledger"
        f" WHERE {' AND '.join(conditions)}{days})"
        " GROUP BY 1 ORDER BY 8 DESC, sum(input_tokens + output_tokens) DESC, 1",
        bindings,
    )
    return [
        UsageTotal(label=row[0], calls=row[1], usage=USAGE.of_row(row[2:7]), cost_usd=row[7], unpriced_calls=row[8])
        for row in rows
    ]


def calls(connection: apsw.Connection, key: SessionKey, since: float, until: float) -> list[Call]:
    """The model calls of a key between two moments, oldest first."""
    rows = many(
        connection,
        f"SELECT at, session_id, purpose, provider, model, cost_usd, {sessions.USAGE_COLUMNS} FROM ledger"
        " WHERE key = ? AND at BETWEEN ? AND ? ORDER BY at, id",
        (key.text, since, until),
    )
    return [
        Call(
            session_id=session_id,
            entry=LedgerEntry(
                at=at, purpose=purpose, provider=provider, model=model, usage=USAGE.of_row(used), cost_usd=cost
            ),
        )
        for at, session_id, purpose, provider, model, cost, *used in rows
    ]


def named(connection: apsw.Connection, name: str, platforms: Collection[str]) -> Named:
    """Items, a message and a row that have this name."""
    with suppress(StoreError):  # no message has a name of another form
        return Named(
            fates=tuple(inbox.fates(connection, name, platforms)),
            message=messages.by_number(connection, messages.message_number(name)),
            row=outbox.by_id(connection, name),
        )
    return Named(fates=tuple(inbox.fates(connection, name, platforms)), row=outbox.by_id(connection, name))


_DANGLING: Final = {
    "places of transcripts without a message": "transcript t LEFT JOIN messages m ON m.id = t.message_id WHERE m.id IS"
    " NULL",
    "sessions without a prompt": "sessions s LEFT JOIN prompts p ON p.session_id = s.id WHERE p.session_id IS NULL",
    "keys whose session is not there": "tips t LEFT JOIN sessions s ON s.id = t.session_id WHERE s.id IS NULL",
}


def dangling(connection: apsw.Connection) -> dict[str, int]:
    """Counts of rows that refer to rows which are not there, by what they are; all of the file is read."""
    counts = {what: one(connection, f"SELECT count(*) FROM {rows}") for what, rows in _DANGLING.items()}
    return {what: row[0] if row else 0 for what, row in counts.items()}


# Each walks an index that holds nothing but what waits.
_WAITING: Final = (
    "SELECT platform, count(*), min(accepted_at) FROM inbox INDEXED BY inbox_unfinished WHERE outcome IS NULL"
    " GROUP BY platform"
)
_UNSENT: Final = (
    f"SELECT platform, state, count(*), min(iif(state = '{OutboundState.STREAMING}', NULL, created_at))"
    f" FROM outbox INDEXED BY outbox_unfinished WHERE {UNFINISHED} GROUP BY platform, state"
)
_DEAD: Final = f"SELECT count(*) FROM inbox INDEXED BY inbox_dead WHERE outcome = '{DEAD}'"


def backlog(connection: apsw.Connection) -> Backlog:
    """What waits, over all platforms; which lanes are idle only the process knows that runs them."""
    waiting = many(connection, _WAITING, ())
    dead = one(connection, _DEAD)
    return Backlog(
        waiting={platform: Pile(count=count, oldest=oldest) for platform, count, oldest in waiting},
        unsent={
            (platform, state): Pile(count=count, oldest=oldest)
            for platform, state, count, oldest in many(connection, _UNSENT, ())
        },
        dead=dead[0] if dead else 0,
    )


def status(connection: apsw.Connection, platforms: Collection[str] | None = None) -> StoreStatus:
    """Counts over everything; what waits and what is unsent of these platforms (None: of all)."""
    among = "" if platforms is None else f" AND platform IN ({', '.join('?' * len(platforms))})"
    row = one(
        connection,
        f"SELECT (SELECT count(*) FROM inbox WHERE outcome IS NULL{among}),"
        f" (SELECT count(*) FROM outbox WHERE {UNFINISHED}{among}),"
        f" ({_DEAD}),"
        " (SELECT count(*) FROM sessions)",
        (*(platforms or ()), *(platforms or ())),
    )
    assert row is not None
    return StoreStatus(waiting=row[0], unsent=row[1], dead=row[2], sessions=row[3], unindexed=search.left(connection))
