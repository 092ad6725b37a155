"""May this database be used? Asked once, when the store opens; each refusal says what to do."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

import structlog
from msgspec import Struct
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import AuthenticationError, AuthorizationError, OutOfMemoryError, ResponseError

from gateway.runtime.backoff import Backoff
from gateway.runtime.clock import Clock
from gateway.runtime.errors import StoreOutdated, StoreUnavailable
from gateway.store.kinds import ALL, MEMBERS
from gateway.store.redis.endpoint import UNREACHABLE, Endpoint, ask, used
from gateway.store.redis.keyspace import BROUGHT, LOCK, META, SEARCH, connect_meta, format_of, of_meta
from gateway.store.redis.mark import check_free, check_whole
from gateway.store.redis.partitions import PARTITIONS, prefix
from gateway.store.redis.records import index_key
from gateway.store.shared import searchable

log = structlog.get_logger(__name__)

_BRINGING: Final = "gateway.store.redis.bringing"  # which few starts need
RECORDS: Final = 2  # from this format on there are records of kinds; those before are brought over
FORMAT: Final = 2  # of the records
_OLDEST: Final = (7, 0)
_ANSWER: Final = 10.0  # seconds an answer may take
_LOOKED_AFTER: Final = 60.0  # seconds between two looks at the server's settings
_KEEPS: Final = "noeviction"  # the one maxmemory-policy that deletes nothing
# The oldest format whose processes may work beside this one's: they keep fields that they do not know. Where it rises,
# a process of this version waits for the end of theirs.
READABLE_FROM: Final = 2
_LOOK_AGAIN: Final = 1.0  # seconds; whoever was let in before is a member by then
_LOOKS_FOR_MARK: Final = 10  # at a store that was emptied, as many seconds as a process may be silent
# All facts at once: whoever saw an id without a format would take the store for one of the earliest layout.
_ESTABLISH: Final = """
if redis.call('HSETNX', KEYS[1], 'id', ARGV[1]) == 1 then redis.call('HSET', KEYS[1], unpack(ARGV, 2)) end
"""
_OURS: Final = re.compile(r"\{p\d\d\}:")  # begins every key of a partition


async def admit(endpoint: Endpoint, clock: Clock, *, waits: bool, told: Callable[[str], None]) -> str:
    """The id of the store at the endpoint, which is made if there is no store.

    With `waits` a server that cannot be reached is waited for: the log says so each time, and `told` is
    given one sentence. Raises StoreUnavailable without `waits`, and for a server that must not be used.
    """
    backoff, looks = Backoff(0.25, 5.0), 0
    while True:
        try:
            if (meta := await _admit(endpoint, is_last=looks >= _LOOKS_FOR_MARK)) is None:
                looks += 1
                await clock.sleep(_LOOK_AGAIN)
                continue
            if int(meta.get("format", "1")) < FORMAT:
                await _bring_forward(endpoint, meta, clock, waits=waits, told=told)
            return meta["id"]
        except UNREACHABLE as error:
            refused = refusal(endpoint, error)
            if refused is not None:
                raise refused from error
            if not waits:
                raise StoreUnavailable(
                    f"Redis at {endpoint} cannot be reached ({reason(error)}). Start it, or correct store.url."
                ) from error
            wait = backoff.pause()
            if backoff.failures == 1:
                full = isinstance(error, OutOfMemoryError)
                trouble = "is out of memory: raise its maxmemory" if full else "cannot be reached yet"
                told(f"Redis at {endpoint} {trouble}. Legato waits for the server; Ctrl-C leaves.")
            log.warning("store_waits_for_server", server=str(endpoint), error=str(error), retry_in=wait)
            endpoint.forget()
            await clock.sleep(wait)


def reason(error: BaseException) -> str:
    """Return the reason why a server could not be reached, in words without the address."""
    if "Connect call failed" in str(error):
        return "connection refused"
    return str(error).rstrip(".") or type(error).__name__


def refusal(endpoint: Endpoint, error: BaseException) -> StoreUnavailable | None:
    """The meaning of a server's refusal; None: the server may be willing later."""
    if isinstance(error, AuthenticationError | AuthorizationError):
        return StoreUnavailable(
            f"Redis at {endpoint} refused the name or password ({error}). Put the right ones into store.url."
        )
    if isinstance(error, ResponseError) and "NOPERM" in str(error):
        return StoreUnavailable(f"Redis at {endpoint} does not let this user do what a store needs ({error}).")
    if isinstance(error, ResponseError) and ("DB index" in str(error) or "SELECT is not allowed" in str(error)):
        return StoreUnavailable(
            f"Redis at {endpoint} has no such database ({error}). Correct the number at the end of store.url; "
            "a cluster has only 0."
        )
    return None


class Survey(Struct, frozen=True, kw_only=True):
    """The content of an endpoint: the facts about its store (none: there is no store), and the number of keys."""

    meta: Mapping[str, str]
    size: int


async def survey(endpoint: Endpoint) -> Survey:
    """Look at the server, and learn whether it is a cluster. Raises StoreUnavailable if it must not be
    used, or UNREACHABLE."""
    async with used(endpoint.connect_any()) as connection:
        server = _facts(await _told(connection, "INFO", "server"))
        cluster = _facts(await _told(connection, "INFO", "cluster"))
    _check_version(endpoint, server)
    endpoint.is_cluster = cluster.get("cluster_enabled") == "1"
    size = 0
    for address in await endpoint.primaries():
        async with used(endpoint.connect(address)) as connection:
            size += await _check_server(endpoint, connection)
    async with used(connect_meta(endpoint)) as connection:
        meta = await _meta(connection)
        if not meta and size:
            meta = await _meta(connection)  # another process may have made the store since
    return Survey(meta=meta, size=size)


async def _admit(endpoint: Endpoint, *, is_last: bool) -> Mapping[str, str] | None:
    """The facts about the store. None: the server forgot them, but holds what processes of Legato have written since,
    and one of these will mark it again. The last look makes a new store of it, because those processes may be gone."""
    found = await survey(endpoint)
    if not found.meta and found.size and await _is_forgotten(endpoint):
        if not is_last:
            return None
    else:
        check_ours(endpoint, found)
    await check_free(endpoint)
    meta = found.meta or await establish(endpoint)
    check_whole(endpoint, meta)
    return meta


async def _is_forgotten(endpoint: Endpoint) -> bool:
    """Whether every key is one of Legato's partitions."""
    for address in await endpoint.primaries():
        async with used(endpoint.connect(address)) as connection:
            cursor = ""
            while cursor != "0":
                cursor, keys = await _told(connection, "SCAN", cursor or "0", "COUNT", "1000")
                if not all(_OURS.match(each) for each in keys):
                    return False
    return True


async def _bring_forward(
    endpoint: Endpoint, meta: Mapping[str, str], clock: Clock, *, waits: bool, told: Callable[[str], None]
) -> None:
    """Give the records this version's format, once nobody is there who cannot read that. Raises StoreError,
    StoreUnavailable or UNREACHABLE."""
    if int(meta.get("format", "1")) < READABLE_FROM:
        if not waits:
            raise StoreOutdated(
                f"The database at {endpoint} was made by an earlier Legato. Stop every process of it; then the next "
                "run of this version updates the database."
            )

        async def alone() -> None:
            await _set(endpoint, "readable_from", READABLE_FROM)  # from now on nobody else of them is let in
            await _outlast(endpoint, clock, told)
            await check_free(endpoint)  # a migration that came since the first look reads what is to go

        try:
            if int(meta.get("format", "1")) < RECORDS:
                await import_module(_BRINGING).bring(endpoint, clock, told, alone, to=RECORDS)
            else:
                await alone()
        except BaseException:
            # The records are as they were, unless another process is at it, which must stay alone.
            if not (await of_meta(endpoint, "HEXISTS", META, BROUGHT) or await of_meta(endpoint, "EXISTS", LOCK)):
                was = min(
                    meta.get("readable_from", "1"), meta.get("format", "1"), key=int
                )  # one that was killed raised it
                await _set(endpoint, "readable_from", was)
            raise
    await _set(endpoint, "format", FORMAT)


async def _outlast(endpoint: Endpoint, clock: Clock, told: Callable[[str], None]) -> None:
    """Wait until no process of an earlier version is left, or another one of this version has waited for that."""
    waited = False
    while True:
        await clock.sleep(_LOOK_AGAIN)
        if await format_of(endpoint) >= FORMAT:
            return
        others = await living(endpoint)
        if not others:
            return
        if not waited:
            waited = True
            log.warning("store_waits_for_earlier_version", server=str(endpoint), processes=others)
            told(f"Processes of an earlier Legato use the database at {endpoint}. Legato waits until they have ended.")


async def living(endpoint: Endpoint) -> int:
    """Count the processes that use the store, of the layout that is brought over, too. Raises UNREACHABLE."""
    async with used(endpoint.connect_for(0)) as connection:  # every process is a member of every partition
        seconds, microseconds = await _told(connection, "TIME")
        now = int(seconds) + int(microseconds) / 1e6
        former = await _told(connection, "ZCOUNT", f"{prefix(0)}members", f"({int(now * 1_000)}", "+inf")
        present = await _told(connection, "ZCOUNT", prefix(0) + index_key(MEMBERS, ALL), f"({now}", "+inf")
    return int(former) + int(present)


async def _set(endpoint: Endpoint, fact: str, value: object) -> None:
    await of_meta(endpoint, "HSET", META, fact, str(value))


async def make_good(endpoint: Endpoint, store_id: str) -> None:
    """Mark the server as Legato's again after the server has forgotten this. After FLUSHALL, or on a server that kept
    nothing, the database no longer says that it is Legato's, so no further process would be let in. The processes that
    are there go on with a new store of the same id. Raises StoreUnavailable or UNREACHABLE."""
    async with used(connect_meta(endpoint)) as connection:
        found = await _meta(connection)
    if "id" not in found:
        advice = "if that was a mistake, stop Legato and put the server's files back"
        log.error("store_was_emptied", server=str(endpoint), lost="every conversation", advice=advice)
        await establish(endpoint, store_id)
    elif found.get("id") != store_id:
        log.error("store_was_replaced", server=str(endpoint), advice="start Legato again")


async def establish(endpoint: Endpoint, store_id: str = "") -> Mapping[str, str]:
    """Make a store where there is none, unless another process has done so meanwhile; returns the facts about the
    store. Raises StoreUnavailable or UNREACHABLE."""
    async with used(connect_meta(endpoint)) as connection:
        facts = {"app": "legato", "format": FORMAT, "readable_from": READABLE_FROM, "partitions": PARTITIONS}
        facts[SEARCH] = searchable.MADE  # of a store without messages
        words = [store_id or os.urandom(8).hex(), *(str(each) for fact in facts.items() for each in fact)]
        await _told(connection, "EVAL", _ESTABLISH, "1", META, *words)
        meta = await _meta(connection)
    check_ours(endpoint, Survey(meta=meta, size=0))
    return meta


def _check_version(endpoint: Endpoint, server: dict[str, str]) -> None:
    version = server.get("redis_version", "0")
    if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST:
        raise StoreUnavailable(
            f"Redis at {endpoint} has version {version}, and Legato needs 7.0 or later. Upgrade the server."
        )


async def _check_server(endpoint: Endpoint, connection: AbstractConnection) -> int:
    """Raises StoreUnavailable for a server that deletes data; returns the number of its keys."""
    policy = await _policy(connection)
    if policy != _KEEPS:
        raise StoreUnavailable(
            f"Redis at {endpoint} has maxmemory-policy {policy}, which deletes conversations when memory is short. "
            "Set it to noeviction."
        )
    persistence = _facts(await _told(connection, "INFO", "persistence"))
    if persistence.get("aof_enabled") != "1":
        log.warning("store_is_not_durable", server=str(endpoint), advice="set appendonly yes and appendfsync always")
    return int(await _told(connection, "DBSIZE"))


async def _policy(connection: AbstractConnection) -> str:
    return _facts(await _told(connection, "INFO", "memory")).get("maxmemory_policy", _KEEPS)


async def look_after(endpoint: Endpoint, clock: Clock) -> None:
    """Log an error whenever a server may delete data by now, until cancelled: nobody would miss the data before
    asking for them."""
    while True:
        await clock.sleep(_LOOKED_AFTER)
        try:
            for address in await endpoint.primaries():
                async with used(endpoint.connect(address)) as connection:
                    policy = await _policy(connection)
                if policy != _KEEPS:
                    advice = f"set maxmemory-policy to {_KEEPS}, before it deletes conversations"
                    log.error("store_may_be_evicted", server=str(endpoint), policy=policy, advice=advice)
        except UNREACHABLE:
            continue  # the steps of this process say that


def check_ours(endpoint: Endpoint, found: Survey) -> None:
    """Raises StoreUnavailable unless the database is empty, or a store that this release can use."""
    meta = found.meta
    if not meta and found.size:
        raise StoreUnavailable(
            f"The database at {endpoint} holds keys of another program. Give Legato an empty one, "
            "such as another number at the end of store.url."
        )
    if not meta:
        return
    if meta.get("app", "legato") != "legato" or "id" not in meta:
        raise StoreUnavailable(f"The database at {endpoint} belongs to another program. Give Legato an empty one.")
    if int(meta.get("readable_from", "1")) > FORMAT:
        raise StoreUnavailable(
            f"A newer Legato made the database at {endpoint}, and this one cannot read it. Upgrade Legato."
        )
    if int(meta.get("partitions", PARTITIONS)) != PARTITIONS:
        raise StoreUnavailable(
            f"The database at {endpoint} has {meta['partitions']} partitions but this release uses {PARTITIONS}. "
            "Use the release that made the database."
        )


async def _told(connection: AbstractConnection, *command: str) -> Any:
    return await ask(connection, *command, seconds=_ANSWER)


async def _meta(connection: AbstractConnection) -> dict[str, str]:
    flat: list[str] = await _told(connection, "HGETALL", META)
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _facts(info: Any) -> dict[str, str]:
    """The lines of an INFO answer."""
    lines = (line.partition(":") for line in str(info).splitlines() if ":" in line)
    return {name: value for name, _, value in lines}
