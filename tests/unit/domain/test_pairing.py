"""Codes: few, short-lived, seldom, and a locked door for who guesses."""

from __future__ import annotations

import pytest

from gateway.domain.chat import Source
from gateway.domain.pairing import (
    ASK_EVERY,
    CODE_SECONDS,
    LOCKED_SECONDS,
    MOST_ASKING,
    MOST_FAILURES,
    GuestBook,
    asked,
    confirmed,
    is_code,
    removed,
    written,
)

NOW = 1_700_000_000.0


def person(user: str = "1", platform: str = "p", name: str = "Bob") -> Source:
    return Source(platform=platform, chat=f"chat of {user}", chat_type="direct", user=user, user_name=name)


def after_asking(*users: str) -> GuestBook:
    book = GuestBook()
    for user in users:
        book, told = asked(book, person(user), f"e{user}", f"CODE{user}", NOW)
        assert told == f"CODE{user}"
    return book


def test_a_code_lets_in_who_was_given_it_and_nobody_else() -> None:
    book, verdict, guest = confirmed(after_asking("1", "2"), "CODE2", NOW + 5)
    assert verdict == "let in"
    assert guest is not None
    assert (guest.user, guest.chat, guest.at) == ("2", "chat of 2", NOW + 5)
    assert book.knows(person("2"))
    assert not book.knows(person("1"))
    assert not book.knows(person("2", platform="other"))
    assert [each.user for each in book.asking] == ["1"]


def test_members_of_a_group_leave_the_codes_of_others_alone_and_are_told_of_once() -> None:
    book = after_asking("1", "2", "3")
    there = {"platform": "p", "chat": "g", "chat_type": "group", "chat_name": "Book [club]"}
    dan, eve = Source(user="4", **there), Source(user="5", **there)  # type: ignore[arg-type]
    book, told = asked(book, dan, "e4", "CODE4", NOW)
    assert told == "CODE4"
    assert book.asking[-1].place == "Book (club)"
    assert asked(book, dan, "e9", "OTHER", NOW + ASK_EVERY + 1) == (book, None)
    assert asked(book, dan, "e9", "OTHER", NOW + CODE_SECONDS)[1] == "OTHER"
    assert asked(book, eve, "e5", "CODE5", NOW)[1] == "CODE5"
    assert asked(book, person("6"), "e6", "CODE6", NOW)[1] is None
    guest = confirmed(book, "CODE4", NOW)[2]
    assert guest is not None
    assert (guest.chat, guest.place) == ("g", "Book (club)")


@pytest.mark.parametrize("typed", ["code1", " CODE1\n", "co-de1", "C O D E 1"])
def test_it_may_be_typed_as_people_type(typed: str) -> None:
    assert confirmed(after_asking("1"), typed, NOW)[1] == "let in"


def test_the_same_message_is_told_the_same_code_and_another_one_nothing_for_ten_minutes() -> None:
    book = after_asking("1")
    assert asked(book, person(), "e1", "OTHER", NOW + 1) == (book, "CODE1")
    assert asked(book, person(), "e9", "OTHER", NOW + ASK_EVERY - 1) == (book, None)
    later, told = asked(book, person(), "e9", "OTHER", NOW + ASK_EVERY)
    assert told == "OTHER"
    assert [each.code for each in later.asking] == ["OTHER"]  # the old one is good for nothing now
    assert confirmed(later, "CODE1", NOW + ASK_EVERY)[1] == "wrong"


def test_who_was_seen_in_a_group_is_given_a_code_in_private_at_once() -> None:
    there = Source(platform="p", chat="g", chat_type="group", chat_name="Club", user="1")
    book, told = asked(GuestBook(), there, "e1", "GROUP", NOW)
    assert told == "GROUP"
    book, told = asked(book, person("1"), "e2", "ALONE", NOW + 1)
    assert told == "ALONE"
    assert asked(book, person("1"), "e3", "MORE", NOW + 2) == (book, None)
    assert asked(book, there, "e4", "MORE", NOW + 2) == (book, None)
    for code in ("GROUP", "ALONE"):  # the admins' code is good as well, and both are used up
        after, verdict, guest = confirmed(book, code, NOW + 3)
        assert (verdict, guest and guest.user, after.asking) == ("let in", "1", ())


def codes(book: GuestBook) -> dict[str, str]:
    return {each.user: each.code for each in book.asking if each.code}


def test_a_newcomer_takes_the_place_of_who_asks_again_and_again() -> None:
    book = after_asking("1", "2", "3")
    for user in "123":  # they ask anew as soon as they may
        book, told = asked(book, person(user), f"e{user}", "SAME", NOW + ASK_EVERY)
        assert told == f"CODE{user}"
        book, told = asked(book, person(user), f"f{user}", f"NEXT{user}", NOW + ASK_EVERY)
        assert told == f"NEXT{user}"
    soon = NOW + ASK_EVERY + 1
    book, told = asked(book, person("4"), "e4", "CODE4", soon)
    assert told == "CODE4"
    assert codes(book) == {"2": "NEXT2", "3": "NEXT3", "4": "CODE4"}
    for passed in range(0, int(CODE_SECONDS), 60):
        for user in "123":
            book, _ = asked(book, person(user), f"{user} {passed}", f"{user} {passed}", soon + passed)
        assert len(codes(book)) == MOST_ASKING
        assert codes(book)["4"] == "CODE4", "for the whole hour"
    assert confirmed(book, "NEXT1", soon)[1] == "wrong"


def test_a_first_code_is_left_alone_for_ten_minutes_and_gives_way_then() -> None:
    book = after_asking("1", "2", "3")
    assert asked(book, person("4"), "e4", "CODE4", NOW + ASK_EVERY - 1) == (book, None)
    book, told = asked(book, person("4"), "e4", "CODE4", NOW + ASK_EVERY)
    assert told == "CODE4"
    assert codes(book) == {"2": "CODE2", "3": "CODE3", "4": "CODE4"}
    assert asked(book, person("1"), "e9", "CODE9", NOW + ASK_EVERY + 1) == (book, None), "they had their turn"
    assert asked(book, person("1"), "e1", "CODE9", NOW + ASK_EVERY + 1) == (book, None)


def test_no_more_than_three_ask_on_a_platform_until_an_hour_has_passed() -> None:
    users = [str(number) for number in range(MOST_ASKING)]
    book = after_asking(*users)
    assert asked(book, person("more"), "e", "MORE", NOW + 1) == (book, None)
    assert asked(book, person("more", platform="other"), "e", "MORE", NOW + 1)[1] == "MORE"
    assert asked(book, person("more"), "e", "MORE", NOW + CODE_SECONDS)[1] == "MORE"


@pytest.mark.parametrize("later", [CODE_SECONDS, 86_400.0, -CODE_SECONDS])
def test_a_code_is_good_for_an_hour_whichever_way_the_clock_is_set(later: float) -> None:
    assert confirmed(after_asking("1"), "CODE1", NOW + later)[1] == "wrong"


def test_five_wrong_codes_lock_the_door_for_an_hour() -> None:
    book = after_asking("1")
    for number in range(MOST_FAILURES):
        assert book.locked_for(NOW + number) == 0
        book, verdict, _ = confirmed(book, "GUESS", NOW + number)
        assert verdict == "wrong"
    assert 0 < book.locked_for(NOW + 10) <= LOCKED_SECONDS
    assert confirmed(book, "CODE1", NOW + 10) == (book, "locked", None)
    late = NOW + MOST_FAILURES + LOCKED_SECONDS
    book, told = asked(book, person("2"), "e2", "CODE2", late)
    assert told
    assert confirmed(book, "CODE2", late)[1] == "let in"
    assert confirmed(book, "GUESS", late)[0].failures == 1  # counting starts anew


def test_a_right_code_forgives_wrong_ones() -> None:
    book = after_asking("1")
    for _ in range(MOST_FAILURES - 1):
        book, _, _ = confirmed(book, "GUESS", NOW)
    book, verdict, _ = confirmed(book, "CODE1", NOW)
    assert (verdict, book.failures) == ("let in", 0)


def test_a_code_typed_again_is_no_mistake() -> None:
    book, _, guest = confirmed(after_asking("1"), "CODE1", NOW)
    assert confirmed(book, "CODE1", NOW + 60) == (book, "let in before", guest)
    assert confirmed(book, "CODE1", NOW + CODE_SECONDS)[1] == "wrong"


def test_who_was_let_in_meanwhile_is_given_no_code() -> None:
    book, _, _ = confirmed(after_asking("1"), "CODE1", NOW)
    assert asked(book, person(), "e7", "AGAIN", NOW + ASK_EVERY) == (book, None)


@pytest.mark.parametrize(
    ("typed", "could_be"),
    [
        ("ABCD-EFGH", True),
        ("abcd efgh", True),
        ("remove", False),
        ("remove 12345", False),
        ("ABCDEFGHJ", False),
        ("ABCD-EFG0", False),  # there is no such letter
        ("密码密码密码密码", False),
    ],
)
def test_what_could_be_a_code(typed: str, could_be: bool) -> None:
    assert is_code(typed) == could_be


def test_who_is_shown_out_may_ask_again() -> None:
    book, _, guest = confirmed(after_asking("1"), "CODE1", NOW)
    book, gone = removed(book, "p", "1")
    assert gone == guest
    assert not book.knows(person())
    assert removed(book, "p", "1") == (book, None)
    assert asked(book, person(), "e7", "AGAIN", NOW + 1)[1] == "AGAIN"


def test_every_change_is_another_version_and_what_changes_nothing_is_the_book_itself() -> None:
    book = after_asking("1", "2")
    assert book.version == 2
    assert confirmed(book, "CODE1", NOW)[0].version == 3


def test_a_name_is_kept_on_one_line_and_short() -> None:
    book, _ = asked(GuestBook(), person(name="Bob\n\nlet me in " + "x" * 500), "e", "C", NOW)
    assert book.asking[0].name.startswith("Bob let me in xxx")
    assert len(book.asking[0].name) <= 60


def test_a_name_moves_nothing_in_the_terminal_that_lists_it() -> None:
    book, _ = asked(GuestBook(), person(name="\x1b[2JBob\u202e \ud83d"), "e", "C", NOW)
    assert book.asking[0].name == "(2JBob"


def test_a_code_is_read_out_in_two_halves() -> None:
    assert written("ABCDEFGH") == "ABCD-EFGH"
