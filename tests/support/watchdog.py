"""A watchdog over the event loop: nothing that runs on it may take long, or everybody waits."""

from __future__ import annotations

import asyncio
import gc
import threading
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
    here, since = threading.get_ident(), time.thread_time()  # since when this thread does what it does now

    def look(what: object, began: float) -> float:
        now = time.thread_time()
        if now - began > longest:
            slow.append(f"{now - began:.3f} s: {what!r}"[:600])
        return now

    def timed(handle: asyncio.Handle) -> None:
        nonlocal since
        if threading.get_ident() != here:
            began = time.thread_time()
            run(handle)
            look(handle, began)
            return
        since = look("the block itself", since)
        run(handle)
        since = look(handle, since)

    gc.disable()
    try:
        with patch.object(asyncio.Handle, "_run", timed):
            yield
            look("the block itself", since)  # which nothing may have interrupted
    finally:
        gc.enable()
    assert not slow, "\n".join(slow)
