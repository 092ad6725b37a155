"""Plain JSON lines: a message a line ({"role", "content"} and perhaps "at", "session", "tool_calls", "tool_call_id", as
`/export jsonl` writes them), or a conversation a line ({"messages": […]}, and perhaps "id", "title")."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Final

from gateway.app.imports.past import Past, Tally, call, moment, returned, said, title_text, whole, words
from gateway.domain.message import Message
from gateway.runtime.errors import UserError

_SAID: Final = ("user", "assistant", "tool")
_INSTRUCTING: Final = ("system", "developer")
_LONGEST: Final = 128_000_000  # bytes of a line
_PART: Final = 5_000  # messages of a session that are held at once: a longer one comes in parts
_PART_TEXT: Final = 8_000_000  # characters of these


def is_one(line: Mapping[str, Any]) -> bool:
    """Whether this is a line of a message, or of a conversation."""
    return isinstance(line.get("messages"), list) or line.get("role") in (*_SAID, *_INSTRUCTING)


def conversations(file: BinaryIO, tally: Tally, name: str) -> Iterator[Past]:
    """The conversations of the file `name`. Lines of one session stand together; those that come back later, and what
    is beyond some thousand messages, are parts of their own."""
    parts: Counter[str] = Counter()
    held: list[Message] = []
    session, size = "", 0

    def part() -> Iterator[Past]:
        if held:
            parts[session] += 1
            yield from _past(session, name, parts[session], tuple(held), tally)
            held.clear()

    for line in _lines(file, tally):
        tally.recognised += is_one(line)
        if isinstance(line.get("messages"), list):
            title, source = title_text(line.get("title")), str(line.get("id") or "")
            said_there = tuple(found for each in line["messages"] if (found := _message(each, tally)) is not None)
            past = Past(source=source, title=title, started_at=moment(line.get("at")), model="", messages=said_there)
            if (one := whole(past, tally)) is not None:
                yield one
            continue
        message = _message(line, tally)
        if message is None:
            continue
        named = str(line.get("session") or "")
        if held and (named != session or (message["role"] == "user" and (len(held) >= _PART or size >= _PART_TEXT))):
            yield from part()
            size = 0
        session = named
        held.append(message)
        size += len(words(message.get("content")))
    yield from part()


def _past(session: str, name: str, part: int, messages: tuple[Message, ...], tally: Tally) -> Iterator[Past]:
    more = f" ({part})" if part > 1 else ""
    past = Past(
        source=f"{session or name}{more}",
        title=title_text(f"{session}{more}") if session else "",
        started_at=None,
        model="",
        messages=messages,
    )
    if (found := whole(past, tally)) is not None:
        yield found


def _lines(file: BinaryIO, tally: Tally) -> Iterator[Mapping[str, Any]]:
    while line := file.readline(_LONGEST):
        tally.read += len(line)
        if len(line) == _LONGEST:
            raise UserError("The import ended at a line larger than 128 MB. Give a file with one message on each line.")
        text = line.removeprefix(b"\xef\xbb\xbf").strip()
        if not text:
            continue
        try:
            read = json.loads(text)
        except (ValueError, RecursionError):
            read = None
        if isinstance(read, Mapping):
            yield read
        else:
            tally.leave_out("lines that are not JSON objects")


def _message(line: Any, tally: Tally) -> Message | None:
    role = line.get("role") if isinstance(line, Mapping) else None
    if role not in _SAID:
        tally.leave_out("instructions and settings" if role in _INSTRUCTING else "lines without a role")
        return None
    at, text = moment(line.get("at")), words(line.get("content"))
    if role == "tool":
        return returned(line.get("tool_call_id"), line.get("name"), text, at)
    return said(role, text, at, calls_in(line.get("tool_calls")) if role == "assistant" else ())


def calls_in(given: Any) -> list[Any]:
    """Calls in the form of OpenAI's API."""
    found = [each for each in given if isinstance(each, Mapping)] if isinstance(given, list) else []
    named = [(each, each.get("function")) for each in found]
    return [
        call(each.get("id"), inner.get("name"), inner.get("arguments"))
        for each, inner in named
        if isinstance(inner, Mapping)
    ]
