"""Time, ids and sleeping: the only module that may touch the real ones.

Everything else is handed a `Clock` and an `Ids`, so that tests own time. Order never relies on
wall time: the store's sequence numbers do that.
"""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import AbstractAsyncContextManager
from hashlib import blake2s
from math import inf
from types import TracebackType
from typing import Protocol, Self


class Deadline(Protocol):
    """A running time limit; leaving its `async with` after it struck raises TimeoutError."""

    def extend(self, seconds: float) -> None:
        """Strike `seconds` from now instead."""


class Clock(Protocol):
    """The source of time. Seconds everywhere."""

    def now(self) -> float:
        """Wall time: seconds since the epoch (UTC). May jump."""

    def monotonic(self) -> float:
        """Time that never jumps; only differences mean something."""

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""

    def limit(self, seconds: float) -> AbstractAsyncContextManager[Deadline]:
        """Cancel the enclosed block after `seconds` and raise TimeoutError from it."""


class Ids(Protocol):
    """The source of identifiers."""

    def new(self, kind: str) -> str:
        """A fresh id such as `s_01jx…`: `kind`, then a part that sorts by creation time."""


class _SystemDeadline:
    """asyncio.timeout with relative extension. To extend costs nothing: a timer that is early is set again."""

    def __init__(self, seconds: float) -> None:
        self._timeout = asyncio.Timeout(None)
        self._loop = asyncio.get_running_loop()
        self._due = self._looks_at = time.monotonic() + seconds  # the loop's clock

    def extend(self, seconds: float) -> None:
        self._due = time.monotonic() + seconds
        if self._due < self._looks_at:
            self._timer.cancel()
            self._look()

    def _look(self) -> None:
        if self._due > time.monotonic():
            self._looks_at = self._due
            self._timer = self._loop.call_at(self._due, self._look)
        else:
            self._looks_at = -inf  # it strikes, and cannot be moved any more
            self._timeout.reschedule(self._due)

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        self._timer = self._loop.call_at(self._due, self._look)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        await self._timeout.__aexit__(kind, error, trace)


class SystemClock:
    """The machine's own time."""

    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def limit(self, seconds: float) -> AbstractAsyncContextManager[Deadline]:
        return _SystemDeadline(seconds)


_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no i, l, o, u


def _base32(number: int, width: int) -> str:
    digits = []
    for _ in range(width):
        number, digit = divmod(number, 32)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))


class SystemIds:
    """Ids of 9 time characters (milliseconds) and 7 random ones (35 bits)."""

    def new(self, kind: str) -> str:
        milliseconds, random = time.time_ns() // 1_000_000, int.from_bytes(os.urandom(5), "big") >> 5
        return f"{kind}_{_base32(milliseconds << 35 | random, 16)}"


def lasting_id(kind: str, *facts: object, size: int = 10) -> str:
    """The id that the same facts always have, of `size` bytes: a step that is repeated after a crash finds what it
    stored before. Ids lie in stores, so no release may make others."""
    text = " ".join(map(str, facts))
    return f"{kind}_{blake2s(text.encode(errors='replace'), digest_size=size).hexdigest()}"
