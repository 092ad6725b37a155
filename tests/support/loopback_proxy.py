"""An HTTP proxy on a loopback port: passes plain requests on, one a connection, and tunnels what asks for a tunnel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass(slots=True)
class LoopbackProxy:
    """`asked`: the first line of each request. `page`: what it answers in the place of whoever was asked."""

    port: int = 0
    asked: list[str] = field(default_factory=list)
    page: bytes | None = None
    _busy: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        """Return the address for a client."""
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        task = asyncio.current_task()
        assert task is not None
        self._busy.add(task)
        task.add_done_callback(self._busy.discard)
        with suppress(OSError, asyncio.IncompleteReadError), closing(writer):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *fields = head.rstrip().split("\r\n")
            self.asked.append(first)
            if self.page is not None:
                writer.write(self.page)
            else:
                await self._pass_on(first.split(), fields, reader, writer)
            await writer.drain()

    async def aclose(self) -> None:
        """Hang up."""
        for task in self._busy:
            task.cancel()
        await asyncio.gather(*self._busy, return_exceptions=True)

    async def _pass_on(
        self, asked: list[str], fields: list[str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        method, target, version = asked
        parts = urlsplit(f"//{target}" if method == "CONNECT" else target)
        there, out = await asyncio.open_connection(parts.hostname, parts.port)
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        else:
            kept = [each for each in fields if not each.lower().startswith(("connection:", "proxy-"))]
            out.write("\r\n".join([f"{method} {parts.path} {version}", *kept, "Connection: close", "", ""]).encode())
        copying = asyncio.create_task(_copy(reader, out))
        try:
            await _copy(there, writer)
        finally:
            copying.cancel()
            await asyncio.gather(copying, return_exceptions=True)
            out.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(65_536):
        writer.write(chunk)
        await writer.drain()


@asynccontextmanager
async def loopback_proxy() -> AsyncIterator[LoopbackProxy]:
    """A proxy that serves until the block ends."""
    proxy = LoopbackProxy()
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await proxy.aclose()
