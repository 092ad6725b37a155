"""The pace of calls to a platform: its rates, and silences that it asked for. Both are in the store, so that all
processes keep them together."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from msgspec import Struct

from gateway.domain.adapter import HasRates, account_of
from gateway.domain.chat import ChatAddress, Outbound
from gateway.runtime.clock import Clock
from gateway.runtime.errors import RateLimited, StoreError
from gateway.store.insist import insist
from gateway.store.port import Store


class Pacing(Struct, frozen=True, kw_only=True):
    """`rated` are the adapters that declare rates, by platform. Nobody waits for other platforms."""

    store: Store
    clock: Clock
    rated: Mapping[str, HasRates]

    async def wait(self, row: Outbound) -> float:
        """Seconds until the row may be sent; at 0.0 the send is counted."""
        rated = self.rated.get(row.to.platform)
        if rated is None:
            return 0.0
        account, rates = account_of(rated), rated.rates(row.to)
        return await insist(lambda: self.store.take(account, row.id, rates), clock=self.clock, what="take")

    async def silence(self, to: ChatAddress) -> float:
        """Seconds for which nothing may be sent to `to`. Raises StoreError."""
        rated = self.rated.get(to.platform)
        if rated is None:
            return 0.0
        account = account_of(rated)
        return max([0.0, *[await self.store.resting(account, rate.bucket) for rate in rated.rates(to)]])

    async def keep(self, to: ChatAddress, error: RateLimited) -> None:
        """Make every process keep the silence that the platform asked for in `to`."""
        rated = self.rated.get(to.platform)
        if rated is None or not (rates := rated.rates(to)):
            return
        account, bucket = account_of(rated), rates[-1 if error.everywhere else 0].bucket
        await insist(lambda: self.store.hold_off(account, bucket, error.retry_after), clock=self.clock, what="hold_off")

    async def rests(self, to: ChatAddress) -> bool:
        """Whether a chat is gone or silent, so that it is shown only what cannot be spared."""
        if to.platform not in self.rated:
            return False
        with suppress(StoreError):
            return await self.store.closed(to) is not None or await self.silence(to) > 0.0
        return False
