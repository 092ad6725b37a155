"""`legato backup` and `legato outbox`, as an operator types them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gateway.cli.backup import back_up
from gateway.cli.main import app
from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import UserError
from gateway.store.port import Store
from gateway.store.redis import RedisStore
from gateway.store.sqlite import SqliteStore
from tests.support.gateway import config_in, running
from tests.support.store_kit import outbound


def legato(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def on_store(path: Path, work: Callable[[Store], Awaitable[None]]) -> None:
    async def main() -> None:
        store = SqliteStore(path, clock=SystemClock())
        await store.open()
        try:
            await work(store)
        finally:
            await store.aclose()

    asyncio.run(main())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a configuration and no store yet."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text("store: {url: 'sqlite:///legato.db'}\n", encoding="utf-8")
    return tmp_path


async def test_a_backup_beside_a_running_gateway_is_a_store_with_every_word(home: Path) -> None:
    (home / "backups").mkdir()
    async with running(home, config=config_in(home)) as live:
        await live.ask("my code is quizzaciously")
        made = await asyncio.to_thread(legato, "backup", "backups", "--json")
    assert made.exit_code == 0, made.stderr
    row = json.loads(made.stdout)
    (copy,) = await asyncio.to_thread(list, (home / "backups").iterdir())
    there = await asyncio.to_thread(copy.stat)
    assert row == {"file": f"backups/{copy.name}", "bytes": there.st_size}
    assert there.st_mode & 0o077 == 0
    (home / "copy.yaml").write_text(f"store: {{url: 'sqlite:///{row['file']}'}}\n", encoding="utf-8")
    found = await asyncio.to_thread(legato, "sessions", "search", "quizzaciously", "--config", "copy.yaml")
    assert "my code is quizzaciously" in found.stdout


async def nothing(_: Store) -> None:
    """An empty store."""


def test_a_backup_replaces_no_file(home: Path) -> None:
    on_store(home / "legato.db", nothing)
    assert legato("backup", "copy.db").stdout.startswith("copy.db holds the whole store (")
    before = (home / "copy.db").read_bytes()
    again = legato("backup", "copy.db")
    assert again.exit_code == 2
    assert "copy.db exists already: name a new file, or a folder" in again.stderr
    assert (home / "copy.db").read_bytes() == before


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("copy.db", "There is no store at legato.db yet"),
        ("nowhere/copy.db", "There is no store at legato.db yet"),
    ],
)
def test_without_a_store_there_is_no_backup(home: Path, target: str, sentence: str) -> None:
    failed = legato("backup", target)
    assert failed.exit_code == 1
    assert sentence in failed.stderr
    assert not (home / target).exists()


def test_a_folder_that_is_not_there_is_named(home: Path) -> None:
    on_store(home / "legato.db", nothing)
    failed = legato("backup", "nowhere/copy.db")
    assert failed.exit_code == 1
    assert (
        "nowhere/copy.db cannot be written (No such file or directory): check that its folder exists" in failed.stderr
    )


async def test_a_redis_store_is_backed_up_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="backed up on its server"):
        await back_up(RedisStore("redis://127.0.0.1:1/0", clock=SystemClock()), tmp_path / "copy.db")


async def some_rows(store: Store) -> None:
    """A message that was shown, one that was given up, and two that wait."""
    await store.emit([outbound("o1", text="was shown"), outbound("o2", "2", text="was given up")])
    await store.mark_sent("o1", "m1")
    await store.mark_refused("o2", "the bot was blocked")
    await store.emit([outbound("o3", "3", text="is tried\nagain"), outbound("o4", "3", text="waits behind it")])
    await store.mark_retry("o3", 3_600, ambiguous=True)


def test_the_outbox_lists_what_people_do_not_see_and_why(home: Path) -> None:
    on_store(home / "legato.db", some_rows)
    listed = legato("outbox")
    assert listed.exit_code == 0, listed.stderr
    lines = listed.stdout.splitlines()
    assert "given up after 1 attempt: the bot was blocked" in lines[-1]
    assert "is tried again" in listed.stdout
    assert "1 attempt, 1 of them with an unknown outcome, the next at " in listed.stdout
    assert "was shown" not in listed.stdout
    everything = json.loads(legato("outbox", "--all", "--json").stdout)
    assert [(row["id"], row["state"]) for row in everything] == [
        ("o4", "pending"),
        ("o3", "pending"),
        ("o2", "refused"),
        ("o1", "sent"),
    ]
    assert [row["id"] for row in json.loads(legato("outbox", "--limit", "1", "--json").stdout)] == ["o4"]


def test_an_outbox_without_troubles_says_so(home: Path) -> None:
    on_store(home / "legato.db", nothing)
    assert legato("outbox").stdout.strip() == "There is nothing to list: every message was shown."
