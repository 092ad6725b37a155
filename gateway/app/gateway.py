"""Lifetimes: what runs while the gateway runs, and in which order it starts and stops."""

from __future__ import annotations

import asyncio
import gc
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from gateway.agent.running import SignalBoard
from gateway.agent.sessions import Lifecycle
from gateway.app.accounts import Ownership
from gateway.app.recovery import recover
from gateway.delivery.outbox import Outbox
from gateway.domain.adapter import Accepted, Adapter
from gateway.domain.chat import Inbound
from gateway.people.welcome import Welcome
from gateway.runtime.clock import Clock
from gateway.runtime.errors import GatewayError, StoreUnavailable
from gateway.runtime.tasks import Background, best_effort, ended_before
from gateway.store.port import Store
from gateway.turns.expiry import Expiry
from gateway.turns.lanes import Lanes
from gateway.turns.turn import Turns

log = structlog.get_logger(__name__)

DRAIN_SECONDS = 30.0  # running turns may finish that long after a stop was asked for (SPEC 20)
_SWEEP_SECONDS = 60.0
_LOOK_AGAIN = 0.02  # seconds between two looks at whether everything has settled
_ASK_AGAIN = 1.0  # the same, after the store could not be asked
_BROKEN_REMEMBERED = 1_000  # events of an adapter that could not be stored because of a bug
TRIES = 10  # of such an event; by polling, half a minute
_ALONE = 3  # of them between which others were stored, where nobody can be told
_LAST_WORDS = 5.0  # seconds for messages that are being delivered when the gateway stops


@dataclass(slots=True, kw_only=True)
class Gateway:
    """The running program. `run` is the whole of it; `close` are foreign resources, closed last.
    `leaves_questions`: whoever reads here is gone when the input has ended, so what waits for a yes or no
    then is left for the next start."""

    store: Store
    turns: Turns
    lanes: Lanes
    outbox: Outbox
    lifecycle: Lifecycle
    expiry: Expiry
    welcome: Welcome
    board: SignalBoard
    background: Background
    adapters: Mapping[str, Adapter]
    clock: Clock
    ownership: Ownership
    worker: str
    close: Sequence[Callable[[], Awaitable[None]]] = ()
    leaves_questions: bool = False
    _stop: asyncio.Event = field(default_factory=asyncio.Event)
    _grace: float = DRAIN_SECONDS
    failure: str | None = None  # why an adapter stopped, as a sentence for the person
    _failed: bool = False

    def stop(self, *, grace: float = DRAIN_SECONDS) -> None:
        """Ask `run` to drain and return (SIGTERM, SIGINT). Turns that are not done after `grace` seconds
        are cut short; the next start goes on with them. Asked again, the shorter grace counts."""
        self._grace = min(self._grace, grace)
        self._stop.set()

    async def run(self) -> bool:
        """Serve until `stop` is called, or until every adapter has read all there is; then finish
        what was accepted. False if an adapter failed. Raises StoreLocked, StoreUnavailable."""
        scheduler = AsyncIOScheduler(timezone=UTC)  # the machine's own may be unreadable
        self.ownership.begin(self.adapters.values())
        try:
            if await ended_before(self.store.open, self._stop):  # a server that is away is waited for
                await self._serve(scheduler)
        finally:
            if scheduler.running:
                scheduler.shutdown(wait=False)
            await self._shut_down()
        return not self._failed

    async def _serve(self, scheduler: AsyncIOScheduler) -> None:
        self.store.on_signal(self.board.deliver)
        self.store.on_decided(self.turns.approvals.heard)
        self.store.on_rows(self.outbox.look)
        self.store.on_left(self._take_over)
        await self.turns.services.models.learn_window(self.clock)
        await self._recover()
        self.background.start(self.outbox.serve(), name="outbox")
        self.background.start(self.lanes.serve(), name="lanes")
        await self.expiry.sweep()
        self.expiry.schedule(scheduler, every=_SWEEP_SECONDS)
        await self.welcome.look()
        self.welcome.schedule(scheduler)
        scheduler.start()
        reading = [
            self.background.start(self._read(adapter), name=f"adapter {name}")
            for name, adapter in self.adapters.items()
        ]
        stopped = self.background.start(self._until_stopped(), name="stop")
        all_read = self.background.start(_wait_all(reading), name="adapters")
        await asyncio.wait([stopped, all_read], return_when=asyncio.FIRST_COMPLETED)
        if not self._stop.is_set():
            settled = self.background.start(self._settle(), name="settle")
            await asyncio.wait([stopped, settled], return_when=asyncio.FIRST_COMPLETED)
        for task in reading:
            task.cancel()

    def _take_over(self) -> None:
        """Another process died: go on with what it left."""
        self.background.start_once(self._recover(), name="recovery")

    async def _recover(self) -> None:
        await recover(self.store, self.lifecycle, self.turns, self.background, self.worker)

    async def _read(self, adapter: Adapter) -> None:
        try:
            await self.ownership.read(adapter, Entrance(self.turns, adapter).accept)
        except GatewayError as error:
            self._failed, self.failure = True, str(error)
            log.info("adapter_stopped", adapter=adapter.name, error=str(error))
        except Exception:
            # One platform's bug must not take the others down.
            self._failed = True
            log.exception("adapter_broke", adapter=adapter.name)

    async def _until_stopped(self) -> None:
        await self._stop.wait()

    async def _settle(self) -> None:
        """Return when everything accepted here is answered and shown, or cannot be shown now."""
        while True:
            waiting = self.board.waiting()
            if self.leaves_questions and waiting and waiting == self.lanes.active and not self.outbox.in_flight:
                self.stop(grace=0)
                return
            if not self.lanes.active and not self.outbox.in_flight:
                try:
                    if await self._has_settled():
                        return
                except StoreUnavailable as error:  # who cannot be asked may hold work for here
                    log.warning("settling_waits", error=str(error))
                    await self.clock.sleep(_ASK_AGAIN)
            await self.clock.sleep(_LOOK_AGAIN)

    async def _has_settled(self) -> bool:
        status = await self.store.status(self.adapters)
        delayed = bool(await self.store.next_due())
        if status.waiting or (status.unsent and not delayed):
            return False
        self._failed = self._failed or bool(status.unsent)
        return True

    async def _shut_down(self) -> None:
        await self.lanes.stop(self._grace, waits=self.board.waits)
        try:
            async with self.clock.limit(_LAST_WORDS):
                while self.outbox.in_flight:
                    await self.clock.sleep(_LOOK_AGAIN)
        except TimeoutError:
            log.warning("left_unsent", chats=self.outbox.in_flight)
        await self.ownership.aclose()
        await self.background.aclose()
        closing: list[tuple[str, Awaitable[None]]] = [(each.name, each.aclose()) for each in self.adapters.values()]
        closing += [("a resource", close()) for close in self.close]
        for what, work in closing:  # whatever cannot be closed, the rest is
            await best_effort(work, what=f"closing {what}")
        await self.store.aclose()


class Entrance:
    """Where one adapter hands over what it read. Whatever keeps a batch from being stored, also a bug, is to the
    adapter a store that is away: it confirms nothing, and tries again after a pause that grows. A platform's
    library that met another error would end its reading, or go on without any pause.

    What meets a bug again and again, when others do not, is given up, and who wrote it is told: what comes after
    it would never be read. That they are told is stored first, or others must have been stored again and again: a
    store that fails in a way of its own is a bug to everything, and for hours."""

    def __init__(self, turns: Turns, adapter: Adapter) -> None:
        self._turns = turns
        self._adapter = adapter
        self._troubles: OrderedDict[str, _Trouble] = OrderedDict()  # of events that met a bug
        self._stored = 0  # batches since the start of which something was stored

    async def accept(self, batch: Sequence[Inbound]) -> Sequence[Accepted]:
        """See `gateway.domain.adapter.Accept`."""
        if any(self._is_given_up(inbound) for inbound in batch):
            return await self._one_by_one(batch)
        try:
            accepted = await self._turns.receive(self._adapter, batch)
        except StoreUnavailable:
            raise
        except Exception as error:
            return await (self._one_by_one(batch) if len(batch) > 1 else self._broke(batch[0], error))
        self._stored += any(each.status == "new" for each in accepted)
        for each in accepted if self._troubles else ():
            self._troubles.pop(each.event_id, None)
        return accepted

    async def _one_by_one(self, batch: Sequence[Inbound]) -> Sequence[Accepted]:
        """In their order; when one cannot be given up yet, those after it are tried, too: they may show that not
        everything meets the bug."""
        accepted: list[Accepted] = []
        held: StoreUnavailable | None = None
        for inbound in batch:
            if self._is_given_up(inbound):
                accepted.append(Accepted(event_id=inbound.event_id, status="refused"))
                continue
            try:
                accepted += await self.accept([inbound])
            except StoreUnavailable as error:
                trouble = self._troubles.get(inbound.event_id)
                if trouble is None or trouble.tries <= TRIES:
                    raise
                held = error
        if held is not None:
            raise held
        return accepted

    async def _broke(self, inbound: Inbound, error: Exception) -> Sequence[Accepted]:
        event = inbound.event_id
        if event not in self._troubles:
            log.exception("receipt_broke", adapter=self._adapter.name, inbound=event)
        trouble = self._troubles.setdefault(event, _Trouble(before=self._stored))
        trouble.tries += 1
        trouble.alone += self._stored > trouble.before
        trouble.before = self._stored
        if len(self._troubles) > _BROKEN_REMEMBERED:
            self._troubles.popitem(last=False)
        if trouble.tries <= TRIES or not self._stored or not await self._gave_up(inbound, trouble):
            why = str(error) if isinstance(error, GatewayError) else "an error in Legato itself, which its log tells of"
            raise StoreUnavailable(why) from error
        trouble.given_up = True
        log.error("message_given_up", adapter=self._adapter.name, inbound=event, tries=trouble.tries)
        return [Accepted(event_id=event, status="refused")]

    def _is_given_up(self, inbound: Inbound) -> bool:
        """Whether it was: what it came with may still be tried, and then it comes again."""
        trouble = self._troubles.get(inbound.event_id)
        return trouble is not None and trouble.given_up

    async def _gave_up(self, inbound: Inbound, trouble: _Trouble) -> bool:
        told = False
        try:
            told = await self._turns.reception.give_up(inbound)
        except StoreUnavailable:
            return False
        except Exception as error:
            log.warning("not_told_of_giving_up", inbound=inbound.event_id, error=f"{type(error).__name__}: {error}")
        return told or trouble.alone >= _ALONE


@dataclass(slots=True, kw_only=True)
class _Trouble:
    """Of an event that met a bug. `before`: batches that were stored until it did last. `alone`: its tries since the
    one before which others were stored."""

    before: int
    tries: int = 0
    alone: int = 0
    given_up: bool = False


def collect_seldom() -> None:
    """Look for garbage in cycles less often than Python does by default. Hardly any is made here, and
    each look walks what is in memory: a sixth of a message's time, a fifth of a long request's. For
    the program's own process, before `build`."""
    gc.set_threshold(20_000, 20, 50)


async def _wait_all(tasks: Sequence[asyncio.Task[None]]) -> None:
    if tasks:
        await asyncio.wait(tasks)
    else:  # a worker reads nothing: it runs lanes until it is stopped
        await asyncio.Event().wait()
