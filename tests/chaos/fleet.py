"""Carrying a schedule out: a Redis server, several gateway processes, people who talk, faults."""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import signal
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import redis.asyncio
from redis.exceptions import RedisError

from adapters.console.adapter import JsonConsole
from tests.chaos.clocks import Shift
from tests.chaos.faults import ANY, Fault, by_call
from tests.chaos.findings import Findings, Hit
from tests.chaos.node import Setting, Strike
from tests.chaos.redis_snapshot import accepted, raw_messages, redis_snapshot, unfinished
from tests.chaos.schedule import WEEK, Schedule
from tests.chaos.socket_platform import SocketPlatform, Update
from tests.chaos.terminal import Terminal
from tests.chaos.watched_model import Watch, WatchedModel
from tests.support.forks import Child, forks
from tests.support.redis_proxy import LosingProxy, losing_proxy
from tests.support.redis_server import RedisServer

PATIENCE: Final = 120.0  # real seconds for a run; it needs three on a machine with nothing else to do
_LEAVING: Final = 60.0  # real seconds for a process that was asked to stop
_LOOK: Final = 0.05
_QUIET_LOOKS: Final = 5
_LATE: Final = 0.4
_LOST: Final = 6  # answers of the store that are lost at a time, at most


class Stage:
    """A server and a model, used for one run after the other."""

    def __init__(self, folder: Path, model: WatchedModel) -> None:
        self._folder = folder
        self._model = model
        self._server = RedisServer(folder / "redis", appendfsync="always")
        self._runs = 0

    async def run(self, schedule: Schedule) -> Findings:
        """Carry it out, to its end or to the end of all patience."""
        self._runs += 1
        folder = self._folder / f"run-{self._runs}"
        folder.mkdir()
        await asyncio.to_thread(self._empty_server)
        async with losing_proxy(self._server.port) as proxy:
            run = _Run(schedule, folder, self._server, proxy, self._model)
            try:
                return await run.carry_out()
            finally:
                await run.aclose()

    def _empty_server(self) -> None:
        if self._server._process is None:
            self._server.start()
        self._server.resume()
        with self._server.client() as client:
            client.flushall()

    def close(self) -> None:
        """End what was started here."""
        self._server.kill()


@asynccontextmanager
async def stage() -> AsyncIterator[Stage]:
    """A stage, taken down in the end."""
    folder = Path(tempfile.mkdtemp(prefix="legato-fleet-"))
    async with WatchedModel() as model:
        one = Stage(folder, model)
        try:
            yield one
        finally:
            one.close()
            shutil.rmtree(folder)


class _Run:
    """One schedule on its way."""

    def __init__(
        self,
        schedule: Schedule,
        folder: Path,
        server: RedisServer,
        proxy: LosingProxy,
        model: WatchedModel,
    ) -> None:
        self._schedule = schedule
        self._server = server
        self._proxy = proxy
        # Whatever passes the proxy passes this process, too: only those runs take that way that need it.
        self._store = proxy.url if any(fault.kind == "lose" for fault in schedule.faults) else server.url
        self._model = model
        rng = random.Random(schedule.seed)
        sends = by_call(schedule.faults, "send")
        self._platform = SocketPlatform(folder / "platform", polls=schedule.polls, rng=rng, faults=sends)
        self._terminal = Terminal(folder, rng)
        model.watch = self._watch = Watch(by_call(schedule.faults, "model"), rng)
        model.violations.clear()
        self._findings = Findings(schedule=schedule, folder=folder)
        self._origin = time.time()
        self._shifts = [Shift(folder / f"clock-{slot}") for slot in range(schedule.processes)]
        self._present: dict[int, tuple[int, Child]] = {}  # slot → process number and process
        self._numbers = iter(range(1_000))
        self._strikes = {f"{number}": fault for number, fault in enumerate(schedule.faults) if fault.point is not None}
        self._tasks: set[asyncio.Task[None]] = set()
        self._faulty: set[asyncio.Task[None]] = set()  # what has to be over before a run can settle
        self._server_lock = asyncio.Lock()
        self._leaving = False
        self._client: Any = redis.asyncio.Redis(
            port=server.port, decode_responses=True, socket_timeout=1.0, socket_connect_timeout=1.0
        )

    async def carry_out(self) -> Findings:
        """The whole of it."""
        findings = self._findings
        await self._platform.up()
        for slot in range(self._schedule.processes):
            await self._start(slot)
        self._begun = asyncio.get_running_loop().time()
        watching = asyncio.create_task(self._watch_the_loop())
        self._tasks.add(watching)
        watching.add_done_callback(self._tasks.discard)
        self._do(self._talk())
        for fault in self._schedule.faults:
            if fault.at is not None:
                self._do(self._commit(fault))
        try:
            async with asyncio.timeout(PATIENCE):
                await self._settle()
        except TimeoutError:
            left = await self._left()
            findings.trouble.append(f"the run did not come to its end: {left}, taken {self._platform.all_taken}")
        await self._end_all()
        await self._collect()
        return findings

    async def aclose(self) -> None:
        """Let go of everything that belongs to this run."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for _, child in self._present.values():
            child.send(signal.SIGKILL)
        await asyncio.gather(*(child.ended for _, child in self._present.values()))
        self._terminal.close()
        await self._platform.aclose()
        await self._client.aclose()

    # -- people and processes ---------------------------------------------------------------

    def _do(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.create_task(work)
        for group in (self._tasks, self._faulty):
            group.add(task)
            task.add_done_callback(group.discard)

    async def _until(self, at: float) -> None:
        await asyncio.sleep(self._begun + at - asyncio.get_running_loop().time())

    async def _talk(self) -> None:
        for number, said in enumerate(self._schedule.said):
            await self._until(said.at)
            event = said.event
            if said.terminal:
                self._terminal.say(event)
                continue
            update = Update(
                number=number, id=event.id, chat=event.chat, user=said.speaker, group=said.group, text=event.text
            )
            self._platform.receive(update)

    async def _start(self, slot: int) -> None:
        number = next(self._numbers)
        schedule = self._schedule
        setting = Setting(
            number=number,
            slot=slot,
            store=self._store,
            server=self._server.port,
            model=self._model.url,
            platform=str(self._platform.path),
            origin=self._origin,
            polls=schedule.polls,
            terminal=slot == schedule.nodes,
            groups=schedule.groups,
            busy_mode=schedule.busy_mode,
            window=schedule.window,
            strikes=tuple(
                Strike(
                    name=name,
                    point=fault.point,
                    passing=fault.passing,
                    signal=signal.SIGKILL if fault.kind == "kill" else signal.SIGSTOP,
                )
                for name, fault in self._strikes.items()
                if fault.point is not None and fault.slot in (ANY, slot)
            ),
        )
        if setting.terminal:
            self._terminal.attach(number)
        child = await self._forked(setting.write(self._findings.folder))
        self._present[slot] = (number, child)
        task = asyncio.create_task(self._look_after(slot, number, child))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _forked(self, path: Path) -> Child:
        return await forks().logged("tests.chaos.node", "--config", str(path), log=path.with_name("log"))

    async def _look_after(self, slot: int, number: int, child: Child) -> None:
        """Start a process again when it dies, and wake it when it has struck itself still."""
        while not child.ended.done():
            stopped = asyncio.create_task(child.stopped.wait())
            try:
                await asyncio.wait([stopped, child.ended], return_when=asyncio.FIRST_COMPLETED)
            finally:
                stopped.cancel()
            if child.stopped.is_set():
                child.stopped.clear()
                self._do(self._wake(number, child, self._struck(number, "stop")))
        status = child.ended.result()
        if number in self._terminal.processes:
            self._terminal.detach()
        if status != -signal.SIGKILL:
            self._findings.exits.append((number, status))
        else:
            now = time.monotonic()
            self._findings.hits.append(Hit(kind="kill", begun=now, ended=now, process=number))
        if not self._leaving:
            fault = self._struck(number, "kill")
            self._do(self._restart(slot, fault.seconds if fault else 0.1))

    async def _restart(self, slot: int, after: float) -> None:
        await asyncio.sleep(after)
        await self._start(slot)

    def _struck(self, process: int, kind: str) -> Fault | None:
        """The strike that a process dealt itself last."""
        for _, number, words in reversed(self._findings.trace()):
            if number == process and words[0] == "struck" and self._strikes[words[1]].kind == kind:
                return self._strikes[words[1]]
        return None

    async def _wake(self, number: int, child: Child, fault: Fault | None) -> None:
        if fault is None:
            return  # the laboratory stopped it, and wakes it
        begun = time.monotonic()
        await asyncio.sleep(fault.seconds)
        child.send(signal.SIGCONT)
        self._findings.hits.append(Hit(kind="stop", begun=begun, ended=time.monotonic(), process=number))

    async def _watch_the_loop(self) -> None:
        """Note when the laboratory itself could not run: its platform was as good as away then."""
        while True:
            before = time.monotonic()
            await asyncio.sleep(_LOOK)
            now = time.monotonic()
            if now - before > _LATE:
                self._findings.hits.append(Hit(kind="laboratory starved", begun=before, ended=now))

    # -- faults -----------------------------------------------------------------------------

    async def _commit(self, fault: Fault) -> None:
        assert fault.at is not None
        await self._until(fault.at)
        begun, process = time.monotonic(), -1
        if fault.kind in ("kill", "stop"):
            process, child = self._present[fault.slot % self._schedule.processes]
            if child.ended.done():
                return
            child.send(signal.SIGKILL if fault.kind == "kill" else signal.SIGSTOP)
            if fault.kind == "kill":
                return  # `_look_after` sees it
            await asyncio.sleep(fault.seconds)
            child.send(signal.SIGCONT)
        elif fault.kind in ("restart", "freeze", "pause", "cut"):
            await self._disturb_server(fault)
        elif fault.kind == "lose":
            await self._lose_answers(fault)
        elif fault.kind == "platform down":
            await self._platform.down()
            await asyncio.sleep(fault.seconds)
            await self._platform.up()
        else:
            for slot, shift in enumerate(self._shifts):
                if fault.kind == "week":
                    shift.add(WEEK)
                elif slot == fault.slot % self._schedule.processes:
                    shift.add(fault.seconds)
        self._findings.hits.append(Hit(kind=fault.kind, begun=begun, ended=time.monotonic(), process=process))

    async def _disturb_server(self, fault: Fault) -> None:
        async with self._server_lock:  # one disturbance at a time, in turn
            if fault.kind == "restart":
                await self._keep_messages()
                self._server.kill()
                await asyncio.sleep(fault.seconds)
                await asyncio.to_thread(self._server.start)
            elif fault.kind == "freeze":
                self._server.pause()
                await asyncio.sleep(fault.seconds)
                self._server.resume()
            elif fault.kind == "pause":
                with contextlib.suppress(RedisError):
                    await self._client.client_pause(int(fault.seconds * 1_000))
                await asyncio.sleep(fault.seconds)
            else:
                with contextlib.suppress(RedisError):
                    await self._client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
                    await self._client.execute_command("CLIENT", "KILL", "TYPE", "pubsub")

    async def _lose_answers(self, fault: Fault) -> None:
        already = self._proxy.lost
        self._proxy.lose = _LOST
        await asyncio.sleep(fault.seconds)
        self._proxy.lose = 0
        self._findings.lost += self._proxy.lost - already

    async def _keep_messages(self) -> None:
        with contextlib.suppress(RedisError):
            self._findings.messages_seen.update(await raw_messages(self._client))

    # -- the end ----------------------------------------------------------------------------

    async def _left(self) -> dict[str, int]:
        try:
            typed = self._terminal.said - await accepted(self._client, JsonConsole.name)
            return {**await unfinished(self._client), "typed": len(typed)}
        except (RedisError, OSError):
            return {"unknown": 1}

    async def _settle(self) -> None:
        """Return when everything was said, taken, answered and shown, nothing more is to go wrong, and
        nothing has happened for a while (who has just been woken may still have something to say)."""
        quiet = 0
        while quiet < _QUIET_LOOKS:
            while self._faulty:
                await asyncio.wait(self._faulty)
                quiet = 0
            idle = self._platform.all_taken and not any((await self._left()).values())
            quiet = quiet + 1 if idle and not self._faulty else 0
            await asyncio.sleep(_LOOK)
        await self._keep_messages()

    async def _end_all(self) -> None:
        self._leaving = True
        children = [child for _, child in self._present.values()]
        self._findings.leaving = time.monotonic()
        for child in children:
            child.send(signal.SIGTERM)
        _, late = await asyncio.wait([child.ended for child in children], timeout=_LEAVING)
        if late:
            self._findings.trouble.append(f"{len(late)} processes did not leave when asked to")
            for child in children:
                child.send(signal.SIGKILL)
            await asyncio.wait(late, timeout=_LEAVING)

    async def _collect(self) -> None:
        findings = self._findings
        findings.sends = sorted([*self._platform.sends, *self._terminal.sends], key=lambda send: send.at)
        findings.terminals = self._terminal.processes
        findings.polls = self._platform.polled
        findings.calls = self._watch.calls
        findings.offered = dict(self._platform.offered)
        findings.violations = list(self._model.violations)
        findings.messages_left = await raw_messages(self._client)
        findings.snapshot = await redis_snapshot(self._server.url)
