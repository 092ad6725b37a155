"""Real server processes with real owners, for tests."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from gateway.agent.mcp.server import Connect, McpServer
from gateway.agent.mcp.servers import McpServers
from gateway.agent.mcp.settings import McpServerSettings
from gateway.agent.tools.offer import Caller, Offer, Toolbox
from gateway.domain.chat import KeptFile, Source
from gateway.runtime.clock import Clock, SystemClock
from gateway.runtime.errors import ToolError
from tests.support.waiting import eventually

RAW: Final = Path(__file__).parent / "mcp_servers" / "raw.py"
REAL: Final = RAW.with_name("real.py")
ANYBODY: Final = Caller(source=Source(platform="fake", chat="c", chat_type="direct", user="u"))


def raw(*habits: str, **settings: Any) -> McpServerSettings:
    """The section of a server that is a script, with these habits."""
    return McpServerSettings(command=(sys.executable, "-I", "-S", str(RAW)), args=habits, **settings)


class Hasty(SystemClock):
    """A clock whose sleepers need not wait; what is limited is limited in real time."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0.01)


@asynccontextmanager
async def real_server(port: int, *issuer: str, script: Path = REAL) -> AsyncIterator[asyncio.subprocess.Process]:
    """The library's own server, on a port; with the address of an authorization server only for people who logged
    in there."""
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(script), str(port), *issuer, stdin=quiet, stdout=quiet, stderr=quiet
    )
    try:
        await eventually(lambda: _answers(port))
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _answers(port: int) -> bool:
    """Say whether anybody listens there."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


class KeptFiles:
    """Files that tools keep."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, str, bytes]] = []

    async def add(self, name: str, mime: str, content: bytes) -> KeptFile:
        """Remember a file."""
        self.kept.append((name, mime, content))
        return KeptFile(ref=name, digest="d", name=name, mime=mime, size=len(content), at=0.0)


class Running:
    """One server, `demo`, and what it offers."""

    def __init__(self, settings: McpServerSettings, clock: Clock | None = None, connect: Connect | None = None) -> None:
        self.toolbox, self.files = Toolbox(), KeptFiles()
        self.told: list[str] = []
        self.servers = McpServers(
            settings={"demo": settings},
            toolbox=self.toolbox,
            folder=Path("/dev/null/none"),
            clock=clock or SystemClock(),
            redact=lambda text: text.replace("sk-raw-1234567890", "[hidden]"),
            connect=connect,
        )
        self.server: McpServer = self.servers.servers[0]

    @property
    def offer(self) -> Offer:
        """The tools for anybody."""
        return self.toolbox.offer((), ANYBODY, 10**6)

    async def call(self, tool: str, **arguments: Any) -> str:
        """The model's call of a tool."""
        context: Any = SimpleNamespace(files=self.files, ask=None, told=self.told.append)  # all that it looks at
        found = self.offer.get(f"demo_{tool}")
        assert found is not None, self.offer.names
        result = await found.run(arguments, context)
        return result if isinstance(result, str) else result.text

    async def refused(self, tool: str, **arguments: Any) -> str:
        """The reason why a call fails."""
        with pytest.raises(ToolError) as refusal:
            await self.call(tool, **arguments)
        return str(refusal.value)

    async def ready(self) -> None:
        """Return when the server can be used."""
        await eventually(lambda: self.server.ready)


@asynccontextmanager
async def running(
    settings: McpServerSettings, clock: Clock | None = None, connect: Connect | None = None
) -> AsyncIterator[Running]:
    """A server that has begun, well or badly; it is ended with the block."""
    made = Running(settings, clock, connect)
    task = asyncio.create_task(made.servers.serve())
    try:
        await made.server.settled.wait()
        yield made
    finally:
        task.cancel()
        await asyncio.wait([task])


def pids_in(file: Path) -> list[int]:
    """The processes that raw servers noted."""
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def alive(pids: Sequence[int]) -> list[int]:
    """Return the processes that have not ended."""
    left = []
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, 0)
            left.append(pid)
    return left


def heard(text: str) -> list[str]:
    """Return the lines that a raw server says it heard."""
    return list(json.loads(text))
