"""Phase 1: what can be shortened without a model.

Applied to the messages a compaction keeps, in front of the protected tail: long tool results
become one line, repeats point at their newest copy, long call arguments are cut inside their
JSON. Images before the newest image-bearing user message become a marker wherever they are.
A message that needs no change is passed on as the same object. No shape raises.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gateway.context.prompts import CUT, IMAGE_MARKER
from gateway.context.shapes import Call, is_image, result_id, rewritten
from gateway.context.stubs import STUB_CHARS, stub_line
from gateway.domain.message import Message, text_of
from gateway.runtime.tokens import TokenCounter

ARGUMENT_CHARS: Final = 200  # a longer string inside call arguments is cut
_ARGUMENT_KEPT: Final = 80
_ARGUMENT_ITEMS: Final = 50  # of a longer list in them only the first are kept
_REPEATED: Final = " (same output as a later call)"
_LEAST_TOKENS: Final = 100  # of a result that is cut because nothing else makes it fit
_CAREFUL: Final = 0.85  # of what should fit is kept: the ends may be denser than the rest


def prune(
    messages: Sequence[Message], protected_from: int, calls: Mapping[str, Call], counter: TokenCounter
) -> list[Message]:
    """`messages` with everything before index `protected_from` shortened, images as said above."""
    newest_images = max((i for i, m in enumerate(messages) if m.get("role") == "user" and _images(m)), default=-1)
    later: set[str] = {text for m in messages[protected_from:] if (text := _long_result(m)) is not None}
    result = list(messages)
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if index < protected_from:
            message = _shortened(message, calls, later, counter)
        if index < newest_images and _images(message):
            message = rewritten(message, counter, content=_without_images(message.get("content")))
        result[index] = message
    return result


def squeeze(messages: Sequence[Message], excess: int, counter: TokenCounter) -> list[Message]:
    """`messages` with tool results cut to both ends, all to the same size, so that `excess` tokens are
    gone if that can be: the last resort where what may not be pruned alone is more than fits."""
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
    """`text`, of more than `limit` characters only the ends, with a line that says so between them."""
    if len(text) <= limit:
        return text
    edge = max(1, limit // 2)
    return f"{text[:edge]}\n{CUT.format(count=len(text) - 2 * edge)}\n{text[-edge:]}"


def _shortened(message: Message, calls: Mapping[str, Call], later: set[str], counter: TokenCounter) -> Message:
    text, images = _long_result(message), _images(message)
    if text is not None or (images and message.get("role") == "tool"):
        said = text_of(message) if text is None else text
        line = stub_line(calls.get(result_id(message) or ""), said, images=images)
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
    """Shorter arguments that are JSON; None if they do not get shorter."""
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


def _images(message: Mapping[str, Any]) -> int:
    content = message.get("content")
    return sum(map(is_image, content)) if isinstance(content, list) else 0


def _without_images(content: Any) -> list[Any]:
    return [{"type": "text", "text": IMAGE_MARKER} if is_image(part) else part for part in content]
