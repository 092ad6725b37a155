"""Rows to domain objects and back. No SQL is run here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gateway.domain.chat import ChatAddress, Outbound, SessionKey
from gateway.domain.message import Message, note_of, noted, wire
from gateway.domain.session import Compaction, Session, Todo
from gateway.domain.usage import CanonicalUsage
from gateway.runtime.errors import StoreError
from gateway.store.records import InboxItem, ToolIntent
from gateway.store.shared.documents import (
    buttons_from,
    dumps,
    file_from,
    intent_facts,
    intent_from,
    readable_inbound,
    storable,
)
from gateway.store.sqlite.connection import Row

ITEM_COLUMNS: Final = "id, key, inbound, accepted_at, attempts"
OUTBOUND_COLUMNS: Final = (
    "id, key, platform, chat, thread, kind, text, session_id, answers, state,"
    " platform_message_id, attempts, ambiguous, due_at, created_at, error, file, buttons, edits"
)
MESSAGE_COLUMNS: Final = "m.id, m.body, m.note, m.tokens, m.at"
COMPACTION_COLUMNS: Final = (
    "at, parent_id, child_id, trigger, messages_before, messages_after, tokens_before, tokens_after,"
    " focus, fallback, error"
)
USAGE_COLUMNS: Final = "input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens"
# Rowids from here on stand for the ids of messages that came from a Redis store: their numbers are
# below 2^53, and a partition takes four bits.
_FOREIGN: Final = 1 << 60
_PARTITIONS: Final = 16
# Always read as `sessions s JOIN prompts p`.
SESSION_COLUMNS: Final = (
    "s.id, s.key, s.chat_type, s.parent_id, s.started_at, s.model, p.system_prompt, s.epoch, s.ended_at,"
    " s.end_reason, s.continuation_id, s.hook, s.title, s.input_tokens, s.output_tokens,"
    " s.cache_read_tokens, s.cache_write_tokens, s.reasoning_tokens, s.cost_usd, s.last_prompt_tokens,"
    " s.reported_messages, s.transcript_tokens, s.message_count, s.compaction_count, s.engine_state,"
    " s.todos, s.last_active_at, s.expires_at, s.announced"
)


def optional(text: str | None) -> str | None:
    """`storable`, None included."""
    return None if text is None else storable(text)


def item_from(row: Row) -> InboxItem:
    """A row of ITEM_COLUMNS."""
    number, text, inbound, accepted_at, attempts = row
    key = SessionKey.parse(text)
    return InboxItem(
        id=str(number),
        key=key,
        inbound=readable_inbound(inbound, key, str(number)),
        accepted_at=accepted_at,
        attempts=attempts,
    )


def lane_of(address: ChatAddress) -> str:
    """The chat whose rows keep their order. Threads of a chat share it: so do the platform's limits."""
    return str(SessionKey(platform=address.platform, chat=address.chat))


def outbound_from(row: Row) -> Outbound:
    """A row of OUTBOUND_COLUMNS."""
    (number, key, platform, chat, thread, kind, text, session_id, answers, state) = row[:10]
    (shown_as, attempts, ambiguous, due_at, created_at, error, file, buttons, edits) = row[10:]
    return Outbound(
        id=number,
        key=SessionKey.parse(key),
        to=ChatAddress(platform=platform, chat=chat, thread=thread),
        kind=kind,
        text=text,
        session_id=session_id,
        answers=answers,
        buttons=buttons_from(buttons),
        edits=edits,
        state=state,
        platform_message_id=shown_as,
        attempts=attempts,
        ambiguous=ambiguous,
        due_at=due_at,
        created_at=created_at,
        error=error,
        file=None if file is None else file_from(file),
    )


def message_number(message_id: str) -> int:
    """A message's id as a rowid. One from a Redis store ("<number>p<partition>") becomes a rowid above
    all that SQLite gives by itself, in the same order, and reads back as it was. Raises StoreError for
    any other form."""
    number, mark, partition = message_id.partition("p")
    if number.isdecimal() and not mark:
        return int(number)
    if number.isdecimal() and partition.isdecimal() and len(partition) == 2 and int(partition) < _PARTITIONS:
        return _FOREIGN + int(number) * _PARTITIONS + int(partition)
    raise StoreError(f"A message with the id {message_id!r} cannot be kept in a SQLite store.")


def message_id(number: int) -> str:
    """The inverse of `message_number`."""
    if number < _FOREIGN:
        return str(number)
    return "{}p{:02}".format(*divmod(number - _FOREIGN, _PARTITIONS))


def message_columns(message: Message) -> tuple[str, str | None]:
    """(body, note): what a provider sees, and what the host noted beyond the columns' facts."""
    note = {name: value for name, value in note_of(message).items() if name not in ("id", "tokens", "at")}
    return dumps(wire(message)), dumps(note) if note else None


def message_of(body: str, note: str | None) -> Message:
    """What `message_columns` made two columns of."""
    return noted(json.loads(body), **(json.loads(note) if note else {}))


def message_from(row: Row) -> Message:
    """A row of MESSAGE_COLUMNS, with its full host note."""
    number, body, extra, tokens, at = row
    message: Message = json.loads(body)
    note: dict[str, Any] = json.loads(extra) if extra else {}
    note["id"] = message_id(number)
    note["at"] = at
    if tokens is not None:
        note["tokens"] = tokens
    return noted(message, **note)


def usage_columns(usage: CanonicalUsage) -> tuple[int, int, int, int, int]:
    """The buckets in the order of USAGE_COLUMNS."""
    return (
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage.reasoning_tokens,
    )


def usage_from(row: Sequence[int]) -> CanonicalUsage:
    """The inverse of `usage_columns`."""
    fresh, output, read, written, reasoning = row
    return CanonicalUsage(
        input_tokens=fresh,
        output_tokens=output,
        cache_read_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=reasoning,
    )


def session_from(row: Row) -> Session:
    """A row of SESSION_COLUMNS."""
    (number, key, chat_type, parent_id, started_at, model, prompt, epoch, ended_at, end_reason) = row[:10]
    (continuation_id, hook, title) = row[10:13]
    (cost, last_prompt, reported, tokens, count, compactions, state, todos, active, expires, announced) = row[18:]
    return Session(
        id=number,
        key=SessionKey.parse(key),
        chat_type=chat_type,
        parent_id=parent_id,
        started_at=started_at,
        model=model,
        system_prompt=prompt,
        epoch=epoch,
        ended_at=ended_at,
        end_reason=end_reason,
        continuation_id=continuation_id,
        hook=hook,
        title=title,
        usage=usage_from(row[13:18]),
        cost_usd=cost,
        last_prompt_tokens=last_prompt,
        reported_messages=reported,
        transcript_tokens=tokens,
        message_count=count,
        compaction_count=compactions,
        engine_state=json.loads(state),
        todos=todos_from(todos),
        last_active_at=active,
        expires_at=expires,
        announced=tuple(json.loads(announced)),
    )


def todos_json(todos: Sequence[Todo]) -> str:
    """A to-do list as JSON pairs."""
    return dumps([[todo.text, todo.status] for todo in todos])


def todos_from(text: str) -> tuple[Todo, ...]:
    """The inverse of `todos_json`."""
    return tuple(Todo(text=what, status=status) for what, status in json.loads(text))


def state_json(state: Mapping[str, Any]) -> str:
    """An engine's state as JSON. Raises TypeError if it is not JSON-able."""
    return dumps(dict(state))


def intents_json(intents: Sequence[ToolIntent]) -> str:
    """Tool intents as JSON lists."""
    return dumps([intent_facts(intent) for intent in intents])


def intents_from(text: str) -> tuple[ToolIntent, ...]:
    """The inverse of `intents_json`."""
    return tuple(map(intent_from, json.loads(text)))


def compaction_columns(compaction: Compaction) -> tuple[Any, ...]:
    """Values in the order of COMPACTION_COLUMNS."""
    return (
        compaction.at,
        compaction.parent_id,
        compaction.child_id,
        compaction.trigger,
        compaction.messages_before,
        compaction.messages_after,
        compaction.tokens_before,
        compaction.tokens_after,
        optional(compaction.focus),
        compaction.fallback,
        optional(compaction.error),
    )


def compaction_from(row: Row) -> Compaction:
    """A row of COMPACTION_COLUMNS."""
    (at, parent_id, child_id, trigger, count_before, count_after, before, after, focus, fallback, error) = row
    return Compaction(
        at=at,
        parent_id=parent_id,
        child_id=child_id,
        trigger=trigger,
        messages_before=count_before,
        messages_after=count_after,
        tokens_before=before,
        tokens_after=after,
        focus=focus,
        fallback=bool(fallback),
        error=error,
    )
