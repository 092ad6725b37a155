"""What proves a copy: a digest of all records, and the ids of messages that came from a server once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.runtime.errors import StoreError
from gateway.store.kinds import NAME, NOTE, Name, NoteRecord
from gateway.store.shared.facts import FIELDS
from gateway.store.sqlite.former import FOREIGN, KINDS, message_number
from gateway.store.steps.copying import Copied, Tally
from gateway.store.steps.moving import BECOMES


def note(text: str) -> Copied:
    """A record of one kind."""
    made = NoteRecord(folder="a", name="b", text=text)
    return Copied(NOTE.name, made, None, NOTE.document(made))


def name(chat: str) -> Copied:
    """A record of another one."""
    return Copied(NAME.name, Name(chat=chat), None, NAME.document(Name(chat=chat)))


def tally(*records: Copied) -> Tally:
    """These records, counted and digested."""
    counted = Tally()
    counted.add(records)
    return counted


def test_every_fact_is_read_from_an_old_file_and_most_of_them_are_counted() -> None:
    assert KINDS.keys() == FIELDS.keys()
    assert FIELDS.keys() - BECOMES.keys() == {"hooks", "turns", "approvals", "signals", "closed chats"}


def test_the_order_and_the_pages_say_nothing() -> None:
    one, other = tally(note("1"), note("2")), tally(note("2"))
    other.add([note("1")])
    assert one.differing(other) is None


def test_what_is_lost_or_put_twice_or_changed_is_named() -> None:
    whole = tally(note("1"), note("2"), name("p/c"))
    for other in (tally(note("1"), name("p/c")), tally(note("1"), note("1"), name("p/c"))):
        assert whole.differing(other) == NOTE.name
    assert whole.differing(tally(note("1"), note("3"), name("p/c"))) == NOTE.name
    assert whole.differing(tally(note("1"), note("2"), name("p/d"))) == NAME.name
    assert whole.counts[NOTE.name] == 2


@given(st.integers(0, 2**53 - 1), st.integers(0, 15))
def test_an_id_from_redis_is_a_number_above_all_others(number: int, partition: int) -> None:
    assert FOREIGN <= message_number(f"{number}p{partition:02}") < 2**63 - 2**32


def test_ids_keep_their_order() -> None:
    names = ["1732000000000000p00", "1732000000000000p15", "1732000000000001p03"]
    assert sorted(names, key=message_number) == names


@pytest.mark.parametrize("name", ["", "x", "17", "1p", "1p7", "1p16", "p01", "-1", "1p01p02", "1.5"])
def test_no_other_id_is_taken(name: str) -> None:
    with pytest.raises(StoreError, match="no message has the id"):
        message_number(name)
