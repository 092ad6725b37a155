"""The step from hashes and lists to records of kinds: every fact of a database is read as it lay, and put as a record.

The records are put beside the old keys, under an attempt's name, and what they say is compared with what the old keys
say. Then one command decides for the attempt; from there on it is only carried on, by whoever opens the database: in
each partition the old keys go, and then the records get their names. Until that command the database is of the earlier
layout, and the same process of then can use it.

Several processes may do all of this at once: each has an attempt of its own, and one is decided for.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from itertools import count
from typing import Final

import structlog

from gateway.runtime.clock import Clock
from gateway.runtime.errors import StoreError
from gateway.runtime.tasks import Background, unbroken
from gateway.store.redis.connection import CallHeader
from gateway.store.redis.endpoint import UNREACHABLE, Endpoint
from gateway.store.redis.former import Reading
from gateway.store.redis.keyspace import BROUGHT, LOCK, META, SEARCH, format_of, keys, of_meta, remove
from gateway.store.redis.partitions import EVERYWHERE
from gateway.store.redis.whole import Filling, Whole
from gateway.store.redis.wire import Wire
from gateway.store.shared.facts import UNREADABLE, Milestones, damaged, incomplete
from gateway.store.sqlite.bringing import Filled, scratch
from gateway.store.steps.copying import Tally

log = structlog.get_logger(__name__)

_LOCKED: Final = 10_000  # milliseconds
_LOOK_AGAIN: Final = 1.0  # seconds
_PATIENCE: Final = 30.0  # seconds that a step waits for a server that is away
_MANY: Final = 500  # keys of a script
_LEFT_OUT: Final = ("unindexed", "commits:")  # what is made anew


@asynccontextmanager
async def former_records(endpoint: Endpoint, wire: Wire, tell: Callable[[int], None]) -> AsyncIterator[Filled]:
    """What a database of the earlier layout holds, as records, which lie in a file that nobody sees. `tell` is given
    how many facts are in it by now."""
    with scratch() as filled:
        try:
            async with aclosing(Reading(endpoint, wire).pages()) as facts:
                async for page in facts:
                    await unbroken(asyncio.to_thread(filled.put, page))  # whoever leaves closes the file
                    tell(filled.count)
        except UNREADABLE as error:
            raise damaged(f"what the database at {endpoint} holds", error) from error
        yield filled


async def bring(
    endpoint: Endpoint, clock: Clock, told: Callable[[str], None], alone: Callable[[], Awaitable[None]], *, to: int
) -> None:
    """Bring a database over, unless it is of the format `to` by then. `alone` returns when no process of an earlier
    version uses it, and none can: another process that gave up may have let them in again. Raises StoreError,
    StoreUnavailable or UNREACHABLE: the next start goes on with it."""
    attempt = Attempt(endpoint, clock, told, to)
    try:
        for look in count():
            if await attempt.is_done():
                return
            if decided := await of_meta(endpoint, "HGET", META, BROUGHT):
                await attempt.carry_on(decided)
                return
            if await of_meta(endpoint, "SET", LOCK, attempt.name, "NX", "PX", str(_LOCKED)):
                await attempt.make(alone)
            else:
                if look == 0:
                    told(f"Another process updates the database at {endpoint}. Legato waits until the update is done.")
                await clock.sleep(_LOOK_AGAIN)
    finally:
        await attempt.aclose()


class Attempt:
    """One process's attempt to bring a database over."""

    def __init__(self, endpoint: Endpoint, clock: Clock, told: Callable[[str], None], to: int) -> None:
        self.name = os.urandom(8).hex()
        self._to = to
        self._told = told
        self._milestones = Milestones()
        self._endpoint = endpoint
        self._clock = clock
        self._background = Background()
        self._old, self._new = self._wire(""), self._wire(f"new:{self.name}:")

    def _wire(self, under: str) -> Wire:
        caller = CallHeader(owner=self.name, channel="")
        made = Wire(
            self._endpoint,
            caller=caller,
            clock=self._clock,
            background=self._background,
            patience=_PATIENCE,
            under=under,
        )
        made.open()
        return made

    async def aclose(self) -> None:
        """Whoever waits for this attempt need not wait any longer."""
        await self._background.aclose()
        with suppress(*UNREACHABLE):
            if await of_meta(self._endpoint, "GET", LOCK) == self.name:
                await of_meta(self._endpoint, "DEL", LOCK)
        await self._old.aclose()
        await self._new.aclose()

    async def is_done(self) -> bool:
        """Whether the database has the new format: what is in it now must stay."""
        return await format_of(self._endpoint) >= self._to

    # -- until it is decided ----------------------------------------------------------------

    async def make(self, alone: Callable[[], Awaitable[None]]) -> None:
        """Put the records beside the old keys, compare, and decide for them, unless that was done for others."""
        holding = self._background.start(self._hold(), name="bringing")
        try:
            await alone()
            if await self.is_done():  # since the look at which it seemed to be of the earlier one
                return
            log.info("store_is_brought_over", server=str(self._endpoint))
            self._told(f"Updating the database at {self._endpoint} to this version; this may take some minutes.")
            await self._fill()
            if not int(await of_meta(self._endpoint, "HSETNX", META, BROUGHT, self.name)):
                await self._give_up()
        except StoreError:
            decided = await of_meta(self._endpoint, "HGET", META, BROUGHT)
            if decided is None or decided != self.name:
                await self._give_up()
            if decided is None:
                raise
        finally:
            holding.cancel()

    async def _fill(self) -> None:
        filling, put, found = Filling(self._new, self.name), Tally(), Tally()
        async with former_records(self._endpoint, self._old, self._tell) as filled:
            for page in filled.pages():
                await filling.restore(page)
                put.add(page)
            await filling.complete(filled.last_number())
        async with aclosing(Whole(self._endpoint, self._new).pages()) as pages:
            async for page in pages:
                found.add(page)
        kind = put.differing(found)
        if kind is not None:
            why = f"{put.counts[kind]:,} records of the kind {kind!r} became {found.counts[kind]:,}, or others"
            raise incomplete(f"The database at {self._endpoint}", why)
        for partition in EVERYWHERE:
            await self._do(self.name, partition, "", "next", ["removing"])
        log.info("store_is_compared", server=str(self._endpoint), records=put.counts.total())

    def _tell(self, done: int) -> None:
        if self._milestones.reached(done):
            self._told(f"{done:,} records of the database at {self._endpoint} read so far.")

    async def _hold(self) -> None:
        """Keep others from trying, for as long as this process lives."""
        while True:
            await self._clock.sleep(_LOCKED / 3_000)
            with suppress(Exception):
                await of_meta(self._endpoint, "SET", LOCK, self.name, "XX", "PX", str(_LOCKED))

    async def _give_up(self) -> None:
        await remove(self._endpoint, f"{{p??}}:new:{self.name}:*")
        await remove(self._endpoint, f"{{p??}}:bringing:{self.name}")

    # -- and then ---------------------------------------------------------------------------

    async def carry_on(self, decided: str) -> None:
        """Let the old keys go, and name the records."""
        await self._each(decided, "removing", "remove", "", without=(f"new:{decided}:", f"bringing:{decided}"))
        await self._each(decided, "naming", "name", f"new:{decided}:", without=())
        await of_meta(self._endpoint, "HDEL", META, SEARCH)  # entries are made anew after the start
        await remove(self._endpoint, f"{{p??}}:new:{decided}:*")
        await of_meta(self._endpoint, "DEL", LOCK)

    async def _each(self, decided: str, state: str, verb: str, begin: str, *, without: Sequence[str]) -> None:
        """Do something to the keys that begin so, in all partitions that are in this state."""
        waiting: dict[int, list[str]] = {each: [] for each in EVERYWHERE}
        async with aclosing(keys(self._endpoint, f"{{p??}}:{begin}*")) as names:
            async for name in names:
                partition, rest = int(name[2:4]), name[6:]
                if rest.startswith(tuple(without)) or (begin and rest[len(begin) :].startswith(_LEFT_OUT)):
                    continue
                waiting[partition].append(rest[len(begin) :])
                if len(waiting[partition]) == _MANY:
                    await self._do(decided, partition, state, verb, waiting[partition])
                    waiting[partition] = []
        for partition, some in waiting.items():
            await self._do(decided, partition, state, verb, some)
            await self._do(decided, partition, state, "next", ["naming"] if verb == "remove" else [])

    async def _do(self, attempt: str, partition: int, state: str, verb: str, words: Sequence[str]) -> None:
        if words or verb == "next":
            await self._old.run(partition, "bring", attempt, state, verb, str(len(words)), *words)
