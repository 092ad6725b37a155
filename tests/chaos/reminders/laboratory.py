"""Runs of reminders: what was planted, what each process did until it died, and what is left."""

from __future__ import annotations

import asyncio
import re
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC
from pathlib import Path
from typing import Final

from gateway.domain.chat import Outbound, SessionKey, Source
from gateway.domain.recurrence import local_of
from gateway.domain.reminder import LATE, Reminder
from gateway.people.reminders import row_of_run, schedule_event
from gateway.store.port import Store
from tests.chaos.campaign import listed
from tests.chaos.clocks import HurriedClock, Shift
from tests.chaos.launch import encoded
from tests.chaos.reminders.bot import PLATFORM, SHOWN, Order, store_at
from tests.chaos.reminders.script import Kill, Plan, Planted
from tests.chaos.trial import Result, failed, on_store, summed, took, trial
from tests.support.forks import Child, forks
from tests.support.redis_server import RedisServer

_PATIENCE: Final = 100.0  # real seconds
_LOOK: Final = 0.1
_MISSED: Final = re.compile(r"(\d[\d,]*) earlier times? missed")


class Run:
    """One plan on its way."""

    def __init__(self, plan: Plan, folder: Path, url: str) -> None:
        self._plan, self._folder, self._url = plan, folder, url
        self._origin = time.time()
        self._shift = Shift(folder / "clock")
        self.clock = HurriedClock(self._origin, self._shift)
        self.killed_at: list[str] = []
        self._number = 0

    async def carry_out(self) -> None:
        """From the first reminder to the moment at which nothing is left to be done."""
        await self._plant()
        kills = list(self._plan.kills)
        while kills:
            together, kills = kills[: self._plan.processes], kills[self._plan.processes :]
            await asyncio.gather(*map(self._until_killed, together))
            self._shift.add(max(kill.away for kill in together))
        async with asyncio.timeout(_PATIENCE), self.looking() as store:
            while not await self._to_the_end(store):
                pass

    async def _to_the_end(self, store: Store) -> bool:
        """Run until nothing is left to be done, and end. On a busy machine the next moment of a reminder may come
        just then, and find nobody who shows it: False."""
        last = [await self._started(None) for _ in range(self._plan.processes)]
        ending = signal.SIGKILL
        try:
            await asyncio.sleep(1.0)  # by then all of them are up
            done = False
            while not done:
                await asyncio.sleep(_LOOK)
                done = await self._is_done(store)
            ending = signal.SIGTERM
        finally:
            await asyncio.gather(*(_end(process, ending) for process in last))
        return await _is_quiet(store)

    async def _plant(self) -> None:
        store = store_at(self._url, self.clock)
        await store.open()
        for each in self._plan.planted:
            assert await store.add_reminder(_reminder(each, self._origin), 10_000, 10_000) is not None
        await store.aclose()

    async def _started(self, kill: Kill | None) -> Child:
        self._number += 1
        order = Order(
            number=self._number,
            folder=str(self._folder),
            url=self._url,
            origin=self._origin,
            point=kill.point if kill else None,
            passing=kill.passing if kill else 1,
        )
        log = self._folder / "log"
        return await forks().logged("tests.chaos.reminders.bot", encoded(order), log=log, waits=True)

    async def _until_killed(self, kill: Kill) -> None:
        process = await self._started(kill)
        where = str(kill.point)
        try:
            async with asyncio.timeout(kill.after):
                await asyncio.shield(process.ended)
        except TimeoutError:
            where = "anywhere"
            process.send(signal.SIGKILL)
        await process.ended
        self.killed_at.append(where)

    @asynccontextmanager
    async def looking(self) -> AsyncIterator[Store]:
        """Its store, to be read."""
        store = store_at(self._url, self.clock, read_only=True)
        await store.open()
        try:
            yield store
        finally:
            await store.aclose()

    async def _is_done(self, store: Store) -> bool:
        """Say whether nothing is due, waits in a lane or is unsent, all at one moment."""
        once = [each for each in self._plan.planted if not each.rule]
        left = [each for each in once if (await _of(store, each)).due_at is not None]
        return not left and await _is_quiet(store) and not await store.due_reminders(self.clock.now(), 1)


async def _is_quiet(store: Store) -> bool:
    status = await store.status()
    return not (status.waiting or status.unsent)


async def _end(process: Child, ending: signal.Signals) -> None:
    """End a process. On a busy machine it may not be up yet, and then it ignores the signal: it is sent again."""
    deadline = time.monotonic() + _PATIENCE
    while not process.ended.done():
        process.send(ending if time.monotonic() < deadline else signal.SIGKILL)
        await asyncio.wait([process.ended], timeout=_LOOK)


def _reminder(planted: Planted, origin: float) -> Reminder:
    due = origin + planted.after
    return Reminder(
        id=planted.name,
        key=_key(planted),
        source=Source(platform=PLATFORM, chat=planted.chat, chat_type="direct", user="u"),
        kind=planted.kind,
        text=f"text of {planted.name}",
        zone="UTC",
        start=local_of(due, UTC).isoformat(),
        rule=planted.rule,
        when_late=planted.when_late,
        due_at=due,
        settled_until=origin - 1,
        token="t",
        made_by="planted",
        made_at=origin,
    )


def _key(planted: Planted) -> SessionKey:
    return SessionKey(platform=PLATFORM, chat=planted.chat)


async def _of(store: Store, planted: Planted) -> Reminder:
    found = await store.reminder(_key(planted).address, planted.name)
    assert found is not None, f"{planted.name} is gone"
    return found


# -- what is left --------------------------------------------------------------------------------


async def looked_at(store: Store, plan: Plan, folder: Path, counts: Counter[str]) -> list[str]:
    """Return the faults of the store and the platform. `shown` counts how often the platform was given each row."""
    lines = (folder / SHOWN).read_text().splitlines() if (folder / SHOWN).exists() else []
    shown = Counter(line.split(" ")[1] for line in lines)
    problems: list[str] = []
    known: set[str] = set()
    for planted in plan.planted:
        reminder = await _of(store, planted)
        ids = [row_of_run(schedule_event(reminder, run)) for run in range(1, reminder.fired + 1)]
        rows = {row.id: row for row in await store.rows(reminder.key.address, ids)}
        known.update(ids)
        problems += _problems(planted, reminder, [rows.get(row_id) for row_id in ids], shown, counts)
    strange = [line for line in lines if line.split(" ")[1] not in known]
    return [*problems, *(f"nobody asked for {line}" for line in strange)]


def _problems(
    planted: Planted, reminder: Reminder, rows: Sequence[Outbound | None], shown: Counter[str], counts: Counter[str]
) -> Iterator[str]:
    missing = [run for run, row in enumerate(rows, 1) if row is None]
    if missing:
        yield f"{planted.name} fired {reminder.fired} times, and has no row for {missing}"
    for row in filter(None, rows):
        counts["delivered"] += shown[row.id] > 0
        counts["repeated in doubt"] += max(0, shown[row.id] - 1)
        if row.state != "sent" or not shown[row.id] or row.shown_at is None:
            yield f"{planted.name}: {row.state} and shown {shown[row.id]} times: {row.text}"
    counts["fired"] += reminder.fired
    if not planted.rule and reminder.due_at is not None:
        yield f"{planted.name} still waits"
    if not planted.rule and planted.when_late == "say" and reminder.fired != 1:
        yield f"{planted.name} fired {reminder.fired} times, not once"
    if reminder.timetable is not None and planted.kind == "say" and planted.when_late == "say":
        passed = reminder.timetable.count(reminder.settled_until)
        told = sum(1 + _missed(row.text) for row in rows if row is not None)
        counts["moments"] += passed
        if told != passed:
            yield f"{planted.name}: {passed} moments passed, and {told} were told"
    if planted.when_late == "skip" and any(row is not None and "late by" in row.text for row in rows):
        yield f"{planted.name} was said more than {LATE:g} s late"


def _missed(text: str) -> int:
    found = _MISSED.search(text)
    return int(found[1].replace(",", "")) if found else 0


async def perform(server: RedisServer | None, plan: Plan) -> Result:
    """One run."""
    async with trial(plan, "reminders") as trying:
        url = f"sqlite:///{trying.folder / 'store.db'}"
        if server is not None:
            url = server.url
            with server.client() as client:
                client.flushall()
        run = Run(plan, trying.folder, url)
        await run.carry_out()
        trying.killed_at = tuple(run.killed_at)
        async with run.looking() as store:
            trying.problems += await looked_at(store, plan, trying.folder, trying.counts)
    return trying.result()


def benches(store: str) -> AbstractAsyncContextManager[Callable[[Plan], Awaitable[Result]]]:
    """A laboratory for `campaign`."""
    return on_store(store, perform, "reminders")


def report(results: Sequence[Result]) -> list[str]:
    """The figures of a campaign."""
    kills = Counter(point for result in results for point in result.killed_at)
    counts = summed(result.counts for result in results)
    return [
        f"kills: {listed(kills)}",
        took(results),
        f"{len(results)} runs, {listed(counts)}, {failed(results)} runs with problems",
    ]
