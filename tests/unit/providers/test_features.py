"""The features that models refuse, in the words of their servers, and the request without them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.domain.message import Message, assistant, tool_result, user
from gateway.providers.anthropic.codec import encode_request as messages_request
from gateway.providers.base import Feature, ModelRequest, ModelSpec
from gateway.providers.errors import classify
from gateway.providers.features import without
from gateway.providers.openai.codec import encode_request as chat_request
from gateway.providers.openai_responses.codec import encode_request as responses_request
from gateway.providers.plugin import ModelSettings
from gateway.runtime.errors import FeatureRefused

REFUSALS: list[tuple[Feature, int, str]] = [
    # https://github.com/ollama/ollama/issues/11131
    ("tools", 400, "registry.ollama.ai/library/deepseek-r1:14b does not support tools"),
    # https://github.com/langchain4j/langchain4j/issues/3475
    ("tools", 400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    ("tools", 404, "No endpoints found that support tool use. Try disabling the tool."),
    ("tools", 500, "tools param requires --jinja flag"),
    ("tools", 400, "This model doesn't support tool use."),
    ("tools", 400, "Function calling is not enabled for models/gemma-3-4b-it"),
    ("tools", 400, "Function call is not supported for this model."),
    ("tools", 400, "当前模型不支持 function call"),
    ("stream", 400, "Your organization must be verified to stream this model. Please go to the settings."),
    (
        "stream",
        400,
        "Unsupported value: 'stream' does not support true with this model. Only the default is supported.",
    ),
    ("stream", 400, "This model doesn't support tool use in streaming mode."),
    ("stream", 400, "Streaming is not supported for this model"),
    # https://github.com/Laisky/one-api/issues/60
    (
        "schema_extras",
        400,
        'Invalid JSON payload received. Unknown name "additionalProperties" at '
        "'tools[0].function_declarations[0].parameters': Cannot find field.",
    ),
    # https://github.com/zed-extensions/mcp-server-brave-search/issues/12
    (
        "schema_extras",
        400,
        'Invalid JSON payload received. Unknown name "const" at '
        "'tools[0].function_declarations[5].parameters.properties[8].value.any_of[0]': Cannot find field.",
    ),
    # https://github.com/OpenHands/OpenHands/issues/4131
    ("temperature", 400, "Unsupported value: 'temperature' does not support 0.0 with this model. Only 1 is supported."),
    ("temperature", 400, "`temperature` is deprecated for this model."),
    ("reasoning_effort", 400, "Unsupported parameter: 'reasoning_effort' is not supported with this model."),
    ("thinking", 400, '"llama3.2:1b" does not support thinking'),
    ("system_role", 400, "System role not supported"),
    ("system_role", 400, "Developer instruction is not enabled for models/gemma-3-27b-it"),
    ("system_role", 400, "Unsupported value: 'messages[0].role' does not support 'system' with this model."),
    ("system_role", 400, "This model doesn't support system messages. Try again without a system message."),
    # https://github.com/anomalyco/opencode/issues/5034
    ("system_role", 500, "Only user, assistant and tool roles are supported, got system."),
    # https://github.com/EricLBuehler/mistral.rs/issues/45
    ("system_role", 400, "Conversation roles must alternate user/assistant/user/assistant/..."),
    ("parallel_calls", 500, "This model only supports single tool-calls at once!"),
    ("tool_choice", 400, "deepseek-reasoner does not support this tool_choice"),
    ("tool_choice", 404, "No endpoints found that support the provided 'tool_choice' value."),
    ("reasoning_effort", 400, "The thinking budget 0 is invalid. Please choose a value between 128 and 32768."),
]
OTHERS = [
    (400, "max_tokens must be at least 1"),
    (400, "Invalid 'tools[0].function.name': string does not match pattern."),
    (400, "messages with role 'tool' must be a response to a preceding message with 'tool_calls'"),
    (404, "The model `gpt-9` does not exist or you do not have access to it."),
    (400, "Unrecognized request argument supplied: stream_options"),
    (500, "The server had an error while processing your request."),
    (400, "Invalid schema for function 'x': In context=(), 'required' is required to be supplied."),
]


@pytest.mark.parametrize(("feature", "status", "text"), REFUSALS, ids=lambda value: str(value)[:40])
def test_what_is_refused(feature: Feature, status: int, text: str) -> None:
    error = classify(status, json.dumps({"error": {"message": text}}, ensure_ascii=True), {})
    assert isinstance(error, FeatureRefused)
    assert (error.feature, error.status) == (feature, status)


@pytest.mark.parametrize(("status", "text"), OTHERS)
def test_what_is_about_something_else(status: int, text: str) -> None:
    assert not isinstance(classify(status, json.dumps({"error": {"message": text}}), {}), FeatureRefused)


def tool(**schema: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "look", "description": "d", "parameters": schema}}


def call(call_id: str) -> Any:
    return {"id": call_id, "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}


TALK: list[Message] = [
    {"role": "system", "content": "Be kind."},
    user("Look twice."),
    assistant("I look.", [call("a"), call("b")]),
    tool_result("a", "a tree"),
    tool_result("b", "a house"),
    assistant("A tree and a house."),
    user("Thanks."),
]


def said(request: ModelRequest) -> list[tuple[str, Any]]:
    return [(message["role"], message.get("content")) for message in request.messages]


def test_without_tools_their_calls_are_told() -> None:
    request = without(ModelRequest(messages=TALK, tools=[tool()]), frozenset({"tools"}))
    assert not request.tools
    assert said(request) == [
        ("system", "Be kind."),
        ("user", "Look twice."),
        ("assistant", 'I look.\n[Called look: {"at": 1}]\n[Called look: {"at": 1}]'),
        ("user", "[Result of look]\na tree\n\n[Result of look]\na house"),
        ("assistant", "A tree and a house."),
        ("user", "Thanks."),
    ]
    assert all("tool_calls" not in message for message in request.messages)


def test_without_a_choice_of_tools_the_model_chooses() -> None:
    request = ModelRequest(messages=TALK, tools=[tool()], tool_choice="none")
    assert without(request, frozenset({"tool_choice"})).tool_choice == "auto"


def test_without_a_system_role_the_user_says_it() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:,"}}
    seen: Message = {"role": "user", "content": [picture]}
    request = without(ModelRequest(messages=[TALK[0], seen]), frozenset({"system_role"}))
    assert said(request) == [("user", [{"type": "text", "text": "Be kind."}, picture])]
    request = without(ModelRequest(messages=TALK[:2]), frozenset({"system_role"}))
    assert said(request) == [("user", "Be kind.\n\nLook twice.")]


def test_without_parallel_calls_each_has_a_message() -> None:
    request = without(ModelRequest(messages=TALK, tools=[tool()]), frozenset({"parallel_calls"}))
    calls = [[each["id"] for each in message.get("tool_calls", ())] for message in request.messages]
    assert [message["role"] for message in request.messages][2:6] == ["assistant", "tool", "assistant", "tool"]
    assert calls[2:6] == [["a"], [], ["b"], []]
    assert [message.get("tool_call_id") for message in request.messages][3:6:2] == ["a", "b"]


def test_a_plain_schema_keeps_its_arguments() -> None:
    rich = tool(
        type="object",
        properties={"const": {"type": "string", "minLength": 1}, "list": {"type": "array", "items": {"const": 1}}},
        required=["const"],
        additionalProperties=False,
    )
    request = without(ModelRequest(messages=TALK, tools=[rich]), frozenset({"schema_extras"}))
    assert request.tools[0]["function"]["parameters"] == {
        "type": "object",
        "properties": {"const": {"type": "string"}, "list": {"type": "array", "items": {}}},
        "required": ["const"],
    }
    assert rich["function"]["parameters"]["additionalProperties"] is False


def test_nothing_is_changed_where_nothing_is_refused() -> None:
    request = ModelRequest(messages=TALK)
    assert without(request, frozenset()) is request


@pytest.mark.parametrize(
    ("encode", "effort"),
    [
        (chat_request, {"reasoning_effort": "low"}),
        (messages_request, {"output_config": {"effort": "low"}}),
        (responses_request, {"reasoning": {"effort": "low"}}),
    ],
)
def test_every_api_sends_what_the_settings_say(encode: Any, effort: dict[str, Any]) -> None:
    settings = ModelSettings(temperature=0.5, reasoning_effort="low", extra_body={"top_k": 3})
    spec = ModelSpec(provider="p", name="m", settings=settings)
    body = encode(spec, ModelRequest(messages=TALK))
    assert body.items() >= {"temperature": 0.5, "top_k": 3, **effort}.items()
    omit: frozenset[Feature] = frozenset({"temperature", "reasoning_effort"})
    assert not {"temperature", *effort} & encode(spec, ModelRequest(messages=TALK, omit=omit)).keys()
