"""The owner of one server: one task from its start to its end.

The library's cancel scopes are bound to the task that entered them, so one task opens the connection, begins every
call, and closes the connection. Calls reach it through a queue, and run side by side. Without a connection a call fails
at once. After a failure the owner waits, each time longer, and tries again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from typing import Any, Final, Literal, Protocol

import structlog
from msgspec import Struct, field

from gateway.agent.mcp.settings import McpServerSettings
from gateway.agent.tools.base import FOR_PEOPLE, AsksPerson
from gateway.domain.wording import first_of, lasting
from gateway.runtime.backoff import Backoff
from gateway.runtime.clock import Clock
from gateway.runtime.errors import ToolError
from gateway.runtime.tasks import Background, ended_before

log = structlog.get_logger(__name__)

MOST_BYTES: Final = 8 * 1024 * 1024  # of one message of a server: a large picture in base64
_FIRST_PAUSE: Final = 1.0  # seconds
_LONGEST_PAUSE: Final = 300.0
_STEADY: Final = 60.0  # seconds of a connection after which its end counts as a first failure
_AT_ONCE: Final = 16  # calls of one server
_MOST_OPEN: Final = 200
_SIGN_OF_LIFE: Final = 10.0  # seconds for a server that left a call without an answer
_REST: Final = 1.0  # seconds between two looks at a list that changes all the time
_MOST_NAMED: Final = 5  # of the tools that are left out
_LONGEST_REASON: Final = 300  # characters
_TOLD_EVERY: Final = 1.0  # seconds between two looks at how far a call is

ABSENT: Final = "The server {server} cannot be used now; {then}. Go on without it, and say so if it was needed."
BUSY: Final = "The server {server} is too busy. Try again later."
UNKNOWN: Final = (
    "so the outcome is unknown: it may or may not have taken effect. Check the present state before repeating it."
)
CUT_OFF: Final = f"The server {{server}} ended while this was running, {UNKNOWN}"
UNSENT: Final = 0  # a request that found nobody
MUTE: Final = "it no longer answers"
OUTGROWN: Final = f"the answer has more than {MOST_BYTES // 1024 // 1024} MB, and is not read"
LOG_IN: Final = "an admin of this bot sends /mcp login {server}"

GIVEN_UP: Final[Mapping[str, Any]] = {"action": "cancel"}  # MCP's answer to a question that nobody will answer
Event = Literal["changed", "lost"]
Ask = Callable[[], Awaitable[Mapping[str, Any]]]


class ServerFailed(Exception):
    """A server cannot be used now; the text says why, as a clause without a full stop."""


class LoginFailed(ServerFailed):
    """The login at a server cannot be used, so nothing was sent."""


class Refused(ToolError):
    """A remote server refused a request, and nobody knows yet whether that was about the request or about us. `why`: in
    its words. `status`: of its answer, or UNSENT."""

    def __init__(self, server: str, why: str, *, status: int, code: int) -> None:
        failed = status >= 500  # behind which a proxy may stand, which knows nothing of what was done
        super().__init__(
            f"The server {server} failed: {why}; {UNKNOWN}" if failed else f"The server {server} refused: {why}"
        )
        self.why, self.status, self.code = why, status, code

    @property
    def undone(self) -> bool:
        """Whether nothing was done: the request reached nobody, or was at fault."""
        return self.status == UNSENT or 400 <= self.status < 500

    def of_everything(self, ping: Refused | None) -> bool:
        """Whether a ping was refused for the same reason: then the request was not looked at."""
        return ping is not None and (ping.status, ping.code) == (self.status, self.code) and self.status < 500


class ToolFacts(Struct, frozen=True, kw_only=True):
    """A server's description of one of its tools. `schema`: of its arguments, as JSON. `reads`: it is no tool of the
    server's, but stands for its resources."""

    name: str
    description: str = ""
    schema: object = None
    read_only: bool = False
    idempotent: bool = False
    reads: bool = False


class PromptFacts(Struct, frozen=True, kw_only=True):
    """A server's description of one of its prompts. `arguments`: the names, each with whether it is required."""

    name: str
    description: str = ""
    arguments: tuple[tuple[str, bool], ...] = ()


class Listing(Struct, frozen=True, kw_only=True):
    """What a server offers, and what is left out of that: names with the reasons, in a few words."""

    tools: Sequence[ToolFacts] = ()
    left_out: Sequence[str] = ()
    prompts: Sequence[PromptFacts] = ()


class Beside(Struct, kw_only=True, eq=False):
    """What a server says while a call of its runs. `told` hears how far it is; `person` puts a question to the person
    of the call: both by the task that made the call. `asked` counts the questions; `refused` has what was not put to
    the person, as clauses."""

    told: Callable[[str], None] = lambda _: None
    person: AsksPerson | None = None
    asked: int = 0
    refused: list[str] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    progress: str = ""
    questions: deque[tuple[Ask, asyncio.Future[Mapping[str, Any]]]] = field(default_factory=deque)

    def hear(self, progress: str) -> None:
        """Hear how far it is, from any task."""
        self.progress = progress
        self.news.set()

    async def within(self, ask: Ask) -> Mapping[str, Any]:
        """Have a question put by the task that made the call, from any task."""
        answered: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self.questions.append((ask, answered))
        self.news.set()
        return await answered

    def settle(self, said: Mapping[str, Any]) -> None:
        """Answer the first question, if the server still waits for that."""
        _, answered = self.questions.popleft()
        if not answered.done():
            answered.set_result(said)


class Link(Protocol):
    """An open connection to a server."""

    async def tools(self) -> Listing:
        """Everything that the server offers. Raises ServerFailed."""

    async def ask(self, method: str, params: Mapping[str, Any], beside: Beside) -> Mapping[str, Any]:
        """The result of a request, as JSON has it. A cancellation is told to the server. Raises ToolError,
        and Refused where nobody knows yet whether the server refuses this request or whatever we ask."""

    async def alive(self) -> None:
        """Return when the server answers anything. Raises ServerFailed, and Refused as `call` does."""


Hear = Callable[[Event, str], None]
"""Called by a connection: a list has changed, or the connection is lost, with the reason."""

Connect = Callable[[str, McpServerSettings, Hear], AbstractAsyncContextManager[Link]]


class _Call(Struct, eq=False):
    """`begun`: the server was asked. `again`: it waits for a second connection, or was made on it."""

    method: str
    params: Mapping[str, Any]
    beside: Beside
    answer: asyncio.Future[Mapping[str, Any]]
    job: asyncio.Task[None] | None = None
    begun: bool = False
    refusal: Refused | None = None
    again: bool = False

    def is_undone(self, ping: Refused | None) -> bool:
        """Whether it has certainly taken no effect. `ping`: how the server refused one, if it did."""
        return not self.begun or (
            self.refusal is not None and (self.refusal.undone or self.refusal.of_everything(ping))
        )

    def fail(self, why: str) -> None:
        if not self.answer.done():
            self.answer.set_exception(ToolError(why))


class _Heard(Struct, frozen=True):
    event: Event
    why: str
    connection: int  # an earlier one's news are of no interest


class McpServer(Struct, kw_only=True, eq=False):
    """One server. `load` gives the connector: the library is large, and is loaded when first needed. `offered` is
    called with what the server offers. `failure`: why it cannot be used now; "" while it is used or started."""

    name: str
    settings: McpServerSettings
    load: Callable[[], Awaitable[Connect]]
    offered: Callable[[Listing], None]
    clock: Clock
    redact: Callable[[str], str]
    warns: bool = True  # whether the operator reads of failures in the log
    settled: asyncio.Event = field(default_factory=asyncio.Event)  # the first attempt has succeeded or failed
    known: frozenset[str] = frozenset()  # its own names of its tools
    left_out: Sequence[str] = ()  # of its present list
    ready: bool = False
    failure: str = ""
    _retry_at: float = 0.0
    _warned_of: str = ""
    _connection: int = 0
    _outdated: bool = False  # the list of tools
    _news: bool = False  # of a change of the list, in the queue
    _refused_ping: Refused | None = None  # on this connection
    _is_lost: bool = False  # this connection
    _now: asyncio.Event = field(default_factory=asyncio.Event)  # the next attempt need not wait
    _queue: asyncio.Queue[_Call | _Heard] = field(default_factory=asyncio.Queue)
    _open: set[_Call] = field(default_factory=set)
    _backoff: Backoff = field(default_factory=lambda: Backoff(_FIRST_PAUSE, _LONGEST_PAUSE))

    @property
    def lacks(self) -> str:
        """The tools that are left out, each with the reason, as a clause; "" where all are used."""
        return first_of(self.left_out, _MOST_NAMED)

    @property
    def pause(self) -> float:
        """The seconds to the next attempt."""
        return max(0.0, self._retry_at - self.clock.monotonic())

    async def ask(self, method: str, params: Mapping[str, Any], beside: Beside | None = None) -> Mapping[str, Any]:
        """The result of a request. Where the server cannot be used, it fails at once; it waits for one that starts, and
        for a second connection if the first turns out to be lost before it was made. While a person is asked, time
        does not count. Raises ToolError."""
        if self.failure:
            raise ToolError(self._absent())
        if len(self._open) >= _MOST_OPEN:
            raise ToolError(BUSY.format(server=self.name))
        beside = beside or Beside()
        call = _Call(method, params, beside, asyncio.get_running_loop().create_future())
        call.answer.add_done_callback(lambda _: beside.news.set())
        self._open.add(call)
        self._queue.put_nowait(call)
        seconds, told_until = self.settings.timeout, 0.0
        try:
            async with self.clock.limit(seconds) as limit:
                while not call.answer.done():
                    await beside.news.wait()
                    beside.news.clear()
                    if beside.progress and self.clock.monotonic() >= told_until:
                        told_until = self.clock.monotonic() + _TOLD_EVERY
                        beside.told(beside.progress)
                    while beside.questions:
                        limit.extend(FOR_PEOPLE)
                        said = await beside.questions[0][0]()
                        limit.extend(seconds)
                        beside.settle(said)
                return call.answer.result()
        except TimeoutError:
            raise ToolError(f"The server {self.name} did not answer within {seconds:g} seconds.") from None
        finally:
            self._open.discard(call)
            while beside.questions:
                beside.settle(GIVEN_UP)
            call.answer.cancel()
            if call.job is not None:
                call.job.cancel()

    async def serve(self) -> None:
        """Keep the server connected, for ever."""
        while True:
            since = self.clock.monotonic()
            try:
                reason = await self._connected()
            except TimeoutError:
                reason = f"it was not ready within {self.settings.start_timeout:g} seconds"
            except Exception as error:
                # The library and the server are foreign: whatever they raise ends this connection and nothing else.
                reason = told(error)
            finally:
                was_ready, self.ready = self.ready, False
            if self.clock.monotonic() - since >= _STEADY:
                self._backoff.reset()
            pause = self._backoff.pause()
            self.failure = self.settings.hidden(self.redact(reason))[:_LONGEST_REASON]
            self._retry_at = self.clock.monotonic() + pause
            self._fail_open_calls(was_ready)
            self.settled.set()
            self._warn(pause)
            await ended_before(partial(self.clock.sleep, pause), self._now)
            self._now.clear()

    async def begin_anew(self) -> None:
        """Begin a new connection now, because a login came or went; return when that has succeeded or failed."""
        self.settled.clear()
        self._backoff.reset()
        self._now.set()
        self._hear(self._connection, "lost", "its login has changed")
        await self.settled.wait()

    async def _connected(self) -> str:
        """Connect, and serve the connection to its end. Returns why it ended; raises anything."""
        connect = await self.load()
        self._connection += 1
        self._refused_ping, self._is_lost = None, False
        hear = partial(self._hear, self._connection)
        async with AsyncExitStack() as connection:
            async with self.clock.limit(self.settings.start_timeout):
                link = await connection.enter_async_context(connect(self.name, self.settings, hear))
                await self._list(link)
            self.settled.set()
            self.ready, self.failure, self._warned_of = True, "", ""
            log.info("mcp_server_ready", server=self.name)
            return await self._run(link)
        return MUTE  # not reached: a connection swallows nothing

    async def _run(self, link: Link) -> str:
        """Begin the work that the queue brings. Returns why the connection ended."""
        jobs, room = Background(), asyncio.Semaphore(_AT_ONCE)
        try:
            while True:
                todo = await self._queue.get()
                if isinstance(todo, _Heard) and todo.event == "changed":
                    self._news = False
                if isinstance(todo, _Call):
                    if not todo.answer.done():
                        todo.job = jobs.start(self._answer(link, todo, room, jobs), name=f"mcp {self.name}")
                elif todo.connection != self._connection:
                    continue
                elif todo.event == "lost":
                    return todo.why
                else:
                    self._outdated = True
                    jobs.start_once(self._list_again(link), name="list")
        finally:
            await jobs.aclose()

    async def _answer(self, link: Link, call: _Call, room: asyncio.Semaphore, jobs: Background) -> None:
        try:
            async with room:
                call.begun = True
                result = await link.ask(call.method, call.params, call.beside)
        except Refused as refusal:
            await self._refused(link, call, refusal)
        except ToolError as error:
            call.fail(self.settings.hidden(str(error)))
        except asyncio.CancelledError:
            if call.answer.done():  # its caller had no more time for it
                jobs.start_once(self._look(link), name="look")
            raise
        except Exception as error:
            log.warning(
                "mcp_call_failed", server=self.name, method=call.method, error=self.settings.hidden(told(error))
            )
            call.fail(f"The server {self.name} failed to answer ({type(error).__name__}).")
        else:
            if not call.answer.done():
                call.answer.set_result(result)

    async def _refused(self, link: Link, call: _Call, refusal: Refused) -> None:
        """Find out whom a server refuses: this call, or us, because it was started anew and does not know us. Servers
        say so in many ways; all of them refuse a ping in the same way."""
        call.refusal = refusal
        if call.again:
            call.fail(self.settings.hidden(str(refusal)))
            return
        await self._look(link)
        if not self._is_lost:
            call.fail(self.settings.hidden(str(refusal)))

    async def _list_again(self, link: Link) -> None:
        while self._outdated:
            self._outdated = False
            try:
                async with self.clock.limit(self.settings.start_timeout):
                    await self._list(link)
            except (TimeoutError, ServerFailed):
                self._hear(self._connection, "lost", MUTE)
                return
            await self.clock.sleep(_REST)

    async def _list(self, link: Link) -> None:
        listing = await link.tools()
        self.known = frozenset(each.name for each in listing.tools)
        if self.left_out != listing.left_out:
            self.left_out = listing.left_out
            tell = log.warning if self.warns and self.left_out else log.info
            tell("mcp_tools_left_out", server=self.name, tools=self.left_out[:_MOST_NAMED])
        self.offered(listing)

    async def _look(self, link: Link) -> None:
        """Find out whether a server that left a call without an answer, or refused it, still answers us."""
        try:
            async with self.clock.limit(_SIGN_OF_LIFE):
                await link.alive()
        except Refused as refusal:
            self._refused_ping = refusal
            self._lose(refusal.why if refusal.status == UNSENT else f"it refuses everything: {refusal.why}")
        except (TimeoutError, ServerFailed):
            self._lose(MUTE)

    def _lose(self, why: str) -> None:
        self._is_lost = True
        self._hear(self._connection, "lost", why)

    def _hear(self, connection: int, event: Event, why: str) -> None:
        if event == "changed":
            if self._news:
                return  # a server may say so without an end
            self._news = True
        self._queue.put_nowait(_Heard(event, why, connection))

    def _fail_open_calls(self, was_ready: bool) -> None:
        """Fail the calls of a lost connection, except those that were not made: they wait for the next one."""
        absent = self._absent()
        for call in self._open:
            if not call.is_undone(self._refused_ping):
                call.fail(self.settings.hidden(str(call.refusal or CUT_OFF.format(server=self.name))))
            elif call.again or not was_ready:
                call.fail(absent)
            else:
                call.again, call.begun = True, False
                if call.job is not None:
                    call.job = None
                    self._queue.put_nowait(call)

    def _absent(self) -> str:
        then = f"the next attempt is in {lasting(max(1.0, self.pause))}" if self.pause else "it is being started again"
        if LOG_IN.format(server=self.name) in self.failure:
            then = self.failure
        return ABSENT.format(server=self.name, then=then)

    def _warn(self, pause: float) -> None:
        """Tell the operator, but not of each attempt that fails for the same reason."""
        tell = log.warning if self.warns and self.failure != self._warned_of else log.info
        self._warned_of = self.failure
        tell("mcp_server_unusable", server=self.name, reason=self.failure, next_attempt_in=pause)


def told(error: BaseException) -> str:
    """A foreign error in a few words; of a group of errors the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) if isinstance(error, ServerFailed) else f"{type(error).__name__}: {error}"


async def reason_of(work: Awaitable[str]) -> str:
    """What foreign work gives, or why it failed, in a few words."""
    try:
        return await work
    except Exception as error:
        return told(error)
