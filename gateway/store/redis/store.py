"""The store on a Redis server or cluster, by the steps that are written once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gateway.runtime.clock import Clock
from gateway.store.port import Store
from gateway.store.records import ATTEMPT_PAUSES, LEASE_SECONDS
from gateway.store.redis.backend import RedisBackend


class RedisStore(Store):
    """Everything in the Redis database at `url`, shared with all processes that use the database.

    `lease_seconds`: how long this process may be silent before the others take over its claims. `timeout`: how long
    the server may take to answer. `patience`: how long a step that was not sent waits for a server that is away, before
    it fails with StoreUnavailable; a step that may have been done waits for its answer. With `waits`, `open` waits for
    a server that cannot be reached, and `told` is given a sentence about that. `concurrency`: how many lanes this
    process runs at once; it claims no more with the acceptance of their items, and leaves those to whoever is free.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Clock,
        lease_seconds: float = LEASE_SECONDS,
        timeout: float = 5.0,
        patience: float = 5.0,
        waits: bool = True,
        concurrency: int = 256,
        told: Callable[[str], None] = lambda _: None,
        attempt_pauses: Sequence[float] = ATTEMPT_PAUSES,
    ) -> None:
        self.backend = RedisBackend(
            url, clock=clock, lease_seconds=lease_seconds, timeout=timeout, patience=patience, waits=waits, told=told
        )
        super().__init__(self.backend, clock=clock, concurrency=concurrency, attempt_pauses=attempt_pauses)

    @property
    def owner(self) -> str:
        """The name of this process among the others."""
        return self.backend.owner
