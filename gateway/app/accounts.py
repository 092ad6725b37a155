"""One process reads an account at a time, whichever it is, and another takes over when it dies.

A platform that allows one reader per bot account (a polling Telegram bot, a gateway session) must
not be read twice. The right to read is a lease in the store, renewed until this process ends or
loses it. Where only the reader can show messages, the right to send comes and goes with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial

import structlog
from msgspec import Struct

from gateway.domain.adapter import Accept, Accepted, Adapter, HasAccount, account_of
from gateway.domain.chat import Inbound
from gateway.runtime.clock import Clock
from gateway.runtime.errors import StoreLocked, StoreUnavailable
from gateway.runtime.tasks import Background, ended_before
from gateway.store.port import Documents, FleetStore

log = structlog.get_logger(__name__)

LEASE_SECONDS = 12.0  # a dead reader is replaced within this and one look: at most 15 s together
_LOOK_SECONDS = 2.0
_RENEW_SECONDS = 4.0


class AccountNotes(Struct, frozen=True, kw_only=True):
    """The notes of an account's adapter, in the store."""

    store: Documents
    account: str

    async def read(self) -> Mapping[str, str]:
        return await self.store.notes(self.account)

    async def write(self, changes: Mapping[str, str | None]) -> None:
        await self.store.set_notes(self.account, changes)


class _LeaseState:
    """Whether this process holds the lease of one account. `refusal`: why it will not get the lease again."""

    def __init__(self, *, waits: bool) -> None:
        self.waits = waits  # for another holder, to take the lease from them
        self.held, self.lost, self.refused = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.refusal: StoreLocked | None = None
        self.hold()

    def hold(self) -> None:
        self.lost.clear()
        self.held.set()

    def lose(self) -> None:
        self.held.clear()
        self.lost.set()

    def refuse(self, why: StoreLocked) -> None:
        self.refusal = why
        self.refused.set()
        self.held.set()  # nobody need wait for it


class AccountLeases:
    """Runs adapters whose account nobody else reads, and tells the store whose work is done here: the lanes of the
    platforms in `runs`, and the messages of every adapter that may send."""

    def __init__(
        self, *, store: FleetStore, clock: Clock, worker: str, background: Background, runs: Collection[str]
    ) -> None:
        self._store = store
        self._background = background
        self._clock = clock
        self._worker = worker
        self.runs = runs
        self._sends: set[str] = set()
        self._renewals: dict[str, asyncio.Task[None]] = {}  # account → the task that renews its lease
        self._owned: set[str] = set()

    def owns(self, adapter: Adapter) -> bool:
        """Whether this process may read the adapter's platform now."""
        return not isinstance(adapter, HasAccount) or account_of(adapter) in self._owned

    def begin(self, adapters: Iterable[Adapter]) -> None:
        """Take the store's work for these adapters; before it is opened, so that it looks for no other."""
        self._sends = {each.name for each in adapters if not (isinstance(each, HasAccount) and each.reader_sends)}
        self._store.serve(runs=self.runs, sends=self._sends)

    async def read(self, adapter: Adapter, accept: Accept) -> None:
        """Run the adapter while this process owns its account; returns when the adapter has read all
        there is, and owns the account still: what it asked for is yet to be shown. An adapter without
        an account is simply run. Raises what the adapter raises, and StoreLocked if the account is
        taken and the adapter does not wait for it."""
        if not isinstance(adapter, HasAccount):
            await adapter.run(accept)
            return
        name = account_of(adapter)
        if (earlier := self._renewals.pop(name, None)) is not None:  # of a reading that a bug ended
            earlier.cancel()
        waits = adapter.waits_for_account
        await self._take(name, adapter, waits=waits)
        account = _LeaseState(waits=waits)
        self._renewals[name] = self._background.start(self._own(name, adapter, account), name=f"account {name}")

        async def accept_if_owned(batch: Sequence[Inbound]) -> Sequence[Accepted]:
            if account.lost.is_set():
                raise StoreUnavailable(f"the right to use the {adapter.name} was lost and is asked for again")
            return await accept(batch)

        if adapter.reader_sends:  # its input is nobody else's: it waits while the account is away
            ended = await ended_before(partial(adapter.run, accept_if_owned), account.refused)
        else:
            while not (ended := await ended_before(partial(adapter.run, accept), account.lost)):
                await account.held.wait()
                if account.refusal:
                    break
        if not ended and account.refusal:
            raise account.refusal

    async def aclose(self) -> None:
        """Let go of every account, so that others need not wait for the lease."""
        renewals, self._renewals = self._renewals, {}
        for renewal in renewals.values():
            renewal.cancel()
        await asyncio.gather(*renewals.values(), return_exceptions=True)
        for name in renewals:
            try:
                await self._store.let_go(name, self._worker)
            except StoreUnavailable as error:
                log.warning("account_not_let_go", account=name, error=str(error))

    async def _own(self, name: str, adapter: Adapter, account: _LeaseState) -> None:
        """Keep the account, and take it again whenever it was lost, until cancelled."""
        try:
            while True:
                await self._keep(name, adapter)
                log.warning("account_lost", account=name)
                account.lose()
                await self._take(name, adapter, waits=account.waits)
                account.hold()
        except StoreLocked as error:
            account.refuse(error)

    async def _take(self, name: str, adapter: Adapter, *, waits: bool) -> None:
        told = False
        while not (held := await self._hold(name)):
            if held is False and not waits:
                raise StoreLocked(
                    f"Another process already uses this store for {adapter.name}. End that process first, or wait "
                    f"{LEASE_SECONDS:g} seconds if it has just crashed."
                )
            if not told:
                told = True
                log.warning("waiting_for_account", account=name)
            await self._clock.sleep(_LOOK_SECONDS)
        log.info("account_owned", account=name)
        self._owned.add(name)
        self._may_send(adapter)

    async def _keep(self, name: str, adapter: Adapter) -> None:
        """Renew the lease; return when it is lost, or could not be renewed for as long as it lasts."""
        good_until = self._clock.monotonic() + LEASE_SECONDS
        try:
            while True:
                async with self._clock.limit(max(0.0, good_until - self._clock.monotonic())):
                    await self._clock.sleep(_RENEW_SECONDS)
                    asked = self._clock.monotonic()
                    # A store whose server hangs may answer when the lease is long over.
                    held = await self._hold(name)
                if held is False:
                    break
                if held:
                    good_until = asked + LEASE_SECONDS
        except TimeoutError:
            log.warning("lease_not_renewed", account=name)
        self._owned.discard(name)
        self._may_send(adapter, no_more=True)

    def _may_send(self, adapter: Adapter, *, no_more: bool = False) -> None:
        others = self._sends - {adapter.name}
        if isinstance(adapter, HasAccount) and adapter.reader_sends:
            self._sends = others if no_more else {*others, adapter.name}
            self._store.serve(runs=self.runs, sends=self._sends)

    async def _hold(self, name: str) -> bool | None:
        """Whether this process holds the lease from now on; None: the store cannot be asked."""
        try:
            return await self._store.hold(name, self._worker, LEASE_SECONDS)
        except StoreUnavailable as error:
            log.warning("lease_not_known", account=name, error=str(error))
            return None
