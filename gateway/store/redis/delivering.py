"""The outbox half of the store: rows are claimed for this process by the step that makes them the
head of their chat, and looked for again when they are due or their sender is dead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.domain.chat import ChatAddress, Outbound
from gateway.runtime.clock import Clock
from gateway.runtime.errors import StoreUnavailable
from gateway.store.records import Sent
from gateway.store.redis import arguments
from gateway.store.redis.codec import number, row_from
from gateway.store.redis.connection import Job
from gateway.store.redis.partitions import chat_name, partition_of
from gateway.store.redis.readable import ReadableStore
from gateway.store.redis.reading import EVERYWHERE
from gateway.store.shared.documents import storable
from gateway.store.shared.platforms import Platforms
from gateway.store.shared.steady import SteadyTime
from gateway.store.shared.timetable import Timetable

Chat = tuple[int, str]  # its partition and its name

_MOST_LEFT = 256  # chats taken up at a time from a dead process


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance:
    """What became of a chat's head: claimed for sending, or to be looked at again at `due_at`."""

    chat: Chat
    claimed: Outbound | None = None
    due_at: float | None = None


def advances_from(partition: int, reply: Iterable[Any]) -> tuple[Advance, ...]:
    """What the scripts say about chats."""
    return tuple(_advance(partition, *each) for each in reply)


def _advance(partition: int, chat: str, what: str, facts: Any = None) -> Advance:
    if what == "row":
        return Advance(chat=(partition, chat), claimed=row_from(facts))
    return Advance(chat=(partition, chat), due_at=float(facts) if what == "due" else None)


def rows_to_send(advances: Iterable[Advance]) -> tuple[Outbound, ...]:
    """The rows that were claimed."""
    return tuple(advance.claimed for advance in advances if advance.claimed is not None)


class DeliveringStore(ReadableStore):
    """Rows out of a store. `_sends` are the platforms this process sends to."""

    def __init__(self, *, clock: Clock, cached_messages: int) -> None:
        super().__init__(cached_messages=cached_messages)
        self._clock = clock
        self._time = SteadyTime(clock)  # the server's, as each beat says
        # A row that is emitted, or follows one that was sent, is claimed by the step that stores it; left for
        # later are retries and what the dead were sending. Two processes may look; one claims.
        self._agenda = Timetable[Chat]()
        self._sends = Platforms()
        self._rows_listeners: list[Callable[[], None]] = []

    async def emit(self, outbound: Sequence[Outbound]) -> tuple[Outbound, ...]:
        places = [partition_of(row.to.platform, row.to.chat) for row in outbound]
        jobs = []
        for partition in dict.fromkeys(places):
            rows = [row for row, place in zip(outbound, places, strict=True) if place == partition]
            jobs.append(self._send_rows(partition, "emit", number(self._time.now()), *arguments.rows(rows)))
        claimed = {row.id: row for row in await self._claimed(jobs)}
        first = list(dict.fromkeys(row.id for row in outbound if row.id in claimed))
        return tuple(claimed.pop(row_id) for row_id in first) + tuple(claimed.values())

    async def claim_outbound(self, limit: int) -> list[Outbound]:
        await self._wire.settled()  # rows whose taker was cancelled are back then
        now = self._time.now()
        chats = self._agenda.take(now, limit)
        jobs = []
        try:
            for partition in dict.fromkeys(where for where, _ in chats):
                names = [name for where, name in chats if where == partition]
                jobs.append(self._send_rows(partition, "claim_outbound", number(now), *arguments.listed(names)))
            return list(await self._claimed(jobs))
        except StoreUnavailable:
            for chat in chats:
                self._agenda.wait(chat, now)
            raise

    async def mark_sent(self, outbound_id: str, platform_message_id: str | None) -> Sent:
        return await self._mark(outbound_id, "sent", storable(platform_message_id or ""))

    async def mark_retry(
        self, outbound_id: str, seconds: float, *, ambiguous: bool, anew: bool = False, counted: bool = True
    ) -> None:
        due = number(self._time.now() + seconds)
        flags = ["1" if each else "0" for each in (ambiguous, anew, counted)]
        await self._mark(outbound_id, "retry", due, *flags)

    async def mark_refused(
        self, outbound_id: str, reason: str, instead: Outbound | None = None, *, gone: bool = False
    ) -> Sent:
        row = ["0"] if instead is None else ["1", *arguments.row(instead)]
        return await self._mark(outbound_id, "refused", storable(reason), "1" if gone else "0", *row)

    async def close_chat(self, to: ChatAddress, reason: str) -> None:
        where, name = partition_of(to.platform, to.chat), chat_name(to)
        await self._claimed([self._send_rows(where, "close_chat", name, storable(reason), number(self._time.now()))])

    async def open_chat(self, to: ChatAddress) -> None:
        await self._wire.run(partition_of(to.platform, to.chat), "open_chat", chat_name(to))

    async def closed(self, to: ChatAddress) -> str | None:
        found: str | None = await self._wire.ask(partition_of(to.platform, to.chat), "HGET", "closed", chat_name(to))
        return found

    async def rename_chat(self, platform: str, before: str, after: str) -> None:
        first = await self._first_name(platform, before) or before
        if first == after:
            return
        # Whoever is cut short here says it again; each of these may be said twice.
        await self._rename(platform, after, first=first)
        for name in dict.fromkeys((before, first)):
            await self._rename(platform, name, later=after)

    async def first_name(self, platform: str, chat: str, event_id: str) -> str:
        first = await self._first_name(platform, chat)
        if first is None:
            return chat
        known = await self._wire.ask(partition_of(platform, chat), "HEXISTS", f"events:{platform}", storable(event_id))
        return chat if known else first

    async def later_name(self, platform: str, chat: str) -> str | None:
        return await self._name(platform, chat, "later_names")

    async def _first_name(self, platform: str, chat: str) -> str | None:
        return await self._name(platform, chat, "first_names")

    async def _name(self, platform: str, chat: str, which: str) -> str | None:
        name = chat_name(ChatAddress(platform=platform, chat=chat))
        found: str | None = await self._wire.ask(partition_of(platform, chat), "HGET", which, name)
        return found

    async def _rename(self, platform: str, chat: str, *, first: str = "", later: str = "") -> None:
        name = chat_name(ChatAddress(platform=platform, chat=chat))
        parts = [name, storable(first), storable(later)]
        await self._wire.run(partition_of(platform, chat), "rename_chat", *parts)

    async def next_due(self) -> float | None:
        return self._time.until(self._agenda.next_due())

    async def note_streamed(self, outbound_id: str, platform_message_id: str) -> None:
        partition = await self._place_of_row(outbound_id)
        if partition is not None:
            await self._wire.run(partition, "note_streamed", outbound_id, storable(platform_message_id))

    def on_rows(self, listener: Callable[[], None]) -> None:
        self._rows_listeners.append(listener)

    # -- what the other modules use ---------------------------------------------------------

    def _noted(self, advances: Iterable[Advance]) -> None:
        """Remember what became of chats; on the loop, when it is so."""
        for advance in advances:
            if advance.due_at is not None:
                self._agenda.wait(advance.chat, advance.due_at)
            else:
                self._agenda.forget(advance.chat)
            if advance.claimed is not None:
                self._places.note(advance.claimed.id, advance.chat[0])

    def _given_back(self, advances: Iterable[Advance]) -> None:
        """Rows were claimed for somebody who is gone: no send was begun."""
        for advance in advances:
            if advance.claimed is not None:
                self._give_back(advance.chat[0], advance.claimed.id)

    def _give_back(self, partition: int, row_id: str) -> None:
        self._wire.submit(
            partition,
            "give_back",
            *arguments.listed([row_id]),
            read=lambda reply: advances_from(partition, reply[0]),
            done=self._left_rows,
        )

    def _left_rows(self, advances: tuple[Advance, ...]) -> None:
        self._noted(advances)
        self._tell_rows()

    def _tell_rows(self) -> None:
        for listener in self._rows_listeners:
            listener()

    async def _look_for_rows(self, partitions: Sequence[int] = EVERYWHERE) -> None:
        """Put on the agenda what waits for a time on the platforms sent to, whoever put it there."""
        platforms = await self._wire.ask_all((each, ("SMEMBERS", "platforms")) for each in partitions)
        places = [
            (partition, f"out_due:{platform}")
            for partition, names in zip(partitions, platforms, strict=True)
            for platform in names
            if self._sends.has_chat_of(platform)
        ]
        found = await self._wire.ask_all(
            (partition, ("ZRANGE", name, "0", str(_MOST_LEFT - 1), "WITHSCORES")) for partition, name in places
        )
        for (partition, _), flat in zip(places, found, strict=True):
            for chat, due in zip(flat[::2], flat[1::2], strict=True):
                self._agenda.wait((partition, chat), float(due))
        self._tell_rows()

    # -- within -----------------------------------------------------------------------------

    def _send_rows(self, partition: int, script: str, *parts: str) -> Job:
        return self._wire.send(
            partition,
            script,
            *parts,
            read=lambda reply: advances_from(partition, reply[0]),
            done=self._noted,
            abandoned=self._given_back,
        )

    async def _claimed(self, jobs: Sequence[Job]) -> tuple[Outbound, ...]:
        if not jobs:
            return ()
        results = await self._wire.results(jobs)
        return rows_to_send(advance for advances in results for advance in advances)

    async def _mark(self, outbound_id: str, what: str, *parts: str) -> Sent:
        partition = await self._place_of_row(outbound_id)
        if partition is None:
            return Sent(next=None)
        advances: tuple[Advance, ...] = await self._wire.run(
            partition,
            "mark",
            outbound_id,
            what,
            number(self._time.now()),
            *parts,
            read=lambda reply: advances_from(partition, reply[1]),
            done=self._noted,
            abandoned=self._given_back,
        )
        claimed = rows_to_send(advances)
        return Sent(next=claimed[0] if claimed else None)

    async def _place_of_row(self, outbound_id: str) -> int | None:
        known = self._places.get(outbound_id)
        if known is not None:
            return known
        found = await self._wire.ask_all((each, ("EXISTS", f"row:{outbound_id}")) for each in EVERYWHERE)
        return next((each for each in EVERYWHERE if found[each]), None)
