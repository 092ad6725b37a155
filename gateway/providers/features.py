"""The parts of a request that a model may refuse, and requests without them.

Few servers take everything that their API allows: small local models know no tools, some chat templates no system
message, some accounts may not stream. A refusal says so in words, which `refused_feature` reads; `without` gives the
request without such parts. `adapting` remembers what a model refuses.

Pure. Wordings: Ollama, vLLM, llama.cpp's chat templates, OpenAI, Azure, Gemini, Bedrock, OpenRouter, SiliconFlow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from gateway.domain.message import Message, text_of
from gateway.providers.base import Feature, ModelRequest

_NOT: Final = (
    r"(?:(?:do|does|is|are|was)(?: ?n['’]?t| not)(?: currently| yet)?(?: be)? (?:support|enabl|allow|permit|available)"
    r"|not (?:supported|enabled|allowed|permitted|available)|unsupported|no support|cannot be used|不支持)"
)
# The telling ones come first: "tool use in streaming mode" is about streaming.
_WORDINGS: Final[Mapping[Feature, re.Pattern[str]]] = {
    "parallel_calls": re.compile(r"only supports single tool-?calls at once|parallel tool calls? (?:is|are) not supp"),
    "stream": re.compile(
        rf"verified to stream|{_NOT}[^.]{{0,40}}(?:\bstream\b|streaming)|(?:\bstream\b|streaming)[^.]{{0,30}}{_NOT}"
    ),
    "schema_extras": re.compile(
        rf"unknown name \\*\"[$\w-]+\\*\" at '[\w.]*tools\[|{_NOT}[^.]{{0,60}}additionalproperties"
        rf"|additionalproperties[^.]{{0,60}}{_NOT}"
    ),
    "temperature": re.compile(
        rf"{_NOT}[^.]{{0,40}}\btemperature\b|\btemperature\b[^.]{{0,30}}(?:{_NOT}|deprecated)"
        r"|unrecognized[^.]{0,40}\btemperature\b"
    ),
    "reasoning_effort": re.compile(
        rf"{_NOT}[^.]{{0,40}}(?:reasoning[_. ]effort|\bthinking\b)|reasoning[_. ]effort[^.]{{0,30}}{_NOT}"
        r"|unrecognized[^.]{0,40}reasoning[_.]effort"
    ),
    "system_role": re.compile(
        rf"system (?:role|message|prompt|instruction)s?[^.]{{0,20}}{_NOT}|{_NOT}[^.]{{0,30}}\bsystem\b"
        rf"|developer instruction[^.]{{0,20}}{_NOT}|only user,? (?:and )?assistant[^.]{{0,20}}roles are supported"
        r"|roles must alternate user/assistant"
    ),
    "tools": re.compile(
        rf"(?:\btools?\b|function)(?: use| call(?:s|ing)?| choice| param)?[^.]{{0,20}}{_NOT}"
        rf"|{_NOT}[^.]{{0,30}}(?:\btools?\b|function[ _-]call)"
        r"|requires --enable-auto-tool-choice|tools param requires --jinja|endpoints found that support tool use"
    ),
}
# Keys in the schema of a tool's arguments that all servers take.
_PLAIN_KEYS: Final = frozenset({"type", "description", "properties", "items", "required", "enum", "anyOf"})


def refused_feature(lowered: str) -> Feature | None:
    """The feature of a request that a refusal is about; None if it is about something else. `lowered`: its body."""
    return next((feature for feature, wording in _WORDINGS.items() if wording.search(lowered)), None)


def without(request: ModelRequest, omitted: frozenset[Feature]) -> ModelRequest:
    """The request without these features; those of them that only an API's own codec can leave out stand in `omit`."""
    if not omitted:
        return request
    messages, tools = request.messages, request.tools
    if "tools" in omitted:
        messages, tools = merged(_calls_in_words(messages)), ()
    elif "parallel_calls" in omitted:
        messages = _one_call_each(messages)
    if "schema_extras" in omitted:
        tools = [_plain_tool(tool) for tool in tools]
    if "system_role" in omitted:
        messages = merged(_system_in_words(messages))
    return replace(request, messages=messages, tools=tools, omit=omitted)


def _calls_in_words(messages: Sequence[Message]) -> Iterator[Message]:
    """Tool calls and their results as text, for a model that knows no tools."""
    names: dict[str, str] = {}
    for message in messages:
        if message["role"] == "tool":
            name = names.get(message.get("tool_call_id", ""), "a tool")
            yield {"role": "user", "content": f"[Result of {name}]\n{text_of(message)}"}
        elif calls := message.get("tool_calls"):
            names |= {call["id"]: call["function"]["name"] for call in calls}
            called = [f"[Called {call['function']['name']}: {call['function']['arguments']}]" for call in calls]
            said = text_of(message)
            yield {"role": "assistant", "content": "\n".join([said, *called] if said else called)}
        else:
            yield message


def _system_in_words(messages: Sequence[Message]) -> Iterator[Message]:
    """System messages as words of the user, for a chat template that has no place for them."""
    for message in messages:
        yield {**message, "role": "user"} if message["role"] == "system" else message


def merged(messages: Iterator[Message]) -> list[Message]:
    """Messages of one speaker in a row as one, because such templates want the speakers to take turns."""
    whole: list[Message] = []
    for message in messages:
        last = whole[-1] if whole else None
        if last is not None and last["role"] == message["role"] != "tool" and not last.get("tool_calls"):
            whole[-1] = {**last, **message, "content": _joined(last.get("content"), message.get("content"))}
        else:
            whole.append(message)
    return whole


def _joined(one: Any, other: Any) -> Any:
    if isinstance(one, list) or isinstance(other, list):
        return [*_parts(one), *_parts(other)]
    return "\n\n".join(text for text in (one, other) if text)


def _parts(content: Any) -> list[Any]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []


def _one_call_each(messages: Sequence[Message]) -> list[Message]:
    """Every tool call as a message of its own, followed by its result."""
    results = {message.get("tool_call_id", ""): message for message in messages if message["role"] == "tool"}
    split: list[Message] = []
    for message in messages:
        calls = message.get("tool_calls") or []
        if message["role"] == "tool" and message.get("tool_call_id") in results:
            continue
        if not calls:
            split.append(message)
        for number, call in enumerate(calls):
            said = None if number else message.get("content")
            split.append({**message, "content": said, "tool_calls": [call]})
            if call["id"] in results:
                split.append(results[call["id"]])
    return split


def _plain_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    function = tool["function"]
    return {**tool, "function": {**function, "parameters": plain_schema(function.get("parameters") or {})}}


def plain_schema(schema: Any) -> Any:
    """A JSON schema with the keys only that every server takes; names of arguments are no such keys."""
    if not isinstance(schema, Mapping):
        return schema
    plain: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties" and isinstance(value, Mapping):
            plain[key] = {name: plain_schema(inner) for name, inner in value.items()}
        elif key == "anyOf" and isinstance(value, list):
            plain[key] = [plain_schema(inner) for inner in value]
        elif key in _PLAIN_KEYS:
            plain[key] = plain_schema(value) if key == "items" else value
    return plain
