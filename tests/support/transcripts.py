"""Transcripts, summarisers and checks that the tests of the context engine share."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from hypothesis import strategies as st

from gateway.context.assembly import sanitize
from gateway.context.compressor import Compressor
from gateway.context.identifiers import found
from gateway.context.policy import CompressionSettings
from gateway.context.prompts import END_MARKER, OPENER
from gateway.domain.message import Message, ToolCall, is_request, is_summary, note_of, says_nothing, text_of
from gateway.providers.base import ModelRequest, ModelSpec
from gateway.providers.openai.codec import encode_request
from gateway.runtime.tokens import TokenCounter
from tests.support.fakes import ManualClock

SPEC = ModelSpec(provider="openai", name="m")


class RememberingCounter(TokenCounter):
    """Counts a text once. Tests count transcripts again and again, which took a third of their time."""

    def __init__(self) -> None:
        super().__init__()
        self._count = lru_cache(maxsize=20_000)(super().text)

    def text(self, text: str) -> int:
        """Tokens of `text`; long ones are not kept in memory."""
        return self._count(text) if len(text) <= _KEPT_CHARS else super().text(text)


_KEPT_CHARS = 10_000
COUNTER = RememberingCounter()  # one for all tests: loading the vocabulary takes a quarter of a second

TEXTS = st.one_of(
    st.text(max_size=60),
    st.sampled_from(
        [
            "请帮我检查这个配置文件，不要修改任何东西。" * 6,
            "Never touch src/app/main.py. " * 12,
            OPENER + " what is this?",
            END_MARKER,
            "word " * 150,
            "",
        ]
    ),
)
IMAGE: dict[str, Any] = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
CONTENTS = st.one_of(
    TEXTS,
    st.none(),
    st.integers(),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    st.lists(st.one_of(st.builds(lambda t: {"type": "text", "text": t}, TEXTS), st.just(IMAGE), TEXTS), max_size=3),
)


class ObjectCall:
    """A tool call as an SDK's object."""

    class function:
        name = "terminal"
        arguments = '{"command": "ls"}'

    def __init__(self, name: str) -> None:
        self.id = name

    def __repr__(self) -> str:
        return f"ObjectCall({self.id})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectCall) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)


def call(name: str, tool: str = "terminal", **arguments: Any) -> dict[str, Any]:
    """A tool call in OpenAI's form."""
    return {"id": name, "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}


def exchange(number: int, size: int = 60) -> list[Message]:
    """A request, two parallel calls with results, an answer."""
    one, two = f"c{number}a", f"c{number}b"
    return [
        {"role": "user", "content": f"Request {number}: fix src/part{number}.py"},
        {"role": "assistant", "content": "", "tool_calls": [call(one, command="make"), call(two, path=f"p{number}")]},  # type: ignore[list-item]
        {"role": "tool", "tool_call_id": one, "content": f"out {number}\n" * size},
        {"role": "tool", "tool_call_id": two, "content": f"text {number} " * size},
        {"role": "assistant", "content": f"Part {number} is fixed."},
    ]


def conversation(exchanges: int, size: int = 30) -> list[Message]:
    """Plain exchanges and a last request, with the notes a store would give them."""
    messages = [message for number in range(exchanges) for message in exchange(number, size)]
    return stored([*messages, {"role": "user", "content": "And now the last one, please."}])


def stored(messages: Sequence[Message]) -> list[Message]:
    """The messages with row ids and token counts."""
    return [
        {**message, "_legato": {"id": f"m{index}", "tokens": COUNTER.message(message), "identifiers": found(message)}}
        for index, message in enumerate(messages)
    ]


BLOB = base64.b64encode(bytes(range(256)) * 60).decode()
STRANGE: list[Any] = [
    {"content": "no role at all"},
    {"role": None, "content": "no role either"},
    {"role": ["user"], "content": "a list of roles"},
    {"role": "human", "content": "another vendor's person"},
    {"role": "developer", "content": "another vendor's system"},
    {"role": "function", "name": "f", "content": "a result of long ago"},
    {"role": "tool", "tool_call_id": 7, "content": "a numbered result"},
    {"role": "tool", "content": "a result of nothing"},
    {"role": "assistant", "content": None},
    {"role": "assistant", "tool_calls": [{"id": "x1", "name": "flat", "arguments": {"path": "a/b"}}]},
    {"role": "assistant", "tool_calls": [ObjectCall("x2"), ObjectCall("x2")], "content": ""},
    {"role": "assistant", "tool_calls": [{"call_id": "x3", "function": {"name": None, "arguments": 5}}]},
    {"role": "tool", "call_id": "x3", "content": {"deep": [1, {"er": None}]}},
    {"role": "user", "content": [{"type": "hologram", "data": BLOB}, {"text": "untyped"}, None, 5, {}]},
    {"role": "user", "content": [{"type": ["text"], "text": "x"}, {"type": "text"}]},
    {"role": "user", "content": []},
    {"role": "user", "content": BLOB},
    {"role": "tool", "tool_call_id": "c1", "content": [IMAGE, IMAGE, {"type": "text", "text": BLOB}]},
    {"role": "user", "content": "odd notes", "_legato": "what"},
    {"role": "user", "content": "odder", "_legato": {"id": 5, "tokens": "9", "identifiers": [1], "derived_from": 2}},
    {"role": "user", "content": None, "_legato": {"summary": True}},
    {"role": "assistant", "content": 5, "_legato": {"summary": True, "identifiers": "x", "derived_from": None}},
    None,
    "text alone",
    ["role", "user"],
]


@st.composite
def step(draw: st.DrawFn) -> list[Message]:
    """Some messages as they come, sometimes broken."""
    kind = draw(st.sampled_from(["user", "answer", "calls", "calls", "orphan", "system", "odd", "strange"]))
    if kind == "strange":
        return draw(st.lists(st.sampled_from(STRANGE), min_size=1, max_size=3))
    if kind == "user":
        return [{"role": "user", "content": draw(CONTENTS)}]
    if kind == "answer":
        return [{"role": "assistant", "content": draw(CONTENTS)}]
    if kind == "system":
        return [{"role": "system", "content": draw(TEXTS)}]
    if kind == "orphan":
        return [{"role": "tool", "tool_call_id": draw(st.sampled_from(["nope", "c1", ""])), "content": draw(CONTENTS)}]
    if kind == "odd":
        broken: Any = draw(st.sampled_from([None, "x", [], [None], [{}], [{"id": 3}], [ObjectCall("o1")], {"a": 1}]))
        return [{"role": "assistant", "content": draw(CONTENTS), "tool_calls": broken}]
    ids = draw(st.lists(st.sampled_from([f"c{n}" for n in range(40)]), min_size=1, max_size=4, unique=True))
    arguments = draw(st.sampled_from(['{"path": "a/b.py"}', "not json", "", json.dumps({"text": "x" * 900})]))
    calls: list[ToolCall] = [
        {"id": name, "type": "function", "function": {"name": "tool", "arguments": arguments}} for name in ids
    ]
    results = [
        {"role": "tool", "tool_call_id": name, "content": draw(CONTENTS)}
        for name in draw(st.permutations(ids))
        if draw(st.integers(0, 9)) > 0
    ]
    return [{"role": "assistant", "content": draw(TEXTS), "tool_calls": calls}, *results]  # type: ignore[list-item]


@st.composite
def transcripts(draw: st.DrawFn) -> list[Message]:
    """A transcript of up to some eighty messages, with or without a leading system message."""
    lead: list[Message] = [{"role": "system", "content": "Be kind."}] if draw(st.booleans()) else []
    steps = draw(st.lists(step(), min_size=0, max_size=30))
    last = draw(st.sampled_from([[{"role": "user", "content": "the final request"}], []]))
    messages: list[Message] = [*lead, *(message for each in steps for message in each), *last]  # type: ignore[list-item]
    return stored(sanitize(messages, opening=False)) if draw(st.booleans()) else messages


class Extractive:
    """A summariser that copies the first words of what it is shown, notes so far first."""

    def __init__(self, chars: int = 600) -> None:
        self.chars = chars
        self.requests: list[list[Message]] = []

    async def __call__(self, messages: Sequence[Message], max_tokens: int) -> str:
        """Text that is at most a third of the cap."""
        self.requests.append(list(messages))
        text = re.sub(r"\s+", " ", text_of(messages[-1]))
        return "## Active Task\n" + text[: min(self.chars, max_tokens)]


class Failing:
    """A summariser that always raises what it was given."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.calls = 0

    async def __call__(self, messages: Sequence[Message], max_tokens: int) -> str:
        """Raises."""
        self.calls += 1
        raise self.error


class Scripted:
    """A summariser that gives the answers it was given, in turn."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.requests: list[list[Message]] = []

    async def __call__(self, messages: Sequence[Message], max_tokens: int) -> str:
        """The next answer."""
        self.requests.append(list(messages))
        return self.answers.pop(0)


def compressor(
    call_model: Callable[..., Any] | None = None,
    *,
    window: int = 8_000,
    clock: ManualClock | None = None,
    redact: Callable[[str], str] = str,
    settings: CompressionSettings | None = None,
    **info: Any,
) -> Compressor:
    """A compressor on a window whose threshold is half of it."""
    settings = settings or CompressionSettings(min_threshold_tokens=0)
    engine = Compressor(settings, counter=COUNTER, clock=clock or ManualClock(), redact=redact)
    engine.on_session_start("s1", context_length=window, model="main", call_model=call_model, **info)
    return engine


def tokens(messages: Sequence[Message]) -> int:
    """Tokens of a transcript, counted afresh."""
    return sum(COUNTER.message(message) for message in messages if isinstance(message, dict))


def flaws(messages: Sequence[Message]) -> list[str]:
    """Return a provider's objections to a transcript."""
    found: list[str] = [f"{index}: {flaw}" for index, m in enumerate(messages) for flaw in _shape_flaws(m)]
    if not found:
        json.dumps(encode_request(SPEC, ModelRequest(messages=messages)))
    body = [message for message in messages if message.get("role") != "system"]
    if body and body[0]["role"] != "user":
        found.append(f"opens with {body[0]['role']}")
    waiting: list[str] = []
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            name = message.get("tool_call_id")
            if name not in waiting:
                found.append(f"{index}: result of {name} without its call")
            else:
                waiting.remove(name)
            continue
        if waiting:
            found.append(f"{index}: no results for {waiting}")
        calls: Any = message.get("tool_calls") or []
        waiting = [c["id"] if isinstance(c, dict) else c.id for c in calls]
        if len(set(waiting)) != len(waiting):
            found.append(f"{index}: repeated call ids")
    return [*found, f"end: no results for {waiting}"] if waiting else found


def _shape_flaws(message: Any) -> Iterator[str]:
    if message["role"] not in ("system", "user", "assistant", "tool"):
        yield f"role {message['role']}"
    if says_nothing(message):
        yield f"an empty message of the {message['role']}"
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    if content is not None and not isinstance(content, str) and not parts:
        yield f"content {content!r:.40}"
    if not all(isinstance(part, dict) and isinstance(part.get("type"), str) for part in parts):
        yield f"parts {content!r:.80}"
    if any(part["type"] == "text" and not isinstance(part.get("text"), str) for part in parts if "type" in part):
        yield "a text without text"
    for each in message.get("tool_calls") or []:
        function = each["function"] if isinstance(each, dict) else {}
        if not (isinstance(function.get("name"), str) and isinstance(function.get("arguments"), str)):
            yield f"call {each!r:.80}"


def summaries(messages: Sequence[Message]) -> list[Message]:
    """The summaries of a transcript."""
    return [message for message in messages if is_summary(message)]


def last_request(messages: Sequence[Message]) -> Message | None:
    """The latest thing a person said."""
    return next((message for message in reversed(messages) if is_request(message)), None)


def counts_hold(messages: Sequence[Message]) -> bool:
    """Say whether every stored count is right; an entry without a count does not matter."""
    noted = [(note_of(message).get("tokens"), message) for message in messages]
    return all(count == COUNTER.message(message) for count, message in noted if isinstance(count, int))
