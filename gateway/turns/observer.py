"""Watching a turn: what `/status` sees, what the person is shown meanwhile, what reaches the turn."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import structlog

from gateway.agent.conversation import Conversation
from gateway.agent.files.intake import FileIntake
from gateway.agent.running import Phase, RunningTurn
from gateway.context.engine import Outcome
from gateway.context.feedback import aging
from gateway.delivery.drafts import Draft
from gateway.delivery.outbox import Outbox
from gateway.domain.adapter import Adapter, CanStream, CanType
from gateway.domain.chat import Inbound, readable
from gateway.domain.command import parse_command
from gateway.domain.session import Compaction
from gateway.runtime.clock import Clock, Deadline
from gateway.runtime.errors import StoreUnavailable
from gateway.runtime.tasks import best_effort
from gateway.store.port import Store
from gateway.store.records import InboxItem, Lease
from gateway.turns.parts import following, joined, patience

log = structlog.get_logger(__name__)

_NEVER = 10 * 365 * 86_400.0  # seconds
_STEERED_AT_ONCE = 50

CONDENSING = "Condensing the earlier conversation to make room; nothing that was said is lost."
CONDENSING_AGAIN = "Condensing the earlier conversation to make room. {aging}"
FALLBACK = (
    "The earlier conversation was condensed without the help of a model, so details may be missing from my view; "
    "every original can still be found with /recall."
)
BLOCKED = (
    "Condensing this conversation no longer makes it shorter, so I stopped trying by myself. "
    "/new starts fresh, /compress <topic> keeps one topic and condenses the rest."
)
_BLOCKED_MARK = "compaction-blocked"


@dataclass(slots=True, kw_only=True)
class TurnObserver:
    """The agent's `Observer` for one turn, which begins with it. `lease` is what a reply that is shown
    while it grows is stored under."""

    item: InboxItem
    adapter: Adapter | None
    store: Store
    outbox: Outbox
    clock: Clock
    takes_messages: bool  # busy_mode steer: plain messages, too, reach the running turn
    lease: Lease | None
    reply_id: str
    inactivity: float  # seconds
    files: FileIntake
    idle: Deadline | None = None
    turn: RunningTurn = field(init=False)
    alive_at: float = field(init=False)
    _taken: set[str] = field(default_factory=set)
    _stream: CanStream | None = field(init=False)
    _typist: CanType | None = field(init=False)
    _draft: Draft | None = None

    def __post_init__(self) -> None:
        self.alive_at = self.clock.monotonic()
        self.turn = RunningTurn(key=self.item.key, started_at=self.alive_at, end=lambda _: None)
        # Asked once a turn, and of the class, whose answer Python remembers: isinstance takes longer
        # to find out whether an object fits a Protocol than it takes to show a word.
        adapter: Any = self.adapter
        self._stream = adapter if issubclass(type(adapter), CanStream) else None
        self._typist = adapter if issubclass(type(adapter), CanType) else None

    def phase(self, phase: Phase, step: int = 0, tools: Sequence[str] = ()) -> None:
        """What the turn is doing now."""
        self.turn.phase = phase
        self.turn.step = step or self.turn.step
        self.turn.tools = tuple(tools)
        self.alive()

    def alive(self) -> None:
        """Something happened: inactivity counts from here."""
        self.alive_at = self.clock.monotonic()
        if self.idle is not None:
            self.idle.extend(self.inactivity)

    async def typing(self, active: bool) -> None:
        """Show that an answer is being made, where the platform can."""
        if self._typist is not None:
            to = self.item.inbound.source.address
            shown = self._typist.typing(to, active and not await self.outbox.rests(to))
            if not await best_effort(shown, what="typing"):
                self._typist = None  # once is enough for one turn

    async def set_aside(self) -> str:
        """End the reply as far as it is shown; the next words begin another message."""
        if self._draft is not None:
            await self._draft.end()
            self.lease, self._draft = self._draft.lease, None
        said_as, self.reply_id = self.reply_id, self.outbox.new_id()
        return said_as

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[None]:
        """A person is waited for: nothing is due from the turn, and nobody types."""
        tools = self.turn.tools
        self.phase("waiting for your yes or no")
        if self.idle is not None:
            self.idle.extend(_NEVER)
        await self.typing(False)
        try:
            yield
        finally:
            self.phase("running tools", tools=tools)
        await self.typing(True)

    async def text(self, so_far: str) -> None:
        """Show the reply as it grows, where the platform can."""
        self.alive()
        if self._draft is None and self.lease is not None:
            self._draft, self.lease = self.outbox.draft(self.lease, self.item, self.reply_id), None
        if self._draft is not None:
            self._draft.show(so_far)
        if self._stream is not None:
            shown = self._stream.show_partial(self.item.inbound.source.address, self.reply_id, so_far)
            if not await best_effort(shown, what="show_partial"):
                self._stream = None

    async def drafted(self) -> None:
        """The turn is over: what was shown of its reply is on record, and no more is shown."""
        self.lease = None
        if self._draft is not None:
            await self._draft.end()

    async def compacting(self, trigger: str, number: int) -> None:
        """The person is told why they wait and, from the second time on, what it may cost: one notice
        for both, since two for every compaction would be noise."""
        await self.tell(CONDENSING if number == 1 else CONDENSING_AGAIN.format(aging=aging(number)))

    async def compacted(self, compaction: Compaction, outcome: Outcome) -> None:
        """The person is told when the result is less than they may expect."""
        if outcome.fallback:
            await self.tell(FALLBACK)
        if outcome.failed_model:
            await self.tell(
                f"The auxiliary model {outcome.failed_model} could not be used; the main model wrote the summary.",
            )

    async def blocked(self, conversation: Conversation) -> None:
        """Automatic compaction does not help any more: the person is told once."""
        if _BLOCKED_MARK not in conversation.announced:
            conversation.announced = (*conversation.announced, _BLOCKED_MARK)
            await self.tell(BLOCKED)

    async def not_compacted(self, trigger: str, outcome: Outcome) -> None:
        """The turn goes on with the transcript as it is; only what a person can mend is told."""
        if not outcome.aborted:
            return
        reason = outcome.error or "the summariser could not be used"
        await self.tell(
            f"The earlier conversation could not be condensed: {reason.rstrip('.')}. "
            "/compress tries again, /new starts fresh.",
        )

    async def steer(self, conversation: Conversation) -> None:
        """Add what waits in the lane for this turn, up to the first thing that must have its own."""
        try:
            waiting = await self.store.waiting(self.item.key, _STEERED_AT_ONCE)
        except StoreUnavailable as error:
            log.warning("steering_skipped", error=str(error))  # it waits in the lane all the same
            return
        self._taken.update(conversation.absorbed)  # what its own message was joined from waits there still
        waiting = [item for item in waiting if item.id not in self._taken]
        while waiting:
            item, behind = waiting[0], waiting[1:]
            if patience(item, behind, self.clock.now()):
                return  # the rest of it may come before the next step
            parts = following(item, behind)
            said = joined(item.inbound, [part.inbound for part in parts])
            if not self._is_for_this_turn(said):
                return
            if conversation.too_long(readable(said)):
                return  # it must not take the running turn with it: it is refused in its own
            message = await self.files.message(item.key, said, conversation.spec, self.alive)
            conversation.add(message, self.clock.now())
            taken = [item.id, *(part.id for part in parts)]
            conversation.absorbed += taken
            self._taken.update(taken)
            waiting = [other for other in behind if other.id not in self._taken]

    def _is_for_this_turn(self, said: Inbound) -> bool:
        if said.kind == "steer":
            return True
        plain = said.kind == "message" and parse_command(said.text) is None
        return plain and self.takes_messages and bool(readable(said).strip())

    async def tell(self, text: str) -> None:
        """Show a notice while the turn runs."""
        source = self.item.inbound.source
        rows = self.outbox.compose(self.item.key, source.address, "notice", text, answers=self.item.inbound.event_id)
        try:
            await self.outbox.emit(rows)
        except StoreUnavailable as error:
            # A notice is not worth the turn that it is about.
            log.warning("notice_not_stored", error=str(error))
            for row in rows:
                self.outbox.announce(row)
