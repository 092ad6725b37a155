"""Anthropic's Messages: requests as its API wants them, and odd answers read for what they are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.domain.message import Message, assistant, tool_result, user
from gateway.domain.usage import CanonicalUsage
from gateway.providers.anthropic import AnthropicModel
from gateway.providers.anthropic.answer import MessagesAnswer
from gateway.providers.anthropic.codec import encode_request
from gateway.providers.base import Completed, ModelRequest, ModelSpec
from gateway.providers.http import json_bytes
from gateway.runtime.errors import ContextOverflow, ProviderUnavailable
from gateway.runtime.structs import replace
from tests.emulators.llm_messages import violations

SPEC = ModelSpec(provider="anthropic", name="claude-sonnet-4-5", context_length=200_000)
TOOL = {"type": "function", "function": {"name": "t", "description": "d", "parameters": {"type": "object"}}}


def call(call_id: str = "c1", arguments: Any = "{}") -> Any:
    return {"id": call_id, "type": "function", "function": {"name": "t", "arguments": arguments}}


def encoded(*messages: Message, spec: ModelSpec = SPEC, **more: Any) -> dict[str, Any]:
    return encode_request(spec, ModelRequest(messages=messages, **more))


@pytest.mark.parametrize(
    ("name", "window", "asked", "known", "cap"),
    [
        ("claude-sonnet-4-5", 200_000, None, None, 32_000),
        ("claude-3-haiku-20240307", 200_000, None, None, 4_096),
        ("claude-3-5-sonnet-latest", 200_000, None, None, 8_192),
        ("claude-3-7-sonnet-latest", 200_000, None, None, 32_000),
        ("small", 8_000, None, None, 4_000),
        ("claude-sonnet-4-5", 200_000, None, 20_000, 20_000),
        ("claude-sonnet-4-5", 200_000, 50_000, 20_000, 50_000),
    ],
)
def test_an_output_cap_is_always_sent(name: str, window: int, asked: int | None, known: int | None, cap: int) -> None:
    spec = ModelSpec(provider="anthropic", name=name, context_length=window)
    request = ModelRequest(messages=[user("U")], max_tokens=asked)
    assert encode_request(spec, request, cap=known)["max_tokens"] == cap


@pytest.mark.parametrize(("prompt", "cap"), [(1_000, 4_000), (4_000, 3_750), (6_400, 1_200), (7_900, 800)])
def test_an_output_cap_leaves_room_for_the_prompt(prompt: int, cap: int) -> None:
    spec = ModelSpec(provider="anthropic", name="small", context_length=8_000)
    assert encode_request(spec, ModelRequest(messages=[user("U")], prompt_tokens=prompt))["max_tokens"] == cap


def test_the_roles_alternate_and_begin_with_the_user() -> None:
    body = encoded(
        {"role": "system", "content": "S"},
        assistant("first"),
        user("a"),
        user("  "),
        {"role": "system", "content": "a remark"},
        assistant("", [call("x"), call("y")]),
        tool_result("x", "r"),
        user("steered"),
        tool_result("y", ""),
        assistant("the last"),
    )
    assert list(violations(body)) == []
    assert [message["role"] for message in body["messages"]] == ["user", "assistant"] * 3 + ["user"]
    kinds = [[block["type"] for block in message["content"]] for message in body["messages"]]
    assert kinds[2] == ["text", "text", "text"]
    assert kinds[4] == ["tool_result", "tool_result", "text"]


def test_nothing_is_sent_that_was_not_asked_for() -> None:
    body = encoded(user("U"), tool_choice="none")
    assert body.keys() == {"model", "max_tokens", "messages", "stream"}
    assert encoded(user("U"), tools=[TOOL], tool_choice="none")["tool_choice"] == {"type": "none"}


def test_settings_of_one_call_by_the_names_of_this_api() -> None:
    form = {"type": "json_schema", "json_schema": {"name": "town", "schema": {"type": "object"}, "strict": True}}
    chosen = {"response_format": form, "stop": ["END"], "top_k": 4, "parallel_tool_calls": False}
    body = encoded(user("U"), tools=[TOOL], tool_choice="required", chosen=chosen)
    assert body["output_config"] == {"format": {"type": "json_schema", "schema": {"type": "object"}}}
    assert (body["stop_sequences"], body["top_k"]) == (["END"], 4)
    assert body["tool_choice"] == {"type": "any", "disable_parallel_tool_use": True}
    assert "stop" not in body
    assert "parallel_tool_calls" not in body


def test_pictures_by_their_address_and_as_they_are() -> None:
    parts = [
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "image_url", "image_url": {"url": "data:image/PNG;base64,iVBORw0KGgo="}},
        {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}},
    ]
    body = encoded({"role": "user", "content": parts})
    assert list(violations(body)) == []
    assert [block["type"] for block in body["messages"][0]["content"]] == ["image", "image", "text"]


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ({}, None),
        ({"thinking": "adaptive"}, {"type": "adaptive"}),
        ({"thinking": "off"}, {"type": "disabled"}),
        ({"thinking_tokens": 2_000}, {"type": "enabled", "budget_tokens": 2_000}),
        ({"thinking_tokens": 40_000}, None),
    ],
)
def test_thinking_is_asked_for_as_it_is_set(section: dict[str, Any], expected: Any) -> None:
    spec = replace(SPEC, settings=AnthropicModel(provider="anthropic", **section))
    assert encoded(user("U"), spec=spec).get("thinking") == expected
    # A turn that began without thoughts, with another model say, goes on without.
    begun = encoded(user("U"), assistant(None, [call()]), tool_result("c1", "r"), spec=spec, tools=[TOOL])
    assert list(violations(begun)) == []


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ({"thinking_tokens": 100}, "at least 1,024"),
        ({"thinking_tokens": 5_000, "max_output_tokens": 4_000}, "must be below max_output_tokens"),
        ({"thinking_tokens": 5_000, "thinking": "off"}, "leave thinking: off out"),
    ],
)
def test_thinking_that_cannot_be(section: dict[str, Any], problem: str) -> None:
    found = AnthropicModel(provider="anthropic", name="m", api_key="k", **section).contradictions()
    assert problem in " ".join(text for _, text in found)


# --- answers ---------------------------------------------------------------------------------


def answered(*events: dict[str, Any]) -> Completed:
    answer = MessagesAnswer("m", lambda: "new")
    for event in events:
        answer.feed(event)
    return answer.finish()


def started(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def grown(index: int, **delta: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def ended(reason: str, **usage: int) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


HELLO = (started(0, type="text", text=""), grown(0, type="text_delta", text="Hello"))


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("refusal", "refused"),
        ("pause_turn", "length"),
    ],
)
def test_reasons_of_an_end(reason: str, stop: str) -> None:
    assert answered(*HELLO, ended(reason)).stop == stop


def test_a_window_that_was_full_is_an_overflow() -> None:
    with pytest.raises(ContextOverflow):
        answered(*HELLO, ended("model_context_window_exceeded"))


def test_a_refusal_may_be_empty() -> None:
    assert answered(ended("refusal")).stop == "refused"


@pytest.mark.parametrize(
    "events",
    [
        HELLO,
        (ended("end_turn"),),
        (started(0, type="tool_use", id="t1", name="t", input={}), grown(0, type="input_json_delta", partial_json="{")),
    ],
)
def test_a_broken_or_empty_answer_is_none(events: tuple[dict[str, Any], ...]) -> None:
    with pytest.raises(ProviderUnavailable) as caught:
        answered(*events)
    assert caught.value.malformed


def test_half_a_call_at_the_limit_is_left_out() -> None:
    begun = started(1, type="tool_use", id="t1", name="t", input={})
    cut = answered(*HELLO, begun, grown(1, type="input_json_delta", partial_json='{"a'), ended("max_tokens"))
    assert (cut.tool_calls, cut.cut_call, cut.original) == ((), True, None)


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_a_number_that_json_cannot_express_makes_no_conversation_unsendable(number: str) -> None:
    said: Message = {"role": "assistant", "content": None, "tool_calls": [call(arguments=f'{{"a": {number}}}')]}
    assert b"unreadable_arguments" in json_bytes(encoded(user("hi"), said))


def test_repeated_ids_are_replaced() -> None:
    calls = [started(at, type="tool_use", id="t1", name="t", input={"a": at}) for at in range(2)]
    completed = answered(*calls, ended("tool_use"))
    assert [each["id"] for each in completed.tool_calls] == ["t1", "new"]
    assert [json.loads(each["function"]["arguments"]) for each in completed.tool_calls] == [{"a": 0}, {"a": 1}]


def test_a_block_that_grows_in_unknown_ways_does_not_go_back() -> None:
    odd = (started(1, type="sketch", data=""), grown(1, type="sketch_delta", strokes=3))
    thought = (started(2, type="redacted_thinking", data="E"),)
    completed = answered(*HELLO, *odd, *thought, ended("end_turn"))
    assert completed.original is not None
    assert [block["type"] for block in completed.original["blocks"]] == ["text", "redacted_thinking"]


def test_figures_are_cumulative_and_zeros_undo_nothing() -> None:
    first = {"type": "message_start", "message": {"usage": {"input_tokens": 7, "cache_read_input_tokens": 5}}}
    completed = answered(first, *HELLO, ended("end_turn", input_tokens=0, output_tokens=3))
    assert completed.usage == CanonicalUsage(input_tokens=7, cache_read_tokens=5, output_tokens=3)


ODD = [{}, {"type": "x"}, started(0), grown(9, type="text_delta"), {"type": "message_delta"}]


@pytest.mark.parametrize("event", ODD)
def test_unknown_events_add_nothing(event: dict[str, Any]) -> None:
    assert answered(*HELLO, event, ended("end_turn")).text == "Hello"


def test_an_emoji_that_two_deltas_share_is_kept_whole() -> None:
    thought = [started(1, type="thinking", thinking="", signature="s")]
    thought += [grown(1, type="thinking_delta", thinking=half) for half in ("\ud83d", "\ude00")]
    said = [grown(0, type="text_delta", text=half) for half in ("\ud83d", "\ude00")]
    completed = answered(*HELLO, *said, *thought, ended("end_turn"))
    assert (completed.text, completed.reasoning) == ("Hello😀", "😀")
    assert completed.original is not None
    assert [block.get("text") or block["thinking"] for block in completed.original["blocks"]] == ["Hello😀", "😀"]


def test_a_rewritten_message_is_sent_as_it_says_now() -> None:
    blocks = [{"type": "redacted_thinking", "data": "E"}, {"type": "text", "text": "long"}]
    original = {"api": "anthropic", "model": SPEC.name, "blocks": blocks}
    shortened = assistant("short", original=original)
    assert encoded(user("U"), shortened, user("V"))["messages"][1]["content"] == [{"type": "text", "text": "short"}]


def test_settings_of_every_model() -> None:
    section: Any = {"temperature": 0.5, "reasoning_effort": "low", "extra_body": {"top_k": 3}}
    body = encoded(user("U"), spec=replace(SPEC, settings=AnthropicModel(provider="anthropic", **section)))
    assert (body["temperature"], body["output_config"], body["top_k"]) == (0.5, {"effort": "low"}, 3)
    assert list(violations(body)) == []


@pytest.mark.parametrize("content", [None, "", " \n", [], [{"type": "text", "text": ""}]])
def test_a_message_that_says_nothing_leaves_no_empty_block(content: Any) -> None:
    empty: list[Any] = [{"role": role, "content": content} for role in ("user", "assistant")]
    sent = encode_request(SPEC, ModelRequest(messages=[*empty, user("hi"), *empty]))["messages"]
    assert [message["role"] for message in sent] == ["user"]
    assert all(block["text"].strip() for block in sent[0]["content"])
