"""A laboratory of the bot on Discord: what a schedule needs, and what its run leaves behind."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from tests.chaos.bots import run as bots
from tests.chaos.bots.laboratory import laboratory
from tests.chaos.bots.model import SlowModel
from tests.chaos.bots.program import BotOrder
from tests.chaos.bots.run import Planned, Record, Run, as_it_went, stalls_of_bots
from tests.chaos.bots.script import Kill, Said
from tests.chaos.bots.stalls import Stall
from tests.chaos.clocks import HurriedClock, Shift
from tests.chaos.discord.bot import PAID
from tests.chaos.discord.check import problems, said_in
from tests.chaos.discord.evidence import Evidence, Given, Town
from tests.chaos.discord.script import SLASH, Schedule
from tests.chaos.launch import encoded
from tests.chaos.snapshot import snapshot
from tests.chaos.trial import Result, Trial
from tests.emulators.discord import DiscordServer, Settings
from tests.emulators.journal import Call, Journal

_HEARTBEAT: Final = 2.0  # real seconds
_MANY: Final = 1_000_000


async def perform(run: Trial, model: SlowModel, stalls: Sequence[Stall]) -> None:
    """One run."""
    schedule: Schedule = run.schedule
    origin = time.time()
    clock = HurriedClock(origin, Shift(run.folder / "clock"))
    settings = Settings(identify_every=0, sessions_a_day=_MANY, heartbeat=_HEARTBEAT)
    settings = settings if schedule.nonces else replace(settings, nonces=0.0)
    async with DiscordServer(settings, clock=clock, limits=None) as discord:
        evidence = Evidence(schedule=schedule, town=Town.of(discord), folder=run.folder)
        run.told = partial(as_it_went, evidence, discord.journal.calls, evidence.town.begun, _said_in)
        stage = _Stage(evidence, model.url, origin)
        await _warmed_up(stage, evidence)
        discord.faults.schedule = discord.frames.schedule = Planned(schedule.faults)
        try:
            await Run(schedule, stage, evidence).carry_out()
        finally:
            stage.aclose()
    evidence.paid = _paid(run.folder / PAID)
    evidence.stored = frozenset(snapshot(run.folder / "store.db").inbox)
    evidence.stalls = [*stalls, *stalls_of_bots(run.folder), *evidence.last_stalls]
    run.problems += problems(evidence, run.counts)
    run.faults = _took_place(evidence)


laboratories = laboratory("discord", perform)


async def _warmed_up(stage: _Stage, evidence: Evidence) -> None:
    """A first process hears one message in each place and leaves in peace. Before it, there is nothing to fetch."""
    schedule = Schedule(seed=evidence.schedule.seed, said=(), kills=(), faults=())
    record = Record(folder=evidence.folder)
    running = asyncio.create_task(Run(schedule, stage, record).carry_out())
    discord = evidence.town.discord
    offered = partial(discord.people.commands, evidence.town.places["anna"])
    await discord.until(lambda: (discord.connected and offered()) or running.done())
    for said in evidence.town.warm():
        evidence.town.hear(said)
    await running
    assert record.exit_status == 0, "nothing goes wrong before the run"


def _paid(path: Path) -> tuple[str, ...]:
    return tuple(line.split()[1] for line in path.read_text().splitlines()) if path.exists() else ()


def _said_in(call: Call) -> str:
    if call.method.partition(" ")[0] in ("send", "receive"):
        data = call.parameters.get("d")
        return str(data.get("content", "")) if isinstance(data, dict) else str(data)
    return said_in(call)


def _took_place(evidence: Evidence) -> Counter[str]:
    calls = evidence.town.discord.journal.calls
    faults = Counter(f"{call.method} {call.fault}" for call in calls if call.fault)
    faults["SIGKILL"] = len(evidence.deaths)
    return +faults


class _Stage:
    """Discord with people on it."""

    drafting = "PATCH /channels/{channel}/messages/{message}"

    def __init__(self, evidence: Evidence, model: str, origin: float) -> None:
        self._evidence, self._model, self._origin = evidence, model, origin
        self._giving: list[asyncio.Task[None]] = []
        self._pressing = asyncio.create_task(self._press())

    def aclose(self) -> None:
        """Nobody gives a command any more."""
        for task in (*self._giving, self._pressing):
            task.cancel()

    async def _press(self) -> None:
        """People say yes to what they are asked."""
        town = self._evidence.town
        while True:
            town.press(await town.discord.until(town.question), len(self._evidence.deaths))

    @property
    def journal(self) -> Journal:
        return self._evidence.town.discord.journal

    def now(self) -> float:
        return self._evidence.town.discord.cloud.clock.monotonic()

    def hear(self, said: Said) -> None:
        if said.kind.startswith(SLASH):
            self._giving.append(asyncio.create_task(self._give(said)))
        else:
            self._evidence.town.hear(said)

    async def _give(self, said: Said) -> None:
        """Nobody gives a slash command to a bot that is not there, as Discord shows."""
        town = self._evidence.town
        await town.discord.until(lambda: town.discord.connected)
        town.give(said, len(self._evidence.deaths))

    def events(self) -> set[str] | None:
        town = self._evidence.town
        bot = town.discord.bot.id
        waiting = any(not each.done() for each in self._giving) or any(map(self._is_open, town.given))
        if not town.heard or waiting:
            return None
        return {f"{bot}:{heard.channel}:{heard.message.author.id}:{heard.message.id}" for heard in town.heard}

    def _is_open(self, given: Given) -> bool:
        """Say whether a command of the last process may still be answered."""
        if given.process < len(self._evidence.schedule.kills):
            return False
        if given.interaction.answer is None:
            return not self._evidence.town.discord.people.failed(given.interaction)
        return given.waits

    def program(self, number: int, kill: Kill | None) -> tuple[str, str]:
        discord = self._evidence.town.discord
        order = BotOrder(
            number=number,
            folder=str(self._evidence.folder),
            model=self._model,
            platform=discord.api_url,
            token=discord.token,
            origin=self._origin,
            point=(kill.point or None) if kill else None,
            passing=kill.passing if kill else 1,
        )
        return "tests.chaos.discord.bot", encoded(order)


def report(results: Sequence[Result]) -> list[str]:
    """The figures of a campaign."""
    missed = sum(result.schedule.missed for result in results)
    return bots.report(results, "Discord", f"{missed:,} of them in long absences")
