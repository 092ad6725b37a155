"""The messages of people to a bot and the deaths of its processes, drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

Place = Literal["anna", "bob", "group", "one", "two"]
"""Where something is said: two private chats, a place of many, two threads."""
Speaker = Literal["anna", "bob"]

FROM_OUTSIDE: Final = ""
COMMANDS: Final = ("/status", "/new", "/version")
LONGEST: Final = 1.6  # real seconds of a process that is killed from outside
SLOWEST: Final = 3  # hurried seconds: far from the bot's patience, so that an answer that comes late still comes
_KINDS: Final = ("say", "say", "say", "tell", "tell", "tell", "fill")
_POINTS: Final = (
    "accept.before",
    "accept.after",
    "turn.claimed",
    "turn.session_opened",
    "turn.model_called",
    "turn.finished",
    "outbox.before_send",
    "outbox.after_send",
    "outbox.marked",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One message: who says it where, in the life of which process (`down`: just before it), and how many real
    seconds after its start. `token`: the word that names it, "" for a command; `kind`: what it asks for."""

    process: int
    at: float
    down: bool
    place: Place
    speaker: Speaker
    kind: str
    token: str = ""

    @property
    def text(self) -> str:
        """Return the words without the bot's name."""
        return f"{self.kind} {self.token}".strip()

    def __str__(self) -> str:
        when = "down" if self.down else f"+{self.at} s"
        return f"process {self.process} {when}: {self.speaker} in {self.place}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A fault of the `nth` call of a method in the run."""

    method: str
    nth: int
    fault: Any

    def __str__(self) -> str:
        return f"{self.method} {self.nth}: {self.fault}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """SIGKILL at the `passing`-th time the process passes `point`, or, from outside, when it has called for the
    `draft`-th draft (0: never), or `after` so many real seconds, which also ends one that never comes so far."""

    point: str = FROM_OUTSIDE
    passing: int = 1
    draft: int = 0
    after: float = LONGEST

    def __str__(self) -> str:
        if self.draft:
            return f"draft {self.draft}, or {self.after} s"
        return f"{self.point} ({self.passing})" if self.point else f"{self.after} s"


def a_kill(rng: random.Random) -> Kill:
    """Return the death of a process."""
    if rng.random() < 0.5:
        return Kill(after=round(rng.uniform(0.1, LONGEST), 2))
    return Kill(point=rng.choice(_POINTS), passing=rng.randint(1, 4))


def a_message(rng: random.Random, number: int, process: int) -> Said:
    """Something to be answered by the model."""
    token = f"tok{number:02d}{rng.randrange(16**5):05x}"
    return _said(rng, process, rng.choice(_KINDS), token)


def a_command(rng: random.Random, process: int) -> Said:
    """A command."""
    return _said(rng, process, rng.choice(COMMANDS))


def _said(rng: random.Random, process: int, kind: str, token: str = "") -> Said:
    place: Place = rng.choice(("anna", "anna", "bob", "group", "one", "two"))
    speaker: Speaker = "bob" if place == "bob" or (place == "group" and rng.random() < 0.5) else "anna"
    return Said(
        process=process,
        at=round(rng.uniform(0.0, 0.8), 2),
        down=rng.random() < 0.3,
        place=place,
        speaker=speaker,
        kind=kind,
        token=token,
    )


def in_order(said: Iterable[Said]) -> tuple[Said, ...]:
    """As they will be said."""
    return tuple(sorted(said, key=lambda each: (each.process, not each.down, each.at)))
