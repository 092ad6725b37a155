"""A laboratory of the bot on Telegram: what a schedule needs, and what its run leaves behind."""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tests.chaos.bots import run
from tests.chaos.bots.model import SlowModel
from tests.chaos.bots.run import Planned, Result, Run, as_it_went, stalls_of_bots
from tests.chaos.bots.script import Kill, Said
from tests.chaos.bots.stalls import Stall, watch
from tests.chaos.clocks import HurriedClock, Shift
from tests.chaos.drive import last_words
from tests.chaos.launch import encoded
from tests.chaos.telegram.bot import TelegramOrder
from tests.chaos.telegram.check import problems
from tests.chaos.telegram.doubts import read_in
from tests.chaos.telegram.evidence import Evidence, Street
from tests.chaos.telegram.script import Schedule
from tests.emulators.journal import Journal
from tests.emulators.telegram import TelegramServer
from tests.support.redis_server import free_port


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
    model.rng, model.slower = random.Random(schedule.seed), schedule.slower
    model.violations.clear()
    counts, faults = Counter[str](), Counter[str]()
    evidence: Evidence | None = None
    try:
        origin = time.time()
        clock = HurriedClock(origin, Shift(folder / "clock"))
        async with TelegramServer(clock=clock, seed=schedule.seed) as telegram:
            telegram.faults.schedule = Planned(schedule.faults)
            evidence = Evidence(schedule=schedule, street=Street.of(telegram, moves=schedule.moves), folder=folder)
            await Run(schedule, _Stage(evidence, model.url, origin), evidence).carry_out()
        evidence.stalls = [*stalls, *stalls_of_bots(folder), *evidence.last_stalls]
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


def _as_it_went(evidence: Evidence) -> list[str]:
    return as_it_went(evidence, evidence.street.telegram.journal.calls, evidence.street.begun, read_in)


def _took_place(evidence: Evidence) -> Counter[str]:
    calls = evidence.street.telegram.journal.calls
    faults = Counter(f"{call.method} {call.fault}" for call in calls if call.fault)
    faults["429 of Telegram's own"] = sum(call.status == 429 and call.fault != "Flood" for call in calls)
    faults["SIGKILL"] = len(evidence.deaths)
    return +faults


class _Stage:
    """Telegram with people on it."""

    drafting = "sendMessageDraft"

    def __init__(self, evidence: Evidence, model: str, origin: float) -> None:
        self._evidence, self._model, self._origin = evidence, model, origin
        self._port = free_port() if evidence.schedule.called else None

    @property
    def journal(self) -> Journal:
        return self._evidence.street.telegram.journal

    def now(self) -> float:
        return self._evidence.street.telegram.cloud.clock.monotonic()

    def hear(self, said: Said) -> None:
        self._evidence.street.hear(said)

    def events(self) -> set[str] | None:
        return set() if self._evidence.street.all_taken else None

    def program(self, number: int, kill: Kill | None) -> tuple[str, str]:
        telegram = self._evidence.street.telegram
        order = TelegramOrder(
            number=number,
            folder=str(self._evidence.folder),
            model=self._model,
            platform=telegram.base_url,
            token=telegram.token,
            origin=self._origin,
            point=(kill.point or None) if kill else None,
            passing=kill.passing if kill else 1,
            drafts=self._evidence.schedule.drafts,
            port=self._port,
        )
        return "tests.chaos.telegram.bot", encoded(order)


def report(results: Sequence[Result]) -> list[str]:
    """The figures of a campaign."""
    moved = sum(result.schedule.moves for result in results)
    return run.report(results, "Telegram", f"{moved} groups that became supergroups")
