"""A summary made without a model, when no model will make one.

It promises less than a written summary and says so: the latest request, what earlier notes said,
constraints, files and last actions picked by plain rules, how much left view and how to get it
back. Reads newest turns first and stops after `SCANNED`, so that its cost does not grow with the
transcript.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from gateway.context.pruning import Call, result_id, stub_line
from gateway.context.summary import Redact
from gateway.domain.message import Message, is_request, note_of, text_of
from gateway.tokens import TokenCounter

SCANNED: Final = 300  # messages of the middle that are looked at, newest first
_READ_CHARS: Final = 2_000  # of each message
_LEAST_CHARS: Final = 40  # cutting ends here, whatever the tokens
_ACTIONS, _FILES, _CONSTRAINTS, _ASKS = 12, 15, 8, 6
_RULES: Final = re.compile(
    r"\b(?:never|always|must|don't|do not|only|prefer|avoid|immer|niemals?|nicht|toujours|jamais|nunca|siempre)\b"
    r"|不要|必须|一定|总是|从不|禁止|请勿|必ず|絶対",
    re.IGNORECASE,
)
_PATH: Final = re.compile(
    r"(?<![\w:/.])(?:~|\.{1,2})?/?(?:[\w.-]{1,80}/){1,12}[\w.-]{1,80}|\b[\w-]{1,60}\.[a-z]{1,5}\b"
)
_TASK: Final = re.compile(r"^#+ Active Task\n.*?(?=^#+ |\Z)", re.DOTALL | re.MULTILINE)
_SUFFIX: Final = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,5}$")


def write(
    request: str,
    previous: str,
    middle: Sequence[Message],
    calls: Mapping[str, Call],
    redact: Redact,
    *,
    chars: int,
    tokens: int,
    counter: TokenCounter,
) -> str:
    """Notes of at most `chars` characters and `tokens` tokens, redacted.

    `request` is the latest one, which also follows verbatim; `previous` the notes that stood
    before, which keep up to half of the room.
    """
    recent = middle[-SCANNED:]
    gone = (
        f"{len(middle)} messages left view and no model could summarise them, so these notes were put together by "
        "rule. /recall <words> finds the original turns."
    )
    while True:
        notes = redact(_notes(request, previous, gone, recent, calls, redact, chars))[:chars].rstrip()
        size = counter.text(notes)
        if size <= tokens or chars <= _LEAST_CHARS:
            return notes
        chars = max(_LEAST_CHARS, min(chars, len(notes)) * tokens // (size + 1))


def _notes(
    request: str,
    previous: str,
    gone: str,
    recent: Sequence[Message],
    calls: Mapping[str, Call],
    redact: Redact,
    chars: int,
) -> str:
    """Sections in order of worth; each takes a share of what is left at most."""
    sections = [("Active Task", _clip(redact(request[: chars * 2]), chars // 4)), ("Critical Context", gone)]
    if previous:
        sections.append(("Earlier notes", _clip(_demoted(redact(previous)), chars // 2)))
    listed = [
        ("Constraints & Preferences", _constraints(recent, redact)),
        ("Completed Actions", _actions(recent, calls, redact)),
        ("Pending User Asks", _asks(recent, redact)),
        ("Relevant Files", _files(recent, calls, redact)),
    ]
    left = chars - sum(len(title) + len(text) + 6 for title, text in sections)
    for title, lines in listed:
        text = _fit(lines, left // 2)
        if text:
            sections.append((title, text))
            left -= len(title) + len(text) + 6
    return "\n".join(f"## {title}\n{text}" for title, text in sections if text)


def _demoted(previous: str) -> str:
    """Earlier notes without their task, which the newer one replaces, and one heading level down."""
    return _TASK.sub("", previous).replace("## ", "### ").replace("#### ", "### ").strip()


def _constraints(recent: Sequence[Message], redact: Redact) -> Iterator[str]:
    found = 0
    for message in reversed(recent):
        if not is_request(message):
            continue
        for line in redact(text_of(message)[:_READ_CHARS]).splitlines():
            if _RULES.search(line):
                yield f"- {_clip(line.strip(), 240)}"
                found += 1
                if found == _CONSTRAINTS:
                    return


def _actions(recent: Sequence[Message], calls: Mapping[str, Call], redact: Redact) -> Iterator[str]:
    """The newest results, newest first."""
    found = 0
    for message in reversed(recent):
        if message.get("role") == "tool" and found < _ACTIONS:
            found += 1
            text = text_of(message)
            call = calls.get(result_id(message) or "")
            yield f"- {redact(text if len(text) <= 200 else stub_line(call, text))}"


def _asks(recent: Sequence[Message], redact: Redact) -> Iterator[str]:
    found = 0
    for message in reversed(recent):
        text = text_of(message)[:_READ_CHARS] if is_request(message) else ""
        if text.strip() and found < _ASKS:
            found += 1
            yield f"- {_clip(' '.join(redact(text).split()), 160)}"


def _files(recent: Sequence[Message], calls: Mapping[str, Call], redact: Redact) -> Iterator[str]:
    seen: set[str] = set()
    for message in reversed(recent):
        for path in _paths(message, calls):
            if path not in seen and len(seen) < _FILES:
                seen.add(path)
                yield f"- {redact(path)}"


def _paths(message: Message, calls: Mapping[str, Call]) -> list[str]:
    stored = note_of(message).get("identifiers")
    if isinstance(stored, list):
        return [value for value in stored if isinstance(value, str) and _PATH.fullmatch(value)]
    call = calls.get(result_id(message) or "") if message.get("role") == "tool" else None
    text = call.arguments[:_READ_CHARS] if call else text_of(message)[:_READ_CHARS]
    return [path for path in _PATH.findall(text) if "/" in path or _SUFFIX.search(path)]


def _fit(lines: Iterator[str], room: int) -> str:
    kept: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return "\n".join(kept)


def _clip(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: max(0, limit - 1)]}…"
