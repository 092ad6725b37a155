"""Carrying schedules out: people talk, calls fail, processes die and are started again; all that is seen is kept."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from tests.chaos.bots.script import Kill, Said, Trouble
from tests.chaos.bots.stalls import Beat, Stall
from tests.chaos.bots.stores import FileStore, Row, RunStore
from tests.chaos.campaign import listed
from tests.chaos.trial import Result, failed, summed, took
from tests.emulators.journal import Call, Journal
from tests.support.forks import Child, forks

PATIENCE: Final = 100.0  # real seconds for one process; it needs a few
STALLS: Final = "stalls"
_LOOK: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """A process that is gone: its exit status (-9: killed), when that was (seconds of the platform's clock), the number
    of the last call that came from it, and the outbox as it left it."""

    status: int
    at: float
    last_call: int
    rows: tuple[Row, ...]


class Drawn(Protocol):
    """A schedule. `kills[n]` is what ends process n; the one after them is asked to leave when all is done. `together`:
    each of them is started beside the one before it, and takes over."""

    @property
    def seed(self) -> int: ...
    @property
    def kills(self) -> tuple[Kill, ...]: ...
    @property
    def said(self) -> tuple[Said, ...]: ...
    @property
    def together(self) -> bool: ...
    @property
    def messages(self) -> tuple[Said, ...]: ...
    @property
    def patience(self) -> float:
        """Real seconds for one process."""

    def described(self) -> list[str]: ...


@dataclass(slots=True)
class Planned:
    """The faults of a schedule, by the place of a call among the calls of its method."""

    faults: Sequence[Trouble]
    _seen: Counter[str] = field(default_factory=Counter)

    def __call__(self, call: Call) -> Any:
        self._seen[call.method.lower()] += 1
        for each in self.faults:
            if (each.method.lower(), each.nth) == (call.method.lower(), self._seen[call.method.lower()]):
                return each.fault
        return None


class Stage(Protocol):
    """A platform with people on it. `drafting`: the method whose calls show a reply as it grows."""

    drafting: str

    @property
    def journal(self) -> Journal: ...
    def now(self) -> float:
        """Seconds of the platform's clock."""

    def hear(self, said: Said) -> None:
        """Let it be said."""

    def program(self, number: int, kill: Kill | None) -> tuple[str, str]:
        """The module of a process, and its argument."""

    def events(self) -> set[str] | None:
        """Ids of the events that a bot must know at the end; None if some of them are still to be fetched."""


@dataclass(slots=True, kw_only=True)
class Record:
    """The traces of a run's processes. `rows` is the outbox at its end, in the order of emission; `stalls`: when the
    laboratory or a bot stood still; `last_stalls`: of bots, until they were killed."""

    folder: Path
    deaths: list[Death] = field(default_factory=list)
    exit_status: int | None = None
    rows: tuple[Row, ...] = ()
    stalls: list[Stall] = field(default_factory=list)
    last_stalls: list[Stall] = field(default_factory=list)


class Run:
    """One schedule on its way. `store`: of its processes; None: the file in the run's folder."""

    def __init__(self, schedule: Drawn, stage: Stage, record: Record, store: RunStore | None = None) -> None:
        self._schedule, self._stage, self._record = schedule, stage, record
        self._store = store or FileStore(record.folder / "store.db")
        self._kills: list[Kill | None] = [*schedule.kills, None]
        self._present: dict[int, Child] = {}

    async def carry_out(self) -> None:
        """From the first message to the moment at which nothing is left to be done."""
        try:
            for number, kill in enumerate(self._kills):
                for said in self._of(number, down=True):
                    self._stage.hear(said)
                status = await self._one_process(number, kill)
                at = self._stage.now()
                if kill is None:
                    self._record.exit_status = status
                    self._record.rows = await self._store.rows()
                else:
                    await self._until_nothing_is_late()
                    await self._note_death(number, status, at)
        finally:
            for process in self._present.values():
                process.send(signal.SIGKILL)
                await process.ended

    def _of(self, process: int, *, down: bool) -> list[Said]:
        return [each for each in self._schedule.said if (each.process, each.down) == (process, down)]

    async def _until_nothing_is_late(self) -> None:
        """A call of the dead that is still on its way would be done after those of the living."""
        late = True
        while late:
            await asyncio.sleep(_LOOK)
            late = any(call.fault == "Slow" and not call.status for call in self._stage.journal.calls)

    async def _note_death(self, number: int, status: int, at: float) -> None:
        beat = Beat(self._record.folder, number).last()
        if beat is not None:
            self._record.last_stalls.append((beat, at))
        calls = self._stage.journal.calls
        last = calls[-1].number if calls else 0
        self._record.deaths.append(Death(status=status, at=at, last_call=last, rows=await self._store.rows()))

    async def _one_process(self, number: int, kill: Kill | None) -> int:
        process = await self._started(number)
        if self._schedule.together and kill is not None:
            await self._started(number + 1)
        talking = asyncio.create_task(self._talk(number))
        ending = asyncio.create_task(self._end(process, talking, kill))
        try:
            async with asyncio.timeout(self._schedule.patience):
                status = await asyncio.shield(process.ended)
                await talking  # what it did not live to hear is heard by the next
            del self._present[number]
        except TimeoutError:
            process.send(signal.SIGKILL)
            raise
        finally:
            for task in (talking, ending):
                task.cancel()
            await asyncio.gather(talking, ending, return_exceptions=True)
        return status

    async def _started(self, number: int) -> Child:
        if number not in self._present:
            module, argument = self._stage.program(number, self._kills[number])
            log = self._record.folder / "log"
            self._present[number] = await forks().logged(module, argument, log=log, waits=True)
        return self._present[number]

    async def _talk(self, number: int) -> None:
        begun = time.monotonic()
        for said in self._of(number, down=False):
            await asyncio.sleep(max(0.0, begun + said.at - time.monotonic()))
            self._stage.hear(said)

    async def _end(self, process: Child, talking: asyncio.Task[None], kill: Kill | None) -> None:
        """SIGKILL when its time has come; the last one is asked to leave when all is done."""
        if kill is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(kill.after):
                    await self._has_drafted(kill.draft)
            process.send(signal.SIGKILL)
            return
        await talking
        await self._until_settled()
        while True:  # until somebody sees it leave: one that is just starting does not listen yet
            process.send(signal.SIGTERM)
            await asyncio.sleep(1.0)

    async def _until_settled(self) -> None:
        """Return when the bot has heard everything, and has nothing left to do or to show."""
        done = False
        while not done:
            await asyncio.sleep(_LOOK)
            events = self._stage.events()
            done = events is not None and await self._store.settled(events)

    async def _has_drafted(self, draft: int) -> None:
        """Return when a process has called for so many drafts from now on; 0: never."""
        journal, drafting = self._stage.journal, self._stage.drafting
        before = len(list(journal.of(drafting)))
        await journal.until(lambda: draft and len(list(journal.of(drafting))) >= before + draft)


def stalls_of_bots(folder: Path) -> list[Stall]:
    """Return the stalls of a run's processes."""
    path = folder / STALLS
    lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    return [(float(begun), float(ended)) for _, begun, ended in lines]


def as_it_went(record: Record, calls: Iterable[Call], begun: float, said_in: Any) -> list[str]:
    """The calls and the outbox, to be read. `said_in` gives the text of a call."""
    lines = [
        f"{call.at - begun:8.3f} {call.number} {call.method} {call.chat_id} {call.status} {call.fault}"
        f"{' lost' if call.ambiguous else ''} {said_in(call)[-50:]!r}"
        for call in calls
    ]
    deaths = [f"died after {death.last_call}: {row}" for death in record.deaths for row in death.rows]
    return [*lines, *deaths, *map(str, record.rows)]


def report(results: Sequence[Result], platform: str, *more: str) -> list[str]:
    """The figures of a campaign."""
    faults, counts = (summed(getattr(result, name) for result in results) for name in ("faults", "counts"))
    figures = [
        f"{len(results)} runs of a bot on {platform}",
        f"{sum(len(result.schedule.messages) for result in results):,} messages from people",
        f"{faults['SIGKILL']} kills",
        *more,
        f"{failed(results)} runs with problems",
    ]
    return [
        "faults: " + (listed(faults) or "none"),
        "seen: " + (listed(counts) or "nothing"),
        took(results),
        ", ".join(figures),
    ]
