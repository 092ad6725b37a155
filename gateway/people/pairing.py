"""Pairing: people may talk here because the configuration names them, or by a code that an admin confirmed.

The guest book is in the store, so all processes let in the same people. It is read for people whom the lists do not
name, and remembered for a moment. So strangers who write without end cost one look a second, and a guest who is shown
out is out everywhere within ten seconds."""

from __future__ import annotations

from collections.abc import Callable, Collection
from random import Random
from typing import TYPE_CHECKING, Final, TypeVar

import structlog
from msgspec import Struct, convert, field, to_builtins

from gateway.domain.adapter import KnowsKeys
from gateway.domain.chat import Inbound, Source, one_line
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
from gateway.runtime.errors import UserError
from gateway.store.port import Documents
from gateway.store.shared.documents import dumps, loads

if TYPE_CHECKING:
    from gateway.domain.keys import Key

log = structlog.get_logger(__name__)

T = TypeVar("T")

_FOLDER: Final = "guest_book"  # of notes, the same for every process
_FRESH_FOR_STRANGERS: Final = 1.0  # seconds
_FRESH_FOR_GUESTS: Final = 10.0

ASK = (
    "I do not know you yet. Give this code to the person who runs this bot within an hour: {code}\n\n"
    "They let you in with one of these:\n"
    "/pair {code} (from an admin, here)\n"
    "legato access confirm {code} (in a shell)"
)

ASKS_IN_GROUP = (
    "{name} ({platform}:{user}) wrote to me in {place}. I did not answer, because nobody has let this person in yet. "
    "To let this person in, send /pair {code} within an hour."
)
STRANGER = "I do not know you yet, so I did nothing."
NAMELESS = (
    "Someone wrote in the name of this group. I cannot see who wrote, so I did nothing. Write to me as yourself, or "
    "ask the person who runs this bot to put {platform}:*@{chat} into access.allow in config.yaml."
)
WRITE_TO_ME = (
    "Write me a direct message, and I will give you a code. With this code, the person who runs this bot can let you "
    "in."
)
ASK_THEM = "Ask the person who runs this bot to let you in."
_MOST_GROUPS: Final = 10_000  # remembered


class Pairing(Struct, kw_only=True):
    """The service of pairing. `rng` must not be predictable. `keys`: of the platforms that are reached by them, if
    there is one. Two fields change: `_book`, the store's book, and when it
    was read (monotonic); and `_groups`, the groups where a person wrote who may talk."""

    access: Access
    store: Documents
    clock: Clock
    rng: Random
    keys: KnowsKeys | None = None
    _book: tuple[GuestBook, float] | None = field(default=None)
    _groups: dict[tuple[str, str], None] = field(default_factory=dict)

    async def lets_in(self, source: Source) -> bool:
        """Whether this person may talk here. Raises StoreUnavailable."""
        allowed = self.access.allows(source) or (await self._read(self._fresh_for(source))).knows(source)
        if allowed and source.chat_type != "direct" and len(self._groups) < _MOST_GROUPS:
            self._groups[source.platform, source.chat] = None
        return allowed

    async def key_of(self, platform: str, chat: str) -> Key | None:
        """The key by which the person of this chat talks; None if talking needs none there. Raises UserError if it is
        gone, StoreUnavailable."""
        return await self.keys.of(chat) if self.keys is not None and platform in self.access.keyed else None

    async def may_be_told(self, source: Source) -> bool:
        """Whether a person may be told what comes by itself: whose key was taken back hears nothing more. Raises
        StoreUnavailable."""
        try:
            await self.key_of(source.platform, source.chat)
        except UserError:
            return False
        return await self.lets_in(source)

    def _fresh_for(self, source: Source) -> float:
        """Return the seconds for which the book that decides about a person may be kept. One who asks may be let in
        at any moment."""
        book = self._book[0] if self._book is not None else GuestBook()
        if book.knows(source):
            return _FRESH_FOR_GUESTS
        asks = any((each.platform, each.user) == (source.platform, source.user) for each in book.asking)
        return 0.0 if asks else _FRESH_FOR_STRANGERS

    def greets(self, source: Source) -> bool:
        """Whether this person was let in by a code and, as far as is known, not greeted yet."""
        guests = self._book[0].guests if self._book is not None else ()
        who = source.platform, source.user
        return bool(guests) and any(not each.greeted and (each.platform, each.user) == who for each in guests)

    async def ask(self, inbound: Inbound) -> str | None:
        """The sentence for a stranger who wrote in private. None: pairing is off, they have a code already, or too many
        ask. Raises StoreUnavailable."""
        if inbound.source.chat_type != "direct":
            return None
        code = await self._code_for(inbound)
        return ASK.format(code=code) if code else None

    def way_in(self) -> str:
        """The sentence for a stranger whose command is refused."""
        return f"{STRANGER} {WRITE_TO_ME if self.access.pairing else ASK_THEM}"

    async def ask_in_group(self, inbound: Inbound) -> str | None:
        """The sentence for admins about a stranger who wrote to the bot in a group. None if nobody who may talk has
        written there, if they were told already, or for a reason of `ask`. Raises StoreUnavailable."""
        source = inbound.source
        if (source.platform, source.chat) not in self._groups or inbound.only_as_part:
            return None
        code = await self._code_for(inbound)
        if code is None:
            return None
        name, place = one_line(source.user_name) or "Somebody", one_line(source.chat_name) or "a group"
        return ASKS_IN_GROUP.format(name=name, platform=source.platform, user=source.user, place=place, code=code)

    def nameless(self, inbound: Inbound) -> str | None:
        """The sentence for a stranger who writes in the name of the group around them, and so cannot be told apart
        there. None: they have a name, or pairing is off."""
        source = inbound.source
        chat = source.renamed or source.chat
        if not self.access.pairing or inbound.only_as_part or source.user not in (chat, source.chat):
            return None
        return NAMELESS.format(platform=source.platform, chat=chat)

    async def _code_for(self, inbound: Inbound) -> str | None:
        """A fresh code for a stranger, or the one that this very message got before."""
        source = inbound.source
        if not self.access.pairing or inbound.kind not in ("message", "unread"):
            return None
        code = "".join(self.rng.choice(CODE_LETTERS) for _ in range(CODE_LENGTH))

        def ask(book: GuestBook) -> tuple[GuestBook, tuple[str | None, bool]]:
            after, told = asked(book, source, inbound.event_id, code, self.clock.now())
            return after, (told, after is not book)

        told, is_new = await self._change(ask, fresh=_FRESH_FOR_STRANGERS)
        if is_new:
            log.info("pairing_asked", platform=source.platform, user=source.user)
        return written(told) if told else None

    async def confirm(self, code: str) -> tuple[Verdict, Guest | None]:
        """Let in the person of a code that an admin typed. Raises StoreUnavailable."""
        if not is_code(code):
            return "no code", None

        def look(book: GuestBook) -> tuple[GuestBook, tuple[Verdict, Guest | None]]:
            after, verdict, guest = confirmed(book, code, self.clock.now())
            return after, (verdict, guest)

        return await self._change(look)

    async def show_out(self, platform: str, user: str) -> Guest | None:
        """Show a guest out. None: there was no such guest. Raises StoreUnavailable."""
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
            self._book = (await guest_book(self.store), now)
        return self._book[0]

    async def _change(self, decide: Callable[[GuestBook], tuple[GuestBook, T]], *, fresh: float = 0.0) -> T:
        """Change the book by a decision about its present state, even if others change it at the same time. Returns
        the rest of the decision."""
        while True:
            before = await self._read(fresh)
            after, decided = decide(before)
            if after is before:
                return decided
            if await set_guest_book(self.store, after):
                self._book = (after, self.clock.monotonic())
                return decided
            fresh = 0.0


async def guest_book(store: Documents) -> GuestBook:
    """The guest book, empty if nobody ever asked. Raises StoreUnavailable."""
    notes = await store.notes(_FOLDER)
    return convert(loads(notes["book"]), GuestBook) if "book" in notes else GuestBook()


async def set_guest_book(store: Documents, book: GuestBook) -> bool:
    """Replace the book whose version is one less. False, and nothing is stored, if the present book has another
    version: then look again. Raises StoreUnavailable."""
    notes = {"version": str(book.version), "book": dumps(to_builtins(book))}
    return await store.set_notes(_FOLDER, notes, {"version": str(book.version - 1) if book.version > 1 else None})
