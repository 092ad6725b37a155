"""What the program prints, on terminals of every kind."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
import typer

from gateway import cli


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> io.BytesIO:
    """A terminal of western Europe, as in 1998."""
    shown = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(shown, encoding="latin-1"))
    return shown


ROWS: list[dict[str, Any]] = [{"title": "会议 “notes” \ud800"}]


def test_json_stays_whole_where_the_terminal_cannot_show_it(narrow: io.BytesIO) -> None:
    cli._print(ROWS, True, str)
    assert json.loads(narrow.getvalue()) == ROWS


def test_text_is_shown_as_far_as_the_terminal_can(narrow: io.BytesIO) -> None:
    cli._print(ROWS, False, lambda rows: rows[0]["title"])
    assert narrow.getvalue().decode("latin-1") == "?? ?notes? ?\n"


def test_a_reading_command_that_was_broken_off_ends_with_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "_settings", lambda path: None)
    monkeypatch.setattr(cli, "_guarded", lambda run: 130)

    async def ask(store: Any) -> None:
        """Never asked."""

    with pytest.raises(typer.Exit) as ended:
        cli._read(None, ask)
    assert ended.value.exit_code == 130
