"""Carrying schedules out: people talk, calls fail, processes die and are started again; all that is seen is kept."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import signal
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.chaos.campaign import listed
from tests.chaos.clocks import HurriedClock, Shift
from tests.chaos.drive import last_words
from tests.chaos.snapshot import settled
from tests.chaos.telegram.bot import STALLS, BotOrder
from tests.chaos.telegram.check import problems
from tests.chaos.telegram.evidence import Death, Evidence, Row, Street
from tests.chaos.telegram.model import SlowModel
from tests.chaos.telegram.script import Kill, Said, Schedule, Trouble
from tests.chaos.telegram.stalls import Stall, watch
from tests.emulators.faults import Fault
from tests.emulators.journal import Call
from tests.emulators.telegram import TelegramServer
from tests.support.forks import Child, forks
from tests.support.redis_server import free_port

PATIENCE: Final = 40.0  # real seconds for one process; it needs a few
_LOOK: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One run: what took place, what was excused, what was wrong, and how long it took in seconds."""

    schedule: Schedule
    faults: Counter[str]
    counts: Counter[str]
    problems: tuple[str, ...]
    seconds: float
    log: tuple[str, ...] = ()

    @property
    def seed(self) -> int:
        """What it can be shown again by."""
        return self.schedule.seed

    def described(self) -> list[str]:
        """What was to happen."""
        return self.schedule.described()


@dataclass(slots=True)
class Planned:
    """The faults of a schedule, by the place of a call among the calls of its method."""

    faults: Sequence[Trouble]
    _seen: Counter[str] = field(default_factory=Counter)

    def __call__(self, call: Call) -> Fault | None:
        self._seen[call.method.lower()] += 1
        for each in self.faults:
            if (each.method.lower(), each.nth) == (call.method.lower(), self._seen[call.method.lower()]):
                return each.fault
        return None


@asynccontextmanager
async def laboratories() -> AsyncIterator[Callable[[Schedule], Awaitable[Result]]]:
    """A laboratory for `campaign`."""
    stalls: list[Stall] = []
    watching = asyncio.create_task(watch(stalls.append))
    try:
        async with SlowModel() as model:
            yield lambda schedule: perform(schedule, model, stalls)
    finally:
        watching.cancel()


async def perform(schedule: Schedule, model: SlowModel, stalls: Sequence[Stall]) -> Result:
    """One run in a folder of its own, which is removed. `stalls` are the laboratory's own."""
    started = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix=f"legato-telegram-{schedule.seed}-"))
    model.rng = random.Random(schedule.seed)
    model.violations.clear()
    counts, faults = Counter[str](), Counter[str]()
    evidence: Evidence | None = None
    try:
        origin = time.time()
        clock = HurriedClock(origin, Shift(folder / "clock"))
        async with TelegramServer(clock=clock, seed=schedule.seed) as telegram:
            telegram.faults.schedule = Planned(schedule.faults)
            evidence = Evidence(schedule=schedule, street=Street.of(telegram, moves=schedule.moves), folder=folder)
            await _Run(evidence, model.url, origin).carry_out()
        evidence.stalls = [*stalls, *_stalls_of_bots(folder)]
        found = [*problems(evidence, counts), *model.violations]
        faults += _took_place(evidence)
    except TimeoutError:
        found = ["a process neither ended nor came to rest"]
    except BaseException as error:
        error.add_note(f"in the run of seed {schedule.seed}, whose files are in {folder}")
        raise
    words = (*(_as_it_went(evidence) if evidence else ()), *last_words(folder, 100)) if found else ()
    shutil.rmtree(folder)
    return Result(
        schedule=schedule,
        faults=faults,
        counts=counts,
        problems=tuple(found),
        seconds=time.monotonic() - started,
        log=words,
    )


def _stalls_of_bots(folder: Path) -> list[Stall]:
    path = folder / STALLS
    lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    return [(float(begun), float(ended)) for _, begun, ended in lines]


def _as_it_went(evidence: Evidence) -> list[str]:
    """The calls and the outbox, to be read."""
    calls = [
        f"{call.at - evidence.street.begun:8.3f} {call.number} {call.method} {call.chat_id} {call.status} {call.fault}"
        f"{' lost' if call.ambiguous else ''} {str(call.parameters.get('text', ''))[-50:]!r}"
        for call in evidence.street.telegram.journal.calls
    ]
    deaths = [f"died after {death.last_call}: {row}" for death in evidence.deaths for row in death.rows]
    return [*calls, *deaths, *map(str, evidence.rows)]


def _took_place(evidence: Evidence) -> Counter[str]:
    calls = evidence.street.telegram.journal.calls
    faults = Counter(f"{call.method} {call.fault}" for call in calls if call.fault)
    faults["429 of Telegram's own"] = sum(call.status == 429 and call.fault != "Flood" for call in calls)
    faults["SIGKILL"] = len(evidence.deaths)
    return +faults


class _Run:
    """One schedule on its way."""

    def __init__(self, evidence: Evidence, model: str, origin: float) -> None:
        self._evidence = evidence
        self._model = model
        self._origin = origin
        self._port = free_port() if evidence.schedule.called else None

    async def carry_out(self) -> None:
        """From the first message to the moment at which nothing is left to be done."""
        for number, kill in enumerate([*self._evidence.schedule.kills, None]):
            for said in self._of(number, down=True):
                self._say(said)
            status = await self._one_process(number, kill)
            at = self._evidence.street.telegram.cloud.clock.monotonic()
            if kill is None:
                self._evidence.exit_status = status
                self._evidence.rows = rows(self._evidence.folder)
            else:
                await self._until_nothing_is_late()
                self._note_death(status, at)

    def _of(self, process: int, *, down: bool) -> list[Said]:
        return [each for each in self._evidence.schedule.said if (each.process, each.down) == (process, down)]

    def _say(self, said: Said) -> None:
        self._evidence.street.hear(said)

    async def _until_nothing_is_late(self) -> None:
        """A call of the dead that is still on its way would be done after those of the living."""
        calls = self._evidence.street.telegram.journal.calls
        late = True
        while late:
            await asyncio.sleep(_LOOK)
            late = any(call.fault == "Slow" and not call.status for call in calls)

    def _note_death(self, status: int, at: float) -> None:
        calls = self._evidence.street.telegram.journal.calls
        last = calls[-1].number if calls else 0
        self._evidence.deaths.append(Death(status=status, at=at, last_call=last, rows=rows(self._evidence.folder)))

    async def _one_process(self, number: int, kill: Kill | None) -> int:
        process = await self._started(number, kill)
        talking = asyncio.create_task(self._talk(number))
        ending = asyncio.create_task(self._end(process, talking, kill))
        try:
            async with asyncio.timeout(PATIENCE):
                status = await process.ended
                await talking  # what it did not live to hear is heard by the next
        except TimeoutError:
            process.send(signal.SIGKILL)
            await process.ended
            raise
        finally:
            for task in (talking, ending):
                task.cancel()
            await asyncio.gather(talking, ending, return_exceptions=True)
        return status

    async def _started(self, number: int, kill: Kill | None) -> Child:
        telegram = self._evidence.street.telegram
        order = BotOrder(
            number=number,
            folder=str(self._evidence.folder),
            model=self._model,
            telegram=telegram.base_url,
            token=telegram.token,
            origin=self._origin,
            point=(kill.point or None) if kill else None,
            passing=kill.passing if kill else 1,
            drafts=self._evidence.schedule.drafts,
            port=self._port,
        )
        nothing = os.open(os.devnull, os.O_RDWR)
        log = os.open(self._evidence.folder / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            return await forks().start(
                "tests.chaos.telegram.bot", order.encode(), descriptors=(nothing, log, log), waits=True
            )
        finally:
            os.close(nothing)
            os.close(log)

    async def _talk(self, number: int) -> None:
        begun = time.monotonic()
        for said in self._of(number, down=False):
            await asyncio.sleep(max(0.0, begun + said.at - time.monotonic()))
            self._say(said)

    async def _end(self, process: Child, talking: asyncio.Task[None], kill: Kill | None) -> None:
        """SIGKILL when its time has come; the last one is asked to leave when all is done."""
        if kill is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(kill.after):
                    await self._has_drafted(kill.draft)
            process.send(signal.SIGKILL)
            return
        await talking
        done = False
        while not done:
            await asyncio.sleep(_LOOK)
            done = self._evidence.street.all_taken and settled(self._evidence.folder / "store.db", set())
        while True:  # until somebody sees it leave: one that is just starting does not listen yet
            process.send(signal.SIGTERM)
            await asyncio.sleep(1.0)

    async def _has_drafted(self, draft: int) -> None:
        """Return when a process has called for so many drafts from now on; 0: never."""
        journal = self._evidence.street.telegram.journal
        before = len(list(journal.of("sendMessageDraft")))
        await journal.until(lambda: draft and len(list(journal.of("sendMessageDraft"))) >= before + draft)


def rows(folder: Path) -> tuple[Row, ...]:
    """The outbox as the process left it, in the order of emission."""
    path = folder / "store.db"
    if not path.exists():
        return ()
    with closing(sqlite3.connect(path)) as connection:
        made: Any = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'outbox'").fetchone()
        if made is None:
            return ()
        found = connection.execute(
            "SELECT id, chat, thread, kind, text, answers, state, platform_message_id, place, error FROM outbox"
            " ORDER BY place, seq"
        )
        names = ("id", "chat", "thread", "kind", "text", "answers", "state", "message", "place", "error")
        return tuple(Row(**dict(zip(names, each, strict=True))) for each in found)


def report(results: Sequence[Result]) -> list[str]:
    """The figures of a campaign."""
    faults, counts = Counter[str](), Counter[str]()
    for result in results:
        faults += result.faults
        counts += result.counts
    failed = sum(bool(result.problems) for result in results)
    said = sum(len(result.schedule.messages) for result in results)
    moved = sum(result.schedule.moves for result in results)
    seconds = sorted(result.seconds for result in results)
    return [
        "faults: " + (listed(faults) or "none"),
        "seen: " + (listed(counts) or "nothing"),
        f"a run took {seconds[len(seconds) // 2]:.1f} s (median), {seconds[-1]:.1f} s at most",
        f"{len(results)} runs of a bot on Telegram, {said:,} messages from people, {faults['SIGKILL']} kills, "
        f"{moved} groups that became supergroups, {failed} runs with problems",
    ]
