"""An event of Slack's is not forgotten before it is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest

from adapters.slack.calls import SlackCalls
from adapters.slack.codec import Me
from adapters.slack.commands import SlashCommands
from adapters.slack.history import SlackHistory
from adapters.slack.platform import SlackSettings
from adapters.slack.receiving import Receiver
from gateway.domain.adapter import Accepted
from gateway.domain.chat import Inbound
from gateway.domain.place import NOT_SAID
from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import DeliveryRefused

ME = Me(id="UBOT", bot="BBOT", team="T1")
EVENT = {"event": {"type": "message", "channel": "D1", "user": "U1", "text": "Hello", "ts": "1795981218.440847"}}


class NoNotes:
    """A notebook that keeps nothing."""

    async def read(self) -> Mapping[str, str]:
        return {}

    async def write(self, changes: Mapping[str, str | None]) -> None:
        pass


async def refused(method: str, **_: Any) -> None:
    raise DeliveryRefused(method)


async def test_what_a_reading_that_was_ended_did_not_store_is_read_again() -> None:
    clock = SystemClock()
    history = SlackHistory(cast(SlackCalls, refused), clock)
    receiver = Receiver(SlackSettings(), clock, SlashCommands(()), history, NOT_SAID)
    came: asyncio.Queue[str] = asyncio.Queue()
    away = True

    async def accept(batch: Sequence[Inbound]) -> Sequence[Accepted]:
        for each in batch:
            came.put_nowait(each.text)
        if away:
            await asyncio.Event().wait()
        return [Accepted(event_id=each.event_id, status="new") for each in batch]

    async def reading() -> None:
        receiver.begun(True)
        taken = receiver.heard("events_api", EVENT)
        assert (await taken) is not None
        assert receiver.heard("events_api", EVENT) is not taken
        raise LookupError("the end")

    running = asyncio.create_task(receiver.run(accept, NoNotes(), ME, reading()))
    assert await came.get() == "Hello"
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    away = False
    with pytest.raises(LookupError):
        await receiver.run(accept, NoNotes(), ME, reading())
    assert await came.get() == "Hello"
