"""The schedule of one run, drawn from its seed: the messages and their times, the faults of calls and of webhooks, and
the deaths of the bot's processes."""

from __future__ import annotations

import random
from typing import Final

from tests.chaos.bots.schedule import BREAKS, Lanes, Schedule, drawn, made
from tests.chaos.bots.script import Trouble

SEND: Final = "messages"
_LANES: Final[Lanes] = (
    ("anna", "anna"),
    ("bob", "bob"),
    ("group", "anna"),
    ("group", "bob"),
    ("one", "anna"),
    ("two", "anna"),
)
_ASKED: Final = ("app", "subscriptions", "debug_token", "subscribed_apps", "receipt", "number")
_WEBHOOKS: Final = ("webhook messages", "webhook messages", "webhook statuses")


def make_schedule(seed: int) -> Schedule:
    """The run of a seed."""
    return made(seed, _LANES, _faults, for_each=0.3)


def _faults(rng: random.Random) -> tuple[Trouble, ...]:
    """Most of them befall what people see; webhooks and looks have theirs."""
    faults = drawn(rng, (SEND,), least=1, most=5, latest=12)
    faults += drawn(rng, _ASKED, most=2, latest=4)
    return (*faults, *drawn(rng, _WEBHOOKS, most=4, latest=8, among=BREAKS))
