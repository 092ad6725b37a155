"""Being there: opening and closing, the beat that keeps this process's claims, and what it hears.

A process is a member of each partition for `lease_seconds` after its last beat. That membership is
the lease of every lane it runs, every row it sends and everything else it has claimed: beating costs
the same however much that is. Every process that beats looks for members whose time is over and
frees what they held, so a dead one's lanes go on within the lease and a beat.

A lane whose owner was silent for too long and whom nobody has found dead yet is still the owner's:
what decides is the fence, which rises when the lane is freed or claimed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, Final

import structlog

from gateway.domain.chat import Outbound, SessionKey
from gateway.runtime.clock import Clock
from gateway.runtime.errors import StoreUnavailable
from gateway.store.records import LEASE_SECONDS, Claim, InboxItem, SignalKind
from gateway.store.redis import searching
from gateway.store.redis.admission import admit, look_after, make_good
from gateway.store.redis.chores import Chores
from gateway.store.redis.connection import Caller, Job
from gateway.store.redis.delivering import DeliveringStore
from gateway.store.redis.endpoint import UNREACHABLE, Endpoint
from gateway.store.redis.mark import check_free
from gateway.store.redis.news import News
from gateway.store.redis.partitions import partition_of
from gateway.store.redis.reading import EVERYWHERE
from gateway.store.redis.ready import ReadyPartitions
from gateway.store.redis.wire import Wire
from gateway.store.shared.platforms import Platforms

log = structlog.get_logger(__name__)

_LONGEST_BEAT: Final = 1.0  # seconds: a dead process is found at most this long after its lease


class PresentStore(DeliveringStore):
    """A store that is open or not, and what it hears while it is."""

    def __init__(
        self,
        url: str,
        *,
        clock: Clock,
        lease_seconds: float = LEASE_SECONDS,
        timeout: float = 5.0,
        patience: float = 5.0,
        cached_messages: int = 200_000,
        waits: bool = True,
        told: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__(clock=clock, cached_messages=cached_messages)
        self._endpoint = Endpoint(url, timeout=timeout)
        self._store_id = ""
        self._missed = False  # a server forgot this process, and why is being asked
        self._admitted = partial(admit, self._endpoint, clock, waits=waits, told=told)
        self._lease_seconds = lease_seconds
        self._patience = patience
        self._chores = Chores()
        self._caller: Caller | None = None
        self._ready = ReadyPartitions()
        self._listeners: list[Callable[[SessionKey, SignalKind], None]] = []
        self._decided_listeners: list[Callable[[SessionKey], None]] = []
        self._held: dict[SessionKey, Claim] = {}  # the lanes this process runs, as far as it knows
        self._bypassed: list[InboxItem] = []  # accepted for somebody who was gone before it was said
        self._runs = Platforms()
        self._heard_at: dict[int, float] = {}  # partition → when its last answered beat was sent (monotonic)
        self._left_listeners: list[Callable[[], None]] = []
        self.owner = os.urandom(8).hex()  # this opening of the store, to the others

    # -- lifetime ---------------------------------------------------------------------------

    async def open(self) -> None:
        """Connect and join, waiting for a server that is not there yet. Raises StoreUnavailable for
        one that must not be used."""
        self._store_id = await self._admitted()
        channel = f"legato:{self._store_id}"
        life = int(self._lease_seconds * 1_000)
        self._caller = Caller(owner=self.owner, channel=channel, life=life, runs=self._runs, sends=self._sends)
        self._open_wire = Wire(
            self._endpoint, caller=self._caller, clock=self._clock, chores=self._chores, patience=self._patience
        )
        news = News(self._endpoint, channel, clock=self._clock, heard=self._heard, caught_up=self._caught_up)
        self._chores.start(news.serve(), name="store news")
        await self._first_beats()
        await self._make_sure()
        await news.listening.wait()
        await self._look_for_rows()
        self._chores.start(self._beats(), name="store beats")
        self._chores.start(self._make_good(), name="store index")
        self._chores.start(look_after(self._endpoint, self._clock), name="store settings")

    async def _make_sure(self) -> None:
        """A migration that began since this process was admitted has not seen it as a member, or will
        be seen by it now: one of the two withdraws."""
        try:
            await check_free(self._endpoint)
        except UNREACHABLE:
            return  # who cannot be asked holds nothing: the steps of this process will wait for it, too
        except StoreUnavailable:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """Finish what is on its way and leave, so that the others need not wait for the lease."""
        wire = self._open_wire
        if wire is not None:
            await wire.drain()
            for partition in EVERYWHERE:
                wire.submit(partition, "leave", done=lambda _: None)
            await wire.drain()
        await self._chores.aclose()
        if wire is not None:
            await wire.aclose()
        self._open_wire = None

    def serve(self, *, runs: Collection[str], sends: Collection[str]) -> None:
        self._runs, self._sends = Platforms(runs), Platforms(sends)
        if self._caller is not None:
            self._caller.runs, self._caller.sends = self._runs, self._sends
            # What waited for a process that does them; lanes are found by the next beat.
            self._chores.start(self._look_for_rows(), name="store rows")
            self._chores.start(self._first_beats(), name="store lanes")

    def owns(self, row: Outbound) -> bool:
        heard = self._heard_at.get(partition_of(row.to.platform, row.to.chat))
        return heard is not None and self._clock.monotonic() - heard < self._lease_seconds

    def on_left(self, listener: Callable[[], None]) -> None:
        self._left_listeners.append(listener)

    # -- the beat ---------------------------------------------------------------------------

    async def _first_beats(self) -> None:
        await self._wire.results([self._send_beat(partition, first=True) for partition in EVERYWHERE])

    async def _beats(self) -> None:
        """One beat in each partition, time and again; one that is not answered holds up no other."""
        unanswered: set[int] = set()
        while True:
            await self._clock.sleep(min(_LONGEST_BEAT, self._lease_seconds / 4))
            for partition in EVERYWHERE:
                if partition not in unanswered:
                    unanswered.add(partition)
                    self._wire.watch(self._send_beat(partition), partial(unanswered.discard, partition))

    def _send_beat(self, partition: int, *, first: bool = False) -> Job:
        sent = self._clock.monotonic()

        def done(answer: list[Any]) -> None:
            self._heard_at[partition] = sent
            known, dead, ready, suspect, chat, due, milliseconds = answer
            self._time.learn(int(milliseconds) / 1_000)
            if not known and not first:
                log.warning("store_took_this_process_for_dead", partition=partition)
                self._forgotten()
            if ready:  # the news of it may have been lost
                self._ready.add(partition, int(ready))
            if suspect:
                self._ready.add_suspect(partition, int(suspect))
            if dead:
                self._chores.start(self._take_up(), name="store takes up")
            if chat and float(due) < self._time.now() - self._lease_seconds:
                # Nobody has looked at it since it was due: whoever put it off is gone, and others like it.
                self._chores.start(self._look_for_rows([partition]), name="store rows")

        return self._wire.send(partition, "beat", done=done)

    def _forgotten(self) -> None:
        if not self._missed:
            self._missed = True
            self._chores.start(self._look_why(), name="store whole")

    async def _look_why(self) -> None:
        try:
            await make_good(self._endpoint, self._store_id)
        except UNREACHABLE as error:
            log.info("store_not_asked", error=str(error))
        finally:
            self._missed = False

    async def _take_up(self) -> None:
        """Somebody died, or left: what they had begun is anybody's."""
        await self._look_for_rows()
        self._tell_left()
        await self._make_good()

    async def _make_good(self) -> None:
        for partition in EVERYWHERE:
            await searching.make_good(self._wire, partition)

    # -- news -------------------------------------------------------------------------------

    def _tell_left(self) -> None:
        for listener in self._left_listeners:
            listener()

    def _heard(self, text: str) -> None:
        what, _, rest = text.partition(" ")
        if what in ("ready", "suspect"):
            partition, number, owner, platform = rest.split(" ")
            if owner != self.owner and self._runs.has_chat_of(platform):  # its own it rang with the answer
                add = self._ready.add if what == "ready" else self._ready.add_suspect
                add(int(partition), int(number))
        elif what == "signal":
            kind, owner, key = rest.split(" ", 2)
            if owner != self.owner:
                self._tell_signal(SessionKey.parse(key), kind)
        elif what == "decided":
            owner, key = rest.split(" ", 1)
            if owner != self.owner:
                self._tell_decided(SessionKey.parse(key))
        elif what == "rows":
            partition, owner, platform = rest.split(" ")
            if owner != self.owner and self._sends.has_chat_of(platform):
                self._chores.start(self._look_for_rows([int(partition)]), name="store rows")
        elif what == "left":
            self._chores.start(self._take_up(), name="store takes up")  # or else a beat sees what is overdue

    def _caught_up(self) -> None:
        self._chores.start(self._hear_missed_signals(), name="store signals")

    async def _hear_missed_signals(self) -> None:
        for claim in list(self._held.values()):
            for kind in await self.signals(claim.item):
                self._tell_signal(claim.lease.key, kind)

    def _tell_decided(self, key: SessionKey) -> None:
        for listener in self._decided_listeners:
            listener(key)

    def _tell_signal(self, key: SessionKey, kind: Any) -> None:
        for listener in self._listeners:
            listener(key, kind)
