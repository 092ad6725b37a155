"""The records of a migration: what their digest sees, and ids that stay what they are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.runtime.errors import StoreError
from gateway.store.shared.facts import FIELDS, Record, Tally
from gateway.store.sqlite.former import KINDS, message_id, message_number


def record(kind: str, /, **data: Any) -> Record:
    """A record with nothing else."""
    return Record(kind, {**dict.fromkeys(FIELDS[kind]), **data})


def reference(number: str) -> Record:
    """A place of a transcript."""
    return record("transcripts", key="p/chat=1", session_id="s1", message_id=number)


def message(body: str) -> Record:
    """A stored message."""
    return record("messages", id="1", key="p/chat=1", session_id="s1", body=body)


def tally(*records: Record) -> Tally:
    """These records, counted and digested."""
    counted = Tally()
    counted.add(records)
    return counted


def test_every_kind_has_its_place_in_a_file():
    assert KINDS.keys() == FIELDS.keys()


def test_a_digest_sees_the_order():
    one = tally(reference("1"), reference("2"))
    assert one.differing(tally(reference("1"), reference("2"))) is None
    assert one.differing(tally(reference("2"), reference("1"))) == "transcripts"
    assert one.differing(tally(reference("1"))) == "transcripts"


def test_a_digest_does_not_depend_on_pages():
    one, other = tally(reference("1"), reference("2")), tally(reference("1"))
    other.add([reference("2")])
    assert one.differing(other) is None
    assert one.total == other.total == 2


def test_records_cannot_be_taken_for_others_that_are_cut_elsewhere():
    one, other = record("closed chats", lane="a", reason="b"), record("closed chats", lane='a", "b', reason="")
    assert tally(one).differing(tally(other)) == "closed chats"
    assert tally(one, one).differing(tally(record("closed chats", lane="a", reason="bab"))) == "closed chats"


def test_kinds_are_counted_apart():
    counted = tally(reference("1"), message("x"), reference("2"))
    assert counted.counts == {**dict.fromkeys(FIELDS, 0), "transcripts": 2, "messages": 1}
    assert counted.differing(tally(reference("1"), reference("2"))) == "messages"


@pytest.mark.parametrize("kind", FIELDS)
def test_every_field_counts(kind):
    nothing = record(kind)
    others = [record(kind, **{name: value}) for name in FIELDS[kind] for value in (0, 1, 0.0, 1.5, "", "1", "0")]
    assert len({each.canonical() for each in [nothing, *others]}) == len(others) + 1


@pytest.mark.parametrize("kind", FIELDS)
def test_a_record_without_one_of_its_fields_is_none(kind):
    for name in FIELDS[kind]:
        data = dict.fromkeys(FIELDS[kind])
        del data[name]
        with pytest.raises(KeyError):
            Record(kind, data).canonical()


def test_numbers_count_to_the_last_digit():
    costs = [0.1 + 0.2, 0.3, 0, 0.0, 1e-30, 2**53, 2**53 + 1, None]
    assert len({record("ledger", cost_usd=cost).canonical() for cost in costs}) == len(costs)


def test_what_a_message_holds_counts_to_the_byte():
    texts = ["a", "a ", "ａ", "\u0061\u0301", "á", "\ud83d", "�", "\x00", "\\u0000", ""]
    assert len({message(text).canonical() for text in texts}) == len(texts)


def test_what_a_file_holds_counts():
    contents = [b"", b"a", b"a\x00", b"b"]
    assert len({record("files", content=content).canonical() for content in contents}) == len(contents)


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
