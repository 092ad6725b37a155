"""The half of the store that only reads: what a gateway's own turns and a program beside it share."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from pathlib import Path

from gateway.domain.chat import ChatAddress, Outbound, SessionKey
from gateway.domain.message import Message
from gateway.domain.pairing import GuestBook
from gateway.domain.pin import Pins
from gateway.domain.session import Compaction, Session
from gateway.domain.usage import UsageTotal
from gateway.store.port import Store
from gateway.store.records import Found, InboxItem, SignalKind, StoreStatus, Transcript, TurnJournal
from gateway.store.shared.transcripts import TranscriptCache
from gateway.store.sqlite import inbox, messages, outbox, pairing, pinning, reading, search, sessions, turns
from gateway.store.sqlite.database import Database


class ReadableStore(Store):
    """Queries on an open `Database`. Those of a few rows run on the event loop, the others in the
    reader's thread."""

    def __init__(self, path: Path, *, read_only: bool, cached_messages: int) -> None:
        self._read_only = read_only
        self._database = Database(path, read_only=read_only)
        self._cache = TranscriptCache(cached_messages)

    # -- turns and sessions -----------------------------------------------------------------

    async def journal(self, item: InboxItem) -> TurnJournal | None:
        return self._database.look(lambda connection: turns.journal(connection, item))

    async def signals(self, item: InboxItem) -> tuple[SignalKind, ...]:
        return self._database.look(lambda connection: inbox.signals(connection, item))

    async def tip(self, key: SessionKey) -> Session | None:
        return self._database.look(lambda connection: sessions.tip(connection, key))

    async def session(self, session_id: str) -> Session:
        return self._database.look(lambda connection: sessions.by_id(connection, session_id))

    async def pins(self, key: SessionKey) -> Pins:
        return self._database.look(lambda connection: pinning.of_key(connection, key))

    async def guest_book(self) -> GuestBook:
        return self._database.look(pairing.guest_book)

    async def set_guest_book(self, book: GuestBook) -> bool:
        return await self._database.write_beside(lambda connection: pairing.put(connection, book))

    async def transcript(self, session: Session) -> Transcript:
        known = self._cache.get(session.id) or ()
        if self._read_only or len(known) < session.message_count:
            known = await self._load(session.id, known)
        return Transcript(session_id=session.id, messages=known)

    async def _load(self, session_id: str, known: tuple[Message, ...]) -> tuple[Message, ...]:
        """Read what a transcript has beyond what is known, and remember it."""
        while True:
            late = await self._database.read(partial(messages.of_session, session_id=session_id, position=len(known)))
            known = (*known, *late)
            if self._read_only:  # what the gateway appends is not told to a process beside it
                return known
            # Something may have been appended while the thread read; later appends are told.
            if len(known) >= self._database.look(lambda connection: sessions.length(connection, session_id)):
                self._cache.put(session_id, known)
                return known

    async def pending_hooks(self, limit: int) -> list[Session]:
        return await self._database.read(lambda connection: sessions.owed_hooks(connection, limit))

    # -- reading for people -----------------------------------------------------------------

    async def sessions(self, key: SessionKey | None, limit: int, offset: int = 0) -> list[Session]:
        return await self._database.read(lambda connection: reading.listing(connection, key, limit, offset))

    async def lineage(self, session_id: str) -> list[Session]:
        return await self._database.read(lambda connection: reading.lineage(connection, session_id))

    async def compactions(self, session_id: str) -> list[Compaction]:
        return await self._database.read(lambda connection: reading.compactions(connection, session_id))

    async def search(self, words: str, key: SessionKey | None, limit: int) -> list[Found]:
        return await self._database.read(lambda connection: search.search(connection, words, key, limit))

    async def usage(
        self, since: float, by: reading.UsageBy, session_id: str | None = None, key: SessionKey | None = None
    ) -> list[UsageTotal]:
        return await self._database.read(lambda connection: reading.usage(connection, since, by, session_id, key))

    async def status(self, platforms: Collection[str] | None = None) -> StoreStatus:
        return await self._database.read(lambda connection: reading.status(connection, platforms))

    async def outbox(self, address: ChatAddress | None, limit: int) -> list[Outbound]:
        return await self._database.read(lambda connection: outbox.listing(connection, address, limit))
