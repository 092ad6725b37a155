"""The pure parts of the workspace: replacements and diffs, names."""

from __future__ import annotations

import difflib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.agent.workspace.edits import Edit, applied, changed_lines, diff
from gateway.agent.workspace.names import names_in, shown
from gateway.runtime.errors import ToolError

TEXT = "def one():\n    return 1\n\n\ndef two():\n    return 2\n"


def test_edits_are_made_one_after_another() -> None:
    edits = [Edit("return 1", "return two()"), Edit("two()\n", "2 + two()\n"), Edit("def two", "def three")]
    assert applied(TEXT, edits) == "def one():\n    return 2 + two()\n\n\ndef three():\n    return 2\n"


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ([Edit("return", "x")], r"`old` is there 2 times \(lines 2, 6\); add lines around it"),
        ([Edit("", "x")], "`old` is empty"),
        ([Edit("nothing like this", "x")], "No place in the file looks like it"),
        ([Edit("return 1", "x"), Edit("return 1", "y")], "`old` of edit 2 is not there"),
        ([Edit("def two():\n  return 2", "x")], r"differs in white space alone:\n5: def two\(\):\n6:     return 2\n"),
        ([Edit("def twos():", "x")], r"The nearest place is:\n5: def two\(\):\n"),
        ([Edit("    return 1\n\n\ndef tow():", "x")], r"2:     return 1\n3: \n4: \n5: def two\(\):\n"),
    ],
)
def test_what_does_not_fit_exactly_once_is_shown_where_it_nearly_does(edits: list[Edit], said: str) -> None:
    with pytest.raises(ToolError, match=said) as raised:
        applied(TEXT, edits)
    assert str(raised.value).endswith("Nothing was changed.")


def test_line_ends_of_windows_stay() -> None:
    assert applied("a\r\nb\r\n", [Edit("a\nb", "a\nc")]) == "a\r\nc\r\n"
    assert applied("a\r\nb\n", [Edit("b\n", "c\n")]) == "a\r\nc\n"


lines = st.lists(st.sampled_from(["", "a", "b", "  c", "-d", "+e", "@@ f", "\\ g"]), max_size=12)


@given(lines, lines)
def test_a_diff_says_what_changed_and_where(old: list[str], new: list[str]) -> None:
    before, after = ["".join(f"{line}\n" for line in each) for each in (old, new)]
    made = changed_lines(before, after)
    assert bool(made) == (before != after)
    rebuilt, at = list[str](), 0
    for line in made:
        if place := re.fullmatch(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@", line):
            first = int(place[1]) - 1
            rebuilt += old[at:first]
            at = first
        elif line[0] == "+":
            rebuilt.append(line[1:])
        else:
            assert old[at] == line[1:]
            rebuilt += [line[1:]] if line[0] == " " else []
            at += 1
    assert rebuilt + old[at:] == new


def test_a_diff_of_much_comes_to_an_end_and_is_bounded() -> None:
    many = "".join(f"{number % 150}\n" for number in range(40_000))
    assert len(diff(many, many.replace("7\n", "8\n"), "a")) < 21_000
    assert len(diff("x" * 1_000_000, "y" * 1_000_000, "a")) < 2_000
    with pytest.raises(ToolError):
        applied("ab " * 300_000, [Edit("ba " * 10_000, "")])


@given(st.text(max_size=60))
def test_no_name_leads_out_and_all_are_shown_on_one_line(text: str) -> None:
    assert not re.search(r"[\x00-\x1f\u202e]", shown(text))
    try:
        names = names_in(text)
    except ToolError:
        return
    assert not {"", ".", ".."} & set(names)
    assert not any("/" in name or "\0" in name for name in names)


def test_the_library_agrees_about_a_simple_diff() -> None:
    before, after = TEXT, TEXT.replace("return 2", "return 3")
    theirs = list(difflib.unified_diff(before.splitlines(), after.splitlines(), "a", "a", lineterm=""))
    assert diff(before, after, "a").split("\n") == theirs
