"""The traces of a run of several processes, for the checks."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Final

from tests.chaos.clocks import LATE
from tests.chaos.schedule import Schedule
from tests.chaos.snapshot import Snapshot
from tests.chaos.socket_platform import Poll, Send
from tests.chaos.watched_model import Call

OUTAGES: Final = ("restart", "freeze", "pause")  # of the store


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A fault that took place: from when to when (monotonic seconds), and to which process (-1: not to
    one of them)."""

    kind: str
    begun: float
    ended: float
    process: int = -1


@dataclass(slots=True, kw_only=True)
class Findings:
    """The traces of a run. `exits` are (process, status) of those that left by themselves."""

    schedule: Schedule
    folder: Path
    hits: list[Hit] = field(default_factory=list)
    exits: list[tuple[int, int]] = field(default_factory=list)
    sends: list[Send] = field(default_factory=list)
    terminals: set[int] = field(default_factory=set)  # the processes that had a terminal
    polls: list[Poll] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    offered: dict[str, int] = field(default_factory=dict)
    messages_seen: dict[str, str] = field(default_factory=dict)  # rows as they lay there during the run
    messages_left: dict[str, str] = field(default_factory=dict)
    snapshot: Snapshot | None = None
    lost: int = 0  # answers of the store
    leaving: float = inf  # when everybody was asked to (monotonic seconds)
    violations: list[str] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)  # what kept the run from its end

    def record(self, name: str) -> list[tuple[int, str]]:
        """A file that the processes wrote: (process, text) of each line."""
        path = self.folder / name
        rows = path.read_text().splitlines() if path.exists() else []
        return [(int(number), text) for number, _, text in (row.partition(" ") for row in rows)]

    def starved(self) -> list[Hit]:
        """Return the times when processes did not get to run, or the server did not answer them, for longer than the
        schedule's own stops and outages took: the machine was too busy."""
        silences = [
            Hit(kind="starved", begun=at - float(words[1]), ended=at, process=process)
            for at, process, words in self.trace()
            if words[0] == "late"
        ]
        return [silence for silence in silences if self._unplanned(silence) > LATE]

    def _unplanned(self, silence: Hit) -> float:
        """Return the seconds of a process's silence in which nobody had stopped it or the server."""
        left, until = 0.0, silence.begun
        for hit in sorted(self.hits, key=lambda hit: hit.begun):
            if hit.kind in OUTAGES or (hit.kind == "stop" and hit.process == silence.process):
                left += max(0.0, min(hit.begun, silence.ended) - until)
                until = max(until, hit.ended)
        return left + max(0.0, silence.ended - until)

    def trace(self) -> list[tuple[float, int, list[str]]]:
        """Return the deeds of the processes: (when, process, words) in order."""
        rows = ((process, text.split()) for process, text in self.record("trace"))
        return sorted(((float(at), process, words) for process, (at, *words) in rows), key=lambda row: row[0])
