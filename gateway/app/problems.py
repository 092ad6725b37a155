"""What is wrong with a running gateway, judging by the signs of a look. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, Literal, get_args

from msgspec import Struct, field

from gateway.app.readers import ReaderState
from gateway.domain.wording import counted, lasting

Kind = Literal[
    "platform_down",
    "reader_still",
    "deaf",
    "lane_still",
    "job_ended",
    "outbox_grows",
    "sends_fail",
    "model_away",
    "model_silent",
    "process_gone",
    "loop_lags",
    "writer_still",
    "store_away",
    "disk_low",
    "backup_failed",
]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
# Messages move all the same: people are answered, if only that the model is away.
MOVES_ON: Final = frozenset[Kind](
    {"loop_lags", "disk_low", "model_away", "model_silent", "process_gone", "backup_failed"}
)

LOOK_SECONDS: Final = 10.0  # between two looks
ASK_SECONDS: Final = 20.0  # a platform was silent for so long before its server is asked, and between two questions
HOPELESS: Final = 300.0  # seconds without an end of a write, or without a look: then the process ends
_LAGS: Final = 2.0  # seconds of a look that comes late
_LANE_STILL: Final = 45.0  # seconds in a lane that nobody runs
_WRITER_STILL: Final = 30.0
_GROWS_FOR, _GROWS_BY = 300.0, 10  # seconds, and rows
_FAILS_FOR, _FAILS = 20.0, 3  # seconds, and attempts
_MODEL_SILENT: Final = 45.0  # seconds; a thinking model shows thoughts, or people are answered meanwhile
LEAST_FREE: Final = 500_000_000  # bytes
MOST_LOOKS: Final = int(_GROWS_FOR / LOOK_SECONDS) + 1


class PlatformSigns(Struct, frozen=True, kw_only=True):
    """One platform at a look. `still_for`: since when its library gave no sign, if that is too long. `deaf_for`: for
    how many seconds its server was seen to keep updates, while nothing was heard of it.
    `failed_sends`: attempts to show something since the last one that succeeded, from the first to the last of which
    `fails_for` passed."""

    state: ReaderState
    still_for: float | None = None
    deaf_for: float = 0.0
    unsent: int = 0
    failed_sends: int = 0
    fails_for: float = 0.0


class Signs(Struct, frozen=True, kw_only=True):
    """A look at the gateway, at a monotonic time. `idle`: for how many seconds the oldest message waits in a lane that
    nobody runs, by platform; nothing while no more lanes may run at once. `lag`: by how much the look came late.
    `writes_for`: for how long a small write has been under way. `ended`: jobs that had ended and were begun anew.
    `model`: the main model's name, and `away` why it is not asked. `silent_for`: for how long a turn has waited for a
    sign of its model, while no model answered; `patience`: how long the settings let it be silent. `lost`: other
    processes of the store that were found dead since the last look."""

    at: float
    platforms: Mapping[str, PlatformSigns] = field(default_factory=dict)
    idle: Mapping[str, float] = field(default_factory=dict)
    lag: float = 0.0
    writes_for: float = 0.0
    store_error: str | None = None
    free: int | None = None  # bytes of the disk
    backup_error: str | None = None  # of the last one that the program made
    ended: tuple[str, ...] = ()
    dead: int = 0  # items that were given up, ever
    caps_met: float = 0.0  # model calls that a spend cap refused, since the start
    model: str = ""
    away: str | None = None
    silent_for: float = 0.0
    patience: float = 0.0
    lost: float = 0


class Problem(Struct, frozen=True, kw_only=True):
    """Something that is wrong. `about`: the platform or the job. `text` is for people, and names none of them."""

    kind: Kind
    about: str
    text: str

    @property
    def name(self) -> tuple[Kind, str]:
        """The same problem has it at each look."""
        return self.kind, self.about


def problems(signs: Signs, before: Sequence[Signs]) -> list[Problem]:
    """What is wrong; `before` are the looks of the last minutes, oldest first."""
    return [Problem(kind=kind, about=about, text=text) for kind, about, text in _found(signs, before)]


def is_hopeless(signs: Signs) -> bool:
    """Whether only another start may help."""
    return signs.writes_for >= HOPELESS


def _found(signs: Signs, before: Sequence[Signs]) -> Iterator[tuple[Kind, str, str]]:
    for name, platform in signs.platforms.items():
        yield from _of_platform(name, platform)
        if _grows([*(each.platforms.get(name) for each in before), platform], signs.at - before[0].at if before else 0):
            yield "outbox_grows", name, f"{counted(platform.unsent, 'message')} are waiting, but Legato can send none"
        if platform.failed_sends >= _FAILS and platform.fails_for >= _FAILS_FOR:
            yield "sends_fail", name, f"{platform.failed_sends} attempts to show a message failed, and none succeeded"
    for name, seconds in signs.idle.items():
        if seconds >= _LANE_STILL:
            yield "lane_still", name, f"a message has waited {lasting(seconds)} without an answer"
    for job in signs.ended:
        yield (
            "job_ended",
            job,
            "this part of Legato stopped because of an error, and was started again; the log has more",
        )
    if signs.away is not None:
        yield "model_away", signs.model, signs.away
    if signs.silent_for >= max(_MODEL_SILENT, signs.patience):
        yield "model_silent", signs.model, f"the model has not responded for {lasting(signs.silent_for)}"
    if signs.lost:
        yield "process_gone", "", "another process died or hangs; the others take over its work"
    if signs.lag >= _LAGS:
        yield "loop_lags", "", f"everything stopped for {signs.lag:.0f} seconds"
    if signs.writes_for >= _WRITER_STILL:
        yield "writer_still", "", f"a write to the store has not finished for {lasting(signs.writes_for)}"
    if signs.store_error is not None:
        yield "store_away", "", signs.store_error
    if signs.free is not None and signs.free < LEAST_FREE:
        yield "disk_low", "", f"the store's disk has {signs.free // 1_000_000:,} MB left"
    if signs.backup_error is not None:
        yield "backup_failed", "", f"the backup failed: {signs.backup_error}"


def _of_platform(name: str, platform: PlatformSigns) -> Iterator[tuple[Kind, str, str]]:
    if platform.state == "ended":
        yield "platform_down", name, "Legato no longer reads the platform; the log says why"
    elif platform.state == "unreached":
        yield "platform_down", name, "Legato cannot reach the platform; the log says why"
    elif platform.state == "pauses":
        yield "platform_down", name, "the reader of the platform had an error, and is pausing; the log says more"
    elif platform.still_for is not None:
        yield "reader_still", name, f"the platform's reader has not responded for {lasting(platform.still_for)}"
    elif platform.deaf_for >= ASK_SECONDS:
        yield "deaf", name, "the platform's server has messages for the bot, but none of them arrives"


def _grows(looks: Sequence[PlatformSigns | None], seconds: float) -> bool:
    """Whether no row went out for so many seconds, while many came in."""
    counts = [each.unsent for each in looks if each is not None]
    if seconds < _GROWS_FOR or len(counts) < 2:
        return False
    return all(a <= b for a, b in pairwise(counts)) and counts[-1] - counts[0] >= _GROWS_BY
