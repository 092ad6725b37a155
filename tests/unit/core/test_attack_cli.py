"""What the program prints, on terminals of every kind."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

import pytest
import typer

from gateway import cli


def on_a_narrow_terminal(rows: Any, *, as_json: bool, text: Callable[[Any], str]) -> bytes:
    """What is printed on a terminal of western Europe, as in 1998."""
    shown = io.BytesIO()
    with redirect_stdout(io.TextIOWrapper(shown, encoding="latin-1")) as terminal:
        cli._print(rows, as_json, text)
        terminal.flush()
        return shown.getvalue()


ROWS: list[dict[str, Any]] = [{"title": "会议 “notes” \ud800"}]


def test_json_stays_whole_where_the_terminal_cannot_show_it() -> None:
    assert json.loads(on_a_narrow_terminal(ROWS, as_json=True, text=str)) == ROWS


def test_text_is_shown_as_far_as_the_terminal_can() -> None:
    shown = on_a_narrow_terminal(ROWS, as_json=False, text=lambda rows: str(rows[0]["title"]))
    assert shown == b"?? ?notes? ?\n"


def test_a_reading_command_that_was_broken_off_ends_with_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "_settings", lambda path: None)
    monkeypatch.setattr(cli, "_guarded", lambda run: 130)

    async def ask(store: Any) -> None:
        """Never asked."""

    with pytest.raises(typer.Exit) as ended:
        cli._read(None, ask)
    assert ended.value.exit_code == 130
