"""Phase 1: everything that can be shortened without a model.

Pruning applies to the messages that a compaction keeps, in front of the protected tail. A long tool result becomes
one line, a repeat refers to its newest copy, long call arguments are cut inside their JSON. Images before the newest
image-bearing user message become a marker everywhere. A message that needs no change is passed on as the same
object. No shape raises.

The line for a result (`stub_line`) names the tool, its object, the outcome and the size, as far as the edges of the
text show them. Where credentials must not reach the line, `redact` is applied to each piece before the piece is cut:
half a key would not be recognised.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gateway.context.persisted import persisted
from gateway.context.prompts import CUT, IMAGE_MARKER
from gateway.context.readable import Call, images, is_image, result_id, rewritten
from gateway.domain.message import Message, ends, text_of
from gateway.runtime.redaction import Redact
from gateway.runtime.tokens import TokenCounter

ARGUMENT_CHARS: Final = 200  # a longer string inside call arguments is cut
_ARGUMENT_KEPT: Final = 80
_ARGUMENT_ITEMS: Final = 50  # of a longer list in them only the first are kept
_REPEATED: Final = " (same output as a later call)"
_LEAST_TOKENS: Final = 100  # of a result that is cut because nothing else makes it fit
_CAREFUL: Final = 0.85  # of the share that should fit is kept: the ends may be denser than the rest

STUB_CHARS: Final = 200  # a longer tool result becomes one line, which is no longer than that
_SALIENT: Final = (
    "command", "cmd", "path", "file_path", "file", "filename", "url", "uri", "query", "q", "pattern", "words",
    "code", "sql", "method", "name", "title", "id", "key", "to", "text",
)  # fmt: skip
_COMMANDS: Final = ("command", "cmd")
_EDGE: Final = 1_000  # characters of either end that are searched for an outcome
_READ: Final = 4_000  # of an argument
# Most results hold none of these. A search for one of some characters is fast, so such characters stand in front.
_EXIT: Final = re.compile(r'[eE](?<=\b[eE])(?i:xit(?:[ _-]?(?:code|status))?)"?\s{0,3}[:=]?\s{0,3}(-?\d{1,5})\b')
_FAILED: Final = re.compile(r'^\s*+(?:\{\s*+"error"\s*+:\s*+"?|error\b[: ]*+|fatal: ?|traceback\b)', re.IGNORECASE)
_RAISED: Final = re.compile(
    r"^[ \t]*+(?:[a-z_]\w{0,40}\.){0,6}([A-Z]\w{2,60}(?:Error|Exception|Exit|Interrupt)\b[^\n]*+)", re.MULTILINE
)
_TESTS: Final = re.compile(r"\d(?<=\b\d)\d{0,5} (?i:passed|failed|errors?|skipped|passing|failing)\b")
_STATUS: Final = re.compile(
    r'["H](?:(?<=")(?:status|state|result|outcome)"\s{0,3}:\s{0,3}"?([\w -]{1,40})|(?<=\bH)TTP/[\d.]{1,3} (\d{3}))'
)
_NONE: Final = re.compile(
    r"^\s*+(?:no (?:matches|results?|output|files?)\b[^\n]{0,40}|nothing found|0 (?:matches|results?))", re.IGNORECASE
)


def prune(
    messages: Sequence[Message], protected_from: int, calls: Mapping[str, Call], counter: TokenCounter
) -> list[Message]:
    """Return `messages` with everything before index `protected_from` shortened, and older images replaced."""
    newest_images = max((i for i, m in enumerate(messages) if m.get("role") == "user" and images(m)), default=-1)
    later: set[str] = {text for m in messages[protected_from:] if (text := _long_result(m)) is not None}
    result = list(messages)
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if index < protected_from:
            message = _shortened(message, calls, later, counter)
        if index < newest_images and images(message):
            marker = {"type": "text", "text": IMAGE_MARKER}
            content: Any = message["content"]
            message = rewritten(message, counter, content=[marker if is_image(part) else part for part in content])
        result[index] = message
    return result


def squeeze(messages: Sequence[Message], excess: int, counter: TokenCounter) -> list[Message]:
    """`messages` with tool results cut to both ends, all to the same size, so that `excess` tokens go if possible: the
    last resort if even the protected messages are too long."""
    result = list(messages)
    sizes = {index: counter.message(m) for index, m in enumerate(messages) if m.get("role") == "tool"}
    low, high = _LEAST_TOKENS, max(sizes.values(), default=0)
    while low < high:  # the largest size at which enough is gone
        size = (low + high + 1) // 2
        if sum(tokens - size for tokens in sizes.values() if tokens > size) >= excess:
            low = size
        else:
            high = size - 1
    for index, tokens in sizes.items():
        text = text_of(messages[index])
        kept = int(len(text) * low / tokens * _CAREFUL)
        if tokens > low and kept < len(text):
            result[index] = rewritten(messages[index], counter, content=cut(text, kept))
    return result


def cut(text: str, limit: int) -> str:
    """Return `text`; of a text longer than `limit` characters only the ends, with a line about the cut between."""
    if len(text) <= limit:
        return text
    edge = max(1, limit // 2)
    return f"{text[:edge]}\n{CUT.format(count=len(text) - 2 * edge)}\n{text[-edge:]}"


def _shortened(message: Message, calls: Mapping[str, Call], later: set[str], counter: TokenCounter) -> Message:
    text, shown = _long_result(message), images(message)
    if text is not None or (shown and message.get("role") == "tool"):
        said = text_of(message) if text is None else text
        line = stub_line(calls.get(result_id(message) or ""), said, images=shown)
        if text is not None and text in later:
            line = f"{line[: STUB_CHARS - len(_REPEATED)]}{_REPEATED}"
        if text is not None:
            later.add(text)
        return rewritten(message, counter, content=line)
    short = _cut_calls(message.get("tool_calls"))
    return message if short is None else rewritten(message, counter, tool_calls=short)


def _long_result(message: Mapping[str, Any]) -> str | None:
    if message.get("role") != "tool":
        return None
    text = text_of(message)
    return text if len(text) > STUB_CHARS else None


def _cut_calls(calls: Any) -> list[Any] | None:
    """Return calls with their long arguments shortened; None if there is nothing to shorten."""
    if not isinstance(calls, list | tuple):
        return None
    changed = False
    result: list[Any] = []
    for call in calls:
        function = call.get("function") if isinstance(call, Mapping) else None
        arguments = function.get("arguments") if isinstance(function, Mapping) else None
        short = _cut_arguments(arguments) if isinstance(arguments, str) and len(arguments) > ARGUMENT_CHARS else None
        if short is None:
            result.append(call)
        else:
            changed = True
            result.append({**call, "function": {**function, "arguments": short}})  # type: ignore[dict-item]
    return result if changed else None


def _cut_arguments(arguments: str) -> str | None:
    """Return shorter arguments that are JSON; None if they do not get shorter."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        value = {"unreadable_arguments": arguments}  # as the codec would send them
    try:
        short = json.dumps(_cut_strings(value), ensure_ascii=False)
    except (ValueError, RecursionError):
        return None
    return short if len(short) < len(arguments) else None


def _cut_strings(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= ARGUMENT_CHARS else f"{value[:_ARGUMENT_KEPT]}… [{len(value):,} characters]"
    if isinstance(value, list):
        rest = [f"… [{len(value):,} items]"] if len(value) > _ARGUMENT_ITEMS else []
        return [*(_cut_strings(item) for item in value[:_ARGUMENT_ITEMS]), *rest]
    if isinstance(value, dict):
        return {key: _cut_strings(item) for key, item in value.items()}
    return value


# -- one line for a result --------------------------------------------------------------------


def stub_line(call: Call | None, text: str, redact: Redact = str, images: int = 0) -> str:
    """Return the line for a result, at most `STUB_CHARS` long. `images`: the number of images in the result."""
    action = _action(call.arguments, redact) if call else ""
    kept = persisted(text)
    size = f"{len(text):,} characters" if "\n" not in text else f"{len(text.splitlines()):,} lines"
    if kept:
        size = f"{kept.size:,} characters, kept as {kept.name}"
    if images:
        size += f", {images} image{'s' if images > 1 else ''}"
    outcome = _outcome(text, redact)
    end = f" → {outcome}, {size}" if outcome else f" → {size}"
    line = f"[{(call.name if call else 'tool')[:40]}]{' ' + action if action else ''}"
    line = line[: STUB_CHARS - len(end)] + end
    room = STUB_CHARS - len(line) - 2
    first = "" if outcome or room < 20 else _opening(text, redact, min(room, 80))
    return f"{line}: {first}" if first else line


def _action(arguments: str, redact: Redact) -> str:
    """Return the object of a call: a command as ``ran `…` ``, else its one or two most telling arguments."""
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
    """The arguments that can be shown, nested ones included, as (name, value), most telling first."""
    names = [name for name in _SALIENT if name in arguments]
    for name in dict.fromkeys((*names, *arguments)):
        value = arguments[name]
        text = _scalar(value)
        if text:
            yield name, text
        elif isinstance(value, dict):
            yield from ((inner, text) for inner in value if (text := _scalar(value[inner])))


def _scalar(value: Any) -> str:
    """Return a text, a number or a list of these as text; "" for any other value."""
    if isinstance(value, str):
        return value[:_READ]
    if isinstance(value, bool) or value is None:
        return ""
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list) and value and all(isinstance(item, str | int | float) for item in value[:20]):
        return " ".join(str(item) for item in value[:20])[:_READ]
    return ""


def _outcome(text: str, redact: Redact) -> str:
    edges = ends(text, _EDGE)
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
    """Return the number of items in a JSON result; "" for a result that is cut or too long to be read."""
    if len(text) > 100_000 or text[:1] not in "[{":
        return ""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    lists: Sequence[tuple[str, Any]] = [("", value)] if isinstance(value, list) else list(value.items())
    return next((f"{len(one):,} {name or 'items'}" for name, one in lists[:20] if isinstance(one, list)), "")


def _opening(text: str, redact: Redact, limit: int) -> str:
    """Return the first line with words in it."""
    start = redact(text[:_READ].lstrip())
    first = next((line for line in start.splitlines() if any(map(str.isalpha, line))), "")
    return _line(first, limit) if " " in first.strip() or not first.isascii() else ""


def _line(text: str, limit: int) -> str:
    line = " ".join(text[: limit * 4].split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
