"""The part of the store that counts money and moments."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import apsw

from gateway.domain.rates import Rate
from gateway.runtime.clock import Clock
from gateway.store.port import Store
from gateway.store.records import CapReached, Reservation
from gateway.store.shared.documents import storable
from gateway.store.sqlite import spending
from gateway.store.sqlite.connection import change, many
from gateway.store.sqlite.database import Database
from gateway.store.sqlite.rates import Rates


class MeteringStore(Store):
    """Spending in an open `Database`, rates in memory."""

    _clock: Clock
    _database: Database

    @cached_property
    def _rates(self) -> Rates:
        return Rates()

    @cached_property
    def _void(self) -> list[Reservation]:
        """Reserved for a caller that was gone before it was told."""
        return []

    async def reserve(self, reservation: Reservation) -> CapReached | None:
        now, generation = self._clock.now(), self._database.generation
        void = [*self._void]
        self._void.clear()

        def work(connection: apsw.Connection) -> CapReached | None:
            for each in void:
                spending.settle(connection, each, 0, generation)
            return spending.reserve(connection, reservation, now, generation)

        return await self._database.writer.run(
            work,
            failed=lambda: self._void.extend(void),
            abandoned=lambda reached: None if reached else self._void.append(reservation),
        )

    async def settle(self, reservation: Reservation, cost: int) -> None:
        generation = self._database.generation
        await self._database.writer.run(lambda connection: spending.settle(connection, reservation, cost, generation))

    async def spent(self, accounts: Sequence[str]) -> list[int]:
        return self._database.look(lambda connection: spending.spent_of_all(connection, accounts))

    async def take(self, account: str, ticket: str, rates: Sequence[Rate]) -> float:
        return self._rates.take(account, ticket, rates, self._clock.monotonic())

    async def hold_off(self, account: str, bucket: str, seconds: float) -> None:
        self._rates.hold_off(account, bucket, self._clock.monotonic() + seconds)
        until = self._clock.now() + seconds
        await self._database.writer.run(lambda connection: _rest(connection, account, bucket, until, seconds))

    async def resting(self, account: str, bucket: str) -> float:
        return self._rates.resting(account, bucket, self._clock.monotonic())

    async def _rest_on(self) -> None:
        """Keep the silence that was asked of an earlier process."""
        now = self._clock.now()
        for account, bucket, until, seconds in await self._database.writer.run(lambda each: _rests(each, now)):
            self._rates.hold_off(account, bucket, self._clock.monotonic() + min(until - now, seconds))


def _rest(connection: apsw.Connection, account: str, bucket: str, until: float, seconds: float) -> None:
    change(
        connection,
        "INSERT INTO rests(account, bucket, until, seconds) VALUES (?1, ?2, ?3, ?4)"
        " ON CONFLICT DO UPDATE SET until = ?3, seconds = ?4 WHERE until < ?3",
        (storable(account), storable(bucket), until, seconds),
    )


def _rests(connection: apsw.Connection, now: float) -> list[tuple[str, str, float, float]]:
    change(connection, "DELETE FROM rests WHERE until <= ?", (now,))
    return many(connection, "SELECT account, bucket, until, seconds FROM rests")
