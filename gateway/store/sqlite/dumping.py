"""A store's facts out of its file: each kind by one query whose rows are read as they are needed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import islice
from typing import Final

import apsw

from gateway.domain.chat import SessionKey
from gateway.domain.usage import LedgerEntry
from gateway.runtime.errors import StoreError
from gateway.store.moved import (
    FORGOTTEN,
    PAGE,
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
    MovedTurn,
    Record,
    by_size,
)
from gateway.store.records import SignalKind
from gateway.store.shared.documents import intents_from, pins_from
from gateway.store.shared.fields import COMPACTION, FILE, OUTBOUND, SESSION, USAGE
from gateway.store.sqlite import approving, pairing
from gateway.store.sqlite.codec import (
    COMPACTION_COLUMNS,
    MESSAGE_COLUMNS,
    OUTBOUND_COLUMNS,
    SESSION_COLUMNS,
    USAGE_COLUMNS,
    message_from,
    message_id,
)
from gateway.store.sqlite.connection import many
from gateway.store.sqlite.filing import COLUMNS


def dump(connection: apsw.Connection, now: float) -> Iterator[Sequence[Record]]:
    """All records in pages. Nothing may write to the file meanwhile."""
    accounts: Callable[[apsw.Connection], Iterator[Record]] = partial(_accounts, now=now)
    for records in (*_STREAMS, accounts, _pins, _guest_book, _closed, _renamed):
        stream = records(connection)
        while page := list(islice(stream, PAGE)):
            yield page
    yield from by_size(_files(connection))


def _sessions(connection: apsw.Connection) -> Iterator[Record]:
    rows = connection.execute(
        f"SELECT t.session_id IS NOT NULL, {SESSION_COLUMNS} FROM sessions s JOIN prompts p ON p.session_id = s.id"
        " LEFT JOIN tips t ON t.key = s.key AND t.session_id = s.id ORDER BY s.seq"
    )
    for row in rows:
        yield MovedSession(session=SESSION.of_row(row[1:]), is_tip=bool(row[0]))


def _transcripts(connection: apsw.Connection) -> Iterator[Record]:
    """A message where it was first stored, and every reference."""
    rows = connection.execute(
        f"SELECT s.id, s.key, t.message_id, m.session_id, m.key, {MESSAGE_COLUMNS} FROM sessions s"
        " CROSS JOIN transcript t ON t.session_id = s.id LEFT JOIN messages m ON m.id = t.message_id"
        " ORDER BY s.seq, t.position"
    )
    for row in rows:
        session_id, owner, number, home, key = row[:5]
        if home is None:
            raise StoreError(
                f"The store is damaged: message {message_id(number)} of session {session_id} is missing; "
                "restore a backup, then migrate that."
            )
        if home == session_id:
            yield MovedMessage(key=_key(key), session_id=home, message=message_from(row[5:]))
        yield MovedReference(key=_key(owner), session_id=session_id, message_id=message_id(number))


def _compactions(connection: apsw.Connection) -> Iterator[Record]:
    columns = ", ".join(f"c.{name.strip()}" for name in COMPACTION_COLUMNS.split(","))
    rows = connection.execute(
        f"SELECT s.key, {columns} FROM compactions c JOIN sessions s ON s.id = c.parent_id ORDER BY s.seq, c.id"
    )
    for row in rows:
        yield MovedCompaction(key=_key(row[0]), compaction=COMPACTION.of_row(row[1:]))


def _hooks(connection: apsw.Connection) -> Iterator[Record]:
    rows = connection.execute(
        "SELECT s.key, s.id FROM owed_hooks o JOIN sessions s ON s.id = o.session_id ORDER BY o.seq"
    )
    for key, session_id in rows:
        yield MovedHook(key=_key(key), session_id=session_id)


def _items(connection: apsw.Connection) -> Iterator[Record]:
    # Only unfinished items have any, so there are few.
    signals: dict[int, list[tuple[SignalKind, float]]] = defaultdict(list)
    for number, kind, at in many(connection, "SELECT item, kind, at FROM signals ORDER BY item, at, kind"):
        signals[number].append((kind, at))
    rows = connection.execute(
        "SELECT i.id, i.key, i.platform, i.event_id, i.inbound, i.accepted_at, i.attempts, i.bypass,"
        " i.absorbed_by, i.outcome, i.ended_at,"
        " t.item, t.session_id, t.steps, t.intents, t.reply"
        " FROM inbox i LEFT JOIN turns t ON t.item = i.id ORDER BY i.id"
    )
    for row in rows:
        number, key, platform, event_id, document, accepted_at, attempts, bypass, absorbed_by = row[:9]
        outcome, ended_at, begun, session_id, steps, intents, reply = row[9:]
        turn = None
        if begun is not None:
            turn = MovedTurn(
                session_id=session_id,
                steps=steps,
                intents=intents_from(intents),
                reply_id=reply,
                approvals=approving.of_item(connection, number),
            )
        yield MovedItem(
            number=str(number),
            key=_key(key),
            platform=platform,
            event_id=event_id,
            document=document,
            accepted_at=accepted_at,
            attempts=attempts,
            bypass=bool(bypass),
            absorbed_by=None if absorbed_by is None else str(absorbed_by),
            outcome=outcome,
            ended_at=ended_at,
            turn=turn,
            signals=tuple(signals.get(number, ())) if outcome is None else (),
        )


def _rows(connection: apsw.Connection) -> Iterator[Record]:
    columns = ", ".join(f"o.{name.strip()}" for name in OUTBOUND_COLUMNS.split(","))
    rows = connection.execute(
        f"SELECT coalesce(p.id, o.id), {columns} FROM outbox o LEFT JOIN outbox p ON p.seq = o.place ORDER BY o.seq"
    )
    for row in rows:
        yield MovedRow(row=OUTBOUND.of_row(row[1:]), stands_for=row[0] or row[1])


def _calls(connection: apsw.Connection) -> Iterator[Record]:
    rows = connection.execute(
        f"SELECT key, session_id, at, purpose, provider, model, cost_usd, {USAGE_COLUMNS} FROM ledger ORDER BY at, id"
    )
    for key, session_id, at, purpose, provider, model, cost, *buckets in rows:
        usage = USAGE.of_row(buckets)
        entry = LedgerEntry(at=at, purpose=purpose, provider=provider, model=model, usage=usage, cost_usd=cost)
        yield MovedCall(key=_key(key), session_id=session_id, entry=entry)


def _accounts(connection: apsw.Connection, now: float) -> Iterator[Record]:
    rows = connection.execute(
        "SELECT account, spent, forget_at FROM spending WHERE forget_at IS NULL OR forget_at >= ? ORDER BY account",
        (now + FORGOTTEN,),
    )
    for account, spent, forget_at in rows:
        yield MovedAccount(
            account=account, spent=spent, forget_at=None if forget_at is None else round(forget_at * 1_000)
        )


def _pins(connection: apsw.Connection) -> Iterator[Record]:
    for key, document in connection.execute("SELECT key, rules FROM pins ORDER BY key"):
        yield MovedPins(key=_key(key), pins=pins_from(document))


def _files(connection: apsw.Connection) -> Iterator[MovedFile]:
    columns = ", ".join(f"f.{name.strip()}" for name in COLUMNS.split(","))
    rows = connection.execute(
        f"SELECT f.key, c.content, {columns} FROM files f JOIN contents c ON c.key = f.key AND c.digest = f.digest"
        " ORDER BY f.key, f.at, f.ref"
    )
    for row in rows:
        yield MovedFile(key=_key(row[0]), content=bytes(row[1]), file=FILE.of_row(row[2:]))


def _guest_book(connection: apsw.Connection) -> Iterator[Record]:
    book = pairing.guest_book(connection)
    if book.version:
        yield MovedGuestBook(book=book)


def _closed(connection: apsw.Connection) -> Iterator[Record]:
    for lane, reason in connection.execute("SELECT lane, reason FROM closed_chats ORDER BY lane"):
        yield MovedClosedChat(chat=_key(lane), reason=reason)


def _renamed(connection: apsw.Connection) -> Iterator[Record]:
    for lane, first, later in connection.execute("SELECT lane, first, later FROM renamed_chats ORDER BY lane"):
        yield MovedRenamedChat(chat=_key(lane), first=first, later=later)


@lru_cache(maxsize=1_024)
def _key(text: str) -> SessionKey:
    return SessionKey.parse(text)


_STREAMS: Final[tuple[Callable[[apsw.Connection], Iterator[Record]], ...]] = (
    _sessions,
    _transcripts,
    _compactions,
    _hooks,
    _items,
    _rows,
    _calls,
)
