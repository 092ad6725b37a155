"""The way to the server of a partition: one server, or the nodes of a cluster.

On a cluster every partition is one slot. The map of slots is asked for when it is first needed and
again whenever a node cannot be reached, or says that another node has the slot.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from redis.asyncio.connection import AbstractConnection, Connection, parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, RedisError

from gateway.runtime.errors import StoreUnavailable
from gateway.store.redis.partitions import slot_of

UNREACHABLE: Final = (RedisError, OSError, asyncio.TimeoutError)  # what a connection raises when it cannot be used

Address = tuple[str, int]


@asynccontextmanager
async def used(connecting: Awaitable[AbstractConnection]) -> AsyncGenerator[AbstractConnection, None]:
    """A new connection, for as long as it is used. Raises UNREACHABLE."""
    connection = await connecting
    try:
        yield connection
    finally:
        await connection.disconnect(nowait=True)


class Endpoint:
    """The place that a URL names. `timeout` bounds connecting and every answer, in seconds; the server lists this
    client as `name`."""

    def __init__(self, url: str, *, timeout: float, name: str = "legato") -> None:
        try:
            settings: dict[str, Any] = dict(parse_url(url))
        except ValueError as error:
            raise StoreUnavailable(f"store.url is not the address of a Redis server: {error}.") from error
        self.timeout = timeout
        self.is_cluster = False
        self._class: type[AbstractConnection] = settings.pop("connection_class", Connection)
        self._settings: Mapping[str, Any] = {
            **settings,
            "decode_responses": True,
            "encoding_errors": "surrogateescape",  # the bytes of a search entry come back as they are
            "protocol": 2,
            "retry": Retry(NoBackoff(), 0),  # the callers know which commands may be repeated
            "socket_timeout": None,  # time is kept here: the library's own timeout can swallow a cancellation
            "client_name": name,
            "driver_info": None,  # the library would read its own version from a file for every connection
        }
        self._nodes: dict[int, Address] = {}  # slot range's end → its primary, in rising order
        self._known: set[Address] = set()

    def __str__(self) -> str:
        """The host and port, or the path, without the password."""
        where = self._settings
        return str(where.get("path") or f"{where.get('host', 'localhost')}:{where.get('port', 6379)}")

    def address(self) -> str:
        """The URL, without name and password."""
        where = self._settings
        if "path" in where:
            return f"unix://{where['path']}?db={where.get('db', 0)}"
        scheme = "redis" if self._class is Connection else "rediss"
        return f"{scheme}://{self}/{where.get('db', 0)}"

    async def connect(self, address: Address | None = None) -> AbstractConnection:
        """A new connection to the address, else to the one in the URL. Raises UNREACHABLE."""
        settings = dict(self._settings)
        if address is not None:
            settings["host"], settings["port"] = address
        connection = self._class(**settings)
        connected = False
        try:
            async with asyncio.timeout(self.timeout):
                await connection.connect()  # type: ignore[no-untyped-call]
            connected = True
        finally:
            if not connected:
                await connection.disconnect(nowait=True)
        return connection

    async def connect_for(self, partition: int) -> AbstractConnection:
        """A new connection to the server that holds the partition now. Raises UNREACHABLE."""
        return await self.connect_slot(slot_of(partition))

    async def connect_slot(self, slot: int) -> AbstractConnection:
        """A new connection to the server that holds a cluster slot. Raises UNREACHABLE."""
        if not self.is_cluster:
            return await self.connect()
        if not self._nodes:
            await self._learn()
        return await self.connect(next(address for end, address in self._nodes.items() if slot <= end))

    async def connect_any(self) -> AbstractConnection:
        """A new connection to any server that answers. Raises UNREACHABLE."""
        return await self._first(None)

    def forget(self) -> None:
        """The map of slots may be out of date: ask again before it is used."""
        self._nodes = {}

    async def primaries(self) -> list[Address | None]:
        """The servers that together hold everything; None is the one in the URL."""
        if not self.is_cluster:
            return [None]
        if not self._nodes:
            await self._learn()
        return list(dict.fromkeys(self._nodes.values()))

    async def _learn(self) -> None:
        async with used(self._first(None)) as connection:
            ranges = await ask(connection, "CLUSTER SLOTS", seconds=self.timeout)
        asked = str(getattr(connection, "host", ""))
        nodes = {int(end): _address(primary, asked) for _, end, primary, *_ in sorted(ranges)}
        if not nodes or max(nodes) != 16_383:
            raise RedisError("the cluster has slots that no node serves")
        self._nodes = nodes
        self._known |= set(nodes.values())

    async def _first(self, trouble: BaseException | None) -> AbstractConnection:
        for address in (None, *sorted(self._known)):
            try:
                return await self.connect(address)
            except AuthenticationError:
                raise
            except UNREACHABLE as error:
                trouble = error
        assert trouble is not None
        raise trouble


def _address(node: list[Any], asked: str) -> Address:
    """A node's address; a node without a host is the node that was asked."""
    return str(node[0] or asked), int(node[1])


async def ask(connection: AbstractConnection, *command: str, seconds: float) -> Any:
    """One command's answer. Raises UNREACHABLE."""
    async with asyncio.timeout(seconds):
        await connection.send_command(*command)
        return await connection.read_response()
