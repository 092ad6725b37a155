"""Thoughts that come inside the text are told apart, however the text is cut."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.providers.thinking import Thinking


def split(*pieces: str) -> tuple[str, str]:
    thinking = Thinking()
    parts = [thinking.feed(piece) for piece in pieces] + [thinking.flush()]
    return "".join(text for text, _ in parts), "".join(thought for _, thought in parts)


CASES = [
    ("Just text.", ("Just text.", "")),
    ("<think>hm</think>\n\nYes.", ("Yes.", "hm")),
    ("\n<think>\nhm\n</think>Yes.", ("Yes.", "\nhm\n")),
    ("<think></think>Yes.", ("Yes.", "")),
    ("<think>never closed", ("", "never closed")),
    ("<think>a < b </thin x</think>c", ("c", "a < b </thin x")),
    ("<thinking about it", ("<thinking about it", "")),
    ("<thi", ("<thi", "")),
    ("The tag <think>x</think> is text here.", ("The tag <think>x</think> is text here.", "")),
    ("<think>a</think>b <think>c</think>", ("b <think>c</think>", "a")),
    ("  indented", ("  indented", "")),
    ("", ("", "")),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_whole(text: str, expected: tuple[str, str]) -> None:
    assert split(text) == expected


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_letter_by_letter(text: str, expected: tuple[str, str]) -> None:
    assert split(*text) == expected


@given(case=st.sampled_from(CASES), data=st.data())
@settings(max_examples=80, deadline=None)
def test_cut_anywhere(case: tuple[str, tuple[str, str]], data: st.DataObject) -> None:
    text, expected = case
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    assert split(*(text[a:b] for a, b in itertools.pairwise([0, *cuts, len(text)]))) == expected
