"""Chat Completions as pure functions: a request as a dict, and an answer from its pieces.

Many servers speak this API and few speak it alike. So the plainest form is sent, which all of them take. What comes
back is read generously, with one exception: an answer that may be incomplete is never passed off as a whole one.

Rules of what is sent
- Only keys the API knows, so host notes and other APIs' fields stay at home.
- Arguments of earlier tool calls are always a JSON object, ids at most 40 characters: one odd
  call of one model must not make the whole conversation unsendable to another.
- What a model attached to its answers (`attached`) goes back to this model, and to no other one.
- A content of parts only where there is more than words in it: a picture, a mark for a cache.
- No empty message of a person or the model, which many servers refuse.
- Messages of people in a row, such as a question whose turn failed and the next one, are one
  message, and so are words of the model's in a row, such as an answer and a reminder: many servers'
  templates want the roles to alternate, and to begin with the user's.
- The same message is always encoded alike, or prompt caches would miss.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import Any, Final, Self
from urllib.parse import urlsplit

from msgspec import Struct

from gateway.domain.message import HOST, Message, ToolCall, says_nothing
from gateway.providers.base import BEGINNING, ModelRequest, ModelSpec
from gateway.providers.calls import SHORT_ID, arguments_text, refuses_ids, short_id
from gateway.providers.features import joined
from gateway.providers.openai.attached import ID_LIMIT, OF_ANSWERS, OF_CALLS, UNSIGNED, attached_to
from gateway.providers.plugin import request_settings
from gateway.runtime.errors import ProviderRejected
from gateway.runtime.structs import replace

DEFAULT_BASE_URL: Final = "https://api.openai.com/v1"

_EMPTY: Final = "(empty message)"
_OF_TOOLS: Final = "[pictures of the tool results above]"
_NAME: Final = re.compile(r"[^\s<|\\/>]{1,64}")  # a participant's name, as OpenAI allows it
_COMMON: Final = ("role", "content", "name", "cache_control")
_KEYS: Final = {
    "system": _COMMON,
    "user": _COMMON,
    "assistant": (*_COMMON, "tool_calls", "refusal"),
    "tool": ("role", "content", "tool_call_id", "cache_control"),
}
# Vendors with thinking models that want their own reasoning back between tool calls; others refuse it.
_REASONING_BACK: Final = ("deepseek", "moonshot", "kimi", "glm", "bigmodel", "z.ai")
_NO_NOTE: Final[dict[str, Any]] = {}
_NO_THOUGHTS: Final = "(no thoughts were kept)"  # where a server insists on those of another model's answer
_SIGNS: Final = re.compile(r"gemini-(?:[3-9]|[1-9]\d)")


def endpoint(spec: ModelSpec) -> str:
    """Return the address of the model's API. A base URL may be given with or without the method's path."""
    return at_path(spec, "/chat/completions")


def server_of(spec: ModelSpec) -> str:
    """Return the host and port of the model's server."""
    return urlsplit(spec.base_url or DEFAULT_BASE_URL).netloc.rpartition("@")[2].lower()


def at_path(spec: ModelSpec, path: str) -> str:
    """Return another address of the same API; a query, such as a version, goes along."""
    base, mark, query = (spec.base_url or DEFAULT_BASE_URL).partition("?")
    return f"{base.rstrip('/').removesuffix('/chat/completions')}{path}{mark}{query}"


class Habits(Struct, frozen=True, kw_only=True):
    """The habits of a server that were learned from its refusals. `cap_name`: how it calls the output cap, None as
    usual. `usage_option`: whether it takes `stream_options`, without which some report no usage. `reasoning`: whether
    it wants its thoughts back, None as usual. `attached`: whether it takes back what it attached. `signed`: whether it
    wants a signature on every call. `short_ids`: whether it refused the id of a call."""

    usage_option: bool = True
    short_ids: bool = False
    cap_name: str | None = None
    reasoning: bool | None = None
    attached: bool = True
    signed: bool = False


def encode_request(
    spec: ModelSpec, request: ModelRequest, habits: Habits | None = None, entries: Entries | None = None
) -> dict[str, Any]:
    """The body of a call. `entries`: those of earlier messages, behind the system's."""
    habits = habits or Habits()
    entries = entries or Entries(spec, habits)
    system, others = request.parted()
    entries.add(others)
    entries.end()
    body: dict[str, Any] = {"model": spec.name, "messages": [*map(encode_message, system), *entries.made]}
    if "stream" not in request.omit:
        body["stream"] = True
        if habits.usage_option:
            body["stream_options"] = {"include_usage": True}
    if request.tools:
        body["tools"] = [dict(tool) for tool in request.tools]
        if request.tool_choice != "auto":
            body["tool_choice"] = request.tool_choice
    if request.max_tokens is not None:
        body[habits.cap_name or _cap_name(spec)] = request.max_tokens
    more = request_settings(spec, request)
    if not request.tools:
        more.pop("parallel_tool_calls", None)  # which is refused where there are none
    return {**body, **more}


def _cap_name(spec: ModelSpec) -> str:
    """OpenAI's reasoning models refuse `max_tokens`, and all of OpenAI's take the newer name; most
    compatible servers only know the older one. `learn` swaps them if a server objects."""
    host = urlsplit(spec.base_url or DEFAULT_BASE_URL).hostname or ""
    ours = host == "api.openai.com" or host.endswith(".openai.azure.com")
    return "max_completion_tokens" if ours else "max_tokens"


def _wants_reasoning(spec: ModelSpec) -> bool:
    about = f"{spec.base_url or ''} {spec.name}".lower()
    return any(vendor in about for vendor in _REASONING_BACK)


def thinks_by_name(model: str) -> bool:
    """Whether a model's template is likely to open its thoughts in the prompt, as those of DeepSeek R1, QwQ and
    Qwen's thinking models do: only the closing tag is in the answer then, unless the server takes the thoughts out."""
    return _THINKS.search(model.lower()) is not None


_THINKS: Final = re.compile(r"(?<![a-z0-9])(?:r1|qwq|thinking|reasoner)(?![a-z0-9])")


def encode_message(message: Message | Mapping[str, Any], id_limit: int = ID_LIMIT) -> dict[str, Any]:
    """One message in a form for any server, ids of calls in so many characters. The input is not changed."""
    # Runs for every message of a long transcript at every call: nothing here is done in vain.
    plain: Mapping[str, Any] = message
    role = str(plain.get("role", "user"))
    encoded = {key: value for key in _KEYS.get(role, _COMMON) if (value := plain.get(key)) is not None}
    if "name" in encoded and not _NAME.fullmatch(str(encoded["name"])):
        del encoded["name"]
    calls = encoded.get("tool_calls")
    if calls:
        encoded["tool_calls"] = [_encode_call(call, id_limit) for call in calls]
    else:
        encoded.pop("tool_calls", None)
    if "tool_call_id" in encoded:
        encoded["tool_call_id"] = short_id(encoded["tool_call_id"], id_limit)
    if isinstance(encoded.get("content"), list):
        encoded["content"] = _plainest(encoded["content"])
    if "content" not in encoded:
        encoded["content"] = None if calls else ""
    return encoded


class Entries:
    """The messages of a body, as far as they say anything: those of people in a row joined to one, and those of the
    model; people's come first. The pictures of tools' results stand behind these results: the API takes pictures of
    people only. What a model gave goes back to it alone: its thoughts, what it attached, and the ids of its calls."""

    def __init__(self, spec: ModelSpec, habits: Habits) -> None:
        self.made: list[dict[str, Any]] = []
        self._model = spec.name if habits.attached else None
        self._server = server_of(spec)
        self._id_limit = SHORT_ID if habits.short_ids else ID_LIMIT
        self._insists = habits.reasoning is True  # also on thoughts that nobody kept
        self._reasoning = _wants_reasoning(spec) if habits.reasoning is None else habits.reasoning
        self._signed = habits.signed or _SIGNS.search(spec.name.lower()) is not None
        self._ids: set[str] = set()  # calls whose ids stay as they are
        self._pictures: list[Any] = []
        self._begun = False  # somebody has spoken
        self._left_out = False
        self._odd = 0  # messages that may be more than texts

    def copy(self) -> Self:
        other = copy(self)
        other.made, other._ids, other._pictures = [*self.made], {*self._ids}, [*self._pictures]
        return other

    def add(self, messages: Iterable[Message]) -> bool:
        made, before, odd = self.made, None, self._odd
        calling = None if self._reasoning or self._signed else "assistant"  # whose calls get nothing back
        for message in messages:
            role, content, note = message.get("role"), message.get("content"), message.get(HOST, _NO_NOTE)
            fields = len(message) - (note is not _NO_NOTE)
            # Nearly every message is only words, of another speaker than the one before, or calls, or a result.
            if not before or type(note) is not dict or "original" in note:
                before = self._take(message)
            elif content is None and fields == 3 and before != role == calling and (calls := message.get("tool_calls")):
                made.append(
                    {
                        "role": role,
                        "tool_calls": [_encode_call(each, self._id_limit) for each in calls],
                        "content": None,
                    }
                )
                before = role
            elif type(content) is not str:
                before = self._take(message)
            elif fields == 2 and before != role in ("user", "assistant") and content and not content.isspace():
                made.append({"role": role, "content": content})
                before = role
            elif fields == 3 and role == "tool" and not self._ids and (call_id := message.get("tool_call_id")):
                made.append({"role": role, "content": content, "tool_call_id": short_id(call_id, self._id_limit)})
                before = role
            else:
                before = self._take(message)
        return self._odd == odd

    def _take(self, message: Message) -> str | None:
        """Take any message. Returns the role of the last entry, unless something must be looked at before the next."""
        plain: Mapping[str, Any] = message
        role, content = plain.get("role"), plain.get("content")
        gets_back = isinstance(note := plain.get(HOST), dict) and "original" in note
        fields = len(plain) - (note is not None)
        if fields == 2 and type(content) is str and role in ("user", "assistant"):
            encoded = None if not content or content.isspace() else {"role": role, "content": content}
        elif fields == 3 and content is None and role == "assistant" and (calls := plain.get("tool_calls")):
            encoded = {
                "role": role,
                "tool_calls": [_encode_call(each, self._id_limit) for each in calls],
                "content": None,
            }
            gets_back = gets_back or self._reasoning or self._signed
        else:
            encoded = None if says_nothing(message) else encode_message(message, self._id_limit)
            gets_back = gets_back or self._reasoning or self._signed
            self._odd += 1
        if encoded is None:
            self._left_out = True
            return None
        role = encoded["role"]
        if role == "assistant" and gets_back:
            self._give_back(message, encoded)
            self._odd += 1
        elif role == "tool":
            if (call_id := message.get("tool_call_id")) in self._ids:
                encoded["tool_call_id"] = call_id
            if isinstance(content := encoded["content"], list):
                self._pictures += [part for part in content if part.get("type") != "text"]
                encoded["content"] = _plainest([part for part in content if part.get("type") == "text"])
        if self._pictures and role != "tool":
            self._show_pictures()
        if self._begun and self.made[-1]["role"] != role:  # nearly always
            self.made.append(encoded)
        else:
            self._put(encoded)
        return role if self._begun and not self._pictures else None

    def end(self) -> None:
        """No further message follows: a stand-in comes where a person's only message is empty."""
        if self._pictures:
            self._show_pictures()
        if self._left_out and not self._begun:
            self._put({"role": "user", "content": _EMPTY})

    def _show_pictures(self) -> None:
        self._put({"role": "user", "content": [{"type": "text", "text": _OF_TOOLS}, *self._pictures]})
        self._pictures = []

    def _put(self, entry: dict[str, Any]) -> None:
        made, role = self.made, entry["role"]
        if made and role == made[-1]["role"] and _is_words(entry) and _is_words(made[-1]):
            made[-1] = _joined(made[-1], entry)
            return
        if role == "assistant" and not self._begun:
            made.append({"role": "user", "content": BEGINNING})
        self._begun = self._begun or role != "system"
        made.append(entry)

    def _give_back(self, message: Message, encoded: dict[str, Any]) -> None:
        answer, calls = attached_to(message, self._model, self._server)
        encoded |= answer
        if "tool_calls" in encoded:
            encoded["tool_calls"] = self._calls(message["tool_calls"], encoded["tool_calls"], calls)
        if self._reasoning and (thoughts := self._thoughts(message)):
            encoded["reasoning_content"] = thoughts

    def _calls(
        self, calls: Sequence[ToolCall], encoded: list[dict[str, Any]], attached: Mapping[str, Mapping[str, Any]]
    ) -> list[dict[str, Any]]:
        made = [
            {**written, **self._own_id(call), **attached[call["id"]]} if call.get("id") in attached else written
            for call, written in zip(calls, encoded, strict=True)
        ]
        if self._id_limit == ID_LIMIT:
            self._ids.update(attached)
        if self._signed and "extra_content" not in made[0]:  # of calls in parallel only the first one is signed
            made[0] = {**made[0], "extra_content": UNSIGNED}
        return made

    def _own_id(self, call: ToolCall) -> dict[str, Any]:
        return {"id": call["id"]} if self._id_limit == ID_LIMIT else {}

    def _thoughts(self, message: Message) -> str | None:
        kept = message.get("reasoning_content")
        return kept or (_NO_THOUGHTS if self._insists and message.get("tool_calls") else None)


def _is_words(message: Mapping[str, Any]) -> bool:
    return message["role"] in ("user", "assistant") and "tool_calls" not in message


def _joined(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    named = {"name": one["name"]} if "name" in one and one["name"] == other.get("name") else {}
    return {"role": one["role"], "content": joined(one["content"], other["content"]), **named}


def _plainest(parts: list[Any]) -> Any:
    """Parts that are words only as one string: many servers know no parts."""
    if all(isinstance(part, Mapping) and part.keys() == {"type", "text"} for part in parts):
        return "\n".join(str(part["text"]) for part in parts)
    return parts


def _encode_call(call: Mapping[str, Any], id_limit: int) -> dict[str, Any]:
    function = call.get("function") or {}
    return {
        "id": short_id(call.get("id", ""), id_limit),
        "type": "function",
        "function": {"name": str(function.get("name", "")), "arguments": arguments_text(function.get("arguments"))},
    }


def learn(habits: Habits, body: Mapping[str, Any], refusal: str) -> Habits | None:
    """The habits of a server that refused `body` with the text `refusal`, or None if it objects to
    something that cannot be helped. Each habit is learned once, so repeating this ends."""
    text = refusal.lower()
    if "stream_options" in body and ("stream_options" in text or "include_usage" in text):
        return replace(habits, usage_option=False)
    named = _CAP_NAMED.search(text)
    if habits.cap_name is None and named and named.group() in body and _OBJECTS.search(text):
        other = "max_completion_tokens" if named.group() == "max_tokens" else "max_tokens"
        return replace(habits, cap_name=other)
    return _learn_returns(habits, body, text)


def speaks_responses(refusal: str) -> ProviderRejected | None:
    """The error for a model that only answers over OpenAI's newer API; None for any other refusal."""
    if "v1/responses" not in (text := refusal.lower()) or "only" not in text:
        return None
    answers = "This model answers over the Responses API alone"
    return ProviderRejected(f"{answers}. Set model.provider to openai-responses.", status=404, away=True)


def _learn_returns(habits: Habits, body: Mapping[str, Any], text: str) -> Habits | None:
    """What a refusal says of the things that a model gets back."""
    if not habits.short_ids and refuses_ids(text):
        return replace(habits, short_ids=True)
    if "thought_signature" in text and not habits.signed:
        return replace(habits, signed=True)
    if "reasoning_content" in text and habits.reasoning is None:
        sent = any("reasoning_content" in message for message in body["messages"])
        return replace(habits, reasoning=not (sent and _OBJECTS.search(text)))
    if habits.attached and any(name in text for name in (*OF_ANSWERS, *OF_CALLS)) and _OBJECTS.search(text):
        return replace(habits, attached=False)
    return None


_CAP_NAMED: Final = re.compile(r"\bmax_(?:completion_)?tokens\b")  # the first one named is the culprit
_OBJECTS: Final = re.compile(
    r"unsupported|not supported|unrecognized|unknown|unexpected|extra inputs|not permitted|not allowed|instead"
)


def text_parts(content: Any) -> tuple[str, str]:
    """(text, reasoning) of a delta's content: a string, or a list of typed parts."""
    if isinstance(content, str):
        return content, ""
    texts: list[str] = []
    thoughts: list[str] = []
    for part in content if isinstance(content, Sequence) else ():
        if not isinstance(part, Mapping):
            continue
        if part.get("type") == "thinking":
            inner = part.get("thinking")
            thoughts.append(inner if isinstance(inner, str) else text_parts(inner)[0])
        elif isinstance(part.get("text"), str):
            texts.append(part["text"])
    return "".join(texts), "".join(thoughts)
