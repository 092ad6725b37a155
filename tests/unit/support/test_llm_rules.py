"""The emulator refuses what the real API refuses: a lax one would prove nothing."""

from copy import deepcopy
from typing import Any

import pytest

from tests.emulators.llm_rules import violations

CALL = {"id": "c1", "type": "function", "function": {"name": "t", "arguments": "{}"}}
VALID: dict[str, Any] = {
    "model": "m",
    "stream": True,
    "stream_options": {"include_usage": True},
    "tools": [{"type": "function", "function": {"name": "t", "parameters": {"type": "object"}}}],
    "messages": [
        {"role": "system", "content": "S"},
        {"role": "user", "content": [{"type": "text", "text": "U"}]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": ""},
        {"role": "assistant", "content": "A"},
        {"role": "user", "content": "U"},
    ],
}
USER = {"role": "user", "content": "U"}


def with_messages(*messages: Any) -> dict[str, Any]:
    return {"model": "m", "messages": list(messages)}


def test_a_valid_request_is_valid() -> None:
    assert list(violations(VALID)) == []


def picture(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def sound(data: str, form: str) -> dict[str, Any]:
    return {"type": "input_audio", "input_audio": {"data": data, "format": form}}


def test_pictures_and_sounds_are_taken() -> None:
    parts = [{"type": "text", "text": "U"}, picture("data:image/jpeg;base64,/9j/4AAQ"), sound("AAAA", "mp3")]
    assert list(violations(with_messages({**USER, "content": parts}))) == []


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {"messages": [USER]},
        {**VALID, "model": ""},
        {**VALID, "colour": "blue"},
        {**VALID, "stream": "yes"},
        {**VALID, "stream": False},
        {**VALID, "max_tokens": 0},
        {**VALID, "max_tokens": 1, "max_completion_tokens": 1},
        {**VALID, "tools": []},
        {**VALID, "tools": [{"type": "function", "function": {"name": "no spaces"}}]},
        {**VALID, "tools": [{"type": "function", "function": {"name": "t", "parameters": {}}}]},
        {**VALID, "tools": VALID["tools"] * 2},
        {"model": "m", "messages": [USER], "tool_choice": "none"},
        with_messages(),
        with_messages("U"),
        with_messages({"role": "robot", "content": "U"}),
        with_messages({**USER, "_legato": {"id": "m1"}}),
        with_messages({**USER, "name": "two words"}),
        with_messages({**USER, "content": ""}),
        with_messages({**USER, "content": []}),
        with_messages({**USER, "content": 7}),
        with_messages({**USER, "content": None}),
        with_messages({**USER, "content": "\ud83d"}),
        with_messages({**USER, "content": [{"type": "text", "text": ""}]}),
        with_messages({**USER, "content": [{"type": "text", "text": "U", "cache_control": {}}]}),
        with_messages({**USER, "content": [{"type": "image_url", "image_url": {"url": "file:///x"}}]}),
        with_messages({**USER, "content": [picture("legato-file:abc")]}),
        with_messages({**USER, "content": [picture("data:image/png;base64,")]}),
        with_messages({**USER, "content": [picture("data:image/png;base64,!!!!")]}),
        with_messages({**USER, "content": [picture("data:image/png;base64,/9j/4AAQ")]}),  # a JPEG
        with_messages({**USER, "content": [picture("data:image/bmp;base64,Qk0AAAAA")]}),
        with_messages({**USER, "content": [sound("AAAA", "ogg")]}),
        with_messages({**USER, "content": [sound("legato-file:abc", "wav")]}),
        with_messages({**USER, "content": [{"type": "input_audio", "input_audio": "AAAA"}]}),
        with_messages({"role": "assistant", "content": [sound("AAAA", "wav")]}),
        with_messages({"role": "system", "content": "S"}),
        with_messages({"role": "assistant", "content": "A"}, USER),
        with_messages(USER, {"role": "assistant", "content": None}),
        with_messages(USER, {"role": "assistant", "content": "A", "reasoning_content": "R"}),
        with_messages(USER, {"role": "assistant", "content": "A", "tool_calls": []}),
        with_messages(USER, {"role": "assistant", "content": None, "tool_calls": [CALL]}),
        with_messages(USER, {"role": "assistant", "content": None, "tool_calls": [CALL]}, USER),
        with_messages(USER, {"role": "tool", "tool_call_id": "c1", "content": "R"}),
        with_messages(
            USER,
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c2", "content": "R"},
        ),
        with_messages(
            USER,
            {"role": "assistant", "content": None, "tool_calls": [{**CALL, "id": "x" * 41}]},
            {"role": "tool", "tool_call_id": "x" * 41, "content": "R"},
        ),
        with_messages(
            USER,
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{**CALL, "function": {"name": "t", "arguments": "{"}}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "R"},
        ),
    ],
)
def test_an_invalid_request_is_not(body: Any) -> None:
    before = deepcopy(body)
    assert list(violations(body))
    assert body == before
