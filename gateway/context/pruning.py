"""Phase 1: what can be shortened without a model.

Applied to the messages a compaction keeps, in front of the protected tail: long tool results
become one line, repeats point at their newest copy, long call arguments are cut inside their
JSON. Images before the newest image-bearing user message become a marker wherever they are.
A message that needs no change is passed on as the same object. No shape raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gateway.context.prompts import IMAGE_MARKER
from gateway.domain.message import HOST, Message, note_of, text_of
from gateway.tokens import TokenCounter

STUB_OVER_CHARS: Final = 200  # SPEC 5: a longer tool result becomes one line, itself no longer
ARGUMENT_CHARS: Final = 200  # a longer string inside call arguments is cut
_ARGUMENT_KEPT: Final = 80
_SALIENT: Final = ("command", "cmd", "path", "file_path", "file", "url", "query", "pattern", "words", "name", "text")
_EXIT: Final = re.compile(r'"?exit[ _-]?(?:code|status)"?\s*[:=]?\s*(-?\d{1,5})', re.IGNORECASE)
_FAILED: Final = re.compile(r'^\s*(?:\{\s*"error"\s*:\s*"?|error\b[: ]*|traceback\b)', re.IGNORECASE)
_IMAGE_TYPES: Final = frozenset({"image", "image_url", "input_image"})


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call, whatever shape it came in. `arguments` is its JSON text."""

    ids: tuple[str, ...]
    name: str
    arguments: str


def calls_of(message: Mapping[str, Any]) -> list[Call]:
    """The tool calls of a message; [] for none and for shapes that hold none."""
    calls = message.get("tool_calls")
    if not calls or not isinstance(calls, list | tuple):
        return []
    return [read_call(call) for call in calls]


def read_call(call: Any) -> Call:
    """A tool call given as a dict or as an SDK's object; both `id` and `call_id` name it."""
    ids = tuple(dict.fromkeys(value for value in (_field(call, "id"), _field(call, "call_id")) if _is_id(value)))
    function = _field(call, "function") or call
    name, arguments = _field(function, "name"), _field(function, "arguments")
    if not isinstance(arguments, str):
        arguments = "" if arguments is None else json.dumps(arguments, ensure_ascii=False, default=str)
    return Call(ids=ids, name=name if isinstance(name, str) and name else "tool", arguments=arguments)


def result_id(message: Mapping[str, Any]) -> str | None:
    """The call a tool message answers, or None."""
    for name in ("tool_call_id", "call_id"):
        value = message.get(name)
        if _is_id(value):
            return str(value)
    return None


def calls_by_id(messages: Iterable[Mapping[str, Any]]) -> dict[str, Call]:
    """Every call of a transcript under each of its ids; a reused id means its latest call."""
    return {name: call for message in messages for call in calls_of(message) for name in call.ids}


def rewritten(
    message: Message, counter: TokenCounter, /, note: Mapping[str, Any] | None = None, **fields: Any
) -> Message:
    """A new message with `fields` replaced, that notes what it derives from and its own tokens."""
    old = note_of(message)
    kept: dict[str, Any] = {key: old[key] for key in ("at", "speaker", "summary", "fallback", "merged") if key in old}
    copy: dict[str, Any] = {**message, **fields, HOST: {**kept, "derived_from": sources(message), **(note or {})}}
    copy[HOST]["tokens"] = counter.message(copy)
    return copy  # type: ignore[return-value]


def sources(message: Mapping[str, Any]) -> list[str]:
    """Row ids a message stands for: its own, or those it was derived from while it has none."""
    note = note_of(message)
    own = note.get("id")
    if _is_id(own):
        return [str(own)]
    derived = note.get("derived_from")
    return [str(value) for value in derived] if isinstance(derived, list | tuple) else []


def stub_line(call: Call | None, text: str) -> str:
    """One line about a tool result: tool, salient argument, outcome, size; at most 200 characters."""
    name = call.name if call else "tool"
    action = _salient(call.arguments) if call else ""
    size = f"{len(text):,} characters" if "\n" not in text else f"{len(text.splitlines()):,} lines"
    outcome = _outcome(text)
    end = f" → {outcome}, {size}" if outcome else f" → {size}"
    line = f"[{name[:40]}]{' ' + action if action else ''}"
    return line[: STUB_OVER_CHARS - len(end)] + end


def prune(
    messages: Sequence[Message], protected_from: int, calls: Mapping[str, Call], counter: TokenCounter
) -> list[Message]:
    """`messages` with everything before index `protected_from` shortened, images as said above."""
    newest_images = max((i for i, m in enumerate(messages) if m.get("role") == "user" and _has_image(m)), default=-1)
    later: set[str] = {text for m in messages[protected_from:] if (text := _long_result(m)) is not None}
    result = list(messages)
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if index < newest_images and _has_image(message):
            message = rewritten(message, counter, content=_without_images(message.get("content")))
        if index < protected_from:
            message = _shortened(message, calls, later, counter)
        result[index] = message
    return result


def _shortened(message: Message, calls: Mapping[str, Call], later: set[str], counter: TokenCounter) -> Message:
    text = _long_result(message)
    if text is not None:
        line = stub_line(calls.get(result_id(message) or ""), text)
        if text in later:
            line = f"{line[:150]} (same output as a later call)"
        later.add(text)
        return rewritten(message, counter, content=line)
    cut = _cut_calls(message.get("tool_calls"))
    return message if cut is None else rewritten(message, counter, tool_calls=cut)


def _long_result(message: Mapping[str, Any]) -> str | None:
    if message.get("role") != "tool":
        return None
    text = text_of(message)
    return text if len(text) > STUB_OVER_CHARS else None


def _cut_calls(calls: Any) -> list[Any] | None:
    """Calls with their long arguments shortened; None if there is nothing to shorten."""
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
    try:
        value = json.loads(arguments)
        short = json.dumps(_cut_strings(value), ensure_ascii=False)
    except (ValueError, RecursionError):
        return None
    return short if len(short) < len(arguments) else None


def _cut_strings(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= ARGUMENT_CHARS else f"{value[:_ARGUMENT_KEPT]}… [{len(value):,} characters]"
    if isinstance(value, list):
        return [_cut_strings(item) for item in value]
    if isinstance(value, dict):
        return {key: _cut_strings(item) for key, item in value.items()}
    return value


def _salient(arguments: str) -> str:
    """The argument that says most about a call: a command as ``ran `…` ``, else its value."""
    try:
        value = json.loads(arguments) if arguments else {}
    except (ValueError, RecursionError):
        return _one_line(arguments, 60)
    if not isinstance(value, dict):
        return _one_line(arguments, 60)
    for name in (*_SALIENT, *value):
        if name in value and isinstance(value[name], str | int | float) and value[name] != "":
            text = _one_line(str(value[name]), 100)
            return f"ran `{text}`" if name in ("command", "cmd") else f"{name}={text}"
    return ""


def _outcome(text: str) -> str:
    edges = text if len(text) <= 2_000 else f"{text[:1_000]}\n{text[-1_000:]}"
    found = _EXIT.search(edges)
    if found:
        return f"exit {found[1]}"
    failed = _FAILED.match(edges)
    return f"error: {_one_line(edges[failed.end() :], 60)}" if failed else ""


def _has_image(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    return isinstance(content, list) and any(_is_image(part) for part in content)


def _is_image(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") in _IMAGE_TYPES


def _without_images(content: Any) -> list[Any]:
    return [{"type": "text", "text": IMAGE_MARKER} if _is_image(part) else part for part in content]


def _one_line(text: str, limit: int) -> str:
    line = " ".join(text[: limit * 4].split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _field(holder: Any, name: str) -> Any:
    # A dict first: it is one nearly always, and asking for a Mapping takes ten times as long.
    return holder.get(name) if isinstance(holder, (dict, Mapping)) else getattr(holder, name, None)


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and value != ""
