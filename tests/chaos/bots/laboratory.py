"""The laboratory of a bot: a model, and a watch over the stalls of this very process."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from tests.chaos.bots.model import SlowModel
from tests.chaos.bots.stalls import Stall, watch
from tests.chaos.trial import Result, Trial, trial

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
            with trial(schedule, name) as run:
                await perform(run, model, stalls)
                run.problems += model.violations
            return run.result()

        try:
            async with SlowModel() as model:
                yield performed
        finally:
            watching.cancel()

    return laboratories
