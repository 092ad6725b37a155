"""The records of a migration: what their digest sees, and ids that stay what they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.message import user
from gateway.runtime.errors import StoreError
from gateway.store.moved import (
    KINDS,
    MovedItem,
    MovedMessage,
    MovedReference,
    MovedSession,
)
from gateway.store.moving import Tally, canonical
from gateway.store.sqlite.codec import message_id, message_number
from gateway.store.sqlite.migrations import migrate
from gateway.store.sqlite.moving import EMPTIED
from tests.support.store_kit import START, key, new_session


def digest(*records) -> str:
    """The digest of records of one kind."""
    tally = Tally()
    tally.add(records)
    return tally.figures()[records[0].kind].digest


def reference(message_id: str) -> MovedReference:
    """A place of a transcript."""
    return MovedReference(key=key(), session_id="s1", message_id=message_id)


def message(text: str, **note) -> MovedMessage:
    """A stored message."""
    return MovedMessage(key=key(), session_id="s1", message=user(text, id="1", at=START, **note))


def test_every_table_of_a_file_is_emptied_before_a_migration_is_done_again():
    connection = apsw.Connection(":memory:")
    migrate(connection, Path("a.db"))
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    connection.close()
    own = {"meta", "sqlite_sequence", "rests"}  # of the file, not of what is moved
    assert tables - own - {name for name in tables if name.startswith("message_search")} == set(EMPTIED)


def test_a_digest_sees_the_order():
    assert digest(reference("1"), reference("2")) == digest(reference("1"), reference("2"))
    assert digest(reference("1"), reference("2")) != digest(reference("2"), reference("1"))
    assert digest(reference("1"), reference("2")) != digest(reference("1"))


def test_a_digest_does_not_depend_on_pages():
    one, other = Tally(), Tally()
    one.add([reference("1"), reference("2")])
    other.add([reference("1")])
    other.add([reference("2")])
    assert one.figures() == other.figures()
    assert one.total == 2


def test_kinds_are_counted_apart():
    tally = Tally()
    tally.add([reference("1"), message("x"), reference("2")])
    counts = {kind: figure.count for kind, figure in tally.figures().items()}
    assert counts == {**dict.fromkeys(KINDS, 0), "transcripts": 2, "messages": 1}


def test_every_fact_counts():
    session = MovedSession(session=new_session("s1"), is_tip=True)
    others = [
        replace(session, is_tip=False),
        *(
            replace(session, session=replace(session.session, **change))
            for change in (
                {"engine_state": {"a": 1}},
                {"title": ""},
                {"expires_at": START},
                {"hook": "pending"},
                {"announced": ("65",)},
                {"cost_usd": 0.1 + 0.2},
                {"cost_usd": 0.3},
            )
        ),
    ]
    assert len({canonical(each) for each in [session, *others]}) == len(others) + 1
    item = MovedItem(number="1", key=key(), platform="p", event_id="e", document="{}", accepted_at=START, attempts=0)
    items = [item, replace(item, bypass=True), replace(item, attempts=1), replace(item, absorbed_by="0")]
    assert len({canonical(each) for each in items}) == 4


def test_what_a_message_holds_counts_to_the_byte():
    texts = ["a", "a ", "ａ", "\u0061\u0301", "á", "\ud83d", "�", "\x00", ""]
    assert len({canonical(message(text)) for text in texts}) == len(texts)
    assert canonical(message("x", tokens=1, summary=True)) == canonical(message("x", summary=True, tokens=1))
    assert canonical(message("x", tokens=1)) != canonical(message("x"))
    one, other = message("x"), message("x")
    other = replace(other, message={"content": "x", "role": "user", "_legato": other.message["_legato"]})
    assert canonical(one) != canonical(other)  # the order of a provider's fields


@given(st.integers(0, 2**53 - 1), st.integers(0, 15))
def test_an_id_from_redis_is_a_rowid_and_reads_back(number, partition):
    name = f"{number}p{partition:02}"
    assert message_id(message_number(name)) == name
    assert 2**60 <= message_number(name) < 2**63 - 2**32


@given(st.integers(1, 2**59))
def test_an_id_of_sqlite_is_its_rowid(number):
    assert message_number(str(number)) == number
    assert message_id(number) == str(number)


def test_ids_keep_their_order():
    names = ["1", "17", "1732000000000000p00", "1732000000000000p15", "1732000000000001p03"]
    assert sorted(names, key=message_number) == names
    assert message_id(message_number(names[3]) + 1) == "1732000000000001p00"


@pytest.mark.parametrize("name", ["", "x", "1p", "1p7", "1p16", "p01", "-1", "1p01p02", "1.5"])
def test_no_other_id_is_taken(name):
    with pytest.raises(StoreError, match="cannot be kept"):
        message_number(name)
