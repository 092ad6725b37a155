"""The faults of a run, and their times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from gateway.runtime.points import Point

FaultKind = Literal[
    "kill",  # SIGKILL to a process, which is started again
    "stop",  # SIGSTOP to a process for longer than its lease, then SIGCONT
    "restart",  # SIGKILL to the Redis server, which is started again on its file
    "freeze",  # SIGSTOP to the Redis server, then SIGCONT
    "pause",  # CLIENT PAUSE
    "cut",  # CLIENT KILL: every connection breaks
    "lose",  # answers of the Redis server are lost, each with its connection: what was done was done
    "model limited",
    "model broken",
    "model hanging",
    "model cut",
    "send ambiguous",  # shown, and the answer is lost
    "send late",  # shown, and answered after the sender has given up
    "send unavailable",  # taken for nothing, and said so
    "send limited",  # 429
    "send slow",
    "send refused",  # 400, for good
    "platform down",
    "jump",  # a process's wall clock is wrong from now on
    "week",  # everybody's clock is a week ahead: sessions expire
]
KINDS: Final[tuple[FaultKind, ...]] = get_args(FaultKind)
MODEL_FAULTS: Final = tuple(kind for kind in KINDS if kind.startswith("model "))
SEND_FAULTS: Final = tuple(kind for kind in KINDS if kind.startswith("send "))
ANY: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that goes wrong: `at` real seconds after the start, or at the `passing`-th passing of a
    point, or with the `call`-th call. `seconds`: how long it lasts, or how far a clock jumps. `slot`: which
    process; ANY: whichever passes the point."""

    kind: FaultKind
    at: float | None = None
    slot: int = ANY
    point: Point | None = None
    passing: int = 1
    call: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        when = f"at {self.at:.2f} s" if self.at is not None else f"with call {self.call}"
        if self.point:
            when = f"at {self.point} (passing {self.passing})"
        whom = f" process {self.slot}" if self.kind in ("kill", "stop", "jump") and self.slot != ANY else ""
        long = f", {self.seconds:g} s" if self.seconds else ""
        return f"{self.kind}{whom} {when}{long}"


def by_call(faults: Iterable[Fault], what: str) -> dict[int, Any]:
    """Return the faults of the calls that `what` names ("send" or "model"), by the number of the call."""
    kinds = ((fault.call, fault.kind.split()) for fault in faults)
    return {call: words[1] for call, words in kinds if words[0] == what}
