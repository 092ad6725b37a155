"""Many runs of one kind, side by side."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

S = TypeVar("S")
R = TypeVar("R")

Laboratory = Callable[[], AbstractAsyncContextManager[Callable[[S], Awaitable[R]]]]
"""What runs need, made once and used for one after the other: inside it a schedule becomes a result."""


async def campaign(schedules: Iterable[S], laboratory: Laboratory[S, R], jobs: int) -> AsyncIterator[R]:
    """The results of all schedules as they come, from `jobs` laboratories."""
    waiting: Iterator[S] = iter(schedules)
    results: asyncio.Queue[R | None] = asyncio.Queue()

    async def work() -> None:
        try:
            async with laboratory() as perform:
                for schedule in waiting:
                    results.put_nowait(await perform(schedule))
        finally:
            results.put_nowait(None)

    async with asyncio.TaskGroup() as group:
        for _ in range(jobs):
            group.create_task(work())
        working = jobs
        while working:
            result = await results.get()
            if result is None:
                working -= 1
            else:
                yield result


def listed(counts: Counter[str]) -> str:
    """The counts by name, to be read."""
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
