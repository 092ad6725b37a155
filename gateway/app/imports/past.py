"""A conversation of another program, and a valid transcript made of what it said."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from msgspec import Struct, field

from gateway.context import identifiers
from gateway.domain.chat import one_line
from gateway.domain.message import Message, assistant, note_of, noted, says_nothing, tool_result, user
from gateway.domain.message import ToolCall as Call
from gateway.domain.titles import shown_in_a_list
from gateway.runtime.clock import lasting_id
from gateway.runtime.structs import replace
from gateway.runtime.tokens import TokenCounter

_LATEST: Final = 4_102_444_800.0  # the year 2100, in seconds since the epoch
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_-]+")
_NAME: Final = 64  # characters of a tool's, as providers take them
_RETURNED: Final = "[{name} returned]\n{text}"
_NO_RESULT: Final = "(The export holds no result.)"


class Past(Struct, frozen=True, kw_only=True):
    """One conversation. `source`: its name in the program that it comes from, which is always the same. `messages` are
    as they were said, with their times (seconds since the epoch) where the export has them."""

    source: str
    title: str
    started_at: float | None
    model: str
    messages: tuple[Message, ...]


class Tally(Struct):
    """What was left out, by reason, how many bytes of the file are read, and whether anything was of its format."""

    left_out: Counter[str] = field(default_factory=Counter)
    read: int = 0
    recognised: int = 0  # conversations, or lines of some

    def leave_out(self, why: str, count: int = 1) -> None:
        """Count something that does not come along."""
        if count:
            self.left_out[why] += count


def title_text(value: Any) -> str:
    """A title as it may stand in a list."""
    return shown_in_a_list(value) if isinstance(value, str) else ""


def moment(value: Any) -> float | None:
    """A time as exports write it: seconds, milliseconds, or ISO 8601 (without a zone: UTC). None for anything else."""
    try:
        if isinstance(value, str):
            parsed = datetime.fromisoformat(value.strip())
            seconds = (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
        elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            seconds = value / 1_000 if value > _LATEST else float(value)
        else:
            return None
    except (ValueError, OverflowError):
        return None
    return seconds if 0.0 < seconds < _LATEST else None


def words(value: Any) -> str:
    """The text of a content: a text, or parts that hold some. A part without words is named by its kind."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(filter(None, map(words, value)))
    if isinstance(value, Mapping):
        for name in ("text", "content", "result"):
            if value.get(name) is not None:
                return words(value[name])
        kind = value.get("type") or value.get("content_type")
        return f"[{' '.join(str(kind).replace('_', ' ').split())[:40]}]" if kind else ""
    return ""


def with_files(text: str, files: Iterable[tuple[Any, Any]]) -> str:
    """A person's words with the files that came along, each a name and what the file says, as far as the export has
    it."""
    pieces = [text] if text.strip() else []
    for name, held in files:
        named = one_line(str(name or "")) or "a file"
        pieces.append(f"[{named}]\n{held}" if isinstance(held, str) and held.strip() else f"[{named}]")
    return "\n\n".join(pieces)


def objects(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list; none for anything else."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


class Node(NamedTuple):
    """A message in a tree: the name of the one that it answers, and its time, as the export writes it."""

    parent: Any
    at: Any


def branch(nodes: Mapping[str, Node], end: Any, tally: Tally) -> list[str]:
    """The names from the root to the node that was in view last; without one, to the newest leaf. The messages of other
    branches are counted."""
    if not isinstance(end, str) or end not in nodes:
        parents = {node.parent for node in nodes.values() if isinstance(node.parent, str)}
        leaves = [name for name in nodes if name not in parents]
        end = max(reversed(leaves), key=lambda name: moment(nodes[name].at) or 0.0, default=None)
    path = dict[str, None]()
    while isinstance(end, str) and end in nodes and end not in path:  # a damaged tree may lead back
        path[end] = None
        end = nodes[end].parent
    tally.leave_out("messages of other branches", len(nodes) - len(path))
    return list(path)[::-1]


def call(call_id: Any, name: Any, arguments: Any) -> Call:
    """A tool call that any provider takes. Arguments that are no JSON object become one."""
    given = arguments
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            given = {"input": arguments}
    if not isinstance(given, Mapping):
        given = {"input": given}
    named = _NO_NAME.sub("_", str(name or "")).strip("_")[:_NAME] or "tool"
    text = json.dumps(given, ensure_ascii=False)
    return {"id": str(call_id or ""), "type": "function", "function": {"name": named, "arguments": text}}


def paired(messages: Iterable[Message], tally: Tally) -> Iterator[Message]:
    """The same as a transcript that any provider takes: each call has its result right behind it, each result its call,
    and nothing says nothing. A result without a call becomes text; a call without a result gets one that says so."""
    waiting: list[tuple[str, str]] = []  # the calls of the last message without a result: their ids, and their new ones
    unasked: list[Message] = []  # results without a call, until the others are there
    number = 0

    def settled() -> Iterator[Message]:
        yield from (tool_result(call_id, _NO_RESULT) for _, call_id in waiting)
        yield from unasked
        waiting.clear()
        unasked.clear()

    for message in messages:
        if message["role"] == "tool":
            text, note = words(message.get("content")) or _NO_RESULT, message.get("_legato", {})
            call = next((each for each in waiting if each[0] == message.get("tool_call_id", "")), None)
            if call is not None:
                waiting.remove(call)
                yield tool_result(call[1], text, **note)
            else:
                tally.leave_out("results of tools without a call: they came as text")
                unasked.append(assistant(_RETURNED.format(name=message.get("name") or "a tool", text=text), **note))
            continue
        yield from settled()
        if says_nothing(message):
            tally.leave_out("messages without words")
            continue
        calls: list[Call] = []
        for each in message.get("tool_calls", ()):
            number += 1  # ids of exports may be missing, or stand twice
            calls.append({"id": f"call_{number}", "type": "function", "function": each["function"]})
            waiting.append((each["id"], f"call_{number}"))
        yield {**message, "tool_calls": calls} if calls else message
    yield from settled()


def said(role: str, text: str, at: float | None, calls: Sequence[Call] = ()) -> Message:
    """What a person or the model said."""
    note = {} if at is None else {"at": at}
    return user(text, **note) if role == "user" else assistant(text or None, calls, **note)


def returned(call_id: Any, name: Any, text: str, at: float | None) -> Message:
    """What a tool returned."""
    message = tool_result(str(call_id or ""), text, **({} if at is None else {"at": at}))
    message["name"] = str(name or "")
    return message


def whole(past: Past, tally: Tally) -> Past | None:
    """The conversation with a valid transcript; None, and counted, where nobody said anything."""
    messages = tuple(paired(past.messages, tally))
    if not any(message["role"] == "user" for message in messages):
        tally.leave_out("empty conversations")
        return None
    return replace(past, messages=messages, source=past.source or _made_of(messages))


def measured(messages: Iterable[Message], person: str, at: float, counter: TokenCounter) -> list[Message]:
    """The messages of a transcript with what the store must know of each. `at`: the time of those before the first that
    has one."""
    made = []
    for message in messages:
        at = note_of(message).get("at", at)
        # Identifiers and standing instructions are found when a compaction asks for them; a search of what tools
        # returned goes by the noted ones.
        facts: dict[str, Any] = {"person": person} if message["role"] == "user" else {}
        if message["role"] == "tool":
            facts["identifiers"] = identifiers.found(message)
        made.append(noted(message, at=at, tokens=counter.message(message), **facts))
    return made


def _made_of(messages: Sequence[Message]) -> str:
    """A name for a conversation that has none: the same words have the same name."""
    return lasting_id("nameless", *(words(message.get("content")) for message in messages))
