"""A way to a server that can lose an answer: the request arrives, what it did stays, nobody hears."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class LosingProxy:
    """Forwards to `port` on loopback. `lose` answers to scripts are dropped, with their connection."""

    def __init__(self, port: int) -> None:
        self.lose = 0
        self.lost = 0
        self.url = ""
        self._port = port
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with suppress(OSError, asyncio.CancelledError):
                await self._connect(reader, writer)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._port)
        ran = asyncio.Event()  # a script went out and its answer is not here yet

        async def forth() -> None:
            while data := await reader.read(1 << 16):
                if b"EVAL" in data:
                    ran.set()
                server_writer.write(data)
                await server_writer.drain()

        async def back() -> None:
            while data := await server_reader.read(1 << 16):
                if ran.is_set() and self.lose:
                    self.lose -= 1
                    self.lost += 1
                    return
                ran.clear()
                writer.write(data)
                await writer.drain()

        tasks = [asyncio.create_task(forth()), asyncio.create_task(back())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            server_writer.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def aclose(self) -> None:
        """End every connection."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def losing_proxy(port: int) -> AsyncIterator[LosingProxy]:
    """A proxy in front of the server on `port`."""
    proxy = LosingProxy(port)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.url = f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}/0"
    try:
        yield proxy
    finally:
        server.close()
        await proxy.aclose()
