"""The requests of chat completions: valid for the strictest server, whatever stands in the transcript."""

from base64 import b64encode
from copy import deepcopy
from typing import Any

import pytest

from gateway.domain.message import assistant, tool_result, user
from gateway.providers.base import ModelRequest, ModelSpec
from gateway.providers.openai.codec import (
    Habits,
    encode_message,
    encode_request,
    learn,
    text_parts,
)
from gateway.providers.plugin import ServedModel
from gateway.providers.windows import is_near, window_in
from gateway.runtime.structs import replace
from tests.emulators.llm_rules import violations
from tests.support.pictures import png

SPEC = ModelSpec(provider="openai", name="some-model", base_url="http://127.0.0.1/v1")
OPENAI = ModelSpec(provider="openai", name="gpt-5")
TOOL = {"type": "function", "function": {"name": "t", "description": "d", "parameters": {"type": "object"}}}


def call(call_id: str = "c1", name: str = "t", arguments: Any = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_a_request_with_everything() -> None:
    messages: Any = [{"role": "system", "content": "S"}, {"role": "user", "content": "U", "_legato": {"id": "m1"}}]
    body = encode_request(SPEC, ModelRequest(messages=messages, tools=[TOOL], max_tokens=9, tool_choice="none"))
    assert body == {
        "model": "some-model",
        "messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [TOOL],
        "tool_choice": "none",
        "max_tokens": 9,
    }


def test_settings_of_one_call_come_before_the_models_own() -> None:
    spec = replace(SPEC, settings=ServedModel(provider="openai", name="m", temperature=1.0, extra_body={"top_k": 5}))
    chosen = {"temperature": 0.2, "stop": ["END"], "parallel_tool_calls": False}
    request = ModelRequest(messages=[{"role": "user", "content": "U"}], chosen=chosen, tool_choice="required")
    body = encode_request(spec, request)
    assert (body["temperature"], body["stop"], body["top_k"]) == (0.2, ["END"], 5)
    assert "parallel_tool_calls" not in body  # there are no tools
    body = encode_request(spec, replace(request, tools=[TOOL]))
    assert (body["parallel_tool_calls"], body["tool_choice"]) == (False, "required")


def test_nothing_that_was_not_asked_for_is_sent() -> None:
    body = encode_request(SPEC, ModelRequest(messages=[{"role": "user", "content": "U"}], tool_choice="none"))
    assert body.keys() == {"model", "messages", "stream", "stream_options"}


def test_openai_itself_gets_the_newer_name_of_the_output_cap() -> None:
    request = ModelRequest(messages=[{"role": "user", "content": "U"}], max_tokens=9)
    assert encode_request(OPENAI, request)["max_completion_tokens"] == 9
    assert encode_request(OPENAI, request, Habits(cap_name="max_tokens"))["max_tokens"] == 9


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ("", "{}"),
        (None, "{}"),
        ({"a": 1}, '{"a": 1}'),
        ('{"a": ', '{"unreadable_arguments": "{\\"a\\": "}'),
        ("[1]", '{"unreadable_arguments": "[1]"}'),
        ('{"a": NaN}', '{"unreadable_arguments": "{\\"a\\": NaN}"}'),
        ({"a": float("inf")}, '{"unreadable_arguments": "{\\"a\\": Infinity}"}'),
        ('{"a": -1e999}', '{"unreadable_arguments": "{\\"a\\": -1e999}"}'),
        ('{"a": -1e99, "b": "NaN"}', '{"a": -1e99, "b": "NaN"}'),
    ],
)
def test_arguments_are_always_an_object(arguments: Any, sent: str) -> None:
    encoded = encode_message({"role": "assistant", "content": None, "tool_calls": [call(arguments=arguments)]})
    assert encoded["tool_calls"][0]["function"]["arguments"] == sent


def test_long_ids_are_shortened_alike_on_both_sides() -> None:
    long = "call_" + "x" * 80
    asked = encode_message({"role": "assistant", "tool_calls": [call(long)]})
    answered = encode_message({"role": "tool", "tool_call_id": long, "content": "r"})
    assert asked["tool_calls"][0]["id"] == answered["tool_call_id"]
    assert len(answered["tool_call_id"]) <= 40


def test_reasoning_goes_back_only_where_it_is_wanted() -> None:
    said: Any = {"role": "assistant", "content": "x", "reasoning_content": "because"}
    request = ModelRequest(messages=[{"role": "user", "content": "U"}, said])
    assert "reasoning_content" not in encode_request(SPEC, request)["messages"][1]
    deepseek = ModelSpec(provider="openai", name="deepseek-chat")
    assert encode_request(deepseek, request)["messages"][1]["reasoning_content"] == "because"


def test_a_name_the_api_refuses_is_left_out() -> None:
    assert "name" not in encode_message({"role": "user", "content": "x", "name": "Anna Müller"})
    assert encode_message({"role": "user", "content": "x", "name": "Anna"})["name"] == "Anna"


@pytest.mark.parametrize("content", [None, "", " \n", [], [{"type": "text", "text": ""}]])
def test_a_message_that_says_nothing_is_not_sent(content: Any) -> None:
    asked: list[Any] = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}]
    empty: list[Any] = [{"role": role, "content": content} for role in ("user", "assistant")]
    assert encode_request(SPEC, ModelRequest(messages=[*empty, *asked, *empty]))["messages"] == asked
    system: Any = {"role": "system", "content": "s"}
    alone = encode_request(SPEC, ModelRequest(messages=[system, *empty]))["messages"]
    assert [message["role"] for message in alone] == ["system", "user"]
    assert alone[1]["content"]


def test_messages_of_people_in_a_row_are_sent_as_one() -> None:
    marked = [{"type": "text", "text": "three", "cache_control": {"type": "ephemeral"}}]
    messages: list[Any] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "one"},
        {"role": "user", "content": "two", "name": "anna"},
        {"role": "assistant", "content": "yes"},
        {"role": "user", "content": "two"},
        {"role": "user", "content": marked},
        {"role": "user", "content": "four"},
    ]
    before = deepcopy(messages)
    body = encode_request(SPEC, ModelRequest(messages=messages))
    assert body["messages"][1:] == [
        {"role": "user", "content": "one\n\ntwo"},
        {"role": "assistant", "content": "yes"},
        {"role": "user", "content": [{"type": "text", "text": "two"}, *marked, {"type": "text", "text": "four"}]},
    ]
    assert messages == before


def test_pictures_of_tools_stand_behind_the_results_as_if_a_person_had_sent_them() -> None:
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{b64encode(png(2, 3)).decode()}"}}
    result = {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "a cat"}, picture]}
    other = {"role": "tool", "tool_call_id": "c2", "content": "a dog"}
    calls = {"role": "assistant", "content": None, "tool_calls": [call("c1"), call("c2")]}
    for behind in ([], [{"role": "user", "content": "and?"}], [{"role": "assistant", "content": "I see."}]):
        asked: list[Any] = [{"role": "user", "content": "look"}, calls, result, other, *behind]
        given = deepcopy(asked)
        body = encode_request(SPEC, ModelRequest(messages=asked, tools=[TOOL]))
        sent = body["messages"]
        assert asked == given
        assert list(violations(body)) == []
        assert [each["content"] for each in sent[2:4]] == ["a cat", "a dog"]
        assert sent[4]["role"] == "user"
        assert sent[4]["content"][1] == picture
        assert len(sent) == 5 + (behind != [] and behind[0]["role"] == "assistant")


def test_pictures_of_several_results_stand_in_their_order_behind_the_last_one() -> None:
    def shown(name: str, width: int) -> list[Any]:
        data = b64encode(png(width, 3)).decode()
        return [
            {"type": "text", "text": name},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
        ]

    cat, dog = shown("a cat", 2), shown("a dog", 4)
    asked: list[Any] = [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": None, "tool_calls": [call("c1"), call("c2"), call("c3")]},
        {"role": "tool", "tool_call_id": "c1", "content": cat},
        {"role": "tool", "tool_call_id": "c2", "content": dog[1:]},
        {"role": "tool", "tool_call_id": "c3", "content": "nothing"},
        {"role": "assistant", "content": None, "tool_calls": [call("c4")]},
        {"role": "tool", "tool_call_id": "c4", "content": [*cat, dog[1]]},
        {"role": "user", "content": "and?"},
    ]
    body = encode_request(SPEC, ModelRequest(messages=asked, tools=[TOOL]))
    sent = body["messages"]
    assert list(violations(body)) == []
    assert [each["role"] for each in sent] == ["user", "assistant", *["tool"] * 3, "user", "assistant", "tool", "user"]
    assert [each["content"] for each in sent if each["role"] == "tool"] == ["a cat", "", "nothing", "a cat"]
    assert sent[5]["content"][1:] == [cat[1], dog[1]]
    assert sent[8]["content"][1:] == [cat[1], dog[1], {"type": "text", "text": "and?"}]


def test_habits_are_learned_once_each() -> None:
    body = {"stream_options": {}, "max_tokens": 5}
    assert learn(Habits(), body, "unknown field stream_options") == Habits(usage_option=False)
    swapped = learn(Habits(), body, "'max_tokens' is not supported, use 'max_completion_tokens' instead")
    assert swapped == Habits(cap_name="max_completion_tokens")
    assert learn(swapped, {"max_completion_tokens": 5}, "max_completion_tokens unsupported, use max_tokens") is None
    assert learn(Habits(), body, "max_tokens is too large: 9") is None
    assert learn(Habits(), body, "invalid model") is None


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("text", ("text", "")),
        (None, ("", "")),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], ("ab", "")),
        ([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"text": "a"}], ("a", "hm")),
        ([1, None], ("", "")),
        (7, ("", "")),
    ],
)
def test_text_parts(content: Any, expected: tuple[str, str]) -> None:
    assert text_parts(content) == expected


@pytest.mark.parametrize(
    ("models", "window"),
    [
        ({"data": [{"id": "x", "context_length": 1}, {"id": "m", "max_model_len": 4096, "context_length": 9}]}, 4096),
        ({"data": [{"id": "m", "context_window": 131_072}]}, 131_072),
        ({"data": [{"id": "m", "context_length": True}]}, None),
        ({"data": [{"id": "m"}, None, 7]}, None),
        ({"data": {}}, None),
        ([], None),
        ([{"id": "m", "context_length": int(1e30)}], None),  # "without a limit", as Hugging Face's tokenizers say it
        ([{"id": "m", "max_model_len": 10**400, "max_context_length": 8_192}], 8_192),
        ([{"id": "x", "n_ctx": 1}, {"id": "/models/M.gguf", "meta": {"n_ctx": 4_096, "n_ctx_train": 9_999}}], 4_096),
        ([{"id": "x", "context_length": 1}, {"id": "m:latest", "context_length": 2_048}], 2_048),
        ([{"id": "other", "context_length": 2_048}], 2_048),  # a server with a single model answers to any name
        ([{"id": "x", "context_length": 1}, {"id": "y", "context_length": 2}], None),
    ],
)
def test_the_window_in_a_list_of_models(models: Any, window: int | None) -> None:
    assert window_in(models, "m") == window


def test_words_in_a_row_are_one_message_and_the_users_come_first() -> None:
    row: Any = [
        {"role": "system", "content": "S"},
        assistant("⏰ tea"),
        user("done!"),
        assistant(None, [call("c1")]),
        tool_result("c1", "r"),
        {"role": "system", "content": "a remark"},
        assistant("Good."),
        assistant("⏰ milk"),
        user("thanks"),
    ]
    body = encode_request(SPEC, ModelRequest(messages=row))
    assert list(violations(body)) == []
    roles = ["system", "user", "assistant", "user", "assistant", "tool", "system", "assistant", "user"]
    assert [message["role"] for message in body["messages"]] == roles
    assert body["messages"][-2]["content"] == "Good.\n\n⏰ milk"


SIGNED = {"google": {"thought_signature": "abc"}}


def attached(model: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    """A note on an answer to which a model attached something."""
    return {"original": {"api": "openai", "model": model, "blocks": list(blocks)}}


def test_what_was_attached_goes_back_to_the_same_model_alone() -> None:
    long = "call__thought__" + "x" * 80
    of_answer = {"type": "answer", "reasoning_details": [{"text": "t"}]}
    note = attached("some-model", of_answer, {"type": "call", "id": long, "extra_content": SIGNED})
    messages: Any = [user("U"), assistant(None, (call(long),), **note), tool_result(long, "r")]
    sent = encode_request(SPEC, ModelRequest(messages=messages))["messages"]
    assert sent[1]["reasoning_details"] == [{"text": "t"}]
    assert sent[1]["tool_calls"][0] == {**call(long), "extra_content": SIGNED}
    assert sent[2]["tool_call_id"] == long
    other = encode_request(OPENAI, ModelRequest(messages=messages))["messages"]
    assert other[1].keys() == {"role", "content", "tool_calls"}
    assert other[1]["tool_calls"][0].keys() == {"id", "type", "function"}
    assert len(other[2]["tool_call_id"]) <= 40


def test_what_was_attached_goes_back_to_no_namesake_on_another_server() -> None:
    long = "call__thought__" + "x" * 80
    note = attached("some-model", {"type": "call", "id": long, "extra_content": SIGNED})
    note["original"]["server"] = "127.0.0.1"
    messages: Any = [user("U"), assistant(None, (call(long),), **note), tool_result(long, "r")]
    there = encode_request(SPEC, ModelRequest(messages=messages))["messages"]
    assert (there[1]["tool_calls"][0]["id"], there[2]["tool_call_id"]) == (long, long)
    elsewhere = ModelSpec(provider="openai", name="some-model", base_url="http://127.0.0.1:8000/v1")
    other = encode_request(elsewhere, ModelRequest(messages=messages))["messages"]
    assert other[1]["tool_calls"][0]["id"] == other[2]["tool_call_id"] != long
    assert "extra_content" not in other[1]["tool_calls"][0]


@pytest.mark.parametrize(
    "refusal",
    [
        "Tool call id was call_1234 but must be a-z, A-Z, 0-9, with a length of 9.",
        "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40.",
        "messages.1.tool_calls.0.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
        "`tool_call_id` has at most 32 characters",
    ],
)
def test_a_server_that_refused_an_id_gets_short_ones(refusal: str) -> None:
    note = attached("some-model", {"type": "call", "id": "call_one", "extra_content": SIGNED})
    messages: Any = [user("U"), assistant(None, (call("call_one"), call("abcdefgh9")), **note)]
    messages += [tool_result("call_one", "r"), tool_result("abcdefgh9", "r")]
    request = ModelRequest(messages=messages)
    learned = learn(Habits(), encode_request(SPEC, request), refusal)
    assert learned == Habits(short_ids=True)
    body = encode_request(SPEC, request, learned)
    assert list(violations(body)) == []
    asked = [each["id"] for each in body["messages"][1]["tool_calls"]]
    assert asked == [each["tool_call_id"] for each in body["messages"][2:]]
    assert asked[1] == "abcdefgh9"
    assert len(asked[0]) == 9
    assert asked[0].isalnum()
    assert learn(learned, body, refusal) is None


@pytest.mark.parametrize(
    ("refusal", "learned"),
    [
        ("Function call is missing a thought_signature in functionCall parts.", Habits(signed=True)),
        ("Missing `reasoning_content` field in the assistant message at message index 1.", Habits(reasoning=True)),
        ("property 'messages.1.reasoning_details' is unsupported", Habits(attached=False)),
        ("messages.1.tool_calls.0.extra_content: Extra inputs are not permitted", Habits(attached=False)),
        ("The reasoning_details of message 1 were signed for another account.", None),
    ],
)
def test_a_refusal_says_what_is_to_go_back(refusal: str, learned: Habits | None) -> None:
    messages: Any = [user("U"), assistant(None, (call(),)), tool_result("c1", "r")]
    body = encode_request(SPEC, ModelRequest(messages=messages))
    assert learn(Habits(), body, refusal) == learned
    if learned is not None:
        assert learn(learned, encode_request(SPEC, ModelRequest(messages=messages), learned), refusal) is None


def test_a_server_that_insists_gets_a_stand_in_for_what_another_model_did_not_give() -> None:
    messages: Any = [user("U"), assistant(None, (call("a"), call("b"))), tool_result("a", "r"), tool_result("b", "r")]
    signed = encode_request(SPEC, ModelRequest(messages=messages), Habits(signed=True))["messages"][1]
    assert "thought_signature" in str(signed["tool_calls"][0])
    assert "thought_signature" not in str(signed["tool_calls"][1])
    thought = encode_request(SPEC, ModelRequest(messages=messages), Habits(reasoning=True))["messages"][1]
    assert thought["reasoning_content"]


def test_a_server_that_refuses_its_thoughts_gets_them_no_more() -> None:
    kimi = ModelSpec(provider="openai", name="kimi-k2", base_url="http://127.0.0.1/v1")
    messages: Any = [user("U"), {**assistant("A"), "reasoning_content": "because"}, user("U")]
    body = encode_request(kimi, ModelRequest(messages=messages))
    learned = learn(Habits(), body, "messages.1.reasoning_content: Extra inputs are not permitted")
    assert learned == Habits(reasoning=False)
    assert "reasoning_content" not in str(encode_request(kimi, ModelRequest(messages=messages), learned))


@pytest.mark.parametrize(
    ("base_url", "near"),
    [
        ("http://127.0.0.1:11434/v1", True),
        ("http://[::1]:8080/v1", True),
        ("http://192.168.1.7:1234/v1", True),
        ("http://ollama:11434/v1", True),
        ("http://box.local/v1", True),
        ("https://api.openai.com/v1", False),
        ("http://8.8.8.8/v1", False),
        (None, False),
        ("nonsense", False),
    ],
)
def test_which_servers_are_ones_own(base_url: str | None, near: bool) -> None:
    assert is_near(base_url) is near
