"""Which chats are looked at when, and that looking often costs no memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.store.shared.timetable import Timetable

CHATS = [(number % 16, f"test/chat={number}") for number in range(5)]


def test_chats_that_are_put_on_it_again_and_again_take_no_more_room() -> None:
    agenda = Timetable[tuple[int, str]]()
    for number in range(10_000):
        agenda.wait(CHATS[number % 5], 1_000.0 + number % 7)
        if number % 3 == 0:
            agenda.forget(CHATS[number % 5])
    assert len(agenda._heap) < 100


@given(st.lists(st.tuples(st.sampled_from(CHATS), st.one_of(st.none(), st.integers(0, 9))), max_size=300))
def test_only_the_latest_word_about_a_chat_counts(words: list[tuple[tuple[int, str], int | None]]) -> None:
    agenda, expected = Timetable[tuple[int, str]](), {}
    for chat, due in words:
        if due is None:
            agenda.forget(chat)
            expected.pop(chat, None)
        else:
            agenda.wait(chat, float(due))
            expected[chat] = due
    assert agenda.next_due() == min(expected.values(), default=None)
    assert sorted(agenda.take(4.0, 99)) == sorted(chat for chat, due in expected.items() if due <= 4)
    assert agenda.next_due() == min((due for due in expected.values() if due > 4), default=None)
