"""Stores what one item's turn does, as it does it: the loop's `TranscriptWriter`.

Every method insists: while the disk is full the turn waits instead of losing what a model was paid
for, and the person is told once. None is broken off by a /stop: what is durable and what the turn
knows of it stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gateway.agent.conversation import Conversation
from gateway.agent.sessions import Sessions, opened_by
from gateway.domain.chat import Outbound
from gateway.domain.message import Message
from gateway.domain.session import Compaction
from gateway.runtime.clock import Clock
from gateway.runtime.errors import StoreUnavailable
from gateway.runtime.tasks import unbroken
from gateway.store.insist import insist
from gateway.store.port import Store
from gateway.store.records import InboxItem, ItemOutcome, Lease, StepRecord, ToolIntent, TurnEnd


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRecorder:
    """Writes for one item under one lease. Every method may raise SessionConflict: somebody else
    runs the lane by now, and nothing was written."""

    store: Store
    sessions: Sessions
    lease: Lease
    item: InboxItem
    clock: Clock
    failed: Callable[[StoreUnavailable], None]

    async def begin_tools(self, conversation: Conversation, intents: Sequence[ToolIntent]) -> None:
        """Store the step so far and the intents, before any tool runs."""
        await unbroken(self._begin_tools(conversation, intents))

    async def _begin_tools(self, conversation: Conversation, intents: Sequence[ToolIntent]) -> None:
        record = await self._record(conversation)
        conversation.stored(
            await insist(
                lambda: self.store.begin_tools(self.lease, conversation.session.ref, self.item, record, intents),
                clock=self.clock,
                what="begin_tools",
                failed=self.failed,
            )
        )

    async def record_step(self, conversation: Conversation) -> None:
        """Store what the step added."""
        await unbroken(self._record_step(conversation))

    async def _record_step(self, conversation: Conversation) -> None:
        record = await self._record(conversation)
        conversation.stored(
            await insist(
                lambda: self.store.record_step(self.lease, conversation.session.ref, self.item, record),
                clock=self.clock,
                what="record_step",
                failed=self.failed,
            )
        )

    async def continue_(
        self, conversation: Conversation, transcript: Sequence[Message], compaction: Compaction
    ) -> None:
        """Open the continuation and move the conversation into it. A command's has the id by which
        another attempt at the command can tell that it is done."""
        if compaction.trigger == "manual":
            compaction = replace(compaction, child_id=opened_by(self.item))
        await unbroken(
            insist(
                lambda: self.sessions.continue_(self.lease, conversation, transcript, compaction),
                clock=self.clock,
                what="continue_session",
                failed=self.failed,
            )
        )

    async def finish(
        self, conversation: Conversation | None, outcome: ItemOutcome, outbound: Sequence[Outbound]
    ) -> TurnEnd:
        """End the item with everything not stored yet and what the person is to be shown."""
        return await unbroken(self._finish(conversation, outcome, outbound))

    async def _finish(
        self, conversation: Conversation | None, outcome: ItemOutcome, outbound: Sequence[Outbound]
    ) -> TurnEnd:
        ref = conversation.session.ref if conversation else None
        record = await self._record(conversation) if conversation else None
        end = await insist(
            lambda: self.store.finish_turn(self.lease, ref, self.item, record, outcome, outbound),
            clock=self.clock,
            what="finish_turn",
            failed=self.failed,
        )
        if conversation is not None:
            conversation.stored(end.messages)
        return end

    async def _record(self, conversation: Conversation) -> StepRecord:
        now = self.clock.now()
        expires_at = self.sessions.policy(conversation.session).deadline(now)
        return conversation.record(now, expires_at, await conversation.engine.dump())
