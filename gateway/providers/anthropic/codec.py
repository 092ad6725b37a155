"""The Messages API as pure functions: a request as a dict.

The format is https://platform.claude.com/docs/en/api/messages. Every request keeps to the API's rules, whatever a
transcript holds: the roles alternate and begin with the user's, results come first in their message, every id is
unique, and no block is empty. The same transcript is always encoded alike, or prompt caches would miss.

What the model said before goes back as it said it (`Original`): signed and redacted thoughts, and blocks that nobody
here knows. The thoughts of another model or another API stay at home; their words and calls go on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, Final, Self

from gateway.domain.message import Message, note_of, text_of
from gateway.providers.base import BEGINNING, ModelRequest, ModelSpec
from gateway.providers.calls import CallNames, arguments_text
from gateway.providers.plugin import request_settings

API: Final = "anthropic"
DEFAULT_BASE_URL: Final = "https://api.anthropic.com"
VERSION: Final = "2023-06-01"

# https://platform.claude.com/docs/en/about-claude/models: the most that the models of a generation write. A request
# must state a cap; later models have a larger one than is wanted of an answer.
_CAPS: Final = ((re.compile(r"claude-3-(?:opus|sonnet|haiku)|claude-[12]|claude-instant"), 4_096),
                (re.compile(r"claude-3-5"), 8_192))  # fmt: skip
_USUAL_CAP: Final = 32_000  # tokens, thoughts included
_MISCOUNT: Final = 1 / 16  # of a prompt: so much longer than its estimate it may be
_ID_LIMIT: Final = 64  # characters of a call's id
_DATA_URL: Final = re.compile(r"data:(?P<type>[\w.+-]+/[\w.+-]+);base64,", re.IGNORECASE)
_THOUGHTS: Final = ("thinking", "redacted_thinking")
_TRANSLATED: Final = ("reasoning_effort", "response_format", "stop", "parallel_tool_calls")
_EMPTY: Final = "(empty message)"
_GO_ON: Final = "Go on."
_SOUND: Final = "[A recording is here that this model cannot hear.]"


def endpoint(spec: ModelSpec) -> str:
    """Return the address of the model's API. A base URL may be given with or without the version and the method's
    path."""
    base = (spec.base_url or DEFAULT_BASE_URL).rstrip("/").removesuffix("/messages")
    return f"{base}/messages" if base.endswith("/v1") else f"{base}/v1/messages"


def output_cap(spec: ModelSpec, request: ModelRequest, known: int | None) -> int:
    """Return the most tokens that the answer may have; Anthropic demands this number. `known`: what the server said
    is the model's most."""
    if request.max_tokens is not None:
        return request.max_tokens
    usual = next((cap for names, cap in _CAPS if names.search(spec.name.lower())), _USUAL_CAP)
    room = spec.context_length - int(request.prompt_tokens * (1 + _MISCOUNT))
    return min(usual, spec.context_length // 2, known or usual, max(room, spec.reserved_output))


def encode_request(
    spec: ModelSpec,
    request: ModelRequest,
    *,
    cap: int | None = None,
    thoughts: bool = True,
    entries: Entries | None = None,
) -> dict[str, Any]:
    """The body of a call. `cap`: the most that the model is known to write. `thoughts`: whether earlier ones return.
    `entries`: those of earlier messages, behind the system's."""
    prompt, others = request.parted()
    system = [block for message in prompt for block in _marked(_words(message), message)]
    entries = entries or Entries(spec, thoughts)
    entries.add(others)
    entries.end()
    body: dict[str, Any] = {"model": spec.name, "max_tokens": output_cap(spec, request, cap)}
    if system:
        body["system"] = system
    body["messages"] = entries.made
    if request.tools:
        body["tools"] = [_tool(tool["function"]) for tool in request.tools]
        alone = request.chosen.get("parallel_tool_calls") is False
        if request.tool_choice != "auto" or alone:
            kind = "any" if request.tool_choice == "required" else request.tool_choice
            body["tool_choice"] = {"type": kind} | ({"disable_parallel_tool_use": True} if alone else {})
    if "thinking" not in request.omit:
        body |= _thinking(spec, body, request.instead.get("thinking"))
    if "stream" not in request.omit:
        body["stream"] = True
    more = request_settings(spec, request)
    effort, form, stop, _ = (more.pop(name, None) for name in _TRANSLATED)
    output = {"effort": effort} if effort else {}
    if form is not None:
        output["format"] = {"type": "json_schema", "schema": form.get("json_schema", {}).get("schema", {})}
    more |= {"stop_sequences": stop} if stop else {}
    return body | ({"output_config": output} if output else {}) | more


def _tool(function: Mapping[str, Any]) -> dict[str, Any]:
    made = {"name": function["name"], "description": function.get("description")}
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    return {key: value for key, value in made.items() if value} | {"input_schema": schema}


def _thinking(spec: ModelSpec, body: Mapping[str, Any], instead: str | None) -> dict[str, Any]:
    """Return the request's fields about thinking. `instead`: the one way to think that the model has. With a budget, an
    answer that calls tools must begin with thoughts, so a turn that began without any (with another model, say) goes
    on without."""
    mode, budget = getattr(spec.settings, "thinking", "auto"), getattr(spec.settings, "thinking_tokens", None)
    if mode == "adaptive" or (instead == "adaptive" and budget is not None):
        return {"thinking": {"type": "adaptive"}}
    if mode == "off":
        return {"thinking": {"type": "disabled"}}
    if budget is None or budget >= body["max_tokens"] or _began_without_thoughts(body["messages"]):
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _began_without_thoughts(messages: Sequence[Mapping[str, Any]]) -> bool:
    if len(messages) < 2 or messages[-1]["content"][0]["type"] != "tool_result":
        return False
    return messages[-2]["content"][0]["type"] not in _THOUGHTS


# --- messages --------------------------------------------------------------------------------


class Entries:
    """Messages of alternating roles. `thoughts`: whether those of the model that is asked go back."""

    def __init__(self, spec: ModelSpec, thoughts: bool) -> None:
        self.made: list[dict[str, Any]] = []
        self._thinker = spec.name if thoughts else None
        self._names = CallNames(_ID_LIMIT)

    def copy(self) -> Self:
        other = copy(self)
        other.made = [{**entry, "content": [*entry["content"]]} if "role" in entry else entry for entry in self.made]
        other._names = self._names.copy()
        return other

    def add(self, messages: Iterable[Message]) -> bool:
        made = self.made
        for message in messages:
            for role, blocks in _encoded(message, self._names, self._thinker):
                if made and made[-1]["role"] == role:
                    made[-1]["content"] += blocks
                    continue
                if not made and role != "user":
                    made.append({"role": "user", "content": [_text(BEGINNING)]})
                self._close()
                made.append({"role": role, "content": blocks})
        return False

    def end(self) -> None:
        if not self.made:
            self.made.append({"role": "user", "content": [_text(_EMPTY)]})
        self._close()
        if self.made[-1]["role"] == "assistant":  # most models refuse to go on with words of their own
            self.made.append({"role": "user", "content": [_text(_GO_ON)]})

    def _close(self) -> None:
        """The last entry is whole: results come first in it."""
        last = self.made[-1] if self.made else {}
        if last.get("role") == "user" and len(last["content"]) > 1:
            last["content"].sort(key=lambda block: block["type"] != "tool_result")


def _encoded(message: Message, names: CallNames, thinker: str | None) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A message as (role, blocks); nothing for an answer without any."""
    role = message["role"]
    if role == "assistant":
        blocks = _answer(message, names, thinker)
        if blocks:
            yield "assistant", _marked(blocks, message)
    elif role == "tool":
        yield "user", _marked([_result(message, names)], message)
    else:  # a system message behind the first ones is the host's: a remark to the model
        yield "user", _marked(_parts(message.get("content")), message) or [_text(_EMPTY)]


def _answer(message: Message, names: CallNames, thinker: str | None) -> list[dict[str, Any]]:
    calls = message.get("tool_calls") or ()
    original = _original(message, thinker)
    if original is not None:
        names.keep(block["id"] for block in original if block.get("type") == "tool_use")
        return list(original)
    blocks = _words(message)
    for call in calls:
        function: Mapping[str, Any] = call.get("function") or {}
        arguments = json.loads(arguments_text(function.get("arguments")))
        blocks.append(
            {
                "type": "tool_use",
                "id": names.call(str(call.get("id", ""))),
                "name": str(function.get("name", "")),
                "input": arguments,
            }
        )
    return blocks


def _original(message: Message, thinker: str | None) -> list[dict[str, Any]] | None:
    """The blocks of an answer as this API gave them, while the message still says the same; without the thoughts of
    another model, which has no use for their signatures."""
    original = note_of(message).get("original")
    if not original or original.get("api") != API:
        return None
    blocks = original["blocks"]
    calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
    if words_of(blocks) != text_of(message) or calls != [call["id"] for call in message.get("tool_calls", ())]:
        return None
    if original.get("model") == thinker:
        return blocks
    return [block for block in blocks if block["type"] not in _THOUGHTS] or None


def words_of(blocks: Sequence[Mapping[str, Any]]) -> str:
    """The words of an answer's blocks."""
    return "".join(block["text"] for block in blocks if block["type"] == "text")


def _result(message: Message, names: CallNames) -> dict[str, Any]:
    content = _parts(message.get("content"))
    block = {"type": "tool_result", "tool_use_id": names.result(str(message.get("tool_call_id", "")))}
    if len(content) == 1 and content[0].keys() == {"type", "text"}:
        return {**block, "content": content[0]["text"]}
    return {**block, "content": content} if content else block


# --- blocks ----------------------------------------------------------------------------------


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _words(message: Message) -> list[dict[str, Any]]:
    return [block for block in _parts(message.get("content")) if block["type"] == "text"]


def _parts(content: Any) -> list[dict[str, Any]]:
    """A content as blocks; blank ones, which the API refuses, are left out."""
    if isinstance(content, str):
        return [_text(content)] if content.strip() else []
    return [block for part in content or () if (block := _part(part)) is not None]


def _part(part: Any) -> dict[str, Any] | None:
    if not isinstance(part, Mapping):
        return _text(part) if isinstance(part, str) and part.strip() else None
    kind = part.get("type")
    if kind == "image_url":
        block = _image(part["image_url"])
    elif kind == "input_audio":
        block = _text(_SOUND)
    elif isinstance(part.get("text"), str) and part["text"].strip():
        block = _text(part["text"])
    else:
        return None
    return {**block, "cache_control": part["cache_control"]} if "cache_control" in part else block


def _image(image: Any) -> dict[str, Any]:
    url = str(image.get("url", "") if isinstance(image, Mapping) else image)
    found = _DATA_URL.match(url)
    if found is None:
        return {"type": "image", "source": {"type": "url", "url": url}}
    source = {"type": "base64", "media_type": found["type"].lower(), "data": url[found.end() :]}
    return {"type": "image", "source": source}


def _marked(blocks: list[dict[str, Any]], message: Message) -> list[dict[str, Any]]:
    """The blocks of a message, with its mark for the cache on the last of them that can carry one."""
    mark = _mark_of(message)
    if mark is None or any("cache_control" in block for block in blocks):
        return blocks
    for at in range(len(blocks) - 1, -1, -1):
        if blocks[at]["type"] not in _THOUGHTS:
            return [*blocks[:at], {**blocks[at], "cache_control": mark}, *blocks[at + 1 :]]
    return blocks


def _mark_of(message: Mapping[str, Any]) -> Any:
    content = message.get("content")
    last = content[-1] if isinstance(content, list) and content else None
    return message.get("cache_control") or (last.get("cache_control") if isinstance(last, Mapping) else None)
