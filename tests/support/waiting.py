"""Waiting for what other processes, servers and leases do in their own time."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gateway.runtime.errors import StoreUnavailable


def pauses() -> Iterator[float]:
    """Seconds between looks at something, which grow: a look may cost more than what it waits for."""
    pause = 0.005
    while True:
        yield pause
        pause = min(pause * 1.5, 0.05)


async def eventually(condition: Callable[[], Any], *, within: float = 60.0) -> Any:
    """Return the value of `condition()`, awaited if need be, once that is true. `within` is generous: nothing is
    measured here, and something that never happens must not hang."""
    async with asyncio.timeout(within):
        pause = pauses()
        while True:
            value = condition()
            if inspect.isawaitable(value):
                value = await value
            if value:
                return value
            await asyncio.sleep(next(pause))


async def written(path: Path) -> str:
    """Return the content of a file, once somebody has put it there whole."""
    text: str = await eventually(lambda: path.exists() and path.read_text(encoding="utf-8"))
    return text


async def again(call: Callable[[], Any]) -> Any:
    """Return the value of the call; None while the store cannot be used."""
    try:
        return await call()
    except StoreUnavailable:
        return None
