"""A /stop while a turn writes."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.domain.chat import Inbound, SessionKey, Source
from gateway.domain.message import Message, user
from gateway.store.records import InboxItem, Lease
from gateway.turns.recorder import TurnRecorder
from tests.support.fakes import ManualClock
from tests.support.model import Gate


class Slow:
    """The part of a store that keeps a step, as soon as the gate opens."""

    def __init__(self) -> None:
        self.gate = Gate()

    async def record_step(self, *_: object) -> tuple[Message, ...]:
        await self.gate.pass_through()
        return (user("stored"),)


class Talk:
    """The part of a conversation that a step is taken from."""

    stored = SimpleNamespace(session=SimpleNamespace(ref=None, temporary=False))

    def __init__(self) -> None:
        self.engine = self
        self.settled: list[Message] = []

    async def dump(self) -> dict[str, Any]:
        return {}

    def record(self, *_: object) -> None:
        return None

    def settle(self, _: object, stored: tuple[Message, ...]) -> None:
        self.settled += stored


async def test_a_stop_does_not_break_off_a_step_that_is_being_stored() -> None:
    store, talk, key = Slow(), Talk(), SessionKey(platform="p", chat="c")
    source = Source(platform="p", chat="c", chat_type="direct", user="u")
    inbound = Inbound(event_id="e", source=source, text="hello")
    recorder = TurnRecorder(
        store=cast("Any", store),
        sessions=cast("Any", SimpleNamespace(policy=SimpleNamespace(deadline=lambda *_: None))),
        outbox=cast("Any", None),
        clock=ManualClock(),
        lease=Lease(key=key, worker="w", fence=1),
        item=InboxItem(id="1", key=key, inbound=inbound, accepted_at=0.0, attempts=1),
    )
    step = asyncio.create_task(recorder.record_step(cast("Any", talk)))
    await store.gate.until_waiting()
    step.cancel()
    await asyncio.sleep(0)
    store.gate.open()
    with pytest.raises(asyncio.CancelledError):
        await step
    assert talk.settled == [user("stored")]  # what the store has and what is in memory are the same
