"""Waiting for what other processes, servers and leases do in their own time."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gateway.runtime.errors import StoreUnavailable


async def eventually(condition: Callable[[], Any], *, within: float = 60.0) -> Any:
    """Return the value of `condition()`, awaited if need be, once that is true. `within` is generous: nothing is
    measured here, and something that never happens must not hang."""
    async with asyncio.timeout(within):
        while True:
            value = condition()
            if inspect.isawaitable(value):
                value = await value
            if value:
                return value
            await asyncio.sleep(0.01)


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
