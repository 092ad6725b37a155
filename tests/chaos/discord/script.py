"""The schedule of one run, drawn from its seed: the messages and their times, the faults of calls and of the gateway,
and the deaths of the bot's processes."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Final

from tests.chaos.bots import schedule
from tests.chaos.bots.script import SLOWEST, Place, Said, Trouble, a_message, in_order
from tests.emulators.discord import Drop, InvalidSession, RateLimit, Reconnect, Silence
from tests.emulators.discord.disturbing import Mishap
from tests.emulators.faults import Disconnect, LoseAnswer, Refuse, Slow

SEND: Final = "POST /channels/{channel}/messages"
EDIT: Final = "PATCH /channels/{channel}/messages/{message}"
HISTORY: Final = "GET /channels/{channel}/messages"
TYPING: Final = "POST /channels/{channel}/typing"
CALLBACK: Final = "POST /interactions/{interaction}/{token}/callback"
ANSWER: Final = "PATCH /webhooks/{webhook}/{token}/messages/{message}"
LOOK: Final = "GET /webhooks/{webhook}/{token}/messages/{message}"
SLASH: Final = "slash "  # begins the kind of what is given as a slash command, from the menu
HANDSHAKE: Final = "GET /gateway/"
PLACES: Final[tuple[Place, ...]] = ("anna", "bob", "group", "one", "two")
_COMMANDS: Final = ("version", "version", "whoami", "status", "new")
_LANES: Final[schedule.Lanes] = (
    ("anna", "anna"),
    ("bob", "bob"),
    ("group", "anna"),
    ("group", "bob"),
    ("one", "anna"),
    ("one", "bob"),
    ("two", "anna"),
    ("two", "bob"),
)
_TROUBLES: Final[tuple[Mishap, ...]] = (
    LoseAnswer(),
    LoseAnswer(seconds=1.0),
    Disconnect(),
    Disconnect(done=True),
    RateLimit(seconds=0.3),
    RateLimit(seconds=0.3, scope="shared"),
    RateLimit(seconds=0.3, scope="global"),
    RateLimit(seconds=2.0, via=False),
    Refuse(status=500),
    Refuse(status=502),
    Refuse(status=503),
    Refuse(status=504),
    Slow(seconds=SLOWEST),
)
_BREAKS: Final[tuple[Mishap, ...]] = (
    Drop(),
    Drop(after=True),
    Drop(code=1000),
    Drop(code=4000),
    Drop(code=4009),
    Reconnect(),
    InvalidSession(),
    InvalidSession(resumable=True),
    Silence(),
)
_BREAKABLE: Final = (
    "send HELLO",
    "receive HEARTBEAT",
    "send HEARTBEAT_ACK",
    "receive IDENTIFY",
    "send READY",
    "send GUILD_CREATE",
    "send MESSAGE_CREATE",
    "send MESSAGE_CREATE",
    "send MESSAGE_CREATE",
    "send MESSAGE_UPDATE",
    "send INTERACTION_CREATE",
    "receive RESUME",
    "send RESUMED",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule(schedule.Schedule):
    """`nonces`: Discord remembers those of messages for minutes, as it says; otherwise it has forgotten them at once,
    as it has after a long absence."""

    nonces: bool = True

    @property
    def title(self) -> str:
        """What the run is called."""
        return f"seed {self.seed}{'' if self.nonces else ', nonces are forgotten'}"


def make_schedule(seed: int) -> Schedule:
    """The run of a seed."""
    rng = random.Random(seed)
    kills, said = schedule.lives_and_words(rng)
    faults = (*_faults(rng), *_breaks(rng))
    slashes = random.Random(f"slash {seed}")  # apart, so that the other things of a seed stay as they were
    said += [_a_slash_command(slashes, slashes.randint(0, len(kills))) for _ in range(slashes.randint(0, 4))]
    said += [_a_payment(slashes, number, slashes.randint(0, len(kills))) for number in range(slashes.randint(0, 2))]
    faults += _faults_of_interactions(slashes)
    missed = schedule.many_missed(seed, _LANES)
    return Schedule(
        seed=seed,
        said=in_order(missed or said),
        kills=kills,
        faults=faults,
        nonces=seed % 3 != 2,
        missed=len(missed),
    )


def _a_slash_command(rng: random.Random, process: int) -> Said:
    """One from the menu."""
    place, speaker = rng.choice(_LANES)
    kind = SLASH + rng.choice(_COMMANDS)
    return Said(
        process=process, at=round(rng.uniform(0.0, 1.2), 2), down=False, place=place, speaker=speaker, kind=kind
    )


def _a_payment(rng: random.Random, number: int, process: int) -> Said:
    """Return a payment, which a person must allow with a button."""
    said = a_message(rng, 80 + number, process)
    return replace(said, kind="pay")


def _faults_of_interactions(rng: random.Random) -> tuple[Trouble, ...]:
    if rng.random() < 0.5:
        return ()
    method = rng.choice((CALLBACK, ANSWER, LOOK))
    return (Trouble(method=method, nth=rng.randint(1, 3), fault=rng.choice(_TROUBLES)),)


def _faults(rng: random.Random) -> list[Trouble]:
    """Most of them befall what people see; typing, looking back and the handshake have theirs."""
    faults = [
        Trouble(method=rng.choice((SEND, SEND, EDIT)), nth=rng.randint(1, 12), fault=rng.choice(_TROUBLES))
        for _ in range(rng.randint(1, 5))
    ]
    if rng.random() < 0.3:
        faults.append(Trouble(method=HISTORY, nth=rng.randint(1, 8), fault=rng.choice(_TROUBLES)))
    if rng.random() < 0.3:
        faults.append(Trouble(method=TYPING, nth=rng.randint(1, 6), fault=rng.choice(_TROUBLES)))
    if rng.random() < 0.3:
        lost: Mishap = rng.choice((Refuse(status=502), Disconnect(), LoseAnswer(seconds=1.0)))
        faults.append(Trouble(method=HANDSHAKE, nth=rng.randint(1, 3), fault=lost))
    return faults


def _breaks(rng: random.Random) -> list[Trouble]:
    """Return the faults of the gateway's payloads."""
    return [
        Trouble(method=rng.choice(_BREAKABLE), nth=rng.randint(1, 6), fault=rng.choice(_BREAKS))
        for _ in range(rng.randint(0, 3))
    ]
