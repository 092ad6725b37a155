"""The schedule of one run, drawn from its seed: the messages and their times, the faults of calls, and the deaths of
the bot's processes."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from tests.chaos.bots.run import PATIENCE
from tests.chaos.bots.script import SLOWEST, Kill, Said, Trouble, a_command, a_kill, a_message, in_order
from tests.emulators.faults import Fault
from tests.emulators.telegram import Disconnect, Flood, LoseAnswer, Refuse, Slow

MOVE: Final = "move"  # a kind of thing to say: the group becomes a supergroup
_STORMS: Final = 8  # one run of so many is a storm of kills,
_STORM: Final = (0.12, 0.38)  # real seconds apart: one to three of the bot's own
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
    Slow(seconds=SLOWEST),
)
_REFUSED: Final = (
    Refuse(status=404, body='{"ok":false,"error_code":404,"description":"Not Found: method not found"}'),
    Refuse(status=400, body='{"ok":false,"error_code":400,"description":"Bad Request: TEXTDRAFT_PEER_INVALID"}'),
)
_SEEN: Final = ("sendMessage", "editMessageText")


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """One run. `kills[n]` is what ends process n; the one after them is asked to leave when all is done. `called`:
    Telegram calls the bot, instead of being asked. `drafts`: replies grow as drafts where they may; `slower`: so many
    times as slowly as else."""

    seed: int
    said: tuple[Said, ...]
    kills: tuple[Kill, ...]
    faults: tuple[Trouble, ...]
    called: bool = False
    drafts: bool = False
    slower: float = 1.0
    together: bool = False

    @property
    def patience(self) -> float:
        """Real seconds for one process."""
        return PATIENCE

    @property
    def messages(self) -> tuple[Said, ...]:
        """Return the messages to the bot."""
        return tuple(each for each in self.said if each.kind != MOVE)

    @property
    def moves(self) -> bool:
        """Say whether the group becomes a supergroup on the way."""
        return len(self.messages) < len(self.said)

    def described(self) -> list[str]:
        """The schedule, to be read."""
        kills = [f"process {number} is killed at {kill}" for number, kill in enumerate(self.kills)]
        return [
            f"seed {self.seed}{', called by Telegram' if self.called else ''}{', with drafts' if self.drafts else ''}",
            *map(str, self.said),
            *kills,
            *map(str, self.faults),
        ]


def make_schedule(seed: int) -> Schedule:
    """The run of a seed."""
    rng = random.Random(seed)
    kills = tuple(a_kill(rng) for _ in range(rng.choice((0, 1, 1, 2, 3))))
    if seed % _STORMS == _STORMS - 1:
        kills = tuple(Kill(after=round(rng.uniform(*_STORM), 2)) for _ in range(rng.randint(20, 40)))
    said = [a_message(rng, number, rng.randint(0, len(kills))) for number in range(rng.randint(5, 12))]
    said += [a_command(rng, rng.randint(0, len(kills))) for _ in range(rng.randint(1, 3))]
    faults = _faults(rng)
    if seed % 4 == 1:
        said.append(_move(rng, rng.randint(0, len(kills))))
    drafts = seed % 5 in (1, 3)
    if drafts:
        faults += _faults_of_drafts(rng)
        kills = tuple(Kill(draft=rng.randint(1, 3)) if rng.random() < 0.5 else each for each in kills)
    return Schedule(seed=seed, said=in_order(said), kills=kills, faults=faults, called=seed % 3 == 2, drafts=drafts)


def _move(rng: random.Random, process: int) -> Said:
    at, down = round(rng.uniform(0.0, 0.8), 2), rng.random() < 0.3
    return Said(process=process, at=at, down=down, place="group", speaker="anna", kind=MOVE)


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
