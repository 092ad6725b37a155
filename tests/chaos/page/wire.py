"""The wire between a person and the page, which tears after any number of bytes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

_MOST: Final = 65_536  # bytes at a time


class Wire:
    """Passes connections on to a port. `torn[n]`: after how many bytes of the page's the n-th connection ends, whatever
    they are a part of; those that come later are left whole."""

    def __init__(self, to: int, torn: Sequence[int], counts: Counter[str]) -> None:
        self._to, self._torn, self._counts = to, list(torn), counts
        self._open = set[asyncio.Task[None]]()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[int]:
        """Listen; the port. The person's connections end first."""
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        try:
            yield int(server.sockets[0].getsockname()[1])
        finally:
            server.close()
            await asyncio.gather(*self._open)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "it runs in one"
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        try:
            from_page, to_page = await asyncio.open_connection("127.0.0.1", self._to)
        except OSError:  # the process is dead
            writer.transport.abort()
            return
        left = self._torn.pop(0) if self._torn else None
        up, down = (asyncio.create_task(each) for each in (_pass(reader, to_page), _pass(from_page, writer, left)))
        done, open_still = await asyncio.wait((up, down), return_when=asyncio.FIRST_COMPLETED)
        if down in done and down.result():
            self._counts["torn"] += 1
        for each in open_still:
            each.cancel()
        await asyncio.wait((up, down))
        to_page.close()
        writer.close()


async def _pass(source: asyncio.StreamReader, target: asyncio.StreamWriter, left: int | None = None) -> bool:
    """Pass bytes on until there are no more, or so many were; say whether that was the reason."""
    with suppress(OSError):  # one side is gone
        while left is None or left > 0:
            piece = await source.read(_MOST if left is None else min(left, _MOST))
            if not piece:
                return False
            target.write(piece)
            await target.drain()
            left = None if left is None else left - len(piece)
        return True
    return False
