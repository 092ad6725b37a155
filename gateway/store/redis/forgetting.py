"""What was dropped stays in the append-only files of the servers until these are written anew."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from redis.exceptions import ResponseError

from gateway.runtime.clock import Clock
from gateway.store.redis.endpoint import UNREACHABLE, Endpoint, ask, used

_SECONDS: Final = 30.0  # a server's answer may take
_PAUSE: Final = 0.5  # seconds between two looks at a server that writes its file


async def forget_history(endpoint: Endpoint, clock: Clock) -> None:
    """Ask the servers to write their append-only files anew; where one will not, its operator must."""
    for address in await endpoint.primaries():
        with suppress(ResponseError, *UNREACHABLE):
            async with used(endpoint.connect(address)) as connection:
                while _is_writing(state := str(await ask(connection, "INFO", "persistence", seconds=_SECONDS))):
                    await clock.sleep(_PAUSE)  # what is being written may hold it still
                if "aof_enabled:1" in state:
                    await ask(connection, "BGREWRITEAOF", seconds=_SECONDS)


def _is_writing(state: str) -> bool:
    return "aof_rewrite_in_progress:1" in state or "aof_rewrite_scheduled:1" in state
