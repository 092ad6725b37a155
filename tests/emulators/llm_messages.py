"""Anthropic's Messages API, for the emulator: https://platform.claude.com/docs/en/api/messages and …/errors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tests.emulators.llm_replies import Reply
from tests.emulators.llm_rules import picture_problems
from tests.emulators.llm_wires import named, pieces

REQUEST_KEYS = frozenset(
    re.findall(
        r"\w+",
        "model max_tokens messages system tools tool_choice stream thinking metadata stop_sequences temperature top_k "
        "top_p output_config service_tier",
    )
)
BLOCKS = {"user": {"text", "image", "document", "tool_result"}, "assistant": {"text", "thinking", "redacted_thinking",
          "tool_use", "server_tool_use", "web_search_tool_result", "container_upload"}}  # fmt: skip
REQUIRED = {
    "text": {"text"},
    "image": {"source"},
    "tool_result": {"tool_use_id"},
    "thinking": {"thinking", "signature"},
    "redacted_thinking": {"data"},
    "tool_use": {"id", "name", "input"},
}
ALLOWED = {
    "text": {"text", "cache_control", "citations"},
    "image": {"source", "cache_control"},
    "tool_result": {"tool_use_id", "content", "is_error", "cache_control"},
    "thinking": {"thinking", "signature"},
    "redacted_thinking": {"data"},
    "tool_use": {"id", "name", "input", "cache_control", "caller"},
}
ID = re.compile(r"[a-zA-Z0-9_-]+")
SIGNATURE = "sig-of-"
KINDS = {400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
         404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 500: "api_error",
         504: "timeout_error", 529: "overloaded_error"}  # fmt: skip
STOPS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"}


def violations(body: Any) -> Iterator[str]:
    """Yield the API's objections to a request; nothing for a valid one."""
    if not isinstance(body, dict):
        yield "Input should be a valid dictionary"
        return
    for key in body.keys() - REQUEST_KEYS:
        yield f"{key}: Extra inputs are not permitted"
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "model: Field required"
    cap = body.get("max_tokens")
    if isinstance(cap, bool) or not isinstance(cap, int) or cap < 1:
        yield "max_tokens: Field required, at least 1"
    yield from _thinking(body, cap)
    yield from _system(body.get("system", []))
    yield from _tools(body)
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "messages: at least one message is required"
        return
    yield from _messages(messages)
    if json.dumps(body).count('"cache_control"') > 4:
        yield "A maximum of 4 blocks with cache_control may be provided."


def _thinking(body: Mapping[str, Any], cap: Any) -> Iterator[str]:
    thinking = body.get("thinking", {"type": "disabled"})
    if thinking.get("type") not in ("enabled", "disabled", "adaptive"):
        yield "thinking: Input tag does not match any of the expected tags"
    if thinking.get("type") != "enabled":
        return
    if not 1024 <= thinking.get("budget_tokens", 0) < (cap or 0):
        yield "`max_tokens` must be greater than `thinking.budget_tokens`, which must be at least 1024"
    last = body["messages"][-1]["content"]
    before = body["messages"][-2]["content"] if len(body["messages"]) > 1 else [{"type": "thinking"}]
    if last[0]["type"] == "tool_result" and before[0]["type"] not in ("thinking", "redacted_thinking"):
        yield f"Expected `thinking` or `redacted_thinking`, but found `{before[0]['type']}`."


def _system(system: Any) -> Iterator[str]:
    for block in system if isinstance(system, list) else [{"type": "text", "text": system}]:
        if block.get("type") != "text" or not block.get("text", "").strip():
            yield "system: text content blocks must be non-empty"
        yield from _mark(block)


def _tools(body: Mapping[str, Any]) -> Iterator[str]:
    tools = body.get("tools", [])
    if "tool_choice" in body and not tools:
        yield "tool_choice may only be specified while providing tools."
    for tool in tools:
        if tool.keys() - {"name", "description", "input_schema", "cache_control"} or not tool.get("name"):
            yield "tools: Extra inputs are not permitted"
        if tool.get("input_schema", {}).get("type") != "object":
            yield "tools.0.custom.input_schema.type: Field required"
    if len({tool.get("name") for tool in tools}) < len(tools):
        yield "tools: Tool names must be unique."


def _messages(messages: list[Any]) -> Iterator[str]:
    if messages[0].get("role") != "user":
        yield 'messages: first message must use the "user" role'
    if messages[-1].get("role") != "user":
        yield "This model does not support assistant message prefill. The conversation must end with a user message."
    used: set[str] = set()
    open_calls: list[str] = []
    for index, message in enumerate(messages):
        where = f"messages.{index}"
        if message.keys() != {"role", "content"} or message["role"] not in BLOCKS:
            yield f"{where}: Input should have a role and a content"
            continue
        if index and messages[index - 1].get("role") == message["role"]:
            yield f'{where}: roles must alternate between "user" and "assistant"'
        content = message["content"]
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        if not content:
            yield f"{where}: all messages must have non-empty content"
        for at, block in enumerate(content):
            for problem in _block(message["role"], block):
                yield f"{where}.content.{at}: {problem}"
        if message["role"] == "assistant":
            open_calls = [str(block["id"]) for block in content if block.get("type") == "tool_use"]
            for call_id in open_calls:
                if call_id in used:
                    yield f"{where}: `tool_use` ids must be unique"
                used.add(call_id)
            continue
        results = [block["tool_use_id"] for block in content if block.get("type") == "tool_result"]
        kinds = [block.get("type") == "tool_result" for block in content]
        if set(results) != set(open_calls) or len(results) != len(open_calls):
            yield f"{where}: `tool_use` ids were found without `tool_result` blocks immediately after, or the reverse"
        if kinds != sorted(kinds, reverse=True):
            yield f"{where}: tool_result blocks must come first in the content"
        open_calls = []


def _block(role: str, block: Any) -> Iterator[str]:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind not in BLOCKS[role]:
        yield f"Input tag {kind!r} found, which is not allowed here"
        return
    keys = block.keys() - {"type"}
    if REQUIRED.get(kind, set()) - keys or (kind in ALLOWED and keys - ALLOWED[kind]):
        yield f"{kind}: fields required or not permitted: {sorted(keys)}"
        return
    yield from _mark(block)
    if kind == "text" and not block["text"].strip():
        yield "text content blocks must contain non-whitespace text"
    if kind == "image":
        yield from _image(block["source"])
    if kind == "tool_use" and (not ID.fullmatch(block["id"]) or not isinstance(block["input"], dict)):
        yield "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'; input: should be a valid dictionary"
    if kind == "thinking" and not str(block["signature"]).startswith(SIGNATURE):
        yield "Invalid `signature` in `thinking` block"
    if kind == "tool_result" and not isinstance(block.get("content", ""), str):
        for inner in block["content"]:
            if inner.get("type") not in ("text", "image"):
                yield "tool_result content: text or image expected"
            else:
                yield from _block("user", inner)


def _mark(block: Mapping[str, Any]) -> Iterator[str]:
    mark = block.get("cache_control")
    if mark is not None and mark not in ({"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}):
        yield "cache_control: Input should be ephemeral, with ttl 5m or 1h"


def _image(source: Mapping[str, Any]) -> Iterator[str]:
    if source.get("type") == "url":
        if source.keys() != {"type", "url"} or not str(source["url"]).startswith("https://"):
            yield "Only HTTPS URLs are supported."
    elif source.keys() != {"type", "media_type", "data"} or source["type"] != "base64":
        yield "image.source: fields required: type, media_type, data"
    else:
        yield from picture_problems(f"data:{source['media_type']};base64,{source['data']}")


class MessagesWire:
    """Answers and refusals of the Messages API."""

    path = "/v1/messages"

    def presented(self, headers: Mapping[str, str]) -> str | None:
        # The documentation has the first; the vendor's newest clients send the second.
        return headers.get("x-api-key") or headers.get("Authorization", "").removeprefix("Bearer ") or None

    def violations(self, body: Any) -> Iterator[str]:
        return violations(body)

    def cap(self, body: Mapping[str, Any]) -> int | None:
        return body["max_tokens"]  # type: ignore[no-any-return]

    def plain(self, body: Mapping[str, Any]) -> dict[str, Any]:
        system = body.get("system", "")
        text = system if isinstance(system, str) else "\n".join(block["text"] for block in system)
        messages = [{"role": "system", "content": text}] if text else []
        for message in body["messages"]:
            messages += _plain(message)
        made = {key: body[key] for key in ("model", "max_tokens", "stream") if key in body} | {"messages": messages}
        if body.get("tools"):
            made["tools"] = [
                {"type": "function", "function": {"name": tool["name"], "parameters": tool["input_schema"]}}
                for tool in body["tools"]
            ]
        if body.get("tool_choice", {}).get("type") == "none":
            made["tool_choice"] = "none"
        return made

    def frames(
        self, body: Mapping[str, Any], reply: Reply, prompt: int, count: Callable[[str], int], number: int, cached: int
    ) -> MessagesFrames:
        return MessagesFrames(body, reply, prompt, count, number, cached)

    def too_long(self, prompt: int, cap: int | None, window: int) -> str | None:
        if prompt > window:
            return f"prompt is too long: {prompt} tokens > {window} maximum"
        if prompt + (cap or 0) > window:
            return (
                f"input length and `max_tokens` exceed context limit: {prompt} + {cap} > {window}, decrease input "
                "length or `max_tokens` and try again"
            )
        return None

    def error(self, status: int, error: Mapping[str, Any]) -> str:
        return json.dumps(_error(error, KINDS.get(status, "api_error")))

    def error_inside(self, error: Mapping[str, Any]) -> str:
        return named("error", _error(error, str(error.get("type") or "api_error")))

    def models(self, names: Sequence[str], window: int) -> dict[str, Any]:
        entries = [
            {"id": name, "type": "model", "display_name": name, "created_at": "2026-01-01T00:00:00Z",
             "lifecycle": "active", "max_input_tokens": window, "max_tokens": window // 2}
            for name in names
        ]  # fmt: skip
        return {"data": entries, "has_more": False, "first_id": names[0], "last_id": names[-1]}


def _error(error: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": error.get("message", "")}, "request_id": "req_test"}


def _plain(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    content = message["content"]
    if isinstance(content, str):
        yield {"role": message["role"], "content": content}
        return
    for block in content:
        if block["type"] == "tool_result":
            inner = block.get("content", "")
            text = inner if isinstance(inner, str) else "\n".join(part.get("text", "[image]") for part in inner)
            yield {"role": "tool", "tool_call_id": block["tool_use_id"], "content": text}
    text = "\n".join(block["text"] for block in content if block["type"] == "text")
    calls = [
        {"id": block["id"], "type": "function",
         "function": {"name": block["name"], "arguments": json.dumps(block["input"])}}
        for block in content if block["type"] == "tool_use"
    ]  # fmt: skip
    if calls:
        yield {"role": "assistant", "content": text or None, "tool_calls": calls}
    elif text:
        yield {"role": message["role"], "content": text}


class MessagesFrames:
    """A reply as the events of a stream, or as one message."""

    def __init__(
        self, body: Mapping[str, Any], reply: Reply, prompt: int, count: Callable[[str], int], number: int, cached: int
    ) -> None:
        self._reply = reply
        self._id, self._model = f"msg_{number}", body["model"]
        self._calls = [
            {"type": "tool_use", "id": f"toolu_{number}_{at}", "name": name, "input": dict(arguments)}
            for at, (name, arguments) in enumerate(reply.tool_calls)
        ]
        output = count(reply.text) + count(reply.reasoning) + sum(count(str(call)) for call in self._calls)
        self._usage: dict[str, Any] = {
            "input_tokens": prompt - cached,
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": 0,
            "output_tokens": output,
        }
        if reply.usage is not None:
            self._usage = dict(reply.usage)
        self._stop = STOPS.get(reply.finish or ("tool_calls" if self._calls else "stop"), reply.finish)

    def _blocks(self) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = []
        if self._reply.reasoning:
            thoughts = self._reply.reasoning
            blocks.append({"type": "thinking", "thinking": thoughts, "signature": f"{SIGNATURE}{len(thoughts)}"})
        blocks += map(dict, self._reply.blocks)
        if self._reply.text:
            blocks.append({"type": "text", "text": self._reply.text})
        return blocks + self._calls

    def _message(self, content: list[dict[str, Any]], stop: str | None) -> dict[str, Any]:
        return {"id": self._id, "type": "message", "role": "assistant", "model": self._model, "content": content,
                "stop_reason": stop, "stop_sequence": None, "usage": self._usage}  # fmt: skip

    def whole(self) -> str:
        """The answer of a call without `stream`."""
        return json.dumps(self._message(self._blocks(), self._stop))

    def __iter__(self) -> Iterator[str]:
        begun = {**self._message([], None)}
        if self._usage:
            begun["usage"] = {**self._usage, "output_tokens": 1}
        yield named("message_start", {"message": begun})
        yield named("ping", {})
        for at, block in enumerate(self._blocks()):
            yield from _streamed(at, block)
        delta = {"stop_reason": self._stop, "stop_sequence": None}
        usage = {"output_tokens": self._usage["output_tokens"]} if "output_tokens" in self._usage else {}
        yield named("message_delta", {"delta": delta, "usage": usage})
        yield named("message_stop", {})


def _streamed(at: int, block: Mapping[str, Any]) -> Iterator[str]:
    kind, empty = block["type"], dict(block)
    deltas: list[dict[str, Any]] = []
    if kind == "text":
        empty["text"] = ""
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
    elif kind == "thinking":
        empty |= {"thinking": "", "signature": ""}
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    elif kind in ("tool_use", "server_tool_use"):
        empty["input"] = {}
        text = json.dumps(block["input"]) if block["input"] else ""
        half = len(text) // 2
        deltas = [{"type": "input_json_delta", "partial_json": part} for part in ("", text[:half], text[half:])]
    yield named("content_block_start", {"index": at, "content_block": empty})
    for delta in deltas:
        yield named("content_block_delta", {"index": at, "delta": delta})
    yield named("content_block_stop", {"index": at})
