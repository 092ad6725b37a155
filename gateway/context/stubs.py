"""One line that stands in for a long tool result: which tool, on what, with what outcome, how much.

The line is made of what can be seen at the edges of the text, whatever the tool. Where it goes to
a place that credentials must not reach, `redact` is applied to each piece before it is cut: half a
key would no longer be recognised.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from gateway.context.shapes import Call

STUB_CHARS: Final = 200  # a longer tool result becomes one line, itself no longer
_SALIENT: Final = (
    "command", "cmd", "path", "file_path", "file", "filename", "url", "uri", "query", "q", "pattern", "words",
    "code", "sql", "method", "name", "title", "id", "key", "to", "text",
)  # fmt: skip
_COMMANDS: Final = ("command", "cmd")
_EDGE: Final = 1_000  # characters of either end that are looked at
_READ: Final = 4_000  # of an argument
_EXIT: Final = re.compile(r'"?\bexit(?:[ _-]?(?:code|status))?"?\s{0,3}[:=]?\s{0,3}(-?\d{1,5})\b', re.IGNORECASE)
_FAILED: Final = re.compile(r'^\s*+(?:\{\s*+"error"\s*+:\s*+"?|error\b[: ]*+|fatal: ?|traceback\b)', re.IGNORECASE)
_RAISED: Final = re.compile(
    r"^[ \t]*+(?:[a-z_]\w{0,40}\.){0,6}([A-Z]\w{2,60}(?:Error|Exception|Exit|Interrupt)\b[^\n]*+)", re.MULTILINE
)
_TESTS: Final = re.compile(r"\b\d{1,6} (?:passed|failed|errors?|skipped|passing|failing)\b", re.IGNORECASE)
_STATUS: Final = re.compile(
    r'"(?:status|state|result|outcome)"\s{0,3}:\s{0,3}"?([\w -]{1,40})|\bHTTP/[\d.]{1,3} (\d{3})'
)
_NONE: Final = re.compile(
    r"^\s*+(?:no (?:matches|results?|output|files?)\b[^\n]{0,40}|nothing found|0 (?:matches|results?))", re.IGNORECASE
)


def stub_line(call: Call | None, text: str, redact: Callable[[str], str] = str, images: int = 0) -> str:
    """The line for a result, at most `STUB_CHARS` long. `images`: how many were in the result."""
    action = _action(call.arguments, redact) if call else ""
    size = f"{len(text):,} characters" if "\n" not in text else f"{len(text.splitlines()):,} lines"
    if images:
        size += f", {images} image{'s' if images > 1 else ''}"
    outcome = _outcome(text, redact)
    end = f" → {outcome}, {size}" if outcome else f" → {size}"
    line = f"[{(call.name if call else 'tool')[:40]}]{' ' + action if action else ''}"
    line = line[: STUB_CHARS - len(end)] + end
    room = STUB_CHARS - len(line) - 2
    first = "" if outcome or room < 20 else _opening(text, redact, min(room, 80))
    return f"{line}: {first}" if first else line


def _action(arguments: str, redact: Callable[[str], str]) -> str:
    """What a call was about: a command as ``ran `…` ``, else one or two arguments that say most."""
    try:
        value = json.loads(arguments) if arguments else {}
    except (ValueError, RecursionError):
        return _line(redact(arguments[:_READ]), 60)
    if not isinstance(value, dict):
        return "" if value in (None, [], "") else _line(redact(_scalar(value) or arguments[:_READ]), 60)
    told: list[str] = []
    for name, text in _telling(value):
        if name in _COMMANDS:
            return f"ran `{_line(redact(f'{name}={text}').removeprefix(f'{name}='), 100)}`"
        told.append(_line(redact(f"{name}={text}"), 100 if not told else 40))
        if len(told) == 2:
            break
    return ", ".join(told)


def _telling(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(name, value) of the arguments that can be shown, the most telling first; of nested ones, too."""
    names = [name for name in _SALIENT if name in arguments]
    for name in dict.fromkeys((*names, *arguments)):
        value = arguments[name]
        text = _scalar(value)
        if text:
            yield name, text
        elif isinstance(value, dict):
            yield from ((inner, text) for inner in value if (text := _scalar(value[inner])))


def _scalar(value: Any) -> str:
    """A value as text if it is short by nature: text, a number, a list of these."""
    if isinstance(value, str):
        return value[:_READ]
    if isinstance(value, bool) or value is None:
        return ""
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list) and value and all(isinstance(item, str | int | float) for item in value[:20]):
        return " ".join(str(item) for item in value[:20])[:_READ]
    return ""


def _outcome(text: str, redact: Callable[[str], str]) -> str:
    edges = text if len(text) <= 2 * _EDGE else f"{text[:_EDGE]}\n{text[-_EDGE:]}"
    tests = ", ".join(dict.fromkeys(found.lower() for found in _TESTS.findall(edges)))
    found = _EXIT.search(edges)
    if found:
        return f"exit {found[1]}{', ' + tests[:60] if tests else ''}"
    failed = _FAILED.match(edges)
    if failed:
        raised = _RAISED.findall(edges)
        return f"error: {_line(redact(raised[-1] if raised else edges[failed.end() :]), 60)}"
    if tests:
        return tests[:60]
    empty = _NONE.match(edges)
    if empty:
        return _line(empty[0], 40)
    return _counted(text) or _status(edges)


def _status(edges: str) -> str:
    found = _STATUS.search(edges)
    if not found:
        return ""
    return f"HTTP {found[2]}" if found[2] else _line(found[1], 40)


def _counted(text: str) -> str:
    """How much a JSON result holds. Read only where it is whole and not too long to be worth it."""
    if len(text) > 100_000 or text[:1] not in "[{":
        return ""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    lists: Sequence[tuple[str, Any]] = [("", value)] if isinstance(value, list) else list(value.items())
    return next((f"{len(one):,} {name or 'items'}" for name, one in lists[:20] if isinstance(one, list)), "")


def _opening(text: str, redact: Callable[[str], str], limit: int) -> str:
    """The first words of a text that has words."""
    start = redact(text[:_READ].lstrip())
    first = next((line for line in start.splitlines() if any(map(str.isalpha, line))), "")
    return _line(first, limit) if " " in first.strip() or not first.isascii() else ""


def _line(text: str, limit: int) -> str:
    line = " ".join(text[: limit * 4].split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
