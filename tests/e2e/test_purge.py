"""`legato purge`, as an operator types it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

from gateway.agent.workspace.folders import Turn, Workspaces
from gateway.cli.main import app
from gateway.domain.chat import Attachment, SessionKey, Source
from gateway.domain.memory import Fact, MemoryChange
from gateway.domain.reminder import notes_of
from gateway.domain.turn import SessionSettings
from gateway.runtime.clock import SystemClock
from gateway.runtime.structs import replace
from gateway.store.port import Store
from gateway.store.redis import RedisStore
from gateway.store.sqlite import SqliteStore
from tests.support.gateway import Fetching, config_in, running
from tests.support.remains import in_files

if TYPE_CHECKING:
    from tests.support.redis_server import RedisServer

pytest_plugins = ["tests.support.redis_server"]

WORD = "quizzaciously"
GROUP = SessionKey(platform="fake", chat="g")


@pytest.fixture
def life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store in which two people talked, alone with the bot and in a group."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text(f"store: {{url: 'sqlite:///{tmp_path / 'legato.db'}'}}\n", encoding="utf-8")
    asyncio.run(_talk(tmp_path))
    return tmp_path / "legato.db"


async def _talk(folder: Path, store: Store | None = None) -> None:
    config = config_in(folder, sessions=SessionSettings(groups="shared"))
    group = {"chat": "g", "chat_type": "group"}
    async with running(folder, config=config, store=store) as live:
        await live.ask(f"my code is {WORD}")
        await live.ask(f"{WORD} among us", **group)
        await live.ask("I am Ben", user="ben", **group)
        await live.ask("/timezone tokyo", **group)
        await live.ask("/timezone tokyo", user="ben", **group)
        await live.ask("mine alone", chat="b", user="ben")
        await live.quiet()
        fact = Fact(
            scope=GROUP,
            id="",
            about="notes",
            text="chess",
            message_id="",
            session_id="",
            said_at=1.0,
            made_at=1.0,
            said_by="",
        )  # whose message is gone by now
        facts = tuple(replace(fact, id=user, said_by=user) for user in ("u", "ben"))
        assert await live.gateway.store.change_memory(MemoryChange(scope=GROUP, version=0, kept=facts))


def purge(*arguments: str, said: str = "") -> Result:
    return CliRunner().invoke(app, ["purge", *arguments], input=said)


def listed() -> dict[str, int]:
    """The keys of the sessions that are left, and their messages."""
    found = CliRunner().invoke(app, ["sessions", "list", "--json"])
    return {row["key"]: row["messages"] for row in json.loads(found.stdout)}


def test_all_of_a_person_goes_and_nothing_of_others(life: Path) -> None:
    before = listed()
    shown = purge("--person", "fake:u", "--dry-run")
    assert shown.exit_code == 0
    assert "fake/chat=c: everything (1 session, 2 messages)" in shown.stdout
    assert "fake/chat=g: what the person said" in shown.stdout
    assert listed() == before
    refused = purge("--person", "fake:u", said="n\n")
    assert refused.exit_code == 1
    assert listed() == before
    done = purge("--person", "fake:u", said="y\n")
    assert done.exit_code == 0, done.output
    assert "messages: 4" in done.stdout
    assert listed() == {"fake/chat=g": 2, "fake/chat=b": 2}
    assert in_files([life, life.with_name("legato.db-wal")], WORD, WORD[3:]) == []
    assert purge("--person", "fake:u", "--yes").exit_code == 0


def test_what_a_person_set_for_themselves_goes_with_them(life: Path) -> None:
    purge("--person", "fake:u", "--yes")
    assert asyncio.run(_set_by(life)) == ([False, True], ["ben"])


async def _set_by(path: Path) -> tuple[list[bool], list[str]]:
    """Whether the two have a time zone, and of whom the group's memory has something."""
    store = SqliteStore(path, clock=SystemClock())
    await store.open()
    own = (notes_of(Source(platform="fake", chat="c", chat_type="direct", user=user)) for user in ("u", "ben"))
    try:
        zones = [bool(await store.notes(each)) for each in own]
        return zones, [each.said_by for each in (await store.memory(GROUP)).facts]
    finally:
        await store.aclose()


def test_workspaces_go_with_their_conversations(life: Path) -> None:
    workspaces = Workspaces(life.parent / "legato-home" / "workspaces")
    for chat in ("c", "b", "g"):
        for text in (WORD, "later"):
            workspace = workspaces.of(SessionKey(platform="fake", chat=chat))
            workspace.write(Turn(id=text, session="s", at=0.0), ("a.txt",), text.encode())
    purge("--person", "fake:u", "--yes")
    left = {path.name for path in workspaces.root.iterdir()} | {
        path.name for path in (workspaces.root / ".kept").iterdir()
    }
    assert left == {".kept", "fake%2Fchat=b", "fake%2Fchat=g"}, "alone with the bot all goes, of a group what they said"


def test_a_key_goes_and_what_is_young_stays(life: Path) -> None:
    assert purge("--older-than", "30", "--yes").stdout.strip() == "There is nothing to purge."
    done = purge("--key", "fake/chat=c", "--yes", "--json")
    assert json.loads(done.stdout) == {"sessions": 1, "messages": 2}
    assert listed() == {"fake/chat=g": 4, "fake/chat=b": 2}


def test_what_is_over_and_old_goes(life: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def begin_anew() -> None:
        async with running(life.parent, config=config_in(life.parent)) as live:
            await live.ask("/new")
            await live.ask("I am back")
            await live.quiet()

    asyncio.run(begin_anew())
    now = SystemClock().now()
    monkeypatch.setattr(SystemClock, "now", lambda _: now + 31 * 86_400)
    shown = purge("--older-than", "30", "--dry-run")
    assert shown.stdout.splitlines()[:1] == ["fake/chat=c: the older part (1 session, 2 messages)"]
    done = purge("--older-than", "30", "--yes", "--json")
    assert json.loads(done.stdout) == {"sessions": 1, "messages": 2}
    assert listed() == {"fake/chat=c": 2, "fake/chat=g": 4, "fake/chat=b": 2}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "say what to purge"),
        (["--person", "a:b", "--key", "fake/chat=c"], "say what to purge"),
        (["--person", "nobody"], "does not name a person"),
        (["--key", "nothing"], "is not the key"),
    ],
)
def test_what_is_not_said_well_is_refused(life: Path, arguments: list[str], sentence: str) -> None:
    result = purge(*arguments, "--yes")
    assert result.exit_code == 2
    assert sentence in result.output
    assert len(listed()) == 3


def test_a_file_that_a_gateway_uses_is_left_alone(life: Path) -> None:
    async def held() -> Result:
        store = SqliteStore(life, clock=SystemClock())
        await store.open()
        try:
            return await asyncio.to_thread(purge, "--key", "fake/chat=c", "--yes")
        finally:
            await store.aclose()

    result = asyncio.run(held())
    assert result.exit_code == 1
    assert "legato.db" in result.output
    assert len(listed()) == 3


def test_a_server_is_purged_beside_a_gateway(
    redis_server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text(f"store: {{url: '{redis_server.url}'}}\n", encoding="utf-8")
    redis_server.empty()

    async def beside() -> Result:
        store = RedisStore(redis_server.url, clock=SystemClock())
        config = config_in(tmp_path, sessions=SessionSettings(groups="shared"))
        async with running(tmp_path, config=config, store=store) as live:
            await live.ask(f"my code is {WORD}")
            await live.ask("theirs", chat="b", user="ben")
            await live.quiet()
            result = await asyncio.to_thread(purge, "--person", "fake:u", "--yes", "--json")
            assert await live.tip() is None
            await live.ask("hello again")
            return result

    result = asyncio.run(beside())
    assert json.loads(result.stdout) == {"sessions": 1, "messages": 2}
    assert listed() == {"fake/chat=c": 2, "fake/chat=b": 2}


def test_purged_files_take_no_room_any_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text(f"store: {{url: 'sqlite:///{tmp_path / 'legato.db'}'}}\n", encoding="utf-8")
    account = "files of fake/chat=u"

    async def spent() -> int:
        store = SqliteStore(tmp_path / "legato.db", clock=SystemClock())
        await store.open()
        (used,) = await store.spent([account])
        await store.aclose()
        return used

    async def send() -> None:
        adapter = Fetching(b"a line\n" * 100)
        async with running(tmp_path, adapter=adapter) as live:
            file = Attachment(kind="document", ref="r1", name="a.txt", mime="text/plain")
            await live.answer(await live.tell("look", attachments=(file,)))

    asyncio.run(send())
    assert asyncio.run(spent()) == 700
    assert purge("--person", "fake:u", "--yes").exit_code == 0
    assert asyncio.run(spent()) == 0
