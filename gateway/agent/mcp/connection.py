"""Connections to servers, by the library `mcp`. No other module than this and `address.py` knows it: loading it takes a
second.

A server's own requests (for a model's words, our folders, a person's answers) are refused: no such ability is
announced, and the library answers that it is not supported."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, Final

import anyio
import mcp_types as types
import structlog
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.session import ClientSession, IncomingMessage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from msgspec import Struct
from pydantic import ValidationError

import gateway
from gateway.agent.mcp.address import LONGEST_REFUSAL, OUTGROWN, STATUS, AddressClient
from gateway.agent.mcp.process import ServerProcess, TooLong
from gateway.agent.mcp.server import CUT_OFF, MOST_BYTES, Event, Hear, Link, Refused, ServerFailed, ToolFacts
from gateway.agent.mcp.settings import McpServerSettings
from gateway.runtime.clock import Clock
from gateway.runtime.errors import ToolError

log = structlog.get_logger(__name__)

_MOST_PAGES: Final = 20
_MOST_TOOLS: Final = 200
_MOST_NOISE: Final = 1_000  # lines on stdout that are no messages
_ID: Final = re.compile(rb'"id"\s*:\s*(\d{1,15})\s*[,}]')
_OK: Final = 200
_TOO_MANY: Final = 429
_ENDS: Final = ("Connection closed", "SSE stream")  # the beginnings of the library's own words
_EVENT_OUTGROWN: Final = f"exceeded the {MOST_BYTES} byte limit"  # as the library says it

_Read = MemoryObjectReceiveStream[SessionMessage | Exception]
_Write = MemoryObjectSendStream[SessionMessage]


class Connector(Struct, frozen=True, kw_only=True):
    """Connects to servers: a `Connect`."""

    clock: Clock
    redact: Callable[[str], str]

    @asynccontextmanager
    async def __call__(self, name: str, settings: McpServerSettings, hear: Hear) -> AsyncIterator[Link]:
        """A connection, which is closed by the task that opened it."""
        for logger in ("mcp", "client"):  # the library's: it writes a traceback for whatever a server does wrong
            logging.getLogger(logger).setLevel(logging.CRITICAL)
        reasons: list[str] = []  # why the connection was lost, also before anybody listens

        def heard(event: Event, why: str) -> None:
            if event == "lost":
                reasons.append(why)
            hear(event, why)

        async with AsyncExitStack() as stack:
            client: AddressClient | None = None
            if settings.url:
                client = await stack.enter_async_context(AddressClient(settings))
                read, write = await stack.enter_async_context(
                    streamable_http_client(settings.url, http_client=client, max_sse_event_size=MOST_BYTES)
                )
            else:
                process = await ServerProcess.start(name, settings, clock=self.clock, redact=self.redact)
                stack.push_async_callback(process.end)
                read, write = await stack.enter_async_context(_streams(process, heard))
            session = await stack.enter_async_context(
                ClientSession(
                    read,
                    write,
                    message_handler=partial(_note, heard),
                    client_info=types.Implementation(name="legato", version=gateway.__version__),
                )
            )
            try:
                await _greet(session)
            except MCPError as error:
                raise ServerFailed(reasons[0] if reasons else f"it refused the greeting: {_words(error)}") from error
            if client is not None:
                client.greeted = True
            yield _SessionLink(name, session, remote=client is not None)


async def _greet(session: ClientSession) -> None:
    """Agree on a version. Almost all servers know the older greeting, and some end at a newer one."""
    try:
        await session.initialize()
    except MCPError as error:
        if error.error.code not in (types.UNSUPPORTED_PROTOCOL_VERSION, types.METHOD_NOT_FOUND):
            raise
        await session.discover()


async def _note(hear: Hear, message: IncomingMessage) -> None:
    if isinstance(message, types.ToolListChangedNotification):
        hear("changed", "")


class _SessionLink(Struct, frozen=True):
    """`remote`: the server has an address, and may forget a session that goes on here."""

    name: str
    session: ClientSession
    remote: bool

    async def tools(self) -> Sequence[ToolFacts]:
        found: list[ToolFacts] = []
        if (able := self.session.server_capabilities) is None or able.tools is None:
            return found
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            try:
                page = await self.session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
            except (MCPError, ValidationError) as error:
                raise ServerFailed(f"its list of tools cannot be read: {_words(error)}") from error
            found += map(_facts, page.tools)
            cursor = page.next_cursor
            if not cursor or len(found) >= _MOST_TOOLS:
                break
        return found[:_MOST_TOOLS]

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        params = types.CallToolRequestParams(name=tool, arguments=dict(arguments))
        try:
            # Not `call_tool`, which checks a result against the server's own schema, patterns included.
            result = await self.session.send_request(types.CallToolRequest(params=params), types.CallToolResult)
        except MCPError as error:
            if any(words in error.error.message for words in (OUTGROWN, _EVENT_OUTGROWN)):
                raise ToolError(f"The server {self.name} has done it, but {OUTGROWN}.") from None
            if _is_end(error):
                raise ToolError(CUT_OFF.format(server=self.name)) from None
            raise self._refused(error) from None
        except ValidationError as error:
            raise ToolError(f"The answer of the server {self.name} cannot be read: {_words(error)}.") from None
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)

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
    """Say whether the library says that an answer can never come. Servers use the same code for other things."""
    return error.error.code == types.CONNECTION_CLOSED and error.error.message.startswith(_ENDS)


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
        try:
            yield read, write
        finally:
            group.cancel_scope.cancel()


async def _receive(
    process: ServerProcess, received: MemoryObjectSendStream[SessionMessage | Exception], hear: Hear
) -> None:
    """Hand on the server's messages until it ends. Whatever else it prints is passed over."""
    noise = 0
    async with received:
        try:
            async for line in process.lines():
                message = _refusal(line) if isinstance(line, TooLong) else _message(line)
                if message is not None:
                    await received.send(message)
                elif line:
                    noise += 1
                    if noise == 1:
                        log.warning("mcp_server_prints", server=process.name, hint="only messages belong on its stdout")
                    if noise > _MOST_NOISE:
                        hear("lost", "it prints what is no message")
                        return
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # the connection is being closed
        hear("lost", await process.ended("it closed its output"))


def _message(line: bytes) -> SessionMessage | None:
    """A message of the server; None for a line that is none."""
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        return None


def _refusal(line: TooLong) -> SessionMessage | None:
    """Return an answer in place of one that was not read; None if nobody can tell whose answer that was. The number
    of a request stands at the beginning of an answer or at its end."""
    found = _ID.findall(line.ends)
    if not found:
        return None
    error = types.ErrorData(code=types.INTERNAL_ERROR, message=OUTGROWN)
    return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=int(found[0]), error=error))


async def _send(process: ServerProcess, sent: MemoryObjectReceiveStream[SessionMessage], hear: Hear) -> None:
    async with sent:
        try:
            async for message in sent:
                plain = message.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
                await process.write(json.dumps(plain, ensure_ascii=False).encode("utf-8", "replace"))
        except ServerFailed as error:
            hear("lost", await process.ended(str(error)))  # as a rule it has just ended
