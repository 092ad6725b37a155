"""Messages of any shape, made readable.

Engines, imports and old backups give tool calls as SDK objects, contents as numbers, and roles of other vendors.
Nothing here raises, and a sound message is passed on as the very same object.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeVar, cast, get_args

from msgspec import ValidationError, convert

from gateway.domain.message import HOST, SUMMARY_NOTES, Message, Role, note_of
from gateway.runtime.tokens import IMAGE_TYPES, TokenCounter

T = TypeVar("T")
_ROLES: Final = frozenset(get_args(Role))
_SYNONYMS: Final[Mapping[str, str]] = {
    "developer": "system",
    "human": "user",
    "ai": "assistant",
    "bot": "assistant",
    "gpt": "assistant",
    "model": "assistant",
    "function": "tool",
}
# Parts that some API takes; any other part of a content could only be refused.
_PARTS: Final = frozenset({
    "text", "image_url", "image", "input_image", "input_audio", "audio", "file", "input_file", "document",
    "video_url", "video", "input_text", "output_text", "refusal", "thinking", "redacted_thinking", "reasoning",
})  # fmt: skip
UNKNOWN_PART: Final = "[A part of the kind {kind} was here; it cannot be shown.]"
_KIND_CHARS: Final = 40
_KEPT: Final = ("at", *SUMMARY_NOTES, "instructions", "recalled", "reminded", "said", "files")


class Call(NamedTuple):
    """One tool call of any shape. `arguments` is its JSON text."""

    ids: tuple[str, ...]
    name: str
    arguments: str


def calls_of(message: Mapping[str, Any]) -> list[Call]:
    """Return the tool calls of a message; [] for none and for shapes that hold none."""
    calls = message.get("tool_calls")
    if not calls or not isinstance(calls, list | tuple):
        return []
    return [read_call(call) for call in calls]


def plain_id(call: Any) -> str:
    """The id of a call in the API's form, which nearly every call has; "" for any other."""
    if type(call) is dict and "call_id" not in call:
        own, function = call.get("id"), call.get("function")
        if type(own) is str and type(function) is dict:
            name = function.get("name")
            if type(name) is str and name and type(function.get("arguments")) is str:
                return own
    return ""


def read_call(call: Any) -> Call:
    """Read a tool call given as a dict or as an SDK's object; both `id` and `call_id` name it."""
    own = plain_id(call)
    if own:
        return Call((own,), call["function"]["name"], call["function"]["arguments"])
    first, second = field_of(call, "id"), field_of(call, "call_id")
    ids = (first,) if is_id(first) else ()
    if is_id(second) and second != first:
        ids = (*ids, second)
    function = field_of(call, "function") or call
    name, arguments = field_of(function, "name"), field_of(function, "arguments")
    return Call(
        ids=ids,
        name=name if isinstance(name, str) and name else "tool",
        arguments=arguments if isinstance(arguments, str) else as_json(arguments),
    )


def plain_call(call: Any, read: Call) -> Any:
    """Return the call in the form of the API: a dict with id, name and arguments as text. `read`: from `read_call`."""
    if isinstance(call, dict) and call.get("id") == read.ids[0]:
        function = call.get("function")
        if (
            isinstance(function, dict)
            and isinstance(function.get("arguments"), str)
            and function.get("name") == read.name
        ):
            return call
    return {"id": read.ids[0], "type": "function", "function": {"name": read.name, "arguments": read.arguments}}


def result_id(message: Mapping[str, Any]) -> str | None:
    """Return the id of the call that a tool message answers, or None."""
    own = message.get("tool_call_id")
    if type(own) is str and own:
        return own  # nearly always
    return next((str(value) for name in ("tool_call_id", "call_id") if is_id(value := message.get(name))), None)


class Calls(Mapping[str, Call]):
    """The calls of a transcript by id, read on demand, because only those near the ends of a long transcript are ever
    needed. A reused id means its latest call."""

    def __init__(self) -> None:
        self.raw: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Call:
        return read_call(self.raw[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.raw)

    def __len__(self) -> int:
        return len(self.raw)


def calls_by_id(messages: Iterable[Mapping[str, Any]]) -> dict[str, Call]:
    """Return every call of a transcript under each of its ids; a reused id means its latest call."""
    return {name: call for message in messages for call in calls_of(message) for name in call.ids}


def said_at(message: Mapping[str, Any]) -> float:
    """Return when a message was said, in seconds since the epoch; 0.0 if its note says no number."""
    at: Any = note_of(message).get("at")
    return at if isinstance(at, int | float) and not isinstance(at, bool) else 0.0


def well_formed(noted: Any, kind: type[T]) -> list[T]:
    """The members of a list in a note that are data of this kind; none if it is not a list."""
    found: list[T] = []
    for each in noted if isinstance(noted, list) else ():
        with suppress(ValidationError):
            found.append(convert(each, kind))
    return found


def sources(message: Mapping[str, Any]) -> list[str]:
    """The row ids that a message stands for: its own, or if it has none, those of its originals."""
    note = message.get(HOST)
    if type(note) is not dict:
        return []
    own = note.get("id")
    if type(own) is str and own:
        return [own]
    derived = note.get("derived_from")
    return [str(value) for value in derived] if isinstance(derived, list | tuple) else []


def rewritten(
    message: Message, counter: TokenCounter, /, note: Mapping[str, Any] | None = None, **fields: Any
) -> Message:
    """Return a copy with `fields` replaced, its origin and its own tokens noted. The identifiers of the original stay
    noted: a shortened copy still stands for it."""
    old = note_of(message)
    kept: dict[str, Any] = {key: old[key] for key in _KEPT if key in old}
    copy: dict[str, Any] = {**message, **fields, HOST: {**kept, "derived_from": sources(message), **(note or {})}}
    copy[HOST]["tokens"] = counter.message(copy)
    return cast(Message, copy)


def sound(message: Any) -> Message | None:
    """A message with a role and a content that APIs take, the same object if it already was; None for anything but a
    message."""
    if type(message) is dict:
        role, content = message.get("role"), message.get("content")
        if type(content) is str and type(role) is str and role in _ROLES:
            return cast(Message, message)  # nearly every message: a long transcript has thousands
    elif not isinstance(message, Mapping):
        return None
    role, content = message.get("role"), message.get("content")
    known = type(role) is str and role in _ROLES
    if known and ((content is None and role != "tool") or type(content) is str or _is_sound_list(content)):
        return cast(Message, message)
    if content is None:
        return derived(message, role=role if known else _role(message, role), content="" if role == "tool" else None)
    return derived(message, role=role if known else _role(message, role), content=_content(content))


def derived(message: Mapping[str, Any], **fields: Any) -> Message:
    """A repaired copy, without the stored count, which may be wrong for it."""
    note: dict[str, Any] = dict(note_of(message))
    source = sources(message)
    for name in ("id", "tokens", "identifiers", "instructions"):
        note.pop(name, None)
    copy: dict[str, Any] = {**message, **fields}
    if note or source:
        copy[HOST] = {**note, "derived_from": source}
    return cast(Message, copy)


def is_image(part: Any) -> bool:
    """Whether a part of a content is an image."""
    kind = part.get("type") if isinstance(part, Mapping) else None
    return isinstance(kind, str) and kind in IMAGE_TYPES


def images(message: Mapping[str, Any]) -> int:
    """How many images a message has."""
    content = message.get("content")
    return sum(map(is_image, content)) if isinstance(content, list) else 0


def field_of(holder: Any, name: str) -> Any:
    """Return the key of a mapping or the attribute of an object; None if there is none."""
    # A dict first: nearly every holder is one, and the check for a Mapping takes ten times as long.
    return holder.get(name) if isinstance(holder, (dict, Mapping)) else getattr(holder, name, None)


def is_id(value: Any) -> bool:
    """Whether a value can name a call or a row."""
    return isinstance(value, str) and value != ""


def as_json(value: Any) -> str:
    """Return anything as JSON, None as "", and parts that JSON cannot hold as their text."""
    if value is None:
        return ""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return json.dumps({"unreadable_arguments": type(value).__name__})


def _role(message: Mapping[str, Any], role: Any) -> str:
    """The likeliest role of a message that names none of ours. In doubt it is a person's, which is never trusted with
    more than a request."""
    if isinstance(role, str) and (known := _SYNONYMS.get(role.lower(), role.lower())) in _ROLES:
        return known
    if result_id(message) is not None:
        return "tool"
    return "assistant" if message.get("tool_calls") else "user"


def _is_sound_list(content: Any) -> bool:
    return type(content) is list and bool(content) and all(map(_is_sound_part, content))


def _is_sound_part(part: Any) -> bool:
    if not isinstance(part, dict):
        return False
    kind = part.get("type")
    return type(kind) is str and kind in _PARTS and (kind != "text" or type(part.get("text")) is str)


def _content(content: Any) -> Any:
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        return as_json(content)
    return [_part(part) for part in content if part is not None] or ""


def _part(part: Any) -> dict[str, Any]:
    if _is_sound_part(part):
        return dict(part)
    if isinstance(part, Mapping):
        kind, text = part.get("type"), part.get("text")
        if not isinstance(text, str):
            text = UNKNOWN_PART.format(kind=str(kind)[:_KIND_CHARS] if kind else "unknown")
    else:
        text = part if isinstance(part, str) else as_json(part)
    return {"type": "text", "text": text}
