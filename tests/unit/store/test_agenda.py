"""The chats to be looked at with their times; looking often costs no memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.store.shared.agenda import Advance, Agenda, rows_to_send
from gateway.store.shared.platforms import Platforms
from tests.support.store_kit import outbound

CHATS = [f"test/chat={number}" for number in range(5)]


def agenda_of(*waits: tuple[str, float]) -> Agenda:
    agenda = Agenda()
    for chat, due_at in waits:
        agenda.wait(chat, due_at)
    return agenda


def test_an_agenda_gives_chats_by_their_time() -> None:
    agenda = agenda_of(("b", 2.0), ("a", 1.0), ("e", 2.0))
    agenda.note([Advance(chat="c", due_at=3.0), Advance(chat="d"), Advance(chat="b", due_at=9.0), Advance(chat="e")])
    assert agenda.next_due() == 1.0
    assert agenda.take(3.0, 1) == ["a"]
    assert agenda.take(3.0, 9) == ["c"]
    assert agenda.next_due() == 9.0
    agenda.wait("b", 9.0)
    assert agenda.take(9.0, 9) == ["b"]
    assert agenda.next_due() is None


def test_chats_of_platforms_that_are_not_sent_to_wait_until_they_are() -> None:
    agenda = agenda_of(("a/chat=1", 1.0), ("b/chat=1", 2.0))
    agenda.serve(Platforms(["b"]))
    agenda.wait("a/chat=2", 0.0)
    assert agenda.take(9.0, 9) == ["b/chat=1"]
    agenda.serve(Platforms(["a"]))
    assert agenda.take(9.0, 9) == ["a/chat=2", "a/chat=1"]


def test_the_rows_to_send_are_those_that_were_claimed() -> None:
    row = outbound("o1")
    assert rows_to_send([Advance(chat="x"), Advance(chat="y", claimed=row)]) == (row,)


def test_chats_that_are_put_on_it_again_and_again_take_no_more_room() -> None:
    agenda = Agenda()
    for number in range(10_000):
        agenda.wait(CHATS[number % 5], 1_000.0 + number % 7)
        if number % 3 == 0:
            agenda.note([Advance(chat=CHATS[number % 5])])
    assert len(agenda._heap) < 100


@given(st.lists(st.tuples(st.sampled_from(CHATS), st.one_of(st.none(), st.integers(0, 9))), max_size=300))
def test_only_the_latest_word_about_a_chat_counts(words: list[tuple[str, int | None]]) -> None:
    agenda, expected = Agenda(), {}
    for chat, due in words:
        agenda.note([Advance(chat=chat, due_at=due)])
        if due is None:
            expected.pop(chat, None)
        else:
            expected[chat] = due
    assert agenda.next_due() == min(expected.values(), default=None)
    taken = agenda.take(4.0, 99)
    assert sorted(taken) == sorted(chat for chat, due in expected.items() if due <= 4)
    assert len(taken) == len(set(taken))
    assert agenda.next_due() == min((due for due in expected.values() if due > 4), default=None)
