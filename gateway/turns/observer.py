"""What people see of a running turn besides its reply: that the bot is typing, what it does, and notices."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, Final

import structlog
from msgspec import Struct

from gateway.agent.running import Phase
from gateway.delivery.outbox import Outbox
from gateway.domain.adapter import Adapter, CanShowWork, CanStream, CanType, Doing
from gateway.runtime.clock import Clock, lasting_id
from gateway.runtime.errors import StoreUnavailable
from gateway.runtime.tasks import best_effort
from gateway.store.port import InboxStore
from gateway.store.records import InboxItem
from gateway.turns.growing import GrowingReply
from gateway.turns.limits import TurnTime

log = structlog.get_logger(__name__)

_LONG_PAUSE: Final = 5.0  # seconds: the line comes at once before such a pause
_ASKS: Final = ("starting", "thinking", "finishing")  # phases that only ask the model


@cache  # to hold an adapter against three Protocols takes longer than a word takes to be shown
def _able(kind: type) -> tuple[bool, bool, bool]:
    """What adapters of a class can do: stream, type, show work."""
    return issubclass(kind, CanStream), issubclass(kind, CanType), issubclass(kind, CanShowWork)


class TurnObserver(Struct, kw_only=True):
    """The agent's `Observer` for the turn of one item."""

    item: InboxItem
    time: TurnTime
    reply: GrowingReply
    adapter: Adapter | None
    store: InboxStore
    outbox: Outbox
    clock: Clock
    _typist: CanType | None = None
    _works: CanShowWork | None = None

    def __post_init__(self) -> None:
        adapter: Any = self.adapter
        kind: Any = type(adapter)
        streams, types, works = _able(kind)
        self.reply.stream = adapter if streams else None
        self._typist = adapter if types else None
        self._works = adapter if works else None

    # A block is the turn, within its time (see `TurnTime`). When it ends, nothing more of the reply is shown.
    async def __aenter__(self) -> None:
        await self.time.__aenter__()

    async def __aexit__(self, *raised: Any) -> None:
        try:
            self.time.over()
            await self.reply.end()
            await self._typing(False)
        except BaseException as error:
            raised = type(error), error, error.__traceback__
            raise
        finally:
            await self.time.__aexit__(*raised)

    async def begin(self) -> None:
        """Show that an answer is being written, and obey signals that came before the turn ran here."""
        await self._typing(True)
        self.reply.begin()
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
        self.time.turn.again_at = self.clock.monotonic() + seconds
        self.time.alive()
        if self._works is not None:
            self._show_work(self._works)
        if seconds >= _LONG_PAUSE:
            self.reply.stand_in()

    def alive(self) -> None:
        """Something happened."""
        self.time.alive()

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[None]:
        """The turn waits for a person, so it need not show a sign of life, and the bot does not type."""
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

    def _show_work(self, works: CanShowWork) -> None:
        to, now = self.item.inbound.source.address, self.clock.monotonic()
        turn = self.time.turn
        doing = Doing(turn.doing, turn.phase in _ASKS, turn.phase == "reasoning")
        works.working(to, doing, turn.pause(now))

    async def tell_once(self, ref: str, text: str) -> None:
        """Show a notice about something that the turn was sent (`ref`, such as a file) once, however often the turn
        begins."""
        await self.tell(text, first_id=lasting_id("o", self.item.key, self.item.inbound.event_id, ref))

    async def tell(self, text: str, first_id: str | None = None) -> None:
        """Show a notice while the turn runs."""
        try:
            await self.outbox.emit(self.outbox.rows(self.item, "notice", text, first_id=first_id))
        except StoreUnavailable as error:
            # A notice is not worth the turn that it is about.
            log.warning("notice_not_stored", error=str(error))
            self.outbox.announce(self.item, "notice", text)
