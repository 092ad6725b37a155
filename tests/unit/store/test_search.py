"""Search: the parts of a message that are found, the part that is shown, and the numbers of an owner's messages."""

from __future__ import annotations

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.agent.tools.history import render
from gateway.domain.message import Message, assistant, handle, noted, tool_result, user
from gateway.store.records import Found, Passage
from gateway.store.shared.searchable import RESULT_NUMBERS, RESULT_TERMS, kind_of, terms_of
from gateway.store.sqlite.search import OwnerNumbers
from gateway.words import text
from gateway.words.text import passage


def test_what_was_said_and_what_a_tool_returned_are_kept_apart() -> None:
    assert (kind_of(user("a")), kind_of(assistant("a")), kind_of(tool_result("c", "a"))) == ("said", "said", "returned")
    assert kind_of({"role": "system", "content": "a"}) is None
    assert kind_of(user("notes", summary=True)) is None
    assert kind_of(tool_result("c", "[run] a → done", derived_from=["m1"])) is None
    assert kind_of(tool_result("c", "user: a", recalled=True)) is None


def test_a_short_result_is_entered_whole_and_a_long_one_by_all_its_words_and_some_numbers() -> None:
    assert sorted(terms_of(tool_result("c", "exit 3: no such file"), "returned")) == ["3", "exit", "file", "no", "such"]
    rows = "\n".join(f"{n:05} queued {n:08x}" for n in range(9_000))
    found = terms_of(tool_result("c", f"first alpha\n{rows}\nlast omega", identifiers=["inv_5f"]), "returned")
    assert sum(any(map(str.isdigit, term)) for term in found) == RESULT_NUMBERS
    assert {"first", "alpha", "last", "omega", "queu", "inv", "5f", "00000", "08999"} <= set(found)


def test_a_result_of_many_words_is_entered_by_its_ends() -> None:
    letters = "abcdefghijklmnop"
    words = [f"{one}{two}{three}" for one in letters for two in letters for three in letters]
    found = terms_of(tool_result("c", " ".join(words)), "returned")
    assert len(found) == RESULT_TERMS
    assert {words[0], words[-1]} <= set(found)


def test_what_was_said_is_entered_whole_however_long_it_is() -> None:
    said = " ".join(f"word{n}" for n in range(5_000))
    assert len(terms_of(user(said), "said")) == 5_000


@given(st.text(max_size=200), st.integers(1, 30))
def test_no_result_has_more_terms_than_it_may_nor_any_twice(content: str, times: int) -> None:
    found = terms_of(tool_result("c", content * times * 20), "returned")
    assert len(found) == len(set(found)) <= RESULT_TERMS
    assert set(terms_of(tool_result("c", content), "returned")) <= set(text.terms(content))


def test_the_passage_around_most_of_what_was_looked_for_is_shown() -> None:
    filler = "and so on it went for quite a while, " * 40
    said = f"The port is open. {filler} The Kestrel port is 80801, by the way. {filler} Kestrel again."
    assert "The Kestrel port is 80801" in passage(said, "kestrel PORT", 200)
    assert passage(said, "nowhere", 200) == said[:200]
    assert passage("short", "nowhere", 200) == "short"
    dense = "其他的事情很多，" * 80 + "夜间构建的编号是 #33508。" + "其他的事情很多，" * 80
    assert "夜间构建的编号是 #33508" in passage(dense, "夜间构建", 60)
    # A word is not looked for within others.
    assert "an art of its own" in passage(f"{'a part of a party; ' * 60}an art of its own{' starting' * 60}", "art", 60)


@given(st.text(max_size=300), st.text(max_size=20), st.integers(1, 60))
def test_a_passage_stands_in_its_text_and_keeps_to_its_size(content: str, words: str, size: int) -> None:
    part = passage(content, words, size)
    assert part in content
    assert len(part) == min(size, len(content))


def test_a_hit_says_when_and_who_and_hides_what_only_a_tool_was_told() -> None:
    def hide(said: str) -> str:
        return said.replace("tulip-77", "[REDACTED]")

    long = f"{'x ' * 900}the key is tulip-77{' y' * 900}"

    def found(*messages: Message) -> Passage:
        turns = tuple(
            Found(session_id="s1", message=noted(each, id=f"m_{number}"), at=0.0)
            for number, each in enumerate(messages)
        )
        return Passage(turns=turns, best=0, score=1.0)

    hit = render(found(tool_result("c", long)), "key", hide)
    assert hit.startswith(f"1970-01-01 00:00 UTC (session s1):\n{handle('m_0')} a tool's result: … ")
    assert "the key is [REDACTED] y" in hit
    assert hit.endswith(" … (3,621 characters in all)")
    both = render(found(user("the key is tulip-77"), assistant(f"{'y' * 400}")), "key", hide)
    assert f"\n{handle('m_0')} user: the key is tulip-77\n{handle('m_1')} assistant: yyy" in both
    assert "(400 characters in all)" in both


@pytest.fixture
def connection() -> apsw.Connection:
    """An index like the store's."""
    made = apsw.Connection(":memory:")
    made.execute(
        "CREATE VIRTUAL TABLE message_search USING fts5("
        "owner, terms, content='', contentless_delete=1, detail=column, tokenize='ascii')"
    )
    return made


def enter(connection: apsw.Connection, owner: str, *numbers: int) -> None:
    for number in numbers:
        connection.execute("INSERT INTO message_search(rowid, owner, terms) VALUES (?,?,'word')", (number, owner))


def around(owners: OwnerNumbers, connection: apsw.Connection, owner: str, number: int, reach: int) -> list[int]:
    same, before, after = owners.beside(connection, owner, number, reach)
    assert same == number
    return [*reversed(before), number, *after]


def test_new_messages_join_those_that_are_known(connection: apsw.Connection) -> None:
    owners = OwnerNumbers()
    enter(connection, "me", 3, 5, 9)
    enter(connection, "you", 4, 6)
    assert list(owners.of(connection, "owner : me")) == [3, 5, 9]
    enter(connection, "me", 12)
    enter(connection, "you", 13)
    assert list(owners.of(connection, "owner : me")) == [3, 5, 9, 12]
    assert around(owners, connection, "owner : me", 9, 1) == [5, 9, 12]
    assert around(owners, connection, "owner : me", 3, 2) == [3, 5, 9]
    assert around(owners, connection, "owner : you", 6, 2) == [4, 6, 13]


def test_an_older_message_that_came_late_is_found(connection: apsw.Connection) -> None:
    owners = OwnerNumbers()
    enter(connection, "me", 5, 9)
    assert list(owners.of(connection, "owner : me")) == [5, 9]
    enter(connection, "me", 2)
    assert around(owners, connection, "owner : me", 2, 1) == [2, 5]
    assert around(owners, connection, "owner : me", 5, 1) == [2, 5, 9]
    assert around(owners, connection, "owner : me", 7, 1) == [5, 7, 9]  # a result of a tool, say


def test_the_least_recently_asked_owners_are_forgotten(connection: apsw.Connection) -> None:
    owners = OwnerNumbers(most=2)
    for owner in ("a", "b", "c"):
        enter(connection, owner, ord(owner))
        assert list(owners.of(connection, f"owner : {owner}")) == [ord(owner)]
    assert len(owners._known) == 2
