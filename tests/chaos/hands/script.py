"""The words of a person whose conversation works with all its hands, and the deaths of its program, from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final, Literal

StoreName = Literal["sqlite", "redis"]

KILLS: Final = 2  # more of one turn, and it waits until its process has run for long
_CALLS: Final = 12  # of the model, in the work that one message makes
_LATEST: Final = 0.25  # real seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """SIGKILL, so many real seconds after the model was called so often in this life."""

    calls: int
    after: float

    def __str__(self) -> str:
        return f"{self.after} s after call {self.calls}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One run. `said`: the messages, each said in the first life in which all before it are answered. `kills[n]` ends
    life n, if it comes so far; then no more are killed."""

    seed: int
    store: StoreName
    said: tuple[str, ...]
    kills: tuple[Kill, ...]

    def described(self) -> list[str]:
        """The plan, to be read."""
        kills = [f"life {number} is killed {kill}" for number, kill in enumerate(self.kills)]
        return [f"seed {self.seed} on {self.store}: {', '.join(self.said)}", *kills]


def make_plan(seed: int, store: StoreName) -> Plan:
    """The run of a seed. Its first kill is at the seed's own call."""
    rng = random.Random(f"hands {seed}")
    calls = [1 + seed % _CALLS, *(rng.randint(1, _CALLS) for _ in range(KILLS - 1))]
    kills = tuple(Kill(calls=number, after=round(rng.uniform(0.0, _LATEST), 3)) for number in calls)
    said = tuple(f"tok{number}x{rng.randrange(16**4):04x}" for number in range(KILLS))
    return Plan(seed=seed, store=store, said=said, kills=kills)
