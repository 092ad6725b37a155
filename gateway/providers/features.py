"""The parts of a request that a model may refuse, and requests without them.

Few servers take everything that their API allows: small local models know no tools, some chat templates no system
message, some accounts may not stream. A refusal says so in words, which `refused_feature` reads; `without` gives the
request without such parts. `adapting` remembers what a model refuses.

Pure. Wordings: Ollama, vLLM, llama.cpp's chat templates, OpenAI, Azure, Gemini, Bedrock, OpenRouter, SiliconFlow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from gateway.domain.message import Message, text_of
from gateway.providers.base import Feature, ModelRequest, ToolChoice
from gateway.runtime.patterns import late, table
from gateway.runtime.structs import replace

# The telling ones come first: "tool use in streaming mode" is about streaming.
_FEATURES: Final[tuple[Feature, ...]] = (
    "tool_choice", "parallel_calls", "stream", "schema_extras", "cache_marks", "thinking", "temperature",
    "reasoning_effort", "system_role", "tools",
)  # fmt: skip
_TABLE: Final = table(__file__)
_WORDINGS: Final = {feature: late(_TABLE[feature]) for feature in _FEATURES}
# Keys in the schema of a tool's arguments that all servers take.
_PLAIN_KEYS: Final = frozenset({"type", "description", "properties", "items", "required", "enum", "anyOf"})


def refused_feature(lowered: str) -> Feature | None:
    """The feature of a request that a refusal is about; None if it is about something else. `lowered`: its body."""
    return next((feature for feature, wording in _WORDINGS.items() if wording.search(lowered)), None)


_ONE_OF: Final = late(r"(?:supported values are|must be one of|input should be|expected one of)\W{1,4}([^.\]}]{1,200})")
_VALUE: Final = late(r"['\"`]([a-z]{2,12})['\"`]")


def allowed_values(feature: Feature, lowered: str) -> tuple[str, ...]:
    """The values of a feature that a refusal lists; none if it lists none."""
    if feature == "thinking":
        only_adaptive = re.search(r"use \W{0,3}thinking\.type\.adaptive|only supports adaptive", lowered)
        return ("adaptive",) if only_adaptive else ()
    listed = _ONE_OF.search(lowered) if feature == "reasoning_effort" else None
    return tuple(_VALUE.findall(listed[1])) if listed else ()


_EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def nearest_effort(wanted: str, allowed: Sequence[str]) -> str | None:
    """The allowed effort nearest to the wanted one, rather more than less; None if nobody can tell."""
    known = [each for each in _EFFORTS if each in allowed and each != wanted]
    if wanted not in _EFFORTS or not known:
        return None
    at = _EFFORTS.index(wanted)
    return min(known, key=lambda each: (abs(_EFFORTS.index(each) - at), -_EFFORTS.index(each)))


def without(request: ModelRequest, omitted: frozenset[Feature]) -> ModelRequest:
    """The request without these features. Those that only an API's own codec can leave out are in `omit`."""
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
        # As words of the user, for a chat template that has no place for them.
        messages = merged({**each, "role": "user"} if each["role"] == "system" else each for each in messages)
    if "cache_marks" in omitted:
        messages = [_unmarked(message) for message in messages]
    choice: ToolChoice = "auto" if "tool_choice" in omitted else request.tool_choice
    return replace(request, messages=messages, tools=tools, tool_choice=choice, omit=omitted)


def _unmarked(message: Message) -> Message:
    """A message without marks for a cache."""
    plain: Any = {key: value for key, value in message.items() if key != "cache_control"}
    if isinstance(content := plain.get("content"), list):
        plain["content"] = [
            {key: value for key, value in part.items() if key != "cache_control"} if isinstance(part, Mapping) else part
            for part in content
        ]
    return cast(Message, plain)


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


def merged(messages: Iterator[Message]) -> list[Message]:
    """Messages of one speaker in a row as one, because such templates want the speakers to take turns."""
    whole: list[Message] = []
    for message in messages:
        last = whole[-1] if whole else None
        if last is not None and last["role"] == message["role"] != "tool" and not last.get("tool_calls"):
            whole[-1] = {**last, **message, "content": joined(last.get("content"), message.get("content"))}
        else:
            whole.append(message)
    return whole


def joined(one: Any, other: Any) -> Any:
    """The contents of two messages as one."""
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
