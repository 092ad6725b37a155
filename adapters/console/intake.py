"""Handing messages to `accept`, until they are durable.

A full lane or an unreachable store loses nothing: reading pauses and the same messages are offered
again, in their order, once something was sent to their chat or after a growing pause.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from gateway.domain.adapter import Accept
from gateway.domain.chat import Inbound
from gateway.runtime.backoff import Backoff
from gateway.runtime.clock import Clock
from gateway.runtime.errors import StoreUnavailable
from gateway.runtime.tasks import comes_within

Complain = Callable[[str], Awaitable[None]]
Refuse = Callable[[Inbound], Awaitable[None]]


class Intake:
    """Offers batches to `accept`; `complain` shows one sentence, once per outage of the store; `refuse` is called
    with a message whose user is not let in."""

    def __init__(self, *, clock: Clock, complain: Complain, refuse: Refuse | None = None) -> None:
        self._clock = clock
        self._complain = complain
        self._refuse = refuse
        self._held: frozenset[str] = frozenset()  # chats whose messages wait to be offered again
        self._moved = asyncio.Event()
        self._outage = False
        self._abandoned = False

    async def offer(self, batch: Sequence[Inbound], accept: Accept) -> Sequence[Inbound]:
        """Return once the whole batch was taken; after `abandon`, return what one more attempt left over."""
        backoff = Backoff(0.05, 1.0)
        while batch:
            last = self._abandoned
            left = await self._try(batch, accept)
            if not left or last:
                return left
            if len(left) < len(batch):
                backoff.reset()
            batch = left
            await self._wait(batch, backoff.pause())
        return batch

    def sent(self, chat: str) -> None:
        """Note that a message was sent to `chat`: its lane may have room again."""
        if chat in self._held:
            self._moved.set()

    def abandon(self) -> None:
        """Wait no longer: every batch, the present one too, has one more attempt."""
        self._abandoned = True
        self._moved.set()

    async def _try(self, batch: Sequence[Inbound], accept: Accept) -> Sequence[Inbound]:
        """One attempt; returns what must be offered again."""
        self._held = frozenset(inbound.source.chat for inbound in batch)
        self._moved.clear()  # before the attempt: what is sent while it runs counts
        try:
            results = await accept(batch)
        except StoreUnavailable as error:
            if not self._outage:
                self._outage = True
                await self._complain(
                    f"I cannot store your messages right now ({error}). I keep trying, and nothing is lost."
                )
            return batch
        self._outage = False
        refused = {result.event_id for result in results if result.status == "refused"}
        for inbound in batch:
            if self._refuse is not None and inbound.event_id in refused:
                await self._refuse(inbound)
        full = {result.event_id for result in results if result.status == "full"}
        return [inbound for inbound in batch if inbound.event_id in full]

    async def _wait(self, batch: Sequence[Inbound], seconds: float) -> None:
        self._held = frozenset(inbound.source.chat for inbound in batch)
        if not self._abandoned:
            await comes_within(self._moved, seconds, self._clock)
            self._held = frozenset()
