"""The refusals of the real Chat Completions API, as one pure function over a request body.

Stricter than the real one in three places, because some of its imitators are: the first message
after the system's is the user's, no two of the user's follow each other, and no message is empty.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

REQUEST_KEYS = frozenset(
    re.findall(
        r"\w+",
        "model messages stream stream_options tools tool_choice parallel_tool_calls max_tokens max_completion_tokens "
        "temperature top_p n stop seed user metadata response_format frequency_penalty presence_penalty logprobs "
        "top_logprobs logit_bias reasoning_effort service_tier store prediction modalities audio verbosity "
        "prompt_cache_key safety_identifier",
    )
)
MESSAGE_KEYS = {
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "tool_calls", "refusal", "audio", "function_call"},
    "tool": {"role", "content", "tool_call_id"},
}
PART_TYPES = {
    "system": {"text"},
    "developer": {"text"},
    "user": {"text", "image_url", "input_audio", "file"},
    "assistant": {"text", "refusal"},
    "tool": {"text"},
}
FUNCTION_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
PICTURE = re.compile(r"data:image/(?P<type>png|jpeg|webp|gif);base64,(?P<data>[A-Za-z0-9+/]+={0,2})")
PICTURE_STARTS = {"png": b"\x89PNG", "jpeg": b"\xff\xd8\xff", "webp": b"RIFF", "gif": b"GIF8"}
PERSON_NAME = re.compile(r"[^\s<|\\/>]{1,64}")


def violations(body: Any) -> Iterator[str]:
    """Everything wrong with a request body, one sentence each; nothing for a valid one."""
    if not isinstance(body, dict):
        yield "The body must be a JSON object."
        return
    for key in body.keys() - REQUEST_KEYS:
        yield f"Unrecognized request argument supplied: {key}"
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "you must provide a model parameter"
    yield from _options(body)
    yield from _tools(body)
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "Invalid 'messages': empty array. Expected an array with minimum length 1."
        return
    claude = "claude" in str(body.get("model")).lower()
    for index, message in enumerate(messages):
        for problem in _message(message, claude=claude):
            yield f"Invalid 'messages[{index}]': {problem}"
    if all(isinstance(message, dict) for message in messages):
        yield from _order(messages)


def _options(body: Mapping[str, Any]) -> Iterator[str]:
    if not isinstance(body.get("stream", False), bool):
        yield "Invalid type for 'stream': expected a boolean."
    if "stream_options" in body and body.get("stream") is not True:
        yield "The 'stream_options' parameter is only allowed when 'stream' is enabled."
    for name in ("max_tokens", "max_completion_tokens"):
        cap = body.get(name)
        if cap is not None and (isinstance(cap, bool) or not isinstance(cap, int) or cap < 1):
            yield f"Invalid '{name}': expected an integer of at least 1."
    if body.get("max_tokens") is not None and body.get("max_completion_tokens") is not None:
        yield "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."


def _tools(body: Mapping[str, Any]) -> Iterator[str]:
    if "tools" not in body:
        if "tool_choice" in body:
            yield "'tool_choice' is only allowed when 'tools' are specified."
        return
    tools = body["tools"]
    if not isinstance(tools, list) or not 1 <= len(tools) <= 128:
        yield "Invalid 'tools': expected an array of 1 to 128 tools."
        return
    names = []
    for index, tool in enumerate(tools):
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict) or tool.get("type") != "function" or tool.keys() - {"type", "function"}:
            yield f"Invalid 'tools[{index}]': expected {{type: function, function: …}}."
            continue
        names.append(function.get("name"))
        if not isinstance(function.get("name"), str) or not FUNCTION_NAME.fullmatch(function["name"]):
            yield f"Invalid 'tools[{index}].function.name': it does not match the pattern."
        if function.keys() - {"name", "description", "parameters", "strict"}:
            yield f"Invalid 'tools[{index}].function': unknown keys."
        if not isinstance(function.get("description", ""), str):
            yield f"Invalid 'tools[{index}].function.description': expected a string."
        parameters = function.get("parameters", {"type": "object"})
        if not isinstance(parameters, dict) or parameters.get("type") != "object":
            yield f"Invalid schema for function '{function.get('name')}': schema must have type 'object'."
    if len(set(map(str, names))) < len(names):
        yield "Invalid 'tools': function names must be unique."


def _message(message: Any, *, claude: bool) -> Iterator[str]:
    if not isinstance(message, dict):
        yield "expected an object."
        return
    role = message.get("role")
    if role not in MESSAGE_KEYS:
        yield f"unknown role {role!r}."
        return
    extra = message.keys() - MESSAGE_KEYS[role] - ({"cache_control"} if claude else set())
    if extra:
        yield f"Additional properties are not allowed ({', '.join(sorted(extra))})."
    name = message.get("name")
    if name is not None and (not isinstance(name, str) or not PERSON_NAME.fullmatch(name)):
        yield "'name' does not match the pattern."
    yield from _content(role, message, claude=claude)
    if role == "tool" and not _is_id(message.get("tool_call_id")):
        yield "missing or overlong tool_call_id."
    if "tool_calls" in message:
        yield from _calls(message["tool_calls"])


def _content(role: str, message: Mapping[str, Any], *, claude: bool) -> Iterator[str]:
    content = message.get("content")
    if content is None:
        if role != "assistant" or not message.get("tool_calls"):
            yield "content may only be null beside tool calls."
    elif isinstance(content, str):
        if not content and role != "tool" and not message.get("tool_calls"):
            yield "content is empty."
        if _broken(content):
            yield "content is not valid Unicode."
    elif isinstance(content, list) and content:
        for part in content:
            yield from _part(role, part, claude=claude)
    else:
        yield "expected a string or a non-empty array of content parts."


def _part(role: str, part: Any, *, claude: bool) -> Iterator[str]:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind not in PART_TYPES[role]:
        yield f"a content part of type {kind!r} is not allowed here."
        return
    if part.keys() - {"type", kind} - ({"cache_control"} if claude else set()):
        yield f"unknown keys in a content part of type {kind!r}."
    if kind == "text" and (not isinstance(part.get("text"), str) or not part["text"] or _broken(part["text"])):
        yield "a text part needs text."
    if kind == "image_url":
        url = part["image_url"].get("url") if isinstance(part.get("image_url"), dict) else None
        if not isinstance(url, str) or not url.startswith(("https://", "http://", "data:image/")):
            yield "an image_url part needs a url."
        elif url.startswith("data:"):
            yield from picture_problems(url)
        if isinstance(part.get("image_url"), dict) and part["image_url"].keys() - {"url", "detail"}:
            yield "unknown keys in an image_url."
    if kind == "input_audio":
        yield from _sound(part.get("input_audio"))


def picture_problems(url: str) -> Iterator[str]:
    """Yield the faults of a picture in a data URL. https://platform.openai.com/docs/guides/images-vision: PNG, JPEG,
    WEBP and GIF, in base64."""
    match = PICTURE.fullmatch(url)
    content = _decoded(match["data"]) if match else None
    if match is None or not content:
        yield "Invalid image data URL: expected data:image/{png,jpeg,webp,gif};base64 and the picture."
    elif not content.startswith(PICTURE_STARTS[match["type"]]):
        yield f"You uploaded an unsupported image: it is not {match['type']}."


def _sound(sound: Any) -> Iterator[str]:
    """https://platform.openai.com/docs/api-reference/chat/create: `data` in base64, `format` wav or mp3."""
    if not isinstance(sound, dict) or sound.keys() != {"data", "format"} or sound["format"] not in ("wav", "mp3"):
        yield "an input_audio part needs data, and a format that is wav or mp3."
    elif not isinstance(sound["data"], str) or not _decoded(sound["data"]):
        yield "an input_audio part's data is not base64."


def _decoded(data: str) -> bytes | None:
    try:
        return base64.b64decode(data, validate=True)
    except ValueError:
        return None


def _calls(calls: Any) -> Iterator[str]:
    if not isinstance(calls, list) or not calls:
        yield "[] is too short - 'tool_calls'."
        return
    ids = []
    for call in calls:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or call.get("type") != "function":
            yield "a tool call needs type 'function' and a function."
            continue
        ids.append(call.get("id"))
        if not _is_id(call.get("id")):
            yield "a tool call needs an id of at most 40 characters."
        if not isinstance(function.get("name"), str) or not FUNCTION_NAME.fullmatch(function["name"]):
            yield "a tool call's function name does not match the pattern."
        if not _is_object(function.get("arguments")):
            yield "a tool call's arguments must be the text of a JSON object."
    if len(set(map(str, ids))) < len(ids):
        yield "tool call ids must differ."


def _order(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Calls are answered at once and in full; nothing is answered that was not called."""
    rest = [message for message in messages if message.get("role") not in ("system", "developer")]
    if not rest or rest[0].get("role") != "user":
        yield "The first message after the system's must be the user's."
    roles = [message.get("role") if not message.get("tool_calls") else "calls" for message in rest]
    if any(one == other != "tool" and one in ("user", "assistant") for one, other in pairwise(roles)):
        yield "After the optional system message, conversation roles must alternate user/assistant/user/assistant/..."
    open_calls: set[str] = set()
    for index, message in enumerate(messages):
        if message.get("role") == "tool":
            if message.get("tool_call_id") not in open_calls:
                yield (
                    f"Invalid parameter: messages[{index}] with role 'tool' must be a response to a preceding "
                    "message with 'tool_calls'."
                )
            open_calls.discard(str(message.get("tool_call_id")))
            continue
        if open_calls:
            yield _unanswered(open_calls)
        calls = message.get("tool_calls")
        open_calls = (
            {str(call.get("id")) for call in calls if isinstance(call, dict)} if isinstance(calls, list) else set()
        )
    if open_calls:
        yield _unanswered(open_calls)


def _unanswered(ids: set[str]) -> str:
    return (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
        f"'tool_call_id'. These were not answered: {', '.join(sorted(ids))}"
    )


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and 1 <= len(value) <= 40


def _is_object(text: Any) -> bool:
    try:
        return isinstance(text, str) and isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _broken(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return "\x00" in text
