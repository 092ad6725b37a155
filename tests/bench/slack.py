"""A bot on Slack: 200 channels at once, what it costs beside the gateway, and what enabling it adds.

Slack and its person are a process of their own (`slack_people`); the model takes no time. CPU is that of this process:
of the whole gateway with the bot, and of the gateway alone; what is left is slack_sdk's, aiohttp's and the adapter's.
"""

from __future__ import annotations

from statistics import median

from pydantic import SecretStr

from adapters.slack.adapter import SlackAdapter
from adapters.slack.platform import SlackSettings
from gateway.runtime.clock import SystemClock
from tests.bench.table import Row, Rows, milliseconds
from tests.bench.telegram import EACH, ROUNDS, STARTS, People, Spent, gateway_alone, loaded, platform
from tests.bench.telegram_people import MOST
from tests.bench.world import bot, quiet
from tests.emulators.slack import Settings

TITLE = "A bot on Slack; model at 0 ms, durable SQLite, the server in a process of its own"


async def measure() -> Rows:
    """Rates, then CPU, then weights."""
    async with platform("tests.bench.slack_people") as people:
        ours = await _gateway(people)
    alone = await gateway_alone()
    with_bot, without = [], []
    for _ in range(STARTS):
        with_bot.append(loaded("adapters.slack.adapter"))
        without.append(loaded("gateway"))
    whole, host = (median(each.each for each in spent[1:]) for spent in (ours, alone))
    seconds, weight = (median(one[k] for one in with_bot) - median(one[k] for one in without) for k in (0, 1))
    return [
        Row(f"{MOST} channels, no limits", f"{median(each.rate for each in ours[1:]):,.0f}/s", "goal ≥ 200/s"),
        Row("gateway alone: CPU a message", milliseconds(host)),
        Row("on Slack: CPU a message", milliseconds(whole), "", whole / host, "the gateway alone"),
        Row("enabling Slack: start", f"{seconds:+.2f} s", "goal ≤ 0.5 s"),
        Row("enabling Slack: memory", f"{weight:+.0f} MB", "goal ≤ 30 MB"),
    ]


async def _gateway(people: People) -> list[Spent]:
    tokens = {"token": SecretStr(people.token), "app_token": SecretStr(Settings().app_token)}
    settings = SlackSettings(**tokens, base_url=people.base_url, listen="free", quoted=0)
    adapter = SlackAdapter(settings, clock=SystemClock(), paced=False)
    async with bot(adapter) as gateway:
        return [await people.talk(EACH, lambda: quiet(gateway)) for _ in range(ROUNDS)]
