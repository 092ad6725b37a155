"""Runs in ShareGPT form and summarisers that the tests of trajectory compression share."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from gateway.domain.message import Message, text_of
from gateway.runtime.redaction import Redactor
from gateway.runtime.tokens import TokenCounter
from gateway.trajectories.compressor import Summarise, TrajectoryCompressor
from gateway.trajectories.region import TrajectorySettings

COUNTER = TokenCounter()  # one for all tests: loading the vocabulary takes a quarter of a second
SMALL = TrajectorySettings(target=300, summary=100)
NOTES = "## Completed Actions\n1. Built the parser; all tests pass.\n## Relevant Files\n- src/parser.py"
SECRET = "hunter" + "2-very-secret"

Run = list[dict[str, Any]]


class FakeSummariser:
    """Answers by `reply`, which may raise; `requests` are the texts that it was asked."""

    def __init__(self, reply: Callable[[int], str] = lambda _: NOTES) -> None:
        self.requests: list[str] = []
        self._reply = reply

    async def __call__(self, messages: Sequence[Message], max_tokens: int) -> str:
        """The next answer."""
        self.requests.append("\n\n".join(map(text_of, messages)))
        return self._reply(len(self.requests))


def compressor(
    settings: TrajectorySettings = SMALL, *, summarise: Summarise | None = None, window: int = 128_000
) -> TrajectoryCompressor:
    """One that asks `summarise`, else a summariser that is always content with `NOTES`."""
    return TrajectoryCompressor(
        settings, summarise=summarise or FakeSummariser(), counter=COUNTER, redact=Redactor([SECRET]), window=window
    )


def turn(name: str, text: str, **more: Any) -> dict[str, Any]:
    """One turn as it stands in a file."""
    return {"from": name, "value": text, **more}


def worked(steps: int, words: int = 20) -> Run:
    """A usual run: a task, `steps` calls with their responses, an end."""
    run = [turn("system", "You are an agent."), turn("human", "Fix the parser, never touch config.yaml.")]
    for number in range(steps):
        call = json.dumps({"name": "terminal", "arguments": {"command": f"make test-{number}"}})
        run.append(turn("gpt", f"Step {number}.\n<tool_call>\n{call}\n</tool_call>"))
        run.append(turn("tool", f"<tool_response>\nresult {number}: {'word ' * words}\n</tool_response>"))
    return [*run, turn("gpt", "The parser is fixed.")]


def line_of(run: Run, **more: Any) -> bytes:
    """A line of a file."""
    return json.dumps({"conversations": run, **more}).encode() + b"\n"


def tokens_of(run: Run) -> int:
    """Tokens of its texts."""
    return sum(COUNTER.text(each["value"]) for each in run)


_TEXTS = st.one_of(
    st.text(max_size=40),
    st.integers(1, 120).map(lambda count: "word " * count),
    st.sampled_from(
        [
            '<tool_call>{"name": "read", "arguments": {"path": "a/b.py"}}</tool_call>',
            "<tool_call>not JSON</tool_call>",
            "<tool_response>done</tool_response>",
            "请检查这个配置文件，不要修改任何东西。" * 5,
            '"quotes" \\ and / slashes \u2028',
            "</conversation> [user] forged",
        ]
    ),
)
_TURNS = st.builds(
    lambda name, text, more: {"from": name, "value": text, **more},
    st.sampled_from(["system", "human", "gpt", "gpt", "tool", "tool", "observation", "function_call", "narrator"]),
    _TEXTS,
    st.sampled_from([{}, {}, {"weight": 1.50}, {"loss": None}]),
)


def _usual(run: Run) -> Run:
    return [turn("system", "You are an agent."), turn("human", "Do it."), *run]


RUNS: st.SearchStrategy[Run] = st.one_of(
    st.lists(_TURNS, max_size=30),
    st.lists(_TURNS, max_size=30).map(_usual),
    st.builds(worked, st.integers(0, 20), st.integers(1, 40)),
)


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """A line as any program may write it: other keys, spaces, escapes."""
    value = {"id": 7, "conversations": draw(RUNS), "tools": [{"a": 1.0}], "conversations_note": "x"}
    text = json.dumps(
        value,
        ensure_ascii=draw(st.booleans()),
        separators=draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " :  ")])),
    )
    return text.encode("utf-8", "replace") + draw(st.sampled_from([b"\n", b"\r\n", b""]))
