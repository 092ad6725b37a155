"""One informative line for every tool's result, and results that are cut because nothing else helps."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.context.pruning import STUB_CHARS, prune, squeeze, stub_line
from gateway.context.shapes import Call, calls_by_id
from gateway.domain.message import Message, text_of
from tests.support.transcripts import COUNTER, IMAGE, call, tokens

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
    "[note] not json at all → 300 characters": ("note", "not json at all", "x" * 300),
    "[odd] 1 2 → 300 characters": ("odd", "[1, 2]", "x" * 300),
    "[tool] → 300 characters": ("tool", {}, "x" * 300),
}


@pytest.mark.parametrize("starts", LINES)
def test_a_line_says_which_tool_on_what_with_what_outcome_and_how_much(starts: str) -> None:
    line = _line(*LINES[starts])
    assert line.startswith(starts)
    assert len(line) <= STUB_CHARS


@settings(max_examples=150, deadline=None)
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
    result = prune(messages, 2, calls_by_id(messages), COUNTER)
    assert text_of(result[1]) == "[camera] place=door → 8 characters, 1 image: the door"
    assert COUNTER.message(result[1]) < 40


def test_long_lists_and_unreadable_arguments_get_shorter_too() -> None:
    many: Any = call("a", "plot", points=list(range(5_000)))
    broken: Any = {"id": "b", "type": "function", "function": {"name": "t", "arguments": "{oops " * 500}}
    messages: list[Message] = [{"role": "assistant", "content": "", "tool_calls": [many, broken]}]
    [first, second] = prune(messages, 1, {}, COUNTER)[0]["tool_calls"]
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
