"""The arguments of the scripts, in the order in which the scripts take them: of a list first its length."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Final

from gateway.domain.chat import Outbound, SessionKey
from gateway.domain.message import Message, note_of, noted, noted_tokens
from gateway.domain.reminder import Reminder
from gateway.domain.session import Session, SessionRef
from gateway.domain.usage import LedgerEntry
from gateway.runtime.structs import replace
from gateway.store.records import PATCHED, Arrival, Lease, Opening, Patch, SessionChanges, StepRecord
from gateway.store.redis.codec import (
    field_text,
    fields,
    ledger_json,
    message_text,
    number,
    row_fields,
    session_fields,
)
from gateway.store.redis.partitions import address_name
from gateway.store.shared.documents import inbound_json, reminder_json, storable
from gateway.store.shared.fields import SESSION, USAGE
from gateway.store.shared.platforms import chat_name
from gateway.store.shared.searchable import kind_of

Arguments = list[str]


def listed(values: Sequence[str]) -> Arguments:
    """The number of values, then the values."""
    return [str(len(values)), *values]


def of_lease(lease: Lease) -> Arguments:
    """The first arguments of a step in a lane."""
    return [str(lease.key), str(lease.fence)]


def flags(*values: bool) -> Arguments:
    """Yes or no, each."""
    return ["1" if value else "0" for value in values]


def arrival(each: Arrival) -> Arguments:
    """Lane, platform, event id, document, when, and the chat unless it is the gateway's own request."""
    inbound = each.inbound
    platform = storable(inbound.source.platform)
    chat = chat_name(inbound.source.address) if not inbound.is_own_request else ""
    return [str(each.key), platform, storable(inbound.event_id), inbound_json(inbound), number(each.at), chat]


def reminders(some: Sequence[Reminder]) -> Arguments:
    """How many, then of each its id and the facts that change."""
    return [str(len(some)), *(text for each in some for text in (each.id, *reminder(each)))]


def reminder(each: Reminder) -> Arguments:
    """The facts that change: version, whether it is open, its time, its document."""
    due = "" if each.due_at is None else number(each.due_at)
    return [str(each.version), *flags(each.is_open), due, reminder_json(each)]


def row(outbound: Outbound) -> Arguments:
    """Id, chat, address, fields."""
    return [outbound.id, chat_name(outbound.to), address_name(outbound.to), *listed(row_fields(outbound))]


def rows(outbound: Sequence[Outbound]) -> Arguments:
    """Several rows."""
    return [str(len(outbound)), *chain.from_iterable(map(row, outbound))]


def messages(new: Sequence[Message], key: SessionKey, session_id: str, at: float) -> Arguments:
    """Messages for a transcript: stored messages by their ids, new ones as they will be stored."""
    arguments = [str(len(new))]
    for message in new:
        note = note_of(message)
        if "id" in note:
            arguments += ["r", note["id"]]
        else:
            arguments += ["i" if kind_of(message) else "n", message_text(message, key, session_id, at)]
    return arguments


def stored(new: Sequence[Message], ids: Sequence[str], at: float) -> tuple[Message, ...]:
    """The same messages with their new ids."""
    return tuple(
        message if "id" in note_of(message) else noted(message, id=number_, at=note_of(message).get("at", at))
        for message, number_ in zip(new, ids, strict=True)
    )


def step(ref: SessionRef, key: SessionKey, record: StepRecord) -> Arguments:
    """Session, epoch, messages before, messages, patch, ledger, absorbed items."""
    at = record.patch.at
    return [
        ref.id,
        str(ref.epoch),
        "" if record.after is None else str(record.after),
        *messages(record.messages, key, ref.id, at),
        *_patch(record.patch, noted_tokens(record.messages)),
        *calls(record.ledger, ref.id, key),
        *listed(record.absorbed),
    ]


def calls(made: Sequence[LedgerEntry], session_id: str, key: SessionKey) -> Arguments:
    """Model calls: the time of each, and its document."""
    documents = [(number(entry.at), ledger_json(entry, session_id, key)) for entry in made]
    return [str(len(documents)), *chain.from_iterable(documents)]


_CHANGED: Final = tuple(name for name in PATCHED if name != "expires_at")
_changed: Final = SESSION.some(_CHANGED)


def _patch(patch: Patch, new_tokens: int) -> Arguments:
    """Tokens and cost to add, when, expiry, buckets to add, fields to set."""
    used = USAGE.facts(patch.usage) if patch.usage else {}
    changed = dict(zip(_CHANGED, _changed(patch), strict=True))
    return [
        str(new_tokens),
        number(patch.cost_usd) if patch.cost_usd else "0",
        number(patch.at),
        "" if patch.expires_at is None else number(patch.expires_at),
        *listed(fields({name: tokens or None for name, tokens in used.items()})),
        *listed(fields(changed)),
    ]


def opening(opened: Opening) -> tuple[Session, Arguments]:
    """A session as it will be when it is open, and: id, expiry, fields, messages."""
    transcript = opened.transcript
    session = replace(opened.session, message_count=len(transcript), transcript_tokens=noted_tokens(transcript))
    return session, [
        session.id,
        "" if session.expires_at is None else number(session.expires_at),
        *listed(session_fields(session)),
        *messages(transcript, session.key, session.id, session.started_at),
    ]


def changes(named: SessionChanges) -> Arguments:
    """Fields to set or to forget. `engine_state` and `announced` are never forgotten."""
    arguments = [str(len(named))]
    for name, value in named.items():
        if value is None:
            arguments += [name, "forget", ""]
        else:
            arguments += [name, "set", field_text(SESSION.fact(name, value))]
    return arguments
