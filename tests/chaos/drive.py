"""Carrying a plan out: feed lines, watch the process die, start it again, keep all the evidence."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.chaos.faults import Fault, by_call
from tests.chaos.launch import Order, encoded
from tests.chaos.script import Event, Plan
from tests.chaos.snapshot import Snapshot, pass_a_week, settled, snapshot
from tests.chaos.socket_platform import Send, SocketPlatform, Update
from tests.chaos.watched_model import Call
from tests.emulators.llm import LlmServer
from tests.support.forks import Child, forks

PATIENCE: Final = 100.0  # seconds for one process; it needs well under one
_LOOK: Final = 0.05
_ASKED_AGAIN = 3.0  # seconds
ANSWERS: Final = ("reply", "command", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One whole line that a process wrote: the process's number, and the JSON object."""

    process: int
    fields: dict[str, Any]


@dataclass(slots=True, kw_only=True)
class Evidence:
    """The traces of a run. `exits[n]` is the n-th process's exit status (-9: killed) and `snapshots[n]` the database
    as it left it; `lines` are the terminal's, `sends` the platform's; the records are (process, words) in order."""

    plan: Plan
    folder: Path
    lines: list[Line] = field(default_factory=list)
    exits: list[int] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=list)
    sends: list[Send] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)

    @property
    def kills(self) -> int:
        """Return the number of killed processes."""
        return sum(exit_ == -signal.SIGKILL for exit_ in self.exits)

    def record(self, name: str) -> list[tuple[int, str]]:
        """A file that the processes wrote: (process, text) of each line."""
        path = self.folder / name
        rows = path.read_text().splitlines() if path.exists() else []
        return [(int(number), text) for number, _, text in (row.partition(" ") for row in rows)]


class _Descriptor:
    """One that is closed once: its number may be someone else's afterwards."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._open = True

    def close(self) -> None:
        """Close it, unless it is closed."""
        if self._open:
            self._open = False
            os.close(self.number)


async def carry_out(plan: Plan, folder: Path, server: LlmServer) -> Evidence:
    """Run the plan to its end. Raises TimeoutError if a process neither dies nor comes to an end."""
    evidence = Evidence(plan=plan, folder=folder)
    sender = Sender(plan)
    server.requests.clear()
    server.violations.clear()
    origin = time.time()
    async with _street(plan, folder) as platform:
        for number, kill in enumerate([*plan.kills, *[None] * (1 + plan.spare)]):
            order = Order(
                number=number,
                folder=str(folder),
                base_url=server.url,
                window=plan.window,
                point=kill.point if kill else None,
                passing=kill.passing if kill else 1,
                poison=plan.poison,
                busy_mode=plan.busy_mode,
                full=plan.full,
                origin=origin,
                platform=str(platform.path) if platform else None,
                polls=plan.polls,
            )
            await _one_process(order, kill.after if kill else None, sender, platform, evidence)
            if number in plan.away:
                pass_a_week(folder / "store.db")
            evidence.snapshots.append(snapshot(folder / "store.db"))
            if evidence.exits[-1] != -signal.SIGKILL:
                break  # it came to its end before the kill, or failed: nothing is left to do
    evidence.sends = platform.sends if platform else []
    evidence.requests = list(server.requests)
    evidence.violations = list(server.violations)
    return evidence


@asynccontextmanager
async def _street(plan: Plan, folder: Path) -> AsyncIterator[SocketPlatform | None]:
    """The platform on which the plan's updates wait from the beginning, if there are any."""
    if not plan.updates:
        yield None
        return
    platform = SocketPlatform(
        folder / "platform", polls=plan.polls, rng=random.Random(plan.seed), faults=by_call(plan.faults, "send")
    )
    await platform.up()
    for number, event in enumerate(plan.updates):
        platform.receive(
            Update(number=number, id=event.id, chat=event.chat, user="passer-by", group=False, text=event.text)
        )
    away = asyncio.create_task(_go_away(platform, [fault for fault in plan.faults if fault.kind == "platform down"]))
    try:
        yield platform
    finally:
        away.cancel()
        await platform.aclose()


async def _go_away(platform: SocketPlatform, faults: Iterable[Fault]) -> None:
    for fault in faults:
        await asyncio.sleep(fault.at or 0.0)
        await platform.down()
        await asyncio.sleep(fault.seconds)
        await platform.up()


class Sender:
    """The sender of lines: it remembers the answered ones, and after a crash it sends the others again, and some of
    the answered."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._rng = random.Random(plan.seed)
        self._sent: list[Event] = []
        self._unsent = list(plan.lines)
        self._answered: set[str] = set()
        self._queue: list[Event] = []

    def restart(self) -> None:
        """A new process: everything that got no answer is sent again, in order."""
        again = [
            event
            for event in dict.fromkeys(self._sent)
            if event.id not in self._answered or self._rng.random() < self._plan.again
        ]
        self._queue = [*again, *self._unsent]

    def answered(self, event_id: str) -> None:
        """An answer was seen."""
        self._answered.add(event_id)

    def next(self) -> list[Event]:
        """Return the events that may be sent now."""
        ready: list[Event] = []
        waiting = {event.id for event in self._sent if event not in self._queue} - self._answered
        while self._queue and len(waiting) < self._plan.ahead:
            event = self._queue.pop(0)
            ready.append(event)
            if event.id not in self._answered:
                waiting.add(event.id)
        for event in ready:
            if event in self._unsent:
                self._unsent.remove(event)
            if event not in self._sent:
                self._sent.append(event)
        return ready

    @property
    def done(self) -> bool:
        """Say whether everything was sent to this process."""
        return not self._queue


async def _one_process(
    order: Order,
    kill_after: float | None,
    sender: Sender,
    platform: SocketPlatform | None,
    evidence: Evidence,
) -> None:
    sender.restart()
    log = os.open(evidence.folder / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    (child_in, feed), (output, child_out) = os.pipe(), os.pipe()
    descriptors = (child_in, child_out, log)
    process = await forks().start("tests.chaos.launch", encoded(order), descriptors=descriptors, waits=True)
    for descriptor in descriptors:
        os.close(descriptor)
    entrance = _Descriptor(feed)
    killer = asyncio.get_running_loop().call_later(kill_after or 2 * PATIENCE, process.send, signal.SIGKILL)
    ending = asyncio.create_task(_ask_to_leave(process, platform, evidence))
    try:
        async with asyncio.timeout(PATIENCE):
            await _talk(order.number, entrance, output, sender, evidence)
            killer.cancel()
            evidence.exits.append(await process.ended)
    except TimeoutError:
        process.send(signal.SIGKILL)
        await process.ended
        raise
    finally:
        ending.cancel()
        killer.cancel()
        entrance.close()


async def _ask_to_leave(process: Child, platform: SocketPlatform | None, evidence: Evidence) -> None:
    """A platform has no end: who serves one is asked to leave when all is done. A terminal alone has."""
    if platform is None:
        return
    events = {event.id for event in evidence.plan.events}
    path = evidence.folder / "store.db"
    while True:
        await asyncio.sleep(_LOOK)
        if platform.all_taken and settled(path, events):
            process.send(signal.SIGTERM)
            await asyncio.sleep(_ASKED_AGAIN)  # if it did not listen yet; one that ends listens no more


async def _talk(number: int, feed: _Descriptor, output: int, sender: Sender, evidence: Evidence) -> None:
    """Send and read until the process closes its output."""
    _send(feed, sender)
    async for line in _lines(output):
        fields = json.loads(line)
        evidence.lines.append(Line(process=number, fields=fields))
        if fields["kind"] in ANSWERS and fields["answers"]:
            sender.answered(fields["answers"])
            _send(feed, sender)


def _send(feed: _Descriptor, sender: Sender) -> None:
    """Write what may be written (it always fits into the pipe); close the input after the last."""
    ready = sender.next()
    if ready:
        with contextlib.suppress(BrokenPipeError):  # the process has died: its successor gets them
            os.write(feed.number, b"".join(event.line() for event in ready))
    if sender.done:
        feed.close()


async def _lines(output: int) -> AsyncIterator[bytes]:
    """Whole lines; a last one that a kill cut short is nobody's."""
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(output, "rb")
    )
    try:
        while (line := await reader.readline()).endswith(b"\n"):
            yield line
    finally:
        transport.close()
