"""What the operator's chat hears: each kind of news once an hour at most, through the outbox like everything else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import structlog
from msgspec import Struct, field

from gateway.app.problems import Problem, Signs
from gateway.delivery.outbox import Outbox
from gateway.domain.chat import ChatAddress, Outbound, SessionKey
from gateway.domain.wording import counted
from gateway.people.people import Home
from gateway.runtime.clock import Clock, lasting_id
from gateway.runtime.errors import StoreError
from gateway.runtime.tasks import Background

log = structlog.get_logger(__name__)

_EVERY: Final = 3_600.0  # seconds
_PATIENCE: Final = 10.0  # seconds for the store


class Alerts(Struct, kw_only=True):
    """Tells the chat `to`; None: the home chat, if there is one. What had happened before the first look is no news."""

    to: ChatAddress | None
    home: Home
    outbox: Outbox
    background: Background
    clock: Clock
    _before: Signs | None = None
    _home: ChatAddress | None = None  # where it was when the store last said so
    _told: dict[str, float] = field(default_factory=dict)  # when each kind was told last

    def tell(self, new: Iterable[Problem], signs: Signs) -> None:
        """Tell of problems that were not there at the last look, and of what has risen since. Nobody waits for it: the
        store may be what is wrong."""
        if self._before is None and self.to is None:
            self.background.start(self._find_home(), name="home of alerts")
        before, self._before = self._before or signs, signs
        news = {each.kind: f"{each.about}: {each.text}".removeprefix(": ") for each in new} | _risen(before, signs)
        for kind, text in news.items():
            if self.clock.monotonic() - self._told.get(kind, -_EVERY) >= _EVERY:
                self._told[kind] = self.clock.monotonic()
                self.background.start(self._tell(kind, text), name=f"alert {kind}")

    async def _find_home(self) -> None:
        """Find the home. If the store does not answer, the last answer counts, because the store may be the problem."""
        try:
            async with self.clock.limit(_PATIENCE):
                place = await self.home.place()
                self._home = None if place is None else place.to
        except (StoreError, TimeoutError):
            pass

    async def _tell(self, kind: str, text: str) -> None:
        if self.to is None:
            await self._find_home()
        if (to := self.to or self._home) is None:
            return
        # Several processes, and a new start, make the same row: the store keeps it once.
        row_id = lasting_id("o", "alert", to, kind, int(self.clock.now() // _EVERY))
        key = SessionKey(platform=to.platform, chat=to.chat)
        rows = self.outbox.compose(key, to, "notice", f"Legato — {text}", first_id=row_id)
        late = self.background.start(self._late(kind, rows[0]), name=f"late alert {kind}")
        try:
            await self.outbox.emit(rows)  # without a limit: given up, a row stored after all would be handed to nobody
        except StoreError as error:
            await self._unstored(kind, rows[0], str(error))
        finally:
            late.cancel()

    async def _late(self, kind: str, row: Outbound) -> None:
        await self.clock.sleep(_PATIENCE)
        await self._unstored(kind, row, "the store is slow")

    async def _unstored(self, kind: str, row: Outbound, why: str) -> None:
        """Tell of it past the store, which is what is wrong: it may show the alert once more."""
        log.warning("alert_not_stored", kind=kind, error=why)
        await self.outbox.show_unstored(row)


def _risen(before: Signs, signs: Signs) -> dict[str, str]:
    news: dict[str, str] = {}
    if (dead := signs.dead - before.dead) > 0:
        news["dead_letters"] = f"{counted(dead, 'message')} could not be answered: see `legato dead list`"
    if (met := signs.caps_met - before.caps_met) > 0:
        news["cap_met"] = f"a spend cap refused {counted(round(met), 'model call')}"
    return news
