"""Receipt: what an adapter read is stored before its platform is told, or refused with a sentence."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field, replace
from typing import Literal

import structlog

from gateway.commands.base import CommandRegistry
from gateway.delivery.outbox import Outbox
from gateway.domain.adapter import Accepted, Adapter
from gateway.domain.chat import Inbound, Sharing, session_key
from gateway.domain.command import parse_command
from gateway.people.approvals import NOT_YOURS, Approvals
from gateway.people.pairing import Pairing
from gateway.people.welcome import Welcome
from gateway.runtime.clock import Clock, Deadline
from gateway.runtime.errors import StoreUnavailable
from gateway.runtime.points import Points
from gateway.store.port import Store
from gateway.store.records import Arrival, InboxItem, Receipt
from gateway.turns.albums import Overheard
from gateway.turns.notices import Throttle
from gateway.turns.parts import is_continuation

BusyMode = Literal["queue", "steer", "interrupt"]

log = structlog.get_logger(__name__)

# For which a platform is kept waiting, with a whole batch, for what follows its being stored: what presses came to
# (who pressed sees the button at work until then), and notices that the bot is busy.
_AFTERWARDS = 5.0
_NOTICE_EVERY = 30.0  # seconds between two "still busy" notices of one key

FULL = "Too many messages are waiting here already, so I did not take this one; send it again in a moment."
GIVEN_UP = "An error on my side keeps me from reading your last message; please say it in another way."
BUSY = "I am still working on your earlier message; this one comes right after it."
ASKING = "I still wait for your yes or no: /approve or /deny. This message comes after it."
PASSED_ON = "Noted: it joins what I am doing right now, or comes right after it."


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRules:
    """The configured behaviour of turns; times in seconds."""

    groups: Sharing = "per_user"
    threads: Sharing = "shared"
    busy_mode: BusyMode = "queue"
    deadline: float = 1_800.0
    inactivity: float = 600.0
    lane_cap: int = 100


@dataclass(slots=True, kw_only=True)
class Reception:
    """`_notices` changes, when a key was last told that the bot is busy, and what was `_overheard`."""

    store: Store
    outbox: Outbox
    commands: CommandRegistry
    pairing: Pairing
    welcome: Welcome
    approvals: Approvals
    clock: Clock
    points: Points
    rules: TurnRules
    _notices: Throttle = field(default_factory=lambda: Throttle(every=_NOTICE_EVERY))
    _overheard: Overheard = field(default_factory=Overheard)

    async def receive(
        self, adapter: Adapter, batch: Sequence[Inbound], *, at_once: Callable[[InboxItem], Awaitable[str]]
    ) -> list[Accepted]:
        """Store what an adapter read; only then may the platform be told. Strangers are not stored
        and learn nothing, unless they may ask to be let in. Raises StoreUnavailable: then hand the batch
        over again; what of it was taken is known by then. What does not wait is handed to `at_once`, which
        gives what to tell who pressed a button."""
        self.points("accept.before")
        now = self.clock.monotonic()
        arrivals: list[Arrival] = []
        for read in batch:
            if await self._is_about_the_chat(read):
                continue
            inbound = await self._at_home(read)
            if not await self._is_known(inbound):
                continue
            arrival = self.arrival(replace(inbound, only_as_part=False))
            if await self._is_meant(inbound, arrivals):
                arrivals += [*self._overheard.before(arrival, now), arrival]
            else:
                self._overheard.keep(arrival, now)
        receipts = await self.store.accept(arrivals, cap=self.rules.lane_cap) if arrivals else []
        self.points("accept.after")
        status = {inbound.event_id: _refused(inbound) for inbound in batch}
        answers: dict[str, Awaitable[str]] = {}
        until = self.clock.monotonic() + _AFTERWARDS
        for receipt in receipts:
            if receipt.item is not None:  # before anything that may fail: it is not handed out again
                answers[receipt.event_id] = at_once(receipt.item)
        for arrival, receipt in zip(arrivals, receipts, strict=True):
            self._overheard.forget(arrival)
            status[receipt.event_id] = await self._received(adapter, arrival, receipt, until)
        for arrival in arrivals:
            name = arrival.inbound.event_id
            if arrival.inbound.kind == "press" and name in answers:
                status[name] = replace(status[name], told=await self._told(answers[name], until))
        return [status[inbound.event_id] for inbound in batch]

    async def give_up(self, inbound: Inbound) -> bool:
        """Tell who wrote to the bot that their message cannot be taken in; False where nobody is to be told. Raises
        whatever they, too, may meet."""
        inbound = await self._at_home(inbound)
        if inbound.kind not in ("message", "steer") or inbound.only_as_part:
            return False
        if not await self.pairing.lets_in(inbound.source):
            return False
        await self.outbox.emit(self.outbox.answer(self.arrival(inbound), "notice", GIVEN_UP))
        return True

    async def _is_about_the_chat(self, told: Inbound) -> bool:
        """Whether it says that the bot left a chat or came back, or that the chat has another name now, which is
        noted at once. A stranger's leaving is not: nothing is kept of strangers, and nothing goes to them."""
        platform, chat = told.source.platform, told.source.chat
        if told.kind == "renamed":
            log.info("chat_renamed", platform=platform, before=told.text, after=chat)
            await self.store.rename_chat(platform, told.text, chat)
        elif told.kind == "left" and await self.store.later_name(platform, chat) is None:
            inbound = await self._at_home(told)
            if await self.pairing.lets_in(inbound.source):
                await self.store.close_chat(inbound.source.address, told.text)
        elif told.kind == "joined":
            await self.store.open_chat((await self._at_home(told)).source.address)
        return told.kind in ("left", "joined", "renamed")

    async def _at_home(self, told: Inbound) -> Inbound:
        """A message under the first name of its chat, where its conversation is, and what waits to be shown."""
        source = told.source
        if source.chat_type == "direct":
            return told  # a person's chat is theirs for good
        first = await self.store.first_name(source.platform, source.chat, told.event_id)
        return told if first == source.chat else replace(told, source=replace(source, chat=first, renamed=source.chat))

    async def _told(self, said: Awaitable[str], until: float) -> str:
        """What a press came to; nothing if that takes long, because nobody may be kept waiting for it."""
        try:
            async with self._limit(until):
                return await asyncio.shield(said)
        except TimeoutError:
            return ""

    def _limit(self, until: float) -> AbstractAsyncContextManager[Deadline]:
        """End what is done in it by then (monotonic seconds) with TimeoutError."""
        return self.clock.limit(max(0.0, until - self.clock.monotonic()))

    async def _is_meant(self, inbound: Inbound, before: Sequence[Arrival]) -> bool:
        """Whether it is for the bot: by itself, or because it goes on with what waits in its lane or comes `before`
        it in its batch. Asked of the store, because another process may have taken the part before."""
        if not inbound.only_as_part:
            return True
        arrival = self.arrival(inbound)
        waiting = await self.store.waiting(arrival.key, self.rules.lane_cap)
        running = await self.store.running(arrival.key)
        coming = [
            InboxItem(id="", key=each.key, inbound=each.inbound, accepted_at=each.at, attempts=0)
            for each in (*before, arrival)
            if each.key == arrival.key
        ]
        return is_continuation(inbound.event_id, [*([running] if running else ()), *waiting, *coming])

    async def _is_known(self, inbound: Inbound) -> bool:
        if await self.pairing.lets_in(inbound.source):
            if self.pairing.greets(inbound.source):  # before the answer to what they say
                await self.welcome.greet()
            return True
        sentence = await self.pairing.knock(inbound)
        if sentence is not None:
            await self.store.open_chat(inbound.source.address)  # who knocks is there again
            await self.outbox.emit(self.outbox.answer(self.arrival(inbound), "notice", sentence))
        return False

    def arrival(self, inbound: Inbound) -> Arrival:
        """Whose conversation a message belongs to, and whether it waits there."""
        call = parse_command(inbound.text) if inbound.kind == "message" else None
        command = self.commands.get(call.name) if call else None
        if call and call.argument and command and command.name in ("steer", "queue"):
            # Text for the running turn waits in the lane, too: if none takes it, it is a turn of its own.
            inbound = replace(inbound, kind="steer" if command.name == "steer" else "queue", text=call.argument)
        return Arrival(
            inbound=inbound,
            key=session_key(inbound.source, groups=self.rules.groups, threads=self.rules.threads),
            at=self.clock.now(),
            bypass=inbound.kind == "press" or (command is not None and command.bypass),
        )

    async def _received(self, adapter: Adapter, arrival: Arrival, receipt: Receipt, until: float) -> Accepted:
        if receipt.status == "full":
            if adapter.limits.pauses_when_full:
                return Accepted(event_id=receipt.event_id, status="full")
            notice = self.outbox.answer(arrival, "notice", FULL)[0]
            self.outbox.deliver(await self.store.refuse(arrival, notice))
            return Accepted(event_id=receipt.event_id, status="refused")
        if receipt.status == "new" and receipt.waiting and not arrival.bypass:
            # The message is stored; only a notice about it is not.
            with suppress(StoreUnavailable, TimeoutError):
                async with self._limit(until):
                    await self._while_busy(arrival)
        return Accepted(event_id=receipt.event_id, status=receipt.status)

    async def _while_busy(self, arrival: Arrival) -> None:
        """A message came while a turn runs: act by the busy mode, and say so at most now and then."""
        inbound = arrival.inbound
        if inbound.kind == "queue" or (inbound.kind == "message" and parse_command(inbound.text)):
            # A question is up to whoever sent the command: without a word, both would wait for each other.
            if await self._is_asking(arrival) and self._notices.due(arrival.key, self.clock.monotonic()):
                await self.outbox.emit(self.outbox.answer(arrival, "notice", ASKING))
            return
        # In this order: what begins to run in between is then in both, not in neither.
        waiting = await self.store.waiting(arrival.key, self.rules.lane_cap)
        running = await self.store.running(arrival.key)
        if is_continuation(inbound.event_id, [running, *waiting] if running else waiting):
            return  # the message that it is a part of was acted on, or runs
        mode: BusyMode = "steer" if inbound.kind == "steer" else self.rules.busy_mode
        waits = any(item.inbound.event_id == inbound.event_id for item in waiting)
        if mode == "interrupt":
            if waits:  # else its own turn has come meanwhile: it would end itself
                await self.store.signal(arrival.key, "interrupt", self.clock.now())
        elif (waits or mode == "steer") and self._notices.due(arrival.key, self.clock.monotonic()):
            text = PASSED_ON if mode == "steer" else BUSY
            if await self._is_asking(arrival):  # who answers in words of their own is not heard
                text = ASKING
            await self.outbox.emit(self.outbox.answer(arrival, "notice", text))

    async def _is_asking(self, arrival: Arrival) -> bool:
        """Whether the lane waits for an answer that whoever wrote may give."""
        return any(each.key == arrival.key for each in await self.approvals.answerable(arrival.inbound.source))


def _refused(inbound: Inbound) -> Accepted:
    told = NOT_YOURS if inbound.kind == "press" else ""
    return Accepted(event_id=inbound.event_id, status="refused", told=told)
