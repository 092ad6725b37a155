"""A run of a laboratory that stands still fails, and says where."""

from __future__ import annotations

import asyncio

from gateway.runtime.clock import SystemClock
from tests.chaos.bots.run import Planned
from tests.chaos.bots.script import Trouble
from tests.chaos.trial import Result, trial
from tests.chaos.whatsapp.script import make_schedule
from tests.emulators.whatsapp import Settings, Slow, WhatsAppServer
from tests.support.model import PATIENCE
from tests.support.redis_server import free_port


async def stand_still() -> None:
    await asyncio.Event().wait()


async def stopped(limit: float) -> Result:
    async with trial(make_schedule(7), "standstill", limit) as run:
        await stand_still()
    return run.result()


async def test_a_run_that_stands_still_fails_with_its_seed_and_says_where_it_waited() -> None:
    result = await stopped(limit=0.0)

    assert (result.seed, result.problems) == (7, ("it was not over after 0 s",))
    assert any("in stand_still" in line for line in result.log)


async def test_a_slow_webhook_that_nobody_takes_is_over() -> None:
    """The laboratory waited for it without end after the bot had been killed."""
    async with WhatsAppServer(Settings(), clock=SystemClock()) as whatsapp:
        whatsapp.settings.callback_url = f"http://127.0.0.1:{free_port()}/whatsapp"
        whatsapp.settings.fields, whatsapp.settings.subscribed = {"messages"}, {whatsapp.settings.app}
        slow = Trouble(method="webhook messages", nth=1, fault=Slow(seconds=0))
        whatsapp.delivery.faults.schedule = Planned([slow])
        whatsapp.say(whatsapp.person("anna"), "hello")

        async with asyncio.timeout(PATIENCE):
            await whatsapp.until(lambda: [call for call in whatsapp.journal.calls if call.fault and call.status])
