"""Other programs that talk to the bot: over JSON lines, and over its API.

They run in threads of this process that nobody counts, and wait for each answer before they say the next thing.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
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

Talk = Callable[[int], Awaitable[None]]
CHATS = 10


async def _unseen(work: Callable[[], None]) -> None:
    """Do this in a thread that no profile function sees."""

    def unseen() -> None:
        sys.setprofile(None)
        work()

    await asyncio.to_thread(unseen)


@asynccontextmanager
async def lines() -> AsyncIterator[Talk]:
    """`legato chat --json` between two pipes."""
    to_bot, from_us = os.pipe()
    to_us, from_bot = os.pipe()
    adapter = JsonConsole(to_bot, from_bot, ids=SystemIds(), clock=SystemClock())
    numbers = iter(range(1_000_000))
    with os.fdopen(from_us, "wb", buffering=0) as speak, os.fdopen(to_us, "rb") as listen:

        def all_say(each: int) -> None:
            for number in range(each):
                for chat in range(CHATS):
                    line = {"id": f"e{next(numbers)}", "chat": f"c{chat}", "text": said(number)}
                    speak.write(json.dumps(line).encode() + b"\n")
                left = CHATS
                while left:
                    left -= json.loads(listen.readline())["kind"] == "reply"

        async with bot(adapter) as gateway:

            async def talk(each: int) -> None:
                await _unseen(partial(all_say, each))
                await quiet(gateway)

            yield talk
    os.close(to_bot)
    os.close(from_bot)


class _Program:
    """A client of the API with a connection of its own, which sends its whole history each time."""

    def __init__(self, at: str, secret: str, name: str) -> None:
        host, port = at.removeprefix("http://").split(":")
        self._socket = socket.create_connection((host, int(port)))
        self._answers = self._socket.makefile("rb")
        self._secret, self._name = secret, name
        self._history: list[dict[str, str]] = []

    def ask(self, text: str) -> None:
        """Send a message."""
        self._history.append({"role": "user", "content": text})
        asked = {"model": "legato", "messages": self._history, "metadata": {"chat_id": self._name}}
        body = json.dumps(asked).encode()
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: bot\r\nAuthorization: Bearer {self._secret}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._socket.sendall(head.encode() + body)

    def hear(self) -> None:
        """Read its answer."""
        assert b" 200 " in self._answers.readline()
        size = 0
        while (line := self._answers.readline().strip()) != b"":
            if line.lower().startswith(b"content-length:"):
                size = int(line.split(b":")[1])
        told = json.loads(self._answers.read(size))["choices"][0]["message"]["content"]
        self._history.append({"role": "assistant", "content": told})

    def close(self) -> None:
        """Leave."""
        self._answers.close()
        self._socket.close()


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
async def api() -> AsyncIterator[Talk]:
    """The API on a port of its own. Its clients send their whole history each time."""
    adapter = ApiAdapter(ApiSettings(enabled=True, port=0), host_of(Path()))
    async with bot(adapter) as gateway:
        await adapter.listens.wait()
        assert isinstance(adapter.keys, Keys)
        secret = await adapter.keys.add(Key(name="bench"))
        programs = [_Program(adapter.at, secret, f"c{n}") for n in range(CHATS)]

        def all_say(each: int) -> None:
            for number in range(each):
                for program in programs:
                    program.ask(said(number))
                for program in programs:
                    program.hear()

        async def talk(each: int) -> None:
            await _unseen(partial(all_say, each))
            await quiet(gateway)

        try:
            yield talk
        finally:
            for program in programs:
                program.close()
