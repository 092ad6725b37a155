"""`legato trace`: any id that a person or a log line can give leads to the whole turn."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gateway.cli.main import app
from gateway.cli.trace import trace_text, traced
from gateway.runtime.errors import UserError
from gateway.store.port import Store
from tests.support.gateway import FakeAdapter, FakeModel, Live, Say, config_in, in_turn, running
from tests.support.store_kit import Bench, outbound, put

pytest_plugins = ["tests.support.stores"]

NOW = 4e9


async def one(live: Live, name: str) -> dict[str, Any]:
    (trace,) = await traced(live.store, name, ["fake"], NOW)
    return trace


async def test_every_id_of_a_turn_leads_to_it(tmp_path: Path, reopened: Callable[[], Store]) -> None:
    adapter = FakeAdapter()
    model = FakeModel(in_turn(Say(text="first"), Say(calls=[("clock", "{}")]), Say(text="it is late")))
    async with running(tmp_path, config=config_in(tmp_path), adapter=adapter, model=model, store=reopened()) as live:
        await live.ask("hello")
        event = await live.tell("what time is it? 你好 مرحبا")
        reply = await live.answer(event)
        await live.quiet()
        tip = await live.tip()
        assert tip is not None
        trace = await one(live, event)
        assert (trace["outcome"], trace["text"], trace["sessions"]) == (
            "answered",
            "what time is it? 你好 مرحبا",
            [tip.id],
        )
        assert [each["role"] for each in trace["messages"]] == ["user", "assistant", "tool", "assistant"]
        assert trace["messages"][1]["tools"] == ["clock"]
        assert [(each["purpose"], each["tokens"]["prompt_tokens"] > 0) for each in trace["calls"]] == [
            ("turn", True)
        ] * 2
        assert [(row["id"], row["state"], row["text"]) for row in trace["rows"]] == [(reply.id, "sent", "it is late")]
        assert trace["seconds"] >= 0
        for name in (f"turn={trace['item']}", reply.id, f" {event} "):
            assert await one(live, name) == trace
        for message in trace["messages"]:
            assert trace in await traced(live.store, message["id"], ["fake"], NOW)
        both = await traced(live.store, tip.id, ["fake"], NOW)
        assert [each["text"] for each in both] == ["hello", trace["text"]]
        told = trace_text([trace])
        for part in (f"turn {trace['item']}", "→ clock", "call for turn: ", "it is late", "answered after"):
            assert part in told


async def test_a_turn_that_was_compacted_keeps_its_messages(tmp_path: Path, reopened: Callable[[], Store]) -> None:
    adapter = FakeAdapter()
    async with running(tmp_path, config=config_in(tmp_path), adapter=adapter, store=reopened()) as live:
        events = [await live.tell(f"question {n} " + "x" * 300) for n in range(12)]
        for event in events:
            await live.answer(event)
        await live.ask("/compress")
        await live.quiet()
        assert [each["role"] for each in (await one(live, events[3]))["messages"]] == ["user", "assistant"]


async def test_an_item_that_is_not_ended_says_so(store: Store, bench: Bench) -> None:
    await put(store, "e1")
    (trace,) = await traced(store, "e1", ["test"], bench.clock.now())
    assert (trace["outcome"], trace["messages"], trace["rows"]) == (None, [], [])
    assert "not ended yet" in trace_text([trace])


async def test_a_row_and_a_message_of_no_event_show_themselves(store: Store) -> None:
    await store.emit([outbound("o1", text="a notice")])
    (trace,) = await traced(store, "o1", ["test"], NOW)
    assert [row["text"] for row in trace["rows"]] == ["a notice"]
    assert "a notice" in trace_text([trace])
    with pytest.raises(UserError, match="Nothing has the id turn-of-nobody"):
        await traced(store, "turn-of-nobody", ["test"], NOW)
    for hostile in ("", "=", "1" * 400, "٣", "x:*", "{p01}", "'; DROP TABLE inbox; --", "\ud800", "\0"):
        with pytest.raises(UserError):
            await traced(store, hostile, ["test"], NOW)


async def test_beside_a_running_gateway_as_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text("store: {url: 'sqlite:///legato.db'}\n", encoding="utf-8")
    adapter = FakeAdapter(name="telegram")
    async with running(tmp_path, config=config_in(tmp_path), adapter=adapter) as live:
        event = await live.tell("hello")
        await live.answer(event)
        await live.quiet()
        said = await asyncio.to_thread(CliRunner().invoke, app, ["trace", event, "--json"])
        (trace,) = json.loads(said.stdout)
        assert (trace["event"], trace["rows"][0]["text"]) == (event, "echo: hello")
        unknown = await asyncio.to_thread(CliRunner().invoke, app, ["trace", "nothing"])
        assert (unknown.exit_code, unknown.stdout) == (1, "")
