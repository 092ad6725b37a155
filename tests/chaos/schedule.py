"""The schedule of one run of several processes, drawn from its seed: messages and faults, with their times.

The same seed gives the same schedule. What the operating system makes of it is not reproducible, and
nothing that is checked depends on it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Final, Literal

from gateway.runtime.points import Point
from tests.chaos.answers import PADDING
from tests.chaos.faults import KINDS, Fault, FaultKind
from tests.chaos.script import COMMANDS, PASSED, Event, Kind

STOPPED: Final = 2.4  # real seconds: longer than the lease and a beat
_LASTS: Final[dict[FaultKind, float]] = {"kill": 0.1, "stop": STOPPED, "jump": -30.0, "week": 0.0, "cut": 0.0}
_SURE: Final[tuple[Kind, ...]] = ("effect", "both", "steps", "say")
_BRIEF: Final = ("restart", "freeze", "pause", "platform down")
_TALK: Final = 1.2  # real seconds in which everything is said
_TERMINALS: Final = 0.5  # of all runs
_SHOWING: Final[tuple[Point, ...]] = ("accept.before", "accept.after", *(each for each in PASSED if "outbox" in each))
_WINDOW: Final = 4_200
WEEK: Final = 8 * 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One message: `event` as the checks know it, who says it in which chat, and when (real seconds); on
    the platform or in the terminal."""

    event: Event
    speaker: str
    group: bool
    at: float
    terminal: bool = False

    def __str__(self) -> str:
        text = self.event.text
        short = f"…{text[-30:]}" if len(text) > 32 else text
        return f"at {self.at:.2f} s {self.speaker} in {self.event.chat}: {short}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """One run of `nodes` workers, and of a terminal's process beside them if anything is said there."""

    seed: int
    nodes: int
    polls: bool
    groups: Literal["shared", "per_user"]
    busy_mode: str
    said: tuple[Said, ...]
    faults: tuple[Fault, ...]
    window: int = _WINDOW

    @property
    def events(self) -> tuple[Event, ...]:
        """Every event, in the order in which they are sent."""
        return tuple(said.event for said in self.said)

    @property
    def terminal(self) -> bool:
        """Say whether somebody talks in a terminal."""
        return any(said.terminal for said in self.said)

    @property
    def processes(self) -> int:
        """Return how many processes there are at a time; the terminal's is the last."""
        return self.nodes + self.terminal

    @property
    def joins(self) -> bool:
        """Say whether messages may join running turns or end them: then not each has a turn of its own."""
        rude = any(event.text.startswith(("/stop", "/steer")) for event in self.events)
        return rude or self.busy_mode != "queue"

    def described(self) -> list[str]:
        """The schedule, to be read."""
        how = "polled by one process" if self.polls else "delivered to any process"
        who = f"{self.nodes} workers{' and a terminal' if self.terminal else ''}"
        head = f"{who}, updates {how}, groups {self.groups}, busy mode {self.busy_mode}"
        return [f"seed {self.seed}: {head}", *map(str, self.said), *map(str, self.faults)]


def make_schedule(seed: int) -> Schedule:
    """The run of a seed. Its first fault strikes a process at the seed's own point, so that any sixteen
    seeds in a row have all of them."""
    rng = random.Random(f"fleet {seed}")
    groups: Literal["shared", "per_user"] = rng.choice(("shared", "per_user"))
    busy_mode = rng.choice(("queue", "queue", "queue", "steer", "interrupt"))
    nodes = rng.choice((2, 2, 3))
    own = Fault(
        kind="kill" if (seed // len(PASSED)) % 2 == 0 else "stop",
        point=PASSED[seed % len(PASSED)],
        passing=rng.randint(1, 3),
        seconds=0.0,
    )
    faults = [replace(own, seconds=STOPPED if own.kind == "stop" else 0.1)]
    said = _talk(rng, groups, rude=busy_mode == "queue" and rng.random() < 0.4, terminal=rng.random() < _TERMINALS)
    faults += [_fault(rng, nodes) for _ in range(rng.randint(0, 5))]
    if any(each.terminal for each in said):
        faults += [_strike(rng, slot=nodes, points=_SHOWING) for _ in range(rng.choice((0, 1, 1)))]
    schedule = Schedule(
        seed=seed,
        nodes=nodes,
        polls=rng.random() < 0.7,
        groups=groups,
        busy_mode=busy_mode,
        said=said,
        faults=tuple(faults),
    )
    if rng.random() < 0.15:
        return _again_and_again(rng, schedule)
    return schedule


def _again_and_again(rng: random.Random, schedule: Schedule) -> Schedule:
    """One message, and the same thing goes wrong with it several times."""
    typed = False
    if rng.random() < 0.5:
        typed = schedule.terminal and rng.random() < 0.5
        point: Point = rng.choice(("outbox.before_send", "outbox.after_send", "turn.tools_ran", "session.ended"))
        faults = [Fault(kind="kill", point=point, seconds=0.05)] * 3
    else:
        kind: FaultKind = rng.choice(("send ambiguous", "send limited", "send unavailable", "send late"))
        faults = [Fault(kind=kind, call=number) for number in range(1, 5)]
    first = next(said for said in schedule.said if said.event.kind != "command" and said.terminal == typed)
    return replace(schedule, said=(first,), faults=tuple(faults))


def directed() -> list[Schedule]:
    """Schedules in which each thing that can go wrong surely does: what befalls a call two kinds to a schedule; all
    else one by one, with everything else well."""
    talkative = (schedule for schedule in map(make_schedule, count()) if len(schedule.said) > len(_SURE))
    calls = [kind for kind in KINDS if kind.startswith(("model", "send"))]
    pairs = zip(calls[::2], calls[1::2], strict=True)
    found = [
        tuple(Fault(kind=kind, call=call) for kind, call in ((one, 2), (other, 3), (one, 4), (other, 5)))
        for one, other in pairs
    ]
    found += [(Fault(kind=kind, at=0.5, slot=0, seconds=_LASTS.get(kind, 0.5)),) for kind in KINDS if kind not in calls]
    return [
        replace(schedule, nodes=2, busy_mode="queue", faults=faults)
        for faults, schedule in zip(found, talkative, strict=False)
    ]


def _fault(rng: random.Random, nodes: int) -> Fault:
    kind = rng.choice(KINDS)
    at = round(rng.uniform(0.05, 1.6), 2)
    slot = rng.randrange(nodes)
    if kind in ("kill", "stop"):
        seconds = STOPPED if kind == "stop" else round(rng.uniform(0.02, 0.5), 2)
        if rng.random() < 0.5:
            return Fault(kind=kind, point=rng.choice(PASSED), passing=rng.randint(1, 8), seconds=seconds)
        return Fault(kind=kind, at=at, slot=slot, seconds=seconds)
    if kind.startswith("model"):
        return Fault(kind=kind, call=rng.randint(1, 20))
    if kind.startswith("send"):
        return Fault(kind=kind, call=rng.randint(1, 15))
    if kind == "jump":
        return Fault(kind=kind, at=at, slot=slot, seconds=rng.choice((-3_600.0, -30.0, 30.0, 3_600.0)))
    if kind == "lose":
        return Fault(kind=kind, at=at, seconds=0.5)
    if kind in _BRIEF:
        return Fault(kind=kind, at=at, seconds=round(rng.uniform(0.05, 0.8), 2))
    return Fault(kind=kind, at=at)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Speaker:
    """A speaker and their place."""

    chat: str
    name: str
    group: bool = False
    terminal: bool = False


def _strike(rng: random.Random, *, slot: int, points: Sequence[Point]) -> Fault:
    """A kill or a stop of one process, at one of the points or anywhere."""
    kind: FaultKind = rng.choice(("kill", "kill", "kill", "stop"))
    seconds = STOPPED if kind == "stop" else 0.1
    if rng.random() < 0.3:
        return Fault(kind=kind, at=round(rng.uniform(0.05, 1.6), 2), slot=slot, seconds=seconds)
    return Fault(kind=kind, point=rng.choice(points), passing=rng.randint(1, 2), slot=slot, seconds=seconds)


def _talk(rng: random.Random, groups: str, *, rude: bool, terminal: bool) -> tuple[Said, ...]:
    """`rude`: some speak while an answer is being made, to change it or to end it."""
    speakers = _speakers(rng)
    kinds: list[Kind] = list(_SURE)
    kinds += [rng.choice(("say", "say", "long", "effect", "note", "steps")) for _ in range(rng.randint(0, 8))]
    rng.shuffle(kinds)
    words: list[tuple[Kind, str, _Speaker]] = []

    def message(kind: Kind, speaker: _Speaker, before: str = "") -> None:
        token = f"tok{len(words):02d}{rng.randrange(16**5):05x}"
        padding = f"{PADDING} " * 6 if kind == "long" else ""
        words.append((kind, f"{before}{padding}{kind} {token}", speaker))

    for kind in kinds:
        whom = rng.choice(speakers)
        message(kind, whom, before="/steer " if rude and kind == "say" and rng.random() < 0.4 else "")
        if rng.random() < 0.3:
            words.append(("command", rng.choice((*COMMANDS, "/help", *(["/stop"] * 3 if rude else ()))), whom))
    whom = rng.choice(speakers)  # one conversation that is surely condensed, and one that surely ends
    for kind in ("long", "long", "say", "long", "say"):
        message(kind, whom)
    words.append(("command", "/compress", whom))
    message("say", whom)
    words.append(("command", rng.choice(("/new", "/undo")), whom))
    for _ in range(rng.randint(3, 6) if terminal else 0):
        where = rng.choice(("desk", "den"))
        message(rng.choice(("say", "say", "effect", "steps")), _Speaker(chat=where, name="typist", terminal=True))
        words.insert(rng.randrange(len(words)), words.pop())
    times = sorted(rng.uniform(0.0, _TALK) for _ in words)
    return tuple(
        Said(
            event=_event(number, kind, text, who, groups),
            speaker=who.name,
            group=who.group,
            at=round(at, 3),
            terminal=who.terminal,
        )
        for number, (at, (kind, text, who)) in enumerate(zip(times, words, strict=True))
    )


def _event(number: int, kind: Kind, text: str, who: _Speaker, groups: str) -> Event:
    return Event(
        id=f"e{number}",
        chat=who.chat,
        user=who.name if who.group and groups == "per_user" else None,
        kind=kind,
        text=text,
        token="" if kind == "command" else text.split()[-1],
    )


def _speakers(rng: random.Random) -> Sequence[_Speaker]:
    speakers: list[_Speaker] = []
    for number in range(rng.randint(2, 5)):
        if rng.random() < 0.3:
            speakers += [_Speaker(chat=f"group{number}", name=name, group=True) for name in ("ann", "bob")]
        else:
            speakers.append(_Speaker(chat=f"chat{number}", name=f"person{number}"))
    return speakers
