"""Many at once, results in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD: Final = 8  # items read for each one that is worked on, so that a slow one does not stop the others
HELD_BYTES: Final = 64 * 1024 * 1024  # of items that wait for their turn; one item may be larger


async def in_order(
    items: Iterable[Item],
    work: Callable[[Item], Awaitable[Result]],
    done: Callable[[Item, Result], None],
    *,
    concurrency: int,
    size: Callable[[Item], int],
) -> None:
    """Call `done(item, await work(item))` for every item in the order of `items`, `concurrency` of them
    being worked on at a time. Items are taken as they are needed; `size` is an item's, in bytes. The
    first error of anything ends it, and is raised."""
    working = asyncio.Semaphore(concurrency)
    waiting: deque[tuple[Item, asyncio.Task[Result]]] = deque()
    held = 0

    async def bounded(item: Item) -> Result:
        async with working:
            return await work(item)

    async def finish_first() -> int:
        item, task = waiting[0]
        result = await task
        waiting.popleft()
        done(item, result)
        return size(item)

    try:
        async with asyncio.TaskGroup() as group:
            for item in items:
                while waiting and (len(waiting) >= concurrency * AHEAD or held + size(item) > HELD_BYTES):
                    held -= await finish_first()
                waiting.append((item, group.create_task(bounded(item))))
                held += size(item)
            while waiting:
                await finish_first()
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
