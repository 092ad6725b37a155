"""Repeats a write until the store takes it. Used where giving up would break a promise to a person (a reply was shown,
a model was paid): a full disk then delays the chat, but nothing is lost or repeated."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from gateway.runtime.backoff import Backoff
from gateway.runtime.clock import Clock
from gateway.runtime.errors import StoreUnavailable

log = structlog.get_logger(__name__)

T = TypeVar("T")


async def insist(
    step: Callable[[], Awaitable[T]],
    *,
    clock: Clock,
    what: str,
    failed: Callable[[StoreUnavailable], None] | None = None,
) -> T:
    """Repeat `step()` while it raises StoreUnavailable, and return its result. `failed` is called once, at the first
    failure, so that somebody can be told."""
    backoff: Backoff | None = None  # most steps succeed at once
    while True:
        try:
            return await step()
        except StoreUnavailable as error:
            backoff = backoff or Backoff(0.5, 30.0)
            wait = backoff.pause()
            log.error("store_unavailable", what=what, error=str(error), retry_in=wait)
            if failed is not None and backoff.failures == 1:
                failed(error)
            await clock.sleep(wait)
