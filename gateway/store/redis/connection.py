"""One connection, which carries steps in order.

When the connection is free, all waiting steps go out as one batch. What comes to wait meanwhile follows at the first
answer. So many callers share a round trip, the server never waits for us, and a single caller has no delay. If the
connection breaks before the answers are there, the batch's writing steps may or may not have been done. They are sent
again, under the same numbers, until the server answers: done twice, a step comes to the same (see parts/base.lua). So a
step that may have happened is never given up while the store is open; a step that was certainly not sent fails with
StoreUnavailable after `patience`."""

from __future__ import annotations

import asyncio
import contextlib
import types
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from typing import Any, Final

import structlog
from hiredis import pack_command
from msgspec import Struct, field
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import (
    AskError,
    BusyLoadingError,
    ClusterDownError,
    MasterDownError,
    MovedError,
    NoPermissionError,
    NoScriptError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError

from gateway.runtime.backoff import Backoff
from gateway.runtime.clock import Clock
from gateway.runtime.errors import GatewayError, StoreError, StoreUnavailable
from gateway.store.redis.answers import NONE, Answers
from gateway.store.redis.endpoint import UNREACHABLE
from gateway.store.redis.scripts import Script

log = structlog.get_logger(__name__)

MOST: Final = 128  # steps in one batch: bounds what one failure repeats
_PASSES: Final = 4
# The server did nothing and will not here or now; another try may find it willing.
_UNWILLING: Final = (
    AskError,
    BusyLoadingError,
    ClusterDownError,
    MasterDownError,
    MovedError,
    ReadOnlyError,
    TryAgainError,
)
# The same, of answers that the library has no class for: a script runs for too long, or too few
# replicas are there.
_UNWILLING_WORDS: Final = ("BUSY ", "NOREPLICAS ")


@types.coroutine
def _pass() -> Generator[None, None, None]:
    """Let everything else that is ready have its turn."""
    yield


Argument = str | bytes | int


class Job(Struct, eq=False):
    """One step on its way: a script with what it takes, or a plain command that only reads. `prepare` is called as soon
    as the job can be sent, and gives it its arguments."""

    future: asyncio.Future[Any]
    script: Script | None
    key: str
    arguments: Sequence[Argument]
    writes: bool
    since: float
    number: int = 0
    sent: bool = False  # the step may have been done
    ended: bool = False
    over: list[Callable[[Job], None]] = field(default_factory=list)
    prepare: Callable[[Job], None] | None = None

    def answer(self, reply: Any) -> None:
        """The server's answer is there."""
        if self.script is not None:
            status, *reply = reply
            if status != "ok":
                self.fail(StoreError("The server took this step for an old copy of one that was answered."))
                return
        if not self.future.cancelled():
            self.future.set_result(reply)
        self._end()

    def fail(self, error: GatewayError) -> None:
        """There will be no answer, or it is an error."""
        if not self.future.done():
            self.future.set_exception(error)
        self._end()

    def _end(self) -> None:
        self.ended = True
        for call in self.over:
            call(self)


class CallHeader(Struct, kw_only=True):
    """The caller as every script is told: the process, and the channel for news."""

    owner: str
    channel: str


class Connection:
    """Carries jobs through a connection that `dial` makes. `lost` is called when the connection breaks."""

    def __init__(
        self,
        dial: Callable[[], Awaitable[AbstractConnection]],
        *,
        caller: CallHeader,
        clock: Clock,
        timeout: float,
        patience: float,
        lost: Callable[[], None],
    ) -> None:
        self._dial = dial
        self._caller = caller
        self._clock = clock
        self._timeout = timeout
        self._patience = patience
        self._lost = lost
        self._waiting: deque[Job] = deque()
        self._carried: deque[Job] = deque()
        self._resting: asyncio.Future[None] | None = None  # until there is a job
        self._idle = asyncio.Event()  # of whoever waits for that
        self._numbered = 0  # the last job's number
        self._answers: Answers | None = None
        self._known: set[str] = set()  # scripts that this connection has used
        self._told = False

    def put(self, job: Job) -> None:
        """Send a job with the next batch."""
        self._waiting.append(job)
        if self._resting is not None and not self._resting.done():
            self._resting.set_result(None)

    async def serve(self) -> None:
        """Carry jobs until cancelled."""
        while True:
            if not self._waiting:
                self._idle.set()
                self._resting = asyncio.get_running_loop().create_future()
                await self._resting
                self._resting = None
            for _ in range(_PASSES):  # callers put jobs that they are about to put: a batch of their own costs far more
                before = len(self._waiting)
                await _pass()
                if len(self._waiting) == before:
                    break
            self._take()
            await self._carry()

    def _take(self) -> list[Job]:
        """Jobs that are carried from here on, behind those that are."""
        taken: list[Job] = []
        while self._waiting and len(self._carried) < MOST:
            job = self._waiting.popleft()
            self._numbered += 1
            job.number = self._numbered
            if job.prepare is not None:
                job.prepare(job)
            self._carried.append(job)
            taken.append(job)
        return taken

    async def aclose(self, reason: str) -> None:
        """Fail the jobs that are left and hang up; after `serve` has ended."""
        left = [*self._carried, *self._waiting]
        self._carried.clear()
        self._waiting.clear()
        for job in left:
            job.fail(StoreUnavailable(reason))
        await self._hang_up()

    async def idle(self) -> None:
        """Return when no job waits or is on its way."""
        while self._waiting or self._resting is None:
            self._idle.clear()
            await self._idle.wait()

    # -- one batch --------------------------------------------------------------------------

    async def _carry(self) -> None:
        backoff = Backoff(0.05, 1.0)
        trouble: BaseException | None
        while self._carried:
            try:
                if self._answers is not None and self._answers.is_cut:
                    await self._hang_up()  # found before a job was sent: no job is in doubt
                if self._answers is None:
                    self._known.clear()
                    self._answers = Answers(await self._dial(), self._timeout)
                trouble = await self._exchange(self._answers)
            except UNREACHABLE as error:
                trouble = error
            if trouble is None:
                if self._told:
                    self._told = False
                    log.info("store_reached_again")
                continue
            await self._hang_up()
            self._lost()
            self._tell_lost(trouble)
            self._give_up(trouble)
            if self._carried:
                await self._clock.sleep(backoff.pause())

    async def _exchange(self, answers: Answers) -> BaseException | None:
        """Send the batch and hand out the answers as they come, so that callers go on while the server does the rest;
        what they want next is sent behind it. Jobs that were not done stay in the batch, and nothing more is sent
        behind them. Returns why they were not done; None: trying again at once helps."""
        trouble: BaseException | None = None
        undone: list[Job] = []
        try:
            self._send(answers, self._carried)
            while self._carried:
                if (reply := answers.gets()) is NONE:
                    if self._waiting and not undone and not answers.is_cut and (more := self._take()):
                        self._send(answers, more)
                    await answers.more()
                    continue
                if not isinstance(reply, RedisError):
                    self._carried.popleft().answer(reply)
                    continue
                if isinstance(reply, RedisConnectionError) and not isinstance(reply, BusyLoadingError):
                    raise reply
                job = self._carried.popleft()
                if not self._refused(job, reply):
                    undone.append(job)
                    trouble = reply if _is_unwilling(reply) else trouble
            answers.rest()
        finally:
            self._carried.extendleft(reversed(undone))
        return trouble

    def _send(self, answers: Answers, jobs: Iterable[Job]) -> None:
        packed = b"".join(map(pack_command, map(self._command, jobs)))  # type: ignore[arg-type]
        for job in jobs:
            job.sent = True
        answers.ask(packed)

    def _command(self, job: Job) -> tuple[Argument, ...]:
        if job.script is None:
            return (*job.arguments,)
        sha = job.script.sha
        verb, what = ("EVALSHA", sha) if sha in self._known else ("EVAL", job.script.text)
        self._known.add(sha)
        caller = self._caller
        header = (caller.owner, job.number, caller.channel)
        # The server lets a look through where it holds writes back, as for a backup.
        return (verb if job.writes else f"{verb}_RO", what, "1", job.key, *header, *job.arguments)

    def _refused(self, job: Job, reply: RedisError) -> bool:
        """Hand out an error; False: the step was not done and should be sent again."""
        if isinstance(reply, NoScriptError) or _is_unwilling(reply):
            if isinstance(reply, NoScriptError):
                self._known.clear()
            job.sent = False
            return False
        job.fail(_failure(job, reply))
        return True

    def _give_up(self, trouble: BaseException) -> None:
        """Fail the jobs that have waited too long and were certainly not done."""
        before = self._clock.monotonic() - self._patience
        keep: list[Job] = []
        lost: list[Job] = []
        for job in (*self._carried, *self._waiting):
            hopeless = job.since <= before and not (job.sent and job.writes)
            (lost if hopeless else keep).append(job)
        carried = set(self._carried)
        self._carried = deque(job for job in keep if job in carried)
        self._waiting = deque(job for job in keep if job not in carried)
        for job in lost:
            job.fail(StoreUnavailable(f"The Redis server cannot be used now: {_said(trouble)}."))

    async def _hang_up(self) -> None:
        answers, self._answers = self._answers, None
        if answers is not None:
            with contextlib.suppress(*UNREACHABLE):
                await answers.aclose()

    def _tell_lost(self, trouble: BaseException) -> None:
        if not self._told:
            self._told = True
            log.error("store_unreachable", error=_said(trouble))


def _is_unwilling(reply: Any) -> bool:
    return isinstance(reply, _UNWILLING) or (
        isinstance(reply, ResponseError) and str(reply).startswith(_UNWILLING_WORDS)
    )


def _said(error: BaseException) -> str:
    return str(error).rstrip(".") or type(error).__name__


def _failure(job: Job, error: RedisError) -> GatewayError:
    """The meaning of a server's refusal. A server refuses a whole script or no part of it."""
    text = str(error)
    if "OOM" in text or "maxmemory" in text:
        return StoreUnavailable("The Redis server is out of memory, so nothing was stored. Raise its maxmemory.")
    if "MISCONF" in text:
        return StoreUnavailable(
            "The Redis server cannot write to its disk, so nothing was stored. Free some space there."
        )
    if isinstance(error, NoPermissionError):
        return StoreUnavailable(
            f"The Redis server does not let this user do what the store needs. Give the user the right: {_said(error)}."
        )
    what = job.script.name if job.script else str(job.arguments[0])
    return StoreError(f"The store's step {what!r} failed: {text}.")
