"""The schedule of one run, drawn from its seed: the messages and their times, the faults of calls and of webhooks, and
the deaths of the bot's processes."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from tests.chaos.bots.run import PATIENCE
from tests.chaos.bots.script import SLOWEST, Kill, Place, Said, Speaker, Trouble, a_command, a_kill, a_message, in_order
from tests.emulators.faults import Fault
from tests.emulators.whatsapp import Disconnect, Flood, LoseAnswer, Refuse, Slow

SEND: Final = "messages"
MISSED: Final = 600  # messages that are missed in every fiftieth run, all before its first process
_LANES: Final[tuple[tuple[Place, Speaker], ...]] = (
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """One run. `kills[n]` is what ends process n; the one after them is asked to leave when all is done. `missed`: how
    many messages are written while no process runs."""

    seed: int
    said: tuple[Said, ...]
    kills: tuple[Kill, ...]
    faults: tuple[Trouble, ...]
    missed: int = 0

    @property
    def patience(self) -> float:
        """Real seconds for one process."""
        return PATIENCE + self.missed * 0.3

    @property
    def messages(self) -> tuple[Said, ...]:
        """Return the messages to the bot."""
        return self.said

    def described(self) -> list[str]:
        """The schedule, to be read."""
        kills = [f"process {number} is killed at {kill}" for number, kill in enumerate(self.kills)]
        return [f"seed {self.seed}", *map(str, self.said), *kills, *map(str, self.faults)]


def make_schedule(seed: int) -> Schedule:
    """The run of a seed."""
    rng = random.Random(seed)
    kills = tuple(a_kill(rng) for _ in range(rng.choice((0, 1, 1, 2, 3))))
    said = [a_message(rng, number, rng.randint(0, len(kills))) for number in range(rng.randint(5, 12))]
    said += [a_command(rng, rng.randint(0, len(kills))) for _ in range(rng.randint(1, 3))]
    missed = MISSED if seed % 50 == 49 else 0
    if missed:
        said = [_one_of_many(number) for number in range(missed)]
    return Schedule(seed=seed, said=in_order(said), kills=kills, faults=_faults(rng), missed=missed)


def _one_of_many(number: int) -> Said:
    place, speaker = _LANES[number % len(_LANES)]
    token = f"tok{number // 100:02d}{number:05x}"
    return Said(process=0, at=0.0, down=True, place=place, speaker=speaker, kind="say", token=token)


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
