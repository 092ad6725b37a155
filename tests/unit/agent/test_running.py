"""What is seen of the turns that run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.agent.running import Phase, RunningTurn, RunningTurns, at_work
from gateway.domain.chat import SessionKey, Source


def turn(chat: str, alive_at: float, phase: Phase = "thinking", again_at: float = 0.0) -> RunningTurn:
    source = Source(platform="p", chat=chat, chat_type="direct", user="u")
    key = SessionKey(platform="p", chat=chat)
    return RunningTurn(
        key=key, source=source, started_at=0.0, alive_at=alive_at, end=print, phase=phase, again_at=again_at
    )


def test_the_model_is_silent_since_the_longest_silent_turn_that_waits_for_it() -> None:
    nothing: Any = None
    turns = RunningTurns(background=nothing)
    turns.enter(turn("1", 5.0, "running tools"))
    turns.enter(turn("2", 6.0, again_at=40.0))
    assert turns.silent_since(30.0) is None
    turns.enter(turn("3", 20.0))
    turns.enter(turn("4", 10.0))
    assert turns.silent_since(30.0) == 10.0
    assert turns.silent_since(40.0) == 6.0, "the pause is over"


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        ([("shell", '{"command": "make\\n test", "seconds": 5}')], ["running `make test`"]),
        ([("clock", "no JSON")], ["looking up the time"]),
        ([("shell", '{"command": "ls"}'), ("github_add", "[]")], ["running `ls`", "using github add"]),
    ],
)
def test_what_tools_do_is_told_in_words(calls: list[tuple[str, str]], told: list[str]) -> None:
    made: Any = [{"function": {"name": name, "arguments": arguments}} for name, arguments in calls]
    assert at_work(made, str) == told


def test_what_a_tool_is_given_is_shown_without_its_secrets_however_deep_it_is() -> None:
    def call(arguments: str) -> Any:
        return {"id": "c", "type": "function", "function": {"name": "shell", "arguments": arguments}}

    def hidden(text: str) -> str:
        return text.replace("s3cret-key", "…")

    command = json.dumps({"command": "x" * 55 + " s3cret-key"})
    assert at_work([call(command), call("[" * 50_000)], hidden) == [f"running `{'x' * 55} …`", "running a command"]
