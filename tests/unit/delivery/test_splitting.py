"""Text in = text out of the splitter, within the platform's limit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.delivery.markdown.characters import Unit, split_text

pieces = st.text() | st.text("ab \n", max_size=200) | st.text("😀漢a \n", max_size=200)
units = st.sampled_from(("codepoints", "utf16"))


def length(text: str, unit: Unit) -> int:
    return len(text.encode("utf-16-le")) // 2 if unit == "utf16" else len(text)


@given(st.lists(pieces, max_size=4).map("".join), st.integers(2, 60), units)
def test_nothing_is_lost_and_every_part_fits(text: str, limit: int, unit: Unit) -> None:
    parts = split_text(text, limit, unit)
    assert "".join(parts) == text
    assert all(length(part, unit) <= limit for part in parts)
    assert parts == [""] if not text else all(parts)


@given(pieces, units)
def test_without_a_limit_or_within_it_there_is_one_part(text: str, unit: Unit) -> None:
    assert split_text(text, None, unit) == [text]
    assert split_text(text, max(2, length(text, unit)), unit) == [text]


@given(st.text("abc \n", min_size=1, max_size=500), st.integers(4, 40))
def test_no_part_is_wastefully_small(text: str, limit: int) -> None:
    parts = split_text(text, limit)
    assert all(len(part) >= limit // 2 for part in parts[:-1])
    assert len(parts) <= 2 * len(text) / limit + 1


def test_it_cuts_after_a_line_end_else_after_a_space_else_anywhere() -> None:
    assert split_text("one two\nthree four", 12) == ["one two\n", "three four"]
    assert split_text("one two three four", 12) == ["one two ", "three four"]
    assert split_text("abcdefghij", 4) == ["abcd", "efgh", "ij"]


def test_an_early_line_end_does_not_make_a_tiny_part() -> None:
    assert split_text("a\n" + "b" * 20, 12)[0] == "a\n" + "b" * 10


@pytest.mark.parametrize(("limit", "expected"), [(2, ["😀", "😀", "a"]), (3, ["😀", "😀a"]), (5, ["😀😀a"])])
def test_a_character_of_two_units_is_never_torn(limit: int, expected: list[str]) -> None:
    assert split_text("😀😀a", limit, "utf16") == expected


def test_a_megabyte_is_split_in_linear_time() -> None:
    text = "word " * 200_000
    assert "".join(split_text(text, 4_096, "utf16")) == text
