"""What a process does with a store beside the steps: it names itself to them, hears their news, and remembers what
saves another look."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar, TypeVarTuple

from gateway.domain.chat import Outbound, SessionKey
from gateway.domain.message import Message
from gateway.runtime.clock import Clock
from gateway.store.backend import Backend, News
from gateway.store.fleeting import MemoryRecords
from gateway.store.records import ATTEMPT_PAUSES, InboxItem, Reservation
from gateway.store.shared.platforms import Platforms
from gateway.store.shared.transcripts import TranscriptCache
from gateway.store.space import Caller, Space
from gateway.store.steps import lanes, sessions
from gateway.store.workers import LaneWorkers

T = TypeVar("T")
Given = TypeVarTuple("Given")


class SteadyTime:
    """Seconds since the epoch, by which rows are due.

    It passes steadily, whatever happens to the machine's clock. Processes that share a server follow the server's time,
    which each learns again and again. It never goes back, so a row that was due stays due.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead: float | None = None  # of the clock that never jumps

    def now(self) -> float:
        """Seconds since the epoch."""
        if self._ahead is None:
            self._ahead = self._clock.now() - self._clock.monotonic()
        return self._ahead + self._clock.monotonic()

    def learn(self, now: float) -> None:
        """The server says that the time is at least `now`."""
        ahead = now - self._clock.monotonic()
        self._ahead = ahead if self._ahead is None else max(self._ahead, ahead)


class StoreProcess:
    """One process on this backend. `concurrency`: how many lanes this process claims in the step that accepts their
    message."""

    def __init__(
        self,
        backend: Backend,
        *,
        clock: Clock,
        concurrency: int = 256,
        attempt_pauses: Sequence[float] = ATTEMPT_PAUSES,
    ) -> None:
        self._backend = backend
        self._clock = clock
        self._pauses = attempt_pauses
        self._owner = ""
        self._began = clock.monotonic()
        self._time = SteadyTime(clock)
        self._transcripts = TranscriptCache()
        self._runs, self._sends = Platforms(), Platforms()  # the platforms that this process serves
        self._listeners = defaultdict[str, list[Callable[..., None]]](list)  # by topic
        self._workers = LaneWorkers(clock)
        self._room = concurrency  # for so many lanes more
        self._unsent: list[Outbound] = []  # claimed for a caller that was gone before the answer
        self._nothing_due = False  # for certain
        self._is_indexed = False  # for certain: of all that an earlier version entered, nothing is left to be renewed
        self._void: list[Reservation] = []  # reserved for such a caller
        self._disturbed = 0  # how often news of a lane that runs were heard, or may have been missed
        self._quiet: dict[str, str] = {}  # lanes of which nothing was heard since they were claimed with this item
        self._fleeting = MemoryRecords()  # what need not outlive this process, where it has the store for itself

    def _caller(self, owner: str = "") -> Caller:
        return Caller(
            owner=owner or self._owner,
            now=self._time.now(),
            uptime=self._clock.monotonic() - self._began,
            runs=self._runs,
            sends=self._sends,
            pauses=self._pauses,
            sole=self._backend.is_sole,
        )

    def _hear(self, news: News) -> None:
        """Something happened, in this process or another."""
        topic, *words = news
        if topic in ("due", "rows", "missed"):
            self._nothing_due = False
        if topic in ("signal", "behind", "missed"):
            self._disturbed += 1
            if words:
                self._quiet.pop(words[0], None)
            else:
                self._quiet.clear()
        if topic == "time":
            self._time.learn(float(words[0]))
        elif topic == "missed":
            self._workers.look()
            self._tell("rows")
            self._tell("left")
        elif topic == "ready":
            self._workers.look()
        elif topic == "rows" and self._sends.has_chat_of(words[0]):
            self._tell("rows")
        elif topic in ("signal", "decided"):
            lane, *kind = words
            self._tell(topic, SessionKey.parse(lane), *kind)
        elif topic == "left":
            self._tell("left")

    def _tell(self, topic: str, *words: Any) -> None:
        for listener in self._listeners[topic]:
            listener(*words)

    def _reserve(self, most: int) -> int:
        """Set room aside for lanes that may be claimed at once."""
        room = min(most, max(0, self._room))
        self._room -= room
        return room

    def _claimed(self, room: int, claimed: Sequence[lanes.Claimed]) -> None:
        """So many lanes were claimed, of the room that was set aside."""
        self._room += room - len(claimed)
        for each in claimed:
            self._workers.offer(each)

    async def _look_for_lane(self) -> lanes.Claimed | None:
        asked_at = self._clock.monotonic()
        self._workers.looks()

        def looked(found: lanes.Claimed | lanes.NoClaim) -> None:
            if isinstance(found, lanes.Claimed):
                self._room -= 1
                self._workers.look()  # there may be more
            else:
                self._workers.found_none(found.again_in, asked_at)

        def abandoned(found: lanes.Claimed | lanes.NoClaim) -> None:
            if isinstance(found, lanes.Claimed):
                self._workers.offer(found)

        found = await self._backend.run(
            lanes.claim, self._caller(), done=looked, failed=self._workers.look, abandoned=abandoned
        )
        return found if isinstance(found, lanes.Claimed) else None

    def _is_quiet(self, item: InboxItem) -> bool:
        """Whether nothing was heard of a running item's lane, although anything new would have been."""
        return self._backend.listens and self._quiet.get(item.key.text) == item.id

    def _look(self, step: Callable[[Space, *Given], T], *args: *Given) -> Awaitable[T]:
        """Run a step that only looks, at a few records."""
        return self._backend.look(step, *args)

    def _read(self, step: Callable[[Space, *Given], T], *args: *Given) -> Awaitable[T]:
        """Run a step that only looks, at any number of records."""
        return self._backend.read(step, *args)

    def _run(self, step: Callable[[Space, *Given], T], *args: *Given) -> Awaitable[T]:
        """Run a step that puts records, and changes nothing in memory."""
        return self._backend.run(step, *args)

    async def _send(self, step: Callable[..., tuple[Outbound, ...]], *args: Any) -> tuple[Outbound, ...]:
        """Run a step that claims rows. If its caller is gone, the rows go to the next one."""
        return await self._backend.run(step, self._caller(), *args, abandoned=self._left_over)

    def _left_over(self, rows: Sequence[Outbound]) -> None:
        """These rows were claimed for a caller that is gone: whoever claims next sends them."""
        if rows:
            self._unsent += rows
            self._tell("rows")

    def _next_row(self, step: Callable[..., Outbound | None], *args: Any) -> Awaitable[Outbound | None]:
        def abandoned(row: Outbound | None) -> None:
            self._left_over(() if row is None else (row,))

        return self._backend.run(step, self._caller(), *args, abandoned=abandoned)

    async def _fleet(self, step: Callable[..., T], *args: Any) -> T:
        """Run a step on state that need not outlive the processes."""
        if not self._backend.is_sole:
            return await self._backend.run(step, *args)
        result, _ = self._fleeting.run(step, *args)
        return result

    async def _append(self, step: Callable[..., sessions.Appended], *args: Any) -> tuple[Message, ...]:
        """Run a step that appends messages to a session, and return them as they are stored."""
        return (await self._backend.run(step, *args, done=self._appended)).messages

    def _appended(self, appended: sessions.Appended) -> None:
        self._transcripts.append(appended.session_id, appended.position, appended.messages)

    def _opened(self, opened: sessions.Opened | None) -> None:
        """Do not cache a continuation that took over late messages: its first reader loads it."""
        if opened is not None and opened.session.message_count == len(opened.messages):
            self._transcripts.put(opened.session.id, opened.messages)
