"""The names of all keys of a server or cluster, and of its clients, for the parts that look for keys and for their
users."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ResponseError

from gateway.store.redis.endpoint import Endpoint, ask, used

_SECONDS: Final = 30.0  # one page's answer may take
_COUNT: Final = "2000"  # keys looked at for one page


async def clients(endpoint: Endpoint) -> AsyncGenerator[tuple[str, str], None]:
    """(host, name) of each client that is connected; none if the server will not say."""
    for address in await endpoint.primaries():
        try:
            async with used(endpoint.connect(address)) as connection:
                listing = await ask(connection, "CLIENT LIST", seconds=_SECONDS)
        except ResponseError:
            return  # this user may not ask
        for line in str(listing).splitlines():
            facts = dict(fact.partition("=")[::2] for fact in line.split(" "))
            yield facts.get("addr", "").rpartition(":")[0], facts.get("name", "")


async def keys(endpoint: Endpoint, pattern: str) -> AsyncGenerator[str, None]:
    """Keys that match, in no order; some may come twice. Raises UNREACHABLE."""
    for address in await endpoint.primaries():
        async with used(endpoint.connect(address)) as connection:
            async for page in _pages(connection, pattern):
                for name in page:
                    yield name


async def remove(endpoint: Endpoint, pattern: str) -> None:
    """Remove the keys that match. Raises UNREACHABLE."""
    for address in await endpoint.primaries():
        async with used(endpoint.connect(address)) as connection:
            async for page in _pages(connection, pattern):
                for name in page:  # one by one: on a cluster two keys may lie in different slots
                    await ask(connection, "UNLINK", name, seconds=_SECONDS)


async def _pages(connection: AbstractConnection, pattern: str) -> AsyncGenerator[list[str], None]:
    cursor = "0"
    while True:
        cursor, found = await ask(connection, "SCAN", cursor, "MATCH", pattern, "COUNT", _COUNT, seconds=_SECONDS)
        yield found
        if cursor == "0":
            return
