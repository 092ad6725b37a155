"""An endpoint of an adapter, which listens until a block ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol


class Endpoint(Protocol):
    """What answers requests until it is cancelled."""

    @property
    def serve(self) -> Callable[[Callable[[], object]], Coroutine[Any, Any, None]]:
        """Answer requests; the function that is given is called once they can come."""


@asynccontextmanager
async def serving(endpoint: Endpoint) -> AsyncIterator[None]:
    """The endpoint listens. Raises what it raises."""
    begun = asyncio.Event()
    working, waiting = asyncio.create_task(endpoint.serve(begun.set)), asyncio.create_task(begun.wait())
    await asyncio.wait([working, waiting], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if working.done():
        working.result()
    try:
        yield
    finally:
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working
