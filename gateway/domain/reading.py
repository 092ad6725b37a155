"""Reading a platform that does not repeat what a process received before it died, so the adapter must fetch what was
missed.

Adapters of such platforms have this in common. Each channel, thread and chat of two has a cursor: the id of a message
up to which everything is stored. A cursor may lag: messages that are fetched again are recognised. A channel without a
cursor uses the account's, which is a minute before the newest message that was read.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Container, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, Generic, TypeVar

import structlog
from msgspec import Struct

from gateway.domain.adapter import Accept, Accepted, Admits, Notebook
from gateway.domain.chat import Inbound, Outbound, Source
from gateway.domain.reminder import roughly
from gateway.runtime.backoff import Backoff
from gateway.runtime.clock import Clock
from gateway.runtime.errors import AdapterError, DeliveryRefused, StoreUnavailable
from gateway.runtime.structs import replace
from gateway.runtime.tasks import Crew

log = structlog.get_logger(__name__)

T = TypeVar("T")
E = TypeVar("E")
K = TypeVar("K")
V = TypeVar("V")

_SAVE_EVERY: Final = 2.0  # seconds
_SETTLED_AFTER: Final = 30.0  # seconds in which a platform has told of every channel, and sent again what it could not
_MARGIN: Final = 60.0  # seconds of the account's cursor: channels tell of their messages in no common order
_WORTH_A_WORD: Final = 120.0  # seconds of absence
_ALONE: Final = "alone "  # begins the name of a chat of two, which a bot cannot list
_MOST_ALONE: Final = 1_000  # chats of two that are remembered
_BASE: Final = "base"
_ALIVE: Final = "alive"
_ALIVE_EVERY: Final = 30.0  # seconds
_EVEN: Final = 2e9  # any time at which platforms give out ids
_BATCH: Final = 50  # messages that are stored at once
_REMEMBERED: Final = 2_000
_WORDINGS: Final = 5  # of one message that are remembered
_OTHERS_AFTER: Final = 8.0  # seconds: sooner no process takes over from another, which may be silent for ten


class Recent(OrderedDict[K, V]):
    """The newest `most` things."""

    def __init__(self, most: int = _REMEMBERED) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)


def wordings(inbound: Inbound) -> tuple[str, ...]:
    """The events of a message's wordings, newest first; of very many not all, but the first one."""
    (*newer, first) = dict.fromkeys((inbound.event_id, *inbound.amends))
    return (*newer[:_WORDINGS], first)


class Written(Struct, frozen=True):
    """A message that was handed over, and may be edited or deleted: by whom, the events of its wordings, newest first,
    a hash of its words, and its place, as its adapter has it."""

    source: Source
    events: tuple[str, ...]
    words: int = 0
    place: Any = None

    @property
    def withdrawn(self) -> Inbound:
        """That it was deleted."""
        event = f"{self.events[-1]}:deleted"
        return Inbound(event_id=event, source=self.source, text="", kind="withdrawn", amends=self.events)


def written(inbound: Inbound, words: int = 0, place: Any = None) -> Written:
    """What is remembered of a message."""
    return Written(inbound.source, wordings(inbound), words, place)


class Cursors:
    """The cursors of one account. `id_at`: the least id of a message that was written at this time (seconds since the
    epoch); ids grow evenly with the time. `alive_at`: when it was last known to be read (the same)."""

    def __init__(self, id_at: Callable[[float], int]) -> None:
        self._id_at = id_at
        self._margin = id_at(_EVEN + _MARGIN) - id_at(_EVEN)
        self._read: dict[str, int] = {}
        self._alone: set[str] = set()
        self._base = 0  # as it stood when the session began: a server may be told of late
        self._noted_base = 0
        self._newest = 0
        self._dirty: set[str] = set()
        self._noted_alive = 0.0
        self.alive_at: float | None = None

    async def load(self, notebook: Notebook, now: float, oldest: float) -> None:
        """Read the cursors as any process left them. Those older than `oldest` seconds are useless, except for chats of
        two. Raises StoreUnavailable."""
        notes = await notebook.read()
        self.__init__(self._id_at)  # type: ignore[misc]
        if _BASE not in notes:  # before the first event: a process may die before it has saved anything
            notes = {**notes, _BASE: str(self._id_at(now))}
            await notebook.write({_BASE: notes[_BASE]})
        self._base = self._noted_base = int(notes[_BASE])
        self.alive_at = float(notes[_ALIVE]) if _ALIVE in notes else None
        old: dict[str, str | None] = {}
        for name, value in notes.items():
            if name in (_BASE, _ALIVE):
                continue
            if not name.startswith(_ALONE) and int(value) < self._id_at(now - oldest):
                old[name] = None
                continue
            self._read[name.removeprefix(_ALONE)] = int(value)
            if name.startswith(_ALONE):
                self._alone.add(name.removeprefix(_ALONE))
        for channel in sorted(self._alone, key=self._read.__getitem__)[:-_MOST_ALONE]:
            old[_ALONE + channel] = None
            self._alone.discard(channel)
        if old:
            await notebook.write(old)

    def begin_session(self) -> None:
        """From now on nothing that is missed is sent again."""
        self._base = self._noted_base

    def of(self, channel: str) -> int:
        """The id up to which a channel is read."""
        return self._read.get(channel, self._base)

    def alone(self) -> Iterator[str]:
        """The chats of two, the one used last first."""
        yield from sorted(self._alone, key=self._read.__getitem__, reverse=True)

    def put_away(self, listed: Container[str]) -> list[str]:
        """The channels and threads, the one used last first, that Discord did not list."""
        left = [each for each in self._read if each not in self._alone and each not in listed]
        return sorted(left, key=self._read.__getitem__, reverse=True)

    def meet(self, channel: str) -> bool:
        """Note a chat of two. Returns whether it is new, which must be saved before anything of it is read: otherwise
        nobody would look there after a crash."""
        if channel in self._alone:
            return False
        self._alone.add(channel)
        self._read.setdefault(channel, self._base)
        self._dirty.add(channel)
        return True

    def advance(self, channel: str, message: int, *, alone: bool) -> None:
        """Everything of the channel up to this message is stored."""
        if message <= self._read.get(channel, 0):
            return
        self._read[channel] = message
        self._newest = max(self._newest, message)
        self._dirty.add(channel)
        if alone:
            self._alone.add(channel)

    async def save(self, notebook: Notebook, now: float, *, connected: bool, idle: bool) -> None:
        """Write what has changed. `idle`: no message waits to be stored. Raises StoreUnavailable."""
        changes: dict[str, str | None] = {}
        dirty, self._dirty = self._dirty, set()
        for channel in dirty:
            changes[(_ALONE if channel in self._alone else "") + channel] = str(self._read[channel])
        if connected:
            self.alive_at = now
        base = max(self._newest - self._margin, self._noted_base) if idle else self._noted_base
        if base > self._noted_base:
            self._noted_base = base
            changes[_BASE] = str(base)
        if self.alive_at is not None and (changes or self.alive_at - self._noted_alive >= _ALIVE_EVERY):
            changes[_ALIVE] = f"{self.alive_at:.0f}"
            self._noted_alive = self.alive_at
        if not changes:
            return
        try:
            await notebook.write(changes)
        except BaseException:
            self._dirty |= dirty
            raise


# -- storing what was read -----------------------------------------------------------------------------


async def insist(clock: Clock, line: str, step: Callable[[], Awaitable[T]]) -> T:
    """The result of a step, which is repeated while the store is away; `line`: of the log, each time it is."""
    backoff = Backoff(0.1, 5.0)
    while True:
        try:
            return await step()
        except StoreUnavailable as error:
            log.warning(line, error=str(error))
        await clock.sleep(backoff.pause())


async def keep_saved(clock: Clock, save: Callable[[], Awaitable[None]]) -> None:
    """Note from time to time how far everything is read, until cancelled."""
    while True:
        await clock.sleep(_SAVE_EVERY)
        try:
            await save()
        except StoreUnavailable as error:
            log.info("cursors_not_saved", error=str(error))


async def stored(clock: Clock, accept: Accept, batch: Sequence[Inbound]) -> Sequence[Accepted]:
    """Store these, however long the store is away, and return the fate of each: those that can wait do so until their
    lanes have room."""
    accepted: list[Accepted] = []
    backoff = Backoff(0.1, 5.0)
    while True:
        try:
            results = await accept(batch)
        except StoreUnavailable as error:
            log.warning("messages_wait", count=len(batch), error=str(error))
        else:
            accepted += [each for each in results if each.status != "full"]
            full = {each.event_id for each in results if each.status == "full"}
            if not full:
                return accepted
            if len(full) < len(batch):
                backoff.reset()
            batch = [each for each in batch if each.event_id in full]
        await clock.sleep(backoff.pause())


def absence(away: float | None, looked_at: int | None) -> str:
    """A chat's notice before the first answer to a missed message; "" after a short absence (in seconds; None: there
    was none before). `looked_at`: only so many of the newest messages were read; None: all were."""
    if away is None or away < _WORTH_A_WORD:
        return ""
    told = f"I was away for {roughly(away)}. Now I answer the messages from that time."
    if looked_at is not None:
        told += f" There were many messages, so I looked only at the last {looked_at:,} messages."
    return told


async def is_admitted(clock: Clock, admits: Admits | None, writer: Source) -> bool:
    """Say whether a writer may talk there: a platform is asked for nothing because of a stranger."""
    return admits is None or await insist(clock, "messages_wait", lambda: admits(writer))


class Pointing:
    """Which message of an answer points at its question: the first one that is no notice."""

    def __init__(self) -> None:
        self._rows: Recent[str, str] = Recent()  # by question

    def is_first(self, outbound: Outbound) -> bool:
        """Whether this message does."""
        if outbound.kind == "notice" or outbound.answers is None:
            return False
        first = self._rows[outbound.answers] = self._rows.get(outbound.answers, outbound.id)
        return first == outbound.id


class OtherBots:
    """The mentions by other bots that were answered since a person spoke there: two bots that answer each other would
    never end. `most`: of one bot, in a row."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._answered: dict[tuple[str, str], int] = {}  # by channel and bot

    def person_spoke(self, channel: str) -> None:
        """Start counting again there."""
        for pair in [pair for pair in self._answered if pair[0] == channel]:
            del self._answered[pair]

    def hears(self, channel: str, bot: str, *, named: bool) -> bool:
        """Say whether a bot is answered."""
        answered = self._answered.get((channel, bot), 0)
        if named and answered < self._most:
            self._answered[channel, bot] = answered + 1
        return named and answered < self._most


class DirectChats:
    """The chats of two, named after their persons, as `WITH` and an id: the platform's own id is only known once such a
    chat is opened, by `opened`."""

    def __init__(self, opened: Callable[[str], Awaitable[str]]) -> None:
        self._opened = opened
        self._known: Recent[str, str] = Recent()

    async def id_of(self, chat: str) -> str:
        """The platform's id of a chat. Raises AdapterError."""
        if not chat.startswith(WITH):
            return chat
        person = chat.removeprefix(WITH)
        if person not in self._known:
            self._known[person] = await self._opened(person)
        return self._known[person]


WITH: Final = "@"
"""Before a person's id: the chat in which they are alone with the bot."""


class Doubts:
    """The rows that an earlier attempt may have shown, on a platform that knows a message by its row."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._began = clock, clock.now()
        self._rows: Recent[str, None] = Recent()

    def note(self, row: str) -> None:
        """A send had no answer. The row may come again without a word of that: a draft's failure is not stored."""
        self._rows[row] = None

    def concern(self, outbound: Outbound, begun: float) -> bool:
        """Whether the row is in doubt, or was `begun` (seconds since the epoch) early enough for another process to
        have died while it grew, of which nothing is stored."""
        return self.are_grave(outbound, begun) or self._clock.now() - begun > _OTHERS_AFTER

    def are_grave(self, outbound: Outbound, begun: float) -> bool:
        """The same, for another reason than that it grew for a while beside other processes, of which none need have
        died."""
        return bool(outbound.ambiguous) or outbound.id in self._rows or begun < self._began


UNREADABLE: Final = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What a reader meets that is given something of another shape than a platform documents."""


class OddEvents:
    """Events that came in another shape than a platform documents, of which each kind is told once. `also`: errors that
    a platform's library raises for those."""

    def __init__(self, *also: type[Exception]) -> None:
        self._errors: tuple[type[Exception], ...] = (*UNREADABLE, *also)
        self._told: Recent[str, None] = Recent()

    @contextmanager
    def contained(self, kind: str) -> Iterator[None]:
        """Read an event, or a part of one, and go on behind the block if it cannot be read."""
        try:
            yield
        except self._errors:
            if kind not in self._told:
                self._told[kind] = None
                log.exception("event_unreadable", kind=kind)


async def taken(
    clock: Clock,
    accept: Accept,
    channel: str,
    events: Sequence[E],
    meaning: Callable[[str, E], Awaitable[Inbound | None]],
    notice: str,
    *,
    missed: bool,
) -> tuple[list[tuple[E, Inbound | None]], dict[str, Accepted], str]:
    """Store what these events of a channel mean. Returns that, the fate of each by its name, and `notice`, which the
    chat is told before the first answer, where there is none yet."""
    found: list[tuple[E, Inbound | None]] = []
    batch: list[Inbound] = []
    fates: dict[str, Accepted] = {}
    for event in events:
        if (inbound := await meaning(channel, event)) is not None:
            inbound, notice = replace(inbound, notice=notice, can_wait=missed), ""
            batch.append(inbound)
        found.append((event, inbound))
    for fate in await stored(clock, accept, batch) if batch else ():
        fates[fate.event_id] = fate
    return found, fates, notice


class Channels(Generic[E]):
    """The queues of an account's channels. Each has a worker while there is something in it, which stores that in its
    order: first what `missed` fetches, unless the channel is `current`. `meaning`: of an event of a channel;
    `concluded` is told what became of it."""

    def __init__(
        self,
        crew: Crew,
        clock: Clock,
        accept: Accept,
        missed: Callable[[str], Awaitable[tuple[Sequence[E], str]]],
        meaning: Callable[[str, E], Awaitable[Inbound | None]],
        concluded: Callable[[str, E, Inbound | None, Accepted | None], None],
    ) -> None:
        self._crew, self._clock, self._accept = crew, clock, accept
        self._missed, self._meaning, self._concluded = missed, meaning, concluded
        self.current: set[str] = set()
        self.waiting: dict[str, deque[E]] = {}

    def put(self, channel: str, *events: E) -> None:
        """Add to a channel's queue; without events, look only for what was missed."""
        queue = self.waiting.get(channel)
        if queue is None:
            queue = self.waiting[channel] = deque()
            self._crew.start(self._work(channel, queue))
        queue.extend(events)

    def is_known(self, channel: str) -> bool:
        """Whether nothing needs to be looked for there."""
        return channel in self.current or channel in self.waiting

    def is_idle(self, channel: str) -> bool:
        """Whether all that came into a channel is stored."""
        return channel in self.current and channel not in self.waiting

    async def _work(self, channel: str, queue: deque[E]) -> None:
        """Store what the queue holds, until it is empty."""
        behind = 0  # events that came during a catch-up: they wait for room like what was missed, which fills the lane
        how = (self._clock, self._accept)
        try:
            while queue or channel not in self.current:
                if channel not in self.current:
                    self.current.add(channel)
                    events, notice = await self._missed(channel)
                    for first in range(0, len(events), _BATCH):
                        some: Sequence[E] = events[first : first + _BATCH]
                        found, fates, notice = await taken(*how, channel, some, self._meaning, notice, missed=True)
                        self._conclude(channel, found, fates)
                    behind = len(queue)
                    continue
                some = [queue.popleft() for _ in range(min(behind or _BATCH, _BATCH, len(queue)))]
                found, fates, _ = await taken(*how, channel, some, self._meaning, "", missed=behind > 0)
                self._conclude(channel, found, fates)
                behind = max(0, behind - len(some))
        finally:
            del self.waiting[channel]

    def _conclude(self, channel: str, found: Sequence[tuple[E, Inbound | None]], fates: Mapping[str, Accepted]) -> None:
        for event, inbound in found:
            self._concluded(channel, event, inbound, fates.get(inbound.event_id) if inbound is not None else None)


class Reader(Generic[E]):
    """The reading of an account with cursors and queues, as long as it goes on. `since` gives when the present
    connection began (seconds since the epoch); None: there is none. `crew` and `channels` are new in each reading."""

    crew: Crew
    channels: Channels[E]

    def __init__(self, clock: Clock, id_at: Callable[[float], int], since: Callable[[], float | None]) -> None:
        self._clock, self._since = clock, since
        self.cursors = Cursors(id_at)
        self.looks_around = False  # in some channels nobody looked yet for what was missed
        self.away: float | None = None  # seconds before the present session that nobody read

    async def run(
        self,
        accept: Accept,
        notebook: Notebook,
        hours: float,
        reading: Coroutine[Any, Any, None],
        missed: Callable[[str], Awaitable[tuple[Sequence[E], str]]],
        meaning: Callable[[str, E], Awaitable[Inbound | None]],
        concluded: Callable[[str, E, Inbound | None, Accepted | None], None],
    ) -> None:
        """Take what `reading` hears until that ends. `hours`: of the past that are looked at; the others as of
        `Channels`. Raises AdapterError."""
        self.crew, self._notebook, self.away = Crew(), notebook, None
        self.channels = Channels(self.crew, self._clock, accept, missed, meaning, concluded)
        now = self._clock.now
        try:
            await insist(self._clock, "cursors_wait", lambda: self.cursors.load(notebook, now(), hours * 3600.0))
            self.crew.start(reading)
            self.crew.start(keep_saved(self._clock, self.save))
            await self.crew.work()
        finally:
            reading.close()  # it may not have begun
            with suppress(StoreUnavailable):
                await self.save()

    async def save(self) -> None:
        """Note how far everything is read. Raises StoreUnavailable."""
        now, since = self._clock.now(), self._since()
        settled = since is not None and now - since > _SETTLED_AFTER
        idle = settled and not self.channels.waiting and not self.looks_around
        await self.cursors.save(self._notebook, now, connected=since is not None, idle=idle)

    def begin_session(self) -> None:
        """From now on nothing that is missed is sent again: each channel looks for it."""
        alive = self.cursors.alive_at
        self.away = None if alive is None else self._clock.now() - alive
        self.channels.current.clear()
        self.cursors.begin_session()


async def answer_of(
    clock: Clock, at_once: asyncio.Semaphore, channel: str, call: Callable[[], Awaitable[T]]
) -> T | None:
    """The result of a call about something missed, which raises AdapterError and is repeated until the platform
    answers; None: it refuses."""
    backoff = Backoff(1.0, 60.0)
    while True:
        try:
            async with at_once:
                return await call()
        except DeliveryRefused as error:
            log.info("channel_not_read", channel=channel, error=str(error))
            return None
        except AdapterError as error:
            wait = max(backoff.pause(), getattr(error, "retry_after", 0.0))
            log.warning("channel_waits", channel=channel, error=str(error), again_in=wait)
        await clock.sleep(wait)


async def reached(
    clock: Clock, name: str, step: Callable[[], Awaitable[T]], is_final: Callable[[AdapterError], bool]
) -> T:
    """The result of a first call, which raises AdapterError and is repeated until the platform called `name` can be
    reached. Raises the final ones."""
    backoff = Backoff(1.0, 30.0)
    while True:
        try:
            return await step()
        except AdapterError as error:
            if is_final(error):
                raise
            wait = max(backoff.pause(), getattr(error, "retry_after", 0.0))
            log.warning(f"{name}_unreachable", error=str(error), again_in=wait)
        await clock.sleep(wait)
