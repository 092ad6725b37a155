"""The excuses of a fault: the few promises that nobody can keep while a process is dead, still or cut off from the
store. Each excuse names the fault, and is for the one row, turn, hook or poll that it struck: it must have befallen
the very process, between the moment at which that took the work and the moment at which it did, or could have said,
what is to be excused."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from math import inf
from typing import Final

from tests.chaos.clocks import LEASE
from tests.chaos.findings import OUTAGES, Findings, Hit
from tests.chaos.socket_platform import Send

_BEFALL: Final = ("kill", "stop", "starved")
_ENDS_OF_AN_ATTEMPT: Final = ("marked", "retried")
# Real seconds in which a process that has just woken passes the point of what it had taken before.
_WAKING: Final = 1.0
_LAG: Final = 0.05  # between what a process does and the laboratory's note of it
_UNRENEWED: Final = 2.0  # a lease and a renewal: an outage that ended earlier has cost nobody an account

Times = dict[tuple[int, str], list[float]]


class Excuses:
    """Answers whether a fault struck something, and which."""

    def __init__(self, findings: Findings) -> None:
        self._hits = sorted([*findings.hits, *findings.starved()], key=lambda hit: hit.begun)
        # Answers that are to be lost pass through the laboratory: while it does not get to run, nothing is answered.
        loses = any(fault.kind == "lose" for fault in findings.schedule.faults)
        self._outages = {*OUTAGES, "laboratory starved"} if loses else OUTAGES
        self._leaving = findings.leaving
        self._passed: dict[str, Times] = defaultdict(lambda: defaultdict(list))
        for at, process, words in findings.trace():
            name = "attempt ended" if words[0] in _ENDS_OF_AN_ATTEMPT else words[0]
            self._passed[name][process, words[1] if len(words) > 1 else ""].append(at)

    def of_process(self, process: int, begun: float, ended: float) -> str | None:
        """The kill or stop that befell a process at some time between; or that the machine was too busy
        to let it run, which is no fault of the schedule's and is counted by a name of its own."""
        return _kind(
            hit for hit in self._hits if hit.process == process and hit.kind in _BEFALL and _meets(hit, begun, ended)
        )

    def of_server(self, begun: float, ended: float) -> str | None:
        """The outage of the store that lay between, at least in part."""
        return _kind(hit for hit in self._hits if hit.kind in self._outages and _meets(hit, begun, ended))

    def faults_of(self, process: int) -> int:
        """Return the number of faults that struck a process or the store."""
        return sum((hit.process == process and hit.kind in _BEFALL) or hit.kind in self._outages for hit in self._hits)

    def repeated_send(self, first: Send, second: Send) -> str | None:
        """Return the excuse for a row that was shown again: nobody heard of the first time, or its process could not
        tell the store; or the second had begun its attempt before it was still, and went on with it."""
        if first.fault and not first.heard:
            return f"send {first.fault}"
        told = min(self._next("marked", first.process, first.row, first.at), second.at)
        return (
            self.of_process(first.process, self._began(first) - _LAG, told)
            or self.interrupted(second)
            or self.of_server(first.at - _LAG, told)
            or (None if first.heard else "send unheard")  # it was down, or the machine too busy to tell in time
        )

    def interrupted(self, send: Send) -> str | None:
        """Return the excuse for a send of a row that belongs to another process by now: the first was still in the
        midst of it."""
        return self.of_process(send.process, self._began(send), send.at)

    def repeated_hook(self, session: str, first: tuple[float, int], second: tuple[float, int]) -> str | None:
        """Return the excuse for a hook that was called again: the first could not tell the store; or the second had
        ended the session, and was still between the two."""
        at, process = first
        done = self._next("hook_done", process, session, at)
        return (
            self.of_process(process, at - _LAG, done)
            or self.of_process(second[1], at - _WAKING, second[0])
            or self.of_server(at - _LAG, done)
        )

    def taken_turn(self, process: int, claimed: float, until: float) -> str | None:
        """Return the excuse for a turn that another process began after the first had claimed it: the first has been
        dead or still since, or the store was away for longer than a lease, and the first to find it again took the
        others for dead."""
        away = (hit for hit in self._hits if hit.kind in OUTAGES and hit.ended - hit.begun > LEASE)
        return self.of_process(process, claimed - _WAKING, until) or _kind(
            hit for hit in away if _meets(hit, claimed - _WAKING, until)
        )

    def unseen_end(self, ended: float) -> str | None:
        """Return the excuse for a call that may have ended earlier than the laboratory noticed."""
        return _kind(hit for hit in self._hits if hit.kind == "laboratory starved" and _meets(hit, ended - _LAG, ended))

    def taken_over(self, process: int, polled: float, at: float, *, left_open: bool) -> str | None:
        """Return the excuse for another reader of the account that a process polled for last; `left_open`: its poll
        still hangs."""
        if any(hit.process == process and hit.kind == "kill" and hit.begun <= at for hit in self._hits):
            return "kill"  # the last it asked for may be heard of after its death
        unrenewed = (hit for hit in self._hits if hit.process == process and hit.kind == "starved")
        befallen = self.of_process(process, polled, at)
        if befallen or any(_meets(hit, polled - _UNRENEWED, at) for hit in unrenewed):
            return befallen or "starved"
        if left_open:
            return None
        return "leaving" if self._leaving <= at else self.of_server(polled - _UNRENEWED, at)

    def just_woken(self, process: int, at: float) -> Hit | None:
        """The stop from which a process has just woken."""
        kinds = ("stop", "starved")
        hits = (hit for hit in self._hits if hit.process == process and hit.kind in kinds)
        return next((hit for hit in hits if hit.ended <= at <= hit.ended + _WAKING), None)

    def _next(self, what: str, process: int, name: str, after: float) -> float:
        return next((at for at in self._passed[what].get((process, name), ()) if at > after), inf)

    def _began(self, send: Send) -> float:
        """Return the time when a process began the attempt behind a send."""
        times = self._passed["outbox.before_send"].get((send.process, send.row), [])
        place = bisect_right(times, send.at)
        return times[place - 1] if place else send.at


def _meets(hit: Hit, begun: float, ended: float) -> bool:
    return hit.begun <= ended and begun <= hit.ended


def _kind(hits: Iterable[Hit]) -> str | None:
    return next((hit.kind for hit in hits), None)
