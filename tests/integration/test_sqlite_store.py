"""The promises of the SQLite store alone: its file, its lock, its commits, and its failures."""

from __future__ import annotations

import asyncio
import errno
import lzma
import os
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from structlog.testing import capture_logs

from gateway.domain.message import text_of, user
from gateway.runtime.errors import StoreError, StoreLocked, StoreOutdated, StoreUnavailable
from gateway.store.records import Opening
from gateway.store.sqlite import SqliteStore, copying, migrations, search, writer
from gateway.store.sqlite.connection import APPLICATION_ID, connect_reader, unavailable
from gateway.store.sqlite.copying import copy_store
from gateway.store.sqlite.database import Database
from gateway.store.steps import keeping
from tests.support.fakes import ManualClock
from tests.support.store_kit import (
    START,
    arrival,
    claimed,
    exchange,
    finish,
    in_session,
    key,
    new_session,
    outbound,
    put,
    step,
    transcript,
    turns_of,
)
from tests.support.waiting import eventually

Opener = Callable[..., SqliteStore]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of the database."""
    return tmp_path / "legato.db"


@pytest.fixture
async def make(path: Path) -> AsyncIterator[Opener]:
    """Makes stores, not yet open, and closes them in the end."""
    made: list[SqliteStore] = []

    def build(where: Path = path, **options: object) -> SqliteStore:
        store = SqliteStore(where, **{"clock": ManualClock(START), **options})  # type: ignore[arg-type]
        made.append(store)
        return store

    yield build
    for store in made:
        await store.aclose()


@pytest.fixture
async def store(make: Opener) -> SqliteStore:
    """An open, empty store."""
    made = make()
    await made.open()
    return made


def content(path: Path) -> bytes:
    """A file's bytes."""
    return path.read_bytes()


def spoil(path: Path) -> None:
    """Overwrite all but a database's first page."""
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (path.stat().st_size - 4096))


# -- commits ------------------------------------------------------------------------------------


async def test_a_plain_message_costs_three_commits(store: SqliteStore) -> None:
    claim, session = await in_session(store)
    await store.finish_turn(claim.lease, session.ref, claim.item, step(*exchange(0)), "answered", ())
    before = store.commits
    await put(store, "e2")
    assert store.commits == before + 1
    claim = await store.claim_next("w")
    tip = await store.tip(key())
    assert tip is not None
    await store.transcript(tip)
    await store.signals(claim.item)
    assert await store.journal(claim.item) is None
    assert store.commits == before + 1
    end = await store.finish_turn(claim.lease, tip.ref, claim.item, step(*exchange(1)), "answered", [outbound("o1")])
    assert store.commits == before + 2
    assert await store.mark_sent(end.outbound[0].id, "m1") is None
    assert await store.claim_outbound(9) == []
    assert store.commits == before + 3


async def test_waiting_operations_share_a_commit(store: SqliteStore) -> None:
    before = store.commits
    await asyncio.gather(*(store.accept([arrival(f"e{n}", str(n))], cap=9) for n in range(100)))
    assert store.commits - before <= 5


async def test_what_changes_nothing_is_not_a_commit(store: SqliteStore) -> None:
    await put(store, "e1")
    before = store.commits
    assert (await put(store, "e1"))[0].status == "duplicate"
    assert store.commits == before


# -- the file and its owner ---------------------------------------------------------------------


async def test_a_second_gateway_is_refused_by_name(make: Opener, store: SqliteStore) -> None:
    second = make()
    with pytest.raises(StoreLocked, match=rf"process {os.getpid()}\b.*Stop it first"):
        await second.open()
    await second.aclose()
    await put(store, "e1")  # the first is not harmed
    await store.aclose()
    third = make()
    await third.open()
    assert (await put(third, "e1"))[0].status == "duplicate"


async def test_a_reader_works_beside_the_gateway(make: Opener, store: SqliteStore) -> None:
    claim, session = await in_session(store)
    beside = make(read_only=True)
    await beside.open()
    assert (await beside.status()).waiting == 1
    for number in range(3):
        await store.record_step(claim.lease, session.ref, claim.item, step(*exchange(number)))
        assert len(await transcript(beside, "s1")) == 2 * number + 2
    assert len(turns_of(await store.search("question answer", None, 9))) == 6  # which enters them in the index
    assert len(turns_of(await beside.search("question answer", None, 9))) == 6
    with pytest.raises(StoreUnavailable, match="reading only"):
        await beside.emit([outbound("o1")])
    with pytest.raises(StoreUnavailable, match="reading only"):
        await beside.accept([arrival("e1")], cap=9)
    await beside.aclose()
    await finish(store, claim)


async def found(store: SqliteStore, word: str) -> bool:
    return any(word in text_of(turn) for turn in turns_of(await store.search(word, None, 9)))


async def test_a_change_beside_the_gateway_holds_up_the_gateways_own_between_its_look_and_its_write(
    make: Opener, store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.set_notes("people", {"version": "1"})
    beside, step_of = make(read_only=True), keeping.set_notes
    await beside.open()
    waits: list[bool] = []

    def interrupted(*args: Any) -> bool:
        is_done = step_of(*args)
        with closing(apsw.Connection(str(path))) as other:
            try:
                other.execute("DELETE FROM note")
            except apsw.BusyError:
                waits.append(True)
        return is_done

    monkeypatch.setattr(keeping, "set_notes", interrupted)
    assert await beside.set_notes("people", {"version": "2"}, {"version": "1"})
    assert waits == [True]


async def test_who_waits_to_write_beside_stops_no_thread_of_the_process(
    make: Opener, store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = make(read_only=True)
    await beside.open()
    holds, may_end = threading.Event(), threading.Event()

    def held(_: apsw.Connection) -> bool:
        holds.set()
        return may_end.wait(10)

    holding = asyncio.create_task(store._database.write(held))
    await asyncio.to_thread(holds.wait, 10)
    loop = asyncio.get_running_loop()

    def begins(_: apsw.Cursor, statement: str, __: object) -> bool:
        if statement.startswith("BEGIN"):  # it is about to wait for the other, who waits for the loop
            loop.call_soon_threadsafe(may_end.set)
        return True

    monkeypatch.setattr(apsw, "connection_hooks", [lambda made: made.set_exec_trace(begins)])
    assert await beside.set_notes("people", {"version": "2"})
    assert await holding


# Another program that wants what SQLite takes before it removes the log: SHARED_FIRST of os.h, 510 bytes.
_TAKES = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'rb+'), fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)"


async def test_who_writes_beside_keeps_the_lock_that_lets_nobody_take_the_log_away(
    make: Opener, store: SqliteStore, path: Path
) -> None:
    beside = make(read_only=True)
    await beside.open()
    await beside.status()
    await beside.set_notes("people", {"version": "2"})
    taken = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", _TAKES, path], capture_output=True)
    assert b"BlockingIOError" in taken.stderr


async def test_a_message_is_found_at_once_and_by_others_after_some_more(
    make: Opener, store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_IDLE", 3_600.0)
    claim, session = await in_session(store)
    beside = make(read_only=True)
    await beside.open()
    for number in range(writer.MOST_DEFERRED // 2 - 1):
        await store.record_step(claim.lease, session.ref, claim.item, step(user(f"word{number}"), user("other")))
    assert await found(store, "word3")
    for number in range(writer.MOST_DEFERRED):
        await store.record_step(claim.lease, session.ref, claim.item, step(user(f"late{number}")))

    def entered() -> bool:
        with closing(connect_reader(path)) as words:
            return ("late0",) in words.execute("SELECT term FROM search_words").fetchall()

    await eventually(entered)  # while nobody searched with the gateway's store
    assert await found(beside, "late0")


async def test_a_crash_leaves_no_message_unfound(make: Opener, store: SqliteStore, path: Path) -> None:
    claim, session = await in_session(store)
    await store.record_step(claim.lease, session.ref, claim.item, step(user("before")))
    assert await found(store, "before")
    await store.record_step(claim.lease, session.ref, claim.item, step(*exchange(1), user("meteor")))
    for name in ("", "-wal"):  # as it is in the moment of a kill
        path.with_name(f"killed.db{name}").write_bytes(content(path.with_name(f"{path.name}{name}")))
    killed = make(path.with_name("killed.db"))
    await killed.open()
    assert await found(killed, "meteor")
    assert await found(killed, "before")


async def test_a_damaged_index_holds_up_no_start_and_no_message(make: Opener, store: SqliteStore, path: Path) -> None:
    claim, session = await in_session(store)
    await store.record_step(claim.lease, session.ref, claim.item, step(*exchange(1)))
    await store.aclose()
    file = apsw.Connection(str(path))
    file.execute("UPDATE message_search_data SET block = x'000100020003' WHERE id = 10")
    file.execute(
        "INSERT INTO message(key, doc, messages, messages_at) SELECT key + 99, doc, messages, key + 99 FROM message"
    )
    file.close()
    again = make()
    with capture_logs() as logged:
        await again.open()
        await again.accept([arrival("e9", "9")], cap=9)
    assert [each["event"] for each in logged if each["log_level"] == "error"] == ["search_index_behind"]


async def test_what_another_process_forgot_is_not_entered(store: SqliteStore, path: Path) -> None:
    claim, session = await in_session(store)
    await store.record_step(claim.lease, session.ref, claim.item, step(user("meteor"), user("comet")))
    other = apsw.Connection(str(path))
    other.set_busy_timeout(5_000)
    other.execute("DELETE FROM message WHERE doc LIKE '%meteor%'")
    other.close()
    assert await found(store, "comet")
    words = connect_reader(path)
    entered = {row[0] for row in words.execute("SELECT term FROM search_words")}
    assert ("comet" in entered, "meteor" in entered) == (True, False)
    words.close()
    await finish(store, claim)


async def test_only_its_owner_may_read_what_people_said(make: Opener, path: Path) -> None:
    store = make()
    await store.open()
    await store.accept([arrival("e1")], cap=9)
    copy_store(path, path.with_name("copy.db"))
    files = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    names = ("legato.db", "legato.db-wal", "legato.db-shm", "legato.db.lock", "copy.db")
    assert files == dict.fromkeys(names, 0o600)
    await store.aclose()


async def test_a_reader_needs_a_file_of_its_own_schema(make: Opener, path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="There is no store at"):
        await make(read_only=True).open()
    assert path.name not in os.listdir(path.parent)
    old = apsw.Connection(str(path))
    old.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    old.close()
    with pytest.raises(StoreUnavailable, match="is still empty"):
        await make(read_only=True).open()


@pytest.mark.parametrize("read_only", [False, True])
async def test_a_newer_schema_is_left_alone(make: Opener, path: Path, read_only: bool) -> None:
    first = make()
    await first.open()
    await first.aclose()
    newer = apsw.Connection(str(path))
    newer.execute(f"PRAGMA user_version = {migrations.VERSION + 1}")
    newer.close()
    with pytest.raises(StoreUnavailable, match="newer Legato"):
        await make(read_only=read_only).open()


@pytest.mark.parametrize("read_only", [False, True])
async def test_another_programs_database_is_left_alone(make: Opener, path: Path, read_only: bool) -> None:
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE recipes(name)")
    other.close()
    before = content(path)
    with pytest.raises(StoreUnavailable, match="another program"):
        await make(read_only=read_only).open()
    assert content(path) == before


@pytest.fixture
def diary(path: Path) -> str:
    """Something else in the database's place; its text."""
    text = "dear diary, " * 500
    path.write_text(text)
    return text


async def test_a_file_that_is_no_database_is_said_to_be_none(make: Opener, path: Path, diary: str) -> None:
    with pytest.raises(StoreUnavailable, match="not a Legato store"):
        await make().open()
    assert content(path) == diary.encode()


async def test_a_missing_folder_is_named(make: Opener, tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="folder exists"):
        await make(tmp_path / "nowhere" / "legato.db").open()


async def test_a_second_start_finds_nothing_to_do(make: Opener, path: Path) -> None:
    for _ in range(2):
        store = make()
        await store.open()
        await store.aclose()
    looked = apsw.Connection(str(path))
    assert looked.pragma("user_version") == migrations.VERSION
    assert looked.pragma("journal_mode") == "wal"
    assert looked.pragma("integrity_check") == "ok"
    looked.close()


@pytest.fixture
def older(path: Path) -> int:
    """A store of an earlier version; its version."""
    (then,) = (Path(__file__).parents[1] / "fixtures" / "stores").glob("11-*.db.xz")
    path.write_bytes(lzma.decompress(then.read_bytes()))
    connection = apsw.Connection(str(path))
    connection.execute("INSERT INTO meta(name, value) VALUES ('a fact of then', 7)")
    connection.close()
    return 11


async def test_a_look_at_an_older_store_changes_nothing(make: Opener, path: Path, older: int) -> None:
    before = content(path)
    known = migrations.VERSION
    with pytest.raises(
        StoreOutdated, match=rf"has version {older}, and the next run updates it to {known}\. Make a backup"
    ):
        await make(read_only=True).open()
    assert content(path) == before


@pytest.mark.parametrize("keeps_copy", [True, False])
async def test_an_upgrade_keeps_a_copy_and_says_so(make: Opener, path: Path, older: int, keeps_copy: bool) -> None:
    told: list[str] = []
    store = make(told=told.append, keeps_copy=keeps_copy)
    with capture_logs() as logs:
        await store.open()
    await store.aclose()
    copy = path.with_name(f"{path.name}.version-{older}")
    assert copy.exists() == keeps_copy
    upgraded = [(each["log_level"], each["copy"]) for each in logs if each["event"] == "store_upgraded"]
    assert upgraded == [("warning", str(copy) if keeps_copy else None)]
    said = f"Updating {path} from version {older} to {migrations.VERSION}"
    assert told == [f"{said}; {copy} is as it was." if keeps_copy else f"{said}."]
    if keeps_copy:
        kept = apsw.Connection(str(copy))
        assert kept.pragma("user_version") == older
        assert kept.execute("SELECT value FROM meta WHERE name = 'a fact of then'").fetchall() == [(7,)]
        kept.close()
    again = make(told=told.append)
    await again.open()
    assert len(told) == 1


def spoil_table(path: Path, table: str) -> None:
    """Overwrite the beginning of a table's first page."""
    looked = apsw.Connection(str(path))
    ((page,),) = looked.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,))
    ((size,),) = looked.execute("PRAGMA page_size")
    looked.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\x00" * 64)


async def test_a_changed_page_is_noticed_by_a_check_and_after_a_kill(make: Opener, path: Path) -> None:
    store = make()
    await store.open()
    await store.check()
    await store.aclose()
    spoil_table(path, "session_of_key")
    reader = make(read_only=True)
    await reader.open()
    with pytest.raises(StoreUnavailable, match="is damaged"):
        await reader.check()
    path.with_name(f"{path.name}.lock").write_text("4711\n")  # as a killed process leaves it
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="is damaged"):
            await make().open()


async def test_a_backup_of_a_damaged_store_takes_no_good_ones_place(make: Opener, path: Path, tmp_path: Path) -> None:
    store = make()
    await store.open()
    await store.aclose()
    spoil_table(path, "session_of_key")
    with pytest.raises(StoreUnavailable, match="is damaged"):
        copy_store(path, tmp_path / "copy.db")
    assert [name for name in os.listdir(tmp_path) if name.startswith("copy")] == []


async def test_damage_that_a_gateway_meets_ends_it_and_whoever_looks_on_is_only_told(make: Opener, path: Path) -> None:
    store = make()
    await store.open()
    await put(store, "e1")
    await store.aclose()
    spoil_table(path, "item_heard")
    spoil_table(path, "lane_ready")
    told: list[str] = []
    store = make(broken=told.append)
    await store.open()
    with pytest.raises(StoreUnavailable, match="is damaged"):
        await put(store, "e2")
    with pytest.raises(StoreUnavailable, match="is damaged"):
        await store.status()
    await store.aclose()
    assert [sentence.startswith(f"{path} is damaged. Restore the last backup") for sentence in told] == [True, True]
    reader = make(read_only=True, broken=told.append)
    await reader.open()
    with pytest.raises(StoreUnavailable, match="is damaged"):
        await reader.status()
    assert len(told) == 2


@pytest.mark.parametrize("read_only", [True, False])
async def test_what_is_no_file_is_told(make: Opener, path: Path, read_only: bool) -> None:
    os.mkfifo(path)
    with pytest.raises(StoreUnavailable, match=r"is not a file\. Move it away"):
        await make(read_only=read_only).open()


async def test_a_disk_without_room_for_a_number_is_full(
    make: Opener, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = path.with_name(f"{path.name}.lock")
    lock.write_text("4711\n")
    with monkeypatch.context() as patch:

        def full(*_: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        patch.setattr(os, "pwrite", full)
        with pytest.raises(StoreUnavailable, match=f"The disk that holds {path} is full"):
            await make().open()
    assert lock.read_text() == "4711\n", "the next start looks through the file"
    await make().open()


async def test_a_closed_store_says_so(make: Opener) -> None:
    store = make()
    await store.open()
    await store.aclose()
    await store.aclose()
    for call in (store.tip(key()), store.status(), store.emit([outbound("o1")]), put(store, "e1")):
        with pytest.raises(StoreUnavailable):
            await call


async def test_only_a_closed_store_says_that_it_is_closed(path: Path) -> None:
    def failing(_: apsw.Connection) -> None:
        raise RecursionError("maximum recursion depth exceeded")

    database = Database(path, read_only=False)
    await database.open()
    with pytest.raises(RecursionError):
        await database.search(failing)
    await database.aclose()
    with pytest.raises(StoreUnavailable, match=r"The store is closed\."):
        await database.search(failing)


async def test_a_machine_that_starts_no_more_threads_is_told_of(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    with pytest.raises(StoreUnavailable, match=r"cannot be read now: can't start new thread\."):
        await Database(path, read_only=True).open()


async def test_closing_finishes_what_waits(make: Opener) -> None:
    store = make()
    await store.open()
    writes = [asyncio.create_task(store.accept([arrival(f"e{n}", str(n))], cap=9)) for n in range(50)]
    await asyncio.sleep(0)
    await store.aclose()
    assert [(await write)[0].status for write in writes] == ["new"] * 50
    again = make()
    await again.open()
    assert (await again.status()).waiting == 50


# -- failures -----------------------------------------------------------------------------------


async def limit_pages(store: SqliteStore, spare: int | None) -> None:
    """Leave the file `spare` pages to grow by; None lifts the limit."""

    def work(connection: apsw.Connection) -> None:
        size = connection.pragma("page_count") + spare if spare is not None else 4294967294
        connection.pragma("max_page_count", size)

    await store._database.writer.run(work)


async def test_a_full_disk_is_told_and_survived(store: SqliteStore) -> None:
    claim, session = await in_session(store)
    await limit_pages(store, 2)
    big = step(user("x" * 100_000, tokens=1))
    with pytest.raises(StoreUnavailable, match=r"is full\. Free some space"):
        await store.finish_turn(claim.lease, session.ref, claim.item, big, "answered", [outbound("o1")])
    assert await transcript(store, "s1") == []
    assert await store.outbox(None, 9) == []
    small = await store.record_step(claim.lease, session.ref, claim.item, step(user("still fits", tokens=1)))
    await limit_pages(store, None)
    end = await store.finish_turn(claim.lease, session.ref, claim.item, big, "answered", [outbound("o1")])
    assert [row.id for row in end.outbound] == ["o1"]
    assert await transcript(store, "s1") == [*small, *end.messages]
    assert len(await store.search("fits", None, 9)) == 1


async def test_a_full_disk_hides_from_a_search_only_what_does_not_fit_into_the_index(store: SqliteStore) -> None:
    claim, session = await in_session(store)

    async def found(words: str) -> int:
        return len(await store.search(words, None, 9))

    await store.record_step(claim.lease, session.ref, claim.item, step(user("green tea")))
    assert await found("tea")
    words = " ".join(f"word{number}" for number in range(20_000))
    await store.record_step(claim.lease, session.ref, claim.item, step(user(f"coffee {words}")))
    await limit_pages(store, 0)
    assert (await found("tea"), await found("coffee")) == (1, 0)
    await limit_pages(store, None)
    assert (await found("tea"), await found("coffee")) == (1, 1)


async def test_a_start_writes_to_the_index_only_what_was_missed(make: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    entered: list[int] = []
    enter_missed = search.enter_missed

    def noted(connection: apsw.Connection) -> None:
        before = connection.total_changes()
        enter_missed(connection)
        entered.append(connection.total_changes() - before)

    monkeypatch.setattr(search, "enter_missed", noted)
    store = make()
    await store.open()
    claim, session = await in_session(store)
    await store.record_step(claim.lease, session.ref, claim.item, step(user("tea")))
    await store.aclose()
    again = make()
    await again.open()
    assert entered == []
    await again._database.write(lambda connection: connection.execute("DELETE FROM message_search").fetchall())
    await again.aclose()
    await make().open()
    assert [changes > 0 for changes in entered] == [True]


async def test_a_full_disk_fails_only_what_does_not_fit(store: SqliteStore) -> None:
    lanes = [await in_session(store, session_id=f"s{n}", chat=str(n)) for n in range(6)]
    await limit_pages(store, 12)
    results = await asyncio.gather(
        *(
            store.record_step(claim.lease, session.ref, claim.item, step(user("x" * (300_000 if n == 2 else 10))))
            for n, (claim, session) in enumerate(lanes)
        ),
        return_exceptions=True,
    )
    assert [isinstance(result, StoreUnavailable) for result in results] == [n == 2 for n in range(6)]
    assert [(await store.session(f"s{n}")).message_count for n in range(6)] == [1, 1, 0, 1, 1, 1]


async def test_a_failed_accept_leaves_its_lane_free(store: SqliteStore) -> None:
    await limit_pages(store, 0)
    with pytest.raises(StoreUnavailable):
        await store.accept([arrival("e1", text="x" * 100_000)], cap=9)
    await limit_pages(store, None)
    assert (await put(store, "e1"))[0].status == "new"
    assert (await store.claim_next("w")).item.attempts == 1


async def test_a_failed_claim_is_claimed_again(make: Opener) -> None:
    store = make(concurrency=0)
    await store.open()
    await put(store, "e1")
    connection = store._database._connections[-1]
    connection.execute("CREATE TEMP TRIGGER full BEFORE UPDATE ON item BEGIN SELECT RAISE(ABORT, 'no'); END")
    with pytest.raises(StoreUnavailable):
        await store.claim_next("w")
    connection.execute("DROP TRIGGER full")
    assert (await store.claim_next("w")).item.attempts == 1


async def test_a_damaged_file_is_told(make: Opener, path: Path) -> None:
    store = make()
    await store.open()
    claim, session = await in_session(store)
    for number in range(50):
        await store.record_step(claim.lease, session.ref, claim.item, step(user("word " * 500, tokens=number)))
    await store.aclose()
    spoil(path)
    with pytest.raises(StoreUnavailable, match="is damaged"):
        await make().open()


# -- backup -------------------------------------------------------------------------------------


async def test_a_backup_is_whole_and_does_not_stop_the_gateway(
    make: Opener, store: SqliteStore, tmp_path: Path
) -> None:
    claim, session = await in_session(store)
    target = tmp_path / "copy.db"

    async def write() -> None:
        for number in range(30):
            await store.record_step(claim.lease, session.ref, claim.item, step(*exchange(number)))

    await asyncio.gather(write(), asyncio.to_thread(copy_store, tmp_path / "legato.db", target))
    copy_store(tmp_path / "legato.db", target)
    copy = make(target)
    await copy.open()
    assert await transcript(copy, "s1") == await transcript(store, "s1")
    assert len(turns_of(await copy.search("question answer", key(), 99))) == 60
    assert not [name for name in os.listdir(tmp_path) if "partial" in name]
    with pytest.raises(StoreError, match="another path"):
        copy_store(tmp_path / "legato.db", tmp_path / "legato.db")
    with pytest.raises(StoreUnavailable, match="nowhere"):
        copy_store(tmp_path / "legato.db", tmp_path / "nowhere" / "copy.db")


async def test_two_backups_to_one_file_do_not_meet(
    make: Opener, store: SqliteStore, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, copied = tmp_path / "copy.db", list[Path]()
    await claimed(store)

    def in_the_midst(source: Path) -> apsw.Connection:
        copied.append(source)
        if len(copied) == 1:
            copy_store(path, target)  # as another process does, from its beginning to its end
        return connect_reader(source)

    monkeypatch.setattr("gateway.store.sqlite.copying.connect_reader", in_the_midst)
    copy_store(path, target)
    assert len(copied) == 2
    monkeypatch.undo()
    copy = make(target)
    await copy.open()
    assert (await copy.status()).waiting == 1
    assert not [name for name in os.listdir(tmp_path) if "partial" in name]


async def test_a_backup_removes_what_a_killed_one_left(
    store: SqliteStore, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        (half,) = {*tmp_path.glob("copy.db*.partial")} - {tmp_path / name for name in others}
        half.with_name(f"{half.name}-journal").touch()
        raise KeyboardInterrupt

    def partials() -> list[str]:
        return sorted(name for name in os.listdir(tmp_path) if "partial" in name)

    others = ["copy.db.partial", "copy.dbof_ours_.partial", "copy.db_abcdefgh.partial", "other.dbabcdefgh.partial"]
    for name in others:
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (0, 0))
    (tmp_path / "copy.dbof_ours_.partial").unlink()
    (tmp_path / "copy.dbof_ours_.partial").symlink_to("other.dbabcdefgh.partial")
    with monkeypatch.context() as patch:
        patch.setattr(copying, "fill", killed)
        patch.setattr("os.unlink", lambda name: None)
        with pytest.raises(KeyboardInterrupt):
            copy_store(path, tmp_path / "copy.db")
    (half,) = set(partials()) - {*others} - {name for name in partials() if name.endswith("-journal")}
    copy_store(path, tmp_path / "copy.db")
    assert half in partials(), "it may be one that is being made"
    os.utime(tmp_path / half, (0, 0))
    copy_store(path, tmp_path / "copy.db")
    assert partials() == sorted(others)


async def test_a_backup_needs_no_lock_of_the_whole_file(
    store: SqliteStore, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over NFS it would shut out SQLite's own locks, and some file systems have none."""

    def refused(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refused)
    copy_store(path, tmp_path / "copy.db")
    assert (tmp_path / "copy.db").exists()


async def test_a_backup_that_fails_leaves_nothing(store: SqliteStore, path: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreUnavailable, match="folder cannot be written"):
        copy_store(path, tmp_path / "folder")
    assert not [name for name in os.listdir(tmp_path) if "partial" in name]


async def test_the_cache_serves_what_the_file_holds(store: SqliteStore) -> None:
    claim, session = await in_session(store, *exchange(0))
    await store.record_step(claim.lease, session.ref, claim.item, step(*exchange(1)))
    cached = await transcript(store, "s1")
    store._transcripts.drop("s1")
    assert await transcript(store, "s1") == cached
    child = await store.end_session(
        claim.lease, session.ref, "switched", START, Opening(session=new_session("s2"), transcript=cached)
    )
    assert child is not None
    assert await transcript(store, "s2") == cached
    store._transcripts.drop("s2")
    assert await transcript(store, "s2") == cached


async def test_the_lock_follows_no_link(tmp_path: Path, clock: ManualClock) -> None:
    precious = tmp_path / "precious"
    precious.write_text("words")
    (tmp_path / "legato.db.lock").symlink_to(precious)
    with pytest.raises(StoreUnavailable, match="that the file is not a link"):
        await SqliteStore(tmp_path / "legato.db", clock=clock).open()
    assert precious.read_text() == "words"


@pytest.mark.parametrize("link", [os.symlink, os.link])
async def test_a_second_gateway_is_refused_whatever_the_file_is_called(
    make: Opener, path: Path, tmp_path: Path, link: Callable[[Path, Path], None]
) -> None:
    store = make()
    await store.open()
    (tmp_path / "elsewhere").mkdir()
    other = tmp_path / "elsewhere" / "other.db"
    link(path, other)
    with pytest.raises(StoreLocked, match="by another name"):
        await make(other).open()
    if link is os.symlink:  # SQLite looks for its log beside the name: of a hard link that is another place
        await make(other, read_only=True).open()
    await store.aclose()
    again = make(other)
    await again.open()
    assert (await again.status([])).waiting == 0


def test_a_limit_of_open_files_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite says only that it cannot open the file."""
    assert "Check that its folder exists" in str(unavailable(apsw.CantOpenError("unable to open"), path))

    def refuse(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "open", refuse)
    assert "raise the limit (ulimit -n)" in str(unavailable(apsw.CantOpenError("unable to open"), path))
