"""Receipt: each message that an adapter read is stored before its platform is told, or refused with a sentence.

Read from top to bottom: `receive` decides about each message of a batch whether it is for the bot, stores those that
are, and says what became of each. A stored message waits in its lane (see `turn`), but for two kinds: a command that
must reach a running turn, and the press of a button. These are carried out at once, by `run_bypassed`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Final

import structlog
from msgspec import Struct, field

from gateway.commands.base import Answer
from gateway.commands.runner import TURNS, CommandRunner, with_choices
from gateway.delivery.outbox import Outbox
from gateway.domain.adapter import Accepted, Adapter
from gateway.domain.approval import Approval
from gateway.domain.chat import SAYS, Inbound, Outbound, Source
from gateway.domain.command import Proposal
from gateway.domain.quoting import CALLED, CORRECTED
from gateway.domain.turn import BUSY, BusyMode, TurnRules
from gateway.people.approvals import NOT_CHOSEN, NOT_YOURS, Approvals
from gateway.people.pairing import Pairing
from gateway.people.reminders import Reminders
from gateway.people.welcome import Welcome
from gateway.runtime.clock import Clock, Deadline
from gateway.runtime.errors import SessionConflict, StoreUnavailable
from gateway.runtime.points import Points
from gateway.runtime.structs import replace
from gateway.runtime.tasks import Background
from gateway.store.insist import insist
from gateway.store.port import Store
from gateway.store.records import Arrival, InboxItem, Receipt
from gateway.turns.admission import Admission
from gateway.turns.notices import Throttle, tell_of_outage
from gateway.turns.parts import RecentAlbums, is_continuation

if TYPE_CHECKING:
    from gateway.turns.joining import Joining
    from gateway.turns.overheard import Overheard
    from gateway.turns.reactions import Reactions

log = structlog.get_logger(__name__)

# Seconds for which a platform is kept waiting after a batch is stored: for the outcome of presses (until then the
# button is shown at work), and for notices that the bot is busy.
_AFTERWARDS = 5.0
_UNREAD_EVERY = 600.0  # seconds between two sentences about what the bot cannot read
_NEWS: Final = ("left", "joined", "renamed")  # what a platform tells about a chat; nobody said it

GIVEN_UP = "I could not read your last message. Please put it another way."
ASKING = "I am still waiting for your yes or no: answer y or n. Your new message waits for your answer."
ASKING_IN_GROUP = "I am still waiting for your yes or no: /approve or /deny. Your new message waits for your answer."
ASKING_WORDS = "I am still waiting for your answer: write it, or send /deny. Your new message waits for your answer."
PASSED_ON = "I will use your message in what I am doing now, or right after it."


class Reception(Struct, kw_only=True):
    """Receives for all adapters. `heard_at`: when each platform handed something over last (monotonic). Five more
    fields change. Three note when each key was last told something: `_told` that the bot is busy, `_unread` that it
    cannot read a message, `_reminded` that it waits for a yes or no. `_albums` keeps files of albums, and `_beside`
    what is carried out beside the lanes."""

    store: Store
    outbox: Outbox
    commands: CommandRunner
    pairing: Pairing
    welcome: Welcome
    approvals: Approvals
    reminders: Reminders
    background: Background
    clock: Clock
    points: Points
    rules: TurnRules
    admission: Admission
    overheard: Overheard | None
    joining: Joining | None
    reactions: Reactions | None = None
    heard_at: dict[str, float] = field(default_factory=dict)
    _told: Throttle = field(default_factory=Throttle)
    _unread: Throttle = field(default_factory=lambda: Throttle(every=_UNREAD_EVERY))
    _reminded: Throttle = field(default_factory=Throttle)
    _albums: RecentAlbums = field(default_factory=RecentAlbums)
    _beside: set[asyncio.Task[None]] = field(default_factory=set)

    # -- 1. a batch -------------------------------------------------------------------------

    async def receive(self, adapter: Adapter, batch: Sequence[Inbound]) -> list[Accepted]:
        """Store a batch that an adapter read; only then may it confirm the batch to its platform. Nothing of strangers
        is stored, and they learn nothing unless they may ask to be let in. Raises StoreUnavailable: hand the batch over
        again; messages that were already taken are then known."""
        self.points("accept.before")
        arrivals, too_many = await self.admission.admitted(adapter, await self._arrivals(batch))
        receipts = await self.store.accept(arrivals, cap=self.rules.turns.lane_cap) if arrivals else []
        self.points("accept.after")
        said = dict[str, Awaitable[str]]()
        for receipt in receipts:  # before anything that may fail: the store gives out such an item only once
            if receipt.item is not None:
                said[receipt.event_id] = self.run_bypassed(receipt.item)
        if self.reactions is not None and self.reactions.given:
            with suppress(StoreUnavailable):  # the messages are stored
                await self.reactions.settle(receipts)
        until = self.clock.monotonic() + _AFTERWARDS
        status = dict[str, Accepted]()
        for arrival in too_many:
            status[arrival.inbound.event_id] = await self.admission.turned_away(adapter, arrival)
        for arrival, receipt in zip(arrivals, receipts, strict=True):
            if arrival.inbound.part_of is not None:
                self._albums.forget(arrival)
            self.admission.note(arrival, receipt)
            if self.overheard and (arrival.inbound.source.chat_type != "direct" or arrival.inbound.command is not None):
                with suppress(StoreUnavailable):  # the message is stored
                    await self.overheard.note(arrival)
            status[receipt.event_id] = await self._accepted(adapter, arrival, receipt, until)
            if receipt.reopened:
                with suppress(StoreUnavailable):
                    await self.outbox.tell_withheld(arrival)
            if arrival.inbound.notice and receipt.status == "new":
                with suppress(StoreUnavailable):  # the message is stored; a notice is not worth a failure
                    await self.outbox.tell(arrival, arrival.inbound.notice)
        for arrival in arrivals:
            event = arrival.inbound.event_id
            if arrival.inbound.kind == "press" and event in said:
                status[event] = replace(status[event], told=await self._outcome(said[event], until))
        return [status.get(inbound.event_id) or self._refused(inbound) for inbound in batch]

    async def _arrivals(self, batch: Sequence[Inbound]) -> list[Arrival]:
        """The messages of a batch that are for the bot."""
        now = self.clock.monotonic()
        if batch:
            self.heard_at[batch[0].source.platform] = now
        arrivals: list[Arrival] = []
        for read in batch:
            if read.kind in _NEWS:
                await self._take_note(read)
                continue
            if read.kind == "reaction":
                if self.reactions is not None:
                    await self.reactions.take(await self._at_home(read))
                continue
            inbound = await self._at_home(read)
            if inbound.only_as_part or inbound.kind == "overheard":
                inbound = self._if_called(inbound)
            if inbound.kind == "overheard":
                await self._overhear(inbound)
                continue
            if inbound.kind == "press":
                inbound = await self._as_said(self._as_typed(inbound))
            if inbound.kind == "withdrawn":
                if not (self._amends_one_of(arrivals, inbound) or await self._amends(inbound)):
                    arrivals += await self._forgotten(inbound)
                continue
            if not await self._is_known(inbound):
                if inbound.only_as_part:
                    await self._overhear(inbound)
                continue
            if inbound.before or not (inbound.text or inbound.attachments):
                inbound = await self._looking_back(inbound)
            if inbound.kind == "unread":
                await self._say_unread(inbound)
                continue
            if inbound.amends:
                if self._amends_one_of(arrivals, inbound) or await self._amends(inbound):
                    continue
                inbound = _corrected(inbound)
            if (command := await self.approvals.command_in(inbound)) is not None:
                inbound = replace(inbound, text=f"/{command}", own=None)
            arrival = self.arrival(replace(inbound, only_as_part=False) if inbound.only_as_part else inbound)
            if self.reactions is not None and arrival.key not in self.reactions.none and not inbound.only_as_part:
                arrival = await self.reactions.before(arrival)
            if not inbound.only_as_part or await self._is_part(arrival, arrivals):
                if inbound.part_of is not None:
                    arrivals += self._albums.before(arrival, now)
                arrivals.append(arrival)
            else:
                self._albums.keep(arrival, now)
                await self._overhear(inbound)
        return arrivals

    def _if_called(self, inbound: Inbound) -> Inbound:
        """Something said to others, as a message to the bot if it contains one of the bot's names there. It must be the
        writer's own words, so a channel's post does not call the bot."""
        if self.rules.names and inbound.own != "" and self.rules.calls_bot(inbound.source, inbound.text):
            return replace(inbound, kind="message", only_as_part=False)
        return inbound

    async def _overhear(self, inbound: Inbound) -> None:
        """Hear what was said to others."""
        if self.overheard and await self._may_be_heard(inbound.source):
            self.overheard.hear(inbound)
            if self.joining is not None:
                self.joining.consider(inbound)

    async def _may_be_heard(self, source: Source) -> bool:
        """Whether this person's words may be context for others' messages."""
        return self.rules.hears_everybody(source) or await self.pairing.lets_in(source)

    async def _looking_back(self, inbound: Inbound) -> Inbound:
        """A group's message without what was said before it, which is remembered. If somebody only calls the bot, they
        mean what was said before."""
        if self.overheard is None or inbound.source.chat_type == "direct":
            return inbound
        if inbound.before:
            await self.overheard.look_back(inbound, self._may_be_heard)
            inbound = replace(inbound, before=())
        if not inbound.text and self.overheard.lines(inbound, self.rules.key(inbound.source)):
            return replace(inbound, text=CALLED, own="")
        return inbound

    async def _take_note(self, told: Inbound) -> None:
        """Note at once that the bot left a chat or came back, or that a chat was renamed. If the bot leaves a stranger,
        nothing is noted: nothing is kept of strangers."""
        platform, chat = told.source.platform, told.source.chat
        if told.kind == "renamed":
            log.info("chat_renamed", platform=platform, before=told.text, after=chat)
            await self.store.rename_chat(platform, told.text, chat)
        elif told.kind == "left" and await self.store.later_name(platform, chat) is None:
            inbound = await self._at_home(told)
            if self.overheard:
                self.overheard.leave(platform, inbound.source.chat)
            if await self.pairing.lets_in(inbound.source):
                await self.store.close_chat(inbound.source.address, told.text)
        else:
            inbound = await self._at_home(told)
            if await self.store.open_chat(inbound.source.address):
                await self.outbox.tell_withheld(self.arrival(inbound))

    def _amends_one_of(self, arrivals: list[Arrival], inbound: Inbound) -> bool:
        """Give a message of the same batch its new words; False if there is none."""
        for place, before in enumerate(arrivals):
            if before.inbound.event_id in inbound.amends:
                arrivals[place] = self.arrival(_reworded(inbound, before.inbound.event_id))
                return True
        return False

    async def _amends(self, inbound: Inbound) -> bool:
        """Give a message that still waits its new words; False if none does."""
        for event in inbound.amends:
            if await self.store.amend(self.arrival(_reworded(inbound, event))):
                return True
        return False

    async def _forgotten(self, gone: Inbound) -> list[Arrival]:
        """The request to forget a message that no longer waits, because its writer took it back."""
        if not await self.pairing.lets_in(gone.source):
            return []
        arrival = self.arrival(replace(gone, text="\n".join(gone.amends), amends=()))
        return [arrival] if await self.store.sessions(arrival.key, 1) else []

    async def _at_home(self, inbound: Inbound) -> Inbound:
        """A message under the first name of its chat, where its conversation is."""
        source = inbound.source
        if source.chat_type == "direct":
            return inbound  # a person's chat keeps its name
        first = await self.store.first_name(source.platform, source.chat, inbound.event_id)
        if first == source.chat:
            return inbound
        return replace(inbound, source=replace(source, chat=first, renamed=source.chat))

    async def _say_unread(self, inbound: Inbound) -> None:
        """Tell a person now and then that the bot cannot read what they sent."""
        arrival = self.arrival(inbound)
        if self._unread.due(arrival.key, self.clock.monotonic()):
            await self.outbox.tell(arrival, inbound.text)

    async def _is_known(self, inbound: Inbound) -> bool:
        """Whether the message's writer may talk here. A stranger who may ask to be let in is told how."""
        if await self.pairing.lets_in(inbound.source):
            if self.pairing.greets(inbound.source):
                await self.welcome.greet()  # before the answer
            return True
        sentence = await self.pairing.ask(inbound)
        if sentence is not None:
            await self.store.open_chat(inbound.source.address)  # a person who writes is there again
            await self.outbox.tell(self.arrival(inbound), sentence)
        elif inbound.source.chat_type != "direct":
            if told := await self.pairing.ask_in_group(inbound):
                await self.welcome.tell_admins(inbound, told)
            if told := self.pairing.nameless(inbound):
                await self.welcome.tell_group(inbound, told)
        return False

    def _refused(self, inbound: Inbound) -> Accepted:
        told = self.pairing.way_in() if inbound.command is not None else NOT_YOURS if inbound.kind == "press" else ""
        return Accepted(event_id=inbound.event_id, status="refused", told=told)

    def arrival(self, inbound: Inbound) -> Arrival:
        """A message with its key, and whether it waits in the lane or bypasses it."""
        call = inbound.command
        command = self.commands.registry.get(call.name) if call else None
        if call and call.argument and command and command.sends:
            inbound = replace(inbound, kind=command.sends, text=call.argument)
        return Arrival(
            inbound=inbound,
            key=self.rules.key(inbound.source),
            at=self.clock.now(),
            bypass=inbound.kind == "press" or bool(command and call and command.bypasses(call)),
        )

    def _as_typed(self, inbound: Inbound) -> Inbound:
        """A press of a button that stands for a command and a value, as if the presser had typed it, with only their
        rights."""
        typed = replace(inbound, kind="message") if inbound.text.startswith("/") else None
        call = typed.command if typed is not None else None
        command = self.commands.registry.get(call.name) if call is not None and call.argument else None
        return typed if typed is not None and command is not None and command.proposals is not None else inbound

    async def _as_said(self, press: Inbound) -> Inbound:
        """A press of a suggestion in the presser's own conversation, as if they had written it."""
        if not press.text.startswith(SAYS) or not await self.pairing.lets_in(press.source):
            return press
        key = self.rules.key(press.source)
        text: str = await import_module("gateway.turns.suggestions").taken(self.store, key, press.text)
        return replace(press, kind="message", text=text, notice=f"“{text}”") if text else press

    async def _is_part(self, arrival: Arrival, before: Sequence[Arrival]) -> bool:
        """Whether a message continues one that waits in its lane, or comes `before` it in its batch. The store is
        asked, because another process may have taken the earlier part."""
        waiting = await self.store.waiting(arrival.key, self.rules.turns.lane_cap)
        running = await self.store.running(arrival.key)
        coming = [
            InboxItem(id="", key=each.key, inbound=each.inbound, accepted_at=each.at, attempts=0)
            for each in (*before, arrival)
            if each.key == arrival.key
        ]
        return is_continuation(arrival.inbound.event_id, [*([running] if running else ()), *waiting, *coming])

    async def admits(self, writer: Source) -> bool:
        """Whether a writer may talk there, before a message is handed over. Raises StoreUnavailable."""
        said = Inbound(event_id="", source=writer, text="")
        return await self.pairing.lets_in((await self._at_home(said)).source)

    async def proposals(self, typed: Inbound) -> Sequence[Proposal]:
        """Values for the argument of a command that a person is typing; none for strangers. Raises StoreUnavailable."""
        inbound = await self._at_home(typed)
        if inbound.command is None or not await self.pairing.lets_in(inbound.source):
            return ()
        item = InboxItem(
            id="", key=self.rules.key(inbound.source), inbound=inbound, accepted_at=self.clock.now(), attempts=1
        )
        return await self.commands.proposals(item, inbound.command)

    # -- 2. the answer to the platform, and notices ---------------------------------------------

    async def _accepted(self, adapter: Adapter, arrival: Arrival, receipt: Receipt, until: float) -> Accepted:
        if receipt.status == "full":
            return await self.admission.overflowed(adapter, arrival)
        answers = ""
        asks = not arrival.bypass and arrival.inbound.kind != "withdrawn"
        if receipt.status == "new" and receipt.waiting and asks:
            # The message is stored; a notice about it is not worth a failure.
            with suppress(StoreUnavailable, TimeoutError):
                async with self._limit(until):
                    answers = await self.approvals.takes(arrival)
                    if not answers:
                        await self._while_busy(arrival)
        said, at = arrival.inbound.typed, arrival.at
        return Accepted(event_id=receipt.event_id, status=receipt.status, answers=answers, said=said, at=at)

    async def _while_busy(self, arrival: Arrival) -> None:
        """A message came during a turn: act by the busy mode, and say so now and then."""
        inbound = arrival.inbound
        if inbound.terms is not None and inbound.command is None:
            await self._deny(arrival)  # a program waits for its answer, so its person could never say yes
        if inbound.kind == "queue" or inbound.command is not None:
            # A person who is asked, and waits for the answer to a command, would wait for ever.
            if not await self._settles_questions(arrival):
                await self._say_busy(arrival, BUSY)
            return
        # In this order: an item that begins to run in between is then in both, not in neither.
        waiting = await self.store.waiting(arrival.key, self.rules.turns.lane_cap)
        running = await self.store.running(arrival.key)
        if is_continuation(inbound.event_id, [running, *waiting] if running else waiting):
            return  # the message that it is a part of was acted on, or runs
        mode: BusyMode = "steer" if inbound.kind == "steer" else self.rules.busy(inbound.source)
        waits = any(item.inbound.event_id == inbound.event_id for item in waiting)
        if mode == "interrupt":
            if waits:  # else its own turn runs by now, and would end itself
                await self.store.signal(arrival.key, "interrupt", self.clock.now())
        elif waits or mode == "steer":
            await self._say_busy(arrival, PASSED_ON if mode == "steer" else BUSY)

    async def _settles_questions(self, arrival: Arrival) -> bool:
        """Take a command whose writer has a question before them as a no: they cannot want it to wait behind that
        question. Returns whether there was one."""
        call = arrival.inbound.command
        command = self.commands.registry.get(call.name) if call else None
        if command is None or command.over_question is None:
            return False
        if command.over_question != "stop":
            return await self._deny(arrival)
        if mine := await self._own_questions(arrival):
            await self.store.signal(arrival.key, "stop", self.clock.now())
        return bool(mine)

    async def _own_questions(self, arrival: Arrival) -> list[Approval]:
        """The questions that wait in the lane for the writer."""
        source = arrival.inbound.source
        there = await self.approvals.answerable(source)
        return [each for each in there if each.key == arrival.key and each.person == source.user]

    async def _deny(self, arrival: Arrival) -> bool:
        """Take what the writer sent as a no to their questions. Returns whether there was one."""
        mine = await self._own_questions(arrival)
        for each in mine:
            await self.approvals.decide(each, "denied", arrival.inbound.source.user)
        return bool(mine)

    async def _say_busy(self, arrival: Arrival, text: str) -> None:
        """Tell the writer now and then that the bot is busy, or waits for them."""
        if not await self._remind(arrival) and self._told.due(arrival.key, self.clock.monotonic()):
            await self.outbox.tell(arrival, text)

    async def _remind(self, arrival: Arrival) -> bool:
        """Whether the lane waits for an answer that the writer may give; if so, they are reminded now and then."""
        source = arrival.inbound.source
        there = [each for each in await self.approvals.answerable(source) if each.key == arrival.key]
        there = [each for each in there if not each.wants_words or each.person == source.user]
        if there and self._reminded.due(arrival.key, self.clock.monotonic()):
            yes_or_no = ASKING if source.chat_type == "direct" else ASKING_IN_GROUP
            words = NOT_CHOSEN if there[-1].choices.closed else ASKING_WORDS
            await self.outbox.tell(arrival, words if there[-1].wants_words else yes_or_no)
        return bool(there)

    async def give_up(self, inbound: Inbound) -> bool:
        """Tell the writer that a message cannot be received; False if there is nobody to tell. May raise anything that
        `receive` may."""
        inbound = await self._at_home(inbound)
        if inbound.kind not in ("message", "steer") or inbound.only_as_part:
            return False
        if not await self.pairing.lets_in(inbound.source):
            return False
        await self.outbox.tell(self.arrival(inbound), GIVEN_UP)
        return True

    # -- 3. presses, and commands that do not wait in a lane ------------------------------------

    def run_bypassed(self, item: InboxItem) -> Awaitable[str]:
        """Carry out, outside the lane, a press or a command that must reach a running turn. Yields the sentence that
        the person is told, as soon as it is known."""
        said: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        task = self.background.start(self._bypass(item, said), name=f"command {item.key.text} {item.id}")
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)
        return said

    async def bypassed_ended(self) -> None:
        """Return when nothing runs outside the lanes."""
        if self._beside:
            await asyncio.wait(self._beside)

    async def _bypass(self, item: InboxItem, said: asyncio.Future[str]) -> None:
        call = item.inbound.command
        turns = list[Outbound]()
        try:
            if item.inbound.text.startswith(TURNS) and call is None:
                told, turns = await self.commands.turned(item, self.store, self.outbox)
                answer = Answer(text=told)
            elif call is None:
                buttons = self.reminders if self.reminders.presses(item.inbound) else self.approvals
                answer = Answer(text=await buttons.pressed(item.inbound))
            else:
                answer = await self.commands.answer(item, call)
        except StoreUnavailable as error:
            answer = Answer(kind="error", text=str(error))
        said.set_result(answer.text)
        # A platform has its own way to tell the person who pressed.
        rows = self.outbox.rows(item, answer.kind, answer.text) if call is not None and answer.text else []
        if call is not None and answer.choices and rows and self.outbox.has_buttons(item.inbound.source.platform):
            rows[-1] = with_choices(rows[-1], answer.choices, call)
        rows += [*turns, *answer.again]
        with suppress(SessionConflict):  # another process took this one for dead, and has answered
            answered = await insist(
                partial(self.store.finish_bypassed, item, rows),
                clock=self.clock,
                what="finish_bypassed",
                failed=lambda error: tell_of_outage(self.outbox, item, error),
            )
            self.outbox.deliver(answered)

    async def _outcome(self, said: Awaitable[str], until: float) -> str:
        """The outcome of a press; empty if it takes long, so that nobody has to wait."""
        try:
            async with self._limit(until):
                return await asyncio.shield(said)
        except TimeoutError:
            return ""

    def _limit(self, until: float) -> AbstractAsyncContextManager[Deadline]:
        """End the enclosed block at this time (monotonic seconds) with TimeoutError."""
        return self.clock.limit(max(0.0, until - self.clock.monotonic()))


def _reworded(inbound: Inbound, event: str) -> Inbound:
    """The message in its new wording, in place of an event of it; if that is the first one, simply the message."""
    plain = event == inbound.amends[-1] or inbound.kind == "withdrawn"
    return replace(inbound if plain else _corrected(inbound), event_id=event)


def _corrected(inbound: Inbound) -> Inbound:
    """The new wording of a message that was already read, which says so."""
    own = inbound.text if inbound.own is None else inbound.own
    return replace(inbound, text=CORRECTED + inbound.text, own=own, part_of=None)
