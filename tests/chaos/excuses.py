"""What a fault excuses: the few things that nobody can promise while a process is dead, still or cut
off from the store. Each excuse names the fault, and is for the one row, turn or hook that it struck."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from tests.chaos.findings import Findings, Hit
from tests.chaos.socket_platform import Send

_OUTAGES = ("restart", "freeze", "pause")
# Real seconds after a fault in which what it caused may still come: a lease, a beat and a look.
_AFTERMATH = 4.0
_WAKING = 1.0  # real seconds in which a woken process, its connections made anew, sends what it had claimed before


class Excuses:
    """Answers whether a fault struck something, and which."""

    def __init__(self, findings: Findings) -> None:
        self._hits = sorted([*findings.hits, *findings.starved()], key=lambda hit: hit.begun)
        self._leaving = findings.leaving
        self._marked: dict[tuple[int, str], list[float]] = {}
        self._hooked: dict[tuple[int, str], list[float]] = {}
        for at, process, words in findings.trace():
            if words[0] == "marked":
                self._marked.setdefault((process, words[1]), []).append(at)
            elif words[0] == "hook_done":
                self._hooked.setdefault((process, words[1]), []).append(at)

    def of_process(self, process: int, begun: float, ended: float) -> str | None:
        """The kill or stop that befell a process at some time between; or that the machine was too busy
        to let it run, which is no fault of the schedule's and is counted by a name of its own."""
        kinds = ("kill", "stop", "starved")
        return _kind(
            hit for hit in self._hits if hit.process == process and hit.kind in kinds and _meets(hit, begun, ended)
        )

    def of_server(self, begun: float, ended: float) -> str | None:
        """The outage of the store that lay between, at least in part."""
        return _kind(hit for hit in self._hits if hit.kind in _OUTAGES and _meets(hit, begun, ended))

    def repeated_send(self, first: Send, second: Send) -> str | None:
        """Why a row that was shown was shown again: the first was not heard of, or its process could not
        tell the store; or one of the two had claimed the row long before, was still meanwhile, and has
        just woken."""
        if not first.heard:
            return f"send {first.fault}"
        marked = next((at for at in self._marked.get((first.process, first.row), ()) if at > first.at), inf)
        away = ("platform down", "laboratory starved")
        down = _kind(hit for hit in self._hits if hit.kind in away and _meets(hit, first.at - 0.1, first.at + 1.0))
        return (
            self.of_process(first.process, first.at - _WAKING, min(marked, second.at))
            or self.of_process(second.process, min(first.at, second.at - _WAKING), second.at)
            or self.of_server(first.at - 0.05, min(marked, second.at))
            or down
        )

    def repeated_hook(self, session: str, first: tuple[float, int], second: tuple[float, int]) -> str | None:
        """Why a hook that was called, when and by which process, was called again: the first could not
        tell the store; or the second had ended the session, and was still between the two."""
        at, process = first
        done = next((when for when in self._hooked.get((process, session), ()) if when > at), inf)
        return (
            self.of_process(process, at - 0.05, done)
            or self.of_process(second[1], at - _AFTERMATH, second[0])
            or self.of_server(at - 0.05, done)
        )

    def overlap(self, process: int, begun: float, until: float) -> str | None:
        """Why a turn that a process began was begun by another one before its end."""
        return (
            self.of_process(process, begun - _AFTERMATH, until)
            or self.of_server(begun - _AFTERMATH, until)
            or _kind(hit for hit in self._hits if hit.kind == "laboratory starved" and _meets(hit, begun, until))
        )

    def woken(self, process: int, at: float) -> str | None:
        """Why a process still asks about a turn that is another's by now: it was still, and cannot know."""
        return self.of_process(process, at - _AFTERMATH, at) or self.of_server(at - _AFTERMATH, at)

    def taken_over(self, process: int, polled: float, at: float, *, left_open: bool) -> str | None:
        """Why another reads the account that a process polled for last; `left_open`: its poll still hangs."""
        if any(hit.process == process and hit.kind == "kill" and hit.begun <= at for hit in self._hits):
            return "kill"  # the last it asked for may be heard of after its death
        if befallen := self.of_process(process, polled, at):
            return befallen
        if left_open:
            return None
        return "leaving" if self._leaving <= at else self.of_server(polled - _AFTERMATH, at)

    def just_woken(self, process: int, at: float) -> Hit | None:
        """The stop from which a process has just woken."""
        kinds = ("stop", "starved")
        hits = (hit for hit in self._hits if hit.process == process and hit.kind in kinds)
        return next((hit for hit in hits if hit.ended <= at <= hit.ended + _WAKING), None)

    def ambiguities(self, row: str, sends: Iterable[Send], tried: Iterable[tuple[float, int]]) -> int:
        """How many attempts at a row may have been lost: those that a fault struck."""
        lost = sum(not send.heard for send in sends if send.row == row)
        for at, process in tried:
            marked = next((when for when in self._marked.get((process, row), ()) if when > at), inf)
            lost += self.of_process(process, at - 0.05, min(marked, at + _AFTERMATH)) is not None
            lost += self.of_server(at - 0.05, min(marked, at + _AFTERMATH)) is not None
        return lost


def _meets(hit: Hit, begun: float, ended: float) -> bool:
    return hit.begun <= ended and begun <= hit.ended


def _kind(hits: Iterable[Hit]) -> str | None:
    return next((hit.kind for hit in hits), None)
