"""The rows that this process sends. The step that makes a row the head of its chat claims the row; other rows are
looked for when they are due or their sender is dead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from gateway.domain.chat import Outbound, SessionKey
from gateway.runtime.errors import StoreUnavailable
from gateway.store.redis.arguments import listed
from gateway.store.redis.codec import number, row_from
from gateway.store.redis.connection import Job
from gateway.store.redis.partitions import EVERYWHERE, Places, by_partition, partition_of, partition_of_key
from gateway.store.redis.wire import Wire
from gateway.store.shared.agenda import Advance, rows_to_send
from gateway.store.shared.process import Process

_MOST_LEFT: Final = 256  # chats taken up at a time from a dead process


def advances_from(reply: Iterable[Any]) -> tuple[Advance, ...]:
    """The advances of a script's answer."""
    return tuple(_advance(*each) for each in reply)


def _advance(chat: str, what: str, facts: Any = None) -> Advance:
    if what == "row":
        return Advance(chat=chat, claimed=row_from(facts))
    return Advance(chat=chat, due_at=float(facts) if what == "due" else None)


class Outbox:
    """Steps that claim rows for this process. Two processes may look at a chat; one claims its head."""

    def __init__(self, wire: Wire, process: Process, places: Places) -> None:
        self._wire = wire
        self._process = process
        self._places = places

    def send(
        self, partition: int, script: str, *parts: str, advances_in: Callable[[list[Any]], Any] = lambda reply: reply[0]
    ) -> Job:
        """Send a step whose answer holds advances."""
        return self._wire.send(
            partition,
            script,
            *parts,
            read=lambda reply: advances_from(advances_in(reply)),
            done=self.noted,
            abandoned=self.given_back,
        )

    async def claimed(self, *jobs: Job) -> tuple[Outbound, ...]:
        """The rows that such steps claimed."""
        results = await self._wire.results(jobs)
        return rows_to_send(advance for advances in results for advance in advances)

    async def claim(self, limit: int) -> list[Outbound]:
        """Claim the heads that are due, and the rows of dead processes."""
        await self._wire.settled()  # by then rows of a cancelled caller are back
        now = self._process.time.now()
        chats = self._process.agenda.take(now, limit)
        places = by_partition(chats, lambda chat: partition_of_key(SessionKey.parse(chat)))
        try:
            jobs = [self.send(each, "claim_outbound", number(now), *listed(some)) for each, some in places.items()]
            return list(await self.claimed(*jobs))
        except StoreUnavailable:
            for chat in chats:
                self._process.agenda.wait(chat, now)
            raise

    async def mark(self, outbound_id: str, what: str, *parts: str) -> Outbound | None:
        """Mark a row as sent, put off or refused; returns the chat's next row, if that was claimed."""
        partition = await self.place_of(outbound_id)
        if partition is None:
            return None
        now = number(self._process.time.now())
        job = self.send(partition, "mark", outbound_id, what, now, *parts, advances_in=lambda reply: reply[1])
        claimed = await self.claimed(job)
        return claimed[0] if claimed else None

    async def place_of(self, outbound_id: str) -> int | None:
        """The partition of a row; None: there is no such row."""
        known = self._places.get(outbound_id)
        if known is not None:
            return known
        found = await self._wire.ask_all((each, ("EXISTS", f"row:{outbound_id}")) for each in EVERYWHERE)
        return next((each for each in EVERYWHERE if found[each]), None)

    def noted(self, advances: Iterable[Advance]) -> None:
        """Remember the new state of chats; on the loop, once the server has said so."""
        advances = tuple(advances)
        self._process.agenda.note(advances)
        for row in rows_to_send(advances):
            self._places.note(row.id, partition_of(row.to.platform, row.to.chat))

    def given_back(self, advances: Iterable[Advance]) -> None:
        """Give back rows that were claimed for a caller who is gone: no send was begun."""
        for row in rows_to_send(advances):
            self._wire.submit(
                partition_of(row.to.platform, row.to.chat),
                "give_back",
                *listed([row.id]),
                read=lambda reply: advances_from(reply[0]),
                done=self._left,
            )

    def _left(self, advances: tuple[Advance, ...]) -> None:
        self.noted(advances)
        self._process.tell_rows()

    async def look(self, partitions: Sequence[int] = EVERYWHERE) -> None:
        """Put on the agenda all chats that wait for a time, on the platforms that this process sends to."""
        platforms = await self._wire.ask_all((each, ("SMEMBERS", "platforms")) for each in partitions)
        places = [
            (partition, f"out_due:{platform}")
            for partition, names in zip(partitions, platforms, strict=True)
            for platform in names
            if self._process.sends.has_chat_of(platform)
        ]
        found = await self._wire.ask_all(
            (partition, ("ZRANGE", name, "0", str(_MOST_LEFT - 1), "WITHSCORES")) for partition, name in places
        )
        for flat in found:
            for chat, due in zip(flat[::2], flat[1::2], strict=True):
                self._process.agenda.wait(chat, float(due))
        self._process.tell_rows()
