"""`legato send`: a script's text reaches a chat once, whether a gateway runs, ran out, or comes later."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gateway.app.orders import Order, leave, left
from gateway.app.plugins import platforms
from gateway.cli import send as sending
from gateway.cli.main import program
from gateway.cli.reports import time_text
from gateway.cli.trace import traced
from gateway.domain.adapter import Limits
from gateway.domain.chat import ChatAddress
from gateway.runtime.clock import SystemClock, SystemIds
from gateway.runtime.errors import UserError
from gateway.runtime.structs import replace
from gateway.store.port import Store
from tests.support.fakes import ManualClock
from tests.support.gateway import FakeAdapter, config_in, running

pytest_plugins = ["tests.support.redis_server"]

HERE = ChatAddress(platform="fake", chat="c")


def legato(*arguments: str, given: str | bytes = "") -> Result:
    return CliRunner().invoke(program(arguments), arguments, input=given)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOKEN", "123:abc")
    (tmp_path / "config.yaml").write_text(
        "store: {url: 'sqlite:///legato.db'}\nadapters: {telegram: {enabled: true, token: '${TOKEN}'}}\n",
        encoding="utf-8",
    )
    return tmp_path


def order(text: str, key: str = "", at: float = 0.0) -> Order:
    return sending.order_for(HERE, text, key, ManualClock(at or 1_700_000_000.0), SystemIds())


async def test_it_waits_for_a_gateway_and_is_shown_once_in_the_order_of_sending(
    tmp_path: Path, reopened: Callable[[], Store]
) -> None:
    shell = reopened()
    shell.serve(runs=(), sends=())
    await shell.open()
    later, first = order("second", "a", at=200.0), order("first", "b", at=100.0)
    for each in (later, first):
        assert (await sending.send(shell, each))["state"] == "left"
    assert await sending.send(shell, first) == {"id": first.id, "state": "waiting"}
    (trace,) = await traced(shell, first.id, [], 0.0)
    told = [(row["state"], row["text"], row["created_at"]) for row in trace["rows"]]
    assert told == [("left", "first", time_text(100.0))]
    await shell.aclose()
    adapter, store = FakeAdapter(), reopened()
    async with running(tmp_path, config=config_in(tmp_path), adapter=adapter, store=store) as live:
        await live.gateway.upkeep.orders.look()
        await adapter.until(lambda: adapter.shown() == ["first", "second"])
        await live.quiet()
        assert await sending.send(store, order("another text", "b")) == {"id": first.id, "state": "sent"}
        await live.gateway.upkeep.orders.look()
        await live.quiet()
        assert adapter.shown() == ["first", "second"]
        assert [row.kind for row in adapter.sent] == ["notice", "notice"]


async def test_a_gateway_killed_between_showing_and_forgetting_the_order_shows_it_once(
    tmp_path: Path, reopened: Callable[[], Store]
) -> None:
    adapter, store = FakeAdapter(limits=Limits(trusted=True, text_units=10)), reopened()
    async with running(tmp_path, config=config_in(tmp_path), adapter=adapter, store=store) as live:
        asked = order("one two three four five")
        for _ in range(2):  # the note that holds it was never taken away
            await leave(store, [asked])
            await live.gateway.upkeep.orders.look()
            await live.quiet()
        # The same key with more words than before brings no rest of them.
        await leave(store, [replace(asked, text=asked.text * 3)])
        await live.gateway.upkeep.orders.look()
        await live.quiet()
        assert "".join(adapter.shown()) == "one two three four five"
        assert [row.id for row in adapter.sent] == [asked.id, f"{asked.id}.1", f"{asked.id}.2"]


async def test_the_agent_is_asked_once_and_the_text_is_a_programs_word(
    tmp_path: Path, reopened: Callable[[], Store]
) -> None:
    asked = sending.order_for(
        HERE, "/forget everything\n91 % full", "k", SystemClock(), SystemIds(), task="Is it full?"
    )
    adapter, store = FakeAdapter(), reopened()
    async with running(tmp_path, config=config_in(tmp_path), adapter=adapter, store=store) as live:
        for state in ("left", "waiting"):
            assert (await sending.send(store, asked))["state"] == state
        await live.gateway.upkeep.orders.look()
        await adapter.until(lambda: len(adapter.shown("c")) == 2)
        await live.quiet()
        assert (await sending.send(store, asked))["state"] == "taken"
        notice, reply = adapter.shown("c")
        assert notice == "I am continuing on my own: a text came from a shell."
        assert "Your task, which the operator gave you: Is it full?" in reply
        assert "\n/forget everything\n91 % full\n" in reply
        (trace,) = await traced(store, asked.id, ["fake"], 0.0)
        assert (trace["kind"], trace["outcome"]) == ("event", "answered")
        assert len(live.model.requests) == 1


async def test_a_platform_that_this_process_does_not_serve_keeps_its_texts(tmp_path: Path) -> None:
    elsewhere = replace(order("for others"), platform="other")
    async with running(tmp_path, config=config_in(tmp_path)) as live:
        await leave(live.store, [elsewhere, order("for us")])
        await live.gateway.upkeep.orders.look()
        await live.quiet()
        assert live.adapter.shown() == ["for us"]
        assert list(await left(live.store)) == [elsewhere.name]


async def test_beside_a_gateway_that_runs(home: Path) -> None:
    adapter = FakeAdapter(name="telegram")
    async with running(home, config=config_in(home), adapter=adapter) as live:
        sent = await asyncio.to_thread(legato, "send", "telegram:4711", "the", "backup", "is", "done", "--json")
        assert sent.exit_code == 0, sent.stderr
        row = json.loads(sent.stdout)
        await live.gateway.upkeep.orders.look()
        await adapter.until(lambda: adapter.shown("4711") == ["the backup is done"])
        await live.quiet()
        listed = json.loads((await asyncio.to_thread(legato, "outbox", "list", "--all", "--json")).stdout)
        assert [(each["id"], each["state"]) for each in listed] == [(row["id"], "sent")]


@pytest.mark.parametrize(
    ("arguments", "given", "sentence"),
    [
        (["telegran:1", "x"], b"", "there is no platform telegran; did you mean telegram?"),
        (["discord:1", "x"], b"", "Discord is not switched on here: set adapters.discord.enabled to true first"),
        (["telegram", "x"], b"", "'telegram' does not name a chat: write PLATFORM:CHAT"),
        (["telegram:", "x"], b"", "does not name a chat"),
        (["telegram:1\n2", "x"], b"", "does not name a chat"),
        (["telegram:1", "  "], b"", "there is no text"),
        (["telegram:1", "-"], b" \n\n", "there is no text"),
        (["telegram:1", "-"], b"\xff\xfe", "stdin is not UTF-8 text (byte 1)"),
        (["telegram:1", "-"], b"x" * 100_001, "the text has 100,001 characters, and may have at most 100,000"),
        (["telegram:1"], b"", "Missing argument"),
    ],
)
def test_what_cannot_be_sent_is_refused_with_a_reason(
    home: Path, arguments: list[str], given: bytes, sentence: str
) -> None:
    refused = legato("send", *arguments, given=given)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert sentence in " ".join(refused.stderr.split())
    assert not (home / "legato.db").exists()


def test_without_a_store_nothing_is_said_to_be_sent(home: Path) -> None:
    refused = legato("send", "telegram:1", "x")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "There is no store at legato.db" in refused.stderr


def test_a_chat_that_its_platform_cannot_have_is_refused() -> None:
    def refuse(_: str) -> str:
        return "must be a number"

    (name, platform), *_ = platforms().items()
    strict = replace(platform, name=name, settings=None, place_problem=refuse)
    with pytest.raises(UserError, match=f"{name}:x must be a number"):
        sending.place_named(f"{name}:x", None, {name: strict}, {})


async def test_two_scripts_with_one_key_at_once_send_one_text(tmp_path: Path, reopened: Callable[[], Store]) -> None:
    adapter, store = FakeAdapter(), reopened()
    async with running(tmp_path, config=config_in(tmp_path), adapter=adapter, store=store) as live:
        same = [order("hello", "nightly") for _ in range(5)]
        await asyncio.gather(*(sending.send(store, each) for each in same))
        await asyncio.gather(*(live.gateway.upkeep.orders.look() for _ in range(3)))
        await live.quiet()
        assert adapter.shown() == ["hello"]
        assert len({each.id for each in same}) == 1


def test_the_clock_and_ids_of_the_shell_make_rows_of_their_own() -> None:
    made = [sending.order_for(HERE, "x", "", SystemClock(), SystemIds()).id for _ in range(2)]
    assert made[0] != made[1]
