"""The schedule of one run, drawn from its seed: the messages and their times, the faults of calls and of webhooks, and
the deaths of the bot's processes."""

from __future__ import annotations

import random
from typing import Final

from tests.chaos.bots.schedule import Lanes, Schedule, made
from tests.chaos.bots.script import SLOWEST, Trouble
from tests.emulators.faults import Fault
from tests.emulators.whatsapp import Disconnect, Flood, LoseAnswer, Refuse, Slow

SEND: Final = "messages"
_LANES: Final[Lanes] = (
    ("anna", "anna"),
    ("bob", "bob"),
    ("group", "anna"),
    ("group", "bob"),
    ("one", "anna"),
    ("two", "anna"),
)
_TROUBLES: Final[tuple[Fault, ...]] = (
    LoseAnswer(),
    LoseAnswer(seconds=1.0),
    Disconnect(),
    Disconnect(done=True),
    Flood(),
    Refuse(status=500),
    Refuse(status=503),
    Slow(seconds=SLOWEST),
)
_BREAKS: Final[tuple[Fault, ...]] = (LoseAnswer(), Disconnect(), Disconnect(done=True), Slow(seconds=SLOWEST))
_ASKED: Final = ("app", "subscriptions", "debug_token", "subscribed_apps", "receipt", "number")


def make_schedule(seed: int) -> Schedule:
    """The run of a seed."""
    return made(seed, _LANES, _faults, for_each=0.3)


def _faults(rng: random.Random) -> tuple[Trouble, ...]:
    """Most of them befall what people see; webhooks and looks have theirs."""
    faults = [
        Trouble(method=SEND, nth=rng.randint(1, 12), fault=rng.choice(_TROUBLES)) for _ in range(rng.randint(1, 5))
    ]
    faults += [
        Trouble(method=rng.choice(_ASKED), nth=rng.randint(1, 4), fault=rng.choice(_TROUBLES))
        for _ in range(rng.randint(0, 2))
    ]
    faults += [
        Trouble(method=f"webhook {what}", nth=rng.randint(1, 8), fault=rng.choice(_BREAKS))
        for what in rng.choices(("messages", "messages", "statuses"), k=rng.randint(0, 4))
    ]
    return tuple(faults)
