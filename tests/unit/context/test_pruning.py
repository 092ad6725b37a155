"""Stubs, repeats, arguments and images; and results that are cut because nothing else helps."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.context.assembly import sanitize
from gateway.context.prompts import IMAGE_MARKER
from gateway.context.pruning import STUB_CHARS, prune, squeeze, stub_line
from gateway.context.readable import Call, calls_by_id, read_call, result_id
from gateway.domain.message import Message, note_of, text_of
from tests.support.transcripts import COUNTER, IMAGE, ObjectCall, call, counts_hold, tokens, transcripts


def _pruned(messages: list[Message], protected_from: int) -> list[Message]:
    return prune(messages, protected_from, calls_by_id(messages), COUNTER)


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


@settings(suppress_health_check=list(HealthCheck))
@given(transcripts())
def test_no_shape_raises_or_is_mutated_and_roles_stay(messages: list[Message]) -> None:
    messages = sanitize(messages)
    given_one = copy.deepcopy(messages)
    result = _pruned(messages, len(messages) - 2 if len(messages) > 2 else 0)
    assert messages == given_one
    assert [m["role"] for m in result] == [m["role"] for m in messages]
    tail = zip(result[-2:], messages[-2:], strict=True)  # an older picture becomes a mark there, too
    assert all(new is old for new, old in tail if new["role"] == "tool" and isinstance(old["content"], str))


PAD = " and so on" * 40


def _line(tool: str, arguments: Any, output: str, **more: Any) -> str:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return stub_line(Call(ids=("c",), name=tool, arguments=text), output, **more)


FAILED = "Traceback (most recent call last):\n" + "  File x\n" * 30 + "ValueError: bad"
LINES: dict[str, tuple[str, Any, str]] = {
    "[terminal] ran `npm test` → exit 0, 47 lines": ("terminal", {"command": "npm test"}, "x\n" * 46 + "exit code 0"),
    "[shell] ran `git status` → 60 lines": ("shell", {"cmd": ["git", "status"]}, "clean\n" * 60),
    "[pytest] path=a → 3 failed, 40 passed, 2 lines": ("pytest", {"path": "a"}, "." * 300 + "\n3 failed, 40 passed"),
    "[grep] path=src, pattern=TODO → 50 lines": ("grep", {"pattern": "TODO", "path": "src"}, "a.py:1: x\n" * 50),
    "[grep] pattern=X → No matches found, 316 characters": ("grep", {"pattern": "X"}, "No matches found" + " " * 300),
    "[search] query=cats → 40 items, ": ("search", {"query": "cats"}, json.dumps([{"n": n} for n in range(40)])),
    "[list] page=2 → 90 rows, ": ("list", {"page": 2}, json.dumps({"next": 3, "rows": [1] * 90})),
    "[deploy] env=prod → queued, ": ("deploy", {"params": {"env": "prod"}}, '{"status": "queued", "x": "' + PAD + '"}'),
    "[run] code=f() → error: ValueError: bad, 32 lines": ("run", {"code": "f()"}, FAILED),
    "[fetch] url=https://e.org → HTTP 503, 2 lines": ("fetch", {"url": "https://e.org"}, "HTTP/1.1 503 No\n" + PAD),
    "[weather] city=Łódź → 409 characters: Sunny now": ("weather", {"city": "Łódź"}, "Sunny now" + PAD),
    "[read_file] path=src/a.py → 120 lines": ("read_file", {"path": "src/a.py"}, "x = 1\n" * 120),
    "[get] url=x → error: not found": ("get", {"url": "x"}, '{"error": "not found' + "." * 200),
    "[clock] → 3,000 characters": ("clock", {}, "z" * 3_000),
    "[note] not json at all → 300 characters": ("note", "not json at all", "x" * 300),
    "[odd] 1 2 → 300 characters": ("odd", "[1, 2]", "x" * 300),
    "[tool] → 300 characters": ("tool", {}, "x" * 300),
}


@pytest.mark.parametrize("starts", LINES)
def test_a_line_says_which_tool_on_what_with_what_outcome_and_how_much(starts: str) -> None:
    line = _line(*LINES[starts])
    assert line.startswith(starts)
    assert len(line) <= STUB_CHARS


@given(st.text(max_size=30), st.text(max_size=400), st.text(max_size=3_000), st.integers(0, 3))
def test_any_result_of_any_tool_is_one_line(tool: str, arguments: str, output: str, images: int) -> None:
    line = _line(tool or "tool", arguments, output, images=images)
    assert 0 < len(line) <= STUB_CHARS
    assert _line(tool or "tool", {"command": output, "path": arguments}, arguments) is not None


def test_nothing_of_a_credential_is_cut_into_a_line_that_must_not_have_it() -> None:
    secret = "s3cr" + "et" * 60

    def redact(text: str) -> str:
        return text.replace(secret, "[REDACTED]")

    for output in (f"error: {secret} is wrong", f"Some words with {secret} in them{PAD}", f"exit 1 {secret}"):
        line = _line("curl", {"command": f"curl -H {secret} https://e.org"}, output, redact=redact)
        assert "s3cr" not in line


def test_images_of_a_result_that_nobody_looks_at_any_more_go_with_it() -> None:
    messages: list[Message] = [
        {"role": "assistant", "content": None, "tool_calls": [call("c", "camera", place="door")]},  # type: ignore[list-item]
        {"role": "tool", "tool_call_id": "c", "content": [IMAGE, {"type": "text", "text": "the door"}]},
        {"role": "user", "content": "thanks"},
    ]
    result = _pruned(messages, 2)
    assert text_of(result[1]) == "[camera] place=door → 8 characters, 1 image: the door"
    assert COUNTER.message(result[1]) < 40


def test_long_lists_and_unreadable_arguments_get_shorter_too() -> None:
    many: Any = call("a", "plot", points=list(range(5_000)))
    broken: Any = {"id": "b", "type": "function", "function": {"name": "t", "arguments": "{oops " * 500}}
    messages: list[Message] = [{"role": "assistant", "content": "", "tool_calls": [many, broken]}]
    [first, second] = _pruned(messages, 1)[0]["tool_calls"]
    assert json.loads(first["function"]["arguments"])["points"][-1] == "… [5,000 items]"
    assert json.loads(second["function"]["arguments"])["unreadable_arguments"].startswith("{oops ")
    assert COUNTER.text(str(first) + str(second)) < 400


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ('{"exit_code": 3}', "exit 3"),
        ("Exit Status: -2", "exit -2"),
        ("lexit 4, exit 5", "exit 5"),
        ("12 PASSED, 1234567 failed", "12 passed"),
        ("a7 passed, 8 Skipped", "8 skipped"),
        ('XHTTP/1.1 500 HTTP/2 404 "state": "on"', "HTTP 404"),
        ('"outcome" : "done" HTTP/2 404', "done"),
    ],
)
def test_an_outcome_is_told_by_whole_words(output: str, told: str) -> None:
    assert f" → {told}, " in _line("run", {}, output + " " * 300)


def _results(*sizes: int) -> list[Message]:
    return [{"role": "tool", "tool_call_id": f"c{n}", "content": f"word {n} " * size} for n, size in enumerate(sizes)]


@pytest.mark.parametrize("excess", [100, 1_000, 5_000, 8_000])
def test_results_are_cut_evenly_until_enough_is_gone(excess: int) -> None:
    messages = _results(20, 500, 2_000, 2_000)
    result = squeeze(messages, excess, COUNTER)
    assert tokens(messages) - tokens(result) >= excess
    assert result[0] is messages[0]
    assert abs(COUNTER.message(result[2]) - COUNTER.message(result[3])) < 10
    assert "characters left out" in text_of(result[3])


def test_what_cannot_be_enough_is_still_as_much_as_can_be() -> None:
    result = squeeze([*_results(500, 500), {"role": "user", "content": "word " * 900}], 100_000, COUNTER)
    assert [COUNTER.message(m) < 130 for m in result] == [True, True, False]
