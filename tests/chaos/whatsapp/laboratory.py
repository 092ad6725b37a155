"""A laboratory of the bot on WhatsApp: what a schedule needs, and what its run leaves behind."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from tests.chaos.bots import run as bots
from tests.chaos.bots.check import Heard
from tests.chaos.bots.laboratory import laboratory
from tests.chaos.bots.model import SlowModel
from tests.chaos.bots.program import BotOrder
from tests.chaos.bots.run import Planned, Run, as_it_went
from tests.chaos.bots.script import Kill, Place, Said
from tests.chaos.bots.stalls import Stall
from tests.chaos.bots.stores import ServerStore
from tests.chaos.clocks import HurriedClock, Shift
from tests.chaos.launch import encoded
from tests.chaos.trial import Result, Trial
from tests.chaos.whatsapp.check import Evidence, problems, said_in
from tests.chaos.whatsapp.script import SEND, Schedule
from tests.emulators.journal import Journal
from tests.emulators.whatsapp import Person, Settings, WhatsAppServer
from tests.support.redis_server import free_port

_NUMBERS: Final[dict[Place, str]] = {
    "anna": "900000000000001",
    "bob": "900000000000001",
    "group": "900000000000002",
    "one": "900000000000003",
    "two": "900000000000004",
}
_AGO: Final = 3_600.0  # seconds since what was missed was written


@dataclass(slots=True, kw_only=True)
class Street:
    """The people of a run, who write to four numbers of the bot."""

    whatsapp: WhatsAppServer
    people: dict[str, Person]
    heard: list[Heard] = field(default_factory=list)

    def hear(self, said: Said, ago: float) -> None:
        """Let it be said."""
        message = self.whatsapp.say(self.people[said.speaker], said.text, number=_NUMBERS[said.place], ago=ago)
        person = message.person.number
        event = f"{message.number}:{person}:{message.id}"
        self.heard.append(Heard(said=said, message=message.id, event=event, place=(person, message.number)))


async def perform(run: Trial, model: SlowModel, stalls: Sequence[Stall]) -> None:
    """One run."""
    schedule: Schedule = run.schedule
    origin = time.time()
    clock = HurriedClock(origin, Shift(run.folder / "clock"))
    settings = Settings(numbers=tuple(dict.fromkeys(_NUMBERS.values())))
    async with WhatsAppServer(settings, clock=clock, limited=False) as whatsapp:
        street = Street(whatsapp=whatsapp, people={each: whatsapp.person(each) for each in ("anna", "bob")})
        evidence = Evidence(schedule=schedule, whatsapp=whatsapp, heard=street.heard, folder=run.folder)
        run.told = partial(as_it_went, evidence, whatsapp.journal.calls, clock.monotonic(), said_in)
        whatsapp.faults.schedule = Planned(schedule.faults)
        whatsapp.delivery.faults.schedule = Planned(schedule.faults)
        store = ServerStore(run.server, "whatsapp") if run.server else None
        stage = _Stage(street, evidence, model.url, origin, run.server)
        await Run(schedule, stage, evidence, store).carry_out()
        run.problems += problems(evidence, run.counts)
    faults = Counter(f"{call.method} {call.fault}" for call in whatsapp.journal.calls if call.fault)
    faults["SIGKILL"] = len(evidence.deaths)
    run.faults = +faults


laboratories = laboratory("whatsapp", perform)


class _Stage:
    """WhatsApp with people on it."""

    drafting = SEND

    def __init__(self, street: Street, evidence: Evidence, model: str, origin: float, server: str) -> None:
        self._street, self._evidence, self._model, self._origin = street, evidence, model, origin
        self._server = server
        self._port = free_port()

    @property
    def journal(self) -> Journal:
        return self._street.whatsapp.journal

    def now(self) -> float:
        return self._street.whatsapp.clock.monotonic()

    def hear(self, said: Said) -> None:
        self._street.hear(said, _AGO if self._evidence.schedule.missed else 0.0)

    def events(self) -> set[str] | None:
        return {each.event for each in self._street.heard} or None

    def program(self, number: int, kill: Kill | None) -> tuple[str, str]:
        settings = self._street.whatsapp.settings
        order = BotOrder(
            number=number,
            folder=str(self._evidence.folder),
            model=self._model,
            platform=self._street.whatsapp.api_url,
            token=f"{settings.token} {settings.secret} {self._port} {' '.join(settings.numbers)}",
            origin=self._origin,
            point=(kill.point or None) if kill else None,
            passing=kill.passing if kill else 1,
            store=self._server,
        )
        return "tests.chaos.whatsapp.bot", encoded(order)


def report(results: Sequence[Result]) -> list[str]:
    """The figures of a campaign."""
    missed = sum(result.schedule.missed for result in results)
    return bots.report(results, "WhatsApp", f"{missed:,} of them in long absences")
