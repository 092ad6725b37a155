"""The script of one crash run, drawn from its seed: the messages, and the places where the process is killed.

The same seed gives the same script and the same kills. What the operating system makes of it (which
of two chats is a millisecond ahead) is not reproducible, and nothing that is checked depends on it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from gateway.runtime.points import POINTS, Point
from tests.chaos.answers import PADDING
from tests.chaos.faults import MODEL_FAULTS, SEND_FAULTS, Fault

Kind = Literal["say", "long", "effect", "both", "steps", "note", "command"]

# Points that a message passes; reminders have a laboratory of their own (`tests.chaos.reminders`).
PASSED: Final[tuple[Point, ...]] = tuple(point for point in POINTS if not point.startswith(("reminder.", "voice.")))
COMMANDS: Final = ("/compress", "/new", "/status", "/undo", "/branch", "/resume 1")
# Every script has one of each of these, so that every point is passed at least once in every run.
_NEEDED: Final[tuple[Kind, ...]] = ("effect", "both", "steps", "say")
_KINDS: Final[tuple[Kind, ...]] = ("say", "long", "effect", "both", "steps", "note")
_BUSY_MODES: Final = ("queue", "queue", "queue", "steer", "interrupt")
# Points that may never be passed where messages join turns or end them.
_SELDOM_IN_A_HURRY: Final = ("turn.tools", "turn.step", "compaction.")
_MOST_KILLS: Final = 4
_PLATFORMS: Final = 0.4  # of all runs
_WINDOW: Final = 4_200  # tokens: a few long answers fill it


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of input. `token` is the word that names this message in everything it causes; ""
    for a command."""

    id: str
    chat: str
    user: str | None
    kind: Kind
    text: str
    token: str = ""

    @property
    def key(self) -> tuple[str, str | None]:
        """Return the conversation of the message."""
        return self.chat, self.user

    def line(self) -> bytes:
        """The event as the JSON console reads it."""
        fields = {"id": self.id, "chat": self.chat, "text": self.text}
        if self.user is not None:
            fields["user"] = self.user
        return (json.dumps(fields) + "\n").encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """SIGKILL at the `passing`-th time a process passes `point`, counted from its start; without a
    point, `after` so many seconds, wherever it is then."""

    point: Point | None = None
    passing: int = 1
    after: float | None = None

    def __str__(self) -> str:
        return self.point or f"{self.after} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One run. `lines` are the events in the order they are sent, some of them twice; `kills[n]` is
    what ends the n-th process; at most `ahead` events wait for an answer at a time; after a restart
    this share of the answered ones is sent again too, as by a sender that is not sure. After the
    processes in `away` comes a week of silence. `full`: after how many seconds of each process the disk is
    full, and for how long. `updates` are events on a platform beside the terminal; `faults` are what goes
    wrong with the platform and the model. `poison` is the text of a message that kills whoever
    claims it, which happens at most `spare` times."""

    seed: int
    lines: tuple[Event, ...]
    kills: tuple[Kill, ...]
    ahead: int
    again: float
    busy_mode: str = "queue"
    away: frozenset[int] = frozenset()
    window: int = _WINDOW
    poison: str | None = None
    spare: int = 0
    full: tuple[float, float] | None = None
    updates: tuple[Event, ...] = ()
    polls: bool = True
    faults: tuple[Fault, ...] = ()

    def described(self) -> list[str]:
        """The plan, to be read."""
        head = f"seed {self.seed}: one process, at most {self.ahead} unanswered, busy mode {self.busy_mode}"
        said = [
            f"{event.user or event.chat} in {event.chat}: …{event.text[-30:]}" for event in (*self.lines, *self.updates)
        ]
        kills = [f"process {number} is killed at {kill} ({kill.passing})" for number, kill in enumerate(self.kills)]
        away = [f"after process {number} nothing happens for a week" for number in sorted(self.away)]
        full = [f"after {self.full[0]} s the disk is full for {self.full[1]} s, in each process"] if self.full else []
        return [head, *said, *kills, *away, *full, *map(str, self.faults)]

    @property
    def events(self) -> tuple[Event, ...]:
        """Every event once."""
        return tuple(dict.fromkeys((*self.lines, *self.updates)))


def make_plan(seed: int) -> Plan:
    """The run of a seed. Its first kill is at the seed's own point, so that any sixteen seeds in a
    row kill at all of them."""
    rng = random.Random(seed)
    events = _events(rng, seed)
    lines = _with_repeats(rng, events)
    own = PASSED[seed % len(PASSED)]
    busy_mode = "queue" if own.startswith(_SELDOM_IN_A_HURRY) else rng.choice(_BUSY_MODES)
    ahead = rng.choice((1, 2, 4, len(lines))) if busy_mode == "queue" else len(lines)
    kills = [_at(rng, own, ahead) if busy_mode == "queue" else Kill(point=own)]
    for _ in range(rng.randrange(_MOST_KILLS)):
        anywhere = Kill(after=round(rng.uniform(0.01, 0.4), 3))
        kills.append(anywhere if rng.random() < 0.2 else _at(rng, rng.choice(PASSED), ahead))
    updates = _updates(rng, seed, len(events)) if rng.random() < _PLATFORMS else ()
    return Plan(
        seed=seed,
        lines=lines,
        updates=updates,
        polls=rng.random() < 0.5,
        faults=_faults(rng, platform=bool(updates)),
        kills=tuple(kills),
        ahead=ahead,
        again=rng.choice((0.0, 0.3, 1.0)),
        busy_mode=busy_mode,
        away=frozenset(number for number in range(len(kills)) if rng.random() < 0.15),
        full=(round(rng.uniform(0.0, 0.3), 2), round(rng.uniform(0.1, 0.6), 2)) if rng.random() < 0.25 else None,
    )


def _updates(rng: random.Random, seed: int, first: int) -> tuple[Event, ...]:
    """Return the messages of people on the platform, in a chat or two."""
    chats = rng.choice((("street",), ("street", "square")))
    kinds: tuple[Kind, ...] = ("say", "say", "effect", "steps", "note")
    return tuple(
        _message(rng, seed, number, rng.choice(kinds), rng.choice(chats), None)
        for number in range(first, first + rng.randint(2, 5))
    )


def _faults(rng: random.Random, *, platform: bool) -> tuple[Fault, ...]:
    """Return the faults beside the kills: in a third of the runs with the model, in most with the platform."""
    faults = [Fault(kind=rng.choice(MODEL_FAULTS), call=rng.randint(1, 20)) for _ in range(rng.choice((0, 0, 1, 2)))]
    if platform:
        faults += [Fault(kind=rng.choice(SEND_FAULTS), call=rng.randint(1, 6)) for _ in range(rng.randint(0, 3))]
        if rng.random() < 0.25:
            at, seconds = round(rng.uniform(0.0, 0.5), 2), round(rng.uniform(0.05, 0.4), 2)
            faults.append(Fault(kind="platform down", at=at, seconds=seconds))
    return tuple(faults)


def _at(rng: random.Random, point: Point, ahead: int) -> Kill:
    """Rare points at their first passing, so that the kill happens; the others anywhere early. Lines
    that are sent together are accepted together, so that `accept` is rare when many are."""
    if point.startswith(("compaction.", "session.")) or (point.startswith("accept.") and ahead > 2):
        return Kill(point=point)
    return Kill(point=point, passing=rng.randint(1, 4 if point.startswith(("turn.tools", "turn.step")) else 6))


def _events(rng: random.Random, seed: int) -> list[Event]:
    speakers = _speakers(rng)
    kinds: list[Kind] = list(_NEEDED)
    kinds += [rng.choice(_KINDS) for _ in range(rng.randint(0, 12))]
    rng.shuffle(kinds)
    events: list[Event] = []
    for kind in kinds:
        chat, user = rng.choice(speakers)
        said = _message(rng, seed, len(events), kind, chat, user)
        events.append(said)
        if kind == "say" and rng.random() < 0.3:
            # The same once more: the only request that may be repeated, because it has no effects.
            events.append(replace(said, id=f"e{seed}-{len(events)}", text="/retry"))
        if rng.random() < 0.25:
            events.append(_command(seed, len(events), rng.choice(COMMANDS), chat, user))
    # One conversation that is surely long enough to be condensed, and then is; and one that ends.
    chat, user = rng.choice(speakers)
    for kind in ("long", "long", "say", "long", "say"):
        events.append(_message(rng, seed, len(events), kind, chat, user))
    events.append(_command(seed, len(events), "/compress", chat, user))
    events.append(_message(rng, seed, len(events), "say", chat, user))
    events.append(_command(seed, len(events), rng.choice(("/new", "/undo")), chat, user))
    return events


def _speakers(rng: random.Random) -> list[tuple[str, str | None]]:
    speakers: list[tuple[str, str | None]] = []
    for number in range(rng.randint(1, 4)):
        if rng.random() < 0.25:
            speakers += [(f"group{number}", "ann"), (f"group{number}", "bob")]
        else:
            speakers.append((f"chat{number}", None))
    return speakers


def _message(rng: random.Random, seed: int, number: int, kind: Kind, chat: str, user: str | None) -> Event:
    token = f"tok{number:02d}{rng.randrange(16**5):05x}"
    padding = " ".join([PADDING] * 6) if kind == "long" else "/queue" if rng.random() < 0.1 else ""
    text = f"{padding} {kind} {token}".strip()
    return Event(id=f"e{seed}-{number}", chat=chat, user=user, kind=kind, token=token, text=text)


def _command(seed: int, number: int, text: str, chat: str, user: str | None) -> Event:
    return Event(id=f"e{seed}-{number}", chat=chat, user=user, kind="command", text=text)


def _with_repeats(rng: random.Random, events: Sequence[Event]) -> tuple[Event, ...]:
    """The events with a few of them sent a second time, some time after the first."""
    lines: list[Event] = []
    for event in events:
        lines.append(event)
        if rng.random() < 0.12:
            lines.append(rng.choice(lines))
    return tuple(lines)
