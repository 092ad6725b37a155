"""Accounts of spend caps. An account lies in the partition of its name, so one call may touch several partitions.

They are asked one after the other, the widest cap first, and a refusal gives back what was reserved
before it: meanwhile too much is reserved, but no account ever goes beyond its limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from typing import Any

from gateway.runtime.clock import Clock
from gateway.store.records import ACCOUNT_KEPT, Cap, CapReached, Reservation
from gateway.store.redis.partitions import partition_of_name
from gateway.store.redis.wire import Wire
from gateway.store.shared.documents import storable


class Spending:
    """Money spent and reserved under accounts, shared by all processes."""

    def __init__(self, wire: Wire, clock: Clock) -> None:
        self._wire = wire
        self._clock = clock

    async def reserve(self, reservation: Reservation) -> CapReached | None:
        """Count a reservation under all its caps, or under none."""
        counted: list[Cap] = []
        ended = False
        try:
            for cap in reservation.caps:
                room, spent = await self._reserve(reservation, cap)
                if not room:
                    await self.settle(reservation, 0, counted)
                    ended = True
                    return CapReached(cap=cap, spent=spent)
                counted.append(cap)
            ended = True
            return None
        finally:
            if not ended:  # broken off half-way: the counted caps get their money back
                self._unreserve(reservation, counted)

    async def _reserve(self, reservation: Reservation, cap: Cap) -> tuple[bool, int]:
        life = 0 if cap.resets_at is None else ceil(max(0.0, cap.resets_at - self._clock.now()) + ACCOUNT_KEPT)
        parts = [storable(reservation.id), storable(cap.account), *map(str, (reservation.amount, cap.limit, life))]

        def read(reply: list[Any]) -> tuple[bool, int]:
            return bool(reply[0]), int(reply[1])

        def abandoned(answer: tuple[bool, int]) -> None:
            if answer[0]:
                self._unreserve(reservation, [cap])

        return await self._wire.run(partition_of_name(cap.account), "reserve", *parts, read=read, abandoned=abandoned)

    def _unreserve(self, reservation: Reservation, caps: Iterable[Cap]) -> None:
        """Give money back, since nobody will make the call. If the store is closed, the money stays reserved."""
        for cap in caps:
            partition, parts = _settling(reservation, 0, cap)
            self._wire.submit(partition, "settle", *parts)

    async def settle(self, reservation: Reservation, cost: int, caps: Iterable[Cap]) -> None:
        """Correct each account by the difference, if that was not done before."""
        each = [_settling(reservation, cost, cap) for cap in caps]
        await self._wire.results([self._wire.send(partition, "settle", *parts) for partition, parts in each])

    async def spent(self, accounts: Sequence[str]) -> list[int]:
        """Money spent and reserved under each account."""
        asked = ((partition_of_name(account), ("GET", f"spent:{storable(account)}")) for account in accounts)
        return [int(answer or 0) for answer in await self._wire.ask_all(asked)]


def _settling(reservation: Reservation, cost: int, cap: Cap) -> tuple[int, list[str]]:
    return partition_of_name(cap.account), [storable(reservation.id), storable(cap.account), str(cost)]
