"""The backend on a Redis server or cluster, for any number of processes on any hosts.

A step runs in the process, in one of 16 partitions, chosen by platform and chat (`routes.py`); all keys of a partition
begin with its hash tag, `{p07}:`, so that a cluster keeps them together. How a step's records are kept is told in
`records.py`.
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from math import inf
from typing import Any, Final, TypeVar

import structlog
from msgspec.json import decode

from gateway.domain.chat import ChatAddress, SessionKey
from gateway.runtime.clock import Clock
from gateway.runtime.errors import StoreUnavailable
from gateway.runtime.tasks import Background
from gateway.store.backend import News, nothing
from gateway.store.kinds import EVENT, LOOKS, READY, ROW, SESSION, SUSPECTS, event_name
from gateway.store.port import PROCESSES_LOST
from gateway.store.process import SteadyTime
from gateway.store.records import LEASE_SECONDS, Found, Meaning, Passage, Unembedded, Vector
from gateway.store.redis import routes, searching, vectors
from gateway.store.redis.admission import admit, look_after, make_good
from gateway.store.redis.connection import Argument, CallHeader
from gateway.store.redis.endpoint import UNREACHABLE, Endpoint
from gateway.store.redis.entries import SearchIndex
from gateway.store.redis.forgetting import forget_history
from gateway.store.redis.looking import read
from gateway.store.redis.mark import check_free
from gateway.store.redis.news import News as Listener
from gateway.store.redis.partitions import EVERYWHERE, partition_of, partition_of_key
from gateway.store.redis.records import Writes, index_key
from gateway.store.redis.running import Fleet, Runner, Work
from gateway.store.redis.wire import Wire
from gateway.store.shared.platforms import Platforms
from gateway.store.space import Caller, Index, Kind
from gateway.store.steps import keeping, lanes, members, outbox, sessions, turns

T = TypeVar("T")

log = structlog.get_logger(__name__)

_LONGEST_BEAT: Final = 1.0  # seconds: a dead process is found at most this long after its lease
_TOGETHER: Final = 0.05  # seconds: within this time a dead process's lease ends in all partitions, nearly always
_LAST_WORDS: Final = 3.0  # seconds that steps on their way are waited for
_MOST_PLACES: Final = 50_000  # sessions and rows whose partition is remembered


class RedisBackend:
    """The database at `url`, shared with all processes that use it. See `RedisStore` for the settings."""

    is_sole = False
    is_beside = False

    def __init__(
        self,
        url: str,
        *,
        clock: Clock,
        lease_seconds: float = LEASE_SECONDS,
        timeout: float = 5.0,
        patience: float = 5.0,
        waits: bool = True,
        told: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.life = lease_seconds
        self.owner: Final = os.urandom(8).hex()
        self._clock = clock
        self._time = SteadyTime(clock)
        self._endpoint = Endpoint(url, timeout=timeout)
        self._admitted = partial(admit, self._endpoint, clock, waits=waits, told=told)
        self._background = Background()
        self._header = CallHeader(owner=self.owner, channel="")
        self._wire = Wire(
            self._endpoint, caller=self._header, clock=clock, background=self._background, patience=patience
        )
        self._index = SearchIndex(self._wire, self._endpoint, self._background)
        self.fleet = Fleet(owner=self.owner, now=self._time.now, hear=nothing, wrote=self._wrote)
        self._runners = [Runner(each, self._wire, self.fleet) for each in EVERYWHERE]
        self._places: OrderedDict[tuple[str, str], int] = OrderedDict()  # of rows and sessions
        self._heard_at: dict[int, float] = {}  # partition → when its last answered beat was sent (monotonic)
        self._ends: dict[int, float] = {}  # partition → when the first other member's time is over (monotonic)
        self._rank = 0  # among the processes
        self._store_id = ""
        self._listener: Listener | None = None

    # -- lifetime ---------------------------------------------------------------------------

    async def open(self, hear: Callable[[News], None], caller: Callable[[str], Caller]) -> str:
        """Connect, and be one of the processes from now on. Raises StoreUnavailable for a server that must not be
        used."""
        self.fleet.hear = hear
        self._store_id = await self._admitted()
        with suppress(*UNREACHABLE):  # then the steps of this process will wait for the server, too
            self._index.old |= await searching.outdated(self._endpoint)
        self._header.channel = f"legato:{self._store_id}"
        self._wire.open()
        self._listener = listener = Listener(
            self._endpoint,
            self._header.channel,
            clock=self._clock,
            heard=self._heard,
            caught_up=self._caught_up,
        )
        self._background.start(listener.serve(), name="store news")
        with suppress(StoreUnavailable):  # a later beat learns it
            await self._learn_time()
        await self._beat_everywhere(caller, first=True)
        await self._make_sure(caller)
        await listener.listening.wait()
        self._background.start(self._beats(caller), name="store beats")
        self._background.start(self._index.make_good(), name="store index")
        self._background.start(look_after(self._endpoint, self._clock), name="store settings")
        return self.owner

    async def _make_sure(self, caller: Callable[[str], Caller]) -> None:
        """Look for a migration once more. One that began since `admit` may not have seen this process as a member; but
        then this process sees the migration now, and withdraws."""
        try:
            await check_free(self._endpoint)
        except UNREACHABLE:
            return  # the steps of this process will wait for the server, too
        except StoreUnavailable:
            await self._apart(members.end, [caller(self.owner), [], []], EVERYWHERE)
            await self.aclose()
            raise

    async def aclose(self) -> None:
        if self._wire.is_open:
            self._index.finish()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS):
                for runner in self._runners:
                    await runner.idle()
                await self._wire.settled()
        await self._background.aclose()
        await self._wire.aclose()

    # -- steps ------------------------------------------------------------------------------

    async def run(
        self,
        step: Callable[..., T],
        *args: Any,
        done: Callable[[T], None] = nothing,
        failed: Callable[[], None] = nothing,
        abandoned: Callable[[T], None] = nothing,
    ) -> T:
        """Run a step in its partition, or a part of it in each of its partitions."""
        partitions = await self._partitions(step, args)
        plain = step.func if isinstance(step, partial) else step
        special = _SPECIAL.get(plain)
        # An empty list names no chat.
        if partitions is EVERYWHERE and not (special or plain in routes.EVERYWHERE_WRITTEN or [] in args):
            raise TypeError(f"routes.py does not say in which partition the step {plain.__name__} writes; add it there")
        work = Work(step, args, asyncio.get_running_loop().create_future(), done, failed, abandoned)
        if len(partitions) == 1 and special is None:
            self._runners[partitions[0]].put(work)
        else:
            named = step.keywords if isinstance(step, partial) else {}
            whole = self._apart(step, args, partitions) if special is None else special(self, *args, **named)
            self._background.start(_finish(work, whole), name="store step")
        try:
            result: T = await work.future
        except asyncio.CancelledError:
            if not work.future.cancelled():  # after the result was handed over: nobody will see it
                abandoned(work.future.result())
            raise
        return result

    run_beside = run  # no process has the database for itself

    async def _in(self, partition: int, step: Callable[..., T], *args: Any) -> T:
        """Run a step in this partition."""
        work = Work(step, args, asyncio.get_running_loop().create_future())
        self._runners[partition].put(work)
        result: T = await work.future
        return result

    async def _seen(self, partition: int, step: Callable[..., T], *args: Any) -> T:
        """What a step would come to in this partition."""
        work = Work(step, args, asyncio.get_running_loop().create_future(), only_looks=True)
        self._runners[partition].put(work)
        result: T = await work.future
        return result

    async def _partitions(self, step: Callable[..., Any], args: Sequence[Any]) -> Sequence[int]:
        """Where a step runs. One that knows only an id is looked for."""
        if isinstance(step, partial):  # to which arguments are bound by name
            args = [*args, *step.keywords.values()]
            step = step.func
        about = routes.BY_ID.get(step)
        if about is None:
            return routes.places(step, args)
        kind, name = about[0], args[about[1]]
        there = self._places.get((kind.name, name))
        if there is None:
            found = await asyncio.gather(*(self._seen(each, _has, kind, name) for each in EVERYWHERE))
            there = found.index(True) if True in found else 0
            if True in found:
                self._note(kind, name, there)
        return (there,)

    def _note(self, kind: Kind[Any], name: str, partition: int) -> None:
        self._places[kind.name, name] = partition
        if len(self._places) > _MOST_PLACES:
            self._places.popitem(last=False)

    def _wrote(self, partition: int, writes: Writes) -> None:
        if writes.searched:
            self._index.enter(writes.searched)
        for kind, key, document in writes.documents:
            is_looked_for = (kind is ROW or kind is SESSION) and document.record is not None
            if is_looked_for and self._places.get((kind.name, str(key))) != partition:
                self._note(kind, str(key), partition)

    async def _apart(self, step: Callable[..., Any], args: Sequence[Any], partitions: Sequence[int]) -> Any:
        """Run a step's parts, each in its partition."""
        if step is turns.accept:
            return await self._accept(*args, partitions=partitions)
        parts = await asyncio.gather(*(self._in(each, step, *routes.part(args, each)) for each in partitions))
        if isinstance(parts[0], list | tuple):
            return type(parts[0])([each for some in parts for each in some])
        return parts[0]

    async def _accept(
        self, caller: Caller, arrivals: Sequence[Any], cap: int, room: int, *, partitions: Sequence[int]
    ) -> lanes.Accepted:
        jobs = []
        for partition in partitions:
            own = routes.part([arrivals], partition)[0]
            mine = min(room, len(own))
            room -= mine
            jobs.append(self._in(partition, turns.accept, caller, own, cap, mine))
        parts = await asyncio.gather(*jobs)
        receipts = {place: iter(part.receipts) for place, part in zip(partitions, parts, strict=True)}
        ordered = [next(receipts[routes.places(turns.accept, [[each]])[0]]) for each in arrivals]
        return lanes.Accepted(receipts=ordered, claimed=[each for part in parts for each in part.claimed])

    async def _claim(self, caller: Caller) -> lanes.Claimed | lanes.NoClaim:
        """Claim the lane that has waited longest, of all partitions. Where several processes look at once, each begins
        with another one."""
        waiting, pauses = await self._ready(caller)
        waiting.sort()
        first = self._rank % (len(waiting) or 1)
        for _, partition in (*waiting[first:], *waiting[:first]):
            claimed = await self._in(partition, lanes.claim, caller)
            if isinstance(claimed, lanes.Claimed):
                return claimed
            pauses += [] if claimed.again_in is None else [claimed.again_in]
        return lanes.NoClaim(again_in=min(pauses, default=None))

    async def _firsts(self, index: Index[Any], platforms: Platforms) -> dict[int, float] | None:
        """The first place of an index by partition, of these platforms; None: any platform may have some."""
        if platforms.text == "*":
            return None
        asked = [(each, name) for each in EVERYWHERE for name in _names(platforms)]
        found = await self._wire.ask_all(
            (each, ("ZRANGE", index_key(index, name), "0", "0", "WITHSCORES")) for each, name in asked
        )
        firsts: dict[int, float] = {}
        for (each, _), answer in zip(asked, found, strict=True):
            if answer:
                firsts[each] = min(float(answer[1]), firsts.get(each, inf))
        return firsts

    async def _ready(self, caller: Caller) -> tuple[list[tuple[Any, int]], list[float]]:
        """The partitions in which a lane waits, each behind the place of the first one there; and in how many seconds
        suspects may be tried."""
        ready, suspects = await self._firsts(READY, caller.runs), await self._firsts(SUSPECTS, caller.runs)
        if ready is not None and not suspects:
            return [(place, each) for each, place in ready.items()], []
        seen = await asyncio.gather(*(self._seen(each, lanes.claim, caller) for each in EVERYWHERE))
        claims = [(float(each.item.id), n) for n, each in enumerate(seen) if isinstance(each, lanes.Claimed)]
        later = [each.again_in for each in seen if isinstance(each, lanes.NoClaim) and each.again_in is not None]
        return claims, later

    async def _claim_left(self, caller: Caller) -> list[Any]:
        items = await self._apart(lanes.claim_left, [caller], EVERYWHERE)
        return sorted(items, key=lambda item: int(item.id))

    async def _claim_due_rows(self, caller: Caller, limit: int) -> tuple[Any, ...]:
        due = await self._firsts(LOOKS, caller.sends)
        if due is None:
            seen = await asyncio.gather(*(self._seen(each, outbox.next_due, caller) for each in EVERYWHERE))
            due = {n: at for n, at in enumerate(seen) if at is not None}
        found: list[Any] = []
        for _, partition in sorted((at, n) for n, at in due.items() if at <= caller.now):
            if len(found) < limit:
                found += await self._in(partition, outbox.claim_due, caller, limit - len(found))
        return tuple(found)

    async def _claim_due_sessions(self, caller: Caller, now: float, limit: int) -> list[Any]:
        seen = await asyncio.gather(*(self._seen(each, sessions.claim_due, caller, now, limit) for each in EVERYWHERE))
        due = sorted((each.expires_at or 0.0, n) for n, some in enumerate(seen) for each in some)[:limit]
        found: list[Any] = []
        for partition in dict.fromkeys(n for _, n in due):
            most = len([n for _, n in due if n == partition])
            found += await self._in(partition, sessions.claim_due, caller, now, most)
        return sorted(found, key=lambda each: each.expires_at or 0.0)

    async def _rename(self, platform: str, before: str, after: str) -> None:
        """The names of a platform's chats are in one partition, and what is in a chat is in another."""
        (partition,) = routes.places(keeping.rename_chat, [platform])
        await self._in(partition, keeping.rename_chat, platform, before, after)
        first = await self._seen(partition, keeping.first_name, platform, before)
        await self._in(partition_of(platform, first), outbox.open_chat, ChatAddress(platform=platform, chat=first))

    async def _next_due(self, caller: Caller) -> float | None:
        due = await self._firsts(LOOKS, caller.sends)
        if due is None:
            return await read(self._ask, EVERYWHERE, outbox.next_due, [caller])
        return min(due.values(), default=None)

    async def _first_name(self, platform: str, chat: str, event_id: str) -> str:
        """The event would be in the partition of the name under which it was accepted."""
        (partition,) = routes.places(keeping.first_name, [platform])
        first: str = await self._seen(partition, keeping.first_name, platform, chat)
        there, event = partition_of(platform, chat), event_name(platform, event_id)
        return chat if first != chat and await self._seen(there, _has, EVENT, event) else first

    async def look(self, step: Callable[..., T], *args: Any) -> T:
        """Run a step that looks at a few records, by what is remembered of them."""
        special = _LOOKS.get(step)
        if special is not None:
            return await special(self, *args)  # type: ignore[no-any-return]
        partitions = await self._partitions(step, args)
        if len(partitions) == 1:
            return await self._seen(partitions[0], step, *args)
        return await read(self._ask, partitions, step, args)

    async def read(self, step: Callable[..., T], *args: Any) -> T:
        return await read(self._ask, await self._partitions(step, args), step, args)

    async def _ask(self, partition: int, arguments: list[Argument]) -> list[Any]:
        job = self._wire.carry(partition, "commit", arguments, writes=False)
        _, _, answers = await job.future
        found: list[Any] = answers
        return found

    # -- the other processes ----------------------------------------------------------------

    def is_sure(self, chat: ChatAddress) -> bool:
        """Whether this process's last beat in the chat's partition is younger than its life."""
        heard = self._heard_at.get(partition_of(chat.platform, chat.chat))
        return heard is not None and self._clock.monotonic() - heard < self.life

    def _heard(self, text: str) -> None:
        """News of another process; this process knows its own."""
        owner, _, packed = text.partition(" ")
        if owner != self.owner:
            for news in decode(packed, type=list[tuple[str, ...]]):
                self.fleet.hear(news)

    @property
    def listens(self) -> bool:
        return self._listener is not None and self._listener.listening.is_set()

    def _caught_up(self) -> None:
        """News were lost while nobody listened: look for the facts."""
        self.fleet.hear(("missed",))
        self._background.start(self._hear_missed(), name="store news missed")

    async def _hear_missed(self) -> None:
        found = await asyncio.gather(*(self._seen(each, lanes.left_to, self.owner) for each in EVERYWHERE))
        for lane, kind in [each for some in found for each in some]:
            self.fleet.hear(("signal", lane, kind))

    async def _learn_time(self) -> None:
        now = await self._wire.time()
        self._time.learn(now)
        self.fleet.hear(("time", str(now)))

    async def _beats(self, caller: Callable[[str], Caller]) -> None:
        pause = min(_LONGEST_BEAT, self.life / 4)
        while True:
            now = self._clock.monotonic()
            await self._clock.sleep(min([pause, *(end - now for end in self._ends.values() if end > now)]))
            with suppress(StoreUnavailable):
                await self._learn_time()
                await self._beat_everywhere(caller)

    async def _beat_everywhere(self, caller: Callable[[str], Caller], *, first: bool = False) -> None:
        sent, me = self._clock.monotonic(), caller(self.owner)
        beats = await asyncio.gather(*(self._in(each, members.beat, me, self.life) for each in EVERYWHERE))
        self._heard_at = dict.fromkeys(EVERYWHERE, sent)
        self._rank = max(each.rank for each in beats)
        ends = [each.ends_at for each in beats if each.ends_at is not None]
        self._ends = {0: sent + min(ends) - me.now + _TOGETHER} if ends else {}
        if not first and not all(each.known for each in beats):
            log.warning("store_took_this_process_for_dead")
            with suppress(*UNREACHABLE):
                await make_good(self._endpoint, self._store_id)
        if dead := sum(each.dead for each in beats):
            PROCESSES_LOST.count(by=dead)
            self.fleet.hear(("missed",))
            self._background.start(self._index.make_good(), name="store index")
        elif any(each.waits for each in beats):  # the news may have been lost
            self.fleet.hear(("ready", ""))

    # -- what is beside the records ---------------------------------------------------------

    async def scrub(self) -> None:
        """Leave nothing of what was dropped in the index, and ask the servers to write their files anew."""
        await self._index.leave_gone()
        self._background.start(forget_history(self._endpoint, self._clock), name="store scrub")

    async def unindexed(self) -> int:
        return await self._index.left()

    async def search(
        self, words: str, key: SessionKey | None, limit: int, now: float, meaning: Meaning | None
    ) -> list[Passage]:
        return await searching.search(self._wire, words, key, limit, now, meaning)

    async def holding(self, values: Sequence[str], key: SessionKey, limit: int) -> list[list[Found]]:
        return await searching.holding(self._wire, values, key, limit)

    async def around(self, key: SessionKey, message_id: str, reach: int) -> list[Found]:
        return await searching.around(self._wire, key, message_id, reach)

    async def unembedded(self, model: str, length: int, limit: int) -> list[Unembedded]:
        return await searching.unembedded(self._wire, model, length, limit)

    async def keep_vectors(self, model: str, key: SessionKey, kept: Mapping[str, Vector]) -> None:
        await vectors.keep(self._wire, partition_of_key(key), searching.owner_of(key.text), model, kept)


_SPECIAL: Final[dict[Callable[..., Any], Callable[..., Any]]] = {
    lanes.claim: RedisBackend._claim,
    lanes.claim_left: RedisBackend._claim_left,
    outbox.claim_due: RedisBackend._claim_due_rows,
    sessions.claim_due: RedisBackend._claim_due_sessions,
    keeping.rename_chat: RedisBackend._rename,
}
_LOOKS: Final[dict[Callable[..., Any], Callable[..., Any]]] = {
    keeping.first_name: RedisBackend._first_name,
    outbox.next_due: RedisBackend._next_due,
}


def _names(platforms: Platforms) -> list[str]:
    return sorted(platforms.names)  # type: ignore[call-overload,no-any-return]


def _has(space: Any, kind: Kind[Any], name: str) -> bool:
    return space.get(kind, name) is not None


async def _finish(work: Work, whole: Coroutine[Any, Any, Any]) -> None:
    """Tell whoever waits for a step of several parts of its end."""
    result: Any
    try:
        (result,) = await asyncio.gather(whole, return_exceptions=True)
    except asyncio.CancelledError:
        _fail(work, StoreUnavailable("The store is closed."))
        raise
    if isinstance(result, BaseException):
        _fail(work, result)
        return
    work.done(result)
    if work.future.cancelled():
        work.abandoned(result)
    else:
        work.future.set_result(result)


def _fail(work: Work, error: BaseException) -> None:
    work.failed()
    if not work.future.done():
        work.future.set_exception(error)
