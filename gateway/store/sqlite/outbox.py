"""Outbox rows: each is emitted, claimed (one of a chat at a time) and ended. And the chats in which nothing
can be shown any more.

A row in state `sending` carries the generation of the process that claimed the row. A row of an earlier
generation was being sent when its process died.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from math import inf
from typing import Final

import apsw
from msgspec import Struct

from gateway.domain.chat import (
    KEPT,
    MOST_DOUBTS,
    MOST_IN_ROUND,
    MOST_PLACE,
    PLACED,
    UNSENT,
    WAITING,
    ChatAddress,
    Outbound,
)
from gateway.domain.chat import OutboundState as State
from gateway.runtime.structs import replace
from gateway.store.shared.agenda import Advance
from gateway.store.shared.documents import storable
from gateway.store.shared.fields import OUTBOUND
from gateway.store.shared.platforms import Platforms, chat_name
from gateway.store.sqlite.connection import change, many, one


class Sender(Struct, frozen=True, kw_only=True):
    """The process that claims rows, by its generation; the present time; and the platforms that the process sends
    to."""

    generation: int
    now: float
    platforms: Platforms


def one_of(states: Collection[State]) -> str:
    """Return the condition that a row is in one of these states."""
    return f"state IN ({', '.join(repr(str(state)) for state in states)})"


OUTBOUND_COLUMNS: Final = ", ".join(OUTBOUND.names)
_ANSWERS: Final = ", ".join(f"'{kind}'" for kind in KEPT)
# The state of a row that could not be shown, and may be one day.
_ENDED: Final = (
    f"iif(edits IS NULL AND (kind IN ({_ANSWERS}) OR file IS NOT NULL), '{State.WITHHELD}', '{State.REFUSED}')"
)
_STATE: Final = OUTBOUND.names.index("state")
_AMBIGUOUS: Final = 5 + OUTBOUND.names.index("ambiguous")  # in a row of `_HEAD`
UNFINISHED: Final = one_of(UNSENT)  # in the words of the index
_GIVEN_UP: Final = f"SELECT seq FROM outbox WHERE {one_of((State.REFUSED, State.WITHHELD))}"
# Without this SQLite would look at all the rows that a chat ever had.
_LEFT: Final = "outbox INDEXED BY outbox_unfinished"
_WAITS: Final = one_of(WAITING)
# A reply that streams has no place yet. Two rows may share a place: then the older one is first.
_HEAD = (
    "SELECT seq, state, due_at, claim, (SELECT reason FROM closed_chats c WHERE c.lane = outbox.lane) AS closed,"
    f" {OUTBOUND_COLUMNS} FROM outbox"
    f" WHERE lane = ? AND {UNFINISHED} AND state != '{State.STREAMING}' ORDER BY place, seq LIMIT 1"
)
_IS_SENT: Final = f"lane = ?1 AND {UNFINISHED} AND state = '{State.SENDING}'"  # the second condition is the index's
OF_CHAT: Final = f"EXISTS (SELECT 1 FROM closed_chats WHERE lane = ?1), EXISTS (SELECT 1 FROM {_LEFT} WHERE {_IS_SENT})"
_IN_DOUBT: Final = f"{_WAITS} AND ambiguous > {MOST_DOUBTS}"
_BESIDE: Final = _HEAD.replace(" ORDER BY", f" AND NOT ({_IN_DOUBT}) ORDER BY")
_NEXT: Final = "(SELECT coalesce(max(seq), 0) + 1 FROM outbox)"
_VALUES: Final = {name: f"?{number}" for number, name in enumerate(OUTBOUND.names, start=4)}
_BEFORE: Final = f"{_LEFT} WHERE lane = ?3 AND {UNFINISHED} AND state != '{State.STREAMING}' AND place < {MOST_PLACE}"
_AFTER: Final = (  # the row that is sent or next, and the last one of the same conversation; NULL where nothing waits
    f"max(coalesce((SELECT max(place) FROM {_BEFORE} AND state = '{State.SENDING}'),"
    f" (SELECT min(place) FROM {_BEFORE})), coalesce((SELECT max(place) FROM {_BEFORE} AND key = {_VALUES['key']}), 0))"
)
_ROUND: Final = (
    f"({_AFTER} / {2 * MOST_IN_ROUND} + 1) * {2 * MOST_IN_ROUND} + ({_VALUES['kind']} = 'notice') * {MOST_IN_ROUND}"
)
_FAIR: Final = (
    f"(SELECT max(first, coalesce((SELECT max(place) + 1 FROM {_BEFORE} AND place BETWEEN first"
    f" AND first + {MOST_IN_ROUND - 1}), 0)) FROM (SELECT {_ROUND} AS first))"
)
# The round behind all that the chat has shown. A reply that ends takes no new number, so the numbers alone do not tell.
_AFTERWARDS: Final = (
    f"max({_NEXT}, (SELECT coalesce(max(place) / {2 * MOST_IN_ROUND} + 1, 0) FROM (SELECT place FROM outbox"
    f" INDEXED BY outbox_of_lane WHERE lane = ?3 ORDER BY seq DESC LIMIT 16) WHERE place < {MOST_PLACE}))"
    f" * {2 * MOST_IN_ROUND}"
)
_INSERT: Final = (
    f"INSERT INTO outbox(seq, place, lane, {OUTBOUND_COLUMNS})"
    f" VALUES ({_NEXT}, coalesce(?1, iif(?2, NULL, {_FAIR}), {_AFTERWARDS} + ?2),"
    f" ?3, {', '.join(_VALUES.values())})"
    " ON CONFLICT (id) DO "
)
_STREAMS: Final = f"outbox.state = '{State.STREAMING}'"
_EMIT: Final = (
    f"{_INSERT}UPDATE SET state = excluded.state, kind = excluded.kind, text = excluded.text,"
    f" due_at = excluded.due_at, created_at = iif({_STREAMS}, outbox.created_at, excluded.created_at),"
    f" place = excluded.place, ambiguous = iif({_STREAMS}, outbox.ambiguous, 0), error = NULL, platform_message_id ="
    f" iif({_STREAMS}, coalesce(outbox.platform_message_id, excluded.platform_message_id), NULL)"
    f" WHERE {_STREAMS} OR outbox.state = '{State.WITHHELD}' RETURNING lane"
)
_CLAIM: Final = (
    f"UPDATE outbox SET state = '{State.SENDING}', claim = ?, attempts = attempts + 1, ambiguous = ambiguous + ?,"
    f" heard = 0, place = place - iif(place > {MOST_PLACE}, {MOST_PLACE}, 0) WHERE seq = ?"
)
_SHOW: Final = (
    f"UPDATE outbox SET state = '{State.SENT}', platform_message_id = coalesce(?, platform_message_id), shown_at = ?"
    f" WHERE id = ? AND {one_of(PLACED)} RETURNING lane"
)


def emit(connection: apsw.Connection, outbound: Sequence[Outbound], sender: Sender) -> tuple[Advance, ...]:
    """Store rows in order and advance their chats. A row whose id is known is not stored twice; a streaming row
    gets its final text, and one that was withheld goes out anew."""
    lanes: list[str] = []
    for row in outbound:
        lane, facts = chat_name(row.to), OUTBOUND.row(row)
        facts[_STATE] = State.PENDING
        stored = one(connection, _EMIT, (None, MOST_PLACE if row.unasked else 0, lane, *facts))
        lanes.append(lane if stored is None else str(stored[0]))
    return advance_all(connection, lanes, sender)


def open_streaming(connection: apsw.Connection, reply: Outbound) -> Outbound:
    """Store a reply that starts to stream."""
    opened = replace(reply, state=State.STREAMING)
    insert(connection, opened)
    return opened


def note_streamed(connection: apsw.Connection, outbound_id: str, platform_message_id: str | None) -> None:
    """Keep the platform's id of a streaming reply, or that it has one that nobody knows, unless the reply has ended."""
    known = None if platform_message_id is None else storable(platform_message_id)
    change(
        connection,
        "UPDATE outbox SET platform_message_id = coalesce(?1, platform_message_id), ambiguous = ambiguous + ?2"
        f" WHERE id = ?3 AND state = '{State.STREAMING}'",
        (known, known is None, outbound_id),
    )


def drop_streaming(connection: apsw.Connection, outbound_id: str) -> str | None:
    """End a reply that never got its text; returns its chat."""
    row = one(
        connection,
        f"UPDATE outbox SET state = '{State.REFUSED}', error = 'its turn ended without it'"
        f" WHERE id = ? AND state = '{State.STREAMING}' RETURNING lane",
        (outbound_id,),
    )
    return None if row is None else str(row[0])


def by_id(connection: apsw.Connection, outbound_id: str) -> Outbound | None:
    """One row."""
    row = one(connection, f"SELECT {OUTBOUND_COLUMNS} FROM outbox WHERE id = ?", (outbound_id,))
    return None if row is None else OUTBOUND.of_row(row)


def advance_all(
    connection: apsw.Connection, lanes: Iterable[str], sender: Sender, *, reclaim: bool = False
) -> tuple[Advance, ...]:
    """`advance` for each chat once, in the order given."""
    return tuple(map(partial(advance, connection, sender=sender, reclaim=reclaim), dict.fromkeys(lanes)))


def advance(
    connection: apsw.Connection, lane: str, sender: Sender, *, reclaim: bool = False, shown: bool = False
) -> Advance:
    """Claim the chat's earliest unfinished row if it is due and its platform is sent to.

    With `reclaim`, also a row that was being sent when an earlier process died: the earlier attempt counts as
    ambiguous. With `shown` another row of the chat was just shown.
    """
    row = one(connection, _HEAD, (lane,))
    if row is not None and row[4] is not None:
        refuse_waiting(connection, lane, row[4], sender.generation)
        row = one(connection, _HEAD, (lane,))  # a row that is being sent may be left
    if row is None:
        return Advance(chat=lane)
    again_at = inf
    if row[_AMBIGUOUS] > MOST_DOUBTS and row[1] in WAITING:
        beside = one(connection, _BESIDE, (lane,))
        again_at = sender.now if shown else row[2]
        if beside is not None and (again_at > sender.now or beside[1] == State.SENDING):
            row = beside
        else:
            row = (row[0], row[1], again_at, *row[3:])
    seq, state, due_at, claim, _ = row[:5]
    orphaned = state == State.SENDING and claim != sender.generation
    if state in WAITING and (due_at > sender.now or not sender.platforms.has_chat_of(lane)):
        return Advance(chat=lane, due_at=min(due_at, again_at))
    if state not in WAITING and not (reclaim and orphaned):
        return Advance(chat=lane, due_at=0.0 if orphaned else None)
    change(connection, _CLAIM, (sender.generation, orphaned, seq))
    head = OUTBOUND.of_row(row[5:])
    if head.edits is not None and head.platform_message_id is None:
        head = _placed(connection, head)
    claimed = replace(head, state=State.SENDING, attempts=head.attempts + 1, ambiguous=head.ambiguous + orphaned)
    return Advance(chat=lane, claimed=claimed)


def _placed(connection: apsw.Connection, head: Outbound) -> Outbound:
    """Give a row that edits an earlier one the earlier row's message, which is known by now, or never will be."""
    row = one(
        connection,
        "UPDATE outbox SET platform_message_id = (SELECT platform_message_id FROM outbox WHERE id = ?)"
        " WHERE id = ? RETURNING platform_message_id",
        (head.edits, head.id),
    )
    return head if row is None else replace(head, platform_message_id=row[0])


def mark_sent(
    connection: apsw.Connection, outbound_id: str, platform_message_id: str | None, sender: Sender
) -> tuple[Advance, ...]:
    """The row is done; advance its chat. Empty: there was nothing to mark."""
    known = None if platform_message_id is None else storable(platform_message_id)
    row = one(connection, _SHOW, (known, sender.now, outbound_id))
    return () if row is None else (advance(connection, row[0], sender, shown=True),)


def mark_retry(
    connection: apsw.Connection,
    outbound_id: str,
    seconds: float,
    sender: Sender,
    *,
    ambiguous: bool,
    anew: bool,
    counted: bool,
) -> tuple[Advance, ...]:
    """The row waits, and so does its chat, unless the row is much in doubt; with `anew` the row has no message any
    more. Empty: the row was not being sent."""
    now = sender.now
    row = one(
        connection,
        f"UPDATE outbox SET state = '{State.PENDING}', due_at = ?1, put_off_for = ?2,"
        " ambiguous = ?3 + iif(?4, 0, ambiguous), attempts = iif(?4, 0, attempts - NOT ?5),"
        " platform_message_id = iif(?4, NULL, platform_message_id)"
        f" WHERE id = ?6 AND state = '{State.SENDING}' RETURNING lane, ambiguous",
        (due := now + seconds, seconds, ambiguous, anew, counted, outbound_id),
    )
    if row is None:
        return ()
    return (Advance(chat=row[0], due_at=now if ambiguous and row[1] > MOST_DOUBTS else due),)


def mark_refused(
    connection: apsw.Connection,
    outbound_id: str,
    reason: str,
    instead: Outbound | None,
    sender: Sender,
    *,
    gone: bool,
    keeps: bool,
) -> tuple[Advance, ...]:
    """The row ends unseen; `instead` goes out in its place, before the chat's later rows. With `gone` the later rows
    end unseen, too, unless a message from the chat was accepted since the row was handed out."""
    row = one(
        connection,
        f"UPDATE outbox SET state = iif(?, {_ENDED}, '{State.REFUSED}'), error = ?"
        f" WHERE id = ? AND {one_of(PLACED)} RETURNING lane, place, heard",
        (keeps or gone, storable(reason), outbound_id),
    )
    if row is None:
        return ()
    lane, place, heard = row
    if gone and not heard:
        note_closed(connection, lane, reason)
    if instead is not None:
        insert(connection, replace(instead, state=State.PENDING), place)
    return (advance(connection, lane, sender),)


def give_back(connection: apsw.Connection, outbound_ids: Sequence[str]) -> None:
    """Undo claims of rows that nobody was given: no send was begun."""
    for outbound_id in outbound_ids:
        change(
            connection,
            f"UPDATE outbox SET state = '{State.PENDING}', attempts = attempts - 1"
            f" WHERE id = ? AND state = '{State.SENDING}'",
            (outbound_id,),
        )


def cap_waits(connection: apsw.Connection, now: float) -> None:
    """Let no row wait longer from `now` on than the row was put off for: the clock may have been set back."""
    change(
        connection,
        f"UPDATE outbox SET due_at = ?1 + put_off_for WHERE {UNFINISHED} AND due_at > ?1 + put_off_for",
        (now,),
    )


def unfinished_heads(connection: apsw.Connection) -> list[tuple[str, float]]:
    """(chat, when to look at it) for every chat with rows that an earlier process left unsent."""
    rows = many(
        connection,
        f"SELECT lane, state, iif({_IN_DOUBT}, 0.0, due_at) FROM outbox"
        f" WHERE {UNFINISHED} AND state != '{State.STREAMING}'"
        " ORDER BY lane, place, seq",
    )
    heads: dict[str, tuple[str, float]] = {}
    for lane, state, due_at in rows:
        heads.setdefault(lane, (state, due_at))
    return [(lane, due_at if state in WAITING else 0.0) for lane, (state, due_at) in heads.items()]


def has_unsent(connection: apsw.Connection, to: ChatAddress) -> bool:
    """Say whether a chat has rows with a place that have not ended."""
    return one(connection, _HEAD, (chat_name(to),)) is not None


def unasked(connection: apsw.Connection, to: ChatAddress) -> int:
    """Count the rows of a chat that nobody waits for and that no process has had in hand."""
    query = f"SELECT count(*) FROM outbox WHERE lane = ? AND {UNFINISHED} AND place > {MOST_PLACE}"
    row = one(connection, query, (chat_name(to),))
    return 0 if row is None else int(row[0])


def listing(
    connection: apsw.Connection, address: ChatAddress | None, limit: int, states: Collection[State] = ()
) -> list[Outbound]:
    """Rows of an address (None: of all), newest first; only those in one of these states, if any is given."""
    conditions, bindings = ["true"], list[str | int | None]()
    if address is not None:
        conditions.append("lane = ? AND thread IS ?")
        bindings += [chat_name(address), address.thread]
    if states:
        conditions.append(f"state IN ({','.join('?' * len(states))})")
        bindings += states
        if State.SENT not in states:
            conditions.append(f"seq IN (SELECT seq FROM outbox WHERE {UNFINISHED} UNION ALL {_GIVEN_UP})")
    rows = many(
        connection,
        f"SELECT {OUTBOUND_COLUMNS} FROM outbox WHERE {' AND '.join(conditions)} ORDER BY seq DESC LIMIT ?",
        (*bindings, limit),
    )
    return [OUTBOUND.of_row(row) for row in rows]


def insert(connection: apsw.Connection, outbound: Outbound, place: int | None = None) -> None:
    """Write a row as it is. `place` None: behind all rows emitted so far, and what nobody waits for behind all others.
    A known row is left as it is."""
    behind = MOST_PLACE if outbound.unasked else 0
    change(connection, f"{_INSERT}NOTHING", (place, behind, chat_name(outbound.to), *OUTBOUND.row(outbound)))


# -- closed chats ------------------------------------------------------------------------------


def closed_because(connection: apsw.Connection, to: ChatAddress) -> str | None:
    """Return the reason why the chat is closed; None: the chat is open."""
    row = one(connection, "SELECT reason FROM closed_chats WHERE lane = ?", (chat_name(to),))
    return None if row is None else str(row[0])


def close_chat(connection: apsw.Connection, to: ChatAddress, reason: str) -> None:
    """Close a chat; rows that wait are refused."""
    note_closed(connection, chat_name(to), reason)
    refuse_waiting(connection, chat_name(to), reason)


def note_closed(connection: apsw.Connection, lane: str, why: str) -> None:
    """Note that a chat is closed. Its reminders wait."""
    change(connection, "INSERT OR REPLACE INTO closed_chats(lane, reason) VALUES (?, ?)", (lane, storable(why)))
    change(connection, "UPDATE reminders SET parked = 1 WHERE chat = ? AND open", (lane,))


def reopen(connection: apsw.Connection, lane: str) -> bool:
    """Open a chat, and say whether it was closed. A row that is being sent there was handed out before (`heard`)."""
    row = one(connection, f"SELECT {OF_CHAT}", (lane,))
    assert row is not None
    is_closed, is_sent_to = row
    if is_closed:
        change(connection, "DELETE FROM closed_chats WHERE lane = ?", (lane,))
        change(connection, "UPDATE reminders SET parked = 0 WHERE chat = ? AND open", (lane,))
    if is_sent_to:
        change(connection, f"UPDATE {_LEFT} SET heard = 1 WHERE {_IS_SENT}", (lane,))
    return bool(is_closed)


def refuse_waiting(connection: apsw.Connection, lane: str, why: str, generation: int | None = None) -> None:
    """End the rows of a closed chat that wait, and with `generation` also the rows that an earlier process was
    sending."""
    change(
        connection,
        f"UPDATE {_LEFT} SET state = {_ENDED}, error = ?1 WHERE lane = ?2 AND {UNFINISHED}"
        f" AND ({_WAITS} OR (state = '{State.SENDING}' AND claim != ?3))",  # with NULL no row is meant
        (storable(why), lane, generation),
    )
