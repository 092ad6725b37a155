"""The silence that a platform asked for: noted in the store, so that every process keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.domain.adapter import HasRates, account_of
from gateway.domain.chat import ChatAddress
from gateway.runtime.clock import Clock
from gateway.runtime.errors import RateLimited
from gateway.store.insist import insist
from gateway.store.port import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """`rated` are the adapters that declare rates, by platform; of another one nothing is known."""

    store: Store
    clock: Clock
    rated: Mapping[str, HasRates]

    async def left(self, to: ChatAddress) -> float:
        """Seconds for which nothing may be sent to `to`. Raises StoreError."""
        rated = self.rated.get(to.platform)
        if rated is None:
            return 0.0
        account = account_of(rated)
        return max([0.0, *[await self.store.resting(account, rate.bucket) for rate in rated.rates(to)]])

    async def keep(self, to: ChatAddress, error: RateLimited) -> None:
        """Let every process keep what a call to `to` was told."""
        rated = self.rated.get(to.platform)
        if rated is None or not (rates := rated.rates(to)):
            return
        account, bucket = account_of(rated), rates[-1 if error.everywhere else 0].bucket
        await insist(lambda: self.store.hold_off(account, bucket, error.retry_after), clock=self.clock, what="hold_off")
