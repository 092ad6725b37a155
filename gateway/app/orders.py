"""An operator's orders about stuck messages (rows of the outbox, and messages that were given up), and texts to show or
to ask the agent about. Other programs send such texts, too, by a hook of the API (`Events`).

A Redis store takes the first kind from any process. The file of a SQLite store belongs to the gateway that runs: a
shell leaves an order in it, and the gateway carries it out. A text always waits for a gateway, which knows how long the
platform's messages may be. Every order may be carried out twice: it changes nothing then. For the ids of rows and
items are made of the order's own, or the event's. A text that the agent is asked about begins a turn as the end of
something in the background does (`gateway.agent.waking`).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Literal

import msgspec
import structlog
from msgspec import Struct
from msgspec.structs import asdict

from gateway.agent.waking import Waking
from gateway.delivery.outbox import Outbox
from gateway.domain.adapter import Event
from gateway.domain.chat import EVENT, ChatAddress, Outbound, OutboundState, SessionKey, Source
from gateway.domain.place import person_of
from gateway.domain.turn import TurnRules
from gateway.people.pairing import Pairing
from gateway.people.people import Home, Place
from gateway.runtime.clock import Clock, lasting_id
from gateway.runtime.errors import UserError
from gateway.runtime.structs import replace
from gateway.store.port import Documents, InboxStore, ReportStore, Store
from gateway.store.records import Acceptance, Arrival, InboxItem
from gateway.store.shared.documents import storable

if TYPE_CHECKING:
    from gateway.domain.keys import Key

log = structlog.get_logger(__name__)

Verb = Literal["retry", "drop", "replay", "bury", "send", "ask"]

LOOK_EVERY: Final = 5.0  # seconds
MOST_DEAD: Final = 10_000  # that are looked through
_OF_DEAD: Final[tuple[Verb, ...]] = ("replay", "bury")
_OF_TEXTS: Final[tuple[Verb, ...]] = ("send", "ask")
_FROM_SHELL: Final = "a text came from a shell"
NOT_SERVED: Final = "The platform {platform} is not switched on here. Enable it in `adapters`."
NOBODY: Final = (
    "The bot cannot write to {chat} yet, because it knows nobody there. First, someone with access to the bot must "
    "write to it in that chat. If {chat} is a group, you can also name a person with `person`."
)
DROPPED: Final = "the operator dropped it"
_ACCOUNT: Final = "orders"  # the notes that hold them
_AGAIN: Final = "replay."  # before the id of an event whose message is tried once more


class Order(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`retry` shows a row that was not shown, `drop` gives up one that waits; `id` is the row's. `replay` has a message
    that was given up answered after all, `bury` takes it off the list; `id` is the item's. `send` shows `text` as the
    row `id`, in a thread of the chat if one is named; `at` is when it was asked for (seconds since the epoch). `ask`
    has the agent read it, as what a program said, for a `task` of the operator's."""

    verb: Verb
    id: str
    platform: str
    chat: str
    thread: str | None = None
    text: str = ""
    task: str = ""
    at: float = 0.0

    @property
    def address(self) -> ChatAddress:
        """Return the place that it is about."""
        return ChatAddress(platform=self.platform, chat=self.chat, thread=self.thread)

    @property
    def name(self) -> str:
        """The name of the note that holds it: an order that is left twice is there once."""
        return f"{self.verb} {self.id}"


async def leave(store: Documents, orders: list[Order]) -> None:
    """Leave orders to the gateway that runs on this store."""
    await store.set_notes(_ACCOUNT, {each.name: msgspec.json.encode(each).decode() for each in orders})


async def left(store: Documents) -> dict[str, Order]:
    """The orders that no gateway has carried out yet, by name. A field of a later release is passed over; an order of
    one that cannot be read stays for a process that can."""
    found = dict[str, Order]()
    for name, text in (await store.notes(_ACCOUNT)).items():
        with suppress(msgspec.MsgspecError):
            found[name] = msgspec.json.decode(text, type=Order)
    return found


async def dead_of(store: ReportStore, orders: Iterable[Order]) -> dict[str, InboxItem]:
    """The messages that were given up, by id, if any of the orders is about such a one. For all of them at once: each
    look reads every one that there is."""
    needed = any(order.verb in _OF_DEAD for order in orders)
    return {each.id: each for each in await store.dead(MOST_DEAD)} if needed else {}


async def carry_out(store: Store, order: Order, clock: Clock, dead: dict[str, InboxItem]) -> tuple[Outbound, ...]:
    """Carry it out, and return the rows that this process must now send. `dead` (from `dead_of`) loses what is no
    longer dead. Only `Orders` shows texts."""
    if order.verb in _OF_DEAD:
        if (item := dead.pop(order.id, None)) is not None:
            if order.verb == "replay":
                await _replay(store, item, clock)
            await store.bury(item)
        return ()
    for row in await store.rows(order.address, [order.id]):
        if order.verb == "retry" and row.state in (OutboundState.WITHHELD, OutboundState.REFUSED):
            await store.open_chat(row.to)  # one that was gone: else the row would end without an attempt
            return await store.emit([_anew(row, clock)])
        if order.verb == "drop" and row.state == OutboundState.PENDING:
            following = await store.mark_refused(row.id, DROPPED)
            return () if following is None else (following,)
    return ()


def _anew(row: Outbound, clock: Clock) -> Outbound:
    """The row as it goes out once more. A refused one is at its end: another with its words goes out."""
    again = replace(row, created_at=clock.now(), due_at=0.0, platform_message_id=None, error=None)
    if row.state == OutboundState.WITHHELD:
        return again
    return replace(
        again, id=lasting_id("o", "again", row.id), state=OutboundState.PENDING, attempts=0, ambiguous=0, edits=None
    )


async def _replay(store: InboxStore, item: InboxItem, clock: Clock) -> None:
    inbound = replace(item.inbound, event_id=f"{_AGAIN}{item.inbound.event_id}")
    await store.accept([Arrival(inbound=inbound, key=item.key, at=clock.now())], cap=MOST_DEAD)


class Events(Struct, frozen=True, kw_only=True):
    """Takes events, each once."""

    store: Store
    outbox: Outbox
    pairing: Pairing
    home: Home
    rules: TurnRules
    clock: Clock

    async def take(self, event: Event) -> Acceptance:
        """Show an event, or have the agent go on with it. Raises UserError, StoreUnavailable."""
        place = await self.home.needed() if event.to is None else Place(to=event.to)
        to, event = place.to, replace(event, text=storable(event.text))
        if not self.outbox.knows(to.platform):
            raise UserError(NOT_SERVED.format(platform=to.platform))
        key = await self.pairing.key_of(to.platform, to.chat)
        if event.task is None:
            return await self._show(event, to)
        return await self._ask(event, to, event.person or place.person, key)

    async def _show(self, event: Event, to: ChatAddress) -> Acceptance:
        """Store the rows that show a text, unless they were stored before, of whatever text. The ids of the others are
        made of the first one's, so two processes store them once."""
        if await self.store.rows(to, [event.id, *event.also]):
            return "duplicate"
        key = SessionKey(platform=to.platform, chat=to.chat, thread=to.thread)
        first, *others = self.outbox.compose(key, to, "notice", event.text, first_id=event.id)
        rows = [first, *(replace(row, id=f"{event.id}.{n}") for n, row in enumerate(others, 1))]
        await self.outbox.emit(rows)
        return "new"

    async def _ask(self, event: Event, to: ChatAddress, person: str | None, key: Key | None) -> Acceptance:
        for known in event.also:
            if (await self.store.named(f"{EVENT}{known}", [to.platform])).fates:
                return "duplicate"
        source = await place_of(self.store, to, person, key)
        if not await self.pairing.lets_in(source):
            raise UserError(NOBODY.format(chat=f"{to.platform}:{to.chat}"))
        waking = Waking(store=self.store, clock=self.clock)
        return await waking.told(self.rules.key(source), source, event, self.rules.turns.lane_cap)


async def place_of(store: ReportStore, to: ChatAddress, person: str | None, by: Key | None = None) -> Source:
    """Where and to whom the agent speaks in a chat: as in the newest conversation there, else as in a chat with one
    person, who has the chat's name unless another is given. `by`: the key by which they talk."""
    if by is not None:
        within = (by.name,) if to.chat != by.name else ()
        cap = (by.name, by.cap) if by.cap is not None else None
        return Source(**asdict(to), chat_type="direct", user=to.chat, user_name=by.name, within=within, cap=cap)
    key = SessionKey(platform=to.platform, chat=to.chat, thread=to.thread, user=person)
    for each in (key, replace(key, user=None)):
        for session in await store.sessions(each, 1):
            alone = person_of(each, session.places) if session.chat_type == "direct" else ""
            return Source(
                platform=to.platform,
                chat=to.chat,
                thread=to.thread,
                chat_type=session.chat_type,
                user=person or alone,
                within=session.places,
            )
    return Source(platform=to.platform, chat=to.chat, thread=to.thread, chat_type="direct", user=person or to.chat)


class Orders(Struct, kw_only=True):
    """Carries out what shells have left."""

    store: Store
    outbox: Outbox
    events: Events
    clock: Clock

    async def look(self) -> None:
        """Carry out all orders that are there, in the order in which they were left, as far as that is known."""
        orders = sorted((await left(self.store)).values(), key=attrgetter("at"))
        dead = await dead_of(self.store, orders)
        for order in orders:
            if order.verb in _OF_TEXTS and not self.outbox.knows(order.platform):
                continue  # it waits for a process that does
            log.info("order", verb=order.verb, id=order.id)
            if order.verb in _OF_TEXTS:
                if not await self._told(order):
                    continue  # until its lane has room
            else:
                self.outbox.deliver(await carry_out(self.store, order, self.clock, dead))
            await self.store.set_notes(_ACCOUNT, {order.name: None})

    async def _told(self, order: Order) -> bool:
        """Do what an order says with its text. False: it cannot be done yet."""
        event = Event(
            what=_FROM_SHELL,
            id=order.id,
            to=order.address,
            text=order.text,
            task=order.task if order.verb == "ask" else None,
        )
        try:
            return await self.events.take(event) != "full"
        except UserError as error:
            log.error("order_not_done", id=order.id, error=str(error))
            return True
