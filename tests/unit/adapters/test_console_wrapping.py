"""Long lines are broken between words: nothing is lost, nothing is wider than it must be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adapters.console.screen import fold
from adapters.console.wrapping import VERBATIM, breaks, wrap

prose = st.text(st.sampled_from("ab 中。\t-|"), max_size=60)


def cells(character: str) -> int:
    return 2 if ord(character) > 0x2E80 else 1


def rows(line: str, columns: int) -> list[str]:
    return "".join(text for _, text in wrap([("", line)], columns=columns, cells=cells)).split("\n")


def test_a_line_is_broken_between_words() -> None:
    assert rows("the quick brown fox jumps", 10) == ["the quick", "brown fox", "jumps"]
    assert rows("fits well", 10) == ["fits well"]
    assert rows("the quick    brown", 10) == ["the quick", "brown"]
    assert rows("well, ten! then", 10) == ["well, ten!", "then"]


def test_a_word_longer_than_the_screen_is_left_to_the_terminal() -> None:
    assert rows("see https://example.org/a/long/path now", 12) == ["see", "https://example.org/a/long/path", "now"]


def test_a_line_of_any_length_is_broken_between_words() -> None:
    line = "wordy words " * 1_000
    broken = rows(line, 80)
    assert max(map(len, broken)) <= 80
    assert " ".join(broken).split() == line.split()


def test_chinese_is_broken_anywhere_but_at_its_punctuation() -> None:
    assert rows("今天天气很好", 8) == ["今天天气", "很好"]
    assert rows("今天天气。很好", 8) == ["今天天", "气。很好"]
    assert rows("今天天（很好）", 8) == ["今天天", "（很好）"]
    assert rows("天气 is fine 很好", 8) == ["天气 is", "fine 很", "好"]


def test_rows_hang_below_the_text_of_a_list_or_of_a_second_column() -> None:
    assert rows("- one two three", 9) == ["- one two", "  three"]
    assert rows("12. one two", 8) == ["12. one", "    two"]
    assert rows("· one two three", 9) == ["· one two", "  three"]
    assert rows("/new   start a fresh one", 17) == ["/new   start a", "       fresh one"]
    assert rows("Yes.  I agree to that", 12) == ["Yes.  I", "agree to", "that"]  # a sentence ended, no column


def test_code_and_tables_stay_as_they_are() -> None:
    code = [(VERBATIM, "a long line of code that does not fit\n"), ("", "and prose here")]
    assert wrap(code, columns=10, cells=cells) == [code[0], ("", "and prose"), ("", "\n"), ("", "here")]
    assert rows("| a table | with cells |", 10) == ["| a table | with cells |"]


def test_styles_go_on_over_a_break() -> None:
    line = [("", "all "), ("class:strong", "**of this**"), ("", " is it\n")]
    assert wrap(line, columns=9, cells=cells) == [
        ("", "all "),
        ("class:strong", "**of"),
        ("", "\n"),
        ("class:strong", "this**"),
        ("", " is"),
        ("", "\n"),
        ("", "it\n"),
    ]


def test_a_line_without_end_is_not_looked_through() -> None:
    assert breaks("word " * 100_000, columns=80, cells=cells) == (0, [(0, 500_000)])


@given(prose, st.integers(4, 30))
def test_only_white_space_at_breaks_changes(line: str, columns: int) -> None:
    shown = rows(line, columns)
    assert "".join("".join(shown).split()) == "".join(line.split())
    if len(shown) > 1:
        assert all(row.strip() for row in shown)


@given(st.text(st.sampled_from("ab 中"), max_size=60), st.integers(4, 30))
def test_a_row_is_wider_than_the_screen_only_if_it_is_one_word(line: str, columns: int) -> None:
    for row in rows(line, columns):
        assert sum(map(cells, row.rstrip())) <= columns or " " not in row.strip()


@given(st.text(st.sampled_from("ab 中-"), max_size=60), st.integers(4, 30))
def test_what_is_being_written_is_broken_as_it_will_be_printed(line: str, columns: int) -> None:
    live = fold(line, columns=columns, height=100, cells=cells)
    assert "".join(live).split() == "".join(rows(line, columns)).split()


def test_later_rows_of_an_item_stand_below_its_words_on_a_screen_that_grows_too() -> None:
    line = "- one two three four five"
    assert rows(line, 12) == ["- one two", "  three four", "  five"]
    assert fold(line, columns=12, height=9, cells=cells) == rows(line, 12)
    assert fold(line, columns=12, height=2, cells=cells) == rows(line, 12)[-2:]
