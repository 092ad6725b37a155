"""A turn as others see it: the lines of `/status`, the growing reply, and the reasons to end the turn early."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import structlog

from gateway.agent.conversation import Conversation
from gateway.agent.running import Phase, RunningTurn, RunningTurns
from gateway.delivery.drafts import Draft
from gateway.delivery.outbox import Outbox
from gateway.domain.adapter import Adapter, CanShowWork, CanStream, CanType
from gateway.domain.chat import Outbound
from gateway.domain.wording import lasting
from gateway.runtime.clock import Clock, Deadline, lasting_id
from gateway.runtime.errors import StoreUnavailable
from gateway.runtime.tasks import Background, best_effort
from gateway.store.port import InboxStore
from gateway.store.records import InboxItem, ItemOutcome, Lease

log = structlog.get_logger(__name__)

_STANDS_IN: Final = 20.0  # seconds without a word of a reply, after which a line says why, and is renewed
_LONG_PAUSE: Final = 5.0  # seconds: the line comes at once before such a pause

STOPPED = "Stopped before the answer was finished."
INTERRUPTED = "I stopped what I was doing to turn to your new message."
STANDS_IN = "Still at it: {doing}, {seconds:.0f} s so far. /stop ends it."
PAUSES = "The model did not answer; I try again in {pause:.0f} s{so_far}. /stop ends it."
SO_FAR = " ({seconds:.0f} s so far)"
TOOK = "That took me {seconds:.0f} s."
GAVE_UP = "I gave this up because {why} for {time}; ask again, perhaps in parts."


@cache  # to hold an adapter against three Protocols takes longer than a word takes to be shown
def _able(kind: type) -> tuple[bool, bool, bool]:
    """What adapters of a class can do: stream, type, show work."""
    return issubclass(kind, CanStream), issubclass(kind, CanType), issubclass(kind, CanShowWork)


@dataclass(slots=True, kw_only=True)
class TurnObserver:
    """The agent's `Observer` for the turn of one item. A reply that is shown while it grows is stored under
    `lease`, and has the id `reply_id`."""

    item: InboxItem
    lease: Lease | None
    reply_id: str
    adapter: Adapter | None
    store: InboxStore
    outbox: Outbox
    running_turns: RunningTurns
    background: Background
    clock: Clock
    deadline: float  # seconds
    inactivity: float  # seconds
    conversation: Conversation | None = None  # that the reply belongs to, once it is known
    turn: RunningTurn = field(init=False)
    stopped_at: float = 0.0  # seconds since the epoch: when a signal ended the turn
    _over_at: float = field(init=False)  # monotonic: the deadline
    _limit: Deadline | None = None  # the deadline, or before it the end of patience without a sign of life
    _stream: CanStream | None = field(init=False)
    _typist: CanType | None = field(init=False)
    _works: CanShowWork | None = field(init=False)
    _draft: Draft | None = None
    _spoken: bool = False  # the reply has words
    _stands_in: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        now = self.clock.monotonic()
        self._over_at = now + self.deadline
        source = self.item.inbound.source
        self.turn = RunningTurn(key=self.item.key, source=source, started_at=now, alive_at=now, end=lambda _: None)
        adapter: Any = self.adapter
        kind: Any = type(adapter)
        streams, types, works = _able(kind)
        self._stream = adapter if streams else None
        self._typist = adapter if types else None
        self._works = adapter if works else None

    # -- limits -----------------------------------------------------------------------------

    @asynccontextmanager
    async def limits(self) -> AsyncIterator[None]:
        """The block raises TimeoutError at the deadline, after too long without a sign of life, or when a signal
        ends it; `why_ended` says which."""
        async with self.clock.limit(min(self.deadline, self.inactivity)) as self._limit:
            self.turn.end = lambda _: self._ended()
            self.running_turns.enter(self.turn)
            try:
                yield
            finally:
                # From here on no limit is moved any more: it would be one that is gone.
                self._limit = None
                self.turn.end = lambda _: None
                if self._stands_in is not None:
                    self._stands_in.cancel()
                try:
                    await self._drafted()
                    await self._typing(False)
                finally:
                    self.running_turns.leave(self.turn)

    def _ended(self) -> None:
        self.stopped_at = self.clock.now()
        if self._limit is not None:
            self._limit.extend(0)
            self._limit = None  # no sign of life puts it off

    async def begin(self) -> None:
        """Show that an answer is being made, and obey the signals that came before the turn ran here."""
        await self._typing(True)
        if self.lease is not None and self.outbox.grows(self.item.inbound.source.platform):
            self._stands_in = self.background.start(self._stand_in_now_and_then(), name=f"waits {self.reply_id}")
        for kind in await self.store.signals(self.item):
            self.running_turns.deliver(self.item.key, kind)

    def why_ended(self) -> tuple[ItemOutcome, str]:
        """Return the outcome of a turn that its limits cut short, and a sentence about the end."""
        if self.turn.ended_by is not None:
            return "stopped", STOPPED if self.turn.ended_by == "stop" else INTERRUPTED
        if self.clock.monotonic() - self.turn.alive_at >= self.inactivity:
            return "failed", GAVE_UP.format(why="nothing happened", time=lasting(self.inactivity))
        return "failed", GAVE_UP.format(why="it was not finished", time=lasting(self.deadline))

    # -- signs of life ----------------------------------------------------------------------

    def phase(self, phase: Phase, step: int = 0, tools: Sequence[str] = ()) -> None:
        """Note the turn's present phase."""
        self.turn.phase = phase
        self.turn.step = step or self.turn.step
        self.turn.tools = tuple(tools)
        self.alive()
        if self._works is not None:
            self._show_work(self._works)

    def pausing(self, seconds: float) -> None:
        """The model did not answer, and is asked again in so many seconds."""
        self.turn.again_at = self.clock.monotonic() + seconds
        self.alive()
        if self._works is not None:
            self._show_work(self._works)
        if seconds >= _LONG_PAUSE:
            self._stand_in()

    def alive(self) -> None:
        """Something happened: inactivity counts from here."""
        self.turn.alive_at = self.clock.monotonic()
        if self._limit is not None:
            self._limit.extend(min(self.inactivity, self._over_at - self.turn.alive_at))

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[None]:
        """The turn waits for a person: no sign of life is due, and the bot does not type."""
        tools = self.turn.tools
        self.phase("waiting for your yes or no")
        if self._limit is not None:
            self._limit.extend(self._over_at - self.clock.monotonic())
        await self._typing(False)
        try:
            yield
        finally:
            self.phase("running tools", tools=tools)
        await self._typing(True)

    async def _typing(self, active: bool) -> None:
        if self._typist is not None:
            to = self.item.inbound.source.address
            shown = self._typist.typing(to, active and not await self.outbox.pacing.rests(to))
            if not await best_effort(shown, what="typing"):
                self._typist = None  # one failure is enough for one turn

    # -- the reply as it grows --------------------------------------------------------------

    async def text(self, so_far: str) -> None:
        """Show the reply as it grows, where the platform can."""
        self.alive()
        self._spoken = True
        self._open_draft()
        if self._draft is not None:
            self._draft.show(so_far)
        if self._stream is not None:
            source, session = self.item.inbound.source, self.conversation.session if self.conversation else None
            reply = Outbound(
                id=self.reply_id,
                key=self.item.key,
                to=source.address,
                kind="reply",
                text=so_far,
                session_id=session.id if session else None,
                answers=self.item.inbound.event_id,
            )
            if not await best_effort(self._stream.show_partial(reply), what="show_partial"):
                self._stream = None

    async def set_aside(self) -> str:
        """End the reply as far as it is shown; the next words begin another message."""
        if self._draft is not None:
            await self._draft.end()
            self.lease, self._draft = self._draft.lease, None
        said_as, self.reply_id, self._spoken = self.reply_id, self.outbox.new_id(), False
        return said_as

    def _open_draft(self) -> None:
        if self._draft is None and self.lease is not None:
            self._draft, self.lease = self.outbox.draft(self.lease, self.item, self.reply_id), None

    async def _drafted(self) -> None:
        """Show no more of the reply; the shown part is on record then."""
        self.lease = None
        if self._draft is not None:
            await self._draft.end()

    # -- a long wait ------------------------------------------------------------------------

    def _show_work(self, works: CanShowWork) -> None:
        to, now = self.item.inbound.source.address, self.clock.monotonic()
        works.working(to, self.turn.doing, self.turn.pause(now))

    async def _stand_in_now_and_then(self) -> None:
        while True:
            await self.clock.sleep(_STANDS_IN)
            self._stand_in()

    def _stand_in(self) -> None:
        """Show, in place of the reply, the reason why there is none yet. The reply takes the place of the line."""
        if self._spoken or self._stands_in is None or self.turn.phase == "waiting for your yes or no":
            return
        self._open_draft()
        if self._draft is not None:
            now = self.clock.monotonic()
            seconds, pause = now - self.turn.started_at, self.turn.pause(now)
            so_far = SO_FAR.format(seconds=seconds) if seconds >= 1 else ""
            line = PAUSES.format(pause=pause, so_far=so_far) if pause >= 1 else ""
            self._draft.stand_in(line or STANDS_IN.format(doing=self.turn.doing, seconds=seconds))

    def standing_in(self) -> str:
        """Return the text that may stay in place of such a line; "" where there is no such line."""
        if self._draft is None or self._spoken:
            return ""
        return TOOK.format(seconds=self.clock.monotonic() - self.turn.started_at)

    async def tell_once(self, ref: str, text: str) -> None:
        """Show a notice about what the turn was sent (`ref`: a file, say), once, however often the turn is begun."""
        await self.tell(text, first_id=lasting_id("o", self.item.key, self.item.inbound.event_id, ref))

    async def tell(self, text: str, first_id: str | None = None) -> None:
        """Show a notice while the turn runs."""
        try:
            await self.outbox.emit(self.outbox.rows(self.item, "notice", text, first_id=first_id))
        except StoreUnavailable as error:
            # A notice is not worth the turn that it is about.
            log.warning("notice_not_stored", error=str(error))
            self.outbox.announce(self.item, "notice", text)
