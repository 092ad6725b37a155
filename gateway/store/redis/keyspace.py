"""The names of all keys of a server or cluster, the facts about the store on it, and its clients, for the parts that
look for those."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Final

from redis.asyncio.connection import AbstractConnection
from redis.crc import key_slot
from redis.exceptions import ResponseError

from gateway.store.redis.endpoint import Endpoint, ask, used

META: Final = "legato:meta"  # the facts about the store
SEARCH: Final = "search"  # the fact that says by which version's way all entries of the search index were made
BROUGHT: Final = "brought"  # the same, of a database that is brought over: the attempt that was decided for
LOCK: Final = f"{{{META}}}:bringing"  # beside the facts: who brings it over now, so that no other tries meanwhile
_SECONDS: Final = 30.0  # one page's answer may take
_COUNT: Final = "2000"  # keys looked at for one page


async def connect_meta(endpoint: Endpoint) -> AbstractConnection:
    """A new connection to where the facts about the store are. Raises UNREACHABLE."""
    return await endpoint.connect_slot(int(key_slot(META.encode())))


async def of_meta(endpoint: Endpoint, *command: str) -> Any:
    """The answer of the server that has the facts about the store. Raises UNREACHABLE."""
    async with used(connect_meta(endpoint)) as connection:
        return await ask(connection, *command, seconds=endpoint.timeout)


async def format_of(endpoint: Endpoint) -> int:
    """The format of the records; that of the earliest ones was not noted. Raises UNREACHABLE."""
    return int(await of_meta(endpoint, "HGET", META, "format") or "1")


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
