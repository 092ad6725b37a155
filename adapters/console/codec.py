"""The two line protocols of the console, as pure functions: bytes to requests, Outbounds to bytes.

JSON lines, one object per line and UTF-8 always:
    in   {"text": "hi"}, optionally with "chat", "user", "thread", "id" (strings; null means absent) and "stream"
    out  {"kind", "id", "chat", "text", "session", "answers"}, and "thread" where there is one;
         the same with the kind "piece", and "at", for each new piece of a growing reply
         {"kind": "error", "id": "line-<number>"} for a line that was refused, with "chat" and "answers" as the line
         named them, or null
Plain text: one line is one message. An answer is its text and an empty line.

No text of a person or a model can break a protocol. JSON escapes it; plain output leaves out its control characters.
No store can hold NUL and lone surrogates; both become U+FFFD on the way in.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import msgspec
from msgspec import Struct

from gateway.domain.chat import ChatType, Inbound, Outbound, OutboundKind, Source
from gateway.domain.wording import REPLACEMENT, printable
from gateway.runtime.structs import replace

PLATFORM: Final = "console"
MAX_LINE: Final = 16 * 1024 * 1024  # bytes; our own limit: an endless line would fill the memory
DEFAULT_CHAT: Final = "main"
QUESTIONS: Final = "question"  # the chat of `legato chat QUESTION`
FRESH: Final = "/new"
DEFAULT_USER: Final = "local"
MARKS: Final[dict[OutboundKind, str]] = {"notice": "· ", "error": "! ", "question": "? "}

_EXAMPLE: Final = '{"text": "hi"}'
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
# Some readers end a line at these, too. In the output they only stand inside JSON strings.
_OTHER_LINE_ENDS: Final = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}


class InputLine(Struct, frozen=True, kw_only=True):
    """One line of input without its line end; `data` is None for a line that was too long."""

    number: int  # counted from 1
    data: bytes | None


class Request(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The request of one good line; None for a field that the line leaves out."""

    text: str
    chat: str | None = None
    user: str | None = None
    thread: str | None = None
    id: str | None = None
    stream: bool = False


class Complaint(Struct, frozen=True, kw_only=True):
    """The sentence about a line that was refused, with the line's `chat` and `answers` if they could be read."""

    id: str
    text: str
    chat: str | None = None
    answers: str | None = None


class LineSplitter:
    """Cuts a stream of chunks into lines. A line over `limit` bytes is not kept."""

    def __init__(self, limit: int = MAX_LINE) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0  # of the unfinished line; its dropped bytes count, too
        self._number = 1

    def feed(self, chunk: bytes) -> list[InputLine]:
        """The lines that `chunk` completes, oldest first."""
        *ends, rest = chunk.split(b"\n")
        lines = []
        for end in ends:
            self._append(end)
            lines.append(self._finish())
        self._append(rest)
        return lines

    def end(self) -> list[InputLine]:
        """The last line, if the input ended without a line end."""
        return [self._finish()] if self._size else []

    def _append(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._limit:
            self._parts.clear()
        elif part:
            self._parts.append(part)

    def _finish(self) -> InputLine:
        data = None if self._size > self._limit else b"".join(self._parts)
        line = InputLine(number=self._number, data=data)
        self._parts.clear()
        self._size = 0
        self._number += 1
        return line


def storable(text: str) -> str:
    """`text` with NUL and lone surrogates replaced: no store can hold them."""
    return _UNSTORABLE.sub(REPLACEMENT, text)


def decode_json(line: InputLine) -> Request | Complaint | None:
    """The request of a line of JSON, or the complaint about it; None for a blank line."""
    if line.data is None:
        return _too_long(line)
    data = line.data.removeprefix(b"\xef\xbb\xbf")  # some shells begin a stream with a byte order mark
    if not data.strip():
        return None
    try:
        value = json.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        return _not_utf8(line, error)
    except json.JSONDecodeError as error:
        return _of_json(line, f"is not valid JSON ({error.msg} at column {error.colno})")
    except (ValueError, RecursionError):  # numbers of thousands of digits, brackets nested without end
        return _of_json(line, "is not valid JSON (a number or the nesting is too large)")
    return _request(line, value)


def _request(line: InputLine, value: Any) -> Request | Complaint:
    is_object = isinstance(value, dict)
    fields = {name: content for name, content in value.items() if content is not None} if is_object else {}
    try:
        request = msgspec.convert(fields if is_object else value, Request)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        return _of_json(line, f"is not a message ({printable(str(error))[:200]})", fields)
    if request.user == DEFAULT_USER:
        problem = f'names the user "{DEFAULT_USER}", who is the operator: leave "user" out to speak as the operator'
        return _of_json(line, problem, fields)
    for name, content in fields.items():
        if name != "text" and (content == "" or (isinstance(content, str) and _UNSTORABLE.search(content))):
            problem = f'has a "{name}" that is empty, or holds NUL or half of a surrogate pair, which cannot be stored'
            return _of_json(line, problem, fields)
    return replace(request, text=storable(request.text))


def decode_plain(line: InputLine) -> Request | Complaint | None:
    """The request of a line of plain text, or the complaint about it; None for a blank line."""
    if line.data is None:
        return _too_long(line)
    try:
        text = line.data.removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        return _not_utf8(line, error)
    text = text.removeprefix("\ufeff") if line.number == 1 else text
    return Request(text=storable(text)) if text.strip() else None


def _too_long(line: InputLine) -> Complaint:
    return _complaint(line, f"is longer than {MAX_LINE // 1024**2} MB and was skipped: send less text in one line")


def _not_utf8(line: InputLine, error: UnicodeDecodeError) -> Complaint:
    return _complaint(line, f"is not valid UTF-8 (byte {error.start + 1}) and was skipped: send it as UTF-8")


def _of_json(line: InputLine, problem: str, fields: dict[str, Any] | None = None) -> Complaint:
    return _complaint(line, f"{problem}: send one object per line, e.g. {_EXAMPLE}", fields)


def _complaint(line: InputLine, problem: str, fields: dict[str, Any] | None = None) -> Complaint:
    """The complaint about a line, with those of its fields that can be read."""
    known = {
        name: content
        for name, content in (fields or {}).items()
        if name in ("chat", "id") and isinstance(content, str) and not _UNSTORABLE.search(content)
    }
    return Complaint(
        id=f"line-{line.number}",
        text=f"Line {line.number} {problem}.",
        chat=known.get("chat") or None,
        answers=known.get("id") or None,
    )


def inbound(request: Request, *, event_id: str, sent_at: float) -> Inbound:
    """The Inbound of a request; `event_id` replaces a missing id. A request with a thread belongs to that thread, one
    with a user to a group, all others to a direct chat."""
    chat_type: ChatType = "direct"
    if request.thread is not None:
        chat_type = "thread"
    elif request.user is not None:
        chat_type = "group"
    source = Source(
        platform=PLATFORM,
        chat=request.chat or DEFAULT_CHAT,
        chat_type=chat_type,
        user=request.user or DEFAULT_USER,
        thread=request.thread,
        user_name=request.user or "",
    )
    return Inbound(event_id=request.id or event_id, source=source, text=request.text, sent_at=sent_at)


def encode_json(outbound: Outbound) -> bytes:
    """An Outbound as one line of the JSON protocol, line end included."""
    return _json_line(**_fields(outbound))


def _fields(outbound: Outbound) -> dict[str, str | int | None]:
    return {
        "kind": outbound.kind,
        "id": outbound.id,
        "chat": outbound.to.chat,
        "text": outbound.text,
        "session": outbound.session_id,
        "answers": outbound.answers,
        **({} if outbound.to.thread is None else {"thread": outbound.to.thread}),
    }


def encode_json_piece(outbound: Outbound, at: int) -> bytes:
    """The newest piece of a reply as one line of the JSON protocol; `at`: characters of the reply before the piece."""
    return _json_line(**{**_fields(outbound), "kind": "piece", "text": outbound.text[at:], "at": at})


def encode_json_complaint(complaint: Complaint) -> bytes:
    """A complaint as one line of the JSON protocol, with the same fields as an Outbound."""
    said = {"chat": complaint.chat, "text": complaint.text, "session": None, "answers": complaint.answers}
    return _json_line(kind="error", id=complaint.id, **said)


def _json_line(**fields: str | int | None) -> bytes:
    text = json.dumps(fields, ensure_ascii=False).translate(_OTHER_LINE_ENDS)
    return (_SURROGATES.sub(REPLACEMENT, text) + "\n").encode("utf-8")


def encode_plain(outbound: Outbound) -> bytes:
    """An Outbound as plain text. An answer is followed by an empty line; everything else begins with a mark."""
    if outbound.kind in ("reply", "command"):
        return f"{printable(outbound.text)}\n\n".encode()
    return marked(outbound.kind, outbound.text).encode()


def marked(kind: OutboundKind, text: str) -> str:
    """A notice, an error or a question, with a mark before its first line; the others are indented."""
    mark = MARKS.get(kind, MARKS["notice"])
    indented = printable(text).replace("\n", "\n" + " " * len(mark))
    return f"{mark}{indented}\n"
