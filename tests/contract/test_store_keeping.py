"""What is kept beside conversations: files, and notes in folders."""

from __future__ import annotations

import asyncio
from hashlib import sha256

import pytest

from gateway.domain.chat import ChatAddress, KeptFile, SessionKey
from gateway.domain.memory import Memory
from gateway.domain.rule import Pins
from gateway.runtime.structs import replace
from gateway.store.port import Store, under
from gateway.store.records import Erasure
from tests.support.store_kit import START, Bench, key, outbound

pytest_plugins = ["tests.support.stores"]

LONG = bytes(range(256)) * 8_000  # two megabytes: more than one piece


def file(content: bytes = b"content", ref: str = "r1", **facts: object) -> KeptFile:
    known = {"name": "a.txt", "mime": "text/plain", "size": len(content), "at": START, **facts}
    return KeptFile(ref=ref, digest=sha256(content).hexdigest(), **known)  # type: ignore[arg-type]


async def test_a_new_store_holds_nothing_of_anybody(store: Store) -> None:
    assert await store.kept_files(key(), 9) == []
    assert await store.notes("p:1") == {}
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


async def test_notes_change_only_while_others_are_as_they_were(bench: Bench) -> None:
    store = await bench.open()
    assert await store.set_notes("f", {"a": "1", "b": "2"}, {"a": None, "other": None})
    for still in ({"a": None}, {"a": "2"}, {"a": "1", "b": ""}, {"a": "1", "c": "3"}, {"c": ""}):
        assert not await store.set_notes("f", {"a": "9", "b": None}, still)
    assert await store.set_notes("f", {"a": None, "b": "3"}, {"a": "1", "b": "2"})
    store = await bench.crash(store)
    assert await store.notes("f") == {"b": "3"}


async def test_of_many_changes_of_what_was_read_one_is_made(store: Store) -> None:
    made = await asyncio.gather(*(store.set_notes("f", {"v": str(n)}, {"v": None}) for n in range(8)))
    assert sum(made) == 1
    assert await store.notes("f") == {"v": str(made.index(True))}


async def test_folders_under_a_key_are_found_and_erased_with_it(bench: Bench) -> None:
    store = await bench.open()
    mine, hers = key("1"), SessionKey(platform="test", chat="1", user="an na/*")
    folders = {under(mine, "mood"), under(mine, "round"), under(hers, "mood"), f"chat x {mine}", str(mine), "mood"}
    for folder in folders:
        await store.set_notes(folder, {"a": "1", "b": "2"})
    await store.set_notes(under(mine, "gone"), {"a": "1"})
    await store.set_notes(under(mine, "gone"), {"a": None})
    assert set(await store.folders(mine)) == {under(mine, "mood"), under(mine, "round")}
    assert await store.folders(hers) == [under(hers, "mood")]
    await store.erase(None, Erasure(id="d1", key=mine, at=START, before=START - 9))
    assert len(await store.folders(mine)) == 2
    await store.erase(None, Erasure(id="d2", key=mine, at=START))
    store = await bench.crash(store)
    assert await store.folders(mine) == []
    left = [folder for folder in folders if await store.notes(folder)]
    assert set(left) == folders - {under(mine, "mood"), under(mine, "round")}
