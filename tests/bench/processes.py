"""Gateways in processes of their own. Each reads lines, says each in the chat that its last word names, and tells which
line was answered and when, whichever process it was given to.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Final

from gateway.domain.adapter import Accept, Limits
from gateway.domain.chat import Inbound, Outbound, Source
from tests.bench.start import PROJECT

_READY: Final = "ready"
_QUESTION: Final = "?"
_PATIENCE: Final = 60.0  # seconds, for a start


class Process:
    """A gateway in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._told: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def listen(self, heard: Callable[[str, float], object]) -> None:
        """Until it ends, `heard` is called with each line that was answered and the machine's time of that."""
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            at, kind, text = line.decode().strip().split(" ", 2)
            if kind == "reply":
                heard(text, float(at))
            elif kind == "error":
                raise AssertionError(text)
            else:
                self._told.set_result(text)

    def hears(self, texts: Iterable[str]) -> None:
        """Write each as a line."""
        assert self._process.stdin is not None
        self._process.stdin.write("".join(text + "\n" for text in texts).encode())

    async def told(self) -> str:
        """What it tells beside answers."""
        text = await self._told
        self._told = asyncio.get_running_loop().create_future()
        return text

    async def ask(self) -> str:
        """What its adapter was made to tell."""
        self.hears([_QUESTION])
        return await self.told()

    def kill(self) -> None:
        """At once."""
        if self._process.returncode is None:
            self._process.kill()


@asynccontextmanager
async def process(heard: Callable[[str, float], object], module: str, *arguments: str) -> AsyncIterator[Process]:
    """One that runs, until the block ends."""
    started = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, *arguments,
        cwd=PROJECT, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    made = Process(started)
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(made.listen(heard))
            try:
                async with asyncio.timeout(_PATIENCE):
                    await made.told()
                yield made
            finally:
                made.kill()
    finally:
        await started.wait()


# -- the gateway's own process ----------------------------------------------------------------


def tell(kind: str, text: str) -> None:
    """Write a line."""
    print(time.monotonic(), kind, text, flush=True)  # the machine's clock: the same in every process


class Lines:
    """An adapter: each line that is read is said in the chat that its last word names; each reply is
    told by what it answers. A question is answered by `asked`."""

    name = "bench"
    limits = Limits(trusted=True)

    def __init__(self) -> None:
        self.asked: Callable[[], Awaitable[str]] | None = None

    async def run(self, accept: Accept) -> None:
        """Read until cancelled."""
        lines = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        tell("told", _READY)
        async for line in lines:
            text = line.decode().strip()
            if text == _QUESTION and self.asked:
                tell("told", await self.asked())
            else:
                source = Source(platform=self.name, chat=text.split()[-1], chat_type="direct", user="somebody")
                await accept([Inbound(event_id=text, source=source, text=text)])

    async def send(self, outbound: Outbound) -> str:
        """Handed over."""
        if outbound.kind == "error":
            tell("error", " ".join(outbound.text.split()))
        elif outbound.kind == "reply":  # and not the notice of a compaction before it
            tell("reply", outbound.answers or "")
        return "1"

    async def aclose(self) -> None:
        """Nothing is open."""
