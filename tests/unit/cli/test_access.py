"""`legato access` and `legato keys`: who may talk, from a shell."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

import pytest
from typer.testing import CliRunner, Result

from gateway.app.plugins import platforms
from gateway.cli.main import program
from gateway.cli.program import settings_of
from gateway.domain.adapter import LOGIN_NOTE
from gateway.domain.chat import Inbound, Source
from gateway.people.access import Access
from gateway.people.pairing import Pairing
from gateway.runtime.clock import SystemClock
from gateway.store.sqlite import SqliteStore

ANNA = Source(platform="telegram", chat="7", chat_type="direct", user="7", user_name="Anna")


def legato(*arguments: str) -> Result:
    return CliRunner().invoke(program(arguments), arguments)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text("store: {url: 'sqlite:///legato.db'}\n", encoding="utf-8")
    return tmp_path


def in_store(home: Path, work: Callable[[SqliteStore], Awaitable[object]]) -> None:
    async def run() -> None:
        store = SqliteStore(home / "legato.db", clock=SystemClock())
        await store.open()
        try:
            await work(store)
        finally:
            await store.aclose()

    asyncio.run(run())


def test_somebody_is_let_in_by_a_code_listed_and_shown_out(home: Path) -> None:
    said = list[str | None]()

    async def asks(store: SqliteStore) -> None:
        pairing = Pairing(access=Access(pairing=True), store=store, clock=SystemClock(), rng=Random(1))
        said.append(await pairing.ask(Inbound(event_id="e", source=ANNA, text="hello", place="1")))

    in_store(home, asks)
    code = re.findall(r"\b[A-Z0-9]{4}-[A-Z0-9]{4}\b", str(said[0]))[-1]
    asking = legato("access", "list").stdout
    assert "Asks, 0 min ago: telegram:7 “Anna”" in asking
    assert code not in asking
    wrong = legato("access", "confirm", code[::-1])
    assert (wrong.exit_code, wrong.stdout, "access list" in wrong.stderr) == (1, "", True)
    assert legato("access", "confirm", code).stdout.startswith("Let in: telegram:7 “Anna”. The gateway tells")
    assert legato("access", "list").stdout.startswith("Let in: telegram:7 “Anna”\n")
    assert "for example: legato access remove " in legato("access", "remove", "telegram").stderr
    assert "access list" in legato("access", "remove", "telegram:8").stderr
    assert legato("access", "remove", "Telegram:7").stdout == "I shut telegram:7 “Anna” out.\n"
    assert legato("access", "list").stdout == "Nobody has been let in with a code, and nobody is asking.\n"


@pytest.mark.parametrize(("name", "ended"), [("anna", 2), ("web:anna", 2), ("ben", 1), ("nobody", 0)])
def test_somebody_is_logged_out_everywhere_and_nobody_else(home: Path, name: str, ended: int) -> None:
    logins = {
        f"{LOGIN_NOTE}{number}": json.dumps({"person": who}) for number, who in enumerate(("anna", "ben", "anna"))
    }
    folder = next(f"{each.name}:{each.logins}" for each in platforms().values() if each.logins)
    left = list[str]()

    async def log_in(store: SqliteStore) -> None:
        await store.set_notes(folder, {**logins, "another note": "{}"})

    async def look(store: SqliteStore) -> None:
        left.extend(await store.notes(folder))

    in_store(home, log_in)
    told = legato("access", "logout", name).stdout
    in_store(home, look)
    assert len(left) == 4 - ended
    assert "another note" in left
    what = {0: "nobody is not logged in.", 1: "ben: 1 login ended.", 2: "anna: 2 logins ended."}[ended]
    assert told.startswith(what)


def test_a_link_is_shown_if_its_page_is_open(home: Path) -> None:
    file = next(each.link_file for each in platforms().values() if each.link_file)
    assert "no page is open here" in legato("access", "link").stderr
    with socket.create_server(("127.0.0.1", 0)) as page:
        address = f"http://127.0.0.1:{page.getsockname()[1]}/?key=x"
        settings_of(None).home.mkdir()
        (settings_of(None).home / file).write_text(f"{address}\n", encoding="utf-8")
        assert legato("access", "link").stdout == f"{address}\n"
    closed = legato("access", "link")
    assert (closed.exit_code, closed.stdout) == (1, "")


def test_a_key_is_shown_once_listed_and_taken_back(home: Path) -> None:
    made = [legato("keys", "add", "anna", "--admin", "--cap", "2.5"), legato("keys", "add", "front", "--front-end")]
    assert (home / "legato-home").stat().st_mode & 0o777 == 0o700
    assert all(each.stdout.startswith("sk-legato-") for each in made)
    assert all("Set adapters.api.enabled to true" in each.stderr for each in made)
    assert "cannot all be admins" in legato("keys", "add", "both", "--front-end", "--admin").stderr
    listed = [line.partition(", since")[0] for line in legato("keys", "list").stdout.splitlines()]
    assert listed == ["anna: admin, $2.5 a day", "front: front end"]
    assert "no key named nobody" in legato("keys", "remove", "nobody").stderr
    assert legato("keys", "remove", "anna").stdout.startswith("The key anna is removed.")
    assert legato("keys", "list").stdout.startswith("front")
    assert legato("keys", "remove", "front").exit_code == 0
    assert "There are no keys" in legato("keys", "list").stdout
