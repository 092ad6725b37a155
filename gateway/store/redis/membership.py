"""The beat that keeps this process's claims, and the news of other processes.

A process is a member of each partition for `lease_seconds` after its last beat. The membership is
the lease of every lane that the process runs, of every row that it sends and of all its other claims: a beat
costs the same however many there are. Every beat looks for members whose time is over and frees their claims,
so the lanes of a dead process go on within the lease and a beat; as it tells when the next member's time is over, the
beat after that comes at once.

A lane whose owner was silent for too long stays the owner's until another process has found the owner dead:
the fence decides, which rises when the lane is freed or claimed.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any, Final

import structlog

from gateway.domain.chat import SessionKey
from gateway.runtime.errors import StoreUnavailable
from gateway.runtime.tasks import Background
from gateway.store.port import PROCESSES_LOST
from gateway.store.redis import searching
from gateway.store.redis.admission import look_after, make_good
from gateway.store.redis.connection import Caller, Job
from gateway.store.redis.endpoint import UNREACHABLE, Endpoint
from gateway.store.redis.lanes import Lanes
from gateway.store.redis.news import News
from gateway.store.redis.outbox import Outbox
from gateway.store.redis.partitions import EVERYWHERE
from gateway.store.redis.reading import signals
from gateway.store.redis.wire import Wire
from gateway.store.shared.process import Process

log = structlog.get_logger(__name__)

_A_LITTLE: Final = 0.01  # seconds, so that a pause is over for certain
_LONGEST_BEAT: Final = 1.0  # seconds: a dead process is found at most this long after its lease
_TOGETHER: Final = 0.05  # seconds: within this time a dead process's lease ends in all partitions, nearly always


class Membership:
    """This process among the others, from `join` to `leave`."""

    def __init__(
        self,
        endpoint: Endpoint,
        caller: Caller,
        wire: Wire,
        *,
        process: Process,
        lanes: Lanes,
        outbox: Outbox,
        background: Background,
        old_search: set[int],
    ) -> None:
        self._endpoint = endpoint
        self._caller = caller
        self._wire = wire
        self._process = process
        self._lanes = lanes
        self._outbox = outbox
        self._background = background
        self._old_search = old_search
        self._clock = process.clock
        self._lease_seconds = caller.life / 1_000
        self._store_id = ""
        self._missed = False  # a server forgot this process, which is being looked into
        self._heard_at: dict[int, float] = {}  # partition → when its last answered beat was sent (monotonic)
        self._ends: dict[int, float] = {}  # partition → when the first member's time is over, if it does not beat

    # -- lifetime ---------------------------------------------------------------------------

    async def join(self, store_id: str) -> None:
        """Be a member of every partition from now on, and listen."""
        self._store_id = store_id
        self._news = News(
            self._endpoint, self._caller.channel, clock=self._clock, heard=self._heard, caught_up=self._caught_up
        )
        self._background.start(self._news.serve(), name="store news")
        await self._first_beats()

    async def stay(self) -> None:
        """Look for rows that wait, and beat until the store closes."""
        await self._news.listening.wait()
        await self._outbox.look()
        self._background.start(self._beats(), name="store beats")
        self._background.start(self._look_for_suspects(), name="store suspects")
        self._background.start(self._make_good(), name="store index")
        self._background.start(look_after(self._endpoint, self._clock), name="store settings")

    async def leave(self) -> None:
        """Free all claims of this process, so that the others need not wait for the lease."""
        for partition in EVERYWHERE:
            self._wire.submit(partition, "leave")
        await self._wire.drain()

    def served(self) -> None:
        """This process serves other platforms from now on: look for their rows and lanes."""
        self._background.start(self._outbox.look(), name="store rows")
        self._background.start(self._first_beats(), name="store lanes")

    @property
    def listens(self) -> bool:
        """Whether the news of other processes arrive."""
        return self._news.listening.is_set()

    def is_sure(self, partition: int) -> bool:
        """Say whether nobody can have taken this process for dead in this partition."""
        heard = self._heard_at.get(partition)
        return heard is not None and self._clock.monotonic() - heard < self._lease_seconds

    # -- the beat ---------------------------------------------------------------------------

    async def _first_beats(self) -> None:
        await self._wire.results([self._send_beat(partition, first=True) for partition in EVERYWHERE])

    async def _beats(self) -> None:
        """One beat in each partition, again and again; a beat without an answer holds up no other."""
        unanswered: set[int] = set()
        pause = min(_LONGEST_BEAT, self._lease_seconds / 4)
        with suppress(StoreUnavailable):  # it is closed, while the last steps are still on their way
            while True:
                now = self._clock.monotonic()
                await self._clock.sleep(min([pause, *(end - now for end in self._ends.values() if end > now)]))
                for partition in EVERYWHERE:
                    if partition not in unanswered:
                        unanswered.add(partition)
                        self._wire.watch(self._send_beat(partition), partial(unanswered.discard, partition))

    async def _look_for_suspects(self) -> None:
        """Once this process has run for long enough, it may try items that it has left alone so far."""
        began = self._clock.monotonic()
        for pause in sorted(set(self._lanes.pauses) - {0.0}):
            await self._clock.sleep(max(0.0, began + pause + _A_LITTLE - self._clock.monotonic()))
            await self._first_beats()

    def _send_beat(self, partition: int, *, first: bool = False) -> Job:
        sent = self._clock.monotonic()

        def done(answer: list[Any]) -> None:
            self._heard_at[partition] = sent
            known, dead, ready, suspect, chat, due, left, milliseconds, members = answer
            self._lanes.alone = int(members) == 1
            self._ends[partition] = self._clock.monotonic() + int(left) / 1_000 + _TOGETHER
            self._process.time.learn(int(milliseconds) / 1_000)
            if not known and not first:
                log.warning("store_took_this_process_for_dead", partition=partition)
                self._forgotten()
            if ready:  # the news may have been lost
                self._lanes.ready.add(partition, int(ready))
            if suspect:
                self._lanes.ready.add_suspect(partition, int(suspect))
            if dead:
                PROCESSES_LOST.count(by=int(dead))
                self._background.start(self._take_up(), name="store takes up")
            if chat and float(due) < self._process.time.now() - self._lease_seconds:
                # Nobody has looked at the chat since it was due: the process that put it off is gone.
                self._background.start(self._outbox.look([partition]), name="store rows")

        return self._wire.send(partition, "beat", self._lanes.allowed(), done=done)

    def _forgotten(self) -> None:
        if not self._missed:
            self._missed = True
            self._background.start(self._look_why(), name="store whole")

    async def _look_why(self) -> None:
        try:
            await make_good(self._endpoint, self._store_id)
        except UNREACHABLE as error:
            log.info("store_not_asked", error=str(error))
        finally:
            self._missed = False

    async def _take_up(self) -> None:
        """Another process died, or left: its rows, items and hooks are anybody's."""
        await self._outbox.look()
        self._process.tell_left()
        await self._make_good()

    async def _make_good(self) -> None:
        with suppress(StoreUnavailable, *UNREACHABLE):  # as where a command closes the store at once: the next does it
            for partition in EVERYWHERE:
                await searching.make_good(self._wire, partition)
            await searching.renew(self._wire, self._endpoint, self._old_search)

    # -- news -------------------------------------------------------------------------------

    def _heard(self, text: str) -> None:
        """Take up the news of another process; this process knows its own."""
        what, _, rest = text.partition(" ")
        own = self._caller.owner
        if what in ("ready", "suspect"):
            partition, number, owner, platform = rest.split(" ")
            if owner != own and self._process.runs.has_chat_of(platform):
                ready = self._lanes.ready
                (ready.add if what == "ready" else ready.add_suspect)(int(partition), int(number))
        elif what == "signal":
            kind: Any
            kind, owner, key = rest.split(" ", 2)
            if owner != own:
                self._process.tell_signal(SessionKey.parse(key), kind)
        elif what == "decided":
            owner, key = rest.split(" ", 1)
            if owner != own:
                self._process.tell_decided(SessionKey.parse(key))
        elif what == "rows":
            partition, owner, platform = rest.split(" ")
            if owner != own and self._process.sends.has_chat_of(platform):
                self._background.start(self._outbox.look([int(partition)]), name="store rows")
        elif what == "left":
            self._background.start(self._take_up(), name="store takes up")  # or else a beat sees the overdue rows

    def _caught_up(self) -> None:
        self._lanes.disturb()
        self._background.start(self._hear_missed_signals(), name="store signals")

    async def _hear_missed_signals(self) -> None:
        for claim in list(self._lanes.held.values()):
            for kind in await signals(self._wire, claim.item):
                self._process.tell_signal(claim.lease.key, kind)
