"""What people see of a turn while it runs: that the bot types, the growing reply, notices, and lines about a wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import structlog

from gateway.agent.conversation import Conversation
from gateway.agent.running import Phase
from gateway.delivery.drafts import Draft
from gateway.delivery.outbox import Outbox
from gateway.domain.adapter import Adapter, CanShowWork, CanStream, CanType
from gateway.domain.chat import Outbound
from gateway.runtime.clock import Clock, lasting_id
from gateway.runtime.errors import StoreUnavailable
from gateway.runtime.tasks import Background, best_effort
from gateway.store.port import InboxStore
from gateway.store.records import InboxItem, Lease
from gateway.turns.limits import TurnTime

log = structlog.get_logger(__name__)

_STANDS_IN: Final = 20.0  # seconds without a word of a reply, after which a line says why, and is renewed
_LONG_PAUSE: Final = 5.0  # seconds: the line comes at once before such a pause

STANDS_IN = "Still at it: {doing}, {seconds:.0f} s so far. /stop ends it."
PAUSES = "The model did not answer; I try again in {pause:.0f} s{so_far}. /stop ends it."
SO_FAR = " ({seconds:.0f} s so far)"
TOOK = "That took me {seconds:.0f} s."


@cache  # to hold an adapter against three Protocols takes longer than a word takes to be shown
def _able(kind: type) -> tuple[bool, bool, bool]:
    """What adapters of a class can do: stream, type, show work."""
    return issubclass(kind, CanStream), issubclass(kind, CanType), issubclass(kind, CanShowWork)


@dataclass(slots=True, kw_only=True)
class TurnObserver:
    """The agent's `Observer` for the turn of one item. A reply that is shown while it grows is stored under
    `lease`, and has the id `reply_id`."""

    item: InboxItem
    time: TurnTime
    lease: Lease | None
    reply_id: str
    adapter: Adapter | None
    store: InboxStore
    outbox: Outbox
    background: Background
    clock: Clock
    conversation: Conversation | None = None  # that the reply belongs to, once it is known
    _stream: CanStream | None = field(init=False)
    _typist: CanType | None = field(init=False)
    _works: CanShowWork | None = field(init=False)
    _draft: Draft | None = None
    _spoken: bool = False  # the reply has words
    _stands_in: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        adapter: Any = self.adapter
        kind: Any = type(adapter)
        streams, types, works = _able(kind)
        self._stream = adapter if streams else None
        self._typist = adapter if types else None
        self._works = adapter if works else None

    @asynccontextmanager
    async def limits(self) -> AsyncIterator[None]:
        """The turn, within its time (see `TurnTime`). At its end nothing more is shown of the reply."""
        async with self.time:
            try:
                yield
            finally:
                self.time.over()
                if self._stands_in is not None:
                    self._stands_in.cancel()
                self.lease = None
                if self._draft is not None:
                    await self._draft.end()
                await self._typing(False)

    async def begin(self) -> None:
        """Show that an answer is being made, and obey the signals that came before the turn ran here."""
        await self._typing(True)
        if self.lease is not None and self.outbox.grows(self.item.inbound.source.platform):
            self._stands_in = self.background.start(self._stand_in_now_and_then(), name=f"waits {self.reply_id}")
        for kind in await self.store.signals(self.item):
            self.time.running_turns.deliver(self.item.key, kind)

    # -- signs of life ----------------------------------------------------------------------

    def phase(self, phase: Phase, step: int = 0, tools: Sequence[str] = ()) -> None:
        """Note the turn's present phase."""
        turn = self.time.turn
        turn.phase, turn.step, turn.tools = phase, step or turn.step, tuple(tools)
        self.time.alive()
        if self._works is not None:
            self._show_work(self._works)

    def pausing(self, seconds: float) -> None:
        """The model did not answer, and is asked again in so many seconds."""
        self.time.turn.again_at = self.clock.monotonic() + seconds
        self.time.alive()
        if self._works is not None:
            self._show_work(self._works)
        if seconds >= _LONG_PAUSE:
            self._stand_in()

    def alive(self) -> None:
        """Something happened."""
        self.time.alive()

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[None]:
        """The turn waits for a person: no sign of life is due, and the bot does not type."""
        tools = self.time.turn.tools
        self.phase("waiting for your yes or no")
        self.time.patient()
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
        self.time.alive()
        self._spoken = True
        if self._draft is None:
            self._open_draft()
        if self._draft is not None:
            self._draft.show(so_far)
        if self._stream is not None:
            source, session = self.item.inbound.source, self.conversation.stored.session if self.conversation else None
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

    # -- a long wait ------------------------------------------------------------------------

    def _show_work(self, works: CanShowWork) -> None:
        to, now = self.item.inbound.source.address, self.clock.monotonic()
        works.working(to, self.time.turn.doing, self.time.turn.pause(now))

    async def _stand_in_now_and_then(self) -> None:
        while True:
            await self.clock.sleep(_STANDS_IN)
            self._stand_in()

    def _stand_in(self) -> None:
        """Show, in place of the reply, the reason why there is none yet. The reply takes the place of the line."""
        if self._spoken or self._stands_in is None or self.time.turn.phase == "waiting for your yes or no":
            return
        self._open_draft()
        if self._draft is not None:
            now = self.clock.monotonic()
            seconds, pause = now - self.time.turn.started_at, self.time.turn.pause(now)
            so_far = SO_FAR.format(seconds=seconds) if seconds >= 1 else ""
            line = PAUSES.format(pause=pause, so_far=so_far) if pause >= 1 else ""
            self._draft.stand_in(line or STANDS_IN.format(doing=self.time.turn.doing, seconds=seconds))

    def standing_in(self) -> str:
        """Return the text that may stay in place of such a line; "" where there is no such line."""
        if self._draft is None or self._spoken:
            return ""
        return TOOK.format(seconds=self.clock.monotonic() - self.time.turn.started_at)

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
