"""Connections to servers, by the library `mcp`. No other module than this and `address.py` knows it: loading it takes a
second.

A server's own requests (for a model's words, our folders, a person's answers) are refused: no such ability is
announced, and the library answers that it is not supported."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from math import inf, isfinite
from pathlib import Path
from typing import Any, Final

import anyio
import mcp_types as types
import structlog
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.dispatcher import CallOptions, OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp.shared.transport_context import TransportContext
from mcp_types.methods import parse_server_result
from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType
from msgspec.json import Decoder
from pydantic import TypeAdapter, ValidationError

import gateway
from gateway.agent.mcp.address import LONGEST_REFUSAL, STATUS, AddressClient, hush
from gateway.agent.mcp.elicitation import Elicitation
from gateway.agent.mcp.login import Learn, Login
from gateway.agent.mcp.process import ServerProcess, in_sandbox, plainly
from gateway.agent.mcp.server import (
    CUT_OFF,
    MOST_BYTES,
    OUTGROWN,
    Beside,
    Event,
    Hear,
    Link,
    Listing,
    PromptFacts,
    Refused,
    ServerFailed,
    ToolFacts,
)
from gateway.agent.mcp.servers import login_file
from gateway.agent.mcp.settings import McpServerSettings
from gateway.agent.mcp.tools import resources_tool
from gateway.domain.chat import one_line
from gateway.runtime.clock import Clock
from gateway.runtime.errors import ToolError
from gateway.runtime.proxy import ForwardProxy

log = structlog.get_logger(__name__)


class _Head(Struct, frozen=True):
    """A message, as far as it says what it is."""

    id: Raw | UnsetType = UNSET
    method: str | UnsetType = UNSET

    @property
    def is_news(self) -> bool:
        """Whether nobody waits for it, and it wants no answer."""
        return self.method is not UNSET and self.id is UNSET


_MOST_TOOLS: Final = 1_000
_LONGEST_NAME: Final = 64  # characters of a tool's name, as people read it
_CONTENT: Final = ("content", "structuredContent", "_meta", "isError")  # of a result
_ANYTHING: Final = TypeAdapter[Any](Any)
_CHANGED: Final = frozenset(f"notifications/{each}/list_changed" for each in ("tools", "prompts", "resources"))
_PROGRESS: Final = "notifications/progress"
_PROGRESS_EVERY: Final = 1.0  # seconds: more of it is passed over
_MOST_PROMPTS: Final = 50
_LONGEST_TOLD: Final = 60  # characters of what a person reads beside other things
_LISTS: Final = 5.0  # seconds for the lists of what is no tool
_HEAD: Final = Decoder(_Head)
_MOST_ASKED: Final = 300  # requests of a server
_WITHIN: Final = 60.0  # so many seconds
_READ: Final = ("name", "title", "description", "inputSchema", "annotations")  # of a tool
_MOST_NOISE: Final = 1_000  # lines on stdout that are no messages
_OK: Final = 200
_TOO_MANY: Final = 429
_ENDS: Final = ("Connection closed", "SSE stream")  # the beginnings of the library's own words
_EVENT_OUTGROWN: Final = f"exceeded the {MOST_BYTES} byte limit"  # as the library says it

_Read = MemoryObjectReceiveStream[SessionMessage | Exception]
_Write = MemoryObjectSendStream[SessionMessage]


class Connector(Struct, frozen=True, kw_only=True):
    """Connects to servers: a `Connect`. `folder` has a folder for each server in a sandbox, none of which is lent
    what is `own`, the gateway's; they reach their hosts by the `proxy`, or one of their own. `learn` is told the
    secrets of logins."""

    clock: Clock
    redact: Callable[[str], str]
    folder: Path = Path("mcp")
    own: Sequence[Path] = ()
    proxy: ForwardProxy | None = None
    learn: Learn = lambda _: None

    @asynccontextmanager
    async def __call__(self, name: str, settings: McpServerSettings, hear: Hear) -> AsyncIterator[Link]:
        """A connection, which is closed by the task that opened it."""
        hush()
        reasons: list[str] = []  # why the connection was lost, also before anybody listens

        def heard(event: Event, why: str) -> None:
            if event == "lost":
                reasons.append(why)
            hear(event, why)

        async with AsyncExitStack() as stack:
            client: AddressClient | None = None
            if settings.url:
                kept = login_file(self.folder, name)
                login = Login(kept, settings, self.clock, self.learn) if settings.may_log_in else None
                client = await stack.enter_async_context(AddressClient(name, settings, login))
                read, write = await stack.enter_async_context(
                    streamable_http_client(settings.url, http_client=client, max_sse_event_size=MOST_BYTES)
                )
            else:
                launch = plainly(settings)
                if settings.sandbox:
                    proxy = self.proxy or ForwardProxy(clock=self.clock)
                    opened = in_sandbox(name, settings, self.folder / name, self.own, proxy)
                    launch = await stack.enter_async_context(opened)
                process = await ServerProcess.start(name, launch, clock=self.clock, redact=self.redact)
                stack.push_async_callback(process.end)
                read, write = await stack.enter_async_context(_streams(process, heard))
            channel = _Channel(name, JSONRPCDispatcher(read, write), heard, self.clock, read.aclose)
            session = await stack.enter_async_context(
                ClientSession(
                    dispatcher=channel,
                    elicitation_callback=channel.elicit,
                    client_info=types.Implementation(name="legato", version=gateway.__version__),
                )
            )
            try:
                await _greet(session)
            except MCPError as error:
                raise ServerFailed(reasons[0] if reasons else f"it refused the greeting: {_words(error)}") from error
            if client is not None:
                client.greeted = True
            yield _SessionLink(name, session, channel, remote=client is not None)


async def _greet(session: ClientSession) -> None:
    """Agree on a version. Almost all servers know the older greeting, and some end at a newer one."""
    try:
        await session.initialize()
    except MCPError as error:
        if error.error.code not in (types.UNSUPPORTED_PROTOCOL_VERSION, types.METHOD_NOT_FOUND):
            raise
        await session.discover()


class _Unread(dict[str, Any]):
    """The result of a call, as far as the library looks at it, which would walk through all of it four times. `whole`:
    as it came; we read it ourselves."""

    def __init__(self, whole: dict[str, Any]) -> None:
        super().__init__({name: each for name, each in whole.items() if name not in _CONTENT}, content=[])
        self.whole = whole


class _Channel:
    """The library's own traffic with a server, without what would cost more than itself: of a server's notifications
    only those that we heed, and of its list of tools those that are tools. `left_out`: the others. `open`: the calls
    that run."""

    def __init__(
        self,
        name: str,
        inner: JSONRPCDispatcher[TransportContext],
        hear: Hear,
        clock: Clock,
        close: Callable[[], Awaitable[None]],
    ) -> None:
        self.name = name
        self._inner, self._hear, self.clock, self._close = inner, hear, clock, close
        self._asked, self._since = 0, clock.monotonic()
        self.open: list[Beside] = []
        self.version = types.LATEST_PROTOCOL_VERSION
        self.left_out: list[str] = []

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        result = await self._inner.send_raw_request(method, params, opts)
        match method:
            case "tools/list":
                return self._sorted_out(result)
            case "tools/call":
                return _Unread(result)
        return result

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        await self._inner.notify(method, params, opts)

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Hear the server until one of us closes the connection."""

        async def counted(ctx: Any, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
            await self._count()
            return await on_request(ctx, method, params)

        await self._inner.run(counted, on_notify, self._heed, task_status=task_status)
        self._hear("lost", "its connection is closed")

    async def elicit(self, context: object, params: types.ElicitRequestParams) -> types.ElicitResult | types.ErrorData:
        """Let the person of the running call be asked. If several calls run, nobody knows whom."""
        asking = [each for each in self.open if each.person is not None]
        if len(asking) != 1:
            return types.ErrorData(code=types.INVALID_REQUEST, message="It is not clear whom to ask.")
        question = params.model_dump(by_alias=True, mode="json", exclude_none=True)
        elicitation = Elicitation(server=self.name, beside=asking[0])
        return types.ElicitResult.model_validate(await asking[0].within(partial(elicitation.ask, question)))

    async def _count(self) -> None:
        """Each answer waits until the server reads it, which a server that asks without an end may never do."""
        now = self.clock.monotonic()
        if now - self._since > _WITHIN:
            self._asked, self._since = 0, now
        self._asked += 1
        if self._asked == _MOST_ASKED:
            self._hear("lost", "it keeps asking without end")
            await self._close()

    def _heed(self, method: str, _: Mapping[str, Any] | None) -> bool:
        if method in _CHANGED:
            self._hear("changed", "")
        return True

    def _sorted_out(self, page: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(page.get("tools"), list):
            return page
        of_page = {key: page[key] for key in page.keys() - {"tools", "nextCursor", "_meta"}}
        tools: list[Any] = []
        for number, given in enumerate(page["tools"], 1):
            tool = (
                {key: given[key] for key in _READ if given.get(key) is not None} if isinstance(given, dict) else given
            )
            try:
                parse_server_result("tools/list", self.version, {**of_page, "tools": [tool]})
            except ValidationError as error:
                name = tool.get("name") if isinstance(tool, dict) else None
                self.left_out.append(f"{_called(name, number)} ({_words(error).removeprefix('tools.0.')})")
            else:
                tools.append(tool)
        cursor = page.get("nextCursor")
        return {**of_page, "tools": tools, **({"nextCursor": cursor} if isinstance(cursor, str) else {})}


class _SessionLink(Struct, frozen=True):
    """`remote`: the server has an address, and may forget a session that goes on here."""

    name: str
    session: ClientSession
    channel: _Channel
    remote: bool

    async def tools(self) -> Listing:
        able = self.session.server_capabilities
        prompts = await self._prompts() if able and able.prompts else []
        more = [resources_tool(self.name)] if able and able.resources and await self._has_resources() else []
        if able is None or able.tools is None:
            return Listing(tools=more, prompts=prompts)
        self.channel.version = self.session.protocol_version or self.channel.version
        self.channel.left_out = []
        found: dict[str, ToolFacts] = {}
        cursor: str | None = None
        passed: set[str | None] = set()
        while cursor not in passed and len(found) + len(self.channel.left_out) < _MOST_TOOLS > len(passed):
            passed.add(cursor)
            try:
                page = await self.session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
            except (MCPError, ValidationError) as error:
                raise ServerFailed(f"its list of tools cannot be read: {_words(error)}") from error
            found.update((tool.name, _facts(tool)) for tool in page.tools)
            cursor = page.next_cursor or None
        if cursor not in passed:
            self.channel.left_out.append(f"whatever comes behind ({_MOST_TOOLS:,} tools are enough)")
        tools = [*[each for each in more if each.name not in found], *found.values()][:_MOST_TOOLS]
        return Listing(tools=tools, left_out=tuple(self.channel.left_out), prompts=prompts)

    async def _prompts(self) -> list[PromptFacts]:
        """The server's prompts, of which the first page is enough; none if they cannot be read."""
        with suppress(MCPError, ValidationError, TimeoutError):
            async with self.channel.clock.limit(_LISTS):
                return [*map(_prompt, (await self.session.list_prompts()).prompts[:_MOST_PROMPTS])]
        return []

    async def _has_resources(self) -> bool:
        with suppress(MCPError, ValidationError, TimeoutError):
            async with self.channel.clock.limit(_LISTS):
                there = bool((await self.session.list_resources()).resources)
                return there or bool((await self.session.list_resource_templates()).resource_templates)
        return False

    async def ask(self, method: str, params: Mapping[str, Any], beside: Beside) -> Mapping[str, Any]:
        async def told(progress: float, total: float | None, message: str | None) -> None:
            beside.hear(_progress(progress, total, message))

        request = types.Request[dict[str, Any], str](method=method, params={**params})
        self.channel.open.append(beside)
        try:
            # Not `call_tool`, which checks a result against the server's own schema, patterns included.
            result = await self.session.send_request(request, _ANYTHING, progress_callback=told)
        except MCPError as error:
            if any(words in error.error.message for words in (OUTGROWN, _EVENT_OUTGROWN)):
                raise ToolError(f"The server {self.name} has done it, but {OUTGROWN}.") from None
            if _is_end(error):
                raise ToolError(CUT_OFF.format(server=self.name)) from None
            raise self._refused(error) from None
        except ValidationError as error:
            raise ToolError(f"The answer of the server {self.name} cannot be read: {_words(error)}.") from None
        finally:
            self.channel.open.remove(beside)
        return result.whole if isinstance(result, _Unread) else dict(result)

    async def alive(self) -> None:
        try:
            await self.session.send_ping()
        except MCPError as error:
            if _is_end(error):
                raise ServerFailed("its connection is closed") from error
            refusal = self._refused(error)
            known = (_OK, types.METHOD_NOT_FOUND)
            if isinstance(refusal, Refused) and (refusal.status, refusal.code) != known and refusal.status != _TOO_MANY:
                raise refusal from None

    def _refused(self, error: MCPError) -> ToolError:
        if not self.remote:
            return ToolError(f"The server {self.name} refused: {_words(error)}")
        data = error.error.data
        status = data.get(STATUS) if isinstance(data, dict) else None
        status = status if isinstance(status, int) else _OK
        return Refused(self.name, _words(error), status=status, code=error.error.code)


def _is_end(error: MCPError) -> bool:
    """Whether the library says that an answer can never come. Servers use the same code for other things."""
    return error.error.code == types.CONNECTION_CLOSED and error.error.message.startswith(_ENDS)


def _called(name: object, number: int) -> str:
    return (one_line(name[:_LONGEST_NAME]) if isinstance(name, str) else "") or f"number {number}"


def _facts(tool: types.Tool) -> ToolFacts:
    hints = tool.annotations
    read_only = bool(hints and hints.read_only_hint and not hints.destructive_hint)
    return ToolFacts(
        name=tool.name,
        description=tool.description or tool.title or "",
        schema=tool.input_schema,
        read_only=read_only,
        idempotent=bool(hints and hints.idempotent_hint),
    )


def _prompt(prompt: types.Prompt) -> PromptFacts:
    arguments = [(each.name, bool(each.required)) for each in prompt.arguments or ()]
    told = one_line(prompt.description or prompt.title or "", _LONGEST_TOLD)
    return PromptFacts(name=prompt.name, description=told, arguments=tuple(arguments))


def _progress(done: float, total: float | None, message: str | None) -> str:
    share = f"{done / total:.0%}" if total and 0 <= done <= total < inf else f"{done:g}" if isfinite(done) else ""
    return one_line(" ".join(filter(None, (share, message))), _LONGEST_TOLD)


def _words(error: MCPError | ValidationError) -> str:
    if isinstance(error, MCPError):
        return str(error.error.message)[:LONGEST_REFUSAL]
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))[:200]} is not what MCP wants ({first['msg'][:200]})"


# --- a process -------------------------------------------------------------------------------


@asynccontextmanager
async def _streams(process: ServerProcess, hear: Hear) -> AsyncIterator[tuple[_Read, _Write]]:
    """A server's standard streams as the library wants them."""
    received, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, sent = anyio.create_memory_object_stream[SessionMessage](0)
    async with received, read, write, sent, anyio.create_task_group() as group:
        group.start_soon(_receive, process, received, hear)
        group.start_soon(_send, process, sent, hear)
        group.start_soon(process.log)
        group.start_soon(process.watch, hear)
        try:
            yield read, write
        finally:
            group.cancel_scope.cancel()


async def _receive(
    process: ServerProcess, received: MemoryObjectSendStream[SessionMessage | Exception], hear: Hear
) -> None:
    """Pass on the server's messages until it ends, if somebody waits for them or must answer. Whatever else it prints
    is ignored."""
    noise, last = 0, -_PROGRESS_EVERY

    def due() -> bool:
        nonlocal last
        now = process.clock.monotonic()
        if now - last < _PROGRESS_EVERY:
            return False
        last = now
        return True

    async with received:
        try:
            async for line in process.lines():
                head = _head(line)
                if head is not None and head.is_news and not (head.method == _PROGRESS and due()):
                    if head.method in _CHANGED:
                        hear("changed", "")
                    continue
                if (message := _message(line)) is not None:
                    await received.send(message)
                else:
                    noise += 1
                    if noise == 1:
                        log.warning("mcp_server_prints", server=process.name, hint="only messages belong on its stdout")
                    if noise > _MOST_NOISE:
                        hear("lost", "it prints something that is not a message")
                        return
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # the connection is being closed
        except ServerFailed as error:
            hear("lost", str(error))
            return
        hear("lost", await process.ended("it closed its output"))


def _head(line: bytes) -> _Head | None:
    """The beginning of a message; None if the line is not one, or is nested too deeply."""
    try:
        return _HEAD.decode(line)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _message(line: bytes) -> SessionMessage | None:
    """A message of the server; None if the line is not one."""
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        return None


async def _send(process: ServerProcess, sent: MemoryObjectReceiveStream[SessionMessage], hear: Hear) -> None:
    async with sent:
        try:
            async for message in sent:
                plain = message.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
                await process.write(json.dumps(plain, ensure_ascii=False).encode("utf-8", "replace"))
        except ServerFailed as error:
            hear("lost", await process.ended(str(error)))  # as a rule it has just ended
