"""Other programs that talk to the bot: over JSON lines, over its API, and over the page.

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
from tempfile import TemporaryDirectory
from urllib.parse import urlencode

from pydantic import SecretStr

from adapters.api.adapter import ApiAdapter
from adapters.api.platform import ApiSettings
from adapters.console.adapter import JsonConsole
from adapters.web.adapter import WebAdapter
from adapters.web.platform import WebPerson, WebSettings
from gateway.domain.keys import Key
from gateway.people.keys import Keys
from tests.bench.world import bot, quiet, said
from tests.support.hosts import host

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
async def lines(*, stream: bool = False, chats: int = CHATS) -> AsyncIterator[Talk]:
    """`legato chat --json` between two pipes. `stream`: the answers come in pieces. `chats`: so many talk."""
    to_bot, from_us = os.pipe()
    to_us, from_bot = os.pipe()
    adapter = JsonConsole(to_bot, from_bot, host())
    numbers = iter(range(1_000_000))
    with os.fdopen(from_us, "wb", buffering=0) as speak, os.fdopen(to_us, "rb") as listen:

        def all_say(each: int) -> None:
            for number in range(each):
                for chat in range(chats):
                    line = {"id": f"e{next(numbers)}", "chat": f"c{chat}", "text": said(number), "stream": stream}
                    speak.write(json.dumps(line).encode() + b"\n")
                left = chats
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


@asynccontextmanager
async def api(*, stream: bool = False) -> AsyncIterator[Talk]:
    """The API on a port of its own. Its clients send their whole history each time. `stream`: the answers come in
    pieces."""
    adapter = ApiAdapter(ApiSettings(enabled=True, port=0), host())
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


class Reader:
    """Somebody with the page open: a browser without its drawing. It says things, and waits until each is answered."""

    def __init__(self, at: str, name: str, password: str) -> None:
        host = at.removeprefix("http://")
        self._says, self._hears = HTTPConnection(host), HTTPConnection(host)
        self._says.request("POST", "/login", urlencode({"name": name, "password": password}), self._head(at, ""))
        answer = self._says.getresponse()
        answer.read()
        self._cookie = str(answer.headers["Set-Cookie"]).partition(";")[0]
        self._at = at
        self._says.request("GET", "/c/", headers=self._head(at, self._cookie))
        page = self._says.getresponse().read().decode()
        self._csrf = page.partition('name="csrf" value="')[2].partition('"')[0]
        self._hears.request("GET", "/events?last=0", headers=self._head(at, self._cookie))
        self._events = self._hears.getresponse()

    @staticmethod
    def _head(at: str, cookie: str) -> dict[str, str]:
        form = "application/x-www-form-urlencoded"
        return {"Cookie": cookie, "Origin": at, "Content-Type": form, "Accept": "application/json"}

    def ask(self, text: str, number: int) -> None:
        """Send a message."""
        said = urlencode({"csrf": self._csrf, "id": f"event{number:08d}", "text": text})
        self._says.request("POST", "/say", said, self._head(self._at, self._cookie))
        answer = self._says.getresponse()
        assert answer.status == 200, answer.read()
        answer.read()

    def hear(self) -> None:
        """Read events until an answer is whole."""
        while True:
            line = self._events.readline()
            assert line, "the stream has ended"
            if line.startswith(b"data: {") and b'class=\\"reply\\"' in line:
                return

    def close(self) -> None:
        """Leave."""
        self._says.close()
        self._hears.close()


@asynccontextmanager
async def page(*, chats: int = CHATS) -> AsyncIterator[Talk]:
    """The page, open in a browser of each person. Its answers come in pieces."""
    password = "a-long-password-of-mine"
    people = {f"c{number}": WebPerson(password=SecretStr(password)) for number in range(chats)}
    settings = WebSettings(enabled=True, port=0, url="http://127.0.0.1", people=people)
    with TemporaryDirectory() as folder:
        adapter = WebAdapter(settings, host(home=Path(folder)))
        async with bot(adapter) as gateway:
            await adapter.listens.wait()
            numbers = iter(range(1_000_000))
            readers: list[Reader] = []
            await _unseen(lambda: readers.extend(Reader(adapter.at, name, password) for name in people))

            def all_say(each: int) -> None:
                for number in range(each):
                    for reader in readers:
                        reader.ask(said(number), next(numbers))
                    for reader in readers:
                        reader.hear()

            async def talk(each: int) -> float:
                cpu = await _unseen(partial(all_say, each))
                await quiet(gateway)
                return cpu

            yield talk
            for reader in readers:
                reader.close()
