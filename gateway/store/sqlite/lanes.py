"""The lanes in the memory of this process: which have work, which run, under which fence.

The file knows every item; the memory only saves asking the file. Used from the event loop alone, and changed
when a write is durable, or to set a lane aside for a write on its way.

A lane is idle, or in one phase at a time:

    reserved ──> ready ──> claiming ──> running ──> ending ──> running (its next item)
       │           ↑           │           └──────────│──────> ready or idle
       └───────────┴───────────┴──────────────────────┘
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import Enum, auto
from itertools import islice

from msgspec import Struct, field

from gateway.domain.chat import Inbound, SessionKey
from gateway.runtime.clock import Clock
from gateway.runtime.errors import SessionConflict
from gateway.runtime.structs import replace
from gateway.store.records import ATTEMPT_PAUSES, SUSPECT_ATTEMPTS, Arrival, Claim, InboxItem, Lease, attempt_pause
from gateway.store.shared.platforms import Platforms

_FENCES_PER_GENERATION = 1 << 40


class Phase(Enum):
    """The state of a lane."""

    RESERVED = auto()  # idle, and an accept is on its way that will claim its first item
    READY = auto()  # waits for a worker
    CLAIMING = auto()  # a worker waits for its attempt to be counted
    RUNNING = auto()  # a worker has the lease
    ENDING = auto()  # the item is being ended or given back: the lease can do nothing more


class Lane(Struct):
    """One key's lane. `head` is the claimed item; `queue` holds the others in order."""

    key: SessionKey
    phase: Phase
    head: InboxItem | None = None
    queue: deque[InboxItem] = field(default_factory=deque)
    fence: int = 0


class Lanes:
    """All lanes that are not idle. `concurrency`: how many may be claimed before a worker asks."""

    def __init__(self, *, clock: Clock, concurrency: int, pauses: Sequence[float] = ATTEMPT_PAUSES) -> None:
        self._clock = clock
        self._pauses = pauses
        self._began = clock.monotonic()
        self._concurrency = concurrency
        self._fence = 0
        self._claimed = 0  # lanes with a claimed head or about to have one
        self._lanes: dict[SessionKey, Lane] = {}
        self._ready: asyncio.Queue[Lane] = asyncio.Queue()
        # Of the items that were running at several crashes only one may be the cause. They are
        # tried one at a time, each when this process has run for a while, so that only the cause uses up its attempts.
        self._suspect: Lane | None = None
        self._suspects: deque[Lane] = deque()
        self._runs = Platforms().names
        self._elsewhere: list[Lane] = []  # taken off `_ready`: this process does not run their platform

    def begin(self, generation: int, waiting: Sequence[InboxItem]) -> None:
        """Run what an earlier process left, under fences above all of its own."""
        self._began = self._clock.monotonic()
        self._fence = generation * _FENCES_PER_GENERATION
        for item in waiting:
            self.queued(item)

    def close(self) -> list[InboxItem]:
        """Hand out no lane any more; returns the claimed items that no worker was given."""
        self._concurrency = 0
        self._ready = asyncio.Queue()
        return [lane.head for lane in self._lanes.values() if lane.phase is Phase.READY and lane.head is not None]

    def serve(self, runs: Platforms) -> None:
        """Hand out only lanes of these platforms from now on."""
        self._runs = runs.names
        set_aside, self._elsewhere = self._elsewhere, []
        for lane in set_aside:
            self._ready.put_nowait(lane)

    # -- accepting --------------------------------------------------------------------------

    def reserve(self, arrivals: Iterable[Arrival]) -> dict[str, SessionKey]:
        """Set aside the lanes that are idle and may be claimed at once; returns their keys, by text form."""
        reserved: dict[str, SessionKey] = {}
        for arrival in arrivals:
            key = arrival.key
            if arrival.bypass or key in self._lanes or self._claimed >= self._concurrency:
                continue
            if key.platform in self._runs:
                self._lanes[key] = Lane(key, Phase.RESERVED)
                self._claimed += 1
                reserved[key.text] = key
        return reserved

    def claimed(self, item: InboxItem) -> None:
        """The first item of a reserved lane is stored, its attempt counted."""
        lane = self._lanes[item.key]
        lane.head = item
        self._make_ready(lane)

    def queued(self, item: InboxItem) -> None:
        """An unclaimed item is stored."""
        lane = self._lanes.get(item.key)
        if lane is None:
            lane = self._lanes[item.key] = Lane(item.key, Phase.READY)
            self._ready.put_nowait(lane)
        lane.queue.append(item)

    def unreserve(self, reserved: Mapping[str, SessionKey]) -> None:
        """Lanes that were set aside and not used are idle again."""
        for key in reserved.values():
            lane = self._lanes.get(key)
            if lane is not None and lane.phase is Phase.RESERVED:
                self._leave(lane)

    # -- claiming ---------------------------------------------------------------------------

    async def next_ready(self) -> Lane:
        """Wait for a lane with work. Safe to cancel. The caller must grant it, or claim its head."""
        lane: Lane | None = None
        while lane is None or self._set_aside(lane):
            lane = await (self._next() if self._suspects else self._ready.get())
        if lane.head is None:
            lane.phase = Phase.CLAIMING
            self._claimed += 1
            if lane.queue[0].attempts >= SUSPECT_ATTEMPTS:
                self._suspect = lane
        return lane

    async def _next(self) -> Lane | None:
        """The next lane that is made ready, or the suspect whose time has come. None: such a time came meanwhile."""
        if self._suspect is not None:
            return await self._ready.get()
        due = next((lane for lane in self._suspects if self._pause(lane) <= 0.0), None)
        if due is not None:
            self._suspects.remove(due)
            return due
        with suppress(TimeoutError):
            async with self._clock.limit(max(0.0, min(map(self._pause, self._suspects)))):
                return await self._ready.get()
        return None

    def _pause(self, lane: Lane) -> float:
        """In how many seconds the lane's first item may be tried."""
        return self._began + attempt_pause(lane.queue[0].attempts, self._pauses) - self._clock.monotonic()

    def _set_aside(self, lane: Lane) -> bool:
        """Say whether the lane must wait, for another process, for another suspect to end, or for its time."""
        if lane.key.platform not in self._runs:
            self._elsewhere.append(lane)
            return True
        is_suspect = lane.head is None and lane.queue[0].attempts >= SUSPECT_ATTEMPTS
        if is_suspect and (self._suspect is not None or self._pause(lane) > 0.0):
            self._suspects.append(lane)
            return True
        return False

    def _clear(self) -> None:
        """The suspect is no longer tried: the next one may be."""
        self._suspect = None
        if self._suspects:
            self._ready.put_nowait(self._suspects.popleft())

    def counted(self, lane: Lane, item: InboxItem) -> None:
        """The attempt at the lane's first item is durable."""
        waited = lane.queue.popleft()  # its words may have changed on the way
        lane.head = replace(waited, attempts=item.attempts)

    def uncounted(self, lane: Lane) -> None:
        """The attempt could not be counted: the lane waits again."""
        self._claimed -= 1
        if lane is self._suspect:
            self._clear()
        self._make_ready(lane)

    def grant(self, lane: Lane, worker: str) -> Claim:
        """Hand the lane and its claimed head to a worker, under a fresh fence."""
        assert lane.head is not None
        self._fence += 1
        lane.fence = self._fence
        lane.phase = Phase.RUNNING
        return Claim(lease=Lease(key=lane.key, worker=worker, fence=lane.fence), item=lane.head)

    def hand_back(self, lane: Lane) -> None:
        """The worker who claimed the lane is gone: another worker gets the claimed head."""
        self._make_ready(lane)

    # -- running ----------------------------------------------------------------------------

    def check(self, lease: Lease, item: InboxItem | None = None, *, ends: bool = False) -> Lane:
        """The lane of a lease. Raises SessionConflict if the lease, or the item, is not current. `ends`: this is the
        lease's last operation, which is on its way."""
        lane = self._lanes.get(lease.key)
        if lane is None or lane.fence != lease.fence or lane.phase is not Phase.RUNNING:
            raise SessionConflict(f"Worker {lease.worker} does not run this lane any more.")
        if lane.head is None or (item is not None and lane.head.id != item.id):
            raise SessionConflict("This item is not the one its lane runs.")
        if ends:
            lane.phase = Phase.ENDING
        return lane

    def recorded(self, lease: Lease) -> None:
        """A step of the running item is stored: its attempts are counted anew from this one, and a suspect is none any
        more. What it waits for may be one."""
        lane = self._lanes.get(lease.key)
        if lane is not None and lane.fence == lease.fence and lane.head is not None and lane.head.attempts > 1:
            lane.head = replace(lane.head, attempts=1)
            if lane is self._suspect:
                self._clear()

    def absorbed(self, key: SessionKey, ids: Collection[str]) -> None:
        """Queued items went into the running turn."""
        lane = self._lanes.get(key)
        if lane is not None:
            lane.queue = deque(item for item in lane.queue if item.id not in ids)

    def not_ended(self, lane: Lane) -> None:
        """The lease's last operation failed: the lease is good again."""
        lane.phase = Phase.RUNNING

    def ended(self, lane: Lane, following: InboxItem | None) -> None:
        """The head is done; `following` is claimed under the same lease, None: the lane is free."""
        if lane is self._suspect:
            self._clear()
        lane.head = following
        if following is None:
            self._leave(lane)
            return
        lane.phase = Phase.RUNNING
        lane.queue = deque(item for item in lane.queue if item.id != following.id)

    def released(self, lane: Lane, *, counted: bool) -> None:
        """The head was given back, its attempt counted or not."""
        assert lane.head is not None
        if lane is self._suspect:
            self._clear()
        lane.queue.appendleft(lane.head if counted else replace(lane.head, attempts=lane.head.attempts - 1))
        lane.head = None
        self._leave(lane)

    def amended(self, key: SessionKey, inbound: Inbound) -> None:
        """A queued item has another Inbound now."""
        lane = self._lanes.get(key)
        if lane is not None:
            event = inbound.event_id
            changed = (
                replace(each, inbound=inbound) if each.inbound.event_id == event else each for each in lane.queue
            )
            lane.queue = deque(changed)

    # -- looking ----------------------------------------------------------------------------

    def waiting(self, key: SessionKey, limit: int) -> list[InboxItem]:
        """The first queued items, oldest first."""
        lane = self._lanes.get(key)
        return [] if lane is None else list(islice(lane.queue, limit))

    def current(self, key: SessionKey) -> InboxItem | None:
        """The item that runs, or is claimed, or was begun before and is about to be resumed."""
        lane = self._lanes.get(key)
        if lane is None:
            return None
        if lane.head is None and lane.queue and lane.queue[0].attempts:
            return lane.queue[0]
        return lane.head

    def idle(self) -> dict[str, float]:
        """By platform: since when the oldest item waits in a lane that nobody runs. A suspect waits for its time."""
        oldest: dict[str, float] = {}
        for lane in self._lanes.values():
            if lane.phase is Phase.READY and (lane.head is not None or lane.queue[0].attempts < SUSPECT_ATTEMPTS):
                since, platform = (lane.head or lane.queue[0]).accepted_at, lane.key.platform
                oldest[platform] = min(since, oldest.get(platform, since))
        return oldest

    def runs(self, key: SessionKey) -> bool:
        """Say whether this process has claimed an item of the lane."""
        lane = self._lanes.get(key)
        return lane is not None and lane.head is not None

    def _make_ready(self, lane: Lane) -> None:
        lane.phase = Phase.READY
        self._ready.put_nowait(lane)

    def _leave(self, lane: Lane) -> None:
        """Nobody has the lane any more: a lane with items waits for a worker, an empty one is idle."""
        self._claimed -= 1
        if lane.queue:
            self._make_ready(lane)
        else:
            del self._lanes[lane.key]
