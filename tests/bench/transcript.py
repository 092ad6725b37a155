"""The cost of a turn in a conversation of 10,000 messages, compared with one of 10.

The model takes no time but looks at each request as an HTTP provider must: encodes it and writes it
as JSON. CPU of such a turn (of this process, all threads) and of its request; then of turns whose
request is made and handed over but not encoded, which should not depend on the length. Hygiene's
count limit is raised, and the window never fills.
The first turn after a start also reads the transcript from the store, and is shown apart.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from gateway.app.config import Config
from gateway.context.policy import HygieneRules
from gateway.providers.base import ModelRequest, ModelSpec
from gateway.providers.bodies import Bodies
from gateway.providers.openai.codec import Entries, Habits, encode_request
from gateway.store.port import Store
from tests.bench.long import converse, messages
from tests.bench.table import Row, Rows, milliseconds
from tests.bench.world import Instant, quiet, running, said, settings, sqlite

TITLE = "A turn in a long conversation"
LENGTHS = (10, 100, 1_000, 10_000)
TURNS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Seconds of the first turn after a start; of the CPU of a later one, of its request, of one without."""

    length: int
    first: float
    whole: float
    request: float
    rest: float


async def measure() -> Rows:
    """Four lines for each length."""
    return rows([await turn(length, sqlite) for length in LENGTHS])


def rows(turns: Sequence[Turn]) -> list[Row]:
    """Four lines for each, compared with the first, the shortest."""
    shortest = f"that after {turns[0].length:,} messages"
    return [
        row
        for each in turns
        for label in [f"{each.length:>6,} messages"]
        for row in (
            Row(f"{label}: first turn after a start", milliseconds(each.first)),
            Row(
                f"{label}: turn, CPU",
                milliseconds(each.whole),
                "",
                each.whole / turns[0].whole,
                shortest,
                {"messages": each.length, "cpu": each.whole, "without": each.rest, "first": each.first},
            ),
            Row(f"{label}: of it the request itself", milliseconds(each.request)),
            Row(
                f"{label}: turn without it, CPU",
                milliseconds(each.rest),
                "",
                each.rest / turns[0].rest,
                shortest,
            ),
        )
    ]


async def turn(length: int, make: Callable[[Config], Store]) -> Turn:
    """Return the cost of a turn after `length` messages, in a store that `make` gives, twice."""
    with tempfile.TemporaryDirectory() as folder:
        config = settings(Path(folder, "bench.db"), hygiene=HygieneRules(max_messages=1_000_000))
        store = make(config)
        await store.open()
        chat = f"long{length}"
        await converse(store, [chat], messages(length))
        await store.aclose()
        bodies = Bodies()
        model = Instant(weigh=partial(_write, bodies))
        async with running(config, store=make(config), provider=model) as (gateway, chats):
            first = await chats.say(chat, said(0))
            await quiet(gateway)
            spent: list[tuple[float, float]] = []
            for number in range(2 * TURNS):
                if number == TURNS:
                    model.weigh = None
                cpu, before = time.process_time(), model.sent
                await chats.say(chat, said(number))
                await quiet(gateway)
                spent.append((time.process_time() - cpu, model.sent - before))
    return Turn(
        length=length,
        first=first,
        whole=median(whole for whole, _ in spent[:TURNS]),
        request=median(request for _, request in spent[:TURNS]),
        rest=median(rest for rest, _ in spent[TURNS:]),
    )


def _write(bodies: Bodies, spec: ModelSpec, request: ModelRequest) -> None:
    bodies.of(request, spec.name, partial(Entries, spec, Habits()), partial(encode_request, spec))
