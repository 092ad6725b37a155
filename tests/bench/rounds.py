"""Rounds of talk with gateways that know different numbers of sessions.

The sizes take turns in short rounds, so that whatever else the machine does meets all of them;
figures are medians of the rounds. A round: 100 chats talk at once, each saying its next thing when
it was handed its reply; then one chat talks alone. The chats are spread over the known sessions.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

from gateway.app.gateway import Gateway
from tests.bench.table import Row, milliseconds, percentile
from tests.bench.world import Chats, quiet

CHATS = 100
ROUNDS = 7
EACH = 8  # messages of each chat in a round
ALONE = 40  # messages of the single chat in a round


def known(number: int) -> str:
    """The chat of a session that the store knows from before."""
    return f"known{number}"


@dataclass(slots=True, kw_only=True)
class World:
    """A running gateway that knows `size` sessions, and what was measured of it: messages a second,
    CPU seconds a message (of this process, all threads), the same of another process if `other_cpu`
    gives what that one has spent, seconds of each message of the single chat."""

    size: int
    gateway: Gateway
    chats: Chats
    other_cpu: Callable[[], float] | None = None
    rates: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    other: list[float] = field(default_factory=list)
    alone: list[float] = field(default_factory=list)

    async def round(self) -> None:
        """One round of both kinds of talk."""
        await self.crowd()
        self.alone += await self.chats.talk(known(0), ALONE)
        await quiet(self.gateway)

    async def crowd(self) -> None:
        """The first half of a round."""
        step = max(1, self.size // CHATS)
        talking = [known(number * step) for number in range(min(CHATS, self.size))]
        talking += [f"fresh{number}" for number in range(CHATS - len(talking))]
        other = self.other_cpu() if self.other_cpu else 0.0
        start, cpu = time.perf_counter(), time.process_time()
        await self.chats.talk_all(talking, EACH)
        self.rates.append(CHATS * EACH / (time.perf_counter() - start))
        await quiet(self.gateway)
        self.cpu.append((time.process_time() - cpu) / (CHATS * EACH))
        if self.other_cpu:
            self.other.append((self.other_cpu() - other) / (CHATS * EACH))

    def forget(self) -> None:
        """Forget the measurements: this round only loads and compiles the code for the others."""
        del self.rates[:], self.cpu[:], self.other[:], self.alone[:]


async def take_turns(worlds: Sequence[World], bare: Callable[[], Awaitable[None]]) -> None:
    """All rounds of all worlds, and one before that does not count; before each a round of a bare loop."""
    for number in range(ROUNDS + 1):
        await bare()
        for world in worlds:
            await world.round()
            if not number:
                world.forget()


def rows(world: World, first: World) -> list[Row]:
    """Three lines, compared with the `first` world, which knows the fewest sessions."""
    label = f"{world.size:>7,} known sessions"
    rate, p50, p95 = median(world.rates), percentile(world.alone, 0.5), percentile(world.alone, 0.95)
    server = f"its server {milliseconds(median(world.other))}" if world.other else ""
    beside = f"that at {first.size:,} sessions"
    return [
        Row(f"{label}: {CHATS} chats", f"{rate:,.0f}/s", "", rate / median(first.rates), beside),
        Row(
            f"{label}: CPU a message",
            milliseconds(median(world.cpu)),
            server,
            median(world.cpu) / median(first.cpu),
            beside,
        ),
        Row(
            f"{label}: one chat, p50",
            milliseconds(p50),
            f"p95 {milliseconds(p95)}",
            p50 / percentile(first.alone, 0.5),
            beside,
        ),
    ]
