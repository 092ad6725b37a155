"""Stubs, repeats, arguments and images."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from gateway.context.assembly import sanitize
from gateway.context.prompts import IMAGE_MARKER
from gateway.context.pruning import prune, stub_line
from gateway.context.shapes import calls_by_id, read_call, result_id
from gateway.domain.message import Message, note_of
from tests.support.transcripts import COUNTER, IMAGE, ObjectCall, call, counts_hold, transcripts


def _pruned(messages: list[Message], protected_from: int) -> list[Message]:
    return prune(messages, protected_from, calls_by_id(messages), COUNTER)


@pytest.mark.parametrize(
    ("tool", "arguments", "output", "line"),
    [
        (
            "terminal",
            {"command": "npm test"},
            "ok\n" * 46 + "exit code: 0",
            "[terminal] ran `npm test` → exit 0, 47 lines",
        ),
        ("read_file", {"path": "src/a.py"}, "x = 1\n" * 120, "[read_file] path=src/a.py → 120 lines"),
        (
            "fetch",
            {"url": "https://e.org"},
            '{"error": "not found' + "." * 200,
            "[fetch] url=https://e.org → error: not found",
        ),
        ("clock", {}, "z" * 3_000, "[clock] → 3,000 characters"),
    ],
)
def test_a_long_result_becomes_one_informative_line(tool: str, arguments: Any, output: str, line: str) -> None:
    assert stub_line(read_call(call("c1", tool, **arguments)), output).startswith(line)


def test_a_stub_is_short_itself_and_survives_broken_arguments() -> None:
    broken = read_call({"id": "c", "function": {"name": "t" * 99, "arguments": "{not json" * 80}})
    assert len(stub_line(broken, "x" * 9_999)) <= 200
    assert stub_line(None, "a\n" * 200) == "[tool] → 200 lines"
    assert len(stub_line(read_call(call("c", command="y" * 999)), "exit 1" * 99)) <= 200


def test_only_what_is_long_and_unprotected_changes() -> None:
    messages: list[Message] = [
        {"role": "assistant", "content": None, "tool_calls": [call("a", command="x"), call("b")]},  # type: ignore[list-item]
        {"role": "tool", "tool_call_id": "a", "content": "long " * 80, "_legato": {"id": "7", "tokens": 99, "at": 3.0}},
        {"role": "tool", "tool_call_id": "b", "content": "short"},
        {"role": "tool", "tool_call_id": "c", "content": "long " * 80},
    ]
    result = _pruned(messages, 3)
    assert [new is old for new, old in zip(result, messages, strict=True)] == [True, False, True, True]
    assert note_of(result[1])["derived_from"] == ["7"]
    assert note_of(result[1])["at"] == 3.0
    assert "id" not in note_of(result[1])
    assert counts_hold(result[1:2])


def test_of_identical_results_the_newest_stays() -> None:
    text = "the very same output\n" * 30
    messages: list[Message] = [{"role": "tool", "tool_call_id": f"c{n}", "content": text} for n in range(3)]
    result = _pruned(messages, 2)
    assert [str(m["content"]).endswith("(same output as a later call)") for m in result] == [True, True, False]
    assert result[2] is messages[2]


def test_long_arguments_are_cut_inside_valid_json() -> None:
    made: Any = call("a", "write", path="x.py", text="y" * 5_000, nested={"list": ["z" * 900, 1, None]})
    messages: list[Message] = [{"role": "assistant", "content": "", "tool_calls": [made]}]
    given_one = copy.deepcopy(messages)
    arguments = json.loads(_pruned(messages, 1)[0]["tool_calls"][0]["function"]["arguments"])
    assert messages == given_one
    assert arguments["path"] == "x.py"
    assert arguments["text"].endswith("[5,000 characters]")
    assert len(arguments["nested"]["list"][0]) < 120
    assert arguments["nested"]["list"][1:] == [1, None]


def test_images_before_the_newest_ones_become_markers() -> None:
    messages: list[Message] = [
        {"role": "user", "content": [{"type": "text", "text": "first"}, IMAGE]},
        {"role": "user", "content": [IMAGE, IMAGE]},
        {"role": "user", "content": "no image"},
    ]
    result = _pruned(messages, 0)
    assert result[0]["content"] == [{"type": "text", "text": "first"}, {"type": "text", "text": IMAGE_MARKER}]
    assert result[1] is messages[1]
    assert result[2] is messages[2]


def test_calls_come_in_many_shapes() -> None:
    assert read_call(ObjectCall("o1")).ids == ("o1",)
    assert read_call({"id": "fc_1", "call_id": "call_1", "name": "flat", "arguments": {"a": 1}}).ids == (
        "fc_1",
        "call_1",
    )
    assert read_call({"name": "flat", "arguments": {"a": 1}}).arguments == '{"a": 1}'
    assert read_call(None).name == "tool"
    assert result_id({"role": "tool", "call_id": "c"}) == "c"
    assert result_id({"role": "tool", "tool_call_id": 5}) is None


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(transcripts())
def test_no_shape_raises_or_is_mutated_and_roles_stay(messages: list[Message]) -> None:
    messages = sanitize(messages)
    given_one = copy.deepcopy(messages)
    result = _pruned(messages, len(messages) - 2 if len(messages) > 2 else 0)
    assert messages == given_one
    assert [m["role"] for m in result] == [m["role"] for m in messages]
    assert all(new is old for new, old in zip(result[-2:], messages[-2:], strict=True) if new["role"] == "tool")
