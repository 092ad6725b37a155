"""The exact work of one message, as `tests/architecture/budgets.json` holds it: `make work`.

Counted is what a machine's speed does not change: calls of Python functions on every thread, statements of SQLite or
commands of Redis, tasks, timers, bytes written to files; of a start, the modules that its first reply has loaded. The
model takes no time; a platform and its people are a process of their own.

    python -m tests.bench.work                   each world, beside what the file says, by rooms
    python -m tests.bench.work telegram --all    one world, and its functions
    python -m tests.bench.work --write           writes the file anew: then the commit says why a number rose
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
from asyncio import base_events
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, Final
from unittest.mock import AsyncMock, patch

from pydantic import SecretStr

from gateway.app.gateway import Gateway
from gateway.app.upkeep import Upkeep
from gateway.runtime.clock import SystemClock
from gateway.store.redis import RedisStore
from gateway.store.sqlite.connection import LOG_PAGES, lengthen
from tests.bench.served import synced_server
from tests.bench.telegram import platform
from tests.bench.world import Chats, Instant, Stamp, bot, log_as_in_production, quiet, running, settings
from tests.support.hosts import host

PROJECT: Final = Path(__file__).parents[2]
FILE: Final = PROJECT / "tests/architecture/budgets.json"
CHATS: Final = 10
WARM, EACH = 5, 10  # messages of a chat that are not counted, and those that are
_SQL: Final = ("Cursor.execute", "Connection.execute")

Round = Callable[[int], Awaitable[object]]
"""Let each of the chats say so many things, and return when all is quiet."""


@dataclass(slots=True)
class Work:
    """What was counted, for all messages together."""

    functions: Counter[tuple[str, str]] = field(default_factory=Counter)  # by file and name
    statements: int = 0
    commands: int = 0
    tasks: int = 0
    timers: int = 0
    written: int = 0  # bytes
    counts: bool = False

    def seen(self, frame: FrameType, event: str, argument: Any) -> None:
        """A profile function (`sys.setprofile`)."""
        if not self.counts:
            return
        if event == "call":
            code = frame.f_code
            self.functions[code.co_filename, code.co_name] += 1
            self.commands += code.co_name == "_command" and code.co_filename.endswith("store/redis/connection.py")
        elif event == "c_call":
            own = frame.f_code.co_filename.endswith("store/sqlite/writer.py")  # as many as the machine is idle
            self.statements += not own and getattr(argument, "__qualname__", "") in _SQL

    def each(self, messages: int) -> dict[str, Any]:
        """The figures of one message; `rooms` are calls of our own functions. `functions` and `files` are those of ours
        that any of the messages ran through, `walk` the files in the order in which they were come to."""
        rooms, walked = Counter[str](), Counter[str]()
        for (file, _), count in self.functions.items():
            room = _room(file)
            rooms[room] += count
            if room:
                walked[str(Path(file).relative_to(PROJECT))] += 1
        others = rooms.pop("", 0)
        found = {
            "calls": sum(rooms.values()) + others,
            "own": sum(rooms.values()),
            "statements": self.statements,
            "commands": self.commands,
            "tasks": self.tasks,
            "timers": self.timers,
            "kilobytes": self.written / 1000,
        }
        walk = {"functions": sum(walked.values()), "files": len(walked), "walk": list(walked)}
        of_rooms = {room: round(count / messages) for room, count in sorted(rooms.items()) if count >= messages}
        return {name: round(value / messages, 1) for name, value in found.items()} | walk | {"rooms": of_rooms}


def _written() -> int:
    """The bytes that this process has written to files; 0 where the system (not Linux) does not say so."""
    said = Path("/proc/self/io")
    return int(said.read_text().split("wchar: ")[1].split()[0]) if said.exists() else 0


def _room(file: str) -> str:
    """The room of our own code that a file is of; "" for others' code and the bench's."""
    path = Path(file)
    if not path.is_relative_to(PROJECT) or path.parts[len(PROJECT.parts)] not in ("gateway", "adapters"):
        return ""
    return "/".join(path.relative_to(PROJECT).parts[:2])


@contextmanager
def _counting(work: Work) -> Iterator[None]:
    """Count from here on in this process: to be entered before any thread starts. What is done every few seconds stays
    away: it is no message's, and a slow machine would count more of it."""
    loop: Any = base_events.BaseEventLoop
    create_task, call_at = loop.create_task, loop.call_at

    def task(self: Any, coroutine: Any, **more: Any) -> Any:
        work.tasks += work.counts
        return create_task(self, coroutine, **more)

    def timer(self: Any, *arguments: Any, **more: Any) -> Any:
        work.timers += work.counts
        return call_at(self, *arguments, **more)

    loop.create_task, loop.call_at = task, timer
    threading.setprofile(work.seen)
    sys.setprofile(work.seen)
    try:
        with patch.object(Upkeep, "repeat", AsyncMock()):
            yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        loop.create_task, loop.call_at = create_task, call_at


# -- the worlds --------------------------------------------------------------------------------


async def _rest(gateway: Gateway, chats: Chats, text: str, each: int) -> None:
    for number in range(CHATS):
        await chats.talk(f"c{number}", each, text)
    await quiet(gateway)


@asynccontextmanager
async def _sqlite(*, calls: bool = False, text: str = "") -> AsyncIterator[Round]:
    provider = Instant([("stamp", "{}"), ("stamp", "{}")]) if calls else Instant()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "work.db")
        async with running(settings(file), provider=provider, tools=[Stamp()]) as (gateway, chats):

            async def talk(each: int) -> None:
                await _rest(gateway, chats, text, each)
                lengthen(f"{file}-wal", LOG_PAGES)  # as it is once a few hundred messages have filled the log

            yield talk


class _Still(SystemClock):
    """Its sleepers wait for ever: what a process says of itself each second costs no message anything."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.Event().wait()


@asynccontextmanager
async def _redis() -> AsyncIterator[Round]:
    with tempfile.TemporaryDirectory() as folder, synced_server() as server:
        config = settings(Path(folder, "home.db"))
        store = RedisStore(server.url, clock=_Still(), lease_seconds=3_600.0)
        async with running(config, store=store, provider=Instant()) as (gateway, chats):
            yield partial(_rest, gateway, chats, "")


@asynccontextmanager
async def _telegram() -> AsyncIterator[Round]:
    from adapters.telegram.adapter import TelegramAdapter
    from adapters.telegram.platform import TelegramSettings

    async with platform("tests.bench.telegram_people", "free") as people:
        own = TelegramSettings(token=SecretStr(people.token), base_url=people.base_url)
        async with bot(TelegramAdapter(own, host(), paced=False)) as gateway:

            async def talk(each: int) -> None:
                await people.talk(each, lambda: quiet(gateway), chats=CHATS)

            yield talk


@asynccontextmanager
async def _discord() -> AsyncIterator[Round]:
    from adapters.discord.adapter import DiscordAdapter
    from adapters.discord.platform import DiscordSettings

    async with platform("tests.bench.people", "discord") as people:
        own = DiscordSettings(token=SecretStr(people.token), base_url=people.base_url, listen="free", quoted=0)
        async with bot(DiscordAdapter(own, host())) as gateway:

            async def talk(each: int) -> None:
                await people.talk(each, lambda: quiet(gateway), chats=CHATS)

            yield talk


def _program(name: str) -> Callable[[], AbstractAsyncContextManager[Round]]:
    """Another program that talks to the bot. What it needs is loaded where it is measured."""
    return lambda: getattr(import_module("tests.bench.programs"), name)()  # type: ignore[no-any-return]


WORLDS: Final = {
    "sqlite": _sqlite,
    "tools": partial(_sqlite, calls=True),  # a message with a round of two calls
    "status": partial(_sqlite, text="/status"),  # a command that only shows
    "redis": _redis,
    "telegram": _telegram,
    "discord": _discord,
    "lines": _program("lines"),
    "api": _program("api"),
}
START: Final = "start"  # of the program, and its first reply: no message, but it is held as one


async def measure(world: str, work: Work) -> dict[str, Any]:
    """The figures of one message in a world. Nothing of it may have run in this process before."""
    with _counting(work):
        async with WORLDS[world]() as talk:
            await talk(WARM)
            work.counts, before = True, _written()
            await talk(EACH)
            work.counts, work.written = False, _written() - before
    return work.each(CHATS * EACH)


_FIRST_REPLY: Final = """
import json, sys
from gateway.__main__ import main
from gateway.runtime import tokens
sys.argv = ["legato", "chat"]
try:
    main()
finally:
    of_room = [name for name in sys.modules if name.partition(".")[0] in ("gateway", "adapters")]
    whole = tokens._whole.cache_info().currsize
    print(json.dumps({"modules": len(sys.modules), "ours": len(of_room), "whole_vocabulary": whole}), file=sys.stderr)
"""


def started() -> dict[str, Any]:
    """What `legato chat` has loaded by its first reply: modules, those of ours, and whether all of the vocabulary."""
    with tempfile.TemporaryDirectory() as home:
        words, places = [sys.executable, "-c", _FIRST_REPLY], {"LEGATO_HOME": home, "PYTHONPATH": str(PROJECT)}
        done = subprocess.run(
            words, input=b"hello\n", env=os.environ | places, cwd=home, capture_output=True, check=True
        )
    found: dict[str, Any] = json.loads(done.stderr.splitlines()[-1])
    return found | {"rooms": {}, "walk": []}


def measured(world: str) -> dict[str, Any]:
    """The same, counted in a process of its own."""
    if world == START:
        return started()
    words = [sys.executable, "-m", "tests.bench.work", "--json", world]
    found: dict[str, Any] = json.loads(subprocess.check_output(words, cwd=PROJECT))
    return found


# -- the command -------------------------------------------------------------------------------


def _told(world: str, now: dict[str, Any], before: dict[str, Any]) -> str:
    head = " · ".join(
        f"{name} {now[name]:g} ({before.get(name, 0):g})" for name in now if name not in ("rooms", "walk")
    )
    rooms = before.get("rooms", {})
    lines = [f"  {room:<24}{count:>6}{rooms.get(room, 0):>6}" for room, count in now["rooms"].items()]
    return "\n".join([f"{world}: {head}", *lines, ""])


def main() -> None:
    """Print, or write, what a message costs."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.work", description=__doc__.partition("\n")[0])
    parser.add_argument("worlds", nargs="*", help=f"any of: {', '.join(WORLDS)}")
    parser.add_argument("--all", action="store_true", help="each function, of one world")
    parser.add_argument("--json", action="store_true", help="the figures of one world alone")
    parser.add_argument("--write", action="store_true", help="write the file anew")
    given = parser.parse_args()
    log_as_in_production()
    if given.json or given.all:
        work = Work()
        found = asyncio.run(measure(given.worlds[0], work))
        print(json.dumps(found))
        for (file, name), count in work.functions.most_common() if given.all else ():
            print(f"{count / CHATS / EACH:8.2f} {file.removeprefix(f'{PROJECT}/')[-70:]}:{name}")
        return
    budgets: dict[str, Any] = json.loads(FILE.read_text()) if FILE.exists() else {}
    for world in given.worlds or (*WORLDS, START):
        now = measured(world)
        print(_told(world, now, budgets.get(world, {})), flush=True)
        budgets[world] = now
        if world != "sqlite":  # the one whose walk the docs show
            now.pop("walk")
        if world not in ("sqlite", "tools", "status", START):  # no file; messages share pages, as time has it
            now.pop("kilobytes")
    if given.write:
        FILE.write_text(json.dumps(budgets, indent=1) + "\n")


if __name__ == "__main__":
    main()
