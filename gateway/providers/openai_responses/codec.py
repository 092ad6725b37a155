"""The Responses API as pure functions: a request as a dict.

The format is https://platform.openai.com/docs/api-reference/responses. Legato keeps conversations itself, so nothing is
left at the server (`store: false`), and the model's thoughts travel encrypted in its answers and back.

What the model said before goes back as it said it (`Original`), item by item: encrypted thoughts, and items that nobody
here knows. They belong together, so they go back as a whole or not at all: to another model, and from another API, go
the words and the calls alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, Final, Self

from msgspec import Struct

from gateway.domain.message import Message, note_of, text_of
from gateway.providers.base import ModelRequest, ModelSpec
from gateway.providers.calls import CallNames, arguments_text
from gateway.providers.plugin import request_settings
from gateway.runtime.structs import replace

API: Final = "openai-responses"
DEFAULT_BASE_URL: Final = "https://api.openai.com/v1"

_ID_LIMIT: Final = 64  # characters of a call's id
_LEAST_OUTPUT: Final = 16  # tokens; the API refuses a smaller cap
_EMPTY: Final = "(empty message)"
_ENCRYPTED: Final = "reasoning.encrypted_content"


class Habits(Struct, frozen=True, kw_only=True):
    """The habits of a model or its server that were learned from refusals. `encrypts`: whether it can hand out its
    thoughts. `stores`: whether it knows the option not to store."""

    encrypts: bool = True
    stores: bool = True


def endpoint(spec: ModelSpec) -> str:
    """Return the address of the model's API. A base URL may be given with or without the method's path."""
    base = (spec.base_url or DEFAULT_BASE_URL).rstrip("/")
    return base if base.endswith("/responses") else f"{base}/responses"


def encode_request(
    spec: ModelSpec,
    request: ModelRequest,
    habits: Habits | None = None,
    *,
    thoughts: bool = True,
    entries: Entries | None = None,
) -> dict[str, Any]:
    """The body of a call. `thoughts`: whether earlier ones go back. `entries`: those that were made of messages between
    the system's and the others."""
    habits = habits or Habits()
    prompt, others = request.parted()
    instructions = "\n\n".join(filter(None, map(text_of, prompt)))
    body: dict[str, Any] = {"model": spec.name}
    if instructions:
        body["instructions"] = instructions
    entries = entries or Entries(spec, thoughts)
    entries.add(others)
    entries.end()
    body["input"] = entries.made
    if request.tools:
        body["tools"] = [_tool(tool["function"]) for tool in request.tools]
        if request.tool_choice != "auto":
            body["tool_choice"] = request.tool_choice
    if request.max_tokens is not None:
        body["max_output_tokens"] = max(_LEAST_OUTPUT, request.max_tokens)
    if habits.encrypts:
        body["include"] = [_ENCRYPTED]
    if habits.stores:
        body["store"] = False
    if "stream" not in request.omit:
        body["stream"] = True
    more = request_settings(spec, request)
    effort, form, verbosity = (more.pop(name, None) for name in ("reasoning_effort", "response_format", "verbosity"))
    text = {"verbosity": verbosity} if verbosity else {}
    if form is not None:
        text["format"] = {"type": form["type"], **form.get("json_schema", {})}
    if not request.tools:
        more.pop("parallel_tool_calls", None)
    return body | ({"reasoning": {"effort": effort}} if effort else {}) | ({"text": text} if text else {}) | more


def learn(habits: Habits, refusal: str) -> Habits | None:
    """The habits of a model that refused a call with this text, or None if it objects to something that cannot be
    helped. Each habit is learned once, so repeating this ends."""
    text = refusal.lower()
    if habits.encrypts and _NO_ENCRYPTION.search(text):
        return replace(habits, encrypts=False)
    if habits.stores and _NO_STORE.search(text):
        return replace(habits, stores=False)
    return None


_OBJECTS: Final = r"unsupported|not support|unrecognized|unknown|unexpected|extra inputs|not permitted|not allowed"
_NO_ENCRYPTION: Final = re.compile(
    rf"encrypted[ _]content[^.]{{0,40}}(?:{_OBJECTS})|(?:{_OBJECTS})[^.]{{0,60}}(?:\binclude\b|encrypted[ _]content)"
)
_NO_STORE: Final = re.compile(rf"\bstore\b[^.]{{0,40}}(?:{_OBJECTS})|(?:{_OBJECTS})[^.]{{0,40}}\bstore\b")


def refuses_thoughts(refusal: str) -> bool:
    """Whether a refusal is about earlier thoughts: those of another account cannot be decrypted, say."""
    text = refusal.lower()
    return any(sign in text for sign in ("encrypted content", "encrypted_content", "not persisted", "'reasoning'"))


def _tool(function: Mapping[str, Any]) -> dict[str, Any]:
    made = {"type": "function", "name": function["name"], "description": function.get("description")}
    parameters = function.get("parameters") or {"type": "object", "properties": {}}
    # Without this word the API makes every parameter a required one.
    return {key: value for key, value in made.items() if value} | {"parameters": parameters, "strict": False}


# --- items -----------------------------------------------------------------------------------


class Entries:
    """The items of an input. `thoughts`: whether those of the model that is asked go back."""

    def __init__(self, spec: ModelSpec, thoughts: bool) -> None:
        self.made: list[dict[str, Any]] = []
        self._thinker = spec.name if thoughts else None
        self._names = CallNames(_ID_LIMIT)

    def copy(self) -> Self:
        other = copy(self)
        other.made, other._names = [*self.made], self._names.copy()
        return other

    def add(self, messages: Iterable[Message]) -> bool:
        made = self.made
        for message in messages:
            for item in _items(message, self._names, self._thinker):
                # As a question of a failed turn, and the next one.
                if item.get("role") == "user" and made and made[-1].get("role") == "user":
                    made[-1] = {**item, "content": [*made[-1]["content"], *item["content"]]}
                else:
                    made.append(item)
        return False

    def end(self) -> None:
        if not self.made:
            self.made.append(_said("user", [_text(_EMPTY)]))


def _items(message: Message, names: CallNames, thinker: str | None) -> Iterator[dict[str, Any]]:
    role = message["role"]
    if role == "tool":
        call_id = names.result(str(message.get("tool_call_id", "")))
        yield {"type": "function_call_output", "call_id": call_id, "output": _output(message.get("content"))}
    elif role != "assistant":  # a system message behind the first ones is the host's: a remark to the model
        yield _said("user" if role == "user" else "developer", _parts(message.get("content")) or [_text(_EMPTY)])
    elif (original := _original(message, thinker)) is not None:
        names.keep(item["call_id"] for item in original if item["type"] == "function_call")
        yield from original
    else:
        text = text_of(message)
        if text.strip():
            yield {"type": "message", "role": "assistant", "content": text}
        for call in message.get("tool_calls") or ():
            function: Mapping[str, Any] = call.get("function") or {}
            yield {
                "type": "function_call",
                "call_id": names.call(str(call.get("id", ""))),
                "name": str(function.get("name", "")),
                "arguments": arguments_text(function.get("arguments")),
            }


def _original(message: Message, thinker: str | None) -> list[dict[str, Any]] | None:
    """The items of an answer as this model gave them, while the message still says the same."""
    original = note_of(message).get("original")
    if not original or original.get("api") != API or original.get("model") != thinker:
        return None
    items = original["blocks"]
    calls = [item["call_id"] for item in items if item["type"] == "function_call"]
    if words_of(items) != text_of(message) or calls != [call["id"] for call in message.get("tool_calls", ())]:
        return None
    return items


def words_of(items: Sequence[Mapping[str, Any]]) -> str:
    """The words of an answer's items. Messages are kept apart, as the model means them to be."""
    said = (words_in(item) for item in items if item["type"] == "message")
    return "\n\n".join(text for text in said if text)


def words_in(item: Mapping[str, Any]) -> str:
    """The words of a message item, those of a refusal included."""
    content = item.get("content")
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    found = (part.get("refusal" if part.get("type") == "refusal" else "text") for part in parts)
    return "".join(text for text in found if isinstance(text, str))


def _said(role: str, content: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": content}


def _output(content: Any) -> Any:
    """A tool's result: a text where it is nothing else."""
    parts = _parts(content)
    return "\n".join(part["text"] for part in parts) if all(part["type"] == "input_text" for part in parts) else parts


def _text(text: str) -> dict[str, Any]:
    return {"type": "input_text", "text": text}


def _parts(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [_text(content)] if content.strip() else []
    return [made for part in content or () if (made := _part(part)) is not None]


def _part(part: Any) -> dict[str, Any] | None:
    if not isinstance(part, Mapping):
        return _text(part) if isinstance(part, str) and part.strip() else None
    kind = part.get("type")
    if kind == "image_url":
        image = part["image_url"]
        image = image if isinstance(image, Mapping) else {"url": str(image)}
        return {"type": "input_image", "image_url": image.get("url", ""), "detail": image.get("detail", "auto")}
    if kind == "input_audio":
        return {"type": "input_audio", "input_audio": part["input_audio"]}
    text = part.get("text")
    return _text(text) if isinstance(text, str) and text.strip() else None
