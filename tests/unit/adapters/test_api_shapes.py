"""Requests as the programs of others send them, and answers as those read them."""

import json
from typing import Any

import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from adapters.api.responses_shapes import read_response
from adapters.api.shapes import (
    DONE,
    MOST_TOOLS,
    ApiError,
    ChatRequest,
    Chunks,
    Piece,
    Turn,
    busy,
    model_list,
    no_key,
    read_chat,
)
from gateway.domain.chat import Returns
from gateway.domain.message import ToolCall
from gateway.domain.usage import CanonicalUsage

HELLO = [{"role": "user", "content": "Hello"}]
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a town.",
        "parameters": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
    },
}
CALL: ToolCall = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"town":"Bonn"}'},
}
PDF = "data:application/pdf;base64,JVBERg"
USAGE = CanonicalUsage(input_tokens=7, output_tokens=5, cache_read_tokens=3, reasoning_tokens=2)
CALLS = Returns(finish="tool_calls", calls=(CALL,), usage=USAGE)


def read(**fields: Any) -> ChatRequest:
    """A request of these fields, read."""
    return read_chat(json.dumps({"model": "legato", "messages": HELLO, **fields}).encode())


def refusal(**fields: Any) -> ApiError:
    """The error of a request of these fields."""
    with pytest.raises(ApiError) as caught:
        read(**fields)
    return caught.value


CLIENTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "Open WebUI": (
        {
            "stream": True,
            "model": "legato",
            "messages": [
                {"role": "system", "content": "You are a pirate."},
                {"role": "user", "content": "Hello"},
                {"role": "assistant", "content": "Ahoy!"},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "What is this?"},
                        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
                    ],
                },
            ],
            "temperature": 0.7,
            "max_tokens": 128,
            "stream_options": {"include_usage": True},
        },
        {
            "system": "You are a pirate.",
            "turns": (
                Turn(role="user", text="Hello"),
                Turn(role="assistant", text="Ahoy!"),
                Turn(
                    role="user",
                    text="What is this?",
                    pieces=(
                        Piece(
                            kind="image",
                            url="data:image/png;base64,iVBORw==",
                            param="messages[3].content[1].image_url.url",
                        ),
                    ),
                ),
            ),
            "settings": {"temperature": 0.7, "max_tokens": 128},
            "stream": True,
            "include_usage": True,
        },
    ),
    "LibreChat": (
        {
            "model": "legato",
            "temperature": 1,
            "top_p": 1,
            "presence_penalty": 0,
            "frequency_penalty": 0,
            "user": "66f1c0ffee",
            "stream": True,
            "stream_options": {"include_usage": True},
            "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}],
        },
        {
            "turns": (Turn(role="user", text="Hello"),),
            "settings": {"temperature": 1.0, "top_p": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0},
            "stream": True,
            "include_usage": True,
            "user": "66f1c0ffee",
        },
    ),
    "n8n": (
        {
            "model": "legato",
            "n": 1,
            "stream": False,
            "logit_bias": None,
            "logprobs": None,
            "functions": None,
            "stop": None,
            "response_format": {"type": "text"},
            "messages": HELLO,
            "tools": [WEATHER],
            "tool_choice": "auto",
        },
        {"turns": (Turn(role="user", text="Hello"),), "tools": (WEATHER,)},
    ),
    "llm": (
        {"messages": HELLO, "model": "legato", "stream": True, "stream_options": {"include_usage": True}, "seed": 7},
        {"turns": (Turn(role="user", text="Hello"),), "stream": True, "include_usage": True, "settings": {"seed": 7}},
    ),
    "Home Assistant": (
        {
            "model": "legato",
            "messages": [
                {"role": "system", "content": "You control a house."},
                {"role": "user", "content": "What is the weather?", "name": "anna"},
                {"role": "assistant", "content": None, "tool_calls": [CALL]},
                {"role": "tool", "tool_call_id": "call_1", "content": '{"sun": true}'},
            ],
            "max_completion_tokens": 150,
            "user": "01JA",
            "tools": [WEATHER],
            "parallel_tool_calls": False,
        },
        {
            "system": "You control a house.",
            "turns": (
                Turn(role="user", text="What is the weather?", name="anna"),
                Turn(role="assistant", calls=(CALL,)),
                Turn(role="tool", text='{"sun": true}', call_id="call_1"),
            ),
            "tools": (WEATHER,),
            "settings": {"max_tokens": 150, "parallel_tool_calls": False},
            "user": "01JA",
        },
    ),
    "litellm": (
        {
            "model": "legato",
            "messages": HELLO,
            "stop": "END",
            "metadata": {"chat_id": "c1", "tags": ["a"]},
            "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}},
        },
        {
            "turns": (Turn(role="user", text="Hello"),),
            "settings": {
                "stop": ["END"],
                "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}},
            },
            "metadata": {"chat_id": "c1"},
        },
    ),
    "openai": (
        {
            "model": "legato",
            "store": True,
            "service_tier": "auto",
            "messages": [
                {"role": "developer", "content": "Be brief."},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "Read it."},
                        {"type": "file", "file": {"filename": "a.pdf", "file_data": PDF}},
                        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
                    ],
                },
            ],
            "tools": [WEATHER],
            "tool_choice": {"type": "function", "function": {"name": "get_weather"}},
        },
        {
            "system": "Be brief.",
            "turns": (
                Turn(
                    role="user",
                    text="Read it.",
                    pieces=(
                        Piece(
                            kind="document",
                            url=PDF,
                            name="a.pdf",
                            param="messages[1].content[1].file.file_data",
                        ),
                        Piece(
                            kind="voice",
                            url="data:audio/wav;base64,UklGRg==",
                            name="voice.wav",
                            param="messages[1].content[2].input_audio.data",
                        ),
                    ),
                ),
            ),
            "tools": (WEATHER,),
            "tool_choice": {"type": "function", "function": {"name": "get_weather"}},
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("client", CLIENTS)
def test_the_programs_of_others_are_understood(client: str) -> None:
    """What each of them sends comes out as it was meant."""
    sent, meant = CLIENTS[client]
    assert read_chat(json.dumps(sent).encode()) == ChatRequest(model="legato", **meant)


def test_files_are_taken_out_of_their_addresses() -> None:
    """A data URL in base64, with or without the signs at its end, or percent signs."""
    kinds = {
        "data:application/pdf;base64,JVBERg": ("application/pdf", b"%PDF"),
        "data:image/png;charset=x;base64,JVBERg==": ("image/png", b"%PDF"),
        "data:,a%20b": ("application/octet-stream", b"a b"),
    }
    for url, found in kinds.items():
        assert Piece(kind="document", url=url).content() == found
    for wrong in ("data:image/png;base64", "data:image/png;base64,%%%", "https://example.org/a.png"):
        with pytest.raises(ApiError) as caught:
            Piece(kind="image", url=wrong, param="messages[0].content[0].image_url.url").content()
        assert (caught.value.status, caught.value.param) == (400, "messages[0].content[0].image_url.url")


def test_halves_of_characters_are_replaced() -> None:
    """JavaScript cuts a text in the midst of a character."""
    assert read_chat(b'{"model":"m","messages":[{"role":"user","content":"a\\ud83d"}]}').turns[0].text == "a?"
    smile = b'{"model":"m","messages":[{"role":"user","content":"\\ud83d\\ude00"}]}'
    assert read_chat(smile).turns[0].text == "😀"


ORPHAN = [*HELLO, {"role": "tool", "tool_call_id": "call_9", "content": "x"}]
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"n": 2}, "n"),
    ({"n": "1"}, "n"),
    ({"logit_bias": {"50256": -100}}, "logit_bias"),
    ({"logprobs": True}, "logprobs"),
    ({"modalities": ["text", "audio"], "audio": {"voice": "ash"}}, "audio"),
    ({"functions": [{"name": "f"}]}, "functions"),
    ({"web_search_options": {}}, "web_search_options"),
    ({"model": ""}, "model"),
    ({"model": 4}, "model"),
    ({"messages": []}, "messages"),
    ({"messages": "hello"}, "messages"),
    ({"messages": [{"role": "system", "content": "x"}]}, "messages"),
    ({"messages": [*HELLO, {"role": "assistant", "content": "x"}]}, "messages"),
    ({"messages": [{"role": "function", "content": "x"}]}, "messages[0].role"),
    ({"messages": [{"content": "x"}]}, "messages[0].role"),
    ({"messages": [{"role": "user", "content": {"text": "x"}}]}, "messages[0].content"),
    ({"messages": [{"role": "user", "content": [{"type": "video_url"}]}]}, "messages[0].content[0].type"),
    ({"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}]},
     "messages[0].content[0].file.file_id"),
    ({"messages": ORPHAN}, "messages[1].tool_call_id"),
    ({"messages": [*HELLO, {"role": "tool", "content": "x"}]}, "messages[1].tool_call_id"),
    ({"temperature": 3}, "temperature"),
    ({"temperature": "hot"}, "temperature"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"max_completion_tokens": True}, "max_completion_tokens"),
    ({"stop": 5}, "stop"),
    ({"seed": 2**80}, "seed"),
    ({"response_format": {"type": "xml"}}, "response_format.type"),
    ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
    ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
    ({"tools": [WEATHER, WEATHER]}, "tools[1].function.name"),
    ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name"),
    ({"tools": [WEATHER] * (MOST_TOOLS + 1)}, "tools"),
    ({"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "f"}}}, "tool_choice"),
    ({"tools": [WEATHER], "tool_choice": "any"}, "tool_choice"),
    ({"tool_choice": "required"}, "tool_choice"),
    ({"stream_options": []}, "stream_options"),
    ({"user": "x" * 600}, "user"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "param"), REFUSED, ids=[f"{n}-{param}" for n, (_, param) in enumerate(REFUSED)])
def test_what_cannot_be_followed_is_refused_by_name(fields: dict[str, Any], param: str) -> None:
    """Nothing that would change the answer is dropped silently."""
    error = refusal(**fields)
    assert (error.status, error.param) == (400, param)
    assert json.loads(error.body())["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'"x"', b"\xff", b"[" * 100_000, b'{"a":NaN}', b'{"seed":1e999}'])
def test_what_is_no_json_object_is_refused(body: bytes) -> None:
    """Bytes of any kind get an answer in words."""
    with pytest.raises(ApiError) as caught:
        read_chat(body)
    assert (caught.value.status, caught.value.code) == (400, "invalid_json")


def test_a_front_ends_own_errands_are_told_apart() -> None:
    """Open WebUI asks for a chat's title under the chat's id."""
    task = [{"role": "user", "content": "### Task:\nGenerate a concise, 3-5 word title"}]
    assert read(messages=task).is_errand
    assert not read().is_errand


CHUNKS = Chunks(id="chatcmpl-1", model="legato", created=5, include_usage=True)


def test_an_answer_is_what_openais_client_reads() -> None:
    """Words, calls and tokens of an answer in one piece."""
    whole = ChatCompletion.model_validate_json(CHUNKS.whole("Good\ud83d day", Returns(usage=USAGE)), strict=True)
    assert whole.choices[0].message.content == "Good? day"
    assert whole.choices[0].finish_reason == "stop"
    assert whole.usage is not None
    assert (whole.usage.prompt_tokens, whole.usage.completion_tokens, whole.usage.total_tokens) == (10, 5, 15)
    calls = ChatCompletion.model_validate_json(CHUNKS.whole("", CALLS))
    assert calls.choices[0].finish_reason == "tool_calls"
    assert calls.choices[0].message.content is None
    assert calls.choices[0].message.model_dump()["tool_calls"][0]["function"] == CALL["function"]


def test_a_stream_is_what_openais_client_reads() -> None:
    """The role first, words, calls, the end, the usage, and that it is done."""
    sent = CHUNKS.opening() + CHUNKS.thought("…") + CHUNKS.words("Good") + CHUNKS.ending("Good", CALLS)
    assert sent.endswith(DONE)
    events = [part.removeprefix(b"data: ") for part in sent.removesuffix(DONE).split(b"\n\n")[:-1]]
    read = [ChatCompletionChunk.model_validate_json(event) for event in events]
    deltas = [each.choices[0].delta for each in read if each.choices]
    assert deltas[0].role == "assistant"
    assert deltas[2].content == "Good"
    assert deltas[3].tool_calls is not None
    assert deltas[3].tool_calls[0].index == 0
    assert [each.choices[0].finish_reason for each in read if each.choices] == [None, None, None, None, "tool_calls"]
    assert read[-1].choices == []
    assert read[-1].usage is not None
    assert read[-1].usage.total_tokens == 15


RESPONSES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    # npm's `ai` with @ai-sdk/openai
    (
        {
            "input": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": [{"type": "input_text", "text": "How is it?"}]},
                {"type": "reasoning", "id": "rs_1", "summary": []},
                {"role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
                {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": '{"town":"Bonn"}'},
                {"type": "function_call_output", "call_id": "call_1", "output": "dry"},
            ],
            "tools": [{"type": "function", **WEATHER["function"], "strict": False}],
            "tool_choice": {"type": "function", "name": "get_weather"},
            "text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "object"}}, "verbosity": "low"},
            "reasoning": {"effort": "low"},
            "store": True,
            "include": ["reasoning.encrypted_content"],
        },
        {
            "system": "Be brief.",
            "turns": (
                Turn(role="user", text="How is it?"),
                Turn(role="assistant", text="I look.", calls=(CALL,)),
                Turn(role="tool", text="dry", call_id="call_1"),
            ),
            "tools": ({"type": "function", "function": {**WEATHER["function"], "strict": False}},),
            "tool_choice": {"type": "function", "function": {"name": "get_weather"}},
            "settings": {
                "verbosity": "low",
                "reasoning_effort": "low",
                "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}},
            },
        },
    ),
    # n8n
    (
        {"input": "Hello", "instructions": "Be brief.", "max_output_tokens": 9, "stream": True, "temperature": 0.5},
        {
            "system": "Be brief.",
            "turns": (Turn(role="user", text="Hello"),),
            "settings": {"max_tokens": 9, "temperature": 0.5},
            "stream": True,
        },
    ),
    (
        {
            "input": [
                {
                    "role": "user",
                    "content": [
                        {"type": "input_image", "image_url": "data:image/png;base64,iVBORw=="},
                        {"type": "input_file", "filename": "a.pdf", "file_data": PDF},
                    ],
                }
            ]
        },
        {
            "turns": (
                Turn(
                    role="user",
                    pieces=(
                        Piece(
                            kind="image",
                            url="data:image/png;base64,iVBORw==",
                            param="input[0].content[0].image_url.url",
                        ),
                        Piece(kind="document", url=PDF, name="a.pdf", param="input[0].content[1].file.file_data"),
                    ),
                ),
            )
        },
    ),
]


@pytest.mark.parametrize(("sent", "meant"), RESPONSES)
def test_a_request_of_responses_is_one_of_chat_completions(sent: dict[str, Any], meant: dict[str, Any]) -> None:
    """By other names."""
    assert read_response({"model": "legato", **sent}) == (ChatRequest(model="legato", **meant), "")


REFUSED_RESPONSES: list[tuple[dict[str, Any], str | None]] = [
    ({"input": []}, "input"),
    ({"input": 5}, "input"),
    ({"input": [5]}, "input[0].type"),
    ({"input": [{"type": "web_search_call"}]}, "input[0].type"),
    ({"input": [{"role": "robot", "content": "x"}], "instructions": "y"}, "input[0].role"),
    ({"input": "x", "instructions": 5}, "instructions"),
    ({"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]}, "input[0].tool_call_id"),
    ({"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]},
     "input[0].content[0].file.file_id"),
    ({"input": "x", "background": True}, "background"),
    ({"input": "x", "conversation": "conv_1"}, "conversation"),
    ({"input": "x", "previous_response_id": 5}, "previous_response_id"),
    ({"input": "x", "max_output_tokens": 0}, "max_output_tokens"),
    ({"input": "x", "text": []}, "text"),
    ({"input": "x", "text": {"format": {"type": "grammar"}}}, "text.format.type"),
    ({"input": "x", "tools": [{"type": "web_search"}]}, "tools[0].type"),
    ({"input": "x", "tools": {}}, "tools"),
    ({"input": "x", "tool_choice": {"type": "mcp"}}, "tool_choice"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "param"), REFUSED_RESPONSES)
def test_what_responses_cannot_follow_is_refused_by_its_name_there(fields: dict[str, Any], param: str) -> None:
    """As of Chat Completions."""
    with pytest.raises(ApiError) as caught:
        read_response({"model": "legato", **fields})
    assert (caught.value.status, caught.value.param) == (400, param)


def test_errors_tell_programs_what_to_do() -> None:
    """The headers that belong to a status."""
    assert no_key().headers() == {"WWW-Authenticate": "Bearer"}
    assert busy("Later.", 0.2).headers() == {"Retry-After": "1"}
    assert json.loads(busy("Later.", 3).body())["error"]["code"] == "rate_limit_exceeded"
    assert json.loads(model_list(["a"], 5))["data"][0]["id"] == "a"
