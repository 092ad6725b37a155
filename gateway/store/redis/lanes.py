"""The lanes that this process runs, and the partitions in which lanes wait for a worker.

An item that was running at several crashes is a suspect. Only one of several suspects may be the cause, so a process
runs one suspect at a time, and only the cause uses up its attempts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from gateway.domain.chat import SessionKey
from gateway.runtime.clock import Clock
from gateway.runtime.errors import StoreError, StoreUnavailable
from gateway.runtime.structs import replace
from gateway.store.records import SUSPECT_ATTEMPTS, Beginning, Claim, InboxItem, Lease, attempts_allowed
from gateway.store.redis.arguments import of_lease
from gateway.store.redis.partitions import Places, partition_of_key
from gateway.store.redis.reading import beginning_from
from gateway.store.redis.wire import Wire
from gateway.store.shared.documents import item_from

_BUSY: Final = 32  # lanes that one of several processes runs, from which on it claims none with an acceptance


class ReadyPartitions:
    """Partitions to look into, the one whose lane has waited longest first, and the workers who wait for one. Used from
    the event loop only.

    A partition here means "look there", never more: another process may be quicker. Partitions that are here for a
    suspect are kept back while this process runs a suspect.
    """

    def __init__(self) -> None:
        self._rung: dict[int, int] = {}  # partition → the lowest number that was added for it
        self._kept: dict[int, int] = {}  # the same, for suspects
        self._suspect_runs = False
        self._waiting: dict[asyncio.Future[Claim | None], str] = {}  # the workers, who came first before the others
        self._promised = 0  # of them, to whom a lane may be handed

    def add(self, partition: int, number: int) -> None:
        """The lane that was scheduled with this number waits in this partition."""
        self._rung[partition] = min(number, self._rung.get(partition, number))
        self._wake()

    def add_suspect(self, partition: int, number: int) -> None:
        """The same of a suspect."""
        if self._suspect_runs:
            self._kept[partition] = min(number, self._kept.get(partition, number))
        else:
            self.add(partition, number)

    def take_suspect(self) -> bool:
        """Ask to run a suspect. After a yes, no other suspect may run until `suspect_ended`."""
        taken = not self._suspect_runs
        self._suspect_runs = True
        return taken

    def suspect_ended(self) -> None:
        """Another suspect may be claimed."""
        self._suspect_runs = False
        kept, self._kept = self._kept, {}
        for partition, number in kept.items():
            self.add(partition, number)

    def promise(self, most: int) -> int:
        """Say for how many workers a lane may be claimed: those who wait while no lane does. Each is promised one,
        until `redeem`."""
        free = 0 if self._rung else max(0, min(most, len(self._waiting) - self._promised))
        self._promised += free
        return free

    def redeem(self, promised: int) -> None:
        """The lanes were claimed, or will not be."""
        self._promised -= promised

    def join(self, worker: str) -> asyncio.Future[Claim | None]:
        """Let a worker wait: until a lane is handed to them, or (None) there is a partition to look into."""
        waiter: asyncio.Future[Claim | None] = asyncio.get_running_loop().create_future()
        self._waiting[waiter] = worker
        return waiter

    def leave(self, waiter: asyncio.Future[Claim | None]) -> Claim | None:
        """This worker waits no more, and what they were handed just now is another's."""
        self._waiting.pop(waiter, None)
        claim = None if waiter.cancelled() else waiter.result()
        if claim is None and self._rung:
            self._wake()
        return claim

    def first(self) -> tuple[asyncio.Future[Claim | None], str] | None:
        """Take out the worker who has waited longest."""
        while self._waiting:
            waiter = next(iter(self._waiting))
            worker = self._waiting.pop(waiter)
            if not waiter.done():
                return waiter, worker
        return None

    def take(self) -> tuple[int, int] | None:
        """Take out a partition: (partition, its number)."""
        if not self._rung:
            return None
        partition = min(self._rung, key=self._rung.__getitem__)
        return partition, self._rung.pop(partition)

    def _wake(self) -> None:
        if (found := self.first()) is not None:
            found[0].set_result(None)


class Accepting(NamedTuple):
    """Items on their way to be accepted. `room`: how many of them workers were promised; `disturbed`: how often a
    signal had been heard when they were sent."""

    room: int
    disturbed: int


class Lanes:
    """Claims lanes and gives them back. `held` are the lanes that this process runs, as far as the process knows."""

    def __init__(self, wire: Wire, places: Places, clock: Clock, pauses: Sequence[float]) -> None:
        self.pauses = pauses
        self._wire = wire
        self._places = places
        self._clock = clock
        self._began = clock.monotonic()
        self.ready = ReadyPartitions()
        self.held: dict[SessionKey, Claim] = {}
        self.alone = False  # no other process lives, as far as this one has heard
        self._quiet: dict[SessionKey, str] = {}  # the item of a lane for which no signal was left
        self._disturbed = 0  # how often a signal was heard, or may have been missed

    async def claim_next(self, worker: str) -> Claim:
        """Wait for a lane with work, and claim the lane."""
        while True:
            while (found := self.ready.take()) is None:
                if (handed := await self._handed(worker)) is not None:
                    return handed
            partition, number = found
            try:
                claim = await self._claim(partition, worker)
            except StoreUnavailable:
                self.ready.add(partition, number)
                raise
            if claim is not None:
                return claim

    async def _handed(self, worker: str) -> Claim | None:
        waiter = self.ready.join(worker)
        try:
            return await waiter
        except asyncio.CancelledError:
            if (claim := self.ready.leave(waiter)) is not None:
                self.give_back(claim.lease)
            raise

    def accepting(self, most: int) -> Accepting:
        """Items are about to be accepted: the workers who wait may run some at once. A process that runs many lanes
        leaves them to whoever is free, if there is another one."""
        room = self.ready.promise(most if self.alone else min(most, _BUSY - len(self.held)))
        return Accepting(room=room, disturbed=self._disturbed)

    def accepted(self, accepting: Accepting, item: InboxItem, fence: str, begins: Sequence[Any]) -> None:
        """A lane was claimed with the acceptance of its item: the worker who has waited longest gets it."""
        found = self.ready.first()
        if found is None:
            self.give_back(Lease(key=item.key, worker="", fence=int(fence)))
            return
        waiter, worker = found
        lease = Lease(key=item.key, worker=worker, fence=int(fence))
        self._hold(lease, item, quiet=self._disturbed == accepting.disturbed)
        waiter.set_result(Claim(lease=lease, item=item, begins=self._begins(item, begins)))

    def _hold(self, lease: Lease, item: InboxItem, *, quiet: bool) -> None:
        self.held[lease.key] = Claim(lease=lease, item=item)
        if quiet:
            self._quiet[item.key] = item.id

    def begin(self) -> None:
        """This process begins: items that may have killed others wait from now on."""
        self._began = self._clock.monotonic()

    def allowed(self) -> str:
        """Return the most attempts of an item that this process would still try, in the scripts' form."""
        return str(attempts_allowed(self._clock.monotonic() - self._began, self.pauses))

    def disturb(self, key: SessionKey | None = None) -> None:
        """A signal was left for a lane; or for some, which are not known."""
        self._disturbed += 1
        if key is None:
            self._quiet.clear()
        else:
            self._quiet.pop(key, None)

    def is_quiet(self, item: InboxItem) -> bool:
        """Say whether no signal was left for an item that runs here, as far as this process has heard."""
        return self._quiet.get(item.key) == item.id

    async def _claim(self, partition: int, worker: str) -> Claim | None:
        suspects, disturbed = self.ready.take_suspect(), self._disturbed

        def read(reply: list[Any]) -> tuple[Claim | None, str, str, bool]:
            fence, item_id, following, suspect, *more = reply
            if not item_id:
                return None, following, suspect, False
            facts, begins, signalled = more
            item = item_from(facts)
            lease = Lease(key=item.key, worker=worker, fence=int(fence))
            return Claim(lease=lease, item=item, begins=self._begins(item, begins)), following, suspect, bool(signalled)

        def done(found: tuple[Claim | None, str, str, bool]) -> None:
            claim, following, suspect, signalled = found
            if claim is not None:
                self._hold(claim.lease, claim.item, quiet=not signalled and self._disturbed == disturbed)
            if suspects and (claim is None or claim.item.attempts <= SUSPECT_ATTEMPTS):
                self.ready.suspect_ended()
            if following:
                self.ready.add(partition, int(following))
            if suspect and (claim is not None or not suspects):
                self.ready.add_suspect(partition, int(suspect))

        def abandoned(found: tuple[Claim | None, str, str, bool]) -> None:
            if found[0] is not None:
                self.give_back(found[0].lease)

        try:
            claim, *_ = await self._wire.run(
                partition, "claim", "1" if suspects else "0", self.allowed(), read=read, done=done, abandoned=abandoned
            )
        except StoreError:
            if suspects:
                self.ready.suspect_ended()
            raise
        return claim

    def _begins(self, item: InboxItem, facts: Sequence[Any]) -> Beginning | None:
        """What the item's turn begins with; None: that is damaged, and the turn will say so."""
        with suppress(ValueError, KeyError, TypeError, IndexError):
            return beginning_from(item, self._places, facts)
        return None

    def give_back(self, lease: Lease) -> None:
        """Release a lane whose claimer is gone."""
        parts = [*of_lease(lease), "0"]
        self._wire.submit(
            partition_of_key(lease.key), "release", *parts, done=lambda reply: self.released(lease, reply)
        )

    def released(self, lease: Lease, reply: list[Any]) -> None:
        """The lane waits again, under the number that the script gave."""
        self.ready.add(partition_of_key(lease.key), int(reply[0]))
        self.ended(lease)

    def recorded(self, lease: Lease) -> None:
        """A step of the running item is stored: a suspect is none any more. What it waits for may be one."""
        held = self.held.get(lease.key)
        if held is not None and held.lease.fence == lease.fence and held.item.attempts > SUSPECT_ATTEMPTS:
            self.held[lease.key] = replace(held, item=replace(held.item, attempts=1))
            self.ready.suspect_ended()

    def ended(self, lease: Lease, following: InboxItem | None = None) -> None:
        """This process does not run the lane's item any more, but the `following` one, if there is one."""
        held = self.held.get(lease.key)
        if held is None or held.lease.fence != lease.fence:
            return
        del self.held[lease.key]
        self._quiet.pop(lease.key, None)
        if held.item.attempts > SUSPECT_ATTEMPTS:
            self.ready.suspect_ended()
        if following is not None:
            self.held[lease.key] = replace(held, item=following)
