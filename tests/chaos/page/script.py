"""The words of a person on the page, the cuts of its tabs and the deaths of its processes, drawn from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from tests.chaos.bots.script import Kill, a_kill

_KINDS: Final = ("say", "say", "say", "tell", "tell", "tell", "fill")
CHATS: Final = ("", "the-second")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A message in one of the chats, so many real seconds after the one before it was accepted."""

    after: float
    chat: str
    kind: str
    token: str

    @property
    def text(self) -> str:
        """Return what is typed."""
        return f"{self.kind} {self.token}"

    def __str__(self) -> str:
        return f"{self.after} s later: {self.text}{' in the second chat' if self.chat else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """One run. `kills[n]` is what ends process n. `cuts`: for the tab of each chat, after how many events each of its
    connections is cut, one connection after the other; then it is cut no more. `torn`: the same of all connections, in
    bytes, so that also the answer to a form is lost."""

    seed: int
    said: tuple[Said, ...]
    kills: tuple[Kill, ...]
    cuts: tuple[tuple[int, ...], ...]
    torn: tuple[int, ...] = ()

    def described(self) -> list[str]:
        """The schedule, to be read."""
        kills = [f"process {number} is killed at {kill}" for number, kill in enumerate(self.kills)]
        cuts = [f"tab {number} is cut after so many events: {each}" for number, each in enumerate(self.cuts)]
        return [f"seed {self.seed}", *map(str, self.said), *kills, *cuts, f"torn after so many bytes: {self.torn}"]


def make_schedule(seed: int) -> Schedule:
    """The run of a seed."""
    rng = random.Random(f"page {seed}")
    said = [
        Said(
            after=rng.choice((0.0, 0.0, 0.1, 0.4, 1.0, 2.0)),
            chat=rng.choice(CHATS),
            kind=rng.choice(_KINDS),
            token=f"tok{number:02d}{rng.randrange(16**5):05x}",
        )
        for number in range(rng.randint(3, 12))
    ]
    kills = [a_kill(rng) for _ in range(rng.randint(1, 4))]
    cuts = [tuple(rng.randint(1, 9) for _ in range(rng.randint(0, 8))) for _ in CHATS]
    torn = tuple(rng.randrange(rng.choice((30, 900, 9_000, 90_000))) for _ in range(rng.randint(0, 20)))
    return Schedule(seed=seed, said=tuple(said), kills=tuple(kills), cuts=tuple(cuts), torn=torn)
