"""The durable commits of one message, counted by the store while no other message shares them.

One chat, which waits until its reply is marked as handed over before it goes on: under load commits
are shared, so that is the most. Plain, with a batch of two tool calls that only read, and with a
batch of two whose effects must not be repeated (their intent is stored first).
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from gateway.agent.tools.base import Tool
from tests.bench.table import Row, Rows
from tests.bench.world import Instant, Stamp, quiet, running, said, settings, sqlite

TITLE = "Commits per message"
MESSAGES = 50


async def measure() -> Rows:
    """One line for each kind of message."""
    return [
        Row("plain", await _commits(Instant()), "goal ≤ 3"),
        Row("a batch of reading tools", await _commits(Instant([("clock", "{}"), ("clock", "{}")])), "goal ≤ 4"),
        Row(
            "a batch of tools with effects",
            await _commits(Instant([("stamp", "{}"), ("stamp", "{}")]), [Stamp()]),
            "goal ≤ 4, and one for the intent",
        ),
    ]


async def _commits(model: Instant, tools: list[Tool] | None = None) -> str:
    with tempfile.TemporaryDirectory() as folder:
        config = settings(Path(folder, "bench.db"))
        store = sqlite(config)
        async with running(config, store=store, provider=model, tools=tools or ()) as (gateway, chats):
            await chats.say("one", said(0))
            await quiet(gateway)
            before = store.commits
            for number in range(MESSAGES):
                await chats.say("one", said(number))
                await quiet(gateway)
            return f"{(store.commits - before) / MESSAGES:.2f}"
