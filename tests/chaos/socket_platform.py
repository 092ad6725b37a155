"""A platform that confirms, on a socket of this machine: hands updates out until they are taken, logs what it shows.

Updates of a chat are handed out in their order, at least once. What a send becomes is decided by
`faults`, numbered by the order in which sends come in: without one it is shown and answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

SendFault = Literal["ambiguous", "unavailable", "limited", "slow", "late", "refused"]

SLOW: Final = 0.15  # real seconds that a slow answer takes
LATE: Final = 1.4  # real seconds: longer than the adapter waits
SILENCE: Final = 4.0  # seconds of the nodes' time that a 429 asks for
_POLL: Final = 0.25  # real seconds a poll is held
_BATCH: Final = 5
_DELIVER_AGAIN: Final = 0.8  # real seconds without an answer
_LINE: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """A person's message. `number` is its place in the platform's order."""

    number: int
    id: str
    chat: str
    user: str
    group: bool
    text: str
    at: float = 0.0


@dataclass(slots=True, kw_only=True)
class Send:
    """A call of send: when it came (monotonic), from which process, and what became of it. It was
    `shown` or it was not; `heard` says whether the process was told so: it confirms each answer, because
    one that was given late, or while the connection broke, looks no different from here."""

    number: int
    at: float
    process: int
    row: str
    chat: str
    kind: str
    text: str
    answers: str | None
    shown: bool
    heard: bool = False
    fault: SendFault | None


@dataclass(slots=True, kw_only=True)
class Poll:
    """A call of poll: from which process, and its span (monotonic; `ended` None: nobody has hung up yet)."""

    process: int
    begun: float
    ended: float | None = None


class SocketPlatform:
    """The server, at a path: a port could be someone else's when it comes back. `polls`: updates are
    polled; else they are delivered to whoever listens."""

    def __init__(
        self, path: Path, *, polls: bool, rng: random.Random, faults: Mapping[int, SendFault] | None = None
    ) -> None:
        self.sends: list[Send] = []
        self.polled: list[Poll] = []
        self.offered: Counter[str] = Counter()
        self.path = path
        self._polls = polls
        self._rng = rng
        self._faults = dict(faults or {})
        self._updates: list[Update] = []
        self._taken = -1
        self._queues: dict[str, deque[Update]] = defaultdict(deque)
        self._listeners: set[asyncio.StreamWriter] = set()
        self._confirmed: dict[int, asyncio.Event] = {}
        self._news = asyncio.Event()
        self._present_poll = 0
        self._calls = 0
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def up(self) -> None:
        """Listen (again)."""
        self._server = await asyncio.start_unix_server(self._serve, self.path, limit=_LINE)

    async def down(self) -> None:
        """Cut every connection and refuse new ones."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._connections):
            writer.transport.abort()

    async def aclose(self) -> None:
        """Go away for good."""
        await self.down()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def receive(self, update: Update) -> None:
        """A person has sent something."""
        self._updates.append(update)
        self._news.set()
        if not self._polls:
            queue = self._queues[update.chat]
            queue.append(update)
            if len(queue) == 1:
                self._start(self._deliver(queue))

    @property
    def all_taken(self) -> bool:
        """Say whether everything was confirmed."""
        if self._polls:
            return not self._updates or self._taken >= self._updates[-1].number
        return not any(self._queues.values())

    def shown(self) -> Iterator[Send]:
        """Yield the visible sends, in order."""
        return (send for send in self.sends if send.shown)

    # -- requests ---------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(OSError, ValueError):
                line = await reader.readline()
                if not line.endswith(b"\n"):
                    return
                request = json.loads(line)
                if request["op"] == "listen":
                    await self._listen(reader, writer)
                elif request["op"] == "poll":
                    await _tell(writer, await self._polled(request, reader))
                else:
                    send = self._noted(request)
                    await _tell(writer, await _outcome(send))
                    send.heard = (await reader.readline()).endswith(b"\n")
        except asyncio.CancelledError:
            return  # the platform goes away; asyncio's own callback would complain of a cancelled one
        finally:
            self._tasks.discard(task)
            self._connections.discard(writer)
            writer.close()

    async def _polled(self, request: Mapping[str, Any], reader: asyncio.StreamReader) -> dict[str, Any] | None:
        """A poll lasts until it is answered or its process hangs up."""
        span = Poll(process=request["process"], begun=time.monotonic())
        self.polled.append(span)
        polling, hung_up = asyncio.create_task(self._poll(request)), asyncio.create_task(reader.read())
        try:
            await asyncio.wait([polling, hung_up], return_when=asyncio.FIRST_COMPLETED)
            return polling.result() if polling.done() else None
        finally:
            span.ended = time.monotonic()
            polling.cancel()
            hung_up.cancel()
            await asyncio.gather(polling, hung_up, return_exceptions=True)

    async def _poll(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._taken = max(self._taken, request["taken"])
        self._present_poll += 1
        mine = self._present_poll
        self._news.set()  # who polls already is told at once that someone else does now
        until = time.monotonic() + _POLL
        while not (found := self._waiting()) and (left := until - time.monotonic()) > 0:
            self._news.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), left)
            if mine != self._present_poll:
                return {"status": 409}  # someone else polls now
        if found and self._rng.random() < 0.2:  # at least once: sometimes what was taken comes again
            place = self._updates.index(found[0])
            found = self._updates[max(0, place - self._rng.randint(1, 3)) : place] + found
        self.offered.update(update.id for update in found)
        return {"status": 200, "updates": [asdict(update) for update in found]}

    def _waiting(self) -> list[Update]:
        return [update for update in self._updates if update.number > self._taken][:_BATCH]

    def _noted(self, request: Mapping[str, Any]) -> Send:
        self._calls += 1
        fault = self._faults.get(self._calls)
        send = Send(
            number=self._calls,
            at=time.monotonic(),
            process=request["process"],
            row=request["row"],
            chat=request["chat"],
            kind=request["kind"],
            text=request["text"],
            answers=request["answers"],
            shown=fault in (None, "ambiguous", "slow", "late"),
            fault=fault,
        )
        self.sends.append(send)
        return send

    # -- deliveries -------------------------------------------------------------------------

    async def _listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._listeners.add(writer)
        self._news.set()
        try:
            while (line := await reader.readline()).endswith(b"\n"):
                confirmed = self._confirmed.get(json.loads(line)["taken"])
                if confirmed is not None:
                    confirmed.set()
        finally:
            self._listeners.discard(writer)

    def _start(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _deliver(self, queue: deque[Update]) -> None:
        """Hand the chat's updates out, one after the other, each to one process or to two at once."""
        while queue:
            update = queue[0]
            confirmed = self._confirmed.setdefault(update.number, asyncio.Event())
            listeners = list(self._listeners)
            for writer in self._rng.sample(listeners, min(len(listeners), self._rng.choice((1, 1, 2)))):
                self.offered[update.id] += 1
                with contextlib.suppress(OSError):
                    writer.write(json.dumps(asdict(update)).encode() + b"\n")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(confirmed.wait(), _DELIVER_AGAIN if listeners else 0.05)
            if confirmed.is_set():
                queue.popleft()


async def _outcome(send: Send) -> dict[str, Any] | None:
    """The answer to a send; None: the platform hangs up instead."""
    if send.fault in ("slow", "late"):
        await asyncio.sleep(SLOW if send.fault == "slow" else LATE)
    if send.fault == "ambiguous":
        return None
    if send.fault == "unavailable":
        return {"status": 503}
    if send.fault == "limited":
        return {"status": 429, "retry_after": SILENCE}
    if send.fault == "refused":
        return {"status": 400, "why": "it cannot be shown here."}
    return {"status": 200, "id": f"m{send.number}"}


async def _tell(writer: asyncio.StreamWriter, answer: Mapping[str, Any] | None) -> None:
    if answer is None:
        writer.transport.abort()
        return
    writer.write(json.dumps(answer).encode() + b"\n")
    await writer.drain()
