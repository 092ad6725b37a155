"""`legato outbox` and `legato dead`: what is stuck is shown, tried once more or dropped, with and beside a gateway."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gateway.app.orders import Order, carry_out, dead_of, leave, left
from gateway.cli.main import program
from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import DeliveryRefused
from gateway.store.port import Store
from gateway.store.sqlite import SqliteStore
from tests.support.fakes import ManualClock
from tests.support.gateway import FakeAdapter, config_in, running
from tests.support.store_kit import Bench, outbound, put

pytest_plugins = ["tests.support.stores"]


async def legato(*arguments: str) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, program(arguments), arguments)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text("store: {url: 'sqlite:///legato.db'}\n", encoding="utf-8")
    return tmp_path


@asynccontextmanager
async def opened(home: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(home / "legato.db", clock=SystemClock())
    await store.open()
    try:
        yield store
    finally:
        await store.aclose()


async def a_dead_item(store: Store, chat: str = "1") -> str:
    await put(store, f"e{chat}", chat=chat)
    claim = await store.claim_next("w")
    await store.finish_turn(claim.lease, None, claim.item, None, "dead", [])
    return claim.item.id


async def test_without_a_gateway_the_store_is_changed_at_once(home: Path) -> None:
    async with opened(home) as store:
        items = [await a_dead_item(store, chat) for chat in ("1", "2")]
        await store.emit([outbound("o1", "3", text="was refused"), outbound("o2", "4", text="waits")])
        await store.mark_refused("o1", "too rude")
        await store.mark_retry("o2", 3_600, ambiguous=False)
    listed = json.loads((await legato("dead", "list", "--json")).stdout)
    assert [(row["id"], row["text"], row["chat"]) for row in listed] == [
        (items[1], "hello", "2"),
        (items[0], "hello", "1"),
    ]
    planned = await legato("dead", "replay", "--chat", "test:1", "--dry-run")
    assert (planned.stdout.split(), planned.stderr) == ([items[0]], "")
    done = await legato("dead", "replay", "--chat", "test:1")
    assert (done.stdout.split(), "as soon as Legato runs" in done.stderr) == ([items[0]], True)
    assert (await legato("dead", "drop", items[1])).exit_code == 0
    assert (
        await legato("dead", "list")
    ).stdout == "There is nothing to list: Legato has not given up on any message.\n"
    assert (await legato("outbox", "retry", "--older-than", "0")).stdout.split() == ["o1"]
    assert (await legato("outbox", "drop", "o2")).exit_code == 0
    async with opened(home) as store:
        claim = await store.claim_next("w")
        assert (claim.item.inbound.event_id, claim.item.inbound.text) == ("replay.e1", "hello")
        (again,) = await store.claim_outbound(10)
        assert (again.text, again.attempts, again.ambiguous) == ("was refused", 1, 0)
        assert [str(row.state) for row in await store.outbox(None, 9) if row.id == "o2"] == ["refused"]


async def test_a_gateway_that_runs_carries_it_out(home: Path) -> None:
    adapter = FakeAdapter()
    async with running(home, config=config_in(home), adapter=adapter) as live:
        adapter.failures.append(DeliveryRefused("too rude"))
        await live.tell("say it")
        await adapter.until(lambda: any("refused" in row.text for row in adapter.sent))
        await live.quiet()
        (row,) = json.loads((await legato("outbox", "list", "--json")).stdout)
        done = await legato("outbox", "retry", row["id"])
        assert done.stderr == "The running gateway makes the change within ten seconds.\n", done.stderr
        await live.gateway.upkeep.orders.look()
        await adapter.until(lambda: "echo: say it" in adapter.shown())
        await live.gateway.upkeep.orders.look()
        await live.quiet()
        assert adapter.shown().count("echo: say it") == 1


async def test_a_message_is_tried_again_in_a_chat_that_was_gone(store: Store, bench: Bench) -> None:
    """The operator knows more than the last refusal: the person let the bot in again, and has not written yet."""
    await store.emit([outbound("o1", "7")])
    await store.mark_refused("o1", "blocked", gone=True)
    assert await store.closed(outbound("o1", "7").to) == "blocked"
    await carry_out(store, Order(verb="retry", id="o1", platform="test", chat="7"), bench.clock, {})
    assert [str(row.state) for row in await store.outbox(None, 9)] in (["pending"], ["sending"])


async def test_an_order_is_carried_out_once_on_every_store(store: Store, bench: Bench) -> None:
    clock: ManualClock = bench.clock
    item = await a_dead_item(store)
    replay = Order(verb="replay", id=item, platform="test", chat="1")
    for _ in range(2):
        assert await carry_out(store, replay, clock, await dead_of(store, [replay])) == ()
    claim = await store.claim_next("w")
    assert (claim.item.inbound.event_id, (await store.status()).waiting, await store.dead(9)) == ("replay.e1", 1, [])
    await store.emit([outbound("o1", "7"), outbound("o2", "7")])
    await store.mark_refused("o1", "no")
    assert [row.id for row in await store.outbox(None, 9) if row.state == "sending"] == ["o2"]
    retry = Order(verb="retry", id="o1", platform="test", chat="7")
    for _ in range(2):
        await carry_out(store, retry, clock, {})
    waiting = [row for row in await store.outbox(None, 9) if row.state == "pending"]
    assert len(waiting) == 1
    drop = Order(verb="drop", id=waiting[0].id, platform="test", chat="7")
    for _ in range(2):
        await carry_out(store, drop, clock, {})
    assert [str(row.state) for row in await store.outbox(None, 9) if row.id == waiting[0].id] == ["refused"]


async def test_an_order_that_cannot_be_read_is_kept_and_holds_up_no_other(home: Path) -> None:
    adapter = FakeAdapter(name="test")
    async with running(home, adapter=adapter) as live:
        unread = {"later": '{"verb": "sing", "id": "1", "platform": "test", "chat": "1"}', "cut": '{"verb": "se'}
        await live.store.set_notes("orders", unread)
        await leave(live.store, [Order(verb="send", id="o9", platform="test", chat="c", text="read me")])
        await live.gateway.upkeep.orders.look()
        await adapter.until(lambda: "read me" in adapter.shown())
        assert await left(live.store) == {}
        assert await live.store.notes("orders") == unread  # a later version may know them
