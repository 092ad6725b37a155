"""What a request is shown of its answer, and where in its history a message stands."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import get_args

import pytest

from adapters.api.answers import MOST_OF_PERSON, Answer, Answers
from adapters.api.history import Exchange, history
from adapters.api.missed import Missed, comes_by_itself
from adapters.api.shapes import Role, Turn
from gateway.domain.chat import ChatAddress, Outbound, OutboundKind, Returns, SessionKey
from gateway.runtime.structs import replace

HERE = ChatAddress(platform="api", chat="anna", thread="h-1")
KEY = SessionKey(platform="api", chat="anna", thread="h-1")


def row(text: str, kind: OutboundKind = "reply", id_: str = "o1", answers: str | None = "e1") -> Outbound:
    returns = Returns() if kind == "reply" else None
    return Outbound(id=id_, key=KEY, to=HERE, kind=kind, text=text, answers=answers, returns=returns)


async def told(answer: Answer) -> list[tuple[str, bool]]:
    return [(each.text, each.thought) for each in await answer.news()]


async def test_an_answer_grows_and_is_shown_once() -> None:
    answer = Answers().begin(HERE, "e1")
    answer.show(row("I still work.", "notice", "n1"))
    answer.grow("o1", "One")
    answer.grow("o1", "One and two")
    assert await told(answer) == [("I still work.", True), ("One", False), (" and two", False)]
    answer.grow("o1", "Begun anew")  # the model was asked again
    answer.show(row("Begun anew, and whole."))
    answer.show(row("Begun anew, and whole."))
    answer.show(row("More.", "notice", "n2"))
    assert await told(answer) == [("\n\nBegun anew", False), (", and whole.", False)]
    assert answer.over


async def test_a_note_behind_another_turn_is_not_the_answer() -> None:
    answer = Answers().begin(HERE, "e1")
    answer.works, answer.rests = False, True  # the turn before has ended
    answer.show(row("I still work.", "notice"))
    assert (await told(answer), answer.over, answer.note) == ([], False, "I still work.")
    answer.show(row("Yes?", id_="o2"))
    assert (await told(answer), answer.over) == ([("Yes?", False)], True)


async def test_a_yes_is_followed_by_the_answer_it_let_come() -> None:
    answers = Answers()
    answer = answers.begin(HERE, "yes")
    answer.then = answers.begin(HERE, "e1")
    for each in answers.at(HERE, "yes"):
        each.show(row("Approved.", "command", answers="yes"))
    for each in answers.at(HERE, "e1"):
        each.show(row("Done."))
    assert await told(answer) == [("Approved.", True)]
    assert await told(answer.final) == [("Done.", False)]
    answers.forget(answer)
    assert answers.at(HERE) == []


async def test_what_nobody_waited_for_begins_the_next_answer_and_outlives_a_process() -> None:
    notes = dict[str, str]()

    class Book:
        async def read(self) -> dict[str, str]:
            return {**notes}

        async def write(self, changes: Mapping[str, str | None]) -> None:
            notes.update({name: text for name, text in changes.items() if text is not None})
            for name in [name for name, text in changes.items() if text is None]:
                notes.pop(name, None)

    rows = [replace(row("Stretch!", "reminder", f"o{n}", None), created_at=float(n)) for n in range(22)]
    for each in rows:
        await Missed(Book()).keep(each)
    missed = Missed(Book())
    await missed.begin()
    answers = Answers(missed=missed)
    answer = answers.begin(HERE, "e1")
    answer.missed, left = missed.take("anna")
    answer.begin(["Stretch!", "```\na block that is left open"])
    answer.show(row("Yes?", id_="o99"))
    assert await told(answer) == [(answer.before, False), ("\n\nYes?", False)]
    assert answer.before == "Stretch!\n\n```\na block that is left open\n```"
    assert (answer.missed, left) == ([each.id for each in rows[:20]], 2)
    assert missed.take("anna") == (["o20", "o21"], 0)  # the others are in hand
    answers.forget(answer)  # its client has gone
    assert missed.take("anna") == ([each.id for each in rows[:20]], 0)
    await missed.shown("anna", answer.missed)
    await missed.shown("anna", ["o20", "o21"])
    assert (notes, bool(missed)) == ({}, False)


@pytest.mark.parametrize(
    ("shown", "by_itself"),
    [
        (row("Stretch!", "reminder", answers=None), True),
        (row("Ms Smith paid.", answers="event:1"), True),
        (row("Run this?", "question", answers="event:1"), True),
        (row("It failed.", "error", answers="schedule:1"), True),
        (row("Hello"), False),
        (row("It was put away.", "notice", answers=None), False),
        (replace(row("Open door", "notice", answers=None), to=ChatAddress(platform="api", chat="anna")), True),
    ],
)
def test_what_comes_by_itself(shown: Outbound, by_itself: bool) -> None:
    assert comes_by_itself(shown) is by_itself


@pytest.mark.parametrize("conversations", [1, MOST_OF_PERSON])
def test_nobody_waits_for_any_number_of_answers(conversations: int) -> None:
    answers = Answers()
    for number in range(MOST_OF_PERSON):
        assert answers.has_room("anna")
        answers.begin(ChatAddress(platform="api", chat="anna", thread=f"h-{number % conversations}"), "e")
    assert (answers.has_room("anna"), answers.has_room("ben")) == (False, True)


def test_who_waits_no_more_leaves_the_others_waiting() -> None:
    answers, there = Answers(), ChatAddress(platform="api", chat="anna", thread="h")
    first, second = (answers.begin(there, event) for event in ("e1", "e2"))
    answers.forget(first)
    assert answers.at(there) == [second]
    answers.forget(second)
    assert (answers.at(there), answers._open) == ([], {})


def turns(*said: str) -> list[Turn]:
    return [Turn(role="assistant" if number % 2 else "user", text=text) for number, text in enumerate(said)]


@pytest.mark.parametrize(
    ("said", "shared"),
    [
        (("a", "1", "b", "2", "c"), 3),
        (("a", "1 ", "b", "2", "d"), 2),  # clients take white space away
        (("a", "1", "B", "2", "c"), 1),
        (("a", "other", "b", "2", "c"), 1),
        (("A", "1", "b", "2", "c"), 0),
    ],
)
def test_histories_have_the_same_names_as_far_as_they_are_the_same(said: tuple[str, ...], shared: int) -> None:
    one, other = history(turns("a", "1", "b", "2", "c"), "anna"), history(turns(*said), "anna")
    assert [a.name == b.name for a, b in zip(one, other, strict=True)] == [False] * (3 - shared) + [True] * shared
    assert one.first != history(turns("a"), "ben").first


@pytest.mark.parametrize(
    ("said", "kinds"),
    [
        ("/new", (True, True, True)),
        ("/status now", (False, True, True)),
        ("yes", (False, False, True)),
        ("this and/or that", (False, False, False)),
    ],
)
def test_a_command_of_a_history_is_told_from_words(said: str, kinds: tuple[bool, ...]) -> None:
    asked = Exchange(asked=turns(said))
    assert (asked.moves, asked.is_command, asked.may_be_aside) == kinds


def test_a_history_is_cut_the_same_from_its_end_and_from_its_beginning() -> None:
    for roles in product(get_args(Role), repeat=5):
        whole = rest = history([Turn(role=role, text=f"{at}") for at, role in enumerate(roles)], "anna")
        found = []
        while rest:
            newest, rest = rest.split()
            found.append(newest)
        assert found == [*whole]
        assert not found or found[-1].name == whole.first
