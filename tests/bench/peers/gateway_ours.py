"""Our side of the gateways: the same jobs and lines as `gateway_theirs.py`."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from gateway.runtime.heap import collect_seldom
from tests.bench.prefill import fill
from tests.bench.rounds import known
from tests.bench.world import Instant, log_as_in_production, quiet, running, settings


async def serve(job: dict[str, Any], folder: Path) -> None:
    """Rounds, until there are no lines."""
    path = folder / "bench.db"
    if job["sessions"]:
        await fill(path, job["sessions"])
    names = [known(number) for number in range(job["chats"])]
    async with running(settings(path), provider=Instant()) as (gateway, chats):
        await chats.ready()
        print("ready", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            each, alone = map(int, line.split())
            start, cpu = time.perf_counter(), time.process_time()
            await chats.talk_all(names, each)
            seconds = time.perf_counter() - start
            await quiet(gateway)
            spent, messages = time.process_time() - cpu, each * len(names)
            waits = await chats.talk(names[0], alone)
            await quiet(gateway)
            print(json.dumps({"rate": messages / seconds, "cpu": spent / messages, "alone": waits}), flush=True)


def main() -> None:
    """One job."""
    collect_seldom()
    log_as_in_production()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(serve(json.loads(Path(sys.argv[1]).read_text()), Path(folder)))


if __name__ == "__main__":
    main()
