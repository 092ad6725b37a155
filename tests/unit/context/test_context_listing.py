"""The room of the list of identifiers: what is decided without a count is what a count would decide."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.context.listing import Room
from tests.support.transcripts import COUNTER

LINE = st.text(st.one_of(st.sampled_from(" ·…/_-.!?'ab1"), st.characters(exclude_characters="\n\r")), max_size=60)


@given(LINE, st.integers(-2, 40))
def test_a_line_is_taken_exactly_where_its_count_fits(line: str, tokens: int) -> None:
    room, counted = Room(tokens, COUNTER), COUNTER.text(line)
    assert room.takes(line) == (counted <= tokens)
    assert room.tokens == (tokens - counted if counted <= tokens else tokens)


@given(st.lists(LINE, max_size=4), st.integers(-2, 200))
def test_what_is_held_without_a_count_fits(lines: list[str], tokens: int) -> None:
    if Room(tokens, COUNTER).holds(lines):
        assert sum(map(COUNTER.text, lines)) <= tokens
