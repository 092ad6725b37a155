"""`legato outbox`, as an operator types it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gateway.cli.main import program
from gateway.runtime.clock import SystemClock
from gateway.store.port import Store
from gateway.store.sqlite import SqliteStore
from tests.support.store_kit import outbound


def legato(*arguments: str) -> Result:
    return CliRunner().invoke(program(arguments), arguments)


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


async def nothing(_: Store) -> None:
    """An empty store."""


async def some_rows(store: Store) -> None:
    """A message that was shown, one that was given up, and two that wait."""
    await store.emit([outbound("o1", text="was shown"), outbound("o2", "2", text="was given up")])
    await store.mark_sent("o1", "m1")
    await store.mark_refused("o2", "the bot was blocked")
    await store.emit([outbound("o3", "3", text="is tried\nagain"), outbound("o4", "3", text="waits behind it")])
    await store.mark_retry("o3", 3_600, ambiguous=True)


def test_the_outbox_lists_what_people_do_not_see_and_why(home: Path) -> None:
    on_store(home / "legato.db", some_rows)
    listed = legato("outbox", "list")
    assert listed.exit_code == 0, listed.stderr
    lines = listed.stdout.splitlines()
    assert "given up after 1 attempt: the bot was blocked" in lines[-1]
    assert "is tried again" in listed.stdout
    assert "1 attempt, 1 of them with an unknown outcome, the next at " in listed.stdout
    assert "was shown" not in listed.stdout
    everything = json.loads(legato("outbox", "list", "--all", "--json").stdout)
    assert [(row["id"], row["state"]) for row in everything] == [
        ("o4", "pending"),
        ("o3", "pending"),
        ("o2", "refused"),
        ("o1", "sent"),
    ]
    assert [row["id"] for row in json.loads(legato("outbox", "list", "--limit", "1", "--json").stdout)] == ["o4"]


def test_an_outbox_without_troubles_says_so(home: Path) -> None:
    on_store(home / "legato.db", nothing)
    assert legato("outbox", "list").stdout.strip() == "There is nothing to list: every message has been shown."
