"""A laboratory of the bot on Matrix: what a schedule needs, and what its run leaves behind."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

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
from tests.chaos.matrix.check import Evidence, problems, said_in
from tests.chaos.matrix.script import EDIT, PLACES, Schedule
from tests.chaos.trial import Result, Trial
from tests.emulators.journal import Journal
from tests.emulators.matrix import MatrixServer, Room, User


@dataclass(slots=True, kw_only=True)
class House:
    """The people of a run and where they meet: two rooms of two, a room of three, and two threads of another one."""

    matrix: MatrixServer
    people: dict[str, User]
    places: dict[Place, tuple[Room, str | None]]
    heard: list[Heard] = field(default_factory=list)

    @classmethod
    def of(cls, matrix: MatrixServer) -> Self:
        """Anna and Bob, who have just invited the bot."""
        world, bot = matrix.world, [matrix.bot]
        anna, bob = world.person("Anna"), world.person("Bob")
        team, harbour = (world.room(anna, bob, invited=bot, name=name) for name in ("team", "harbour"))
        places: dict[Place, tuple[Room, str | None]] = {
            "anna": (world.room(anna, invited=bot, direct=True), None),
            "bob": (world.room(bob, invited=bot, direct=True), None),
            "group": (team, None),
            "one": (harbour, world.say(harbour, anna, "One")),
            "two": (harbour, world.say(harbour, anna, "Two")),
        }
        return cls(matrix=matrix, people={"anna": anna, "bob": bob}, places=places)

    def hear(self, said: Said) -> None:
        """Let it be said; where many are, the bot is named."""
        (room, thread), speaker, more = self.places[said.place], self.people[said.speaker], dict[str, Any]()
        text = said.text if said.place in ("anna", "bob") else f"Legato: {said.text}"
        if thread is not None:
            relation = {"rel_type": "m.thread", "event_id": thread, "is_falling_back": True}
            more["m.relates_to"] = {**relation, "m.in_reply_to": {"event_id": thread}}
        event = self.matrix.world.say(room, speaker, text, **more)
        self.heard.append(Heard(said=said, message=event, event=f"{event}/{speaker.id}", place=(room.id, thread)))

    def warm(self) -> Iterator[Said]:
        """One message in each place, from before the run."""
        for number, place in enumerate(PLACES):
            speaker = "bob" if place == "bob" else "anna"
            token = f"tok99{number:05x}"
            yield Said(process=0, at=0.0, down=False, place=place, speaker=speaker, kind="say", token=token)

    def has_the_bot(self) -> bool:
        """Say whether it accepted all invitations."""
        rooms = [room for room, _ in self.places.values()]
        return all(room.membership(self.matrix.bot.id) == "join" for room in rooms)


async def perform(run: Trial, model: SlowModel, stalls: Sequence[Stall]) -> None:
    """One run."""
    schedule: Schedule = run.schedule
    origin = time.time()
    async with MatrixServer(clock=HurriedClock(origin, Shift(run.folder / "clock"))) as matrix:
        house = House.of(matrix)
        evidence = Evidence(schedule=schedule, matrix=matrix, heard=house.heard, folder=run.folder)
        run.told = partial(as_it_went, evidence, matrix.journal.calls, matrix.clock.monotonic(), said_in)
        store = ServerStore(run.server, "matrix") if run.server else None
        stage = _Stage(house, evidence, model.url, origin, run.server)
        await _warmed_up(stage, house, evidence, store)
        matrix.faults.schedule = Planned(schedule.faults)
        await Run(schedule, stage, evidence, store).carry_out()
        run.problems += problems(evidence, run.counts)
    faults = Counter(f"{call.method} {call.fault}" for call in matrix.journal.calls if call.fault)
    faults["SIGKILL"] = len(evidence.deaths)
    run.faults = +faults


laboratories = laboratory("matrix", perform)


async def _warmed_up(stage: _Stage, house: House, evidence: Evidence, store: ServerStore | None) -> None:
    """A first process is invited, hears one message in each place and leaves in peace."""
    schedule = Schedule(seed=evidence.schedule.seed, said=(), kills=(), faults=())
    record = Record(folder=evidence.folder)
    running = asyncio.create_task(Run(schedule, stage, record, store).carry_out())
    await house.matrix.until(lambda: house.has_the_bot() or running.done())
    for said in house.warm():
        house.hear(said)
    await running
    assert record.exit_status == 0, "nothing goes wrong before the run"


class _Stage:
    """A server with people on it."""

    drafting = EDIT

    def __init__(self, house: House, evidence: Evidence, model: str, origin: float, server: str) -> None:
        self._house, self._evidence, self._model, self._origin = house, evidence, model, origin
        self._server = server

    @property
    def journal(self) -> Journal:
        return self._house.matrix.journal

    def now(self) -> float:
        return self._house.matrix.clock.monotonic()

    def hear(self, said: Said) -> None:
        self._house.hear(said)

    def events(self) -> set[str] | None:
        return {heard.event for heard in self._house.heard} or None

    def program(self, number: int, kill: Kill | None) -> tuple[str, str]:
        matrix = self._house.matrix
        order = BotOrder(
            number=number,
            folder=str(self._evidence.folder),
            model=self._model,
            platform=matrix.url,
            token=f"{matrix.bot.id} {matrix.password}",
            origin=self._origin,
            point=(kill.point or None) if kill else None,
            passing=kill.passing if kill else 1,
            store=self._server,
        )
        return "tests.chaos.matrix.bot", encoded(order)


def report(results: Sequence[Result]) -> list[str]:
    """The figures of a campaign."""
    missed = sum(result.schedule.missed for result in results)
    return bots.report(results, "Matrix", f"{missed:,} of them in long absences")
