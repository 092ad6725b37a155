"""Memory that Python has freed, given back to the system."""

from __future__ import annotations

import asyncio
import ctypes


async def give_back() -> None:
    """Give free memory back to the system, aside. glibc keeps what was freed between what is still used, for as long
    as the process lives; elsewhere nothing is done."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        await asyncio.to_thread(trim, 0)
