"""The laboratory of a bot: a model, and a watch over the stalls of this very process."""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from tests.chaos.bots.model import SlowModel
from tests.chaos.bots.stalls import Stall, watch
from tests.chaos.trial import LIMIT, Result, Trial, trial
from tests.support.redis_server import RedisServer


def _emptied(server: RedisServer) -> str:
    """The address of the server, which holds nothing now."""
    if server._process is None:
        server.start()
    server.empty()
    return server.url


Performance = Callable[[Trial, SlowModel, Sequence[Stall]], Awaitable[None]]
"""Carries the schedule of a trial out, and fills in what was seen. The stalls are the laboratory's own."""


def laboratory(
    name: str, perform: Performance
) -> Callable[[], AbstractAsyncContextManager[Callable[[Any], Awaitable[Result]]]]:
    """Return the laboratory of a platform, for `campaign`."""

    @asynccontextmanager
    async def laboratories() -> AsyncIterator[Callable[[Any], Awaitable[Result]]]:
        stalls: list[Stall] = []
        watching = asyncio.create_task(watch(stalls.append))

        async def performed(schedule: Any) -> Result:
            model.rng = random.Random(schedule.seed)
            model.violations.clear()
            limit = schedule.patience * (len(schedule.kills) + 1) + LIMIT
            async with trial(schedule, name, limit) as run:
                if schedule.together:
                    run.server = await asyncio.to_thread(_emptied, server)
                await perform(run, model, stalls)
                run.problems += model.violations
            return run.result()

        try:
            with tempfile.TemporaryDirectory(prefix=f"legato-{name}-redis-") as folder:
                server = RedisServer(Path(folder))
                try:
                    async with SlowModel() as model:
                        yield performed
                finally:
                    server.kill()
        finally:
            watching.cancel()

    return laboratories
