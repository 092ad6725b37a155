"""Domain objects to Redis's texts, and back. Nothing is sent here.

A record that changes is a hash with a field for each fact (none for None); a record that never changes is one JSON
document. Readers pass over fields that they do not know, so that a newer release may add some.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import MsgspecError, Struct, convert
from msgspec.json import Decoder

from gateway.domain.approval import Approval
from gateway.domain.chat import Outbound, SessionKey
from gateway.domain.message import HOST, HostNote, Message, note_of, wire
from gateway.domain.session import Compaction, Session
from gateway.domain.usage import LedgerEntry
from gateway.store.kinds import MESSAGE
from gateway.store.shared.documents import approval_from, dumps, in_order, loads, unkept_note
from gateway.store.shared.fields import COMPACTION, OUTBOUND, SESSION, USAGE, Fact
from gateway.store.steps.sessions import message as whole_message

Fields = list[str]  # names and values in turn, as HSET takes and HGETALL gives them


def number(value: float) -> str:
    """A float that reads back as the same float."""
    return repr(float(value))


def pairs(fields: Sequence[str]) -> dict[str, str]:
    """Names and values in turn, as a mapping."""
    return dict(zip(fields[::2], fields[1::2], strict=True))


def fields(facts: Mapping[str, Fact]) -> Fields:
    """Facts as a hash holds them."""
    return [
        text
        for name, fact in facts.items()
        if fact is not None
        for text in (name, fact if isinstance(fact, str) else field_text(fact))
    ]


def field_text(fact: Fact) -> str:
    """One fact as text."""
    return repr(fact) if isinstance(fact, float) else str(fact)


def row_fields(row: Outbound) -> Fields:
    """An Outbound's fields without its state, which the scripts set. Its chat is `to`: the scripts use `chat` for
    the chat's text form."""
    facts = OUTBOUND.facts(row)
    return fields({"to": facts.pop("chat"), **facts, "state": None})


def row_from(flat: Sequence[str]) -> Outbound:
    """A row from the fields and values of its hash."""
    facts = pairs(flat)
    return OUTBOUND.of_texts({**facts, "chat": facts["to"]})


def session_fields(session: Session) -> Fields:
    """A session's fields."""
    return fields(SESSION.facts(session))


def session_from(flat: Sequence[str]) -> Session:
    """A session from the fields and values of its hash."""
    return SESSION.of_texts(pairs(flat))


def compaction_json(compaction: Compaction) -> str:
    """A compaction as a document."""
    return dumps(COMPACTION.facts(compaction))


def compaction_from(text: str) -> Compaction:
    """The inverse of `compaction_json`."""
    return COMPACTION.of_texts(json.loads(text))


def approvals_from(turn: Mapping[str, str], item: str) -> tuple[Approval, ...]:
    """The questions of an item, from its turn's fields."""
    tokens = [name.partition(":")[2] for name in turn if name.startswith("asked:")]
    return in_order(approval_from(turn[f"asked:{token}"], item, turn.get(f"verdict:{token}")) for token in tokens)


def message_text(message: Message, key: SessionKey, session_id: str, at: float) -> str:
    """A new message as it is stored: its tokens for the scripts, then a document."""
    note = note_of(message)
    document = {"k": str(key), "s": session_id, "at": note.get("at", at), "b": wire(message)}
    document["n"] = unkept_note(message)
    tokens = note.get("tokens")
    return f"{'' if tokens is None else tokens}|{dumps(document)}"


def document_in(text: str) -> str:
    """The JSON document of a stored message or model call."""
    return text.partition("|")[2]


def is_record(text: str) -> bool:
    """Say whether a message is stored as a record of its kind, behind its version."""
    return text.partition("{")[0].endswith(" ")


def message_from(number_: str, text: str) -> tuple[Message, dict[str, Any]]:
    """A stored message with its full host note, and the document it came from."""
    if is_record(text):
        said = MESSAGE.record(text.partition(" ")[2])
        of = {"k": said.key.text, "s": said.session_id, "at": said.at, "b": said.message, "n": said.note or {}}
        return whole_message(said), of
    tokens, _, document = text.partition("|")
    data: dict[str, Any] = loads(document)
    message: Message = data["b"]
    note: HostNote = data["n"]
    note["id"] = number_
    note["at"] = data["at"]
    if tokens:
        note["tokens"] = int(tokens)
    message[HOST] = note
    return message, data


class _Kept(Struct):
    """The part of a message's document that its transcript needs."""

    at: float
    b: dict[str, Any]
    n: dict[str, Any]


_KEPT: Final = Decoder(list[_Kept])


def messages_from(stored: Iterable[tuple[str, str]]) -> list[Message]:
    """The messages alone, of many texts together."""
    parts = [(number_, *text.split("|", 1)) for number_, text in stored]
    text = f"[{','.join([document for _, _, document in parts])}]"
    try:
        found = _KEPT.decode(text)
    except (MsgspecError, UnicodeEncodeError):
        found = convert(loads(text), list[_Kept])
    for (number_, tokens, _), kept in zip(parts, found, strict=True):
        note = kept.b[HOST] = kept.n
        note["id"] = number_
        note["at"] = kept.at
        if tokens:
            note["tokens"] = int(tokens)
    return [kept.b for kept in found]  # type: ignore[misc]


def ledger_json(entry: LedgerEntry, session_id: str, key: SessionKey) -> str:
    """A model call as a document."""
    return dumps(
        {
            "platform": key.platform,
            "session": session_id,
            "key": str(key.caller),
            "purpose": entry.purpose,
            "provider": entry.provider,
            "model": entry.model,
            "usage": [*USAGE.row(entry.usage)],
            "cost": entry.cost_usd,
        }
    )
