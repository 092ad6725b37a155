"""The schedule of one run, drawn from its seed: the messages and their times, the faults of calls and of envelopes, and
the deaths of the bot's processes."""

from __future__ import annotations

import random
from typing import Final

from tests.chaos.bots.schedule import Lanes, Schedule, made
from tests.chaos.bots.script import SLOWEST, Place, Trouble
from tests.emulators.faults import Fault
from tests.emulators.slack import Disconnect, Flood, LoseAnswer, Refuse, Slow

SEND: Final = "chat.postMessage"
EDIT: Final = "chat.update"
PLACES: Final[tuple[Place, ...]] = ("anna", "bob", "group", "one", "two")
_LANES: Final[Lanes] = (
    ("anna", "anna"),
    ("bob", "bob"),
    ("group", "anna"),
    ("group", "bob"),
    ("one", "anna"),
    ("one", "bob"),
    ("two", "anna"),
    ("two", "bob"),
)
_TROUBLES: Final[tuple[Fault, ...]] = (
    LoseAnswer(),
    LoseAnswer(seconds=1.0),
    Disconnect(),
    Disconnect(done=True),
    Flood(seconds=1),
    Refuse(status=500),
    Refuse(status=503),
    Slow(seconds=SLOWEST),
)
_ASKED: Final = ("conversations.history", "conversations.replies", "users.info", "conversations.info", "auth.test")
_FRAMES: Final = ("send events_api", "send events_api", "acknowledge events_api")
_BREAKS: Final[tuple[Fault, ...]] = (LoseAnswer(), Disconnect(), Disconnect(done=True), Slow(seconds=SLOWEST))


def make_schedule(seed: int) -> Schedule:
    """The run of a seed."""
    return made(seed, _LANES, _faults)


def _faults(rng: random.Random) -> tuple[Trouble, ...]:
    """Most of them befall what people see; looking back and the socket have theirs."""
    faults = [
        Trouble(method=rng.choice((SEND, SEND, EDIT)), nth=rng.randint(1, 12), fault=rng.choice(_TROUBLES))
        for _ in range(rng.randint(1, 5))
    ]
    faults += [
        Trouble(method=rng.choice(_ASKED), nth=rng.randint(1, 6), fault=rng.choice(_TROUBLES))
        for _ in range(rng.randint(0, 2))
    ]
    faults += [
        Trouble(method=rng.choice(_FRAMES), nth=rng.randint(1, 8), fault=rng.choice(_BREAKS))
        for _ in range(rng.randint(0, 3))
    ]
    if rng.random() < 0.3:
        faults.append(Trouble(method="apps.connections.open", nth=rng.randint(1, 3), fault=rng.choice(_TROUBLES)))
    return tuple(faults)
