"""One process reads an account at a time, whichever it is, and another takes over when it dies.

A platform that allows one reader per bot account (a polling Telegram bot, a gateway session) must
not be read twice. The right to read is a lease in the store, renewed while the adapter runs.
"""

from __future__ import annotations

import asyncio

import structlog

from gateway.adapter import Accept, Adapter, HasAccount
from gateway.clock import Clock
from gateway.errors import GatewayError, StoreLocked, StoreUnavailable
from gateway.store.base import Store

log = structlog.get_logger(__name__)

LEASE_SECONDS = 12.0  # a dead reader is replaced within this and one look (SPEC 15: at most 15 s)
_LOOK_SECONDS = 2.0
_RENEW_SECONDS = 4.0


class Ownership:
    """Runs adapters whose account nobody else reads."""

    def __init__(self, *, store: Store, clock: Clock, worker: str) -> None:
        self._store = store
        self._clock = clock
        self._worker = worker

    async def read(self, adapter: Adapter, accept: Accept) -> None:
        """Run the adapter while this process owns its account; returns when the adapter has read all
        there is. An adapter without an account is simply run. Raises what the adapter raises, and
        StoreLocked if the account is taken and the adapter does not wait for it."""
        if not isinstance(adapter, HasAccount):
            await adapter.run(accept)
            return
        name = f"{adapter.name}:{adapter.account}"
        while not await self._read_while_owner(name, adapter, accept, waits=adapter.waits_for_account):
            log.warning("account_lost", account=name)

    async def _read_while_owner(self, name: str, adapter: Adapter, accept: Accept, *, waits: bool) -> bool:
        """Whether the adapter came to its end; False: the account was lost to another process."""
        told = False
        while not await self._hold(name):
            if not waits:
                raise StoreLocked(
                    f"Another {adapter.name} already talks with this store: close that one first, or wait "
                    f"{LEASE_SECONDS:g} seconds if it has just crashed."
                )
            if not told:
                told = True
                log.warning("waiting_for_account", account=name)
            await self._clock.sleep(_LOOK_SECONDS)
        log.info("account_owned", account=name)
        failures: list[GatewayError] = []

        async def read() -> None:
            try:
                await adapter.run(accept)
            except GatewayError as error:  # as itself, not inside a group's error
                failures.append(error)

        async with asyncio.TaskGroup() as group:
            reading = group.create_task(read())
            keeping = group.create_task(self._keep(name))
            await asyncio.wait([reading, keeping], return_when=asyncio.FIRST_COMPLETED)
            ended = reading.done()
            reading.cancel()
            keeping.cancel()
        if failures:
            raise failures[0]
        if ended:
            await self._store.let_go(name, self._worker)
        return ended

    async def _keep(self, name: str) -> None:
        """Renew the lease; return when it is lost, or could not be renewed for as long as it lasts."""
        good_until = self._clock.monotonic() + LEASE_SECONDS
        while self._clock.monotonic() < good_until:
            await self._clock.sleep(_RENEW_SECONDS)
            asked = self._clock.monotonic()
            try:
                if not await self._store.hold(name, self._worker, LEASE_SECONDS):
                    return
            except StoreUnavailable as error:
                log.warning("lease_not_renewed", account=name, error=str(error))
            else:
                good_until = asked + LEASE_SECONDS

    async def _hold(self, name: str) -> bool:
        try:
            return await self._store.hold(name, self._worker, LEASE_SECONDS)
        except StoreUnavailable as error:
            log.warning("lease_not_taken", account=name, error=str(error))
            return False
