"""The backend on a PostgreSQL database that several processes share. A step is one transaction.

A process runs its steps one after the other in a thread, in the order in which they came, so that they meet only those
of other processes.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

import structlog
from msgspec.json import decode, encode

from gateway.domain.chat import ChatAddress, SessionKey
from gateway.runtime.backoff import Backoff
from gateway.runtime.clock import Clock
from gateway.runtime.errors import StoreUnavailable
from gateway.runtime.tasks import Background
from gateway.store.backend import News, nothing
from gateway.store.draft import Draft
from gateway.store.port import PROCESSES_LOST, Store
from gateway.store.postgres.server import PostgresPlace, ServerAway, ServerConnection, UnknownEnd
from gateway.store.records import ATTEMPT_PAUSES, LEASE_SECONDS, Vector
from gateway.store.searching import Search, SearchingBackend, SearchMemory
from gateway.store.shared import searchable
from gateway.store.space import Caller
from gateway.store.steps import lanes, members

T = TypeVar("T")

log = structlog.get_logger(__name__)

_LONGEST_BEAT: Final = 1.0  # seconds: a dead process is found at most this long after its lease
_LAST_WORDS: Final = 3.0  # seconds that steps on their way are waited for
_LONGEST_NEWS: Final = 2_000  # letters; where there are more, the others look for everything
_RETRY: Final = 0.5
_RENEWAL_PAUSE: Final = 0.02  # seconds between two steps of making search entries anew


class ConnectionThread:
    """A thread with a connection, which does what it is given one after the other."""

    def __init__(self, place: PostgresPlace, *, writes: bool = False) -> None:
        self._place, self._writes = place, writes
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._connection: ServerConnection | None = None

    async def do(self, work: Callable[[ServerConnection], T]) -> T:
        """The result of `work`; again, where another step came between, or the connection was an old one that broke.
        Raises StoreUnavailable."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._done, work)

    def _done(self, work: Callable[[ServerConnection], T]) -> T:
        while True:
            is_new = self._connection is None or self._connection.is_closed
            try:
                if self._connection is None or self._connection.is_closed:
                    self._connection = self._place.connect(writes=self._writes)
                connection = self._connection
            except self._place.errors as error:
                raise self._place.trouble(error, connecting=True) from error
            try:
                return work(connection)
            except self._place.again:
                continue
            except self._place.errors as error:
                if is_new or not connection.is_closed:
                    raise self._place.trouble(error, connecting=False) from error
            finally:
                connection.rollback()

    async def aclose(self) -> None:
        """Hang up, after all that it was given before."""
        await asyncio.to_thread(self._thread.shutdown)
        if self._connection is not None:
            self._connection.close()


def attempt(
    step: Callable[[Draft], T], owner: str, errors: tuple[type[Exception], ...], connection: ServerConnection
) -> tuple[T, list[News]]:
    """Run a step in a transaction, which tells its news, too."""
    draft = Draft(connection)
    try:
        result = step(draft)
    except errors:
        raise
    except BaseException:
        connection.commit()  # of nothing: but now it is certain that what the step saw was so
        raise
    if draft.records or draft.series or draft.news:
        connection.write(draft)
    if draft.news:
        news = encode([owner, *draft.news]).decode()
        connection.tell(news if len(news) < _LONGEST_NEWS else encode([owner, ("missed",)]).decode())
    try:
        connection.commit()
    except UnknownEnd as unknown:
        unknown.outcome = result, draft.news
        raise
    return result, draft.news


class PostgresBackend(SearchingBackend):
    """The database of this place. See `PostgresStore` for the settings."""

    is_sole = False
    is_beside = False
    listens = False  # a connection that died unseen would miss signals, so each turn looks for them

    def __init__(
        self, place: PostgresPlace, *, clock: Clock, life: float, waits: bool, told: Callable[[str], None]
    ) -> None:
        self.life = life
        self.owner: Final = os.urandom(8).hex()
        self._place = place
        self._writes = ConnectionThread(place, writes=True)
        self._looks, self._reads = ConnectionThread(place), ConnectionThread(place)
        self._clock = clock
        self._waits, self._told = waits, told
        self._steps, self._background = Background(), Background()
        self._turn = asyncio.Lock()
        self._memory = SearchMemory()
        self._listening = asyncio.Event()
        self._hear: Callable[[News], None] = nothing
        self._heard_at: float | None = None  # when the last answered beat was sent (monotonic)
        self._pause = min(_LONGEST_BEAT, life / 4)
        self._is_open = False

    # -- lifetime ---------------------------------------------------------------------------

    async def open(self, hear: Callable[[News], None], caller: Callable[[str], Caller]) -> str:
        self._hear = hear
        await self._reach()
        self._is_open = True
        self._background.start(self._listen(), name="store news")
        await self._learn_time()
        self._heard_at = self._clock.monotonic()
        await self._listening.wait()
        self._background.start_once(self._beats(caller), name="store beats")
        if await self.unindexed():
            self._background.start(self._renew_search(), name="search index")
        return self.owner

    async def _reach(self) -> None:
        backoff = Backoff(0.25, 5.0)
        while True:
            try:
                return await self._writes.do(lambda connection: connection.lay_out())
            except ServerAway as error:
                if not self._waits:
                    raise
                wait = backoff.pause()
                if backoff.failures == 1:
                    self._told(f"{self._place.name} cannot be reached yet. Legato waits for the server; Ctrl-C leaves.")
                log.warning("store_waits_for_server", server=self._place.name, error=str(error), retry_in=wait)
                await self._clock.sleep(wait)

    async def aclose(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS):
                await self._steps.idle()
        self._is_open = False
        for each in (self._steps, self._background, self._writes, self._looks, self._reads):
            await each.aclose()

    # -- steps ------------------------------------------------------------------------------

    async def run(
        self,
        step: Callable[..., T],
        *args: Any,
        done: Callable[[T], None] = nothing,
        failed: Callable[[], None] = nothing,
        abandoned: Callable[[T], None] = nothing,
    ) -> T:
        if step is members.end:
            self._background.stop("store beats")  # a later one would be of a process that lives
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        work = self._carry(future, lambda space: step(space, *args), done, failed, abandoned)
        self._steps.start(work, name="store step")
        try:
            return await future
        except asyncio.CancelledError:
            if not future.cancelled():  # after the result was handed over: nobody will see it
                abandoned(future.result())
            raise

    run_beside = run  # no process has the database for itself

    async def _carry(
        self,
        future: asyncio.Future[T],
        step: Callable[[Draft], T],
        done: Callable[[T], None],
        failed: Callable[[], None],
        abandoned: Callable[[T], None],
    ) -> None:
        """Tell whoever waits for a step of its end."""
        try:
            (outcome,) = await asyncio.gather(self._committed(step), return_exceptions=True)
        except asyncio.CancelledError:
            _fail(future, failed, StoreUnavailable("The store is closed."))
            raise
        if isinstance(outcome, BaseException):
            _fail(future, failed, outcome)
            return
        result, told = outcome
        done(result)
        if future.cancelled():
            abandoned(result)
        else:
            future.set_result(result)
        for news in told:
            self._hear(news)

    async def _committed(self, step: Callable[[Draft], T]) -> tuple[T, list[News]]:
        async with self._turn:
            while True:
                self._must_be_open()
                try:
                    return await self._writes.do(partial(attempt, step, self.owner, self._place.errors))
                except UnknownEnd as unknown:
                    outcome: tuple[T, list[News]] = unknown.outcome
                    if await self._was_done(unknown.transaction):
                        return outcome

    async def _was_done(self, transaction: str) -> bool:
        """Whether a transaction was done. Nothing else can be done before that is known."""
        while True:
            with suppress(StoreUnavailable):
                done = await self._looks.do(lambda connection: connection.was_done(transaction))
                if done is not None:
                    return done
            await self._clock.sleep(_RETRY)

    async def look(self, step: Callable[..., T], *args: Any) -> T:
        self._must_be_open()
        return await self._looks.do(lambda connection: step(Draft(connection), *args))

    async def read(self, step: Callable[..., T], *args: Any) -> T:
        self._must_be_open()
        return await self._reads.do(lambda connection: step(Draft(connection), *args))

    def _must_be_open(self) -> None:
        if not self._is_open:
            raise StoreUnavailable("The store is closed.")

    # -- the other processes ----------------------------------------------------------------

    def is_sure(self, chat: ChatAddress) -> bool:
        return self._heard_at is not None and self._clock.monotonic() - self._heard_at < self.life

    async def _listen(self) -> None:
        """Hear the news of other processes until cancelled. What was missed is looked for."""
        while True:
            with suppress(StoreUnavailable, *self._place.errors):
                async for text in self._place.news():
                    if text is not None:
                        self._heard(text)
                    elif self._listening.is_set():
                        await self._hear_missed()
                    self._listening.set()
            log.info("store_news_lost")
            await self._clock.sleep(_RETRY)

    def _heard(self, text: str) -> None:
        """News of another process; this process knows its own."""
        owner, *told = decode(text)
        for news in told if owner != self.owner else ():
            self._hear(tuple(news))

    async def _hear_missed(self) -> None:
        self._hear(("missed",))
        for lane, kind in await self.look(lanes.left_to, self.owner):
            self._hear(("signal", lane, kind))

    async def _learn_time(self) -> None:
        self._hear(("time", str(await self._looks.do(lambda connection: connection.now()))))

    async def _beats(self, caller: Callable[[str], Caller]) -> None:
        pause = self._pause
        while True:
            await self._clock.sleep(pause)
            with suppress(StoreUnavailable):
                await self._learn_time()
                pause = await self._beat(caller(self.owner))

    async def _beat(self, me: Caller) -> float:
        """Say that this process lives, and take over from those that do not: in how many seconds to do so again."""
        sent = self._clock.monotonic()
        beat = await self.run(members.beat, me, self.life)
        self._heard_at = sent
        if not beat.known:
            log.warning("store_took_this_process_for_dead")
        if beat.dead:
            PROCESSES_LOST.count(by=beat.dead)
            self._hear(("missed",))
        elif beat.waits:  # the news may have been lost
            self._hear(("ready", ""))
        return self._pause if beat.ends_at is None else max(0.0, min(self._pause, beat.ends_at - me.now))

    # -- what is beside the records ---------------------------------------------------------

    async def scrub(self) -> None:
        self._background.start_once(self._reads.do(lambda connection: connection.free()), name="store scrub")

    async def _renew_search(self) -> None:
        log.info("search_index_outdated", left=await self.unindexed())
        while await self._writes.do(_renew_some):
            await self._clock.sleep(_RENEWAL_PAUSE)
        log.info("search_index_renewed")

    async def unindexed(self) -> int:
        return await self._searched(lambda search: search.entries.left(searchable.MADE))

    async def _searched(self, ask: Callable[[Search], T]) -> T:
        self._must_be_open()
        return await self._reads.do(lambda connection: ask(Search(connection, connection, self._memory)))

    async def keep_vectors(self, model: str, key: SessionKey, kept: Mapping[str, Vector]) -> None:
        self._must_be_open()

        def keep(connection: ServerConnection) -> None:
            Search(connection, connection, self._memory).keep_vectors(model, kept)
            connection.commit()

        await self._writes.do(keep)


def _fail(future: asyncio.Future[Any], failed: Callable[[], None], error: BaseException) -> None:
    failed()
    if not future.done():
        future.set_exception(error)


def _renew_some(connection: ServerConnection) -> bool:
    are_left = connection.renew_some()
    connection.commit()
    return are_left


class PostgresStore(Store):
    """Everything in the PostgreSQL database at `url`, shared with all processes that use it.

    `lease_seconds`: how long this process may be silent before the others take over its claims. With `waits`, `open`
    waits for a server that cannot be reached, and `told` is given a sentence about that."""

    def __init__(
        self,
        url: str,
        *,
        clock: Clock,
        concurrency: int = 256,
        lease_seconds: float = LEASE_SECONDS,
        waits: bool = True,
        told: Callable[[str], None] = lambda _: None,
        attempt_pauses: Sequence[float] = ATTEMPT_PAUSES,
    ) -> None:
        self.backend = PostgresBackend(PostgresPlace(url), clock=clock, life=lease_seconds, waits=waits, told=told)
        super().__init__(self.backend, clock=clock, concurrency=concurrency, attempt_pauses=attempt_pauses)
