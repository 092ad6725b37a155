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

LONGEST: Final = 0.05  # seconds of a core, of a quick machine with nothing else to do
_MEASURE: Final = 20_000  # squares
_QUICK: Final = 0.00072  # seconds in which such a core adds them up


@contextmanager
def nothing_slow(longest: float = LONGEST) -> Iterator[None]:
    """Fail if a callback on an event loop took longer than `longest`, in time of the core: another program that takes
    the core away makes nothing slow. A slow core, or one that shares what it is made of with a busy one, is given as
    much more time as it takes for a sum. Nothing is collected meanwhile: that takes as long as the tests' heap is
    large, and the program collects seldom (`collect_seldom`)."""
    run: Any = asyncio.Handle._run
    slow: list[tuple[float, str]] = []
    sums = [_sum() for _ in range(3)]
    here, since = threading.get_ident(), time.thread_time()  # since when this thread does what it does now

    def look(what: object, began: float) -> float:
        now = time.thread_time()
        if now - began > longest:
            slow.append((now - began, f"{now - began:.3f} s: {what!r}"[:600]))
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
    bound = longest * max(1.0, *(each / _QUICK for each in (*sums, *(_sum() for _ in range(3)))))
    found = [what for took, what in slow if took > bound]
    assert not found, "\n".join(found)


def _sum() -> float:
    """Return the seconds of the core that a sum takes here and now."""
    began = time.thread_time()
    sum(number * number for number in range(_MEASURE))
    return time.thread_time() - began
