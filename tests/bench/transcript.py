"""What a turn costs in a conversation of 10,000 messages, compared with one of 100.

The model takes no time but looks at each request as an HTTP provider must: encodes it and writes it
as JSON. CPU of a turn (of this process, all threads) is shown whole, then without that: what is
left should not depend on the length. Hygiene's count limit is raised, and the window never fills.
The first turn after a start also reads the transcript from the disk, and is shown apart.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median

from gateway.config.models import Hygiene
from gateway.providers.base import ModelRequest, ModelSpec
from gateway.providers.chat_codec import encode_request
from gateway.providers.http import json_bytes
from tests.bench.long import messages, open_long
from tests.bench.table import Row, Rows, milliseconds
from tests.bench.world import Instant, quiet, running, said, settings

TITLE = "A turn in a long conversation"
LENGTHS = (100, 1_000, 10_000)
TURNS = 40


async def measure() -> Rows:
    """Four lines for each length."""
    rows: list[Row] = []
    shortest = 0.0
    for length in LENGTHS:
        first, whole, request, rest = await _turns(length)
        shortest = shortest or rest
        label = f"{length:>6,} messages"
        rows += [
            Row(f"{label}: first turn after a start", milliseconds(first)),
            Row(f"{label}: turn, CPU", milliseconds(whole)),
            Row(f"{label}: of it the request itself", milliseconds(request)),
            Row(f"{label}: the rest", milliseconds(rest), f"{rest / shortest:.2f} times the shortest"),
        ]
    return rows


def _write(spec: ModelSpec, request: ModelRequest) -> None:
    json_bytes(encode_request(spec, request))


async def _turns(length: int) -> tuple[float, float, float, float]:
    """(seconds of the first turn; medians of the CPU of a turn, of its request, and of the rest)."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "bench.db")
        await open_long(path, "long", messages(length))
        model = Instant(weigh=_write)
        config = settings(path, hygiene=Hygiene(max_messages=1_000_000))
        async with running(config, provider=model) as (gateway, chats, _):
            first = await chats.say("long", said(0))
            await quiet(gateway)
            spent: list[tuple[float, float]] = []
            for number in range(TURNS):
                cpu, before = time.process_time(), model.sent
                await chats.say("long", said(number))
                await quiet(gateway)
                spent.append((time.process_time() - cpu, model.sent - before))
        return (
            first,
            median(whole for whole, _ in spent),
            median(request for _, request in spent),
            median(whole - request for whole, request in spent),
        )
