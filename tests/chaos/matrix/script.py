"""The schedule of one run, drawn from its seed: the messages and their times, the faults of calls, and the deaths of
the bot's processes."""

from __future__ import annotations

import random
from typing import Final

from tests.chaos.bots.schedule import TROUBLES, Lanes, Schedule, drawn, made
from tests.chaos.bots.script import Place, Trouble

SEND: Final = "send"
EDIT: Final = "edit"
PLACES: Final[tuple[Place, ...]] = ("anna", "bob", "group", "one", "two")
_LANES: Final[Lanes] = (
    ("anna", "anna"),
    ("bob", "bob"),
    *(((place, speaker)) for place in PLACES[2:] for speaker in ("anna", "bob")),
)
_ASKED: Final = ("joined_members", "state", "event", "messages", "receipt", "typing", "profile", "login")


def make_schedule(seed: int) -> Schedule:
    """The run of a seed."""
    return made(seed, _LANES, _faults)


def _faults(rng: random.Random) -> tuple[Trouble, ...]:
    """Most of them befall what people see; the news and looks have theirs."""
    faults = drawn(rng, (SEND, SEND, EDIT), least=1, most=5, latest=12)
    faults += drawn(rng, _ASKED, most=2, latest=6)
    return (*faults, *drawn(rng, ("sync",), most=3, latest=12, among=TROUBLES[1:]))  # a bot waits long for news
