"""The part of the store that counts money and moments.

A spend cap's account lies in the partition of its name, so one call may touch several partitions.
They are asked one after the other, the widest cap first, and a refusal gives back what was reserved
before it: meanwhile too much is reserved, but no account ever goes beyond its limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from typing import Any

from gateway.domain.rates import GRACE, Rate
from gateway.store.records import ACCOUNT_KEPT, Cap, CapReached, Reservation
from gateway.store.redis.membership import PresentStore
from gateway.store.redis.partitions import partition_of_name
from gateway.store.shared.documents import storable


class MeteringStore(PresentStore):
    """Spending and rates, shared by all processes."""

    async def reserve(self, reservation: Reservation) -> CapReached | None:
        counted: list[Cap] = []
        ended = False
        try:
            for cap in reservation.caps:
                room, spent = await self._reserve(reservation, cap)
                if not room:
                    await self._settle(reservation, 0, counted)
                    ended = True
                    return CapReached(cap=cap, spent=spent)
                counted.append(cap)
            ended = True
            return None
        finally:
            if not ended:  # broken off half-way: what was counted is taken back, whoever is gone
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
        """Nobody will make the call, and nobody waits for this."""
        if self._open_wire is None:  # closed meanwhile: it stays reserved
            return
        for cap in caps:
            partition, parts = self._settling(reservation, 0, cap)
            self._open_wire.submit(partition, "settle", *parts, done=lambda _: None)

    async def settle(self, reservation: Reservation, cost: int) -> None:
        await self._settle(reservation, cost, reservation.caps)

    async def _settle(self, reservation: Reservation, cost: int, caps: Iterable[Cap]) -> None:
        each = [self._settling(reservation, cost, cap) for cap in caps]
        if each:
            await self._wire.results([self._wire.send(partition, "settle", *parts) for partition, parts in each])

    @staticmethod
    def _settling(reservation: Reservation, cost: int, cap: Cap) -> tuple[int, list[str]]:
        return partition_of_name(cap.account), [storable(reservation.id), storable(cap.account), str(cost)]

    async def spent(self, accounts: Sequence[str]) -> list[int]:
        asked = ((partition_of_name(account), ("GET", f"spent:{storable(account)}")) for account in accounts)
        return [int(answer or 0) for answer in await self._wire.ask_all(asked)]

    async def take(self, account: str, ticket: str, rates: Sequence[Rate]) -> float:
        each = [part for rate in rates for part in (storable(rate.bucket), str(rate.most), _milliseconds(rate.seconds))]
        reply: list[Any] = await self._wire.run(
            partition_of_name(account),
            "take",
            storable(account),
            storable(ticket),
            _milliseconds(GRACE),
            str(len(rates)),
            *each,
        )
        return int(reply[0]) / 1_000

    async def hold_off(self, account: str, bucket: str, seconds: float) -> None:
        parts = [storable(account), storable(bucket), _milliseconds(seconds)]
        await self._wire.run(partition_of_name(account), "hold_off", *parts)

    async def resting(self, account: str, bucket: str) -> float:
        left = await self._wire.ask(
            partition_of_name(account), "PTTL", f"silent:{storable(account)}:{storable(bucket)}"
        )
        return max(0, int(left)) / 1_000


def _milliseconds(seconds: float) -> str:
    return str(max(1, ceil(seconds * 1_000)))
