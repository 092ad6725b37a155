"""The time that the chats of a killed process wait until another process answers them.

Two gateways in processes of their own share a Redis database, with the default lease. One answers
at once; the other's model never answers, so that whatever it has claimed runs when it is killed
(SIGKILL, at any moment of its beat). Timed from the kill until the reply of each of its chats is
handed over by the other one. Several such pairs, each with a database of its own, die several times.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from pathlib import Path

from gateway.app.build import Parts, build
from gateway.domain.message import text_of
from gateway.providers.base import ModelEvent, ModelRequest, ModelSpec
from gateway.runtime.heap import collect_seldom
from tests.bench.processes import Lines, Process, process, tell
from tests.bench.served import store_at, synced_server
from tests.bench.table import Row, Rows, percentile
from tests.bench.world import Instant, log_as_in_production, settings
from tests.support.waiting import eventually

TITLE = "A process dies while its turns run; Redis, default lease"
LEASE = 10.0  # seconds; RedisStore's own
PAIRS = 5
DEATHS = 4  # of each pair
CHATS = 40  # that speak before each death; half of them to the process that dies
_ANSWERS, _HANGS = "answers", "hangs"
_MODULE = "tests.bench.takeover"
_PATIENCE = 60.0  # seconds


async def measure() -> Rows:
    """Percentiles over all chats of all deaths."""
    with synced_server() as server, tempfile.TemporaryDirectory() as home:
        async with asyncio.TaskGroup() as group:
            urls = [server.url.removesuffix("0") + str(number) for number in range(PAIRS)]
            pairs = [group.create_task(_pair(url, home)) for url in urls]
    deaths = [waits for pair in pairs for waits in pair.result() if waits]
    waits = [wait for each in deaths for wait in each]
    worst = percentile(waits, 0.95)
    return [
        Row("deaths", f"{len(deaths)}"),
        Row("chats taken over", f"{len(waits)}"),
        Row("until a chat's reply: p50", f"{percentile(waits, 0.5):.2f} s", f"of it the lease: {LEASE:g} s"),
        Row("until a chat's reply: p95", f"{worst:.2f} s", "goal ≤ 1.1", worst / LEASE, "the lease"),
        Row("until a chat's reply: longest", f"{max(waits):.2f} s"),
        Row("from a death's first reply to its last", f"{max(max(each) - min(each) for each in deaths):.2f} s"),
    ]


async def _pair(url: str, home: str) -> list[list[float]]:
    """The seconds that each chat of each death waited."""
    said: dict[str, float] = {}
    async with process(said.__setitem__, _MODULE, url, home, _ANSWERS) as living:
        return [await _death(url, home, living, said, number) for number in range(DEATHS)]


async def _death(url: str, home: str, living: Process, answered: dict[str, float], number: int) -> list[float]:
    begun: dict[str, float] = {}  # by the one that dies
    async with process(begun.__setitem__, _MODULE, url, home, _HANGS) as dying:
        said = {f"{number} chat{chat}" for chat in range(CHATS)}
        heard = set(list(said)[::2])  # a process runs what it accepts, as long as it is not busy
        dying.hears(heard)
        living.hears(said - heard)
        await eventually(lambda: said <= answered.keys() | begun.keys(), within=_PATIENCE)
        owed = said - answered.keys()
        await asyncio.sleep(random.random())  # any moment of the beat
        killed = time.monotonic()
        dying.kill()
        await eventually(lambda: owed <= answered.keys(), within=_PATIENCE)
        return [answered[text] - killed for text in owed]


# -- the gateway's own process ----------------------------------------------------------------


class _Hanging(Instant):
    """A model that begins and never answers."""

    async def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Nothing comes."""
        tell("reply", text_of(request.messages[-1]))
        await asyncio.Event().wait()
        async for event in super().stream(spec, request):
            yield event


async def _serve(url: str, home: str, kind: str) -> None:
    model = Instant() if kind == _ANSWERS else _Hanging()
    parts = Parts(store=store_at(url), providers={"offline": model})
    await build(settings(Path(home, "home.db")), [Lines()], parts).run()


if __name__ == "__main__":
    collect_seldom()
    log_as_in_production()
    asyncio.run(_serve(*sys.argv[1:]))
