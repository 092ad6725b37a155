"""What a store holds, as facts: the records of each kind in their order. The inverse of `moving`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, Protocol, TypeVar

from gateway.domain.chat import Inbound, OutboundState
from gateway.runtime.errors import StoreError
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
from gateway.store.shared.facts import FIELDS, PAGE, Record, in_pages, lost
from gateway.store.shared.platforms import chat_name
from gateway.store.space import Index, Key, Kind

T = TypeVar("T")
Data = dict[str, Any]

_SOME: Final = 100  # sessions whose messages are read together


class Everything(Protocol):
    """All records of a store that nobody changes meanwhile."""

    def every(self, kind: Kind[T], index: Index[T] | None = None) -> Iterator[T]:
        """The records of a kind by their keys, or those in an index by name, place and key."""

    def many(self, kind: Kind[T], keys: Sequence[Key]) -> list[T]:
        """The records of these keys, in order, leaving out those that do not exist."""

    def series(self, names: Sequence[str]) -> list[list[int]]:
        """All numbers of each of these series."""


def dump(stored: Everything) -> Iterator[Sequence[Record]]:
    """All facts in pages."""
    for kind, facts in _FACTS.items():
        yield from in_pages(Record(kind, {name: data.get(name) for name in FIELDS[kind]}) for data in facts(stored))


def _some(records: Iterable[T]) -> Iterator[list[T]]:
    left = iter(records)
    while page := list(islice(left, _SOME)):
        yield page


def _every_session(stored: Everything) -> Iterator[kinds.Kept]:
    return stored.every(kinds.SESSION, kinds.SESSIONS)


def _sessions(stored: Everything) -> Iterator[Data]:
    for some in _some(_every_session(stored)):
        ids = [kept.session.id for kept in some]
        prompts = {prompt.session_id: prompt.text for prompt in stored.many(kinds.PROMPT, ids)}
        for kept in some:
            session = replace(kept.session, system_prompt=prompts.get(kept.session.id, ""))
            yield {**fields.SESSION.facts(session), "is_tip": int(session.ended_at is None)}


def _messages(stored: Everything) -> Iterator[Data]:
    for some in _some(_every_session(stored)):
        for kept, numbers in zip(some, stored.series([kept.session.id for kept in some]), strict=True):
            for start in range(0, len(numbers), PAGE):
                wanted = numbers[start : start + PAGE]
                found = stored.many(kinds.MESSAGE, wanted)
                if len(found) < len(wanted):
                    missing = set(wanted) - {said.number for said in found}
                    raise lost(str(min(missing)), kept.session.id)
                yield from (_message(said) for said in found if said.session_id == kept.session.id)


def _message(said: kinds.Spoken) -> Data:
    return {
        "id": str(said.number),
        "key": said.key.text,
        "session_id": said.session_id,
        "role": said.message["role"],
        "body": dumps(said.message),
        "note": dumps(said.note) if said.note else None,
        "tokens": said.tokens,
        "at": said.at,
    }


def _transcripts(stored: Everything) -> Iterator[Data]:
    for some in _some(_every_session(stored)):
        for kept, numbers in zip(some, stored.series([kept.session.id for kept in some]), strict=True):
            of = {"session_id": kept.session.id, "key": kept.session.key.text}
            for position, number in enumerate(numbers):
                yield {**of, "position": position, "message_id": str(number)}


def _compactions(stored: Everything) -> Iterator[Data]:
    of: dict[str, list[kinds.Compacted]] = {}
    for made in stored.every(kinds.COMPACTION):
        of.setdefault(made.compaction.parent_id, []).append(made)
    for kept in _every_session(stored):
        for made in of.get(kept.session.id, ()):
            facts = fields.COMPACTION.facts(made.compaction)
            yield {**facts, "fallback": int(made.compaction.fallback), "key": kept.session.key.text}


def _hooks(stored: Everything) -> Iterator[Data]:
    for kept in sorted(stored.every(kinds.SESSION, kinds.OWED), key=lambda kept: kept.owed):
        yield {"session_id": kept.session.id, "key": kept.session.key.text}


def _events(stored: Everything) -> Iterator[Data]:
    names = {event.item: event.name for event in stored.every(kinds.EVENT)}
    for item in stored.every(kinds.ITEM):
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


def _turns(stored: Everything) -> Iterator[Data]:
    for turn in stored.every(kinds.TURN):
        if turn.began:
            yield {
                "item": turn.item,
                "key": turn.key.text,
                "session_id": turn.session_id or None,
                "steps": turn.steps,
                "intents": intents_json(turn.intents),
                "reply": turn.reply,
            }


def _approvals(stored: Everything) -> Iterator[Data]:
    for turn in stored.every(kinds.TURN):
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


def _signals(stored: Everything) -> Iterator[Data]:
    for turn in stored.every(kinds.TURN):
        for at, kind in turn.signals:
            yield {"item": turn.item, "key": turn.key.text, "kind": kind, "at": at}


def _outbox(stored: Everything) -> Iterator[Data]:
    """The rows of the outbox. A process that was thought dead may know that a chat's first row was shown."""
    ahead: dict[str, int] = {}
    before = Counter[str]()
    shown = set[str]()
    for row in stored.every(kinds.ROW, kinds.OUT):
        if row.confirmed and not before[row.chat]:
            shown.add(row.out.id)
        else:
            ahead[row.out.id] = before[row.chat]
            before[row.chat] += 1
    for row in stored.every(kinds.ROW, kinds.ROWS):
        sent = {"state": str(OutboundState.SENT)} if row.out.id in shown else {}
        yield {**fields.OUTBOUND.facts(row.out), "lane": row.chat, "ahead": ahead.get(row.out.id), **sent}


def _ledger(stored: Everything) -> Iterator[Data]:
    for call in stored.every(kinds.CALL, kinds.CALLS):
        entry = call.entry
        of_call = {name: getattr(entry, name) for name in ("at", "purpose", "provider", "model", "cost_usd")}
        key = "" if call.key is None else call.key.text
        of = {"session_id": call.session_id, "key": key, "platform": call.platform}
        yield {**of, **of_call, **fields.USAGE.facts(entry.usage)}


def _spending(stored: Everything) -> Iterator[Data]:
    for account in stored.every(kinds.ACCOUNT):
        until = None if account.forget_at is None else round(account.forget_at * 1_000)
        yield {"account": account.name, "spent": account.spent, "forget_at": until}


def _pins(stored: Everything) -> Iterator[Data]:
    for pinned in stored.every(kinds.PINNED):
        yield {"key": pinned.key.text, "rules": pins_json(pinned.pins)}


def _forgotten(stored: Everything) -> Iterator[Data]:
    for deed in sorted(stored.every(kinds.DEED), key=lambda deed: (deed.key.text, deed.id)):
        yield {"deed": deed.id, "key": deed.key.text, "at": deed.at, "counts": dumps(dict(deed.counts))}


def _memory(stored: Everything) -> Iterator[Data]:
    for kept in stored.every(kinds.FACT, kinds.FACTS):
        yield {**fields.FACT.facts(kept.fact), "forgotten": int(kept.fact.forgotten)}


def _counters(stored: Everything) -> Iterator[Data]:
    for scope in stored.every(kinds.SCOPE):
        yield {"scope": scope.scope.text, "version": scope.version, "last_number": scope.last_number}


def _reminders(stored: Everything) -> Iterator[Data]:
    for alarm in stored.every(kinds.ALARM, kinds.ALARMS):
        reminder = alarm.reminder
        facts = {name: getattr(reminder, name) for name in ("id", "number", "version", "due_at")}
        flags = {"open": int(reminder.is_open), "parked": int(reminder.parked)}
        where = {
            "key": reminder.key.text,
            "chat": alarm.chat,
            "platform": chat_name(reminder.key.address).split("/")[0],
        }
        yield {**facts, **flags, **where, "person": reminder.source.user, "reminder": reminder_json(reminder)}


def _files(stored: Everything) -> Iterator[Data]:
    for kept in stored.every(kinds.FILE, kinds.FILES):
        found = stored.many(kinds.CONTENT, [f"{kept.key.text} {kept.file.digest}"])
        if not found:
            raise StoreError(
                f"The store is damaged: file {kept.file.ref} of {kept.key.text} has no content; restore a backup, then "
                "migrate that."
            )
        yield {**fields.FILE.facts(kept.file), "key": kept.key.text, "content": found[0].content}


def _notes(stored: Everything) -> Iterator[Data]:
    for note in stored.every(kinds.NOTE, kinds.NOTES):
        yield {"account": note.folder, "name": note.name, "value": note.text}


def _closed(stored: Everything) -> Iterator[Data]:
    for chat in stored.every(kinds.CHAT):
        if chat.closed is not None:
            yield {"lane": chat.name, "reason": chat.closed}


def _renamed(stored: Everything) -> Iterator[Data]:
    for name in stored.every(kinds.NAME):
        yield {"lane": name.chat, "first": name.first, "later": name.later}


_FACTS: Final[dict[str, Callable[[Everything], Iterator[Data]]]] = {
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
