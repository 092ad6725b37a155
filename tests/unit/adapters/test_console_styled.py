"""An answer to one question, as a terminal shows it."""

from __future__ import annotations

import pytest

from adapters.console.interactive import styled
from adapters.console.rendering import _COLOURED, _code, _lines_in_colours
from adapters.console.wrapping import VERBATIM


def test_an_answer_is_laid_out_for_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    shown = styled("**Bold** and \x1b[2Jmore\n\n- one\n")
    assert "**" not in shown
    assert "\x1b[0;1mBold" in shown
    assert "\x1b[2J" not in shown
    assert shown.endswith("one\x1b[0m")


@pytest.mark.parametrize("language", ["python", None, "no language"])
def test_code_keeps_its_empty_lines(language: str | None) -> None:
    rows = ["".join(text for _, text in row) for row in _lines_in_colours("\n\nx = 1\n\n", language)]
    assert rows == ["", "", "x = 1", "", ""]


@pytest.mark.parametrize(("more", "plain"), [(-1, 0), (0, 0), (2, 2)])
def test_only_the_newest_lines_of_long_code_have_colours(more: int, plain: int) -> None:
    count = _COLOURED + more
    rows = [*_code("\n".join(f"x = {number}" for number in range(count)), "python")]
    assert ["".join(text for _, text in row) for row in rows] == [f"x = {number}" for number in range(count)]
    assert [len(row) == 1 and row[0][0] == VERBATIM for row in rows] == [True] * plain + [False] * (count - plain)
