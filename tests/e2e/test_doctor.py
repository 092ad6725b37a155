"""`legato doctor`: it finds what is wrong, changes nothing, and its report tells nothing of anybody."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections import namedtuple
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest
from typer.testing import CliRunner, Result

from gateway.cli.doctor import of_clock, of_disk, of_versions
from gateway.cli.main import app
from gateway.runtime.clock import SystemClock
from gateway.store.sqlite import SqliteStore
from tests.support.gateway import config_in, running
from tests.support.store_kit import put

if TYPE_CHECKING:
    from tests.support.redis_server import RedisServer

pytest_plugins = ["tests.support.redis_server"]
CANARY = "Quizzaciously"


def doctor(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["doctor", *arguments])


def lines(result: Result) -> dict[str, str]:
    return {line[:16].strip(): line[17:] for line in result.stdout.splitlines()}


def contents(folder: Path) -> dict[str, str]:
    """Every file, but the log that every reader of a SQLite file opens, while it is empty, and the log's index."""
    files = (each for each in folder.rglob("*") if each.is_file() and not each.name.endswith("-shm"))
    files = (each for each in files if not each.name.endswith("-wal") or each.stat().st_size)
    return {str(each): sha256(each.read_bytes()).hexdigest() for each in files}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text("store: {url: 'sqlite:///legato.db'}\n", encoding="utf-8")
    return tmp_path


async def spoken(home: Path) -> None:
    async with running(home, config=config_in(home)) as live:
        await live.ask(f"my name is {CANARY}", chat=CANARY, user=CANARY)


def test_before_the_first_start_it_says_so_and_makes_nothing(home: Path) -> None:
    before = contents(home)
    said = doctor()
    assert said.exit_code == 0, said.stdout
    assert lines(said)["store"].startswith("ok    there is no store yet")
    assert contents(home) == before


def test_it_changes_no_file(home: Path) -> None:
    asyncio.run(spoken(home))
    before = contents(home)
    said = doctor()
    assert said.exit_code == 0, said.stdout
    told = lines(said)
    assert told["store's content"] == "ok    1 session, 0 waiting, 0 not shown, 0 given up, 0 to be indexed"
    assert told["references"] == "ok    no record is missing"
    assert told["libraries"].startswith("ok    aiohttp ")
    assert contents(home) == before


def test_what_a_killed_gateway_left_in_the_log_stays_there(home: Path) -> None:
    async def killed() -> None:
        store = SqliteStore(home / "legato.db", clock=SystemClock())
        await store.open()
        await put(store, "e1")
        for name in ("legato.db", "legato.db-wal"):
            shutil.copy(home / name, home / f"copy-{name}")
        await store.aclose()
        for name in ("legato.db", "legato.db-wal"):
            os.replace(home / f"copy-{name}", home / name)

    asyncio.run(killed())
    before = contents(home)
    said = doctor()
    assert "1 waiting" in lines(said)["store's content"], said.stdout
    assert contents(home) == before


async def test_beside_a_running_gateway(home: Path) -> None:
    async with running(home, config=config_in(home)) as live:
        await live.ask("hello")
        said = await asyncio.to_thread(doctor)
        assert said.exit_code == 0, said.stdout
        assert await live.ask("still there?") == "echo: still there?"


def test_rows_that_refer_to_nothing_are_a_failure(home: Path) -> None:
    asyncio.run(spoken(home))
    connection = apsw.Connection(str(home / "legato.db"))
    connection.execute("DELETE FROM message")
    connection.close()
    said = doctor()
    assert said.exit_code == 1
    assert lines(said)["references"] == "FAIL  2 places of transcripts without a message: restore the last backup"


@pytest.mark.parametrize("content", [b"", b"not a database at all" * 300, b"SQLite format 3\0" + b"\xff" * 5_000])
def test_a_file_that_is_no_store_is_told_and_left(home: Path, content: bytes) -> None:
    (home / "legato.db").write_bytes(content)
    before = contents(home)
    said = doctor()
    assert said.exception is None or isinstance(said.exception, SystemExit)
    assert "legato.db" in lines(said)["store's content"]
    assert contents(home) == before


def test_a_damaged_page_is_a_failure(home: Path) -> None:
    asyncio.run(spoken(home))
    file = home / "legato.db"
    data = bytearray(file.read_bytes())
    for page in range(2, len(data) // 4_096):
        data[page * 4_096 : page * 4_096 + 64] = b"\xa5" * 64
    file.write_bytes(bytes(data))
    said = doctor()
    assert said.exit_code == 1
    assert "is damaged" in said.stdout


@pytest.mark.parametrize(("now", "ok", "told"), [(0.0, False, "the year 1970"), (1.8e9, True, "2027-01-15")])
def test_the_clock(now: float, ok: bool, told: str) -> None:
    fact = of_clock(now)
    assert (fact.ok, told in fact.detail) == (ok, True)


def test_the_disk(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    (home / "legato.db").write_bytes(b"x" * 1_000)
    for free, size, ok in ((10**8, 0, False), (10**9, 10**9, None), (10**10, 0, True)):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: usage(10**11, 0, free))
        os.truncate(home / "legato.db", size)
        (fact,) = of_disk(config_in(home, store=config_in(home).store))
        assert fact.ok is ok, fact.detail


def test_files_beside_the_store_that_others_can_read_are_named(home: Path) -> None:
    asyncio.run(spoken(home))
    (home / "legato.db.version-3").write_bytes(b"")
    (home / "legato.db.version-3").chmod(0o644)
    assert "chmod go= legato.db.version-3" in lines(doctor())["rights"]


def test_versions_name_what_runs() -> None:
    told = {fact.what: fact.detail for fact in of_versions()}
    assert f"SQLite {apsw.sqlite_lib_version()}" in told["versions"]
    assert "pydantic " in told["libraries"]


def test_the_report_tells_nothing_of_anybody(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.run(spoken(home))
    monkeypatch.setenv("KEY", f"sk-{CANARY}-0123456789")
    settings = {
        "store": {"url": f"sqlite:///{home / 'legato.db'}"},
        "model": {
            "provider": "openai",
            "name": CANARY,
            "base_url": f"http://127.0.0.1:1/{CANARY}",
            "api_key": "${KEY}",
        },
        "access": {"allow": ["telegram:4711"], "admins": ["discord:4711471147114711"]},
        "chats": {"telegram:-100471147114": {"persona": CANARY}},
        "prompt": {"persona": CANARY},
        "tools": {"mcp": {"house": {"command": [f"/no/{CANARY}"]}}, "offered": {CANARY: []}},
        "sessions": {"busy_mode": "steer"},
        "turns": {"max_steps": 7},
    }
    (home / "config.yaml").write_text(json.dumps(settings), encoding="utf-8")
    said = doctor("--report")
    assert said.exit_code == 0, said.stderr
    for told in (CANARY, CANARY.lower(), "4711", str(home), "127.0.0.1", "house"):
        assert told not in said.stdout
    for line in ("- `model.provider`: openai", "- `model.name`: set", "- `sessions.busy_mode`: steer",
                 "- `turns.max_steps`: 7", "- `access.allow`: 1 of them", "| model | FAIL |  |"):  # fmt: skip
        assert line in said.stdout
    # What the person sees names the things.
    assert CANARY in doctor().stdout


def test_a_wrong_configuration_ends_it_as_it_ends_check(home: Path) -> None:
    (home / "config.yaml").write_text("stor: {}\n", encoding="utf-8")
    assert doctor().exit_code == 2


def test_a_server(home: Path, redis_server: RedisServer) -> None:
    redis_server.empty()
    (home / "config.yaml").write_text(f"store: {{url: '{redis_server.url}'}}\n", encoding="utf-8")
    told = lines(doctor())
    assert told["store's content"].startswith("ok    0 sessions")
    assert told["store's server"][6:].startswith(("valkey ", "redis "))
    (home / "config.yaml").write_text("store: {url: 'redis://127.0.0.1:1/0'}\n", encoding="utf-8")
    away = doctor()
    assert (away.exit_code, lines(away)["store's server"]) == (1, "FAIL  it does not answer")
