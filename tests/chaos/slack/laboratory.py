"""A laboratory of the bot on Slack: what a schedule needs, and what its run leaves behind."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Self

from tests.chaos.bots import run as bots
from tests.chaos.bots.check import Heard
from tests.chaos.bots.laboratory import laboratory
from tests.chaos.bots.model import SlowModel
from tests.chaos.bots.program import BotOrder
from tests.chaos.bots.run import Planned, Record, Run, as_it_went
from tests.chaos.bots.script import Kill, Place, Said
from tests.chaos.bots.stalls import Stall
from tests.chaos.bots.stores import ServerStore
from tests.chaos.clocks import HurriedClock, Shift
from tests.chaos.launch import encoded
from tests.chaos.slack.check import Evidence, problems, said_in
from tests.chaos.slack.script import EDIT, PLACES, Schedule
from tests.chaos.trial import Result, Trial
from tests.emulators.journal import Journal
from tests.emulators.slack import Channel, Message, SlackServer, User


@dataclass(slots=True, kw_only=True)
class Office:
    """The people of a run and where they meet: two direct chats, a channel, and two threads of another one."""

    slack: SlackServer
    people: dict[str, User]
    places: dict[Place, tuple[Channel, Message | None]]
    heard: list[Heard] = field(default_factory=list)

    @classmethod
    def of(cls, slack: SlackServer) -> Self:
        """Anna and Bob."""
        anna, bob = slack.people.person("Anna"), slack.people.person("Bob")
        team, harbour = slack.people.channel("team", anna, bob), slack.people.channel("harbour", anna, bob)
        places: dict[Place, tuple[Channel, Message | None]] = {
            "anna": (slack.people.direct(anna), None),
            "bob": (slack.people.direct(bob), None),
            "group": (team, None),
            "one": (harbour, slack.people.say(harbour, anna, "One")),
            "two": (harbour, slack.people.say(harbour, anna, "Two")),
        }
        return cls(slack=slack, people={"anna": anna, "bob": bob}, places=places)

    def hear(self, said: Said) -> None:
        """Let it be said; where many are, the bot is named."""
        channel, thread = self.places[said.place]
        text = said.text if channel.kind == "im" else f"@Legato {said.text}"
        message = self.slack.people.say(channel, self.people[said.speaker], text, thread=thread)
        team, root = self.slack.settings.team, message.thread_ts or message.ts  # each mention has a thread of its own
        event = f"{team}:{channel.id}:{message.user.id}:{message.ts}"
        place = channel.id, None if channel.kind == "im" else root
        self.heard.append(Heard(said=said, message=message.ts, event=event, place=place))

    def warm(self) -> Iterator[Said]:
        """One message in each place, from before the run."""
        for number, place in enumerate(PLACES):
            speaker = "bob" if place == "bob" else "anna"
            token = f"tok99{number:05x}"
            yield Said(process=0, at=0.0, down=False, place=place, speaker=speaker, kind="say", token=token)


async def perform(run: Trial, model: SlowModel, stalls: Sequence[Stall]) -> None:
    """One run."""
    schedule: Schedule = run.schedule
    origin = time.time()
    async with SlackServer(clock=HurriedClock(origin, Shift(run.folder / "clock")), limited=False) as slack:
        office = Office.of(slack)
        evidence = Evidence(schedule=schedule, slack=slack, heard=office.heard, folder=run.folder)
        run.told = partial(as_it_went, evidence, slack.journal.calls, slack.clock.monotonic(), said_in)
        store = ServerStore(run.server, "slack") if run.server else None
        stage = _Stage(office, evidence, model.url, origin, run.server)
        await _warmed_up(stage, office, evidence, store)
        slack.faults.schedule = Planned(schedule.faults)
        slack.delivery.frames.schedule = Planned(schedule.faults)
        await Run(schedule, stage, evidence, store).carry_out()
        run.problems += problems(evidence, run.counts)
    faults = Counter(f"{call.method} {call.fault}" for call in slack.journal.calls if call.fault)
    faults["SIGKILL"] = len(evidence.deaths)
    run.faults = +faults


laboratories = laboratory("slack", perform)


async def _warmed_up(stage: _Stage, office: Office, evidence: Evidence, store: ServerStore | None) -> None:
    """A first process hears one message in each place and leaves in peace."""
    schedule = Schedule(seed=evidence.schedule.seed, said=(), kills=(), faults=())
    record = Record(folder=evidence.folder)
    running = asyncio.create_task(Run(schedule, stage, record, store).carry_out())
    await office.slack.until(lambda: office.slack.connected or running.done())
    for said in office.warm():
        office.hear(said)
    await running
    assert record.exit_status == 0, "nothing goes wrong before the run"


class _Stage:
    """Slack with people on it."""

    drafting = EDIT

    def __init__(self, office: Office, evidence: Evidence, model: str, origin: float, server: str) -> None:
        self._office, self._evidence, self._model, self._origin = office, evidence, model, origin
        self._server = server

    @property
    def journal(self) -> Journal:
        return self._office.slack.journal

    def now(self) -> float:
        return self._office.slack.clock.monotonic()

    def hear(self, said: Said) -> None:
        self._office.hear(said)

    def events(self) -> set[str] | None:
        return {each.event for each in self._office.heard} or None

    def program(self, number: int, kill: Kill | None) -> tuple[str, str]:
        slack = self._office.slack
        order = BotOrder(
            number=number,
            folder=str(self._evidence.folder),
            model=self._model,
            platform=slack.api_url,
            token=f"{slack.settings.token} {slack.settings.app_token}",
            origin=self._origin,
            point=(kill.point or None) if kill else None,
            passing=kill.passing if kill else 1,
            store=self._server,
        )
        return "tests.chaos.slack.bot", encoded(order)


def report(results: Sequence[Result]) -> list[str]:
    """The figures of a campaign."""
    missed = sum(result.schedule.missed for result in results)
    return bots.report(results, "Slack", f"{missed:,} of them in long absences")
