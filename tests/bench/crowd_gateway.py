"""The gateway of `tests.bench.crowd`: a process of its own, which loads what a gateway does and little else."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

from gateway.providers.plugin import ModelSettings
from gateway.runtime.clock import SystemClock
from gateway.runtime.heap import collect_seldom
from gateway.store.redis import RedisStore
from tests.bench.table import memory, peak_memory, percentile
from tests.bench.world import Instant, log_as_in_production, quiet, running, said, settings

CHATS = 1_000
SECONDS = 2.0
_WINDOW = 128_000  # tokens


def names() -> list[str]:
    """The chats."""
    return [f"chat{number}" for number in range(CHATS)]


async def _serve(url: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        config = settings(Path(folder, "home.db"), ModelSettings(context_length=_WINDOW), concurrent=CHATS)
        model = Instant(seconds=SECONDS)
        async with running(config, store=RedisStore(url, clock=SystemClock()), provider=model) as (gateway, chats):
            await chats.ready()
            idle, cpu = memory(), time.process_time()
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(chats.say(name, said(0))) for name in names()]
            took = [task.result() for task in tasks]
            await quiet(gateway)
            spent = time.process_time() - cpu
    return {
        "last": max(took),
        "half": percentile(took, 0.5),
        "cpu": spent,
        "peak": peak_memory(),
        "idle": idle,
    }


if __name__ == "__main__":
    collect_seldom()
    log_as_in_production()
    print(json.dumps(asyncio.run(_serve(sys.argv[1]))))
