"""The writes of a turn: its journal while it runs, and everything at once when it ends."""

from __future__ import annotations

from collections.abc import Sequence

import apsw
from msgspec import Struct

from gateway.domain.chat import Outbound
from gateway.domain.session import SessionRef
from gateway.store.records import Beginning, InboxItem, ItemOutcome, StepRecord, ToolIntent, TurnJournal
from gateway.store.shared.agenda import Advance
from gateway.store.shared.documents import intents_from, intents_json
from gateway.store.sqlite import approving, inbox, outbox, sessions
from gateway.store.sqlite.connection import change, one
from gateway.store.sqlite.outbox import Sender


class Ended(Struct, frozen=True, kw_only=True):
    """The outcome of an item's end."""

    appended: sessions.Appended | None
    next: InboxItem | None
    advances: tuple[Advance, ...]


def beginning(connection: apsw.Connection, item: InboxItem) -> Beginning:
    """Return what the turn of an item begins with."""
    number = int(item.id)
    row = one(
        connection,
        "SELECT EXISTS (SELECT 1 FROM reminders WHERE key = ?), EXISTS (SELECT 1 FROM turns WHERE item = ?)",
        (item.key.text, number),
    )
    assert row is not None
    reminders, is_begun = row
    begun = journal(connection, number) if is_begun else None
    return Beginning(begun, sessions.tip(connection, item.key), bool(reminders))


def journal(connection: apsw.Connection, item: int) -> TurnJournal | None:
    """Return the progress of an unfinished item; None: nothing was recorded."""
    row = one(connection, "SELECT session_id, steps, intents, reply FROM turns WHERE item = ?", (item,))
    if row is None:
        return None
    session_id, steps, intents, reply_id = row
    reply = None if reply_id is None else outbox.by_id(connection, reply_id)
    return TurnJournal(
        session_id=session_id or (reply and reply.session_id) or "",
        steps=steps,
        intents=intents_from(intents),
        reply=reply,
        approvals=approving.of_item(connection, item),
    )


def open_reply(connection: apsw.Connection, item: InboxItem, reply: Outbound) -> Outbound:
    """Store a streaming reply. An item has one: asked again, the function returns the first."""
    known = journal(connection, int(item.id))
    if known is not None and known.reply is not None:
        return known.reply
    opened = outbox.open_streaming(connection, reply)
    change(
        connection,
        "INSERT INTO turns(item, session_id, reply) VALUES (?,?,?)"
        " ON CONFLICT (item) DO UPDATE SET reply = excluded.reply",
        (int(item.id), reply.session_id, reply.id),
    )
    return opened


def begin_tools(
    connection: apsw.Connection, ref: SessionRef, item: InboxItem, record: StepRecord, intents: Sequence[ToolIntent]
) -> sessions.Appended:
    """Append the step so far and remember which effects are about to happen."""
    appended = sessions.append(connection, ref, item, record)
    _note(connection, item, ref.id, steps=0, intents=intents)
    return appended


def record_step(connection: apsw.Connection, ref: SessionRef, item: InboxItem, record: StepRecord) -> sessions.Appended:
    """Append the messages of a step; its intents are settled."""
    appended = sessions.append(connection, ref, item, record)
    _note(connection, item, ref.id, steps=1, intents=())
    inbox.count_anew(connection, item)
    return appended


def follow(connection: apsw.Connection, item: InboxItem, parent_id: str, child_id: str) -> None:
    """A compaction in the middle of a turn: its journal goes on in the child."""
    change(
        connection,
        "UPDATE turns SET session_id = ? WHERE item = ? AND session_id = ?",
        (child_id, int(item.id), parent_id),
    )


def finish(
    connection: apsw.Connection,
    item: InboxItem,
    step: tuple[SessionRef, StepRecord] | None,
    outcome: ItemOutcome,
    outbound: Sequence[Outbound],
    sender: Sender,
) -> Ended:
    """End an item and claim the next of its lane."""
    appended = None
    if step is not None:
        appended = sessions.append(connection, step[0], item, step[1])
    has_journal = inbox.end(connection, int(item.id), outcome, sender.now)
    advances = outbox.emit(connection, outbound, sender)
    dropped = _forget(connection, int(item.id)) if has_journal else None
    if dropped is not None:
        advances = (*advances, *outbox.advance_all(connection, [dropped], sender))
    return Ended(
        appended=appended,
        next=inbox.next_of_lane(connection, item.key.text),
        advances=advances,
    )


def finish_bypassed(
    connection: apsw.Connection, item: InboxItem, outbound: Sequence[Outbound], sender: Sender
) -> tuple[Advance, ...]:
    """End a bypass item with its answer."""
    inbox.end(connection, int(item.id), "answered", sender.now)
    return outbox.emit(connection, outbound, sender)


def _note(
    connection: apsw.Connection, item: InboxItem, session_id: str, *, steps: int, intents: Sequence[ToolIntent]
) -> None:
    change(
        connection,
        "INSERT INTO turns(item, session_id, steps, intents) VALUES (?,?,?,?) ON CONFLICT (item) DO UPDATE SET"
        " session_id = excluded.session_id, steps = steps + excluded.steps, intents = excluded.intents",
        (int(item.id), session_id, steps, intents_json(intents)),
    )


def _forget(connection: apsw.Connection, item: int) -> str | None:
    """Drop the journal, and a reply that never got its text; returns the chat of such a reply."""
    row = one(connection, "DELETE FROM turns WHERE item = ? RETURNING reply", (item,))
    if row is None:
        return None
    approving.forget(connection, item)
    if row[0] is None:
        return None
    return outbox.drop_streaming(connection, row[0])
