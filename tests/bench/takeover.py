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
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from gateway.app.build import Parts, build
from gateway.domain.adapter import Accept, Limits
from gateway.domain.chat import Inbound, Outbound, Source
from gateway.domain.message import text_of
from gateway.providers.base import ModelEvent, ModelRequest, ModelSpec
from gateway.runtime.heap import collect_seldom
from tests.bench.served import store_at, synced_server
from tests.bench.start import PROJECT
from tests.bench.table import Row, Rows, percentile
from tests.bench.world import Instant, log_as_in_production, settings
from tests.support.waiting import eventually

TITLE = "A process dies while its turns run; Redis, default lease"
LEASE = 10.0  # seconds; RedisStore's own
PAIRS = 5
DEATHS = 4  # of each pair
CHATS = 40  # that speak before each death; about half of them to the process that dies
_ANSWERS, _HANGS, _READY = "answers", "hangs", "ready"
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
        Row("until a chat's reply: p95", f"{worst:.2f} s", f"goal ≤ {LEASE + 1:g} s; {worst / LEASE:.2f} leases"),
        Row("until a chat's reply: longest", f"{max(waits):.2f} s"),
        Row("from a death's first reply to its last", f"{max(max(each) - min(each) for each in deaths):.2f} s"),
    ]


async def _pair(url: str, home: str) -> list[list[float]]:
    """The seconds that each chat of each death waited."""
    async with _process(url, home, _ANSWERS) as living:
        return [await _death(url, home, living, number) for number in range(DEATHS)]


async def _death(url: str, home: str, living: _Process, number: int) -> list[float]:
    async with _process(url, home, _HANGS) as dying:
        await dying.until(_READY)
        said = {f"{number} chat{chat}" for chat in range(CHATS)}
        living.hears(said)
        await eventually(lambda: said <= living.said.keys() | dying.said.keys(), within=_PATIENCE)
        owed = said - living.said.keys()
        await asyncio.sleep(random.random())  # any moment of the beat
        killed = time.monotonic()
        dying.kill()
        await eventually(lambda: owed <= living.said.keys(), within=_PATIENCE)
        return [living.said[text] - killed for text in owed]


class _Process:
    """A gateway in a process of its own; `said` is each of its lines and when it was written."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.said: dict[str, float] = {}

    async def listen(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            at, _, text = line.decode().strip().partition(" ")
            self.said[text] = float(at)

    def hears(self, texts: Iterable[str]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("".join(text + "\n" for text in texts).encode())

    async def until(self, text: str) -> None:
        await eventually(lambda: text in self.said, within=_PATIENCE)

    def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()


@asynccontextmanager
async def _process(url: str, home: str, kind: str) -> AsyncIterator[_Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.bench.takeover", url, home, kind,
        cwd=PROJECT, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    made = _Process(process)
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(made.listen())
            try:
                yield made
            finally:
                made.kill()
    finally:
        await process.wait()


# -- the gateway's own process ----------------------------------------------------------------


def _tell(text: str) -> None:
    print(time.monotonic(), text, flush=True)  # the machine's clock: the same in every process


class _Lines:
    """An adapter: each line that is read is said in the chat that its last word names; each reply is
    told by what it answers."""

    name = "bench"
    limits = Limits(trusted=True)

    async def run(self, accept: Accept) -> None:
        """Read until cancelled."""
        lines = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        _tell(_READY)
        async for line in lines:
            text = line.decode().strip()
            source = Source(platform=self.name, chat=text.split()[-1], chat_type="direct", user="somebody")
            await accept([Inbound(event_id=text, source=source, text=text)])

    async def send(self, outbound: Outbound) -> str:
        """Handed over."""
        _tell(outbound.answers or "")
        return "1"

    async def aclose(self) -> None:
        """Nothing is open."""


class _Hanging(Instant):
    """A model that begins and never answers."""

    async def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Nothing comes."""
        _tell(text_of(request.messages[-1]))
        await asyncio.Event().wait()
        async for event in super().stream(spec, request):
            yield event


async def _serve(url: str, home: str, kind: str) -> None:
    model = Instant() if kind == _ANSWERS else _Hanging()
    parts = Parts(store=store_at(url), providers={"offline": model})
    await build(settings(Path(home, "home.db")), [_Lines()], parts).run()


if __name__ == "__main__":
    collect_seldom()
    log_as_in_production()
    asyncio.run(_serve(*sys.argv[1:]))
