"""The schedule of one run, drawn from its seed: the messages and their times, the faults of calls, and the deaths of
the bot's processes."""

from __future__ import annotations

import random
from typing import Final

from tests.chaos.bots.schedule import Lanes, Schedule, made
from tests.chaos.bots.script import SLOWEST, Place, Trouble
from tests.emulators.faults import Disconnect, Fault, Flood, LoseAnswer, Refuse, Slow

SEND: Final = "send"
EDIT: Final = "edit"
PLACES: Final[tuple[Place, ...]] = ("anna", "bob", "group", "one", "two")
_LANES: Final[Lanes] = (
    ("anna", "anna"),
    ("bob", "bob"),
    *(((place, speaker)) for place in PLACES[2:] for speaker in ("anna", "bob")),
)
_BREAKS: Final[tuple[Fault, ...]] = (
    LoseAnswer(seconds=1.0),
    Disconnect(),
    Disconnect(done=True),
    Flood(seconds=1),
    Refuse(status=500),
    Refuse(status=503),
    Slow(seconds=SLOWEST),
)
_TROUBLES: Final[tuple[Fault, ...]] = (LoseAnswer(), *_BREAKS)
_ASKED: Final = ("joined_members", "state", "event", "messages", "receipt", "typing", "profile", "login")


def make_schedule(seed: int) -> Schedule:
    """The run of a seed."""
    return made(seed, _LANES, _faults)


def _faults(rng: random.Random) -> tuple[Trouble, ...]:
    """Most of them befall what people see; the news and looks have theirs."""
    faults = [
        Trouble(method=rng.choice((SEND, SEND, EDIT)), nth=rng.randint(1, 12), fault=rng.choice(_TROUBLES))
        for _ in range(rng.randint(1, 5))
    ]
    faults += [
        Trouble(method=rng.choice(_ASKED), nth=rng.randint(1, 6), fault=rng.choice(_TROUBLES))
        for _ in range(rng.randint(0, 2))
    ]
    faults += [
        Trouble(method="sync", nth=rng.randint(1, 12), fault=rng.choice(_BREAKS)) for _ in range(rng.randint(0, 3))
    ]
    return tuple(faults)
