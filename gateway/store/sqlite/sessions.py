"""Session rows, their transcripts, and the transitions from one session to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import apsw
from msgspec import Struct

from gateway.domain.chat import SessionKey
from gateway.domain.message import Message, noted_tokens
from gateway.domain.session import Compaction, EndReason, HookState, Session, SessionRef
from gateway.domain.usage import CanonicalUsage, LedgerEntry
from gateway.runtime.errors import SessionConflict, SessionNotFound
from gateway.runtime.structs import replace
from gateway.store.records import PATCHED, InboxItem, Opening, Rebuilt, StepRecord
from gateway.store.shared.documents import storable
from gateway.store.shared.fields import COMPACTION, SESSION, USAGE, Fact
from gateway.store.sqlite import inbox, messages
from gateway.store.sqlite.connection import change, many, marks, one

COMPACTION_COLUMNS: Final = ", ".join(COMPACTION.names)
USAGE_COLUMNS: Final = ", ".join(USAGE.names)
# Always read as `sessions s JOIN prompts p`.
SESSION_COLUMNS: Final = ", ".join(f"p.{name}" if name == "system_prompt" else f"s.{name}" for name in SESSION.names)
DONE: Final[HookState] = "done"
_ADDED: Final = ("transcript_tokens", "cost_usd", *USAGE.names)
_APPLY: Final = (
    "UPDATE sessions SET message_count = message_count + ?, last_active_at = max(last_active_at, ?), "
    + ", ".join([*(f"{name} = coalesce(?, {name})" for name in PATCHED), *(f"{name} = {name} + ?" for name in _ADDED)])
    + " WHERE id = ? AND epoch = ? AND key = ? AND ended_at IS NULL AND message_count = coalesce(?, message_count)"
    " RETURNING message_count"
)
_patched: Final = SESSION.some(PATCHED)
_UNUSED: Final = USAGE.row(CanonicalUsage())
SELECT_SESSION: Final = f"SELECT {SESSION_COLUMNS} FROM sessions s JOIN prompts p ON p.session_id = s.id"


class Appended(Struct, frozen=True, kw_only=True):
    """Messages as stored, and the position of the first in the session's transcript."""

    session_id: str
    position: int
    messages: tuple[Message, ...] = ()


class Opened(Struct, frozen=True, kw_only=True):
    """A session as stored, with its first messages; a continuation's late messages, from its parent, are not among
    them."""

    session: Session
    messages: tuple[Message, ...] = ()


def by_id(connection: apsw.Connection, session_id: str) -> Session:
    """Raises SessionNotFound."""
    row = one(connection, f"{SELECT_SESSION} WHERE s.id = ?", (session_id,))
    if row is None:
        raise SessionNotFound(f"There is no session {session_id}.")
    return SESSION.of_row(row)


def tip(connection: apsw.Connection, key: SessionKey) -> Session | None:
    """The key's present session."""
    row = one(
        connection,
        f"SELECT {SESSION_COLUMNS} FROM tips t JOIN sessions s ON s.id = t.session_id"
        " JOIN prompts p ON p.session_id = s.id WHERE t.key = ?",
        (key.text,),
    )
    return None if row is None else SESSION.of_row(row)


def length(connection: apsw.Connection, session_id: str) -> int:
    """Return the number of a session's messages; 0 if there is no such session."""
    row = one(connection, "SELECT message_count FROM sessions WHERE id = ?", (session_id,))
    return 0 if row is None else int(row[0])


def ids_of(connection: apsw.Connection, key: SessionKey) -> list[str]:
    """All sessions of a key."""
    return [row[0] for row in many(connection, "SELECT id FROM sessions WHERE key = ?", (key.text,))]


def append(connection: apsw.Connection, ref: SessionRef, item: InboxItem, record: StepRecord) -> Appended:
    """Add a step of an item to a session: messages, counters, patch, ledger. The items that the step absorbed go into
    this one. Raises SessionConflict."""
    key, patch, more = item.key, record.patch, len(record.messages)
    row = one(
        connection,
        _APPLY,
        (
            more,
            patch.at,
            *_patched(patch),
            noted_tokens(record.messages),
            patch.cost_usd,
            *(_UNUSED if patch.usage is None else USAGE.row(patch.usage)),
            *(ref.id, ref.epoch, key.text, record.after),
        ),
    )
    if row is None:
        check(connection, ref, key)
        raise SessionConflict(f"Session {ref.id} holds other messages than this turn knows.")
    before = int(row[0]) - more
    stored = messages.refer(connection, ref.id, key, before, record.messages, patch.at)
    record_calls(connection, record.ledger, ref.id, key)
    if record.absorbed:
        inbox.absorb(connection, item, record.absorbed)
    return Appended(session_id=ref.id, position=before, messages=stored)


def check(connection: apsw.Connection, ref: SessionRef, key: SessionKey) -> int:
    """Return the number of the session's messages. Raises SessionConflict for a stale epoch, an ended session or
    another key's."""
    row = one(connection, "SELECT epoch, message_count, key, ended_at FROM sessions WHERE id = ?", (ref.id,))
    if row is None:
        raise SessionNotFound(f"There is no session {ref.id}.")
    epoch, count, owner, ended_at = row
    if epoch != ref.epoch or ended_at is not None:
        raise SessionConflict(f"Session {ref.id} was changed by somebody else; look at it again.")
    if owner != key.text:
        raise SessionConflict(f"Session {ref.id} does not belong to the lane that writes.")
    return int(count)


def open_(connection: apsw.Connection, key: SessionKey, opening: Opening) -> Opened:
    """Open a session under a key that has none. Raises SessionConflict."""
    taken = change(
        connection, "INSERT OR IGNORE INTO tips(key, session_id) VALUES (?,?)", (key.text, opening.session.id)
    )
    if not taken:
        raise SessionConflict("This key has a session already; end it first.")
    return _insert(connection, key, opening)


def end(
    connection: apsw.Connection, ref: SessionRef, key: SessionKey, reason: EndReason, at: float, opening: Opening | None
) -> Opened | None:
    """End a session for good; its hook is owed from now on."""
    check(connection, ref, key)
    _close(connection, ref, reason, at, hook="pending", continuation_id=None)
    change(connection, "INSERT INTO owed_hooks(session_id) VALUES (?)", (ref.id,))
    _leave_tip(connection, ref, key)
    return None if opening is None else open_(connection, key, opening)


def continue_(
    connection: apsw.Connection,
    ref: SessionRef,
    key: SessionKey,
    opening: Opening,
    snapshot_length: int,
    compaction: Compaction,
) -> Opened:
    """End a parent by compression and open its child, which takes over the messages after the snapshot."""
    count = check(connection, ref, key)
    child = opening.session
    # A child starts at or after its parent's end, whatever the clock did in between.
    ended_at = min(compaction.at, child.started_at)
    _close(connection, ref, "compression", ended_at, hook=None, continuation_id=child.id)
    _leave_tip(connection, ref, key)
    opened = open_(connection, key, opening)
    late = max(0, count - snapshot_length)
    if late:
        opened = replace(opened, session=_take_over(connection, ref.id, opened.session, snapshot_length))
    change(
        connection,
        f"INSERT INTO compactions({COMPACTION_COLUMNS}) VALUES ({marks(COMPACTION_COLUMNS)})",
        tuple(COMPACTION.row(compaction)),
    )
    return opened


def import_(connection: apsw.Connection, opening: Opening) -> bool:
    """Store an ended session behind all others, unless there is one of its id."""
    if one(connection, "SELECT 1 FROM sessions WHERE id = ?", (opening.session.id,)) is not None:
        return False
    row = one(connection, "SELECT min(min(seq), 0) - 1 FROM sessions")
    _insert(connection, opening.session.key, opening, seq=-1 if row is None or row[0] is None else row[0])
    return True


def update(connection: apsw.Connection, ref: SessionRef, key: SessionKey, changes: Mapping[str, Any]) -> Session:
    """Change fields as SessionChanges names them; another model or prompt raises the epoch."""
    check(connection, ref, key)
    before = by_id(connection, ref.id)
    columns = {name: SESSION.fact(name, value) for name, value in changes.items()}
    prompt = columns.pop("system_prompt", None)
    if any(name in changes and changes[name] != getattr(before, name) for name in ("model", "system_prompt")):
        columns["epoch"] = before.epoch + 1
    if changes.get("model", before.model) != before.model:
        # The old model's report says nothing about the new model's tokenizer.
        columns |= {"last_prompt_tokens": 0, "reported_messages": 0}
    if prompt is not None:
        _set_prompt(connection, ref.id, prompt)
    for name, value in columns.items():  # names come from here and SessionChanges, never from outside
        change(connection, f"UPDATE sessions SET {name} = ? WHERE id = ?", (value, ref.id))
    return by_id(connection, ref.id)


def rebuild(connection: apsw.Connection, key: SessionKey, rebuilt: Rebuilt) -> Session:
    """Give a session another prompt, and the report that the provider would have made with this prompt."""
    check(connection, rebuilt.ref, key)
    _set_prompt(connection, rebuilt.ref.id, storable(rebuilt.system_prompt))
    change(
        connection,
        "UPDATE sessions SET epoch = epoch + 1, last_prompt_tokens = ? WHERE id = ?",
        (rebuilt.last_prompt_tokens, rebuilt.ref.id),
    )
    return by_id(connection, rebuilt.ref.id)


def _set_prompt(connection: apsw.Connection, session_id: str, system_prompt: Fact) -> None:
    change(connection, "UPDATE prompts SET system_prompt = ? WHERE session_id = ?", (system_prompt, session_id))


def owed_hooks(connection: apsw.Connection, limit: int) -> list[Session]:
    """Ended sessions whose hook is owed, in the order they ended."""
    rows = many(
        connection,
        f"SELECT {SESSION_COLUMNS} FROM owed_hooks o JOIN sessions s ON s.id = o.session_id"
        " JOIN prompts p ON p.session_id = s.id ORDER BY o.seq LIMIT ?",
        (limit,),
    )
    return [SESSION.of_row(row) for row in rows]


def hook_done(connection: apsw.Connection, session_id: str) -> None:
    """The hook is owed no more; idempotent."""
    if change(connection, "DELETE FROM owed_hooks WHERE session_id = ?", (session_id,)):
        change(connection, "UPDATE sessions SET hook = ? WHERE id = ?", (DONE, session_id))


def note_flushed(connection: apsw.Connection, session: Session, messages: int) -> None:
    """Memory has been given so many messages of the session."""
    change(
        connection,
        "UPDATE sessions SET flushed_messages = max(flushed_messages, ?) WHERE id = ?",
        (messages, session.id),
    )


def note_title(connection: apsw.Connection, session: Session, title: str) -> None:
    """The session has a title, unless somebody gave it one, or had something forgotten, meanwhile."""
    change(
        connection,
        "UPDATE sessions SET title = ? WHERE id = ? AND title IS NULL AND rewritten = ?",
        (storable(title), session.id, session.rewritten),
    )


def due(connection: apsw.Connection, now: float, limit: int) -> list[Session]:
    """Open sessions whose time has passed, earliest first."""
    rows = many(
        connection,
        f"{SELECT_SESSION} WHERE s.ended_at IS NULL AND s.expires_at IS NOT NULL AND s.expires_at <= ?"
        " ORDER BY s.expires_at LIMIT ?",
        (now, limit),
    )
    return [SESSION.of_row(row) for row in rows]


def _insert(connection: apsw.Connection, key: SessionKey, opening: Opening, *, seq: int | None = None) -> Opened:
    session = opening.session
    if session.key != key:
        raise SessionConflict(f"Session {session.id} does not belong to the lane that writes.")
    if one(connection, "SELECT 1 FROM sessions WHERE id = ?", (session.id,)) is not None:
        raise SessionConflict(f"There is a session {session.id} already.")
    stored = messages.refer(connection, session.id, key, 0, opening.transcript, session.started_at)
    session = replace(session, message_count=len(stored), transcript_tokens=noted_tokens(stored))
    columns = SESSION.facts(session)
    prompt = columns.pop("system_prompt")
    names = ", ".join(["seq", *columns])
    change(connection, f"INSERT INTO sessions({names}) VALUES ({marks(names)})", (seq, *columns.values()))
    change(connection, "INSERT INTO prompts(session_id, system_prompt) VALUES (?,?)", (session.id, prompt))
    return Opened(session=session, messages=stored)


def _close(
    connection: apsw.Connection,
    ref: SessionRef,
    reason: EndReason,
    at: float,
    *,
    hook: str | None,
    continuation_id: str | None,
) -> None:
    change(
        connection,
        "UPDATE sessions SET ended_at = ?, end_reason = ?, hook = coalesce(?, hook), continuation_id = ?,"
        " epoch = epoch + 1 WHERE id = ?",
        (at, reason, hook, continuation_id, ref.id),
    )


def _leave_tip(connection: apsw.Connection, ref: SessionRef, key: SessionKey) -> None:
    if not change(connection, "DELETE FROM tips WHERE key = ? AND session_id = ?", (key.text, ref.id)):
        raise SessionConflict(f"Session {ref.id} is not its key's present one.")


def _take_over(connection: apsw.Connection, parent_id: str, child: Session, snapshot_length: int) -> Session:
    count = child.message_count
    taken = change(
        connection,
        "INSERT INTO transcript(session_id, position, message_id)"
        " SELECT ?, position - ? + ?, message_id FROM transcript WHERE session_id = ? AND position >= ?",
        (child.id, snapshot_length, count, parent_id, snapshot_length),
    )
    change(
        connection,
        "UPDATE sessions SET message_count = message_count + ?, transcript_tokens = transcript_tokens +"
        " (SELECT coalesce(sum(m.tokens), 0) FROM transcript t JOIN messages m ON m.id = t.message_id"
        " WHERE t.session_id = ? AND t.position >= ?) WHERE id = ?",
        (taken, child.id, count, child.id),
    )
    return by_id(connection, child.id)


def record_calls(connection: apsw.Connection, calls: Iterable[LedgerEntry], session_id: str, key: SessionKey) -> None:
    """Enter model calls into the ledger; those of a helper under its caller's key."""
    lane = key.text if key.helper is None else key.caller.text
    for call in calls:
        change(
            connection,
            f"INSERT INTO ledger(at, key, platform, session_id, purpose, provider, model, {USAGE_COLUMNS}, cost_usd)"
            " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)",
            (
                *(
                    call.at,
                    lane,
                    key.platform,
                    session_id,
                    call.purpose,
                    call.provider,
                    storable(call.model),
                ),
                *USAGE.row(call.usage),
                call.cost_usd,
            ),
        )
