"""The numbers of an owner's messages, kept from search to search."""

from __future__ import annotations

import apsw
import pytest

from gateway.store.sqlite.search import Entries


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


def test_new_messages_join_those_that_are_known(connection: apsw.Connection) -> None:
    entries = Entries()
    enter(connection, "me", 3, 5, 9)
    enter(connection, "you", 4, 6)
    assert list(entries.of(connection, "owner : me")) == [3, 5, 9]
    enter(connection, "me", 12)
    enter(connection, "you", 13)
    assert list(entries.of(connection, "owner : me")) == [3, 5, 9, 12]
    assert entries.around(connection, "owner : me", 9, 1) == [5, 9, 12]
    assert entries.around(connection, "owner : me", 3, 2) == [3, 5, 9]
    assert entries.around(connection, "owner : you", 6, 2) == [4, 6, 13]


def test_an_older_message_that_came_late_is_found(connection: apsw.Connection) -> None:
    entries = Entries()
    enter(connection, "me", 5, 9)
    assert list(entries.of(connection, "owner : me")) == [5, 9]
    enter(connection, "me", 2)
    assert entries.around(connection, "owner : me", 2, 1) == [2, 5]
    assert entries.around(connection, "owner : me", 5, 1) == [2, 5, 9]
    assert entries.around(connection, "owner : me", 7, 1) == [5, 7, 9]  # a result of a tool, say


def test_the_least_recently_asked_owners_are_forgotten(connection: apsw.Connection) -> None:
    entries = Entries(most=2)
    for owner in ("a", "b", "c"):
        enter(connection, owner, ord(owner))
        assert list(entries.of(connection, f"owner : {owner}")) == [ord(owner)]
    assert len(entries._known) == 2
