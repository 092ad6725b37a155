"""Chapters: their words, their table, and how they join."""

from __future__ import annotations

from itertools import pairwise

from gateway.context.archive import MOST_CHAPTERS, Chapter, again, bounded, earlier, table
from gateway.domain.message import Message, noted, user
from gateway.runtime.tokens import TokenCounter

COUNTER = TokenCounter()


def talk(first: int, count: int, about: str) -> list[Message]:
    """Stored messages about something."""
    return [
        noted(user(f"well, we spoke of {about} and so on"), id=str(first + n), at=1.7e9 + 86_400.0 * (first + n))
        for n in range(count)
    ]


def test_a_chapter_names_what_it_is_about_without_credentials() -> None:
    (made,) = Chapter.made(talk(1, 5, "Lisbon with Swordfish"), lambda text: text.replace("Swordfish", "***"))
    assert (made.begin, made.end, made.count) == ("1", "5", 5)
    assert "Lisbon" in made.words
    assert "Swordfish" not in made.words
    assert Chapter.made([user("never stored")], str) == []


def test_the_table_is_bounded_in_order_and_without_holes_however_many_chapters_come() -> None:
    kept: list[Chapter] = []
    for number in range(200):
        kept = bounded(
            [*kept, *Chapter.made(talk(10 * number, 10, f"Town{'abcdefghij'[number % 10]}"), str)], 200, COUNTER
        )
        assert COUNTER.text(table(kept)) <= 200
        assert len(kept) <= MOST_CHAPTERS
    assert [int(one.end) + 1 for one, _ in pairwise(kept)] == [int(other.begin) for _, other in pairwise(kept)]
    assert kept[0].begin == "0"
    assert kept[0].count > kept[-1].count
    assert table(kept[:1]) == ""
    assert len(bounded(kept, 0, COUNTER)) == 1


def test_a_chapter_of_a_note_that_somebody_forged_is_left_out() -> None:
    good = {"begin": "1", "end": "2", "count": 2}
    assert len(earlier({"chapters": [good, {"begin": 3}, "no", {**good, "count": 0}]})) == 1
    assert earlier({"chapters": 7}) == []


def test_what_is_gone_leaves_its_chapter() -> None:
    said = [*talk(0, 4, "Lisbon"), *talk(4, 4, "Graz")]
    order = {str(n): n for n in range(8)}
    note = {"chapters": [{"begin": "0", "end": "3", "count": 4}, {"begin": "4", "end": "7", "count": 4}]}
    assert [(each.begin, each.words[0]) for each in again(note, said[1:], order, str)] == [
        ("1", "Lisbon"),
        ("4", "Graz"),
    ]
    assert [each.begin for each in again(note, said[4:], order, str)] == ["4"]
