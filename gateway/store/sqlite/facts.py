"""Facts out of a SQLite file: the records of each kind in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

import apsw

from gateway.domain.chat import Inbound
from gateway.runtime.structs import replace
from gateway.store import kinds
from gateway.store.shared import fields
from gateway.store.shared.documents import (
    ERASED,
    approval_json,
    dumps,
    inbound_json,
    intents_json,
    pins_json,
    reminder_json,
    verdict_json,
)
from gateway.store.shared.facts import FIELDS, PAGE, PAGE_TEXT, Record, lost
from gateway.store.shared.platforms import chat_name
from gateway.store.space import Kind
from gateway.store.sqlite.connection import many
from gateway.store.sqlite.records import FileRecords

T = TypeVar("T")
Data = dict[str, Any]


def dump(connection: apsw.Connection) -> Iterator[Sequence[Record]]:
    """All facts in pages. Nothing may write to the file meanwhile."""
    stored = FileRecords(connection)
    for kind, facts in _FACTS.items():
        page: list[Record] = []
        size = 0
        for data in facts(stored):
            record = Record(kind, {name: data.get(name) for name in FIELDS[kind]})
            length = sum(len(value) for value in record.data.values() if isinstance(value, str | bytes))
            if page and (len(page) == PAGE or size + length > PAGE_TEXT):
                yield page
                page, size = [], 0
            page.append(record)
            size += length
        if page:
            yield page


def _every(stored: FileRecords, kind: Kind[T], order: str = "key", where: str = "TRUE") -> Iterator[T]:
    """The records of a kind, in an order of columns, some at a time."""
    keys = [row[0] for row in many(stored.connection, f'SELECT key FROM "{kind.name}" WHERE {where} ORDER BY {order}')]
    for start in range(0, len(keys), PAGE):
        yield from stored.many(kind, keys[start : start + PAGE])


def _sessions(stored: FileRecords) -> Iterator[Data]:
    for kept in _every(stored, kinds.SESSION, "sessions_at"):
        prompt = stored.get(kinds.PROMPT, kept.session.id)
        session = replace(kept.session, system_prompt=prompt.text if prompt else "")
        yield {**fields.SESSION.facts(session), "is_tip": int(session.ended_at is None)}


def _messages(stored: FileRecords) -> Iterator[Data]:
    for kept in _every(stored, kinds.SESSION, "sessions_at"):
        for number in stored.members(kept.session.id):
            said = stored.get(kinds.MESSAGE, number)
            if said is None:
                raise lost(str(number), kept.session.id)
            if said.session_id == kept.session.id:
                yield {
                    "id": str(number),
                    "key": said.key.text,
                    "session_id": said.session_id,
                    "role": said.message["role"],
                    "body": dumps(said.message),
                    "note": dumps(said.note) if said.note else None,
                    "tokens": said.tokens,
                    "at": said.at,
                }


def _transcripts(stored: FileRecords) -> Iterator[Data]:
    for kept in _every(stored, kinds.SESSION, "sessions_at"):
        for position, number in enumerate(stored.members(kept.session.id)):
            of = {"session_id": kept.session.id, "key": kept.session.key.text}
            yield {**of, "position": position, "message_id": str(number)}


def _compactions(stored: FileRecords) -> Iterator[Data]:
    for kept in _every(stored, kinds.SESSION, "sessions_at"):
        for made in stored.look(kinds.ENDING, kept.session.id, PAGE, None, None, last=False):
            facts = fields.COMPACTION.facts(made.compaction)
            yield {**facts, "fallback": int(made.compaction.fallback), "key": kept.session.key.text}


def _hooks(stored: FileRecords) -> Iterator[Data]:
    for kept in _every(stored, kinds.SESSION, "owed_at", "owed IS NOT NULL"):
        yield {"session_id": kept.session.id, "key": kept.session.key.text}


def _events(stored: FileRecords) -> Iterator[Data]:
    names: dict[int, str] = dict(many(stored.connection, "SELECT doc ->> '$.item', key FROM event"))
    for item in _every(stored, kinds.ITEM):
        platform, _, event_id = names.get(item.number, item.key.platform).partition("/")
        yield {
            "event_id": event_id,
            "id": item.number,
            "key": item.lane,
            "platform": platform,
            "inbound": _inbound(item.inbound),
            "accepted_at": item.accepted_at,
            "attempts": item.attempts,
            "bypass": int(item.bypass),
            "absorbed_by": item.absorbed_by,
            "outcome": item.outcome,
            "ended_at": item.ended_at,
        }


def _inbound(inbound: Inbound | None) -> str:
    return ERASED if inbound is None else inbound_json(inbound)


def _turns(stored: FileRecords) -> Iterator[Data]:
    for turn in _every(stored, kinds.TURN):
        if turn.began:
            yield {
                "item": turn.item,
                "key": turn.key.text,
                "session_id": turn.session_id or None,
                "steps": turn.steps,
                "intents": intents_json(turn.intents),
                "reply": turn.reply,
            }


def _approvals(stored: FileRecords) -> Iterator[Data]:
    for turn in _every(stored, kinds.TURN):
        for asked in sorted(turn.asked, key=lambda each: each.token):
            is_open = asked.decided_at is None
            yield {
                "token": asked.token,
                "item": turn.item,
                "key": turn.key.text,
                "chat": chat_name(turn.key.address),
                "asked": approval_json(asked),
                "verdict": None if is_open else verdict_json(asked.state, asked.decided_by, asked.decided_at or 0.0),
            }


def _signals(stored: FileRecords) -> Iterator[Data]:
    for turn in _every(stored, kinds.TURN):
        for at, kind in turn.signals:
            yield {"item": turn.item, "key": turn.key.text, "kind": kind, "at": at}


def _outbox(stored: FileRecords) -> Iterator[Data]:
    placed = 'SELECT key, row_number() OVER (PARTITION BY "out" ORDER BY out_at, key) - 1 FROM "row"'
    ahead: dict[str, int] = dict(many(stored.connection, f'{placed} WHERE "out" IS NOT NULL'))
    for row in _every(stored, kinds.ROW, "rows_at"):
        yield {**fields.OUTBOUND.facts(row.out), "lane": row.chat, "ahead": ahead.get(row.out.id)}


def _ledger(stored: FileRecords) -> Iterator[Data]:
    for call in _every(stored, kinds.CALL, "calls_at, key"):
        entry = call.entry
        of_call = {name: getattr(entry, name) for name in ("at", "purpose", "provider", "model", "cost_usd")}
        key = "" if call.key is None else call.key.text
        of = {"session_id": call.session_id, "key": key, "platform": call.platform}
        yield {**of, **of_call, **fields.USAGE.facts(entry.usage)}


def _spending(stored: FileRecords) -> Iterator[Data]:
    for account in _every(stored, kinds.ACCOUNT):
        until = None if account.forget_at is None else round(account.forget_at * 1_000)
        yield {"account": account.name, "spent": account.spent, "forget_at": until}


def _pins(stored: FileRecords) -> Iterator[Data]:
    for pinned in _every(stored, kinds.PINNED):
        yield {"key": pinned.key.text, "rules": pins_json(pinned.pins)}


def _forgotten(stored: FileRecords) -> Iterator[Data]:
    for deed in _every(stored, kinds.DEED, "doc ->> '$.key', key"):
        yield {"deed": deed.id, "key": deed.key.text, "at": deed.at, "counts": dumps(dict(deed.counts))}


def _memory(stored: FileRecords) -> Iterator[Data]:
    for kept in _every(stored, kinds.FACT, "facts, facts_at, key"):
        yield {**fields.FACT.facts(kept.fact), "forgotten": int(kept.fact.forgotten)}


def _counters(stored: FileRecords) -> Iterator[Data]:
    for scope in _every(stored, kinds.SCOPE):
        yield {"scope": scope.scope.text, "version": scope.version, "last_number": scope.last_number}


def _reminders(stored: FileRecords) -> Iterator[Data]:
    for alarm in _every(stored, kinds.ALARM, "of_key, of_key_at"):
        reminder = alarm.reminder
        facts = {name: getattr(reminder, name) for name in ("id", "number", "version", "due_at")}
        flags = {"open": int(reminder.is_open), "parked": int(reminder.parked)}
        where = {
            "key": reminder.key.text,
            "chat": alarm.chat,
            "platform": chat_name(reminder.key.address).split("/")[0],
        }
        yield {**facts, **flags, **where, "person": reminder.source.user, "reminder": reminder_json(reminder)}


def _files(stored: FileRecords) -> Iterator[Data]:
    for kept in _every(stored, kinds.FILE, "files, files_at, key"):
        content = stored.get(kinds.CONTENT, f"{kept.key.text} {kept.file.digest}")
        if content is not None:
            yield {**fields.FILE.facts(kept.file), "key": kept.key.text, "content": content.content}


def _notes(stored: FileRecords) -> Iterator[Data]:
    for note in _every(stored, kinds.NOTE, "folder, key"):
        yield {"account": note.folder, "name": note.name, "value": note.text}


def _closed(stored: FileRecords) -> Iterator[Data]:
    for chat in _every(stored, kinds.CHAT):
        if chat.closed is not None:
            yield {"lane": chat.name, "reason": chat.closed}


def _renamed(stored: FileRecords) -> Iterator[Data]:
    for name in _every(stored, kinds.NAME):
        yield {"lane": name.chat, "first": name.first, "later": name.later}


_FACTS: Final[dict[str, Callable[[FileRecords], Iterator[Data]]]] = {
    "sessions": _sessions,
    "messages": _messages,
    "transcripts": _transcripts,
    "compactions": _compactions,
    "hooks": _hooks,
    "events": _events,
    "turns": _turns,
    "approvals": _approvals,
    "signals": _signals,
    "outbox": _outbox,
    "ledger": _ledger,
    "spending": _spending,
    "pins": _pins,
    "forgotten": _forgotten,
    "memory": _memory,
    "memory counters": _counters,
    "reminders": _reminders,
    "files": _files,
    "notes": _notes,
    "closed chats": _closed,
    "renamed chats": _renamed,
}
