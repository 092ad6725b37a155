"""The part of the store that keeps questions: they lie with the turn that asks, and are decided by
whoever is first, in whatever process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from gateway.domain.approval import Approval, Verdict
from gateway.domain.chat import ChatAddress, Outbound, SessionKey
from gateway.store.records import Decision, Lease
from gateway.store.redis import arguments
from gateway.store.redis.codec import number
from gateway.store.redis.delivering import Advance, advances_from, rows_to_send
from gateway.store.redis.filing import FilingStore
from gateway.store.redis.partitions import chat_name, partition_of, partition_of_key
from gateway.store.shared.documents import approval_from, approval_json, in_order, verdict_json

Decided = tuple[Decision | None, tuple[Advance, ...]]


class DecidingStore(FilingStore):
    """Approvals, decided in one process and heard of in all."""

    async def ask(self, lease: Lease, approval: Approval, shown: Sequence[Outbound]) -> tuple[Outbound, ...]:
        parts = [str(lease.key), str(lease.fence), approval.item, approval.token, approval_json(approval)]
        parts += [number(self._time.now()), *arguments.rows(shown)]
        return await self._claimed([self._send_rows(partition_of_key(lease.key), "ask", *parts)])

    async def decide(
        self, asked: Approval, verdict: Verdict, by: str | None, at: float, shown: Sequence[Outbound]
    ) -> Decision | None:
        partition = partition_of_key(asked.key)
        parts = [str(asked.key), asked.token, verdict_json(verdict, by, at)]
        parts += [number(self._time.now()), *arguments.rows(shown)]

        def read(reply: list[Any]) -> Decided:
            first, found, advances = reply
            if not found:
                return None, ()
            item, document, decided = found
            approval = approval_from(document, item, decided)
            return Decision(approval=approval, first=bool(first)), advances_from(partition, advances)

        def done(decided: Decided) -> None:
            self._noted(decided[1])
            if decided[0] is not None and decided[0].first:
                self._tell_decided(asked.key)

        decision, advances = await self._wire.run(
            partition,
            "decide",
            *parts,
            read=read,
            done=done,
            abandoned=lambda decided: self._given_back(decided[1]),
        )
        return None if decision is None else replace(decision, outbound=rows_to_send(advances))

    async def approvals(self, chat: ChatAddress) -> list[Approval]:
        found = await self._wire.look(partition_of(chat.platform, chat.chat), "approvals", chat_name(chat))
        return list(in_order(approval_from(asked, item, verdict or None) for item, asked, verdict in found))

    def on_decided(self, listener: Callable[[SessionKey], None]) -> None:
        self._decided_listeners.append(listener)
