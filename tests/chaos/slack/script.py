"""The schedule of one run, drawn from its seed: the messages and their times, the faults of calls and of envelopes, and
the deaths of the bot's processes."""

from __future__ import annotations

import random
from typing import Final

from tests.chaos.bots.schedule import BREAKS, TROUBLES, Lanes, Schedule, drawn, made
from tests.chaos.bots.script import Place, Trouble

SEND: Final = "chat.postMessage"
EDIT: Final = "chat.update"
TELL: Final = "send events_api"
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
_ASKED: Final = ("conversations.history", "conversations.replies", "users.info", "conversations.info", "auth.test")
_FRAMES: Final = (TELL, TELL, "acknowledge events_api")


def make_schedule(seed: int) -> Schedule:
    """The run of a seed."""
    return made(seed, _LANES, _faults)


def _faults(rng: random.Random) -> tuple[Trouble, ...]:
    """Most of them befall what people see; looking back and the socket have theirs."""
    faults = drawn(rng, (SEND, SEND, EDIT), least=1, most=5, latest=12)
    faults += drawn(rng, _ASKED, most=2, latest=6)
    faults += drawn(rng, _FRAMES, most=3, latest=8, among=BREAKS)
    if rng.random() < 0.3:
        faults.append(Trouble(method="apps.connections.open", nth=rng.randint(1, 3), fault=rng.choice(TROUBLES)))
    return tuple(faults)
