"""A bot on Telegram: 200 chats at once, what the adapter costs beside its library, and what enabling it adds.

Telegram and its people are a process of their own (`telegram_people`); the model takes no time. CPU is that of this
process: of the whole gateway with the bot, of the gateway alone (with an adapter that does nothing), and of a bot made
of python-telegram-bot only, which polls, shows that it types and answers. What is left is the adapter's own. Weight and
start are those of a fresh interpreter that has loaded the gateway, with the adapter and without it.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from pydantic import SecretStr
from telegram import Update
from telegram.ext import ApplicationBuilder, CallbackContext, MessageHandler, filters

from adapters.telegram.adapter import TelegramAdapter
from adapters.telegram.platform import TelegramSettings
from tests.bench.start import PROJECT
from tests.bench.table import Row, Rows, milliseconds
from tests.bench.telegram_people import MOST
from tests.bench.world import REPLY, Instant, bot, quiet, running, settings
from tests.support.hosts import host

TITLE = "A bot on Telegram; model at 0 ms, durable SQLite, the server in a process of its own"
EACH: Final = 3
ROUNDS: Final = 3
STARTS: Final = 5
_LIMITED_EACH: Final = 2
_LONGEST_LINE: Final = 16 * 1024 * 1024  # bytes of what the people tell: each wait of theirs
_LOADED: Final = """
import time; begun = time.perf_counter()
import gateway.app.build, gateway.providers.offline.model, {module}
status = open("/proc/self/status").read()
peak = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
print(time.perf_counter() - begun, int(peak) / 1024)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """One round: seconds, CPU seconds of this process, and the messages that were answered."""

    seconds: float
    cpu: float
    messages: int

    @property
    def rate(self) -> float:
        """Messages a second."""
        return self.messages / self.seconds

    @property
    def each(self) -> float:
        """CPU seconds a message."""
        return self.cpu / self.messages


@dataclass(slots=True, kw_only=True)
class People:
    """The other process."""

    process: asyncio.subprocess.Process
    base_url: str
    token: str
    refused: int = 0

    async def talk(self, each: int, rest: Callable[[], Awaitable[None]], chats: int = MOST) -> Spent:
        """A round of so many of them; its CPU is counted until `rest` returns."""
        cpu = time.process_time()
        assert self.process.stdin is not None
        self.process.stdin.write(f"{chats} {each}\n".encode())
        told = await self.read()
        await rest()
        self.refused = told["refused"]
        return Spent(seconds=told["seconds"], cpu=time.process_time() - cpu, messages=chats * each)

    async def read(self) -> dict[str, Any]:
        """Return the next line of the people's process."""
        assert self.process.stdout is not None
        told: dict[str, Any] = json.loads(await self.process.stdout.readline())
        return told


@asynccontextmanager
async def platform(module: str, *arguments: str) -> AsyncIterator[People]:
    """A platform and its people, until the block ends."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        *arguments,
        cwd=PROJECT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=_LONGEST_LINE,
    )
    people = People(process=process, base_url="", token="")
    try:
        told = await people.read()
        people.base_url, people.token = told["base_url"], told["token"]
        yield people
    finally:
        process.terminate()
        await process.wait()


async def measure() -> Rows:
    """Rates, then CPU, then weights."""
    async with platform("tests.bench.telegram_people", "free") as people:
        ours = await _gateway(people, each=EACH, rounds=ROUNDS, paced=False)
    async with platform("tests.bench.telegram_people", "free") as people:
        library = await _library(people)
    async with platform("tests.bench.telegram_people", "limited") as people:
        (limited,) = await _gateway(people, each=_LIMITED_EACH, rounds=1, paced=True)
        refused = people.refused
    alone = await gateway_alone()
    with_bot, without = [loaded("adapters.telegram.adapter")], [loaded("gateway")]
    for _ in range(STARTS - 1):
        with_bot.append(loaded("adapters.telegram.adapter"))
        without.append(loaded("gateway"))
    return _rows(ours, library, alone, limited, refused, with_bot, without)


async def _gateway(people: People, *, each: int, rounds: int, paced: bool) -> list[Spent]:
    settings = TelegramSettings(token=SecretStr(people.token), base_url=people.base_url)
    adapter = TelegramAdapter(settings, host(), paced=paced)
    async with bot(adapter) as gateway:
        return [await people.talk(each, lambda: quiet(gateway)) for _ in range(rounds)]


async def _library(people: People) -> list[Spent]:
    """python-telegram-bot and nothing else, with as many connections and answers side by side."""

    async def answer(update: Update, _: CallbackContext[Any, Any, Any, Any]) -> None:
        assert update.effective_chat is not None
        await update.effective_chat.send_action("typing")
        await update.effective_chat.send_message(REPLY)

    application = (
        ApplicationBuilder()
        .token(people.token)
        .base_url(people.base_url)
        .concurrent_updates(True)
        .connection_pool_size(64)
        .pool_timeout(60.0)
        .read_timeout(60.0)
        .build()
    )
    application.add_handler(MessageHandler(filters.TEXT, answer))
    async with application:
        assert application.updater is not None
        await application.start()
        await application.updater.start_polling(timeout=30)
        try:
            return [await people.talk(EACH, _at_once) for _ in range(ROUNDS)]
        finally:
            await application.updater.stop()
            await application.stop()


async def _at_once() -> None:
    """Nothing is left to be done."""


async def gateway_alone() -> list[Spent]:
    """Rounds of a gateway with an adapter that does nothing."""
    spent = []
    with tempfile.TemporaryDirectory() as folder:
        async with running(settings(Path(folder, "alone.db")), provider=Instant()) as (gateway, chats):
            for _ in range(ROUNDS):
                start, cpu = time.perf_counter(), time.process_time()
                await chats.talk_all([f"chat{number}" for number in range(MOST)], EACH)
                await quiet(gateway)
                seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
                spent.append(Spent(seconds=seconds, cpu=cpu, messages=MOST * EACH))
    return spent


def loaded(module: str) -> tuple[float, float]:
    """Seconds that a fresh interpreter takes to load the gateway and a module, and its peak in MB."""
    environment = {**os.environ, "LEGATO_HOME": ".", "PYTHONPATH": str(PROJECT)}
    words = subprocess.check_output([sys.executable, "-c", _LOADED.format(module=module)], env=environment).split()
    return float(words[0]), float(words[1])


def _rows(
    ours: list[Spent],
    library: list[Spent],
    alone: list[Spent],
    limited: Spent,
    refused: int,
    with_bot: list[tuple[float, float]],
    without: list[tuple[float, float]],
) -> Rows:
    whole, bare, host = (median(each.each for each in spent[1:]) for spent in (ours, library, alone))
    seconds, weight = (median(one[k] for one in with_bot) - median(one[k] for one in without) for k in (0, 1))
    rate, lone = (median(each.rate for each in spent[1:]) for spent in (ours, library))
    alone_with = "the library alone, which polls, types and answers"
    return [
        Row("library alone: messages a second", f"{lone:,.0f}/s"),
        Row("on Telegram: messages a second, no limits", f"{rate:,.0f}/s", "goal ≥ 1", rate / lone, alone_with),
        Row(f"{MOST} chats, Telegram's limits", f"{limited.rate:.1f}/s", f"goal 30/s; {refused} calls refused"),
        Row("library alone: CPU a message", milliseconds(bare)),
        Row("gateway alone: CPU a message", milliseconds(host)),
        Row("on Telegram: CPU a message", milliseconds(whole), "", whole / bare, alone_with),
        Row("the same, beside library and gateway", milliseconds(whole - bare - host), "the adapter's own"),
        Row("enabling Telegram: start", f"{seconds:+.2f} s"),
        Row("enabling Telegram: memory", f"{weight:+.0f} MB", "goal ≤ 35 MB"),
    ]
