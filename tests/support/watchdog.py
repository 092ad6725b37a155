"""A watchdog over the event loop: nothing that runs on it may take long, or everybody waits."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from unittest.mock import patch

LONGEST: Final = 0.05  # seconds of a core


@contextmanager
def nothing_slow(longest: float = LONGEST) -> Iterator[None]:
    """Fail if a callback on an event loop took longer than `longest`, in time of the core: another program that takes
    the core away makes nothing slow. Nothing is collected meanwhile: that takes as long as the tests' heap is large,
    and the program collects seldom (`collect_seldom`)."""
    run: Any = asyncio.Handle._run
    slow: list[str] = []

    def timed(handle: asyncio.Handle) -> None:
        began = time.thread_time()
        run(handle)
        took = time.thread_time() - began
        if took > longest:
            slow.append(f"{took:.3f} s: {handle!r}"[:600])

    gc.disable()
    try:
        with patch.object(asyncio.Handle, "_run", timed):
            yield
    finally:
        gc.enable()
    assert not slow, "\n".join(slow)
