"""The outbox half of the store: rows are claimed for this process by the step that makes them the
head of their chat, and looked for again when they are due or were left by an earlier process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import apsw

from gateway.domain.chat import ChatAddress, Outbound
from gateway.runtime.clock import Clock
from gateway.store.records import Sent
from gateway.store.shared.platforms import Platforms
from gateway.store.shared.steady import SteadyTime
from gateway.store.sqlite import outbox, renaming
from gateway.store.sqlite.agenda import Agenda, rows_to_send
from gateway.store.sqlite.codec import lane_of
from gateway.store.sqlite.outbox import Advance, Sender
from gateway.store.sqlite.readable import ReadableStore


class DeliveringStore(ReadableStore):
    """Rows out of a store. `_sends` are the platforms this process sends to."""

    def __init__(self, path: Path, *, clock: Clock, read_only: bool, cached_messages: int) -> None:
        super().__init__(path, read_only=read_only, cached_messages=cached_messages)
        self._clock = clock
        self._time = SteadyTime(clock)
        self._agenda = Agenda(())
        self._sends = Platforms()
        self._rows_listeners: list[Callable[[], None]] = []

    def on_rows(self, listener: Callable[[], None]) -> None:
        self._rows_listeners.append(listener)

    async def emit(self, outbound: Sequence[Outbound]) -> tuple[Outbound, ...]:
        sender = self._sender()
        return await self._send(lambda connection: outbox.emit(connection, outbound, sender))

    async def claim_outbound(self, limit: int) -> list[Outbound]:
        sender = self._sender()
        unclaimed = self._agenda.take_unclaimed(limit)
        chats = self._agenda.take_chats(sender.now, limit - len(unclaimed))
        if not chats:
            return unclaimed

        def failed() -> None:
            self._agenda.hand_back(unclaimed)
            for chat in chats:
                self._agenda.wait(chat, sender.now)

        claimed = await self._send(
            lambda connection: tuple(outbox.advance(connection, chat, sender, reclaim=True) for chat in chats),
            failed=failed,
            also=unclaimed,
        )
        return [*unclaimed, *claimed]

    def owns(self, row: Outbound) -> bool:
        return True  # the file has one owner

    async def mark_sent(self, outbound_id: str, platform_message_id: str | None) -> Sent:
        sender = self._sender()
        return await self._mark(
            lambda connection: outbox.mark_sent(connection, outbound_id, platform_message_id, sender)
        )

    async def mark_retry(
        self, outbound_id: str, seconds: float, *, ambiguous: bool, anew: bool = False, counted: bool = True
    ) -> None:
        now = self._time.now()
        await self._mark(
            lambda connection: outbox.mark_retry(
                connection, outbound_id, seconds, now=now, ambiguous=ambiguous, anew=anew, counted=counted
            )
        )

    async def mark_refused(
        self, outbound_id: str, reason: str, instead: Outbound | None = None, *, gone: bool = False
    ) -> Sent:
        sender = self._sender()
        return await self._mark(
            lambda connection: outbox.mark_refused(connection, outbound_id, reason, instead, sender, gone=gone)
        )

    async def close_chat(self, to: ChatAddress, reason: str) -> None:
        lane = lane_of(to)
        await self._database.writer.run(lambda connection: outbox.close_chat(connection, lane, reason))

    async def open_chat(self, to: ChatAddress) -> None:
        lane = lane_of(to)
        await self._database.writer.run(lambda connection: outbox.reopen(connection, lane))

    async def closed(self, to: ChatAddress) -> str | None:
        lane = lane_of(to)
        return await self._database.read(lambda connection: outbox.closed_because(connection, lane))

    async def rename_chat(self, platform: str, before: str, after: str) -> None:
        await self._database.writer.run(lambda connection: renaming.rename(connection, platform, before, after))

    async def first_name(self, platform: str, chat: str, event_id: str) -> str:
        # An event is known in the whole file, under whatever name it was accepted.
        first, _ = await self._database.read(lambda connection: renaming.names(connection, platform, chat))
        return first or chat

    async def later_name(self, platform: str, chat: str) -> str | None:
        _, later = await self._database.read(lambda connection: renaming.names(connection, platform, chat))
        return later

    async def next_due(self) -> float | None:
        return self._time.until(self._agenda.next_due())

    def _send_to(self, platforms: Platforms) -> None:
        """From now on; rows of others, left by an earlier process, may wait for it."""
        self._sends = platforms
        self._agenda.serve(platforms)
        self._tell_rows()

    # -- what the other modules use ---------------------------------------------------------

    def _sender(self) -> Sender:
        return Sender(generation=self._database.generation, now=self._time.now(), platforms=self._sends)

    def _noted(self, advances: Iterable[Advance]) -> None:
        """Take up what became of the heads of chats. A step that began before its platform was served
        here left its rows to others; they are this process's by now, and nobody else will look."""
        advances = tuple(advances)
        self._agenda.note(advances)
        now = self._time.now()
        if any(
            each.due_at is not None and each.due_at <= now and self._sends.has_chat_of(each.lane) for each in advances
        ):
            self._tell_rows()

    def _tell_rows(self) -> None:
        for listener in self._rows_listeners:
            listener()

    async def _send(
        self,
        work: Callable[[apsw.Connection], tuple[Advance, ...]],
        *,
        failed: Callable[[], None] = lambda: None,
        also: Iterable[Outbound] = (),
    ) -> tuple[Outbound, ...]:
        """Run something that claims rows; what nobody waits for any more, `also` included, is handed back."""
        advances = await self._database.writer.run(
            work,
            done=self._noted,
            failed=failed,
            abandoned=lambda advances: self._agenda.hand_back((*also, *rows_to_send(advances))),
        )
        return rows_to_send(advances)

    async def _mark(self, work: Callable[[apsw.Connection], Advance | None]) -> Sent:
        def mark(connection: apsw.Connection) -> tuple[Advance, ...]:
            advance = work(connection)
            return () if advance is None else (advance,)

        claimed = await self._send(mark)
        return Sent(next=claimed[0] if claimed else None)
