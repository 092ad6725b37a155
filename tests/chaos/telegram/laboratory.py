"""A laboratory of the bot on Telegram: what a schedule needs, and what its run leaves behind."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from functools import partial

from tests.chaos.bots import run as bots
from tests.chaos.bots.laboratory import laboratory
from tests.chaos.bots.model import SlowModel
from tests.chaos.bots.run import Planned, Run, as_it_went, stalls_of_bots
from tests.chaos.bots.script import Kill, Said
from tests.chaos.bots.stalls import Stall
from tests.chaos.clocks import HurriedClock, Shift
from tests.chaos.launch import encoded
from tests.chaos.telegram.bot import TelegramOrder
from tests.chaos.telegram.check import problems
from tests.chaos.telegram.doubts import read_in
from tests.chaos.telegram.evidence import Evidence, Street
from tests.chaos.telegram.script import Schedule
from tests.chaos.trial import Result, Trial
from tests.emulators.journal import Journal
from tests.emulators.telegram import TelegramServer
from tests.support.redis_server import free_port


async def perform(run: Trial, model: SlowModel, stalls: Sequence[Stall]) -> None:
    """One run."""
    schedule: Schedule = run.schedule
    model.slower = schedule.slower
    origin = time.time()
    clock = HurriedClock(origin, Shift(run.folder / "clock"))
    async with TelegramServer(clock=clock, seed=schedule.seed) as telegram:
        telegram.faults.schedule = Planned(schedule.faults)
        street = Street.of(telegram, moves=schedule.moves)
        evidence = Evidence(schedule=schedule, street=street, folder=run.folder)
        run.told = partial(as_it_went, evidence, telegram.journal.calls, street.begun, read_in)
        await Run(schedule, _Stage(evidence, model.url, origin), evidence).carry_out()
    evidence.stalls = [*stalls, *stalls_of_bots(run.folder), *evidence.last_stalls]
    run.problems += problems(evidence, run.counts)
    run.faults = _took_place(evidence)


laboratories = laboratory("telegram", perform)


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
    return bots.report(results, "Telegram", f"{moved} groups that became supergroups")
