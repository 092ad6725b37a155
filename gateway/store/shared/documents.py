"""JSON, and domain objects from the documents that stores of earlier layouts made of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import structlog
from msgspec import MsgspecError, convert
from msgspec.json import decode

from gateway.domain.approval import LABELS, Approval, Choices
from gateway.domain.chat import Album, Button, ChatType, Inbound, KeptFile, Returns, SessionKey, Source, Terms, file_in
from gateway.domain.reminder import Reminder
from gateway.domain.rule import Pins
from gateway.store.records import ToolIntent

log = structlog.get_logger(__name__)

_READABLE: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def dumps(value: Any) -> str:
    """Compact JSON. Text stays readable, unless it holds half a surrogate pair, which only an
    escape can carry."""
    text = _READABLE.encode(value)
    return text if text.isascii() or storable(text) == text else json.dumps(value, separators=(",", ":"))


def loads(text: str) -> Any:
    """A value from JSON. Raises ValueError."""
    try:
        return decode(text)
    except (MsgspecError, UnicodeEncodeError):  # `dumps` writes more than JSON has: halves of characters, NaN
        return json.loads(text)


def storable(text: str) -> str:
    """The text in a form that UTF-8 can hold: halves of surrogate pairs become question marks. Unless it is ASCII it is
    a copy, because a text that is passed to a statement keeps its UTF-8 form in memory, and the cached one must not."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def inbound_from(text: str) -> Inbound:
    """An Inbound from its document. Fields of a later release are ignored. Raises ValueError, KeyError or TypeError if
    a field is missing."""
    data: dict[str, Any] = json.loads(text)
    return Inbound(
        source=_source_from(data["source"]),
        attachments=tuple(file_in(each) for each in data.get("attachments", ())),
        lets=tuple(data.get("lets", ())),
        terms=convert(data["terms"], Terms) if "terms" in data else None,
        **_known(data, ("event_id", "text", "kind", "sent_at", "reply_to", "place", "part_of", "own", "woke", "after")),
    )


def _source_from(data: Mapping[str, Any]) -> Source:
    known: dict[str, Any] = _known(data, Source.__struct_fields__)
    return Source(**known | {name: tuple(each) for name, each in known.items() if isinstance(each, list)})


ERASED: Final = "{}"  # the document of an item whose chat forgot everything
WORDLESS: Final = "/forget"  # the text of an item that asked to forget, for another attempt at it


def readable_inbound(text: str, key: SessionKey, number: str) -> Inbound:
    """Like `inbound_from`, but a damaged document becomes an `unreadable` Inbound of the key's chat, which a lane can
    end; an error would block the chat for ever."""
    try:
        return inbound_from(text)
    except (ValueError, KeyError, TypeError) as error:
        log.error("item_unreadable", item=number, key=str(key), error=f"{type(error).__name__}: {error}")
        return unreadable(key, number)


def unreadable(key: SessionKey, number: str) -> Inbound:
    """An Inbound of the key's chat, in place of one that cannot be read."""
    where: ChatType = "thread" if key.thread is not None else "direct" if key.user is None else "group"
    source = Source(platform=key.platform, chat=key.chat, chat_type=where, user=key.user or "", thread=key.thread)
    return Inbound(event_id=f"unreadable-{number}", source=source, text="", kind="unreadable")


def pins_from(text: str) -> Pins:
    """A conversation's pins."""
    return convert(json.loads(text), Pins)


def file_from(text: str) -> KeptFile:
    """A kept file."""
    data = json.loads(text)
    return convert(data, Album if "others" in data else KeptFile)


def returns_from(text: str) -> Returns:
    """What a program is told besides an answer."""
    return convert(loads(text), Returns)


def intents_from(text: str) -> tuple[ToolIntent, ...]:
    """Tool calls that were about to run: id and tool of each, and `true` if the call waits."""
    return tuple(ToolIntent(call_id=call, tool=tool, waits=bool(waits)) for call, tool, *waits in json.loads(text))


_ASKED = ("token", "call", "number", "person", "question", "shown_as", "asked_at", "expires_at", "labels")
_ASKED_LATER = ("deed", "session", "choices")  # older questions have none


def approval_from(asked: str, item: str, verdict: str | None) -> Approval:
    """A question; its item and verdict were kept beside the document."""
    data: dict[str, Any] = json.loads(asked)
    found: Any = json.loads(verdict) if verdict else ("open", None, None)
    state, by, at = found
    known = _known(data, (*_ASKED, *_ASKED_LATER))
    known["choices"] = convert(data.get("choices", {}), Choices)
    known["labels"] = tuple(data.get("labels", LABELS))  # older questions have none
    return Approval(key=SessionKey.parse(data["key"]), item=item, state=state, decided_by=by, decided_at=at, **known)


def in_order(approvals: Iterable[Approval]) -> tuple[Approval, ...]:
    """Questions in the order in which they were asked."""
    return tuple(sorted(approvals, key=lambda each: (each.asked_at, each.item, each.number)))


def buttons_from(text: str | None) -> tuple[tuple[Button, ...], ...]:
    """Rows of buttons."""
    rows = json.loads(text) if text else ()
    return tuple(
        tuple(Button(label=label, token=token, kind=kind[0] if kind else "press") for label, token, *kind in row)
        for row in rows
    )


_BESIDE: Final = ("number", "parked")  # facts of a reminder that a store keeps beside the document


def reminder_from(text: str, number: int | str, *, parked: bool) -> Reminder:
    """A reminder; its number, and whether it is parked, were kept beside the document."""
    data: dict[str, Any] = json.loads(text)
    known = _known(data, [name for name in Reminder.__struct_fields__ if name not in (*_BESIDE, "key", "source")])
    key, source = SessionKey.parse(data["key"]), _source_from(data["source"])
    return Reminder(key=key, source=source, number=int(number), parked=parked, **known)


def _known(data: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: data[name] for name in names if name in data}
