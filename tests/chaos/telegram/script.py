"""What one run does, drawn from its seed: who says what and when, which calls fail, and how the bot's processes die."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final, Literal

from tests.emulators.faults import Fault
from tests.emulators.telegram import Disconnect, Flood, LoseAnswer, Refuse, Slow

Place = Literal["anna", "bob", "group", "one", "two"]
"""Where something is said: two private chats, a group, two topics of a forum."""

FROM_OUTSIDE: Final = ""
MOVE: Final = "move"  # a kind of thing to say: the group becomes a supergroup
_COMMANDS: Final = ("/status", "/new", "/help")
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
_LONGEST: Final = 1.6  # real seconds of a process that is killed from outside
_SLOWEST: Final = 3  # hurried seconds: far from the bot's patience, so that an answer that comes late still comes
_TROUBLES: Final[tuple[Fault, ...]] = (
    LoseAnswer(),
    LoseAnswer(seconds=1.0),
    Disconnect(),
    Disconnect(done=True),
    Flood(seconds=2),
    Flood(seconds=5),
    Refuse(status=500),
    Refuse(status=502),
    Refuse(status=503),
    Slow(seconds=_SLOWEST),
)
_REFUSED: Final = (
    Refuse(status=404, body='{"ok":false,"error_code":404,"description":"Not Found: method not found"}'),
    Refuse(status=400, body='{"ok":false,"error_code":400,"description":"Bad Request: TEXTDRAFT_PEER_INVALID"}'),
)
_SEEN: Final = ("sendMessage", "editMessageText")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One message: who says it where, in the life of which process (`down`: just before it), and how many real
    seconds after its start. `token`: the word that names it, "" for a command; `kind`: what it asks for."""

    process: int
    at: float
    down: bool
    place: Place
    speaker: Literal["anna", "bob"]
    kind: str
    token: str = ""

    @property
    def text(self) -> str:
        """Its words, but for the bot's name."""
        return f"{self.kind} {self.token}".strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What befalls the `nth` call of a method in the run."""

    method: str
    nth: int
    fault: Fault

    def __str__(self) -> str:
        return f"{self.method} {self.nth}: {self.fault}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """SIGKILL at the `passing`-th time the process passes `point`, or, from outside, when it has called for the
    `draft`-th draft (0: never), or `after` so many real seconds, which also ends one that never comes so far."""

    point: str = FROM_OUTSIDE
    passing: int = 1
    draft: int = 0
    after: float = _LONGEST

    def __str__(self) -> str:
        if self.draft:
            return f"draft {self.draft}, or {self.after} s"
        return f"{self.point} ({self.passing})" if self.point else f"{self.after} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """One run. `kills[n]` is what ends process n; the one after them is asked to leave when all is done. `called`:
    Telegram calls the bot, instead of being asked. `drafts`: replies grow as drafts where they may."""

    seed: int
    said: tuple[Said, ...]
    kills: tuple[Kill, ...]
    faults: tuple[Trouble, ...]
    called: bool = False
    drafts: bool = False

    @property
    def messages(self) -> tuple[Said, ...]:
        """What is said to the bot."""
        return tuple(each for each in self.said if each.kind != MOVE)

    @property
    def moves(self) -> bool:
        """Whether the group becomes a supergroup on the way."""
        return len(self.messages) < len(self.said)

    def described(self) -> list[str]:
        """The schedule, to be read."""
        said = [
            f"process {each.process} {'down' if each.down else f'+{each.at} s'}: "
            f"{each.speaker} in {each.place}: {each.text}"
            for each in self.said
        ]
        kills = [f"process {number} is killed at {kill}" for number, kill in enumerate(self.kills)]
        return [
            f"seed {self.seed}{', called by Telegram' if self.called else ''}{', with drafts' if self.drafts else ''}",
            *said,
            *kills,
            *map(str, self.faults),
        ]


def make_schedule(seed: int) -> Schedule:
    """The run of a seed."""
    rng = random.Random(seed)
    kills = tuple(_kill(rng) for _ in range(rng.choice((0, 1, 1, 2, 3))))
    said = [_message(rng, number, rng.randint(0, len(kills))) for number in range(rng.randint(5, 12))]
    said += [_command(rng, rng.randint(0, len(kills))) for _ in range(rng.randint(1, 3))]
    faults = _faults(rng)
    if seed % 4 == 1:
        said.append(_move(rng, rng.randint(0, len(kills))))
    said.sort(key=lambda each: (each.process, not each.down, each.at))
    drafts = seed % 5 in (1, 3)
    if drafts:
        faults += _faults_of_drafts(rng)
        kills = tuple(Kill(draft=rng.randint(1, 3)) if rng.random() < 0.5 else each for each in kills)
    return Schedule(seed=seed, said=tuple(said), kills=kills, faults=faults, called=seed % 3 == 2, drafts=drafts)


def _kill(rng: random.Random) -> Kill:
    if rng.random() < 0.5:
        return Kill(after=round(rng.uniform(0.1, _LONGEST), 2))
    return Kill(point=rng.choice(_POINTS), passing=rng.randint(1, 4))


def _message(rng: random.Random, number: int, process: int) -> Said:
    token = f"tok{number:02d}{rng.randrange(16**5):05x}"
    return _said(rng, process, rng.choice(_KINDS), token)


def _command(rng: random.Random, process: int) -> Said:
    return _said(rng, process, rng.choice(_COMMANDS))


def _move(rng: random.Random, process: int) -> Said:
    at, down = round(rng.uniform(0.0, 0.8), 2), rng.random() < 0.3
    return Said(process=process, at=at, down=down, place="group", speaker="anna", kind=MOVE)


def _said(rng: random.Random, process: int, kind: str, token: str = "") -> Said:
    place: Place = rng.choice(("anna", "anna", "bob", "group", "one", "two"))
    speaker: Literal["anna", "bob"] = "bob" if place == "bob" or (place == "group" and rng.random() < 0.5) else "anna"
    return Said(
        process=process,
        at=round(rng.uniform(0.0, 0.8), 2),
        down=rng.random() < 0.3,
        place=place,
        speaker=speaker,
        kind=kind,
        token=token,
    )


def _faults(rng: random.Random) -> tuple[Trouble, ...]:
    """Most of them befall what people see; polling and typing have theirs."""
    faults = [
        Trouble(method=rng.choice(_SEEN), nth=rng.randint(1, 12), fault=rng.choice(_TROUBLES))
        for _ in range(rng.randint(2, 7))
    ]
    if rng.random() < 0.3:
        lost: Fault = rng.choice((LoseAnswer(seconds=1.0), Disconnect(), Disconnect(done=True), Refuse(status=502)))
        faults.append(Trouble(method="getUpdates", nth=rng.randint(1, 6), fault=lost))
    if rng.random() < 0.3:
        faults.append(Trouble(method="sendChatAction", nth=rng.randint(1, 6), fault=rng.choice(_TROUBLES)))
    return tuple(faults)


def _faults_of_drafts(rng: random.Random) -> tuple[Trouble, ...]:
    """Now and then there are none to be had from some call on."""
    faults = [
        Trouble(method="sendMessageDraft", nth=rng.randint(1, 8), fault=rng.choice(_TROUBLES))
        for _ in range(rng.randint(1, 3))
    ]
    if rng.random() < 0.25:
        faults.append(Trouble(method="sendMessageDraft", nth=rng.randint(1, 8), fault=rng.choice(_REFUSED)))
    return tuple(faults)
