"""Pairing: people may talk here because the configuration names them, or by a code that an admin confirmed.

The guest book is in the store, so all processes let in the same people. It is read for people whom the lists do not
name, and remembered for a moment: strangers who write without end cost one look a second, and a guest who is shown
out is out everywhere within ten seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from random import Random
from typing import Final, TypeVar

import structlog

from gateway.domain.chat import Inbound, Source
from gateway.domain.pairing import (
    CODE_LENGTH,
    CODE_LETTERS,
    Guest,
    GuestBook,
    Verdict,
    asked,
    confirmed,
    greeted,
    is_code,
    removed,
    written,
)
from gateway.people.access import Access
from gateway.runtime.clock import Clock
from gateway.store.port import Store

log = structlog.get_logger(__name__)

T = TypeVar("T")

_FRESH_FOR_STRANGERS: Final = 1.0  # seconds
_FRESH_FOR_GUESTS: Final = 10.0

ASK = (
    "I do not know you yet. Tell whoever runs this bot this code, which is good for an hour: {code}\n\n"
    "They let you in with one of these:\n"
    "/pair {code} (from an admin, here)\n"
    "legato access confirm {code} (in a shell)"
)


@dataclass(slots=True, kw_only=True)
class Pairing:
    """`enabled`: strangers may ask for a code. `rng` must not be predictable. Only `_book` changes: the store's book,
    and when it was read (monotonic)."""

    access: Access
    store: Store
    clock: Clock
    rng: Random
    enabled: bool
    _book: tuple[GuestBook, float] | None = field(default=None)

    async def lets_in(self, source: Source) -> bool:
        """Whether this person may talk here. Raises StoreUnavailable."""
        if self.access.allows(source):
            return True
        known = self._book is not None and self._book[0].knows(source)
        return (await self._read(_FRESH_FOR_GUESTS if known else _FRESH_FOR_STRANGERS)).knows(source)

    def greets(self, source: Source) -> bool:
        """Whether this person was let in by a code and, as far as is known, not greeted yet."""
        guests = self._book[0].guests if self._book is not None else ()
        return any(not each.greeted and (each.platform, each.user) == (source.platform, source.user) for each in guests)

    async def knock(self, inbound: Inbound) -> str | None:
        """The sentence for a stranger who wrote. None: this is a group, pairing is off, they have a code already, or
        too many ask. Raises StoreUnavailable."""
        source = inbound.source
        if not self.enabled or source.chat_type != "direct" or inbound.kind != "message":
            return None
        code = "".join(self.rng.choice(CODE_LETTERS) for _ in range(CODE_LENGTH))

        def ask(book: GuestBook) -> tuple[GuestBook, tuple[str | None, bool]]:
            after, told = asked(book, source, inbound.event_id, code, self.clock.now())
            return after, (told, after is not book)

        told, is_new = await self._change(ask, fresh=_FRESH_FOR_STRANGERS)
        if is_new:
            log.info("pairing_asked", platform=source.platform, user=source.user)
        return ASK.format(code=written(told)) if told else None

    async def confirm(self, code: str) -> tuple[Verdict, Guest | None]:
        """Let in the person of a code that an admin typed. Raises StoreUnavailable."""
        if not is_code(code):
            return "no code", None

        def look(book: GuestBook) -> tuple[GuestBook, tuple[Verdict, Guest | None]]:
            after, verdict, guest = confirmed(book, code, self.clock.now())
            return after, (verdict, guest)

        return await self._change(look)

    async def show_out(self, platform: str, user: str) -> Guest | None:
        """Let a guest in no more. None: there was no such guest. Raises StoreUnavailable."""
        return await self._change(lambda book: removed(book, platform, user))

    async def greeted(self, guests: Collection[Guest]) -> None:
        """Note that these guests were greeted. Raises StoreUnavailable."""
        await self._change(lambda book: (greeted(book, guests), None))

    async def book(self) -> GuestBook:
        """The guest book as it is now. Raises StoreUnavailable."""
        return await self._read(0.0)

    async def _read(self, fresh: float) -> GuestBook:
        """The guest book, at most `fresh` seconds old."""
        now = self.clock.monotonic()
        if self._book is None or now - self._book[1] >= fresh:
            self._book = (await self.store.guest_book(), now)
        return self._book[0]

    async def _change(self, decide: Callable[[GuestBook], tuple[GuestBook, T]], *, fresh: float = 0.0) -> T:
        """Change the book by a decision about its present state, even if others change it at the same time. Returns
        the rest of the decision."""
        while True:
            before = await self._read(fresh)
            after, decided = decide(before)
            if after is before:
                return decided
            if await self.store.set_guest_book(after):
                self._book = (after, self.clock.monotonic())
                return decided
            fresh = 0.0
