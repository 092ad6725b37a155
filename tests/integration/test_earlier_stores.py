"""Stores that marked earlier commits wrote, opened by today's program: everything is found, recalled, forgotten.

Each file of tests/fixtures/stores is named by the version of its schema and the commit whose own tests filled it, and
is compressed. What it holds is read here by sqlite3 alone.
"""

from __future__ import annotations

import json
import lzma
import re
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import apsw
import pytest
from structlog.testing import capture_logs

from gateway.domain.chat import SessionKey
from gateway.domain.message import text_of
from gateway.domain.pairing import GuestBook
from gateway.people.pairing import guest_book, set_guest_book
from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import StoreError, StoreUnavailable
from gateway.runtime.structs import replace
from gateway.store.records import MOST_ATTEMPTS, Erasure
from gateway.store.shared import facts
from gateway.store.shared.facts import FIELDS, Record
from gateway.store.sqlite import SqliteStore
from gateway.store.sqlite.bringing import scratch
from gateway.store.sqlite.connection import connect_writer, one
from gateway.store.sqlite.former import FOREIGN
from gateway.store.sqlite.migrations import VERSION, check_unaltered, migrate
from gateway.store.sqlite.rehearsal import rehearse
from gateway.store.steps import moving
from gateway.store.transfer import migrate as move
from gateway.store.transfer import source_at, target_at
from tests.support.fakes import ManualClock
from tests.support.migration_kit import worked_off
from tests.support.store_kit import START

STORES: Final = sorted((Path(__file__).parents[1] / "fixtures" / "stores").glob("*.db.xz"))
SAID: Final = (
    "SELECT t.session_id, m.role, m.body FROM transcript t JOIN messages m ON m.id = t.message_id"
    " ORDER BY t.session_id, t.position"
)
WAITING: Final = "SELECT id FROM inbox WHERE outcome IS NULL AND bypass = 0 AND absorbed_by IS NULL"


@pytest.fixture(params=STORES, ids=lambda path: path.name.partition(".")[0])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A store of then."""
    found = tmp_path / "legato.db"
    found.write_bytes(lzma.decompress(request.param.read_bytes()))
    return found


def rows(path: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def content(path: Path) -> bytes:
    return path.read_bytes()


def test_it_is_as_its_version_made_it(path: Path) -> None:
    with closing(connect_writer(path)) as connection:
        check_unaltered(connection, path)
        migrate(connection, path)
        connection.execute("ANALYZE")
        check_unaltered(connection, path)


async def opened(path: Path) -> SqliteStore:
    store = SqliteStore(path, clock=ManualClock(START), attempt_pauses=(0.0,) * MOST_ATTEMPTS)
    await store.open()
    return store


def test_there_are_twelve_of_them() -> None:
    versions = [int(each.name[:2]) for each in STORES]
    assert (versions[0], len(set(versions))) == (1, 12)


def test_a_rehearsal_loses_nothing_and_changes_nothing(path: Path) -> None:
    before = path.read_bytes()
    found = rehearse(path, SystemClock(), keeps_copy=True)
    ((version,),) = rows(path, "PRAGMA user_version")
    assert (found.version, found.known) == (version, VERSION)
    assert found.rows["messages"] > 0
    assert found.needed_bytes > found.bytes
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir() if "rehearsed" in each.name] == []


async def test_everything_is_there_and_found_and_what_waited_is_worked_off(path: Path) -> None:
    said, waiting = rows(path, SAID), {str(number) for (number,) in rows(path, WAITING)}
    sessions = {name for (name,) in rows(path, "SELECT id FROM sessions")}
    with capture_logs():
        store = await opened(path)
    try:
        known = await store.sessions(None, 999)
        assert {each.id for each in known} == sessions
        told: dict[str, list[Any]] = {}
        for name, role, body in said:
            message = json.loads(body)
            told.setdefault(name, []).append((role, message.get("content")))
        for session in known:
            transcript = await store.transcript(session)
            assert [(each["role"], each.get("content")) for each in transcript] == told.get(session.id, [])
        originals = [json.loads(body) for _, role, body in said if role == "user"]
        for words in {text_of(each) for each in originals if text_of(each) and "_legato" not in each}:
            found = await store.search(words[:60], None, 99)
            assert found, words[:60]
        assert {item.id for item, *_ in (await worked_off(store))["turns"]} == waiting
        assert (await store.status()).waiting == 0
        total, one_by_one = [await store.usage(0, by) for by in ("model", "session")]
        assert sum(each.calls for each in total) == sum(each.calls for each in one_by_one)
    finally:
        await store.aclose()


# By table: the kind of record, where its fields are in the document, and what both are sorted by.
FIELDS_OF_THEN: Final = {
    "sessions": ("session", "session", "id"),
    "outbox": ("row", "out", "id"),
    "ledger": ("call", "entry", "at"),
    "inbox": ("item", "", "id"),
    "reminders": ("reminder", "reminder", "id"),
    "facts": ("fact", "fact", "id"),
}
OTHERWISE: Final = {"key", "scope", "seq", "number", "reminder"}  # fields that are written in another form


def test_every_field_of_then_has_its_value(path: Path) -> None:
    then: dict[str, list[dict[str, Any]]] = {}
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        for table, (_, _, order) in FIELDS_OF_THEN.items():
            known = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
            query = f"SELECT * FROM {table} ORDER BY {order}"
            then[table] = [dict(row) for row in connection.execute(query)] if known else []
    with closing(connect_writer(path)) as connection:
        migrate(connection, path)
    seen = 0
    for table, (kind, of, order) in FIELDS_OF_THEN.items():
        documents = [json.loads(doc) for (doc,) in rows(path, f"SELECT doc FROM {kind} ORDER BY key")]
        now = [document[of] if of else document for document in documents]
        now.sort(key=lambda row: row["number" if table == "inbox" else order])
        for row, record in zip(then[table], now, strict=True):
            for name in row.keys() & record.keys() - OTHERWISE:
                if isinstance(row[name], int | float) or (isinstance(row[name], str) and row[name][:1] not in "[{"):
                    seen += 1
                    assert record[name] == row[name], (table, name)
    assert seen > 20


async def test_people_who_were_let_in_then_are_known_now(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'guest_book'").fetchone():
            document = '{"asking": [], "guests": [], "failures": 3, "failed_at": 9.5, "version": 7, "colour": "red"}'
            connection.execute("INSERT OR REPLACE INTO guest_book(id, version, book) VALUES (1, 7, ?)", (document,))
            connection.commit()
            known = GuestBook(failures=3, failed_at=9.5, version=7)
        else:
            known = GuestBook()
    with capture_logs():
        store = await opened(path)
    try:
        assert await guest_book(store) == known
        assert await set_guest_book(store, replace(known, version=known.version + 1))
    finally:
        await store.aclose()


async def test_what_was_said_then_can_be_forgotten_now(path: Path) -> None:
    key = SessionKey(platform="test", chat="1")
    with closing(sqlite3.connect(path)) as connection, connection:
        canary = "quizzaciously"
        connection.execute(
            "UPDATE messages SET body = json_set(body, '$.content', ?) WHERE key = ?", (canary, str(key))
        )
    with capture_logs():
        store = await opened(path)
    try:
        assert await store.tip(key) is not None
        counts = await store.erase(None, Erasure(id="f1", key=key, at=START))
        assert counts["messages"] > 0
        assert await store.tip(key) is None
        assert await store.search(canary, None, 9) == []
        await store.rewrite()
    finally:
        await store.aclose()
    assert canary.encode() not in content(path)


def test_a_fact_that_is_younger_than_the_layout_has_no_value(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FIELDS, "sessions", (*FIELDS["sessions"], "colour"))
    with closing(connect_writer(path)) as connection:
        migrate(connection, path)
        assert one(connection, "SELECT count(*) > 0 FROM session") == (1,)


@pytest.mark.parametrize("path", [STORES[-1]], indirect=True, ids=["newest"])
def test_what_names_messages_of_a_redis_store_names_them_by_their_new_numbers(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE messages SET id = id + ?", (FOREIGN,))
        connection.execute("UPDATE transcript SET message_id = message_id + ?", (FOREIGN,))
        connection.execute("""UPDATE messages SET note = '{"derived_from":["0p01","9p09"]}' WHERE id % 16 = 2""")
        connection.execute("""UPDATE sessions SET engine_state = '{"0p02":"a 0p02"}'""")
        connection.execute("INSERT INTO notes(account, name, value) VALUES ('a', 'b', '0p03')")
    with closing(connect_writer(path)) as connection:
        migrate(connection, path)
    noted = "SELECT DISTINCT doc ->> '$.note' FROM message WHERE doc LIKE '%9p09%'"
    assert rows(path, noted) == [('{"derived_from":["1","9p09"]}',)]
    assert rows(path, "SELECT DISTINCT doc ->> '$.session.engine_state' FROM session") == [('{"2":"a 0p02"}',)]
    assert rows(path, "SELECT doc ->> '$.text' FROM note WHERE doc ->> '$.folder' = 'a'") == [("3",)]


@pytest.mark.parametrize("path", [STORES[-1]], indirect=True, ids=["newest"])
async def test_what_a_migration_of_then_left_half_filled_is_filled(path: Path) -> None:
    half, clock = path.with_name("half.db"), SystemClock()
    half.write_bytes(content(path))
    with closing(sqlite3.connect(half)) as connection, connection:
        connection.execute("INSERT INTO meta(name, value) VALUES ('moving_from', 'redis://there')")
        connection.execute("DELETE FROM messages WHERE id > 10")
    source, target = (source_at(f"sqlite:///{path}", clock), target_at(f"sqlite:///{half}", clock))
    report = await move(source, target, clock=clock)
    assert report.copied == report.verified
    assert report.copied["message"] == len(rows(path, "SELECT id FROM messages"))


@pytest.mark.parametrize("path", [STORES[-1]], indirect=True, ids=["newest"])
async def test_a_long_upgrade_says_how_far_it_is(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "PAGE", 2)
    monkeypatch.setattr(facts, "TOLD_EACH", 50)
    told: list[str] = []
    with capture_logs():
        store = SqliteStore(path, clock=ManualClock(START), told=told.append, keeps_copy=False)
        await store.open()
        await store.aclose()
    assert told[0].endswith("from version 24 to 32.")
    assert len(told) > 2
    assert re.fullmatch(r"5[01] of about \d+ records are updated\.", told[1])


@pytest.mark.parametrize("path", [STORES[-1]], indirect=True, ids=["newest"])
def test_an_upgrade_that_would_lose_something_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(moving._PUT, "outbox", lambda *_: None)
    before = rows(path, "SELECT count(*) FROM outbox")
    with closing(connect_writer(path)) as connection, pytest.raises(StoreError, match=r"outbox became 0\. Nothing in"):
        migrate(connection, path)
    assert rows(path, "SELECT count(*) FROM outbox") == before


@pytest.mark.parametrize("pages", [0, 40, 76])
@pytest.mark.parametrize("path", [STORES[-1]], indirect=True, ids=["newest"])
def test_an_upgrade_without_room_changes_nothing_and_says_so(path: Path, pages: int) -> None:
    before = rows(path, "SELECT count(*) FROM outbox")
    with closing(connect_writer(path)) as connection:
        connection.pragma("max_page_count", connection.pragma("page_count") + pages)
        with pytest.raises(apsw.FullError):
            migrate(connection, path)
    assert rows(path, "SELECT count(*) FROM outbox") == before


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("UPDATE pins SET rules = '{' WHERE key = 'test/chat=11'", "pins test/chat=11"),
        ("UPDATE messages SET body = '{' WHERE id = 7", "messages 7"),
        ("UPDATE outbox SET file = '{}' WHERE id = 'o1'", "outbox o1"),
        ("UPDATE reminders SET reminder = '[]' WHERE id = 'r_0'", "reminders r_0"),
    ],
)
@pytest.mark.parametrize("path", [STORES[-1]], indirect=True, ids=["newest"])
def test_an_upgrade_names_what_is_damaged_and_changes_nothing(path: Path, change: str, named: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(change)
    with closing(connect_writer(path)) as connection, pytest.raises(StoreError, match=f"damaged: {named} cannot be"):
        migrate(connection, path)
    assert rows(path, "PRAGMA user_version") == [(24,)]


@pytest.mark.parametrize("path", [STORES[-1]], indirect=True, ids=["newest"])
def test_a_session_whose_prompt_is_lost_is_there(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM prompts WHERE session_id = 's1'")
    with closing(connect_writer(path)) as connection:
        migrate(connection, path)
    assert rows(path, "SELECT key FROM session WHERE key = 's1'") == [("s1",)]


def test_what_a_server_holds_needs_room_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = [Record("notes", {"account": "a", "name": str(number), "value": "x" * 9_000}) for number in range(99)]

    def fill() -> None:
        with scratch() as filled:
            connection = filled.written.connection
            connection.pragma("max_page_count", connection.pragma("page_count") + 40)
            filled.put(notes)

    with pytest.raises(StoreUnavailable, match=r"is full\. Free some space"):
        fill()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(StoreUnavailable, match="or set TMPDIR to another folder"), scratch():
        pass


@pytest.mark.parametrize("path", [STORES[-1]], indirect=True, ids=["newest"])
def test_an_upgrade_does_not_gather_the_messages_in_memory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "PAGE", 2)
    most = 0
    with closing(connect_writer(path)) as connection:

        def looked(*_: object) -> bool:
            nonlocal most
            most = max(most, len(connection.stored))
            return True

        connection.exec_trace = looked
        migrate(connection, path)
        connection.exec_trace = None
    assert 0 < most <= 2
    assert len(rows(path, "SELECT key FROM message")) > 10


@pytest.mark.parametrize("path", [STORES[-1]], indirect=True, ids=["newest"])
async def test_whenever_an_upgrade_is_killed_the_file_is_of_the_one_layout_or_of_the_other(path: Path) -> None:
    copies: list[Path] = []
    statements = 0

    def killed(*_: object) -> bool:
        """As the file is at every fiftieth statement, after which the process is no more."""
        nonlocal statements
        statements += 1
        if statements % 50 == 1:
            copy = path.with_name(f"{statements}.db")
            for part in ("", "-wal"):
                if (there := path.with_name(f"{path.name}{part}")).exists():
                    copy.with_name(f"{copy.name}{part}").write_bytes(there.read_bytes())
            copies.append(copy)
        return True

    said = len(rows(path, "SELECT id FROM messages"))
    with closing(connect_writer(path)) as connection:
        connection.exec_trace = killed
        migrate(connection, path)
        connection.exec_trace = None
    assert len(copies) > 5
    for each in copies:
        assert rows(each, "PRAGMA user_version") == [(int(STORES[-1].name[:2]),)]
        with capture_logs():
            store = await opened(each)
        await store.aclose()
        assert rows(each, "SELECT count(*) FROM message") == [(said,)]
