"""All servers of the configuration."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gateway.agent.mcp.server import Connect, McpServer, ToolFacts
from gateway.agent.mcp.settings import ANY, McpServerSettings
from gateway.agent.mcp.tool_lists import ToolLists
from gateway.agent.mcp.tools import made_safe, tools_of
from gateway.agent.tools.base import Tool
from gateway.agent.tools.offer import Toolbox
from gateway.agent.tools.shell import lent_of
from gateway.domain.adapter import Finding
from gateway.domain.wording import counted, lasting
from gateway.runtime.clock import Clock
from gateway.runtime.plugins import imported
from gateway.runtime.tasks import Background

CONNECTOR: Final = "gateway.agent.mcp.connection:Connector"  # which loads the library
_WHAT: Final = "MCP server"
_LISTED: Final = 40  # tools
_PATIENCE: Final = 5.0  # seconds that a turn waits for servers


@dataclass(slots=True, kw_only=True)
class McpServers:
    """The servers that are switched on. Their tools come to stand in the `toolbox`, those of the kept `lists` at once.
    `connect` stands in for the library."""

    settings: Mapping[str, McpServerSettings]
    toolbox: Toolbox
    lists: ToolLists
    clock: Clock
    redact: Callable[[str], str]
    connect: Connect | None = None
    own: Sequence[Path] = ()  # what is lent to none in a sandbox
    servers: Sequence[McpServer] = field(init=False)
    offered: dict[str, Sequence[Tool]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, each in self.settings.items():
            list(lent_of(each.folders, self.own, f"tools.mcp.{name}.folders"))  # a mistake is told at the start
        self.servers = [self._server(name, each) for name, each in self.settings.items() if each.enabled]

    async def serve(self) -> None:
        """Keep all servers connected until this is cancelled; then end them."""
        owners = Background()
        try:
            for server in self.servers:
                owners.start(server.serve(), name=f"mcp {server.name}")
            await owners.idle()
        finally:
            await owners.aclose()

    async def first_tried(self) -> None:
        """Return when each server whose tools nobody knows has had its first attempt, or after a few seconds. One that
        failed, and one whose tools are known of the last start, is not waited for."""
        with suppress(TimeoutError):
            async with self.clock.limit(_PATIENCE):
                for server in self.servers:
                    if not self.offered[server.name]:
                        await server.settled.wait()

    def troubled(self) -> Iterator[tuple[str, str]]:
        """The servers that cannot be used now, or not with all of their tools, each with how it is, for people."""
        for server in self.servers:
            if server.failure:
                then = (
                    f"the next attempt is in {lasting(max(1.0, server.pause), short=True)}"
                    if server.pause
                    else "it is tried again just now"
                )
                yield server.name, f"not usable: {server.failure}; {then}"
            elif not server.ready:
                yield server.name, "being started"
            elif server.left_out:
                yield server.name, f"used without the tools that cannot be read: {server.lacks}"

    def _server(self, name: str, settings: McpServerSettings) -> McpServer:
        known = made_safe(self.lists.read(name, settings.place))

        def offered(facts: Sequence[ToolFacts]) -> None:
            nonlocal known
            safe = made_safe(facts)
            self._offer(server, safe)
            if safe != known:
                known = safe
                self.lists.write(name, settings.place, safe)

        server = McpServer(
            name=name, settings=settings, load=self._load, offered=offered, clock=self.clock, redact=self.redact
        )
        self._offer(server, known)
        return server

    async def probe(self) -> AsyncIterator[Finding]:
        """Start every server, tell its tools or the reason of its failure, and end all servers."""
        owners = Background()
        try:
            for server in self.servers:
                server.warns = False
            owners.start(self.serve(), name="mcp")
            for server in self.servers:
                await server.settled.wait()
                yield self._finding(server)
        finally:
            await owners.aclose()

    def _finding(self, server: McpServer) -> Finding:
        if server.failure:
            detail = f"{server.name} ({server.settings.place}): {server.failure}"
            return Finding(what=_WHAT, ok=False, detail=detail)
        names = [tool.name for tool in self.offered[server.name]]
        missing = sorted({*server.settings.only, *server.settings.ask} - {ANY, *server.known})
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        detail = f"{server.name}: {counted(len(names), 'tool')}: {', '.join(names[:_LISTED])}{more}"
        if server.left_out:
            detail += f"; left out, because they cannot be read: {server.lacks}"
        if missing:
            detail += f"; it has no {', no '.join(missing)}, which the configuration names"
        return Finding(what=_WHAT, ok=None if missing or server.left_out else True, detail=detail)

    async def _load(self) -> Connect:
        if self.connect is None:
            kind = await asyncio.to_thread(imported, CONNECTOR)
            self.connect = kind(clock=self.clock, redact=self.redact, folder=self.lists.folder, own=self.own)
        return self.connect

    def _offer(self, server: McpServer, facts: Sequence[ToolFacts]) -> None:
        origin = f"mcp:{server.name}"
        tools = tools_of(server, facts, self.toolbox.taken(origin))
        self.toolbox.register(origin, tools)
        self.offered[server.name] = tools
