"""Memory: when Python looks for what is free, and when it is given back to the system."""

from __future__ import annotations

import asyncio
import ctypes
import gc


def collect_seldom() -> None:
    """Look for garbage in cycles less often than Python does by default. Hardly any is made here, and each look walks
    all of the memory: a sixth of a message's time, a fifth of a long request's, a tenth of the start."""
    gc.set_threshold(20_000, 20, 50)


async def give_back() -> None:
    """Give free memory back to the system, aside. glibc keeps what was freed between what is still used, for as long
    as the process lives; elsewhere nothing is done."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        await asyncio.to_thread(trim, 0)
