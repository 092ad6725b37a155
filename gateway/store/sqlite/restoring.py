"""Facts into a file that is being filled."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch

import apsw

from gateway.domain.message import note_of
from gateway.store.moved import (
    MovedAccount,
    MovedCall,
    MovedClosedChat,
    MovedCompaction,
    MovedFile,
    MovedGuestBook,
    MovedHook,
    MovedItem,
    MovedMessage,
    MovedPins,
    MovedReference,
    MovedRenamedChat,
    MovedRow,
    MovedSession,
    Record,
)
from gateway.store.shared.documents import intents_json
from gateway.store.sqlite import approving, filing, outbox, pairing, pinning, renaming, search, sessions
from gateway.store.sqlite.codec import message_columns, message_number
from gateway.store.sqlite.connection import change, one


def restore(connection: apsw.Connection, page: Sequence[Record], positions: dict[str, int]) -> None:
    """Write records in one transaction. `positions`: how long each session's transcript is by now."""
    with connection:
        for record in page:
            if isinstance(record, MovedReference):
                _refer(connection, record, positions)
            else:
                _write(record, connection)


def _refer(connection: apsw.Connection, record: MovedReference, positions: dict[str, int]) -> None:
    """Transcripts come one after the other, so one position is all there is to remember."""
    position = positions.get(record.session_id, 0)
    positions.clear()
    positions[record.session_id] = position + 1
    change(
        connection,
        "INSERT INTO transcript(session_id, position, message_id) VALUES (?,?,?)",
        (record.session_id, position, message_number(record.message_id)),
    )


@singledispatch
def _write(record: object, _: apsw.Connection) -> None:
    raise TypeError(f"no record of a store: {record!r}")


@_write.register
def _(record: MovedSession, connection: apsw.Connection) -> None:
    sessions.put(connection, record.session)
    if record.is_tip:
        change(
            connection,
            "INSERT INTO tips(key, session_id) VALUES (?,?)",
            (str(record.session.key), record.session.id),
        )


@_write.register
def _(record: MovedMessage, connection: apsw.Connection) -> None:
    message, note = record.message, note_of(record.message)
    number, (body, extra) = message_number(note["id"]), message_columns(record.message)
    change(
        connection,
        "INSERT OR IGNORE INTO messages(id, key, session_id, role, body, note, tokens, at) VALUES (?,?,?,?,?,?,?,?)",
        (
            number,
            str(record.key),
            record.session_id,
            message["role"],
            body,
            extra,
            note.get("tokens"),
            note["at"],
        ),
    )
    search.enter(connection, number, str(record.key), message)


@_write.register
def _(record: MovedCompaction, connection: apsw.Connection) -> None:
    sessions.record_compaction(connection, record.compaction)


@_write.register
def _(record: MovedHook, connection: apsw.Connection) -> None:
    change(connection, "INSERT INTO owed_hooks(session_id) VALUES (?)", (record.session_id,))


@_write.register
def _(record: MovedItem, connection: apsw.Connection) -> None:
    number, turn = int(record.number), record.turn
    change(
        connection,
        "INSERT INTO inbox(id, platform, event_id, key, inbound, accepted_at, bypass, attempts, absorbed_by, outcome,"
        " ended_at) VALUES (?,?,?,?,?,?,?,?,?,?,?)",
        (
            number,
            record.platform,
            record.event_id,
            str(record.key),
            record.document,
            record.accepted_at,
            record.bypass,
            record.attempts,
            None if record.absorbed_by is None else int(record.absorbed_by),
            record.outcome,
            record.ended_at,
        ),
    )
    if turn is not None:
        change(
            connection,
            "INSERT INTO turns(item, session_id, steps, intents, reply) VALUES (?,?,?,?,?)",
            (number, turn.session_id, turn.steps, intents_json(turn.intents), turn.reply_id),
        )
        for approval in turn.approvals:
            approving.put(connection, approval)
    for kind, at in record.signals:
        change(connection, "INSERT INTO signals(item, kind, at) VALUES (?,?,?)", (number, kind, at))


@_write.register
def _(record: MovedRow, connection: apsw.Connection) -> None:
    # A row that is being sent carries no generation's claim: it is one that a crash has left.
    place = None
    if record.stands_for != record.row.id:
        found = one(connection, "SELECT seq FROM outbox WHERE id = ?", (record.stands_for,))
        place = None if found is None else int(found[0])
    outbox.insert(connection, record.row, place)


@_write.register
def _(record: MovedCall, connection: apsw.Connection) -> None:
    sessions.record_call(connection, record.entry, record.session_id, record.key)


@_write.register
def _(record: MovedAccount, connection: apsw.Connection) -> None:
    forget_at = None if record.forget_at is None else record.forget_at / 1_000
    change(
        connection,
        "INSERT INTO spending(account, spent, forget_at) VALUES (?,?,?)",
        (record.account, record.spent, forget_at),
    )


@_write.register
def _(record: MovedPins, connection: apsw.Connection) -> None:
    pinning.put(connection, record.key, record.pins)


@_write.register
def _(record: MovedFile, connection: apsw.Connection) -> None:
    filing.put(connection, record.key, record.file, record.content)


@_write.register
def _(record: MovedGuestBook, connection: apsw.Connection) -> None:
    pairing.restore(connection, record.book)


@_write.register
def _(record: MovedClosedChat, connection: apsw.Connection) -> None:
    outbox.note_closed(connection, str(record.chat), record.reason)


@_write.register
def _(record: MovedRenamedChat, connection: apsw.Connection) -> None:
    renaming.put(connection, str(record.chat), record.first, record.later)
