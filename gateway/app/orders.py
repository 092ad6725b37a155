"""An operator's orders about messages that are stuck: rows of the outbox, and messages that were given up.

A Redis store takes them from any process. The file of a SQLite store belongs to the gateway that runs: a shell leaves
an order in it, and the gateway carries it out. Every order may be carried out twice: it changes nothing then.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Final, Literal

import structlog

from gateway.delivery.outbox import Outbox
from gateway.domain.chat import ChatAddress, Outbound, OutboundState
from gateway.runtime.clock import Clock, lasting_id
from gateway.store.port import Store
from gateway.store.records import Arrival, InboxItem

log = structlog.get_logger(__name__)

Verb = Literal["retry", "drop", "replay", "bury"]

LOOK_EVERY: Final = 5.0  # seconds
MOST_DEAD: Final = 10_000  # that are looked through
_OF_DEAD: Final[tuple[Verb, ...]] = ("replay", "bury")
DROPPED: Final = "the operator dropped it"
_ACCOUNT: Final = "orders"  # the notes that hold them
_AGAIN: Final = "replay."  # before the id of an event whose message is tried once more


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """`retry` shows a row that was not shown, `drop` gives up one that waits; `id` is the row's. `replay` has a message
    that was given up answered after all, `bury` takes it off the list; `id` is the item's."""

    verb: Verb
    id: str
    platform: str
    chat: str


async def leave(store: Store, orders: list[Order]) -> None:
    """Leave orders to the gateway that runs on this store."""
    await store.set_notes(_ACCOUNT, {f"{each.verb} {each.id}": json.dumps(asdict(each)) for each in orders})


async def dead_of(store: Store, orders: Iterable[Order]) -> dict[str, InboxItem]:
    """The messages that were given up, by id, if any of the orders is about such a one. For all of them at once: each
    look reads every one that there is."""
    needed = any(order.verb in _OF_DEAD for order in orders)
    return {each.id: each for each in await store.dead(MOST_DEAD)} if needed else {}


async def carry_out(store: Store, order: Order, clock: Clock, dead: dict[str, InboxItem]) -> tuple[Outbound, ...]:
    """Do it, and return the rows that this process must now send. `dead` (of `dead_of`) loses what is dead no more."""
    if order.verb in _OF_DEAD:
        if (item := dead.pop(order.id, None)) is not None:
            if order.verb == "replay":
                await _replay(store, item, clock)
            await store.bury(item)
        return ()
    for row in await store.rows(ChatAddress(platform=order.platform, chat=order.chat), [order.id]):
        if order.verb == "retry" and row.state in (OutboundState.WITHHELD, OutboundState.REFUSED):
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


async def _replay(store: Store, item: InboxItem, clock: Clock) -> None:
    inbound = replace(item.inbound, event_id=f"{_AGAIN}{item.inbound.event_id}")
    await store.accept([Arrival(inbound=inbound, key=item.key, at=clock.now())], cap=MOST_DEAD)


@dataclass(slots=True, kw_only=True)
class Orders:
    """Carries out what shells have left."""

    store: Store
    outbox: Outbox
    clock: Clock

    async def look(self) -> None:
        """Carry out all orders that are there."""
        orders = {name: Order(**json.loads(text)) for name, text in (await self.store.notes(_ACCOUNT)).items()}
        dead = await dead_of(self.store, orders.values())
        for name, order in orders.items():
            log.info("order", verb=order.verb, id=order.id)
            self.outbox.deliver(await carry_out(self.store, order, self.clock, dead))
            await self.store.set_notes(_ACCOUNT, {name: None})
