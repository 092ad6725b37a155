"""What is kept beside conversations: files, small notes of an account, the guest book."""

from __future__ import annotations

import asyncio
from hashlib import sha256

import pytest

from gateway.domain.chat import ChatAddress
from gateway.domain.file import KeptFile
from gateway.domain.memory import Memory
from gateway.domain.pairing import Asking, Guest, GuestBook
from gateway.domain.pin import Pins
from gateway.runtime.structs import replace
from gateway.store.port import Store
from tests.support.store_kit import START, Bench, key, outbound

pytest_plugins = ["tests.support.stores"]

LONG = bytes(range(256)) * 8_000  # two megabytes: more than one piece


def file(content: bytes = b"content", ref: str = "r1", **facts: object) -> KeptFile:
    known = {"name": "a.txt", "mime": "text/plain", "size": len(content), "at": START, **facts}
    return KeptFile(ref=ref, digest=sha256(content).hexdigest(), **known)  # type: ignore[arg-type]


async def test_a_new_store_holds_nothing_of_anybody(store: Store) -> None:
    assert await store.kept_files(key(), 9) == []
    assert await store.notes("p:1") == {}
    assert await store.guest_book() == GuestBook()
    assert await store.pins(key()) == Pins()
    assert await store.memory(key()) == Memory()
    assert await store.approvals(ChatAddress(platform="test", chat="1")) == []
    assert await store.spent(["person test:7", "gateway"]) == [0, 0]
    assert await store.spent([]) == []
    assert await store.first_name("test", "-501", "e") == "-501"
    assert await store.later_name("test", "-501") is None


async def test_a_file_comes_back_byte_by_byte_also_after_a_crash(bench: Bench) -> None:
    store = await bench.open()
    contents = {"r1": LONG, "r2": b"", "r3": b"\x00\xff\r\n"}
    for ref, content in contents.items():
        kept = file(content, ref)
        assert await store.keep_file(key(), kept, content) == kept
    store = await bench.crash(store)
    for ref, content in contents.items():
        assert await store.kept_file(key(), ref) == file(content, ref)
        assert await store.file_content(key(), file(content, ref).digest) == content


async def test_the_first_that_is_kept_under_a_ref_stands(store: Store) -> None:
    first, later = file(b"first"), file(b"later", at=START + 5)
    await store.keep_file(key(), first, b"first")
    assert await store.keep_file(key(), later, b"later") == first
    assert await store.kept_file(key(), "r1") == first
    assert await store.kept_files(key(), 9) == [first]


async def test_one_content_may_be_that_of_several_files(store: Store) -> None:
    one, other = file(), file(ref="r2", name="b.txt", at=START + 1)
    assert await asyncio.gather(*(store.keep_file(key(), each, b"content") for each in (one, other))) == [one, other]
    assert await store.kept_files(key(), 9) == [other, one]
    assert await store.file_content(key(), one.digest) == b"content"


async def test_what_belongs_to_one_key_is_not_found_under_another(store: Store) -> None:
    await store.keep_file(key("1"), file(), b"content")
    for other in (key("2"), key("1", platform="other")):
        assert await store.kept_file(other, "r1") is None
        assert await store.kept_files(other, 9) == []
        assert await store.file_content(other, file().digest) is None


async def test_files_are_listed_newest_first(store: Store) -> None:
    files = [file(b"%d" % number, f"r{number}", at=START + number) for number in range(6)]
    for each in (files[3], files[0], files[5], files[1], files[4], files[2]):
        await store.keep_file(key(), each, b"%d" % int(each.ref[1:]))
    assert await store.kept_files(key(), 4) == files[:1:-1]


@pytest.mark.parametrize("text", ["\x00", "two\nlines", "\U0001f600 ../../x", "r:1 {p03}", "'; --"])
async def test_any_name_and_ref_come_back(store: Store, text: str) -> None:
    odd = file(ref=text, name=text, mime=text)
    assert await store.keep_file(key(), odd, b"content") == odd
    assert await store.kept_file(key(), text) == odd


async def test_a_row_carries_its_file(bench: Bench) -> None:
    store = await bench.open()
    row = outbound("o1", text="caption", file=file())
    (claimed,) = await store.emit([row])
    assert claimed == replace(row, state="sending", attempts=1)
    store = await bench.crash(store)
    assert [each.file for each in await store.outbox(None, 9)] == [file()]


# Notes


async def test_notes_are_there_after_a_crash_and_belong_to_their_account(bench: Bench) -> None:
    store = await bench.open()
    await store.set_notes("p:1", {"read c": "17", "Änn \ud83d": "买"})
    await store.set_notes("p:2", {"read c": "3"})
    await store.set_notes("p:1", {"read c": "18", "other": "x", "never there": None})
    await store.set_notes("p:1", {"other": None})
    store = await bench.crash(store)
    assert await store.notes("p:1") == {"read c": "18", "Änn ?": "买"}
    assert await store.notes("p:2") == {"read c": "3"}


# The guest book


ASKS = Asking(platform="p", user="1", chat="c", name="Änn \ud83d", code="ABCD", event="e", at=START + 0.1)
GUEST = Guest(platform="p", user="2", chat="c2", name="买", code="EFGH", at=START)


async def test_what_was_stored_is_there_after_a_crash(bench: Bench) -> None:
    store = await bench.open()
    first = GuestBook(asking=(ASKS,), guests=(GUEST,), failures=2, failed_at=START + 7, version=1)
    assert await store.set_guest_book(first)
    second = replace(first, asking=(), version=2)
    assert await store.set_guest_book(second)
    assert await store.guest_book() == second
    store = await bench.crash(store)
    assert await store.guest_book() == second


async def test_a_change_of_what_it_no_longer_is_changes_nothing(store: Store) -> None:
    now = GuestBook(guests=(GUEST,), version=1)
    assert await store.set_guest_book(now)
    for version in (1, 3, 4):
        assert not await store.set_guest_book(GuestBook(version=version))
    assert await store.guest_book() == now


async def test_of_many_changes_at_once_one_is_made(store: Store) -> None:
    books = [GuestBook(failures=number, version=1) for number in range(8)]
    made = await asyncio.gather(*(store.set_guest_book(book) for book in books))
    assert sum(made) == 1
    assert await store.guest_book() == books[made.index(True)]
