"""One connection to a server that answers when it likes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import StoreUnavailable
from gateway.store.redis.connection import CallHeader, Connection, Job
from tests.support.model import PATIENCE
from tests.support.waiting import eventually


class Server:
    """Reads commands of one word, and answers when it is told to."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.connected = 0
        self.is_away = False
        self.more = asyncio.Event()
        self._writer: asyncio.StreamWriter | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.connected += 1
        while await reader.readline():  # the number of words
            size = await reader.readline()
            self.heard.append((await reader.readexactly(int(size[1:]) + 2)).decode().strip())
            self.more.set()
        writer.close()
        await writer.wait_closed()
        self.connected -= 1

    async def hears(self, *words: str) -> None:
        """Return when it has heard these words, and no others."""
        while len(self.heard) < len(words):
            self.more.clear()
            await self.more.wait()
        assert self.heard == list(words)

    def answer(self, text: str) -> None:
        assert self._writer is not None
        self._writer.write(text.encode() + b"\r\n")

    def hang_up(self) -> None:
        assert self._writer is not None
        self._writer.close()


@asynccontextmanager
async def connected(*, patience: float = PATIENCE) -> AsyncIterator[tuple[Server, Connection]]:
    server = Server()

    async def dial() -> Any:
        if server.is_away:
            raise ConnectionRefusedError("nobody there")
        _, writer = await asyncio.open_connection(*listener.sockets[0].getsockname())

        async def disconnect(**_: object) -> None:
            writer.close()
            await asyncio.sleep(0)  # it closes then

        return SimpleNamespace(_writer=writer, disconnect=disconnect)

    async with asyncio.timeout(PATIENCE), await asyncio.start_server(server.serve, "127.0.0.1", 0) as listener:
        connection = Connection(
            dial,
            caller=CallHeader(owner="o", channel=""),
            clock=SystemClock(),
            timeout=PATIENCE,
            patience=patience,
            lost=lambda: None,
        )
        serving = asyncio.create_task(connection.serve())
        yield server, connection
        serving.cancel()
        await asyncio.wait([serving])
        await connection.aclose("closed")
        await eventually(lambda: not server.connected)


def put(connection: Connection, word: str, *, writes: bool = False) -> asyncio.Future[Any]:
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    job = Job(future=future, script=None, key="", arguments=(word,), writes=writes, since=SystemClock().monotonic())
    connection.put(job)
    return future


async def test_what_is_wanted_meanwhile_goes_with_the_first_answer() -> None:
    async with connected() as (server, connection):
        one, two = put(connection, "one"), put(connection, "two")
        await server.hears("one", "two")
        three = put(connection, "three")
        server.answer("+1")
        assert await one == "1"
        await server.hears("one", "two", "three")
        server.answer("+2")
        server.answer("+3")
        assert [await two, await three] == ["2", "3"]


async def test_nothing_goes_past_what_the_server_would_not_do() -> None:
    async with connected() as (server, connection):
        one, two = put(connection, "one"), put(connection, "two")
        await server.hears("one", "two")
        three = put(connection, "three")
        server.answer("-BUSY a script runs")
        server.answer("+2")
        assert await two == "2"
        await server.hears("one", "two", "one", "three")
        server.answer("+1")
        assert await one == "1"
        await server.hears("one", "two", "one", "three")
        server.answer("+3")
        assert await three == "3"


async def test_all_on_their_way_are_sent_again_in_order_when_the_connection_breaks() -> None:
    async with connected() as (server, connection):
        one, two = put(connection, "one"), put(connection, "two")
        await server.hears("one", "two")
        three = put(connection, "three")
        server.answer("+1")
        assert await one == "1"
        await server.hears("one", "two", "three")
        server.hang_up()
        await server.hears("one", "two", "three", "two", "three")
        server.answer("+2")
        server.answer("+3")
        assert [await two, await three] == ["2", "3"]


async def test_what_is_wanted_after_the_connection_broke_was_not_sent_and_is_given_up_in_time() -> None:
    async with connected(patience=0.0) as (server, connection):
        one = put(connection, "one", writes=True)
        await server.hears("one")
        two = put(connection, "two", writes=True)
        server.hang_up()
        with pytest.raises(StoreUnavailable, match="cannot be used now"):
            await two
        await server.hears("one", "one")  # it may have been done
        server.answer("+1")
        assert await one == "1"
        server.is_away = True
        server.hang_up()
        await eventually(lambda: connection._answers is None or connection._answers.is_cut)
        with pytest.raises(StoreUnavailable, match="cannot be used now"):
            await put(connection, "three", writes=True)
