"""The store's own tasks: each is awaited when the store closes, and a failure is logged."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import structlog

from gateway.runtime.errors import StoreUnavailable

log = structlog.get_logger(__name__)


class Chores:
    """Runs coroutines beside the store's callers, until `aclose`."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def start(self, work: Coroutine[Any, Any, None], *, name: str) -> None:
        """Begin `work`, which `aclose` will cancel. After `aclose` nothing begins."""
        if self._closed:
            work.close()
            return
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def aclose(self) -> None:
        """Cancel all tasks and wait for them. Idempotent."""
        self._closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, StoreUnavailable):
            log.info("store_chore_cut_short", chore=task.get_name(), error=str(error))
        elif error is not None:
            log.error("store_chore_failed", chore=task.get_name(), exc_info=error)
