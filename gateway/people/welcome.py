"""Who was let in is told so, once: by whichever process first reads it in the guest book.

An admin may let somebody in from a shell, beside a gateway that alone writes its store's messages or while
none runs. So the book says of each guest whether they were greeted; a running gateway looks every few seconds,
and at whoever of them writes sooner. The greeting's id is made of the code, so that a crash between the
greeting and its note, or two processes at once, greet nobody twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from gateway.delivery.outbox import Outbox
from gateway.domain.chat import ChatAddress, Outbound, SessionKey
from gateway.domain.pairing import Guest
from gateway.people.pairing import Pairing
from gateway.runtime.errors import StoreUnavailable

log = structlog.get_logger(__name__)

LOOK_EVERY: Final = 10.0  # seconds: for as long as a process may remember the guest book

WELCOME = (
    "You have been let in: write to me whenever you like. What you wrote before I have not read, so please send it "
    "again. /help lists what else I can do."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome:
    """Greets the people whom pairing let in."""

    pairing: Pairing
    outbox: Outbox

    async def greet(self) -> None:
        """Greet whoever was let in and was not greeted. Raises StoreUnavailable."""
        guests = [guest for guest in (await self.pairing.book()).guests if not guest.greeted]
        if guests:
            await self.outbox.emit([row for guest in guests for row in self._greeting(guest)])
            await self.pairing.greeted(guests)

    async def look(self) -> None:
        """The same, later if the store is away."""
        try:
            await self.greet()
        except StoreUnavailable as error:
            log.warning("welcome_waits", error=str(error))

    def schedule(self, scheduler: AsyncIOScheduler) -> None:
        """Look every few seconds; a late or overlapping run is not doubled."""
        scheduler.add_job(
            self.look,
            "interval",
            seconds=LOOK_EVERY,
            id="welcome",
            coalesce=True,
            max_instances=1,
            misfire_grace_time=None,
        )

    def _greeting(self, guest: Guest) -> list[Outbound]:
        key = SessionKey(platform=guest.platform, chat=guest.chat)
        to = ChatAddress(platform=guest.platform, chat=guest.chat)
        return self.outbox.compose(key, to, "notice", WELCOME, first_id=f"o_{guest.code}{int(guest.at)}")
