"""OpenAI's Responses API, for the emulator: https://platform.openai.com/docs/api-reference/responses."""

from __future__ import annotations

import itertools
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
        "model input instructions tools tool_choice parallel_tool_calls max_output_tokens stream store include "
        "reasoning temperature top_p metadata text truncation user prompt_cache_key safety_identifier service_tier",
    )
)
ITEM_KEYS = {
    "message": {"type", "role", "content", "id", "status", "phase"},
    "function_call": {"type", "call_id", "name", "arguments", "id", "status"},
    "function_call_output": {"type", "call_id", "output", "id", "status"},
    "reasoning": {"type", "id", "summary", "encrypted_content", "content", "status"},
}
PARTS = {
    "user": {"input_text", "input_image", "input_file", "input_audio"},
    "developer": {"input_text"},
    "system": {"input_text"},
    "assistant": {"output_text", "refusal"},
}
SECRET = "gAAAA"  # how encrypted thoughts begin


def violations(body: Any) -> Iterator[str]:
    """Yield the API's objections to a request; nothing for a valid one."""
    if not isinstance(body, dict):
        yield "The body must be a JSON object."
        return
    for key in body.keys() - REQUEST_KEYS:
        yield f"Unknown parameter: '{key}'."
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "Missing required parameter: 'model'."
    cap = body.get("max_output_tokens", 16)
    if isinstance(cap, bool) or not isinstance(cap, int) or cap < 16:
        yield "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16."
    yield from _tools(body)
    items = body.get("input")
    if not isinstance(items, list) or not items:
        yield "Missing required parameter: 'input'."
        return
    for at, item in enumerate(items):
        for problem in _item(item):
            yield f"input[{at}]: {problem}"
    yield from _order(items)


def _tools(body: Mapping[str, Any]) -> Iterator[str]:
    tools = body.get("tools", [])
    if "tool_choice" in body and not tools:
        yield "Tool choice is only allowed when 'tools' are specified."
    for tool in tools:
        if tool.get("type") != "function" or tool.keys() - {"type", "name", "description", "parameters", "strict"}:
            yield "Invalid 'tools': expected a function."
        elif tool.get("strict") is not False:
            yield "Invalid schema for a strict function: every property must be required."
        elif tool.get("parameters", {}).get("type") != "object":
            yield "Invalid schema for function: schema must be a JSON Schema of type 'object'."


def _item(item: Any) -> Iterator[str]:
    kind = item.get("type", "message") if isinstance(item, dict) else None
    if kind not in ITEM_KEYS:
        if not str(kind).endswith("_call"):
            yield f"Invalid value: {kind!r}."
        return
    if item.keys() - ITEM_KEYS[kind]:
        yield f"Unknown parameter in an item of type {kind!r}."
    if kind == "message":
        yield from _message(item)
    elif kind == "reasoning" and not item.get("encrypted_content"):
        yield f"Item with id '{item.get('id')}' not found. Items are not persisted when `store` is set to false."
    elif kind == "reasoning" and not item["encrypted_content"].startswith(SECRET):
        yield f"The encrypted content for item {item.get('id')} could not be verified."
    elif kind in ("function_call", "function_call_output") and not 1 <= len(str(item.get("call_id", ""))) <= 64:
        yield "Invalid 'call_id': expected a string of 1 to 64 characters."
    if kind == "function_call":
        try:
            assert isinstance(json.loads(item["arguments"]), dict)
        except (AssertionError, ValueError, KeyError):
            yield "arguments: expected the text of a JSON object."
    if kind == "function_call_output" and not isinstance(item.get("output"), str):
        for part in item["output"]:
            yield from _part("user", part)


def _message(item: Mapping[str, Any]) -> Iterator[str]:
    role, content = item.get("role"), item.get("content")
    if role not in PARTS:
        yield f"Invalid value: {role!r}."
    elif isinstance(content, str):
        if not content.strip():
            yield "content is empty."
    elif not isinstance(content, list) or not content:
        yield "expected a text or a list of parts."
    else:
        for part in content:
            yield from _part(role, part)


def _part(role: str, part: Mapping[str, Any]) -> Iterator[str]:
    kind = part.get("type")
    if kind not in PARTS[role]:
        yield f"Invalid value: {kind!r}. Supported values are: {sorted(PARTS[role])}."
    elif kind == "input_text" and (part.keys() != {"type", "text"} or not part["text"].strip()):
        yield "an input_text needs a text."
    elif kind == "input_image":
        if part.get("detail") not in ("auto", "low", "high", "original"):
            yield "Missing required parameter: 'detail'."
        if str(part.get("image_url")).startswith("data:"):
            yield from picture_problems(part["image_url"])


def _order(items: list[Any]) -> Iterator[str]:
    calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
    outputs = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    for call_id in set(calls) - set(outputs):
        yield f"No tool output found for function call {call_id}."
    for call_id in set(outputs) - set(calls):
        yield f"No tool call found for function call output with call_id {call_id}."
    if len(set(calls)) < len(calls):
        yield "Duplicate call_id."
    for item, after in itertools.pairwise([*items, {}]):
        if item.get("type") == "reasoning" and after.get("role") not in (None, "assistant"):
            yield f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item."


class ResponsesWire:
    """Answers and refusals of the Responses API."""

    path = "/v1/responses"

    def presented(self, headers: Mapping[str, str]) -> str | None:
        return headers.get("Authorization", "").removeprefix("Bearer ") or None

    def violations(self, body: Any) -> Iterator[str]:
        return violations(body)

    def cap(self, body: Mapping[str, Any]) -> int | None:
        return body.get("max_output_tokens")

    def plain(self, body: Mapping[str, Any]) -> dict[str, Any]:
        messages = [{"role": "system", "content": body["instructions"]}] if body.get("instructions") else []
        for item in body["input"]:
            messages += _plain(item)
        made: dict[str, Any] = {"model": body["model"], "messages": messages}
        if body.get("tools"):
            made["tools"] = [
                {"type": "function", "function": {"name": tool["name"], "parameters": tool["parameters"]}}
                for tool in body["tools"]
            ]
        for theirs, ours in (("tool_choice", "tool_choice"), ("max_output_tokens", "max_tokens"), ("stream", "stream")):
            if theirs in body:
                made[ours] = body[theirs]
        return made

    def frames(
        self, body: Mapping[str, Any], reply: Reply, prompt: int, count: Callable[[str], int], number: int, cached: int
    ) -> ResponsesFrames:
        return ResponsesFrames(body, reply, prompt, count, number, cached)

    def too_long(self, prompt: int, cap: int | None, window: int) -> str | None:
        if prompt + (cap or 0) <= window:
            return None
        return (
            f"Your input exceeds the context window of this model (maximum context length is {window} tokens). Please "
            "adjust your input and try again."
        )

    def error(self, status: int, error: Mapping[str, Any]) -> str:
        return json.dumps({"error": dict(error)})

    def error_inside(self, error: Mapping[str, Any]) -> str:
        flat = {"code": error.get("code"), "message": error.get("message"), "param": None, "sequence_number": 9}
        return named("error", flat)

    def models(self, names: Sequence[str], window: int) -> dict[str, Any]:
        entries = [{"id": name, "object": "model", "created": 1_700_000_000, "owned_by": "emulator"} for name in names]
        return {"object": "list", "data": entries}


def _plain(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    kind = item.get("type", "message")
    if kind == "function_call_output":
        output = item["output"]
        text = output if isinstance(output, str) else "\n".join(part.get("text", "[image]") for part in output)
        yield {"role": "tool", "tool_call_id": item["call_id"], "content": text}
    elif kind == "function_call":
        function = {"name": item["name"], "arguments": item["arguments"]}
        call = {"id": item["call_id"], "type": "function", "function": function}
        yield {"role": "assistant", "content": None, "tool_calls": [call]}
    elif kind == "message":
        content = item["content"]
        text = content if isinstance(content, str) else "\n".join(part.get("text", "[image]") for part in content)
        yield {"role": item["role"], "content": text}


class ResponsesFrames:
    """A reply as the events of a stream, or as one response."""

    def __init__(
        self, body: Mapping[str, Any], reply: Reply, prompt: int, count: Callable[[str], int], number: int, cached: int
    ) -> None:
        self._body, self._reply, self._number = body, reply, number
        output = count(reply.text) + count(reply.reasoning) + sum(count(str(call)) for call in reply.tool_calls)
        self._usage: Mapping[str, Any] | None = {
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
            "output_tokens": output,
            "output_tokens_details": {"reasoning_tokens": count(reply.reasoning)},
            "total_tokens": prompt + output,
        }
        if reply.usage is not None:
            self._usage = reply.usage or None
        self._sequence = itertools.count()

    def _items(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        if self._reply.reasoning:
            secret = {"encrypted_content": f"{SECRET}{len(self._reply.reasoning)}"}
            wanted = "reasoning.encrypted_content" in self._body.get("include", ())
            summary = [{"type": "summary_text", "text": self._reply.reasoning}]
            thoughts = {"type": "reasoning", "id": f"rs_{self._number}", "summary": summary}
            items.append(thoughts | (secret if wanted else {}))
        items += map(dict, self._reply.blocks)
        if self._reply.text:
            part = {"type": "output_text", "text": self._reply.text, "annotations": [], "logprobs": []}
            items.append({"type": "message", "id": f"msg_{self._number}", "role": "assistant", "status": "completed",
                          "content": [part]})  # fmt: skip
        for at, (name, arguments) in enumerate(self._reply.tool_calls):
            items.append({"type": "function_call", "id": f"fc_{self._number}_{at}", "status": "completed",
                          "call_id": f"call_{self._number}_{at}", "name": name,
                          "arguments": json.dumps(arguments)})  # fmt: skip
        return items

    def _response(self, status: str, output: list[dict[str, Any]], reason: str | None = None) -> dict[str, Any]:
        done = status not in ("in_progress", "queued")
        return {
            "id": f"resp_{self._number}",
            "object": "response",
            "created_at": 1_700_000_000,
            "status": status,
            "error": None,
            "incomplete_details": {"reason": reason} if reason else None,
            "instructions": self._body.get("instructions"),
            "metadata": {},
            "model": self._body["model"],
            "output": output,
            "parallel_tool_calls": True,
            "temperature": 1.0,
            "tool_choice": self._body.get("tool_choice", "auto"),
            "tools": self._body.get("tools", []),
            "top_p": 1.0,
            "usage": self._usage if done else None,
        }

    def _whole(self) -> dict[str, Any]:
        reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(self._reply.finish or "")
        return self._response("incomplete" if reason else "completed", self._items(), reason)

    def whole(self) -> str:
        """The answer of a call without `stream`."""
        return json.dumps(self._whole())

    def __iter__(self) -> Iterator[str]:
        begun = self._response("in_progress", [])
        yield self._event("response.created", response=begun)
        yield self._event("response.in_progress", response=begun)
        for at, item in enumerate(self._items()):
            yield from self._streamed(at, item)
        whole = self._whole()
        yield self._event(f"response.{whole['status']}", response=whole)

    def _streamed(self, at: int, item: dict[str, Any]) -> Iterator[str]:
        begun = dict(item)
        where = {"item_id": item.get("id"), "output_index": at}
        deltas: list[tuple[str, dict[str, Any]]] = []
        if item["type"] == "message":
            begun |= {"content": [], "status": "in_progress"}
            part, inside = item["content"][0], {**where, "content_index": 0}
            deltas.append(("response.content_part.added", {**inside, "part": {**part, "text": ""}}))
            deltas += (
                ("response.output_text.delta", {**inside, "delta": piece, "logprobs": []})
                for piece in pieces(part["text"])
            )
            deltas.append(("response.output_text.done", {**inside, "text": part["text"], "logprobs": []}))
            deltas.append(("response.content_part.done", {**inside, "part": part}))
        elif item["type"] == "function_call":
            begun |= {"arguments": "", "status": "in_progress"}
            text = item["arguments"]
            halves = (text[: len(text) // 2], text[len(text) // 2 :])
            deltas += (("response.function_call_arguments.delta", {**where, "delta": half}) for half in halves)
            done = {**where, "arguments": text, "name": item["name"]}
            deltas.append(("response.function_call_arguments.done", done))
        elif item["type"] == "reasoning":
            begun |= {"summary": []}
            begun.pop("encrypted_content", None)
            inside = {**where, "summary_index": 0}
            part = {"type": "summary_text", "text": ""}
            deltas.append(("response.reasoning_summary_part.added", {**inside, "part": part}))
            deltas += (
                ("response.reasoning_summary_text.delta", {**inside, "delta": piece})
                for piece in pieces(item["summary"][0]["text"])
            )
        yield self._event("response.output_item.added", output_index=at, item=begun)
        for kind, data in deltas:
            yield self._event(kind, **data)
        yield self._event("response.output_item.done", output_index=at, item=item)

    def _event(self, kind: str, **data: Any) -> str:
        return named(kind, {"sequence_number": next(self._sequence), **data})
