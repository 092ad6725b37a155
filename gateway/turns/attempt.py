"""One attempt at an item: hygiene, then the agent, within the turn's limits and reach of /stop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass

import structlog

from gateway.agent.compaction import CompactionReport
from gateway.agent.conversation import Conversation
from gateway.agent.files.intake import FileIntake
from gateway.agent.files.message import without_files
from gateway.agent.hygiene import Hygiene
from gateway.agent.loop import Agent, has_open_calls
from gateway.agent.running import RunningTurns
from gateway.domain.chat import Inbound, OutboundKind
from gateway.domain.message import Message
from gateway.people.approvals import TurnQuestions
from gateway.runtime.clock import Clock
from gateway.runtime.errors import GatewayError, UserError
from gateway.store.port import Store
from gateway.store.records import ItemOutcome
from gateway.turns.observer import TurnObserver

log = structlog.get_logger(__name__)

_NEVER = 10 * 365 * 86_400.0  # seconds

STOPPED = "Stopped before the answer was finished."
INTERRUPTED = "I stopped what I was doing to turn to your new message."
NOT_CLEANED = "The earlier conversation should have been condensed but could not be ({reason}); I go on with all of it."
NOT_FETCHED = "which was not fetched: the turn was ended first"
BROKEN = "Something went wrong on my side while answering; it is logged. Please send your message again."
COMPACTION_STOPPED = "The compaction was stopped; the conversation is as it was."

Shown = list[tuple[OutboundKind, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """Runs work for one item. A limit that strikes, or a signal, raises TimeoutError from it;
    `cut_short` then says what the person is to be told."""

    agent: Agent
    observer: TurnObserver
    files: FileIntake
    questions: TurnQuestions
    hygiene: Hygiene
    running_turns: RunningTurns
    store: Store
    clock: Clock
    deadline: float  # seconds
    inactivity: float  # seconds

    async def converse(self, conversation: Conversation, said: Inbound | None, waiting: Collection[str]) -> str:
        """The reply's text; the conversation holds everything that is not stored yet. `said`: what the
        turn begins with, unless the conversation holds it. Whatever ends the attempt, it is in there."""
        heard = said is None
        try:
            async with self._limits():
                if said is not None:
                    conversation.add(await self._message(conversation, said), self.clock.now())
                    heard = True
                # A compaction would take calls that wait for their results for lost; the loop makes room behind them.
                if self.hygiene.due(conversation) and not has_open_calls(conversation):
                    await self._clean(conversation)
                return await self.agent.run(conversation, waiting)
        finally:
            if said is not None and not heard:
                conversation.add(without_files(self.observer.item.key, said, NOT_FETCHED), self.clock.now())
        raise AssertionError("a limit that strikes raises")

    async def _message(self, conversation: Conversation, said: Inbound) -> Message:
        if said.attachments:
            self.observer.phase("fetching files")
        return await self.files.message(self.observer.item.key, said, conversation.spec, self.observer.alive)

    async def compress(self, conversation: Conversation, focus: str | None, keep: int) -> CompactionReport:
        """/compress: the agent is a temporary one, only its compactor runs; it leaves the last `keep`
        messages alone. New messages wait for it, whatever the busy mode."""
        self.observer.turn.interruptible = False
        try:
            async with self._limits():
                self.observer.phase("compacting")
                return await self.agent.compactor.run(conversation, "manual", focus=focus, force=True, keep=keep)
        except TimeoutError:
            raise UserError(COMPACTION_STOPPED) from None
        raise AssertionError("a limit that strikes raises")

    def cut_short(self) -> tuple[ItemOutcome, Shown]:
        """How an attempt that was ended from outside or by its limits ends, and what is shown."""
        shown: Shown = []
        if self.agent.partial_text:
            shown.append(("reply", self.agent.partial_text))
        if self.observer.turn.ended_by is not None:
            shown.append(("notice", STOPPED if self.observer.turn.ended_by == "stop" else INTERRUPTED))
            return "stopped", shown
        silent = self.clock.monotonic() - self.observer.alive_at >= self.inactivity
        limit = self.inactivity if silent else self.deadline
        what = "nothing happened" if silent else "it was not finished"
        sentence = f"I gave this up because {what} for {limit / 60:g} minutes; ask again, perhaps in parts."
        return "failed", [*shown, ("error", sentence)]

    @asynccontextmanager
    async def _limits(self) -> AsyncIterator[None]:
        async with (
            self.clock.limit(_NEVER) as stop,
            self.clock.limit(self.deadline),
            self.clock.limit(self.inactivity) as idle,
        ):
            self.observer.idle = idle
            self.observer.turn.end = lambda _: stop.extend(0)
            with self.running_turns.register(self.observer.turn):
                try:
                    await self.observer.typing(True)
                    for kind in await self.store.signals(self.observer.item):
                        self.running_turns.deliver(self.observer.item.key, kind)
                    yield
                finally:
                    # From here on a limit that is moved would be one that is gone.
                    self.observer.idle = None
                    self.observer.turn.end = lambda _: None
                    await self.observer.drafted()
                    await self.observer.typing(False)

    async def _clean(self, conversation: Conversation) -> None:
        self.observer.phase("compacting")
        if not self.agent.compactor.is_prepared(conversation):
            await self.observer.compacting("hygiene", conversation.session.compaction_count + 1)
        result = await self.hygiene.run(conversation, self.agent.compactor)
        if result.failure:
            self.agent.compact_no_more()
            await self.observer.tell(NOT_CLEANED.format(reason=result.failure.rstrip(".")))
        elif result.report is not None and result.report.compaction is not None:
            await self.observer.compacted(result.report.compaction, result.report.outcome)


def sentence_for(error: Exception) -> str:
    """What a person is told about an error: Legato's own errors are sentences, others are bugs."""
    if isinstance(error, GatewayError):
        return str(error)
    log.error("turn_broke", exc_info=error)
    return BROKEN
