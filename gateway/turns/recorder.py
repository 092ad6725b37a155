"""Stores the steps of one item's turn: the agent's `TranscriptWriter`.

Every write is repeated until it works: while the disk is full the turn waits, the person is told once, and nothing is
lost that a model was paid for. A /stop never interrupts a write, so store and turn always agree.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct

from gateway.agent.conversation import Conversation
from gateway.agent.sessions import Sessions, opened_by
from gateway.delivery.outbox import Outbox
from gateway.domain.chat import Outbound
from gateway.domain.message import Message
from gateway.domain.session import Compaction, Session, SessionRef
from gateway.runtime.clock import Clock
from gateway.runtime.errors import StoreUnavailable
from gateway.runtime.structs import replace
from gateway.runtime.tasks import unbroken
from gateway.store.insist import insist
from gateway.store.port import TurnStore
from gateway.store.records import InboxItem, ItemOutcome, Lease, StepRecord, ToolIntent, TurnEnd
from gateway.turns.notices import tell_of_outage

T = TypeVar("T")
_Append = Callable[[SessionRef, StepRecord], Awaitable[tuple[Message, ...]]]


class TurnRecorder(Struct, frozen=True, kw_only=True):
    """Writes for one item under one lease. Every method may raise SessionConflict: another process runs the lane now,
    and nothing was written."""

    store: TurnStore
    sessions: Sessions
    outbox: Outbox
    clock: Clock
    lease: Lease
    item: InboxItem

    async def open_session(self) -> Session:
        """The key's session, a new one if it has none."""
        source = self.item.inbound.source
        return await self._insist("open_session", partial(self.sessions.open, self.lease, source))

    async def follow(self, session: Session) -> Session:
        """The session as its chat now wants it."""
        source = self.item.inbound.source
        return await self._insist("follow", partial(self.sessions.follow, self.lease, session, source))

    async def begin_tools(self, conversation: Conversation, intents: Sequence[ToolIntent]) -> None:
        await self._append(
            conversation, lambda ref, record: self.store.begin_tools(self.lease, ref, self.item, record, intents)
        )

    async def record_step(self, conversation: Conversation) -> None:
        await self._append(conversation, lambda ref, record: self.store.record_step(self.lease, ref, self.item, record))

    async def continue_(
        self, conversation: Conversation, transcript: Sequence[Message], compaction: Compaction
    ) -> None:
        """Open the continuation and move the conversation into it. The id of a command's continuation tells another
        attempt that it is done."""
        if compaction.trigger == "manual":
            compaction = replace(compaction, child_id=opened_by(self.item))
        step = self._insist(
            "continue_session", lambda: self.sessions.continue_(self.lease, conversation, transcript, compaction)
        )
        await unbroken(step)

    async def finish(
        self, conversation: Conversation | None, outcome: ItemOutcome, outbound: Sequence[Outbound]
    ) -> TurnEnd:
        """End the item, with everything that is not yet stored and the rows to show. No /stop comes any more; only the
        end of the process can interrupt this, and then nobody uses what is in memory."""
        ref = conversation.stored.session.ref if conversation else None
        record = await self._record(conversation) if conversation else None
        end = await self._insist(
            "finish_turn", partial(self.store.finish_turn, self.lease, ref, self.item, record, outcome, outbound)
        )
        if conversation is not None and record is not None:
            conversation.settle(record, end.messages)
        return end

    def tell_of_outage(self, error: StoreUnavailable) -> None:
        """Tell the person that their message waits for the store."""
        tell_of_outage(self.outbox, self.item, error)

    def _insist(self, what: str, step: Callable[[], Awaitable[T]]) -> Coroutine[Any, Any, T]:
        return insist(step, clock=self.clock, what=what, failed=self.tell_of_outage)

    async def _append(self, conversation: Conversation, step: _Append) -> None:
        async def write() -> None:
            record = await self._record(conversation)
            ref = conversation.stored.session.ref
            conversation.settle(record, await self._insist("append", lambda: step(ref, record)))

        await unbroken(write())

    async def _record(self, conversation: Conversation) -> StepRecord:
        now = self.clock.now()
        temporary = conversation.stored.session.temporary
        expires_at = self.sessions.policy.deadline(now, temporary) if self.item.key.helper is None else None
        return conversation.record(now, expires_at, await conversation.engine.dump())
