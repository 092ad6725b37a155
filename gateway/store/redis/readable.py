"""The half of the store that only reads."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from typing import Any, Final

from gateway.domain.chat import ChatAddress, Outbound, SessionKey
from gateway.domain.message import Message
from gateway.domain.session import Compaction, Session, is_continuation
from gateway.domain.usage import UsageTotal
from gateway.runtime.errors import SessionNotFound, StoreUnavailable
from gateway.store.port import Store
from gateway.store.records import Found, InboxItem, SignalKind, StoreStatus, Transcript, TurnJournal
from gateway.store.redis import reading, searching
from gateway.store.redis.codec import approvals_from, compaction_from, message_from, pairs, row_from, session_from
from gateway.store.redis.partitions import partition_of_key
from gateway.store.redis.reading import EVERYWHERE
from gateway.store.redis.wire import Wire
from gateway.store.shared.documents import intents_from, item_from
from gateway.store.shared.platforms import Platforms
from gateway.store.shared.transcripts import TranscriptCache

_MOST_PLACES: Final = 50_000  # sessions and rows whose partition is remembered
_PAGE: Final = 1_000  # messages read in one step


class Places:
    """In which partition things are that are asked for by their id alone, the latest ones."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, int] = OrderedDict()

    def note(self, name: str, partition: int) -> None:
        """It is there."""
        self._known[name] = partition
        if len(self._known) > _MOST_PLACES:
            self._known.popitem(last=False)

    def get(self, name: str) -> int | None:
        """Where it is, if that is remembered."""
        return self._known.get(name)


class ReadableStore(Store):
    """Queries through a `Wire`, which `open` makes."""

    def __init__(self, *, cached_messages: int) -> None:
        self._cache = TranscriptCache(cached_messages)
        self._places = Places()
        self._open_wire: Wire | None = None

    @property
    def _wire(self) -> Wire:
        if self._open_wire is None:
            raise StoreUnavailable("The store is closed.")
        return self._open_wire

    # -- turns and sessions -----------------------------------------------------------------

    async def running(self, key: SessionKey) -> InboxItem | None:
        (item,) = await self._wire.look(partition_of_key(key), "running", str(key))
        return item_from(item) if item else None

    async def waiting(self, key: SessionKey, limit: int) -> list[InboxItem]:
        items = await self._wire.look(partition_of_key(key), "waiting", str(key), str(limit))
        return [item_from(each) for each in items]

    async def journal(self, item: InboxItem) -> TurnJournal | None:
        turn, row = await self._wire.look(partition_of_key(item.key), "journal", item.id)
        if not turn:
            return None
        facts = pairs(turn)
        reply = row_from(row) if row else None
        return TurnJournal(
            session_id=facts.get("session") or (reply and reply.session_id) or "",
            steps=int(facts.get("steps", 0)),
            intents=intents_from(facts.get("intents", "[]")),
            reply=reply,
            approvals=approvals_from(facts, item.id),
        )

    async def signals(self, item: InboxItem) -> tuple[SignalKind, ...]:
        flat = await self._wire.ask(partition_of_key(item.key), "HGETALL", f"signals:{item.id}")
        left: dict[Any, str] = pairs(flat)
        return tuple(sorted(left, key=lambda kind: (float(left[kind]), kind)))

    async def tip(self, key: SessionKey) -> Session | None:
        partition = partition_of_key(key)
        (fields,) = await self._wire.look(partition, "tip", str(key))
        return self._session(fields, partition) if fields else None

    async def session(self, session_id: str) -> Session:
        partition = self._places.get(session_id)
        asked = EVERYWHERE if partition is None else (partition,)
        found = await self._wire.ask_all((each, ("HGETALL", f"session:{session_id}")) for each in asked)
        for where, fields in zip(asked, found, strict=True):
            if fields:
                return self._session(fields, where)
        raise SessionNotFound(f"There is no session {session_id}.")

    def _session(self, fields: list[str], partition: int) -> Session:
        session = session_from(fields)
        self._places.note(session.id, partition)
        return session

    async def transcript(self, session: Session) -> Transcript:
        known = self._cache.get(session.id) or ()
        if len(known) < session.message_count:
            known = await self._load(session, known)
        return Transcript(session_id=session.id, messages=known)

    async def _load(self, session: Session, known: tuple[Message, ...]) -> tuple[Message, ...]:
        """Read what a transcript has beyond what is known, and remember it."""
        partition = partition_of_key(session.key)
        while len(known) < session.message_count:
            flat = await self._wire.look(partition, "transcript", session.id, str(len(known)), str(_PAGE))
            if not flat:
                break
            late = (message_from(*each)[0] for each in zip(flat[::2], flat[1::2], strict=True))
            known = (*known, *late)
        self._cache.put(session.id, known)
        return known

    # -- reading for people -----------------------------------------------------------------

    async def sessions(self, key: SessionKey | None, limit: int, offset: int = 0) -> list[Session]:
        if key is None:
            return await reading.sessions_of_all(self._wire, limit, offset)
        return await reading.sessions_of_key(self._wire, key, limit, offset)

    async def lineage(self, session_id: str) -> list[Session]:
        chain = [await self.session(session_id)]
        seen = {session_id}
        while (parent := await self._unseen(chain[0].parent_id, seen)) and is_continuation(parent, chain[0]):
            chain.insert(0, parent)
        while (child := await self._unseen(chain[-1].continuation_id, seen)) and is_continuation(chain[-1], child):
            chain.append(child)
        return chain

    async def _unseen(self, session_id: str | None, seen: set[str]) -> Session | None:
        """A session not met before: a damaged chain that bites its tail must end somewhere."""
        if session_id is None or session_id in seen:
            return None
        seen.add(session_id)
        try:
            return await self.session(session_id)
        except SessionNotFound:
            return None

    async def compactions(self, session_id: str) -> list[Compaction]:
        partition = self._places.get(session_id)
        asked = EVERYWHERE if partition is None else (partition,)
        found = await self._wire.ask_all((each, ("LRANGE", f"compactions:{session_id}", "0", "-1")) for each in asked)
        return [compaction_from(text) for texts in found for text in texts]

    async def search(self, words: str, key: SessionKey | None, limit: int) -> list[Found]:
        return await searching.search(self._wire, words, key, limit)

    async def usage(
        self, since: float, by: reading.UsageBy, session_id: str | None = None, key: SessionKey | None = None
    ) -> list[UsageTotal]:
        if session_id is not None:
            try:
                owner = (await self.session(session_id)).key
            except SessionNotFound:
                return []
            if key not in (None, owner):
                return []
            key = owner  # a session's entries are found through its key
        where = EVERYWHERE if key is None else (partition_of_key(key),)
        return await reading.usage(self._wire, where, since, by, session_id, key)

    async def status(self, platforms: Collection[str] | None = None) -> StoreStatus:
        return await reading.status(self._wire, Platforms(platforms))

    async def outbox(self, address: ChatAddress | None, limit: int) -> list[Outbound]:
        return await reading.rows(self._wire, address, limit)
