"""Which console `legato chat` opens."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.console import interactive, opening
from gateway.domain.chat import Source
from tests.support.hosts import host


async def another(_: Source) -> str:
    return "another"


@pytest.fixture(autouse=True)
def consoles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is only its name, and how it was made."""
    for module, name in ((opening, "JsonConsole"), (opening, "PipeConsole"), (interactive, "InteractiveConsole")):
        monkeypatch.setattr(module, name, lambda *_, name=name, **how: SimpleNamespace(name=name, **how))


def terminals(monkeypatch: pytest.MonkeyPatch, stdin: bool, stdout: bool, term: str) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: stdin))
    monkeypatch.setattr("sys.stdout", SimpleNamespace(isatty=lambda: stdout))
    monkeypatch.setenv("TERM", term)


@pytest.mark.parametrize(
    ("more", "there", "console"),
    [
        ({"as_json": True}, (True, True, "xterm"), "JsonConsole"),
        ({}, (True, True, "xterm"), "InteractiveConsole"),
        ({}, (False, True, "xterm"), "PipeConsole"),
        ({}, (True, False, "xterm"), "PipeConsole"),
        ({}, (True, True, "dumb"), "PipeConsole"),
        ({"question": "Why?"}, (True, True, "xterm"), "PipeConsole"),
    ],
)
def test_lines_are_redrawn_only_where_they_can_be(
    more: dict[str, Any], there: tuple[bool, bool, str], console: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminals(monkeypatch, *there)
    made: Any = opening.create(None, host(home=tmp_path, **more))
    assert made.name == console
    assert hasattr(made, "styled") is ("question" in more)


@pytest.mark.parametrize(("turns", "state"), [(0, "ready"), (1, "working")])
async def test_the_line_below_says_who_answers_and_whether_something_is_under_way(
    turns: int, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminals(monkeypatch, True, True, "xterm")
    made: Any = opening.create(None, host(home=tmp_path, model="m", model_of=another, turns_running=lambda: turns))
    assert made.toolbar().startswith(f" m  ·  {state}  ·")
    await made.look(Source(platform="console", chat="c", chat_type="direct", user="u"))
    assert made.toolbar().startswith(" another  ·")
