"""The schedule of one run against a platform: the messages, the faults of calls, and the deaths of processes."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from tests.chaos.bots.run import PATIENCE
from tests.chaos.bots.script import (
    SLOWEST,
    Kill,
    Place,
    Said,
    Speaker,
    Trouble,
    a_command,
    a_kill,
    a_message,
    in_order,
)
from tests.emulators.faults import Disconnect, Fault, Flood, LoseAnswer, Refuse, Slow

MISSED: Final = 600  # messages that are missed in every fiftieth run, all before its first process
_TOGETHER: Final = 4  # in every fourth run two processes live side by side

TROUBLES: Final[tuple[Fault, ...]] = (
    LoseAnswer(),
    LoseAnswer(seconds=1.0),
    Disconnect(),
    Disconnect(done=True),
    Flood(seconds=1),
    Refuse(status=500),
    Refuse(status=503),
    Slow(seconds=SLOWEST),
)
"""What may befall a call of the bot's."""
BREAKS: Final[tuple[Fault, ...]] = (LoseAnswer(), Disconnect(), Disconnect(done=True), Slow(seconds=SLOWEST))
"""What may befall a message of the platform's."""

Lanes: TypeAlias = Sequence[tuple[Place, Speaker]]
"""Who speaks where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """One run. `kills[n]` is what ends process n; the one after them is asked to leave when all is done. `missed`: how
    many messages are written while no process runs, for each of which it may take `for_each` real seconds more.
    `together`: of two processes, one takes over when the other dies."""

    seed: int
    said: tuple[Said, ...]
    kills: tuple[Kill, ...]
    faults: tuple[Trouble, ...]
    missed: int = 0
    for_each: float = 0.2
    together: bool = False

    @property
    def patience(self) -> float:
        """Real seconds for one process."""
        return PATIENCE + self.missed * self.for_each

    @property
    def messages(self) -> tuple[Said, ...]:
        """Return the messages to the bot."""
        return self.said

    @property
    def title(self) -> str:
        """What the run is called."""
        return f"seed {self.seed}"

    def described(self) -> list[str]:
        """The schedule, to be read."""
        kills = [f"process {number} is killed at {kill}" for number, kill in enumerate(self.kills)]
        beside = ["two processes at a time"] if self.together else []
        return [self.title, *beside, *map(str, self.said), *kills, *map(str, self.faults)]


def lives_and_words(rng: random.Random) -> tuple[tuple[Kill, ...], list[Said]]:
    """The deaths of a run's processes, and what is said meanwhile."""
    kills = tuple(a_kill(rng) for _ in range(rng.choice((0, 1, 1, 2, 3))))
    said = [a_message(rng, number, rng.randint(0, len(kills))) for number in range(rng.randint(5, 12))]
    said += [a_command(rng, rng.randint(0, len(kills))) for _ in range(rng.randint(1, 3))]
    return kills, said


def many_missed(seed: int, lanes: Lanes) -> list[Said]:
    """What is missed in the run of this seed, no more in one place than are fetched of it, and than may wait there."""
    return [_one_of_many(number, *lanes[number % len(lanes)]) for number in range(MISSED if seed % 50 == 49 else 0)]


def _one_of_many(number: int, place: Place, speaker: Speaker) -> Said:
    token = f"tok{number // 100:02d}{number:05x}"
    return Said(process=0, at=0.0, down=True, place=place, speaker=speaker, kind="say", token=token)


def drawn(
    rng: random.Random,
    methods: Sequence[str],
    *,
    least: int = 0,
    most: int,
    latest: int,
    among: Sequence[Fault] = TROUBLES,
) -> list[Trouble]:
    """From `least` to `most` faults, each of a call from the first to the `latest` of its method."""
    return [
        Trouble(method=rng.choice(methods), nth=rng.randint(1, latest), fault=rng.choice(among))
        for _ in range(rng.randint(least, most))
    ]


def made(seed: int, lanes: Lanes, faults: Callable[[random.Random], tuple[Trouble, ...]], **more: float) -> Schedule:
    """The run of a seed."""
    rng = random.Random(seed)
    kills, said = lives_and_words(rng)
    missed = many_missed(seed, lanes)
    troubles, together = faults(rng), seed % _TOGETHER == 1
    return Schedule(
        seed=seed,
        said=in_order(missed or said),
        kills=kills or (a_kill(rng),) if together else kills,
        faults=troubles,
        missed=len(missed),
        together=together,
        **more,
    )
