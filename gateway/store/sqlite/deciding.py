"""The part of the store through which questions are decided, by whoever is first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import apsw

from gateway.domain.approval import Approval, Verdict
from gateway.domain.chat import ChatAddress, Outbound, SessionKey
from gateway.runtime.clock import Clock
from gateway.store.records import Decision
from gateway.store.sqlite import approving
from gateway.store.sqlite.agenda import rows_to_send
from gateway.store.sqlite.delivering import DeliveringStore
from gateway.store.sqlite.outbox import Advance


class DecidingStore(DeliveringStore):
    """Approvals; the lanes they are asked in are the store's own affair."""

    def __init__(self, path: Path, *, clock: Clock, read_only: bool, cached_messages: int) -> None:
        super().__init__(path, clock=clock, read_only=read_only, cached_messages=cached_messages)
        self._decided_listeners: list[Callable[[SessionKey], None]] = []

    async def decide(
        self, asked: Approval, verdict: Verdict, by: str | None, at: float, shown: Sequence[Outbound]
    ) -> Decision | None:
        sender = self._sender()

        def work(connection: apsw.Connection) -> tuple[Decision | None, tuple[Advance, ...]]:
            return approving.decide(connection, asked, verdict, by, at, shown, sender)

        def done(decided: tuple[Decision | None, tuple[Advance, ...]]) -> None:
            decision, advances = decided
            self._noted(advances)
            for listener in self._decided_listeners if decision is not None and decision.first else ():
                listener(asked.key)

        decision, advances = await self._database.writer.run(
            work, done=done, abandoned=lambda decided: self._agenda.hand_back(rows_to_send(decided[1]))
        )
        return None if decision is None else replace(decision, outbound=rows_to_send(advances))

    async def approvals(self, chat: ChatAddress) -> list[Approval]:
        return self._database.look(lambda connection: approving.of_chat(connection, chat))

    def on_decided(self, listener: Callable[[SessionKey], None]) -> None:
        self._decided_listeners.append(listener)
