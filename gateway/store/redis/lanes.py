"""The lanes that this process runs, and the partitions in which lanes wait for a worker.

An item that was running at several crashes is a suspect. Only one of several suspects may be the cause, so a process
runs one suspect at a time, and only the cause uses up its attempts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

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


class ReadyPartitions:
    """Partitions to look into, the one whose lane has waited longest first. Used from the event loop only.

    A partition here means "look there", never more: another process may be quicker. Partitions that are here for a
    suspect are kept back while this process runs a suspect.
    """

    def __init__(self) -> None:
        self._rung: dict[int, int] = {}  # partition → the lowest number that was added for it
        self._kept: dict[int, int] = {}  # the same, for suspects
        self._suspect_runs = False
        self._heard = asyncio.Event()

    def add(self, partition: int, number: int) -> None:
        """The lane that was scheduled with this number waits in this partition."""
        self._rung[partition] = min(number, self._rung.get(partition, number))
        self._heard.set()

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

    async def next(self) -> tuple[int, int]:
        """Wait for a partition, and take it out: (partition, its number). Safe to cancel."""
        while not self._rung:
            self._heard.clear()
            await self._heard.wait()
        partition = min(self._rung, key=self._rung.__getitem__)
        return partition, self._rung.pop(partition)


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
        self._quiet: dict[SessionKey, str] = {}  # the item of a lane for which no signal was left
        self._disturbed = 0  # how often a signal was heard, or may have been missed

    async def claim_next(self, worker: str) -> Claim:
        """Wait for a lane with work, and claim the lane."""
        while True:
            partition, number = await self.ready.next()
            try:
                claim = await self._claim(partition, worker)
            except StoreUnavailable:
                self.ready.add(partition, number)
                raise
            if claim is not None:
                return claim

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

        def read(reply: list[Any]) -> tuple[Claim | None, str, str]:
            fence, item_id, following, suspect, *more = reply
            if not item_id:
                return None, following, suspect
            facts, begins, signalled = more
            item = item_from(facts)
            lease = Lease(key=item.key, worker=worker, fence=int(fence))
            if not signalled and self._disturbed == disturbed:
                self._quiet[item.key] = item.id
            return Claim(lease=lease, item=item, begins=self._begins(item, begins)), following, suspect

        def done(found: tuple[Claim | None, str, str]) -> None:
            claim, following, suspect = found
            if claim is not None:
                self.held[claim.lease.key] = Claim(lease=claim.lease, item=claim.item)
            if suspects and (claim is None or claim.item.attempts <= SUSPECT_ATTEMPTS):
                self.ready.suspect_ended()
            if following:
                self.ready.add(partition, int(following))
            if suspect and (claim is not None or not suspects):
                self.ready.add_suspect(partition, int(suspect))

        def abandoned(found: tuple[Claim | None, str, str]) -> None:
            if found[0] is not None:
                self.give_back(found[0].lease)

        try:
            claim, _, _ = await self._wire.run(
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
