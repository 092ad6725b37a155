"""A watchdog over the event loop: nothing that runs on it may take long, or everybody waits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from unittest.mock import patch

LONGEST: Final = 0.1  # seconds of a core: 0.05 is meant, and 0.07 was measured on a crowded machine


@contextmanager
def nothing_slow(longest: float = LONGEST) -> Iterator[None]:
    """Fail if a callback on an event loop took longer than `longest`, in time of the core: another program that takes
    the core away makes nothing slow."""
    run: Any = asyncio.Handle._run
    slow: list[str] = []

    def timed(handle: asyncio.Handle) -> None:
        began = time.thread_time()
        run(handle)
        took = time.thread_time() - began
        if took > longest:
            slow.append(f"{took:.3f} s: {handle!r}"[:600])

    with patch.object(asyncio.Handle, "_run", timed):
        yield
    assert not slow, "\n".join(slow)
