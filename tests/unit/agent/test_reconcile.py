"""An engine's result is matched with what is stored, whatever was dropped, repeated or rewritten."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.agent.compaction import reconcile
from gateway.domain.message import Message, note_of, noted, same, user, wire
from gateway.runtime.tokens import TokenCounter

WORDS = st.lists(st.sampled_from(["one", "two", "three"]), max_size=12)


class Flat(TokenCounter):
    """Every message has one token."""

    def message(self, message: object) -> int:
        return 1


def stored(words: Sequence[str]) -> list[Message]:
    return [noted(user(word), id=str(number), tokens=1) for number, word in enumerate(words)]


@settings(max_examples=80, deadline=None)
@given(WORDS, WORDS)
def test_messages_without_notes_are_found_in_order_and_each_at_most_once(
    said: list[str], given_back: list[str]
) -> None:
    known = stored(said)
    result = reconcile(known, [user(word) for word in given_back], Flat())
    position, expected = 0, []
    for word in given_back:
        found = next((place for place in range(position, len(known)) if same(known[place], user(word))), None)
        expected.append(None if found is None else note_of(known[found])["id"])
        position = position if found is None else found + 1
    assert [note_of(message).get("id") for message in result] == expected
    assert [wire(message) for message in result] == [wire(user(word)) for word in given_back]


def test_thousands_of_rewritten_messages_are_matched_without_comparing_each_with_all() -> None:
    words = [f"message {number}" for number in range(4_000)]
    result = reconcile(stored(words), [user(f"rewritten {word}") for word in words], Flat())
    assert len(result) == len(words)
    assert not any("id" in note_of(message) for message in result)
