"""A file that is larger than was said takes no more memory than the largest that is wanted."""

from __future__ import annotations

import tracemalloc
from collections.abc import AsyncIterator

from gateway.runtime.connections import at_most

MEGABYTE = 1024 * 1024


async def test_of_100_mb_only_as_many_are_read_and_held_as_are_wanted() -> None:
    given = 0

    async def stream() -> AsyncIterator[bytes]:
        nonlocal given
        while given < 100 * MEGABYTE:
            given += 65_536
            yield bytes(65_536)

    tracemalloc.start()
    try:
        assert await at_most(stream(), 20 * MEGABYTE) is None
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert given == 20 * MEGABYTE + 65_536
    assert peak < 2 * 20 * MEGABYTE + MEGABYTE


async def test_what_is_no_larger_is_whole() -> None:
    async def stream() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * 10

    assert await at_most(stream(), 200) == b"x" * 200
