"""May this database be used? Asked once, when the store opens; each no is a sentence of advice."""

from __future__ import annotations

import os
from typing import Any, Final

import structlog
from redis.asyncio.connection import AbstractConnection
from redis.crc import key_slot
from redis.exceptions import AuthenticationError, AuthorizationError, ResponseError

from gateway.clock import Clock
from gateway.errors import StoreUnavailable
from gateway.store.redis.codec import FORMAT
from gateway.store.redis.endpoint import UNREACHABLE, Endpoint, ask
from gateway.store.redis.partitions import PARTITIONS

log = structlog.get_logger(__name__)

META: Final = "legato:meta"
_OLDEST: Final = (7, 0)
_LAST_WAIT: Final = 5.0
_ANSWER: Final = 10.0  # seconds an answer may take
# A process of the release before this one may work beside it: it keeps fields that it does not know.
_READABLE_FROM: Final = 1


async def admit(endpoint: Endpoint, clock: Clock) -> str:
    """The id of the store that the endpoint holds, made if it is new.

    Waits for a server that cannot be reached yet, and says so in the log. Raises StoreUnavailable
    for one that must not be used.
    """
    wait = 0.25
    while True:
        try:
            return await _admit(endpoint)
        except (AuthenticationError, AuthorizationError) as error:
            raise StoreUnavailable(
                f"Redis at {endpoint} refused the name or password ({error}): put the right ones into store.url."
            ) from error
        except UNREACHABLE as error:
            if isinstance(error, ResponseError) and "NOPERM" in str(error):
                raise StoreUnavailable(
                    f"Redis at {endpoint} does not let this user do what a store needs ({error})."
                ) from error
            log.warning("store_waits_for_server", server=str(endpoint), error=str(error), retry_in=wait)
            endpoint.forget()
            await clock.sleep(wait)
            wait = min(2 * wait, _LAST_WAIT)


async def _admit(endpoint: Endpoint) -> str:
    connection = await endpoint.connect_any()
    try:
        server = _facts(await _told(connection, "INFO", "server"))
        cluster = _facts(await _told(connection, "INFO", "cluster"))
    finally:
        await connection.disconnect(nowait=True)
    _check_version(endpoint, server)
    endpoint.is_cluster = cluster.get("cluster_enabled") == "1"
    size = 0
    for address in await endpoint.primaries():
        connection = await endpoint.connect(address)
        try:
            size += await _check_server(endpoint, connection)
        finally:
            await connection.disconnect(nowait=True)
    connection = await endpoint.connect_slot(int(key_slot(META.encode())))
    try:
        return await _identity(endpoint, connection, size)
    finally:
        await connection.disconnect(nowait=True)


def _check_version(endpoint: Endpoint, server: dict[str, str]) -> None:
    version = server.get("redis_version", "0")
    if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST:
        raise StoreUnavailable(
            f"Redis at {endpoint} has version {version}, and Legato needs 7.0 or later: upgrade the server."
        )


async def _check_server(endpoint: Endpoint, connection: AbstractConnection) -> int:
    """How many keys this server holds."""
    memory = _facts(await _told(connection, "INFO", "memory"))
    policy = memory.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        raise StoreUnavailable(
            f"Redis at {endpoint} has maxmemory-policy {policy}, which deletes conversations when memory is short: "
            "set it to noeviction."
        )
    persistence = _facts(await _told(connection, "INFO", "persistence"))
    if persistence.get("aof_enabled") != "1":
        log.warning("store_is_not_durable", server=str(endpoint), advice="set appendonly yes and appendfsync always")
    return int(await _told(connection, "DBSIZE"))


async def _identity(endpoint: Endpoint, connection: AbstractConnection, size: int) -> str:
    meta = await _meta(connection)
    if not meta and size:
        meta = await _meta(connection)  # another process may have made it since
        if not meta:
            raise StoreUnavailable(
                f"The database at {endpoint} holds keys of another program: give Legato an empty one, "
                "such as another number at the end of store.url."
            )
    if not meta:
        await _told(connection, "HSETNX", META, "id", os.urandom(8).hex())
        facts = {"app": "legato", "format": FORMAT, "readable_from": _READABLE_FROM, "partitions": PARTITIONS}
        await _told(connection, "HSET", META, *(str(each) for fact in facts.items() for each in fact))
        meta = await _meta(connection)
    if meta.get("app", "legato") != "legato" or "id" not in meta:
        raise StoreUnavailable(f"The database at {endpoint} belongs to another program: give Legato an empty one.")
    if int(meta.get("readable_from", "1")) > FORMAT:
        raise StoreUnavailable(
            f"The database at {endpoint} was made by a newer Legato, whose records this one cannot read: upgrade."
        )
    if int(meta.get("partitions", PARTITIONS)) != PARTITIONS:
        raise StoreUnavailable(
            f"The database at {endpoint} has {meta['partitions']} partitions and this release uses {PARTITIONS}: "
            "use the release that made it."
        )
    return meta["id"]


async def _told(connection: AbstractConnection, *command: str) -> Any:
    return await ask(connection, *command, seconds=_ANSWER)


async def _meta(connection: AbstractConnection) -> dict[str, str]:
    flat: list[str] = await _told(connection, "HGETALL", META)
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _facts(info: Any) -> dict[str, str]:
    """The lines of an INFO answer."""
    lines = (line.partition(":") for line in str(info).splitlines() if ":" in line)
    return {name: value for name, _, value in lines}
