"""A bot on Matrix: 200 rooms at once on a real Synapse, what it costs beside the gateway, and what enabling it adds.

Synapse and its person are processes of their own (`matrix_people`); the model takes no time. Synapse is the limit: a
message and its answer are two events, a receipt and three signs of typing, so the rate of the server itself stands
beside. `python -m tests.bench.matrix --minutes 5 --rooms 40` goes on for so long, and says how the memory grows.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median

from pydantic import SecretStr

from adapters.matrix.adapter import MatrixAdapter
from adapters.matrix.platform import MatrixSettings
from gateway.app.gateway import Gateway
from gateway.runtime.clock import SystemClock
from gateway.runtime.heap import collect_seldom
from tests.bench.table import Row, Rows, milliseconds
from tests.bench.telegram import EACH, ROUNDS, STARTS, People, gateway_alone, loaded, platform
from tests.bench.telegram_people import MOST
from tests.bench.world import bot, log_as_in_production, quiet
from tests.support.programs import SYNAPSE

TITLE = "A bot on Matrix; model at 0 ms, durable SQLite, a real Synapse (SQLite) in a process of its own"
_MORE = 30  # MB that an hour may add


@asynccontextmanager
async def _bot(people: People) -> AsyncIterator[Gateway]:
    user, _ = people.token.split()
    settings = MatrixSettings(user=user, password=SecretStr("secret"), homeserver=people.base_url)
    async with bot(MatrixAdapter(settings, clock=SystemClock())) as gateway:
        yield gateway


async def measure() -> Rows:
    """Rates, then CPU, then weights."""
    if not SYNAPSE.exists():
        return [Row("Synapse is not installed: make matrix-server", "")]
    async with platform("tests.bench.matrix_people", str(MOST)) as people, _bot(people) as gateway:
        ours = [await people.talk(EACH, lambda: quiet(gateway)) for _ in range(ROUNDS)]
        own = people.token.split()[1]
    alone = await gateway_alone()
    with_bot, without = [], []
    for _ in range(STARTS):
        with_bot.append(loaded("adapters.matrix.adapter"))
        without.append(loaded("gateway"))
    whole, host = (median(each.each for each in spent[1:]) for spent in (ours, alone))
    seconds, weight = (median(one[k] for one in with_bot) - median(one[k] for one in without) for k in (0, 1))
    return [
        Row("Synapse alone: messages that it takes", f"{own}/s"),
        Row(f"{MOST} rooms, answered", f"{median(each.rate for each in ours[1:]):,.0f}/s", "Synapse is the limit"),
        Row("gateway alone: CPU a message", milliseconds(host)),
        Row("on Matrix: CPU a message", milliseconds(whole), "", whole / host, "the gateway alone"),
        Row("enabling Matrix: start", f"{seconds:+.2f} s", "goal ≤ 0.5 s"),
        Row("enabling Matrix: memory", f"{weight:+.0f} MB", "goal ≤ 30 MB"),
    ]


async def soak(minutes: float, rooms: int) -> bool:
    """Talk for so long; say whether all was answered, and the memory stayed where it was."""
    async with platform("tests.bench.matrix_people", str(rooms)) as people, _bot(people) as gateway:
        print(f"Synapse alone takes {people.token.split()[1]} messages a second", flush=True)
        end, shown, first = time.monotonic() + 60 * minutes, 0, 0.0
        while time.monotonic() < end:
            spent = await people.talk(EACH, lambda: quiet(gateway), chats=rooms)
            shown += spent.messages
            first = first or _megabytes()
            cpu = milliseconds(spent.each)
            print(f"{shown} answered, {spent.rate:.1f}/s, CPU {cpu} each, {_megabytes():.0f} MB", flush=True)
        more = _megabytes() - first
    print(f"all {shown} were answered; memory {more:+.0f} MB")
    return more <= _MORE


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
