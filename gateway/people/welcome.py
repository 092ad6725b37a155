"""Tells people once that they were let in.

An admin may let a person in from a shell, whether the gateway runs or not. So the guest book says of each guest whether
they were greeted. A running gateway looks every few seconds, and when such a guest writes. The id of a greeting is made
from the code: neither a crash before it is noted, nor two processes at once, greet anybody twice.
"""

from __future__ import annotations

from typing import Final

import structlog
from msgspec import Struct

from gateway.delivery.outbox import Outbox
from gateway.domain.chat import Inbound, Outbound, SessionKey
from gateway.domain.pairing import Guest
from gateway.people.pairing import Pairing
from gateway.runtime.clock import lasting_id
from gateway.runtime.errors import StoreUnavailable

log = structlog.get_logger(__name__)

LOOK_EVERY: Final = 10.0  # seconds: for as long as a process may remember the guest book

WELCOME = (
    "You have been let in. Write to me whenever you like. I have not read your earlier messages, so please send them "
    "again. /help lists what else I can do."
)

WELCOME_IN_GROUP = "{name}, you have been let in, and I will answer you from now on. Please send your message again."


class Welcome(Struct, frozen=True, kw_only=True):
    """Greets the people whom pairing let in."""

    pairing: Pairing
    outbox: Outbox

    async def greet(self) -> None:
        """Greet every guest who was not greeted. Raises StoreUnavailable."""
        guests = [guest for guest in (await self.pairing.book()).guests if not guest.greeted]
        if guests:
            await self.outbox.emit([row for guest in guests for row in self._greeting(guest)])
            await self.pairing.greeted(guests)

    async def tell_admins(self, about: Inbound, text: str) -> None:
        """Tell every admin of a platform something about a message, once. Raises StoreUnavailable."""
        platform = about.source.platform
        rows: list[Outbound] = []
        for user in self.pairing.access.admins_on(platform):
            if (chat := self.outbox.direct_chat(platform, user)) is not None:
                key = SessionKey(platform=platform, chat=chat)
                first_id = lasting_id("o", key, about.event_id, "admins")
                rows += self.outbox.compose(key, key.address, "notice", text, first_id=first_id)
        await self.outbox.emit(rows)

    async def tell_group(self, about: Inbound, text: str) -> None:
        """Tell a group something, once for all messages of this kind there. Raises StoreUnavailable."""
        source = about.source
        key = SessionKey(platform=source.platform, chat=source.chat, thread=source.thread)
        first_id = lasting_id("o", source.platform, source.chat, "nameless")
        await self.outbox.emit(self.outbox.compose(key, key.address, "notice", text, first_id=first_id))

    async def look(self) -> None:
        """The same, later if the store is away."""
        try:
            await self.greet()
        except StoreUnavailable as error:
            log.warning("welcome_waits", error=str(error))

    def _greeting(self, guest: Guest) -> list[Outbound]:
        key = SessionKey(platform=guest.platform, chat=guest.chat)
        text = WELCOME_IN_GROUP.format(name=guest.name or guest.user) if guest.place else WELCOME
        return self.outbox.compose(key, key.address, "notice", text, first_id=f"o_{guest.code}{int(guest.at)}")
