"""Which console `legato chat` opens."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.console import adapter, interactive
from tests.support.hosts import host


@pytest.fixture(autouse=True)
def consoles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is only its name, and how it was made."""
    for module, name in ((adapter, "JsonConsole"), (adapter, "PipeConsole"), (interactive, "InteractiveConsole")):
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
    made: Any = adapter.create(None, host(home=tmp_path, **more))
    assert made.name == console
    assert (getattr(made, "styled", None) is not None) is ("question" in more)
