"""A thousand turns at once in one process on Redis, each waiting two seconds for its model.

Each chat has a session of 20 messages, which the process has yet to read. All chats speak at the
same moment, to a process that has just started; timed until the last reply is handed over. The
gateway is a process of its own, whose peak memory is the kernel's figure (Linux) with everything
it has loaded; what it weighs before anybody speaks is shown beside it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from tests.bench.crowd_gateway import CHATS, SECONDS, names
from tests.bench.served import fill, synced_server
from tests.bench.start import PROJECT
from tests.bench.table import Row, Rows, milliseconds

TITLE = "1,000 turns at once; model at 2 s, Redis with appendfsync always"
LENGTH = 20  # messages of each transcript


async def measure() -> Rows:
    """Memory and time of one process."""
    with synced_server() as server:
        await fill(server, names(), LENGTH)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.bench.crowd_gateway", server.url, cwd=PROJECT, stdout=asyncio.subprocess.PIPE
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
