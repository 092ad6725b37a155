"""All APIs alike: any transcript makes a request that each takes; and recorded wire files of each: an answer, streamed
and whole, and the request that carries it back.

`wire/<provider>.sse` and `.json` are the same answer, with thoughts, words and two calls. In
`wire/<provider>.request.json` is the next request, byte for byte: pictures, results with pictures, marks for the cache
and the thoughts are in it. `wire/<provider>.stored.json` is the conversation of that request as the store holds it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.agent.asking import message_of
from gateway.agent.caching import prompt, with_marks
from gateway.domain.message import Message, assistant, text_of, tool_result, user
from gateway.domain.usage import CanonicalUsage
from gateway.providers.anthropic import codec as messages
from gateway.providers.anthropic.answer import MessagesAnswer
from gateway.providers.base import Completed, ModelEvent, ModelRequest, ModelSpec, TextDelta
from gateway.providers.http import json_bytes
from gateway.providers.openai import codec as chat
from gateway.providers.openai.answer import ChatAnswer
from gateway.providers.openai_responses import codec as responses
from gateway.providers.openai_responses.answer import ResponsesAnswer
from gateway.providers.server import Answer
from gateway.providers.sse import EventReader
from tests.emulators import llm_messages, llm_responses, llm_rules

WIRE = Path(__file__).parent / "wire"
MODELS = {"anthropic": "claude-sonnet-4-5", "openai": "gpt-5", "openai-responses": "gpt-5"}
ANSWERS: dict[str, Callable[[], Answer]] = {
    "anthropic": lambda: MessagesAnswer("claude-sonnet-4-5", lambda: "new"),
    "openai": lambda: ChatAnswer(lambda: "new"),
    "openai-responses": lambda: ResponsesAnswer("gpt-5", lambda: "new"),
}
ENCODERS: dict[str, Callable[[ModelSpec, ModelRequest], dict[str, Any]]] = {
    "anthropic": messages.encode_request,
    "openai": chat.encode_request,
    "openai-responses": responses.encode_request,
}
RULES: dict[str, Callable[[Any], Iterator[str]]] = {
    "anthropic": llm_messages.violations,
    "openai": llm_rules.violations,
    "openai-responses": llm_responses.violations,
}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
SCHEMA = {"type": "object", "properties": {"zone": {"type": "string"}}}
TOOL = {"type": "function", "function": {"name": "clock", "description": "Tells the time.", "parameters": SCHEMA}}
API = pytest.mark.parametrize("api", list(ANSWERS))


def streamed(answer: Answer, raw: bytes, size: int) -> list[ModelEvent]:
    reader = EventReader()
    events: list[ModelEvent] = []
    for at in range(0, len(raw), size):
        for _, data in reader.feed(raw[at : at + size]):
            if data == "[DONE]":
                answer.done()
                continue
            assert answer.refusal(json.loads(data)) is None
            events += answer.feed(json.loads(data))
    return events


def read(api: str, form: str, size: int = 64) -> tuple[Completed, list[ModelEvent]]:
    answer, raw = ANSWERS[api](), (WIRE / f"{api}.{form}").read_bytes()
    events = streamed(answer, raw, size) if form == "sse" else answer.whole(json.loads(raw))
    return answer.finish(), events


@API
@pytest.mark.parametrize("form", ["sse", "json"])
def test_an_answer_is_read_in_full(api: str, form: str) -> None:
    completed, events = read(api, form)
    assert completed.text == "I look at both clocks 🕐."
    assert completed.reasoning.split() == ["Two", "places", "are", "asked", "for."]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == completed.text
    arguments = [json.loads(call["function"]["arguments"]) for call in completed.tool_calls]
    assert arguments == [{"zone": "Europe/Vienna"}, {}]
    assert len({call["id"] for call in completed.tool_calls} - {"new"}) == 2
    assert (completed.stop, completed.cut_call) == ("tool_calls", False)
    thought = 0 if api == "anthropic" else 40
    assert completed.usage == CanonicalUsage(
        input_tokens=12, cache_read_tokens=3000, cache_write_tokens=100, output_tokens=89, reasoning_tokens=thought
    )


@API
def test_streamed_and_whole_are_the_same_to_the_letter(api: str) -> None:
    whole = read(api, "json")[0]
    for size in (1, 7, 1 << 20):
        assert read(api, "sse", size)[0].original == whole.original
    assert (whole.original is None) == (api == "openai")


def conversation(api: str) -> list[Message]:
    """The question with a picture, the recorded answer as the agent stores it, and results with a picture."""
    completed, _ = read(api, "sse")
    answer = message_of(completed)
    ids = [call["id"] for call in completed.tool_calls]
    result: Any = {"role": "tool", "tool_call_id": ids[0], "content": [{"type": "text", "text": "13:00"}]}
    if api != "openai":
        result["content"].append(PICTURE)
    asked: Any = {"role": "user", "content": [{"type": "text", "text": "Which clock is right?"}, PICTURE]}
    empty: Message = {"role": "tool", "tool_call_id": ids[1], "content": ""}
    return [asked, answer, result, empty, user("And now?", id="m7")]


def next_request(api: str, transcript: list[Message]) -> dict[str, Any]:
    """The request after the answer."""
    spec = ModelSpec(provider=api, name=MODELS[api], cache_marks=api == "anthropic", marks_results=True, cache_ttl="1h")
    request = ModelRequest(messages=prompt("You are a test.", transcript, spec), tools=[TOOL], max_tokens=1_000)
    return ENCODERS[api](spec, request)


@API
def test_the_next_request_is_the_recorded_one_byte_for_byte(api: str) -> None:
    body = next_request(api, conversation(api))
    assert json_bytes(body) == (WIRE / f"{api}.request.json").read_bytes().rstrip(b"\n")
    if api == "anthropic":  # the emulator's models sign otherwise
        body["messages"][1]["content"][0]["signature"] = llm_messages.SIGNATURE
    assert list(RULES[api](body)) == []


@API
def test_a_stored_conversation_gives_the_recorded_request_byte_for_byte(api: str) -> None:
    stored = json.loads((WIRE / f"{api}.stored.json").read_bytes())
    assert stored == json.loads(json_bytes(conversation(api))), "the agent stores the recorded answer like this"
    assert any(message.get("reasoning_content") for message in stored)
    assert json_bytes(next_request(api, stored)) == (WIRE / f"{api}.request.json").read_bytes().rstrip(b"\n")


@pytest.mark.parametrize("api", ["anthropic", "openai-responses"])
def test_what_the_model_said_goes_back_to_the_letter(api: str) -> None:
    whole = json.loads((WIRE / f"{api}.json").read_text())
    body = next_request(api, conversation(api))
    if api == "openai-responses":
        assert body["input"][1:5] == whole["output"]
        return
    (sent,) = (message["content"] for message in body["messages"] if message["role"] == "assistant")
    assert [{key: block[key] for key in block if key != "cache_control"} for block in sent] == whole["content"]


# Requests


@pytest.mark.parametrize(
    ("api", "base", "expected"),
    [
        ("openai", None, "https://api.openai.com/v1/chat/completions"),
        ("openai", "http://127.0.0.1:11434/v1/", "http://127.0.0.1:11434/v1/chat/completions"),
        ("openai", "http://127.0.0.1/x/chat/completions", "http://127.0.0.1/x/chat/completions"),
        ("openai-responses", None, "https://api.openai.com/v1/responses"),
        ("openai-responses", "http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1/responses"),
        ("openai-responses", "http://127.0.0.1/v1/responses", "http://127.0.0.1/v1/responses"),
        ("anthropic", None, "https://api.anthropic.com/v1/messages"),
        ("anthropic", "https://api.deepseek.com/anthropic", "https://api.deepseek.com/anthropic/v1/messages"),
        ("anthropic", "http://127.0.0.1/v1/", "http://127.0.0.1/v1/messages"),
        ("anthropic", "http://127.0.0.1/v1/messages", "http://127.0.0.1/v1/messages"),
    ],
)
def test_endpoints(api: str, base: str | None, expected: str) -> None:
    codec = {"anthropic": messages, "openai": chat, "openai-responses": responses}[api]
    assert codec.endpoint(ModelSpec(provider=api, name="m", base_url=base)) == expected


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)
PERSON = st.builds(
    lambda text, name: {"role": "user", "content": text, "name": name, "_legato": {"id": "m"}}, TEXT, TEXT
)


@st.composite
def exchange(draw: st.DrawFn) -> list[Any]:
    """An answer and, if it calls tools, their results: ids and arguments as models write them."""
    ids = draw(st.lists(st.text("ab-_.:é", min_size=1, max_size=70), max_size=3, unique=True))
    arguments = st.sampled_from(["{}", "", "{", "[]", '{"a": 1}'])
    calls: Any = [
        {"id": each, "type": "function", "function": {"name": "clock", "arguments": draw(arguments)}} for each in ids
    ]
    text = draw(TEXT)
    thought = {"type": "thinking", "thinking": "hm", "signature": "sig-of-2"}
    original = {"api": "anthropic", "model": MODELS["anthropic"], "blocks": [thought, {"type": "text", "text": text}]}
    note = {"original": original} if text.strip() and not calls and draw(st.booleans()) else {}
    said = {**assistant(text, calls, **note), "reasoning_content": "r"}
    return [said, *(tool_result(each, draw(TEXT)) for each in ids), *draw(st.lists(PERSON, max_size=2))]


def encoded(api: str, said: list[Any]) -> dict[str, Any]:
    spec = ModelSpec(provider=api, name=MODELS[api], context_length=200_000)
    return ENCODERS[api](spec, ModelRequest(messages=said, tools=[TOOL], max_tokens=5_000))


@API
@given(first=PERSON, rest=st.lists(exchange(), max_size=4), marks=st.booleans())
def test_every_sound_transcript_makes_a_valid_request(api: str, first: Any, rest: list[list[Any]], marks: bool) -> None:
    head = [{"role": "system", "content": "S", "_legato": {}}, first]
    said: list[Any] = [*head, *(each for part in rest for each in part)]
    said = with_marks(said, "1h", results=True) if marks and api == "anthropic" else said
    before = deepcopy(said)
    body = json.dumps(encoded(api, said))
    assert list(RULES[api](json.loads(body))) == []
    assert '"_legato":' not in body  # as a text it may stand there
    assert said == before


@API
@given(rest=st.lists(exchange(), min_size=1, max_size=4))
def test_a_longer_conversation_begins_as_the_shorter_one(api: str, rest: list[list[Any]]) -> None:
    """Or the cache would miss."""
    spoken = [each for part in rest for each in part if each["role"] != "user" or text_of(each).strip()]
    whole = [user("U"), *spoken, user("V")]
    for end in range(1, len(whole)):
        said = text_of(whole[end]).strip() or whole[end].get("tool_calls")
        if whole[end]["role"] != "assistant" or whole[end - 1]["role"] == "assistant" or not said:
            continue
        sent = "input" if api == "openai-responses" else "messages"
        shorter, longer = (encoded(api, part)[sent] for part in (whole[:end], whole))
        assert longer[: len(shorter)] == shorter
