"""The reminders of a run and the deaths of its processes, drawn from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final, Literal

from gateway.domain.reminder import ReminderKind, WhenLate
from gateway.runtime.points import Point

StoreName = Literal["sqlite", "redis"]

_POINTS: Final[tuple[Point, ...]] = (
    "reminder.due",
    "reminder.fired",
    "outbox.before_send",
    "outbox.after_send",
    "outbox.marked",
    "turn.claimed",
    "turn.finished",
)
_SPAN: Final = 24.0  # hurried seconds within which everything is due
_HOURS: Final = (0.0, 0.0, 0.0, 600.0, 7_200.0)  # that pass while nothing runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A reminder that waits from the beginning, first due so many hurried seconds after it."""

    name: str
    chat: str
    kind: ReminderKind
    after: float
    rule: str = ""
    when_late: WhenLate = "say"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """SIGKILL at the `passing`-th time that a process passes `point`, or `after` so many real seconds. Then so many
    hurried seconds pass."""

    point: str | None
    passing: int
    after: float
    away: float

    def __str__(self) -> str:
        return f"killed at {self.point} ({self.passing}) or after {self.after} s, then {self.away:g} s pass"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One run. `kills[n]` is what ends the n-th process; those of one round run side by side."""

    seed: int
    store: StoreName
    processes: int
    planted: tuple[Planted, ...]
    kills: tuple[Kill, ...]

    def described(self) -> list[str]:
        """The plan, to be read."""
        head = f"seed {self.seed}: {self.processes} at a time on {self.store}"
        return [head, *map(str, self.planted), *map(str, self.kills)]


def make_plan(seed: int, store: StoreName) -> Plan:
    """The run of a seed. Its first kill is at the seed's own point."""
    rng = random.Random(f"reminders {seed}")
    processes = 1 if store == "sqlite" else rng.choice((2, 3))
    planted = tuple(_planted(rng, number) for number in range(rng.randint(4, 24)))
    kills = [_kill(rng, _POINTS[seed % len(_POINTS)])]
    kills += [_kill(rng, rng.choice((*_POINTS, None))) for _ in range(rng.randint(0, 3 * processes))]
    return Plan(seed=seed, store=store, processes=processes, planted=planted, kills=tuple(kills))


def _planted(rng: random.Random, number: int) -> Planted:
    kind: ReminderKind = "ask" if rng.random() < 0.25 else "say"
    after = round(rng.uniform(0.0, _SPAN), 1)
    chat = f"c{rng.randrange(6)}"
    rule = rng.choice(("", "", "7 minute", "11 minute"))  # each leaves the run a quiet moment
    when_late: WhenLate = "skip" if rng.random() < 0.15 else "say"
    return Planted(name=f"r_{number}", chat=chat, kind=kind, after=after, rule=rule, when_late=when_late)


def _kill(rng: random.Random, point: str | None) -> Kill:
    return Kill(point=point, passing=rng.randint(1, 4), after=round(rng.uniform(0.3, 1.5), 2), away=rng.choice(_HOURS))
