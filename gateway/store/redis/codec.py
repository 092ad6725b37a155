"""Domain objects to what Redis holds, and back. Nothing is sent here.

What changes is a hash with a field for each fact (one that is None has no field); what never
changes is one JSON document. Readers take the fields they know, so that a newer release may add
some: `f` is the format a record was written in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gateway.domain.approval import Approval
from gateway.domain.chat import ChatAddress, Outbound, SessionKey
from gateway.domain.message import Message, note_of, noted, wire
from gateway.domain.session import Compaction, Session, Todo
from gateway.domain.usage import CanonicalUsage, LedgerEntry
from gateway.store.records import InboxItem, ToolIntent
from gateway.store.shared.documents import (
    approval_from,
    approval_json,
    buttons_from,
    buttons_json,
    dumps,
    file_from,
    file_json,
    in_order,
    intent_facts,
    intent_from,
    readable_inbound,
    storable,
    verdict_json,
)

FORMAT: Final = 1

BUCKETS: Final = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
_TEXTS: Final = ("id", "chat_type", "parent_id", "end_reason", "continuation_id", "hook", "title", "model")
_WHOLE: Final = (
    "epoch",
    "last_prompt_tokens",
    "reported_messages",
    "transcript_tokens",
    "message_count",
    "compaction_count",
)
_TIMES: Final = ("started_at", "ended_at", "cost_usd", "last_active_at", "expires_at")

Fields = list[str]  # names and values in turn, as HSET takes and HGETALL gives them


def number(value: float) -> str:
    """A float that reads back as the same one."""
    return repr(float(value))


def pairs(fields: Sequence[str]) -> dict[str, str]:
    """Names and values in turn, as a mapping."""
    return dict(zip(fields[::2], fields[1::2], strict=True))


def _known(data: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: data[name] for name in names if name in data}


# -- inbox --------------------------------------------------------------------------------------


def item_from(reply: Sequence[Any]) -> InboxItem:
    """An item as the scripts give it: id, key, document, when, attempts."""
    number_, text, inbound, at, attempts = reply
    key = SessionKey.parse(text)
    return InboxItem(
        id=number_,
        key=key,
        inbound=readable_inbound(inbound, key, number_),
        accepted_at=float(at),
        attempts=int(attempts),
    )


# -- outbox -------------------------------------------------------------------------------------


def row_fields(row: Outbound) -> Fields:
    """An Outbound's fields but for its state, which the scripts set."""
    fields = ["id", row.id, "key", str(row.key), "platform", row.to.platform, "to", row.to.chat]
    fields += ["kind", row.kind, "text", storable(row.text), "due_at", number(row.due_at)]
    fields += ["created_at", number(row.created_at), "attempts", str(row.attempts), "ambiguous", str(row.ambiguous)]
    optional = {
        "thread": row.to.thread,
        "session_id": row.session_id,
        "answers": row.answers,
        "platform_message_id": row.platform_message_id,
        "error": row.error,
        "file": None if row.file is None else file_json(row.file),
        "buttons": buttons_json(row.buttons) if row.buttons else None,
        "edits": row.edits,
    }
    for name, value in optional.items():
        if value is not None:
            fields += [name, storable(value)]
    return fields


def row_from(fields: Sequence[str]) -> Outbound:
    """A row from the fields and values of its hash."""
    facts: dict[str, Any] = pairs(fields)
    return Outbound(
        id=facts["id"],
        key=SessionKey.parse(facts["key"]),
        to=ChatAddress(platform=facts["platform"], chat=facts["to"], thread=facts.get("thread")),
        kind=facts["kind"],
        text=facts["text"],
        session_id=facts.get("session_id"),
        answers=facts.get("answers"),
        buttons=buttons_from(facts.get("buttons")),
        edits=facts.get("edits"),
        state=facts["state"],
        platform_message_id=facts.get("platform_message_id"),
        attempts=int(facts["attempts"]),
        ambiguous=int(facts["ambiguous"]),
        due_at=float(facts["due_at"]),
        created_at=float(facts["created_at"]),
        error=facts.get("error"),
        file=file_from(facts["file"]) if "file" in facts else None,
    )


# -- sessions -----------------------------------------------------------------------------------


def session_fields(session: Session) -> Fields:
    """A session's fields, all but those that are None."""
    facts = {name: getattr(session, name) for name in (*_TEXTS, *_WHOLE, *_TIMES)}
    fields: Fields = ["key", str(session.key), "system_prompt", storable(session.system_prompt)]
    for name, value in facts.items():
        if value is not None:
            fields += [name, field_text(name, value)]
    for bucket in BUCKETS:
        fields += [bucket, str(getattr(session.usage, bucket))]
    for name in ("engine_state", "todos", "announced"):
        fields += [name, field_text(name, getattr(session, name))]
    return fields


def field_text(name: str, value: Any) -> str:
    """One field of a session as text. Raises TypeError for an engine's state that is not JSON-able."""
    if name == "engine_state":
        return dumps(dict(value))
    if name == "todos":
        return dumps([[todo.text, todo.status] for todo in value])
    if name == "announced":
        return dumps(list(value))
    if name in _TIMES:
        return number(value)
    return storable(str(value))


def session_from(fields: Sequence[str]) -> Session:
    """A session from the fields and values of its hash."""
    facts = pairs(fields)
    known: dict[str, Any] = _known(facts, _TEXTS)
    known.update({name: int(facts[name]) for name in _WHOLE})
    known.update({name: float(facts[name]) for name in _TIMES if name in facts})
    return Session(
        key=SessionKey.parse(facts["key"]),
        system_prompt=facts["system_prompt"],
        usage=CanonicalUsage(**{bucket: int(facts[bucket]) for bucket in BUCKETS}),
        engine_state=json.loads(facts["engine_state"]),
        todos=tuple(Todo(text=what, status=status) for what, status in json.loads(facts["todos"])),
        announced=tuple(json.loads(facts["announced"])),
        **{"parent_id": None, **known},
    )


def compaction_json(compaction: Compaction) -> str:
    """A compaction as a document."""
    return dumps({name: getattr(compaction, name) for name in Compaction.__slots__})


def compaction_from(text: str) -> Compaction:
    """The inverse of `compaction_json`."""
    return Compaction(**_known(json.loads(text), Compaction.__slots__))


def intents_json(intents: Sequence[ToolIntent]) -> str:
    """Tool intents as lists."""
    return dumps([intent_facts(intent) for intent in intents])


def intents_from(text: str) -> tuple[ToolIntent, ...]:
    """The inverse of `intents_json`."""
    return tuple(map(intent_from, json.loads(text)))


def approval_fields(approval: Approval) -> Fields:
    """A question in its turn's fields."""
    fields = [f"asked:{approval.token}", approval_json(approval)]
    if not approval.is_open:
        verdict = verdict_json(approval.state, approval.decided_by, approval.decided_at or 0.0)
        fields += [f"verdict:{approval.token}", verdict]
    return fields


def approvals_from(turn: Mapping[str, str], item: str) -> tuple[Approval, ...]:
    """What an item asked."""
    tokens = [name.partition(":")[2] for name in turn if name.startswith("asked:")]
    return in_order(approval_from(turn[f"asked:{token}"], item, turn.get(f"verdict:{token}")) for token in tokens)


# -- messages and model calls -------------------------------------------------------------------


def message_text(message: Message, key: SessionKey, session_id: str, at: float) -> str:
    """A new message as it is stored: its tokens for the scripts, then a document."""
    note = note_of(message)
    extra = {name: value for name, value in note.items() if name not in ("id", "tokens", "at")}
    document = {"k": str(key), "s": session_id, "at": note.get("at", at), "b": wire(message), "n": extra, "f": FORMAT}
    tokens = note.get("tokens")
    return f"{'' if tokens is None else tokens}|{dumps(document)}"


def message_from(number_: str, text: str) -> tuple[Message, dict[str, Any]]:
    """A stored message with its full host note, and the document it came from."""
    tokens, _, document = text.partition("|")
    data: dict[str, Any] = json.loads(document)
    note = {**data["n"], "id": number_, "at": data["at"]}
    if tokens:
        note["tokens"] = int(tokens)
    body: Message = data["b"]
    return noted(body, **note), data


def ledger_json(entry: LedgerEntry, session_id: str, key: SessionKey) -> str:
    """A model call as a document."""
    return dumps(
        {
            "platform": key.platform,
            "session": session_id,
            "purpose": entry.purpose,
            "provider": entry.provider,
            "model": entry.model,
            "usage": [getattr(entry.usage, bucket) for bucket in BUCKETS],
            "cost": entry.cost_usd,
        }
    )
