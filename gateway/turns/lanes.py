"""Lanes: one turn at a time for each key, in the order of acceptance, and many keys at once.

The store decides which lane may run. This module keeps as many running as configured, and hands each claimed item to
`run`, which returns the lane's next item (already claimed) or None.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from weakref import WeakValueDictionary

import structlog
from structlog.contextvars import bind_contextvars

from gateway.domain.chat import SessionKey
from gateway.runtime.clock import Clock
from gateway.runtime.errors import SessionConflict, StoreError, StoreUnavailable
from gateway.runtime.tasks import Background
from gateway.store.insist import insist
from gateway.store.port import InboxStore
from gateway.store.records import Beginning, Claim, InboxItem, Lease

RunItem = Callable[[Lease, InboxItem, Beginning | None], Awaitable[InboxItem | None]]

log = structlog.get_logger(__name__)

_RETRY_SECONDS = 1.0
# Claims on their way at once. One after the other would wait for the store's answer each, and a store behind a network
# would start few turns a second. For so many messages that arrive together a worker waits, who spares the claim.
_CLAIMERS = 32
_SHARES = 4  # a person's own chats take no more than one place in so many


class Lanes:
    """Claims lanes and drains them. `rest`: seconds for which a lane pauses if its writers keep it full, so that they
    do not take everybody else's place. `crowded` shows that a lane waits for other chats of the same person."""

    def __init__(
        self,
        *,
        store: InboxStore,
        run: RunItem,
        worker: str,
        concurrent: int,
        background: Background,
        clock: Clock,
        rest: Callable[[SessionKey], float] = lambda _: 0.0,
        crowded: Callable[[InboxItem], Awaitable[None]],
    ) -> None:
        self._store = store
        self._run = run
        self.worker = worker
        self._slots = asyncio.Semaphore(concurrent)
        self._share = max(1, concurrent // _SHARES)
        self._shares = WeakValueDictionary[SessionKey, asyncio.Semaphore]()  # of people with several chats of their own
        self._aside: Counter[SessionKey] = Counter()  # how often each lane waits for another
        self._owed = 0  # places that are taken twice
        self._background = background
        self._clock = clock
        # By lease, not by key: a lane can be claimed again shortly before its last worker has left.
        self._running: dict[Lease, asyncio.Task[None]] = {}
        self._claiming: list[asyncio.Task[None]] = []
        self._stopping = False
        self._rest = rest
        self._crowded = crowded

    @property
    def active(self) -> int:
        """How many lanes are being drained."""
        return len(self._running)

    @property
    def is_full(self) -> bool:
        """Whether no more lanes may be drained at once."""
        return self._slots.locked()

    @contextmanager
    def aside(self, key: SessionKey) -> Iterator[None]:
        """While this block waits for another lane, let that one have this lane's place. Afterwards more lanes than
        configured may run for a while."""
        self._aside[key] += 1
        if self._aside[key] == 1:
            self._slots.release()
        try:
            yield
        finally:
            self._aside[key] -= 1
            if not self._aside[key]:
                del self._aside[key]
                self._owed += 1

    async def serve(self) -> None:
        """Claim and drain lanes until cancelled, or until `stop` was called."""
        async with asyncio.TaskGroup() as group:
            self._claiming = [group.create_task(self._serve()) for _ in range(_CLAIMERS)]

    async def _serve(self) -> None:
        while True:
            await self._slots.acquire()
            claim: Claim | None = None
            try:
                claim = await self._store.claim_next(self.worker)
            except StoreError as error:  # of any kind: without claims nobody is ever answered again
                log.error("claim_failed", error=str(error))
                await self._clock.sleep(_RETRY_SECONDS)
                continue
            finally:
                if claim is None:
                    self._slots.release()
            if self._stopping:
                # Otherwise the lanes that a stop gives back would be claimed and given back without end.
                await self._give_back(claim.lease, counted=False)
                return
            lease = claim.lease
            self._running[lease] = self._background.start(self._drain(claim), name=f"lane {lease.key.text}")

    async def stop(self, grace: float, *, waits: Callable[[SessionKey], bool] = lambda _: False) -> None:
        """Give running lanes `grace` seconds to finish their present item, then give them back. A lane whose turn waits
        for a person is given back at once, because no grace is long enough for that."""
        self._stopping = True
        for claiming in self._claiming:
            claiming.cancel()  # a cancelled wait claims nothing
        running = list(self._running.values())
        if not running:
            return
        for lease, task in self._running.items():
            if waits(lease.key):
                task.cancel()
        try:
            async with self._clock.limit(grace):
                await asyncio.wait(running)
        except TimeoutError:
            log.warning("turns_cut_short", count=len(self._running))
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _own_share(self, claim: Claim) -> tuple[asyncio.Semaphore, Beginning | None]:
        """Wait, without a place, while other chats of the same person take all that one person may. What was known
        before the wait may have changed."""
        share = self._shares.setdefault(claim.item.key.owner, asyncio.Semaphore(self._share))
        if not share.locked():
            await share.acquire()
            return share, claim.begins
        with self.aside(claim.item.key):
            await self._crowded(claim.item)
            await share.acquire()
        return share, None

    async def _drain(self, claim: Claim) -> None:
        lease, begins = claim.lease, claim.begins
        following: InboxItem | None = claim.item
        counted = False
        share: asyncio.Semaphore | None = None
        try:
            if lease.key.is_own:
                share, begins = await self._own_share(claim)
            while following is not None and not self._stopping:
                counted = False
                if rest := self._rest(lease.key):
                    await self._clock.sleep(rest)
                    begins = None
                counted = True
                bind_contextvars(turn=following.id)  # in every line that the turn logs: the context is this task's own
                following = await self._run(lease, following, begins)
                counted, begins = False, None
        except SessionConflict as error:
            # Another process owns the lane, or moved the session: this turn is void.
            log.warning("turn_void", key=str(lease.key), error=str(error))
        except StoreUnavailable as error:
            counted = False  # this is the store's fault, however often it happens
            log.warning("turn_put_off", key=str(lease.key), error=str(error))
            await self._clock.sleep(_RETRY_SECONDS)
        except asyncio.CancelledError:
            counted = False
            raise
        finally:
            try:
                if following is not None:
                    await self._give_back(lease, counted=counted)
            finally:
                del self._running[lease]
                if share is not None:
                    share.release()
                if self._owed:
                    self._owed -= 1
                else:
                    self._slots.release()

    async def _give_back(self, lease: Lease, *, counted: bool) -> None:
        """Let the lane be claimed again. A failed attempt counts, so that the item ends some day."""
        with suppress(SessionConflict):  # the lane is another process's, or ended with its item
            try:
                await self._store.release(lease, counted=counted)
            except StoreUnavailable as error:
                if self._stopping:
                    # The next start finds the lane all the same; a full disk must not hold up the stop.
                    log.warning("lane_not_given_back", key=str(lease.key), error=str(error))
                    return
                await insist(lambda: self._store.release(lease, counted=counted), clock=self._clock, what="release")
