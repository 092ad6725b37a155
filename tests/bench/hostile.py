"""What others notice of those who mean harm: a bot on Telegram, without Telegram's limits, its model at no time.

Twenty people each say the next thing when the last was answered. Beside them ten members of a group mention the bot a
thousand times a second, or 256 strangers' connections lean on the webhook. Telegram, the people and the hostile are a
process of their own (`hostile_people`), so one core is left to each side on a machine of two.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from adapters.telegram.adapter import TelegramAdapter, TelegramBot
from adapters.telegram.webhook import WebhookAdapter
from gateway.app.build import Parts, build
from gateway.app.config.models import Access
from gateway.runtime.clock import SystemClock
from gateway.runtime.tasks import Background
from tests.bench.hostile_people import CONNECTIONS, MEMBERS, PEOPLE
from tests.bench.table import Row, Rows, milliseconds, percentile
from tests.bench.telegram import People, platform
from tests.bench.world import Instant, settings
from tests.support.redis_server import free_port

TITLE = "A bot among those who mean harm; model at 0 ms, durable SQLite, Telegram in a process of its own"
SECONDS: Final = 60
RATE: Final = 1_000  # messages a second


async def measure() -> Rows:
    """The flood in a group, then the strangers at the webhook."""
    port = free_port()
    async with platform("tests.bench.hostile_people") as people, _bot(people, None):
        calm, flood = await _round(people, f"calm {SECONDS}"), await _round(people, f"flood {SECONDS} {RATE}")
    async with platform("tests.bench.hostile_people") as people, _bot(people, port):
        called, leant = await _round(people, f"calm {SECONDS}"), await _round(people, f"strangers {SECONDS} {port}")
    more = percentile(leant["waits"], 0.95) - percentile(called["waits"], 0.95)
    crowd = f"{flood['written'] / SECONDS:,.0f} messages a second of {MEMBERS} members"
    return [
        Row(f"{PEOPLE} people, polling, calm: p95", milliseconds(percentile(calm["waits"], 0.95))),
        Row(f"beside {crowd}: p95", milliseconds(percentile(flood["waits"], 0.95)), "goal ≤ 2 s"),
        Row("the same: longest", milliseconds(max(flood["waits"]))),
        Row(f"{PEOPLE} people, webhook, calm: p95", milliseconds(percentile(called["waits"], 0.95))),
        Row(f"beside {CONNECTIONS} strangers' connections: p95 more", milliseconds(more), "goal < 50 ms"),
    ]


async def _round(people: People, order: str) -> dict[str, Any]:
    assert people.process.stdin is not None
    people.process.stdin.write(f"{order}\n".encode())
    return await people.read()


@asynccontextmanager
async def _bot(people: People, port: int | None) -> AsyncIterator[None]:
    """A gateway with the bot, polling or called on a port."""
    with tempfile.TemporaryDirectory() as folder:
        config = settings(Path(folder, "bench.db")).model_copy(update={"access": Access(allow=("telegram:*",))})
        how: dict[str, Any] = {"clock": SystemClock(), "base_url": people.base_url, "paced": False}
        adapter: TelegramBot = TelegramAdapter(people.token, **how)
        if port is not None:
            url = f"http://127.0.0.1:{port}/hook"
            adapter = WebhookAdapter(people.token, public_url=url, host="127.0.0.1", port=port, **how)
        gateway = build(config, [adapter], Parts(providers={"offline": Instant()}))

        async def run() -> None:
            await gateway.run()

        task = Background().start(run(), name="gateway")
        try:
            yield
        finally:
            gateway.stop()
            await task
