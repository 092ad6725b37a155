"""Other programs that talk to the bot: over JSON lines, and over its API.

They run in threads of this process that nobody counts, and wait for each answer before they say the next thing.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from unittest.mock import AsyncMock

from adapters.api.adapter import ApiAdapter
from adapters.api.platform import ApiSettings
from adapters.console.adapter import JsonConsole
from gateway.domain.keys import Key
from gateway.domain.platform import AdapterHost
from gateway.people.keys import Keys
from gateway.runtime.clock import SystemClock, SystemIds
from tests.bench.world import bot, quiet, said

Talk = Callable[[int], Awaitable[float]]
"""Let each of the chats say so many things; returns the CPU seconds of those who said them."""
CHATS = 10


async def _unseen(work: Callable[[], None]) -> float:
    """Do this in a thread that no profile function sees. Returns its CPU seconds."""

    def unseen() -> float:
        sys.setprofile(None)
        begun = time.thread_time()
        work()
        return time.thread_time() - begun

    return await asyncio.to_thread(unseen)


@asynccontextmanager
async def lines(*, stream: bool = False) -> AsyncIterator[Talk]:
    """`legato chat --json` between two pipes. `stream`: the answers come in pieces."""
    to_bot, from_us = os.pipe()
    to_us, from_bot = os.pipe()
    adapter = JsonConsole(to_bot, from_bot, ids=SystemIds(), clock=SystemClock())
    numbers = iter(range(1_000_000))
    with os.fdopen(from_us, "wb", buffering=0) as speak, os.fdopen(to_us, "rb") as listen:

        def all_say(each: int) -> None:
            for number in range(each):
                for chat in range(CHATS):
                    line = {"id": f"e{next(numbers)}", "chat": f"c{chat}", "text": said(number), "stream": stream}
                    speak.write(json.dumps(line).encode() + b"\n")
                left = CHATS
                while left:
                    left -= json.loads(listen.readline())["kind"] == "reply"

        async with bot(adapter) as gateway:

            async def talk(each: int) -> float:
                cpu = await _unseen(partial(all_say, each))
                await quiet(gateway)
                return cpu

            yield talk
    os.close(to_bot)
    os.close(from_bot)


class Program:
    """A client of the API with a connection of its own, which sends its whole history each time. `stream`: it takes its
    answers in pieces."""

    def __init__(self, at: str, secret: str, name: str, *, stream: bool = False) -> None:
        self._connection = HTTPConnection(at.removeprefix("http://"))
        self._head = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
        self._history: list[dict[str, str]] = []
        self._asked = {"model": "legato", "stream": stream, "metadata": {"chat_id": name}, "messages": self._history}

    def ask(self, text: str) -> None:
        """Send a message."""
        self._history.append({"role": "user", "content": text})
        self._connection.request("POST", "/v1/chat/completions", json.dumps(self._asked), self._head)

    def hear(self) -> None:
        """Read its answer."""
        answer = self._connection.getresponse()
        assert answer.status == 200
        told = answer.read()
        if self._asked["stream"]:
            events = [json.loads(line[6:]) for line in told.split(b"\n\n") if line.startswith(b"data: {")]
            text = "".join(event["choices"][0]["delta"].get("content", "") for event in events)
        else:
            text = json.loads(told)["choices"][0]["message"]["content"]
        self._history.append({"role": "assistant", "content": text})

    def close(self) -> None:
        """Leave."""
        self._connection.close()


def host_of(folder: Path) -> AdapterHost:
    """What an adapter is given."""
    return AdapterHost(
        clock=SystemClock(),
        ids=SystemIds(),
        home=folder,
        menu=(),
        admins=(),
        model="bench",
        model_in_full="bench",
        turns_running=lambda: 0,
        greeting=AsyncMock(return_value=""),
        farewell=AsyncMock(return_value=""),
        model_of=AsyncMock(return_value="bench"),
    )


@asynccontextmanager
async def api(*, stream: bool = False) -> AsyncIterator[Talk]:
    """The API on a port of its own. Its clients send their whole history each time. `stream`: the answers come in
    pieces."""
    adapter = ApiAdapter(ApiSettings(enabled=True, port=0), host_of(Path()))
    async with bot(adapter) as gateway:
        await adapter.listens.wait()
        assert isinstance(adapter.keys, Keys)
        secret = await adapter.keys.add(Key(name="bench"))
        programs = [Program(adapter.at, secret, f"c{n}", stream=stream) for n in range(CHATS)]

        def all_say(each: int) -> None:
            for number in range(each):
                for program in programs:
                    program.ask(said(number))
                for program in programs:
                    program.hear()

        async def talk(each: int) -> float:
            cpu = await _unseen(partial(all_say, each))
            await quiet(gateway)
            return cpu

        try:
            yield talk
        finally:
            for program in programs:
                program.close()
