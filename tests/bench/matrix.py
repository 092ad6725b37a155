"""A bot on Matrix: 200 rooms at once, what it costs beside the gateway and its library, and what enabling it adds.

The server and its person are processes of their own (`matrix_people`); the model takes no time. The server is the
emulator, and once a real Synapse, which is the limit there: a message and its answer are two events, a receipt and
three signs of typing, so the rate of the server itself stands beside. `python -m tests.bench.matrix --minutes 5` talks
to the bot on Synapse for so long, whose small windows are compacted again and again, and says how the memory grows.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import quote

import httpx
from pydantic import SecretStr

from adapters.matrix.adapter import MatrixAdapter
from adapters.matrix.platform import MatrixSettings
from gateway.app.gateway import Gateway
from gateway.runtime.connections import Pool, trusting
from gateway.runtime.heap import collect_seldom
from gateway.runtime.tasks import Background
from tests.bench.table import Row, Rows, milliseconds
from tests.bench.telegram import EACH, ROUNDS, STARTS, People, Spent, gateway_alone, loaded, platform
from tests.bench.telegram_people import MOST
from tests.bench.world import REPLY, SMALL_WINDOW, WINDOW, bot, log_as_in_production, quiet
from tests.support.hosts import host
from tests.support.programs import SYNAPSE

TITLE = "A bot on Matrix; model at 0 ms, durable SQLite, the server in a process of its own"
_MORE = 30  # MB that an hour may add


@asynccontextmanager
async def _bot(people: People, window: int = WINDOW) -> AsyncIterator[Gateway]:
    user, _ = people.token.split()
    settings = MatrixSettings(user=user, password=SecretStr("secret"), homeserver=people.base_url)
    async with bot(MatrixAdapter(settings, host()), window=window) as gateway:
        yield gateway


async def measure() -> Rows:
    """Rates, then CPU, then weights."""
    async with platform("tests.bench.matrix_people", str(MOST), "emulated") as people, _bot(people) as gateway:
        ours = [await people.talk(EACH, lambda: quiet(gateway)) for _ in range(ROUNDS)]
    async with platform("tests.bench.matrix_people", str(MOST), "emulated") as people:
        library = await _library(people)
    alone = await gateway_alone()
    with_bot, without = [], []
    for _ in range(STARTS):
        with_bot.append(loaded("adapters.matrix.adapter"))
        without.append(loaded("gateway"))
    whole, bare, host = (median(each.each for each in spent[1:]) for spent in (ours, library, alone))
    seconds, weight = (median(one[k] for one in with_bot) - median(one[k] for one in without) for k in (0, 1))
    beside = "the library alone, which syncs, types and answers"
    return [
        *await _on_synapse(),
        Row(
            f"{MOST} rooms of the emulator, answered",
            f"{median(each.rate for each in ours[1:]):,.0f}/s",
            "goal ≥ 200/s",
        ),
        Row("library alone: CPU a message", milliseconds(bare)),
        Row("gateway alone: CPU a message", milliseconds(host)),
        Row("on Matrix: CPU a message", milliseconds(whole), "", whole / bare, beside),
        Row("the same, beside library and gateway", milliseconds(whole - bare - host), "goal ≤ 1 ms"),
        Row("enabling Matrix: start", f"{seconds:+.2f} s", "goal ≤ 0.5 s"),
        Row("enabling Matrix: memory", f"{weight:+.0f} MB", "goal ≤ 30 MB"),
    ]


async def _on_synapse() -> Rows:
    if not SYNAPSE.exists():
        return [Row("Synapse is not installed: make matrix-server", "")]
    async with platform("tests.bench.matrix_people", str(MOST)) as people, _bot(people) as gateway:
        spent = [await people.talk(EACH, lambda: quiet(gateway)) for _ in range(ROUNDS)]
        own = people.token.split()[1]
    rate = median(each.rate for each in spent[1:])
    return [
        Row("Synapse alone: messages that it takes", f"{own}/s"),
        Row(f"{MOST} rooms of Synapse, answered", f"{rate:,.0f}/s", "Synapse is the limit"),
    ]


async def _library(people: People) -> list[Spent]:
    """httpx over aiohttp's pool and nothing else: it syncs, shows that it types, answers, and says what it read."""
    numbers, user = count(), people.token.split()[0]
    pool = Pool(trusts=trusting(), most=64, keepalive=30.0)
    async with httpx.AsyncClient(transport=pool, base_url=f"{people.base_url}/_matrix/client/v3/", timeout=90) as http:

        async def call(method: str, way: str, body: Any = None, **query: str) -> Any:
            return (await http.request(method, way, json=body, params=query)).json()

        async def answer(room: str, event: str) -> None:
            typing = f"rooms/{quote(room)}/typing/{quote(user)}"
            await call("PUT", typing, {"typing": True, "timeout": 12_000})
            await call("POST", f"rooms/{quote(room)}/receipt/m.read/{quote(event)}", {})
            said = {"msgtype": "m.text", "body": REPLY}
            await call("PUT", f"rooms/{quote(room)}/send/m.room.message/{next(numbers)}", said)
            await call("PUT", typing, {"typing": False})

        async def poll() -> None:
            since = (await call("GET", "sync"))["next_batch"]
            while True:
                told = await call("GET", "sync", since=since, timeout="30000")
                since = told["next_batch"]
                for room, part in told["rooms"].get("join", {}).items():
                    for each in part["timeline"]["events"]:
                        if each["type"] == "m.room.message" and each["sender"] != user:
                            background.start(answer(room, each["event_id"]), name="answer")

        login = {"identifier": {"user": user}, "password": "secret"}
        http.headers["Authorization"] = f"Bearer {(await call('POST', 'login', login))['access_token']}"
        background = Background()
        background.start(poll(), name="poll")
        try:
            return [await people.talk(EACH, _at_once) for _ in range(ROUNDS)]
        finally:
            await background.aclose()


async def _at_once() -> None:
    """Nothing is left to be done."""


async def soak(minutes: float, rooms: int) -> bool:
    """Talk for so long; say whether all was answered, and the memory stayed where it was once the conversations had all
    filled their windows."""
    async with platform("tests.bench.matrix_people", str(rooms)) as people, _bot(people, SMALL_WINDOW) as gateway:
        print(f"Synapse alone takes {people.token.split()[1]} messages a second", flush=True)
        end, shown, first, full = time.monotonic() + 60 * minutes, 0, 0.0, 0.0
        while time.monotonic() < end:
            spent = await people.talk(EACH, lambda: quiet(gateway), chats=rooms)
            shown, now = shown + spent.messages, _megabytes()
            compactions = (await gateway.store.status()).sessions - rooms
            first, full = first or now, full or (now if compactions >= rooms else 0.0)
            cpu = milliseconds(spent.each)
            print(f"{shown} answered, {spent.rate:.1f}/s, CPU {cpu} each, {now:.0f} MB", flush=True)
    print(f"all {shown} were answered; {compactions} compactions; memory {now - first:+.0f} MB", end="")
    print(f", {now - full:+.0f} MB since all windows were full" if full else "")
    return now - (full or first) <= _MORE


def _megabytes() -> float:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096 / 1024**2


def main() -> None:
    """A soak."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.matrix")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rooms", type=int, default=40)
    given = parser.parse_args()
    collect_seldom()
    log_as_in_production()
    sys.exit(0 if asyncio.run(soak(given.minutes, given.rooms)) else 1)


if __name__ == "__main__":
    main()
