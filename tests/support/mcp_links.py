"""A server that is a few lists: what an owner connects to in tests of the owner."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from gateway.agent.mcp.server import Beside, Hear, Link, Listing, ToolFacts
from gateway.agent.mcp.settings import McpServerSettings
from gateway.runtime.errors import ToolError
from tests.support.model import Changing


class FakeServer(Changing):
    """Answers with what it was asked, unless `waits` says that a tool never ends. `failures` are raised by the next
    attempts to connect, one each (None: that attempt succeeds)."""

    def __init__(self, *tools: str) -> None:
        super().__init__()
        self.tools = [ToolFacts(name=name, read_only=True, idempotent=True) for name in tools]
        self.failures: list[BaseException | None] = []
        self.waits: set[str] = set()
        self.mute = False
        self.running: list[str] = []
        self.cancelled: list[str] = []
        self.attempts = self.opened = self.closed = self.lists = 0
        self.owners: set[asyncio.Task[Any] | None] = set()
        self.hear: Hear = lambda event, why: None

    @asynccontextmanager
    async def connect(self, name: str, settings: McpServerSettings, hear: Hear) -> AsyncIterator[Link]:
        """A `Connect`."""
        self.attempts += 1
        self.owners.add(asyncio.current_task())
        self.hear = hear
        self.changed()
        if self.failures and (failure := self.failures.pop(0)) is not None:
            raise failure
        if self.mute:
            await asyncio.Event().wait()
        self.opened += 1
        try:
            yield _Link(self)
        finally:
            self.owners.add(asyncio.current_task())
            self.closed += 1
            self.changed()


class _Link:
    def __init__(self, server: FakeServer) -> None:
        self._server = server

    async def tools(self) -> Listing:
        self._server.lists += 1
        self._server.changed()
        return Listing(tools=list(self._server.tools))

    async def ask(self, method: str, params: Mapping[str, Any], beside: Beside) -> Mapping[str, Any]:
        server, tool, arguments = self._server, params["name"], params["arguments"]
        server.running.append(tool)
        server.changed()
        try:
            if tool in server.waits:
                await asyncio.Event().wait()
            if tool == "breaks":
                raise LookupError("a bug")
            if tool == "refuses":
                raise ToolError("no")
            return {"content": [{"type": "text", "text": f"{tool} {dict(arguments)}"}]}
        except asyncio.CancelledError:
            server.cancelled.append(tool)
            server.changed()
            raise
        finally:
            server.running.remove(tool)

    async def alive(self) -> None:
        if self._server.mute:
            await asyncio.Event().wait()
