"""The mark that keeps gateways away from a store while `legato migrate` works on it.

A mark in the facts about the store says that it is half-filled; it stays, whatever becomes of the
migration, until one has filled it. A lease that runs out says that a migration reads or fills it now.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gateway.runtime.errors import StoreUnavailable
from gateway.store.redis.endpoint import Endpoint, ask
from gateway.store.redis.partitions import partition_of_name, prefix

MARK: Final = "moving_from"  # a field of the facts about the store: where its own come from
LEASE: Final = "legato migrate"  # a name as `FleetStore.hold` takes it


def check_whole(endpoint: Endpoint, meta: Mapping[str, str]) -> None:
    """Raises StoreUnavailable for a half-filled store."""
    if MARK in meta:
        raise StoreUnavailable(
            f"The database at {endpoint} holds half of a migration from {meta[MARK]}. Run `legato migrate` again, "
            "or set another store.url."
        )


async def check_free(endpoint: Endpoint) -> None:
    """Raises StoreUnavailable while a migration works on the store, or UNREACHABLE."""
    partition = partition_of_name(LEASE)
    connection = await endpoint.connect_for(partition)
    try:
        holder = await ask(connection, "GET", f"{prefix(partition)}lease:{LEASE}", seconds=endpoint.timeout)
    finally:
        await connection.disconnect(nowait=True)
    if holder is not None:
        raise StoreUnavailable(
            f"`legato migrate` works on the database at {endpoint}. Wait until it has ended (one that was killed is "
            "forgotten after ten seconds), then start again."
        )
