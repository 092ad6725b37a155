"""Turns that break in the middle of their tools, and gateways that are stopped at bad moments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest

from gateway.agent.tools.base import ToolContext
from gateway.app import upkeep
from gateway.commands.runner import BROKEN
from gateway.domain.chat import Outbound
from gateway.domain.message import Message
from gateway.domain.reminder import Reminder
from gateway.domain.session import Session, SessionRef
from gateway.runtime.clock import SystemClock
from gateway.runtime.structs import replace
from gateway.store.records import InboxItem, ItemOutcome, Lease, StepRecord, TurnEnd
from gateway.store.sqlite.backend import SqliteStore
from tests.support.gateway import FakeAdapter, FakeModel, Gate, RecordingEngine, Say, in_turn, running
from tests.support.waiting import eventually


class Pay:
    """A tool with an effect."""

    name = "pay"
    description = "Pays."
    parameters: Mapping[str, Any] = {"type": "object", "properties": {}}
    read_only = False
    idempotent = False
    timeout = 5.0

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        return "paid"


class Odd(SqliteStore):
    """A store with a bug: while `broken`, steps and ends with messages fail in a way nobody expects."""

    broken = False

    async def record_step(
        self, lease: Lease, ref: SessionRef, item: InboxItem, record: StepRecord
    ) -> tuple[Message, ...]:
        if self.broken:
            raise RuntimeError("a bug")
        return await super().record_step(lease, ref, item, record)

    async def finish_turn(
        self,
        lease: Lease,
        ref: SessionRef | None,
        item: InboxItem,
        record: StepRecord | None,
        outcome: ItemOutcome,
        outbound: Sequence[Outbound],
    ) -> TurnEnd:
        if self.broken and record is not None:
            raise RuntimeError("a bug")
        return await super().finish_turn(lease, ref, item, record, outcome, outbound)


def unanswered(messages: Sequence[Message]) -> set[str]:
    """Ids of calls that are not answered before the next message that is no tool's."""
    missing: set[str] = set()
    waiting: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            waiting.discard(message["tool_call_id"])
            continue
        missing |= waiting
        waiting = {call["id"] for call in message.get("tool_calls", ())}
    return missing | waiting


async def test_calls_that_a_bug_left_without_results_do_not_make_the_conversation_unsendable(tmp_path: Path) -> None:
    store = Odd(tmp_path / "legato.db", clock=SystemClock(), concurrency=16)
    model = FakeModel(in_turn(Say(text="hello"), Say(calls=[("pay", "{}")])))
    async with running(tmp_path, store=store, model=model, tools=[Pay()]) as live:
        await live.ask("hello")
        store.broken = True
        assert await live.ask("pay them") == BROKEN
        store.broken = False
        assert await live.ask("and now?") == "echo: and now?"
        assert not unanswered(model.requests[-1].messages)


async def test_an_adapter_that_cannot_close_does_not_keep_the_others_or_the_store_from_closing(tmp_path: Path) -> None:
    class Stuck(FakeAdapter):
        async def aclose(self) -> None:
            raise OSError("the platform is gone")

    async with running(tmp_path, adapter=Stuck()) as live:
        await live.ask("hello")
    async with running(tmp_path) as live:  # else: another gateway is using the store
        assert await live.ask("again") == "echo: again"


class Unreadable(SqliteStore):
    """A store that cannot read what was said in chat a while `broken`, and in which hooks stay owed."""

    broken = False

    async def hook_done(self, session_id: str) -> None:
        return

    async def transcript(self, session: Session) -> tuple[Message, ...]:
        if self.broken and session.key.chat == "a":
            raise RuntimeError("this one cannot be read")
        return await super().transcript(session)


async def test_a_hook_that_cannot_be_called_does_not_keep_back_the_others(tmp_path: Path) -> None:
    heard: list[tuple[Any, ...]] = []
    store = Unreadable(tmp_path / "legato.db", clock=SystemClock(), concurrency=16)
    async with running(tmp_path, store=store, engine=lambda: RecordingEngine(heard)) as live:
        for chat in "abc":
            await live.ask("hello", chat=chat)
            await live.ask("/new", chat=chat)
        await eventually(lambda: [told[0] for told in heard].count("end") == 3)
        heard.clear()
        store.broken = True
        assert await live.gateway.agents.sessions.hooks.look()
        await eventually(lambda: len({told[1] for told in heard if told[0] == "end"}) == 2)
        store.broken = False


async def test_a_hook_that_was_called_since_it_was_found_owed_is_not_called_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[tuple[Any, ...]] = []
    async with running(tmp_path, engine=lambda: RecordingEngine(heard)) as live:
        await live.ask("hello")
        await live.ask("/new")
        ended = [session for session in await live.store.sessions(None, 10) if session.ended_at is not None]
        owed = [replace(session, hook="pending") for session in ended]
        monkeypatch.setattr(live.store, "pending_hooks", AsyncMock(return_value=owed))
        assert await live.gateway.agents.sessions.hooks.look()
        assert len([told for told in heard if told[0] == "end"]) == 1


async def test_a_stop_before_anything_began_leaves_in_order(tmp_path: Path) -> None:
    gate = Gate()
    model = FakeModel(in_turn(Say(text="x", gate=gate)))
    async with running(tmp_path, model=model) as live:
        live.gateway.stop()
        gate.open()


class Slow(SqliteStore):
    """A store that lets nobody look for due reminders once `gate` is there."""

    gate: Gate | None = None

    async def due_reminders(self, now: float, limit: int) -> list[Reminder]:
        if self.gate is not None:
            await self.gate.pass_through()
        return await super().due_reminders(now, limit)


async def test_a_stop_in_the_midst_of_a_sweep_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(upkeep, "LOOK_FOR_REMINDERS", 0.01)
    store = Slow(tmp_path / "legato.db", clock=SystemClock())
    async with running(tmp_path, store=store):
        store.gate = gate = Gate()
        await gate.until_waiting()
    assert caplog.text == ""
