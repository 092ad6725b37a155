"""A thousand turns at once in one process on Redis, each waiting two seconds for its model.

Each chat has a session of 20 messages, which the process has yet to read. All chats speak at the
same moment, to a process that has just started; timed until the last reply is handed over. The
gateway is a process of its own, whose peak memory is the kernel's figure (Linux) with everything
it has loaded; what it weighs before anybody speaks is shown beside it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from gateway.runtime.heap import collect_seldom
from tests.bench.served import fill, store_at, synced_server
from tests.bench.start import PROJECT, peak_memory
from tests.bench.table import Row, Rows, milliseconds, percentile
from tests.bench.world import Instant, log_as_in_production, quiet, running, said, settings

TITLE = "1,000 turns at once; model at 2 s, Redis with appendfsync always"
CHATS = 1_000
LENGTH = 20  # messages of each transcript
SECONDS = 2.0


async def measure() -> Rows:
    """Memory and time of one process."""
    with synced_server() as server:
        await fill(server, _names(), LENGTH)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.bench.crowd", server.url, cwd=PROJECT, stdout=asyncio.subprocess.PIPE
        )
        output, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"the gateway ended with {process.returncode}")
    found: dict[str, Any] = json.loads(output)
    return [
        Row("until the last reply", f"{found['last']:.2f} s", "goal ≤ 3", found["last"] / SECONDS, "the model's time"),
        Row("until half of the replies", f"{found['half']:.2f} s"),
        Row("CPU a turn", milliseconds(found["cpu"] / CHATS)),
        Row("peak memory", f"{found['peak']:.0f} MB", f"goal ≤ 140 MB; {found['idle']:.0f} MB when nobody speaks"),
    ]


def _names() -> list[str]:
    return [f"chat{number}" for number in range(CHATS)]


async def _serve(url: str) -> dict[str, float]:
    """The gateway's own process."""
    with tempfile.TemporaryDirectory() as folder:
        config = settings(Path(folder, "home.db"), concurrent=CHATS)
        model = Instant(seconds=SECONDS)
        async with running(config, store=store_at(url), provider=model) as (gateway, chats):
            await chats.ready()
            idle, cpu = peak_memory(os.getpid()), time.process_time()
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(chats.say(name, said(0))) for name in _names()]
            took = [task.result() for task in tasks]
            await quiet(gateway)
            spent = time.process_time() - cpu
    return {
        "last": max(took),
        "half": percentile(took, 0.5),
        "cpu": spent,
        "peak": peak_memory(os.getpid()),
        "idle": idle,
    }


if __name__ == "__main__":
    collect_seldom()
    log_as_in_production()
    print(json.dumps(asyncio.run(_serve(sys.argv[1]))))
