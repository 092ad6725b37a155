"""The end of a turn under a stop at the wrong moment."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from gateway.domain.chat import Inbound, SessionKey, Source
from gateway.store.records import InboxItem, ItemOutcome, Lease, TurnEnd
from gateway.turns.recorder import TurnRecorder
from tests.support.fakes import ManualClock
from tests.support.model import Gate


class Slow:
    """The part of a store that ends a turn, as soon as the gate opens."""

    def __init__(self) -> None:
        self.gate = Gate()
        self.ended: list[ItemOutcome] = []

    async def finish_turn(self, lease: Lease, ref: object, item: InboxItem, record: object, *rest: Any) -> TurnEnd:
        await self.gate.pass_through()
        self.ended.append(rest[0])
        return TurnEnd(messages=(), outbound=(), next=None)


async def test_a_stop_does_not_break_off_the_end_of_a_turn() -> None:
    store, key = Slow(), SessionKey(platform="p", chat="c")
    source = Source(platform="p", chat="c", chat_type="direct", user="u")
    inbound = Inbound(event_id="e", source=source, text="hello")
    recorder = TurnRecorder(
        store=cast("Any", store),
        sessions=cast("Any", None),
        outbox=cast("Any", None),
        clock=ManualClock(),
        lease=Lease(key=key, worker="w", fence=1),
        item=InboxItem(id="1", key=key, inbound=inbound, accepted_at=0.0, attempts=1),
    )
    ending = asyncio.create_task(recorder.finish(None, "answered", []))
    await store.gate.until_waiting()
    ending.cancel()
    await asyncio.sleep(0)
    store.gate.open()
    with pytest.raises(asyncio.CancelledError):
        await ending
    assert store.ended == ["answered"]
