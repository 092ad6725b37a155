"""Lifetimes: what runs while the gateway runs, and in which order it starts and stops."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

import structlog
from msgspec import Struct, field

from gateway.agent.agents import Agents
from gateway.agent.running import RunningTurns
from gateway.app.problems import LOOK_SECONDS
from gateway.app.readers import Readers
from gateway.app.reload import InForce
from gateway.app.upkeep import Upkeep
from gateway.app.watchdog import Watchdog
from gateway.delivery.outbox import Outbox
from gateway.people.people import People
from gateway.runtime.clock import Clock
from gateway.runtime.errors import StoreUnavailable
from gateway.runtime.metrics import Metrics
from gateway.runtime.tasks import Background, best_effort, ended_before
from gateway.store.insist import insist
from gateway.store.port import Store
from gateway.turns.lanes import Lanes

log = structlog.get_logger(__name__)

DRAIN_SECONDS = 30.0  # running turns may finish that long after a stop was asked for; the next start does the rest
_MOST_HOOKS = 1_000  # that are counted
_LOOK_AGAIN = 0.02  # seconds between two looks at whether everything has settled
_ASK_AGAIN = 1.0  # the same, after the store could not be asked
_LAST_WORDS = 5.0  # seconds for messages that are being delivered when the gateway stops


class Gateway(Struct, kw_only=True):
    """The running program, all of which is `run`. `leaves_questions`: when the input ends, the person who reads is
    gone, so open questions are left for the next start; otherwise they count as a no."""

    store: Store
    agents: Agents
    people: People
    readers: Readers
    lanes: Lanes
    outbox: Outbox
    running_turns: RunningTurns
    background: Background
    clock: Clock
    upkeep: Upkeep
    watchdog: Watchdog
    settings: InForce
    leaves_questions: bool = False
    again: bool = False  # whether it is to be started anew when it has stopped
    _stop: asyncio.Event = field(default_factory=asyncio.Event)
    _grace: float = DRAIN_SECONDS
    _failed: bool = False

    def stop(self, *, grace: float = DRAIN_SECONDS) -> None:
        """Ask `run` to drain and return (SIGTERM, SIGINT). Turns that are not done after `grace` seconds are cut short;
        the next start goes on with them. Of several calls the shortest grace counts."""
        self._grace = min(self._grace, grace)
        self.watchdog.health.state = "draining"
        self._stop.set()

    def stop_for_another(self) -> None:
        """Stop, so that another one starts with the settings as they are written then."""
        self.again = True
        self.stop(grace=_LAST_WORDS)

    @property
    def metrics(self) -> Metrics:
        """What is counted here."""
        return self.watchdog.health.metrics

    async def run(self) -> bool:
        """Serve until `stop` is called, or until every adapter has read all there is; then finish the
        accepted messages. False if an adapter failed. Raises StoreLocked, StoreUnavailable."""
        self.metrics.refresh_with(self.watchdog.health.measure)
        with self.metrics.counting():
            await self._run()
        return not (self._failed or self.readers.failed)

    async def _run(self) -> None:
        self.readers.accounts.begin(self.readers.adapters.values())
        try:
            if await ended_before(self.store.open, self._stop):  # a server that is away is waited for
                await self._serve()
        finally:
            self.watchdog.supervisor.stopping()
            self.background.stop("jobs")
            await self._shut_down()

    async def _serve(self) -> None:
        self.store.on_signal(self.running_turns.deliver)
        self.store.on_decided(self.people.approvals.heard)
        self.store.on_rows(self.outbox.look)
        self.store.on_left(self._take_over)
        models = self.agents.metering.models
        await models.learn_windows()
        await models.learned.remember(self.store)
        if not await ended_before(self._recover, self._stop):
            return
        self.upkeep.prepare()
        if self.agents.mcp.servers:  # nobody waits for them
            self.background.start(self.agents.mcp.serve(), name="mcp")
        self._keep_serving()
        await self.upkeep.look()
        if self.watchdog.runs:
            self.background.start(self._watch(), name="watchdog")
        reading = self.readers.begin()
        self.watchdog.health.state = "serving"
        self.watchdog.supervisor.ready()
        beside = self.readers.beside
        waited = [task for name, task in zip(self.readers.adapters, reading, strict=True) if name not in beside]
        if await ended_before(lambda: _wait_all(waited), self._stop):
            await ended_before(self._settle, self._stop)
        for task in reading:
            task.cancel()

    def _keep_serving(self) -> Sequence[str]:
        """Start what answers people and what is repeated; the names of those that did not run."""
        jobs = {"outbox": self.outbox.serve, "lanes": self.lanes.serve, "jobs": self.upkeep.repeat}
        return [name for name, serve in jobs.items() if self.background.start_once(serve(), name=name)]

    async def _watch(self) -> None:
        """Look every few seconds, by a clock that nobody sets. If looks stay away, the process ends."""
        self.watchdog.begin()
        while True:
            await self.clock.sleep(LOOK_SECONDS)
            try:
                await self.look()
            except Exception:
                # A bug in the watchdog must end neither the looks nor the process.
                log.exception("watchdog_broke")
                self.watchdog.supervisor.alive("the watchdog itself meets an error")

    async def look(self) -> None:
        """Look whether messages move, and mend what can be mended."""
        ended = () if self._stop.is_set() else self._keep_serving()
        await self.watchdog.look(ended)

    def _take_over(self) -> None:
        """Another process died: go on with what it left."""
        self.background.start_once(self._recover(), name="recovery")

    async def _recover(self) -> None:
        """Finish the work that an earlier process began. Lanes and outbox take up accepted items and unsent messages by
        themselves; left are bypassed commands, the hooks of ended sessions, and commands in the background. Before the
        lanes start, so that a `/stop` reaches the turn it was meant for, and no hook is owed but the earlier process's.
        Nobody else comes back to this work, so a store that is away is waited for."""
        self.background.start_once(self.running_turns.background.recover(), name="background commands")
        claim = partial(self.store.claim_bypassed, self.lanes.worker)
        for item in await insist(claim, clock=self.clock, what="claim_bypassed"):
            self.readers.reception.run_bypassed(item)
        if owed := await insist(partial(self.store.pending_hooks, _MOST_HOOKS), clock=self.clock, what="pending_hooks"):
            log.info("hooks_owed", count=len(owed))
            self.agents.sessions.hooks.pay()  # one may be slow: nobody has to wait for the hooks of yesterday

    async def _settle(self) -> None:
        """Return when everything accepted here is answered and shown, or cannot be shown now."""
        await self.readers.reception.bypassed_ended()  # among them may be an answer to a question
        if not self.leaves_questions:
            self.people.approvals.nobody_is_left()
        while True:
            left = self.running_turns.waiting() if self.leaves_questions else self.people.approvals.left()
            if left and left == self.lanes.active and not self.outbox.in_flight:
                self.stop(grace=0)
                return
            if not self.lanes.active and not self.outbox.in_flight:
                try:
                    if await self._has_settled():
                        return
                except StoreUnavailable as error:  # there may be work for this process in it
                    log.warning("settling_waits", error=str(error))
                    await self.clock.sleep(_ASK_AGAIN)
            await self.clock.sleep(_LOOK_AGAIN)

    async def _has_settled(self) -> bool:
        status = await self.store.status(self.readers.adapters)
        delayed = bool(await self.store.next_due())
        if status.waiting or (status.unsent and not delayed):
            return False
        self._failed = self._failed or bool(status.unsent)
        return True

    async def _shut_down(self) -> None:
        await self.lanes.stop(self._grace, waits=self.running_turns.waits)
        try:
            async with self.clock.limit(_LAST_WORDS):
                while self.outbox.in_flight:
                    await self.clock.sleep(_LOOK_AGAIN)
        except TimeoutError:
            log.warning("left_unsent", chats=self.outbox.in_flight)
        await self.readers.accounts.aclose()
        await self.background.aclose()
        for adapter in self.readers.adapters.values():  # one that fails does not keep the others open
            await best_effort(adapter.aclose(), what=f"closing {adapter.name}")
        await self.settings.aclose()
        await self.store.aclose()
        log.debug("counted", totals=self.metrics.totals())


async def _wait_all(tasks: Sequence[asyncio.Task[None]]) -> None:
    if tasks:
        await asyncio.wait(tasks)
    else:  # a worker reads nothing: it runs lanes until it is stopped
        await asyncio.Event().wait()
