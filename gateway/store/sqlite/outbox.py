"""Outbox rows: emitting, claiming one per chat at a time, and how each ends.

A row in state `sending` carries the generation of the process that claimed it; one of an earlier
generation was being sent when its process died.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import apsw

from gateway.domain.chat import ChatAddress, Outbound
from gateway.store.shared.documents import buttons_json, file_json, storable
from gateway.store.shared.platforms import Platforms
from gateway.store.sqlite import closing
from gateway.store.sqlite.codec import OUTBOUND_COLUMNS, lane_of, optional, outbound_from
from gateway.store.sqlite.connection import change, many, one


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """On whose behalf rows are claimed, and when: the process by its generation, and the platforms it
    sends to."""

    generation: int
    now: float
    platforms: Platforms


_UNFINISHED = "state IN ('streaming', 'pending', 'sending')"
# A reply that streams has no place yet. Its row is the older one where its place is another's, too.
_HEAD = (
    f"SELECT seq, state, due_at, claim, {OUTBOUND_COLUMNS} FROM outbox"
    f" WHERE lane = ? AND {_UNFINISHED} AND state != 'streaming' ORDER BY place, seq LIMIT 1"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance:
    """What became of a chat's head: claimed for sending, or to be looked at again at `due_at`."""

    lane: str
    claimed: Outbound | None = None
    due_at: float | None = None


def emit(connection: apsw.Connection, outbound: Sequence[Outbound], sender: Sender) -> tuple[Advance, ...]:
    """Store rows in order and advance their chats. A row whose id is known is not stored twice; if
    it is a streaming one, it gets its final text."""
    return advance_all(connection, [_store(connection, row) for row in outbound], sender)


def open_streaming(connection: apsw.Connection, reply: Outbound) -> Outbound:
    """Store a reply that starts to stream."""
    insert(connection, replace(reply, state="streaming"))
    return replace(reply, state="streaming")


def note_streamed(connection: apsw.Connection, outbound_id: str, platform_message_id: str) -> None:
    """Keep the platform's id of a streaming reply; once it has ended, there is nothing to note."""
    change(
        connection,
        "UPDATE outbox SET platform_message_id = ? WHERE id = ? AND state = 'streaming'",
        (storable(platform_message_id), outbound_id),
    )


def drop_streaming(connection: apsw.Connection, outbound_id: str) -> str | None:
    """End a reply that never got its text; returns its chat."""
    row = one(
        connection,
        "UPDATE outbox SET state = 'refused', error = 'its turn ended without it'"
        " WHERE id = ? AND state = 'streaming' RETURNING lane",
        (outbound_id,),
    )
    return None if row is None else str(row[0])


def by_id(connection: apsw.Connection, outbound_id: str) -> Outbound | None:
    """One row."""
    row = one(connection, f"SELECT {OUTBOUND_COLUMNS} FROM outbox WHERE id = ?", (outbound_id,))
    return None if row is None else outbound_from(row)


def advance_all(connection: apsw.Connection, lanes: Iterable[str], sender: Sender) -> tuple[Advance, ...]:
    """`advance` for each chat once, in the order given."""
    return tuple(advance(connection, lane, sender) for lane in dict.fromkeys(lanes))


def advance(connection: apsw.Connection, lane: str, sender: Sender, *, reclaim: bool = False) -> Advance:
    """Claim the chat's earliest unfinished row if it is due and its platform is sent to.

    With `reclaim`, also one that was being sent when an earlier process died: that attempt counts
    as ambiguous.
    """
    row = one(connection, _HEAD, (lane,))
    if row is not None and (why := closing.reason(connection, lane)) is not None:
        closing.refuse_waiting(connection, lane, why, sender.generation)
        row = one(connection, _HEAD, (lane,))  # one that is being sent may be left
    if row is None:
        return Advance(lane=lane)
    seq, state, due_at, claim = row[:4]
    orphaned = state == "sending" and claim != sender.generation
    if state == "pending" and (due_at > sender.now or not sender.platforms.has_chat_of(lane)):
        return Advance(lane=lane, due_at=due_at)
    if state != "pending" and not (reclaim and orphaned):
        return Advance(lane=lane)
    change(
        connection,
        "UPDATE outbox SET state = 'sending', claim = ?, attempts = attempts + 1, ambiguous = ambiguous + ?, heard = 0"
        " WHERE seq = ?",
        (sender.generation, orphaned, seq),
    )
    head = _placed(connection, outbound_from(row[4:]))
    return Advance(
        lane=lane,
        claimed=replace(
            head, state="sending", attempts=head.attempts + 1, ambiguous=head.ambiguous + (1 if orphaned else 0)
        ),
    )


def _placed(connection: apsw.Connection, head: Outbound) -> Outbound:
    """A row that edits an earlier one: that had its turn before, so its message is known by now, or never."""
    if head.edits is None or head.platform_message_id is not None:
        return head
    row = one(
        connection,
        "UPDATE outbox SET platform_message_id = (SELECT platform_message_id FROM outbox WHERE id = ?)"
        " WHERE id = ? RETURNING platform_message_id",
        (head.edits, head.id),
    )
    return head if row is None else replace(head, platform_message_id=row[0])


def mark_sent(
    connection: apsw.Connection, outbound_id: str, platform_message_id: str | None, sender: Sender
) -> Advance | None:
    """The row is done; advance its chat. None if there was nothing to mark."""
    row = one(
        connection,
        "UPDATE outbox SET state = 'sent', platform_message_id = coalesce(?, platform_message_id)"
        " WHERE id = ? AND state IN ('pending', 'sending') RETURNING lane",
        (optional(platform_message_id), outbound_id),
    )
    return None if row is None else advance(connection, row[0], sender)


def mark_retry(
    connection: apsw.Connection,
    outbound_id: str,
    seconds: float,
    *,
    now: float,
    ambiguous: bool,
    anew: bool,
    counted: bool,
) -> Advance | None:
    """The row waits, and its chat with it; `anew`: without its message. None if it was not being sent."""
    row = one(
        connection,
        "UPDATE outbox SET state = 'pending', due_at = ?1, put_off_for = ?2, ambiguous = ?3 + iif(?4, 0, ambiguous),"
        " platform_message_id = iif(?4, NULL, platform_message_id), attempts = iif(?4, 0, attempts - NOT ?5)"
        " WHERE id = ?6 AND state = 'sending' RETURNING lane",
        (now + seconds, seconds, ambiguous, anew, counted, outbound_id),
    )
    return None if row is None else Advance(lane=row[0], due_at=now + seconds)


def mark_refused(
    connection: apsw.Connection, outbound_id: str, reason: str, instead: Outbound | None, sender: Sender, *, gone: bool
) -> Advance | None:
    """The row ends unseen; `instead` goes out in its place, before the chat's later rows. `gone`: so do these,
    unless somebody there was heard since."""
    row = one(
        connection,
        "UPDATE outbox SET state = 'refused', error = ?"
        " WHERE id = ? AND state IN ('pending', 'sending') RETURNING lane, place, heard",
        (storable(reason), outbound_id),
    )
    if row is None:
        return None
    lane, place, heard = row
    if gone and not heard:
        closing.put(connection, lane, reason)
    if instead is not None:
        insert(connection, replace(instead, state="pending"), place)
    return advance(connection, lane, sender)


def give_back(connection: apsw.Connection, outbound_ids: Sequence[str]) -> None:
    """Undo claims whose rows nobody was handed: no send was begun."""
    for outbound_id in outbound_ids:
        change(
            connection,
            "UPDATE outbox SET state = 'pending', attempts = attempts - 1 WHERE id = ? AND state = 'sending'",
            (outbound_id,),
        )


def cap_waits(connection: apsw.Connection, now: float) -> None:
    """No row waits longer from `now` on than it was put off for: the clock may have been set back."""
    change(
        connection,
        f"UPDATE outbox SET due_at = ?1 + put_off_for WHERE {_UNFINISHED} AND due_at > ?1 + put_off_for",
        (now,),
    )


def unfinished_heads(connection: apsw.Connection) -> list[tuple[str, float]]:
    """(chat, when to look at it) for every chat with rows that an earlier process left unsent."""
    rows = many(
        connection,
        f"SELECT lane, state, due_at FROM outbox WHERE {_UNFINISHED} AND state != 'streaming'"
        " ORDER BY lane, place, seq",
    )
    heads: dict[str, tuple[str, float]] = {}
    for lane, state, due_at in rows:
        heads.setdefault(lane, (state, due_at))
    return [(lane, due_at if state == "pending" else 0.0) for lane, (state, due_at) in heads.items()]


def listing(connection: apsw.Connection, address: ChatAddress | None, limit: int) -> list[Outbound]:
    """Rows of an address (None: of all), newest first."""
    if address is None:
        rows = many(connection, f"SELECT {OUTBOUND_COLUMNS} FROM outbox ORDER BY seq DESC LIMIT ?", (limit,))
    else:
        rows = many(
            connection,
            f"SELECT {OUTBOUND_COLUMNS} FROM outbox WHERE lane = ? AND thread IS ? ORDER BY seq DESC LIMIT ?",
            (lane_of(address), address.thread, limit),
        )
    return [outbound_from(row) for row in rows]


def _store(connection: apsw.Connection, outbound: Outbound) -> str:
    finalised = one(
        connection,
        "UPDATE outbox SET state = 'pending', kind = ?, text = ?, due_at = ?,"
        " place = 1 + (SELECT max(seq) FROM outbox),"
        " platform_message_id = coalesce(platform_message_id, ?)"
        " WHERE id = ? AND state = 'streaming' RETURNING lane",
        (
            outbound.kind,
            storable(outbound.text),
            outbound.due_at,
            optional(outbound.platform_message_id),
            outbound.id,
        ),
    )
    if finalised is not None:
        return str(finalised[0])
    insert(connection, replace(outbound, state="pending"))
    return lane_of(outbound.to)


def insert(connection: apsw.Connection, outbound: Outbound, place: int | None = None) -> None:
    """Write a row as it is. `place` None: after everything emitted so far. A known id is left as it is."""
    row = one(connection, "SELECT max(seq) FROM outbox")
    seq = ((row and row[0]) or 0) + 1
    change(
        connection,
        f"INSERT INTO outbox(seq, place, lane, {OUTBOUND_COLUMNS})"
        " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT (id) DO NOTHING",
        (
            seq,
            seq if place is None else place,
            lane_of(outbound.to),
            outbound.id,
            str(outbound.key),
            outbound.to.platform,
            outbound.to.chat,
            outbound.to.thread,
            outbound.kind,
            storable(outbound.text),
            outbound.session_id,
            outbound.answers,
            outbound.state,
            outbound.platform_message_id,
            outbound.attempts,
            outbound.ambiguous,
            outbound.due_at,
            outbound.created_at,
            outbound.error,
            None if outbound.file is None else file_json(outbound.file),
            buttons_json(outbound.buttons) if outbound.buttons else None,
            outbound.edits,
        ),
    )
