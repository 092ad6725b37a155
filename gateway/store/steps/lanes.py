"""Lanes: each event is accepted once, and the items of a conversation run one after the other.

A lane with items is a record: it waits for a worker, or a process has claimed it under a fence. Numbers give the
order of everything, and fences are numbers, so a later claim has a higher fence.

An item that was running at several crashes is a suspect: only one of several may be the cause. So a process tries one
suspect at a time, each when the process has run for a while, and only the cause uses up its attempts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from gateway.domain.chat import Inbound, Outbound, SessionKey
from gateway.runtime.errors import SessionConflict
from gateway.runtime.structs import replace
from gateway.store.kinds import (
    BYPASSED,
    EVENT,
    HELD,
    ITEM,
    LANE,
    LEFT,
    QUEUE,
    READY,
    SUSPECTS,
    TRIED,
    TURN,
    Event,
    Item,
    Lane,
    Turn,
    event_name,
)
from gateway.store.records import (
    SUSPECT_ATTEMPTS,
    Arrival,
    InboxItem,
    ItemOutcome,
    Lease,
    Receipt,
    SignalKind,
    attempt_pause,
)
from gateway.store.shared.documents import unreadable
from gateway.store.shared.platforms import chat_name
from gateway.store.space import MANY, Caller, Space, served
from gateway.store.steps import outbox

NO_CAP: Final = MANY  # of what the gateway itself puts into a lane
_LOOKED_AT: Final = 100  # suspects: there are hardly ever more


class Claimed(Struct, frozen=True, kw_only=True):
    """A lane that a process has claimed, under this fence, and the item that it is to run."""

    fence: int
    item: InboxItem


class Accepted(Struct, frozen=True, kw_only=True):
    """What became of arrivals, and the lanes that were claimed for them at once."""

    receipts: list[Receipt]
    claimed: list[Claimed]


class NoClaim(Struct, frozen=True, kw_only=True):
    """There is no lane to claim. `again_in`: in how many seconds a suspect may be tried; None: there is none."""

    again_in: float | None = None


# -- accepting -----------------------------------------------------------------------------------------


def accept(space: Space, caller: Caller, arrivals: Sequence[Arrival], cap: int, room: int) -> Accepted:
    """Store each new event, at the end of its lane. The process has `room` for so many lanes more: idle ones are
    claimed with the acceptance."""
    receipts, claimed, lengths = list[Receipt](), list[Claimed](), dict[str, int]()
    names = [event_name(arrival.inbound.source.platform, arrival.inbound.event_id) for arrival in arrivals]
    there = {event.name for event in space.many(EVENT, names)}
    for arrival, event in zip(arrivals, names, strict=True):
        event_id, lane = arrival.inbound.event_id, arrival.key.text
        if event in there:
            receipts.append(Receipt(event_id=event_id, status="duplicate"))
            continue
        known = None if arrival.bypass else space.get(LANE, lane)
        if known is not None and lane not in lengths:
            lengths[lane] = space.count(QUEUE, lane)
        waiting = 0 if known is None else lengths[lane]
        if waiting >= cap and not arrival.bypass:
            receipts.append(Receipt(event_id=event_id, status="full", waiting=waiting))
            continue
        claims = known is None and not arrival.bypass and len(claimed) < room and arrival.key.platform in caller.runs
        there.add(event)
        if not arrival.bypass:
            lengths[lane] = waiting + 1
        item = _new_item(space, caller, arrival, event, attempts=int(arrival.bypass or claims))
        if claims:
            claimed.append(Claimed(fence=_hold(space, caller, Lane(key=item.key, since=0), item), item=read(item)))
        elif known is None and not arrival.bypass:
            _schedule(space, Lane(key=item.key, since=space.number()), item)
        own = read(item) if arrival.bypass else None
        reopened = _heard(space, arrival)
        receipts.append(Receipt(event_id=event_id, status="new", waiting=waiting, item=own, reopened=reopened))
    return Accepted(receipts=receipts, claimed=claimed)


def _new_item(space: Space, caller: Caller, arrival: Arrival, event: str, *, attempts: int) -> Item:
    number = space.number()
    item = Item(
        number=number,
        key=arrival.key,
        inbound=_stored(arrival.inbound),
        accepted_at=arrival.at,
        attempts=attempts,
        bypass=arrival.bypass,
        owner=caller.owner if arrival.bypass else "",
    )
    space.put(EVENT, Event(name=event, item=number))
    space.put(ITEM, item)
    return item


def _stored(inbound: Inbound) -> Inbound:
    """An Inbound without what nobody asks for once it is stored."""
    if inbound.only_as_part or inbound.notice or inbound.can_wait or inbound.amends or inbound.before:
        return replace(inbound, only_as_part=False, notice="", can_wait=False, amends=(), before=())
    return inbound


def _heard(space: Space, arrival: Arrival) -> bool:
    """A message opens its chat; the gateway's own request says nothing of the chat. Say whether it was closed."""
    is_own = arrival.inbound.is_own_request
    return not is_own and outbox.reopen(space, chat_name(arrival.inbound.source.address))


def refuse(space: Space, caller: Caller, arrival: Arrival, notice: Outbound) -> tuple[Outbound, ...]:
    """Keep an event as refused, and say so, unless the event is known."""
    event = event_name(arrival.inbound.source.platform, arrival.inbound.event_id)
    if space.get(EVENT, event) is not None:
        return ()
    item = _new_item(space, caller, replace(arrival, bypass=False), event, attempts=0)
    space.put(ITEM, replace(item, outcome="refused", ended_at=arrival.at))
    _heard(space, arrival)
    return outbox.emit(space, caller, [notice])


def amend(space: Space, arrival: Arrival) -> bool:
    """Give an item that waits, and was never begun, another Inbound; say whether there was one."""
    event = space.get(EVENT, event_name(arrival.inbound.source.platform, arrival.inbound.event_id))
    item = space.get(ITEM, event.item) if event is not None else None
    if item is None or item.key != arrival.key or not item.waits or item.attempts:
        return False
    turn = space.get(TURN, item.number)
    if turn is not None and turn.began:
        return False
    space.put(ITEM, replace(item, inbound=_stored(arrival.inbound)))
    return True


# -- claiming ------------------------------------------------------------------------------------------


def claim(space: Space, caller: Caller) -> Claimed | NoClaim:
    """Claim the lane that has waited longest, of the platforms that the process runs. Its first item's attempt is
    counted."""
    platforms = served(space, caller.runs, READY, SUSPECTS)
    ready = _earliest(lane for name in platforms for lane in space.first(READY, name))
    suspect, again_in = _suspect(space, caller, platforms)
    lane = _earliest(filter(None, (ready, suspect)))
    if lane is None:
        return NoClaim(again_in=again_in)
    (head,) = space.first(QUEUE, lane.key.text)
    item = replace(head, attempts=head.attempts + 1)
    space.put(ITEM, item)
    return Claimed(fence=_hold(space, caller, lane, item), item=read(item))


def waits(space: Space, caller: Caller) -> bool:
    """Say whether there is a lane that the process may claim."""
    platforms = served(space, caller.runs, READY, SUSPECTS)
    if any(space.first(READY, name) for name in platforms):
        return True
    suspect, _ = _suspect(space, caller, platforms)
    return suspect is not None


def _earliest(lanes: Iterable[Lane]) -> Lane | None:
    return min(lanes, key=lambda lane: lane.since, default=None)


def _suspect(space: Space, caller: Caller, platforms: Sequence[str]) -> tuple[Lane | None, float | None]:
    """The suspect that this process may try now, or in how many seconds it may try one."""
    if space.first(TRIED, caller.owner):
        return None, None
    pauses = list[float]()
    for lane in sorted((s for name in platforms for s in space.first(SUSPECTS, name, _LOOKED_AT)), key=_since):
        (head,) = space.first(QUEUE, lane.key.text)
        pause = attempt_pause(head.attempts, caller.pauses) - caller.uptime
        if pause <= 0.0:
            return lane, None
        pauses.append(pause)
    return None, min(pauses, default=None)


def _since(lane: Lane) -> int:
    return lane.since


def _hold(space: Space, caller: Caller, lane: Lane, head: Item) -> int:
    """This process runs the lane from now on; return the fence."""
    fence = space.number()
    space.put(LANE, replace(lane, owner=caller.owner, fence=fence, head=head.number))
    return fence


def _schedule(space: Space, lane: Lane, head: Item) -> None:
    """The lane waits for a worker, as a suspect if its first item is one."""
    suspect = head.attempts >= SUSPECT_ATTEMPTS
    space.put(LANE, replace(lane, owner="", fence=0, head=0, suspect=suspect))
    space.tell("ready", lane.key.platform)


def claim_left(space: Space, caller: Caller) -> list[InboxItem]:
    """Take over the items beside their lanes that a dead process left, of the platforms that this one runs."""
    taken = [
        replace(item, owner=caller.owner, attempts=item.attempts + 1)
        for name in served(space, caller.runs, LEFT)
        for item in space.first(LEFT, name, MANY)
    ]
    for item in taken:
        space.put(ITEM, item)
    return [read(item) for item in sorted(taken, key=lambda item: item.number)]


# -- running -------------------------------------------------------------------------------------------


def held(space: Space, lease: Lease, item: str | None = None) -> Lane:
    """The lane of a lease. Raises SessionConflict if the lease is not current, or the lane runs another item."""
    lane = space.get(LANE, lease.key.text)
    if lane is None or lane.fence != lease.fence or not lane.owner:
        raise SessionConflict(f"Worker {lease.worker} does not run this lane any more.")
    if item is not None and lane.head != int(item):
        raise SessionConflict("This item is not the one its lane runs.")
    return lane


def absorb(space: Space, item: Item, others: Sequence[str]) -> None:
    """Let items that wait in the lane go into the turn of `item`; they will end with that item."""
    for name in others:
        other = space.get(ITEM, int(name)) if name.isdecimal() else None
        if other is None or not _may_be_absorbed(other, item):
            raise SessionConflict(f"Item {name} does not wait in this lane any more.")
        space.put(ITEM, replace(other, absorbed_by=item.number))
    if others:
        turn = space.get(TURN, item.number) or Turn(item=item.number, key=item.key)
        absorbed = dict.fromkeys((*turn.absorbed, *map(int, others)))
        space.put(TURN, replace(turn, absorbed=tuple(absorbed), began=True))


def _may_be_absorbed(other: Item, item: Item) -> bool:
    is_apart = other.number != item.number and other.lane == item.lane and not other.bypass
    return is_apart and other.outcome is None and other.absorbed_by in (None, item.number)


def count_anew(space: Space, lane: Lane, item: Item) -> None:
    """A step of the item is stored: this attempt is the first of those that count, and a suspect is none any more. What
    it waits for may be one."""
    if item.attempts > 1:
        space.put(ITEM, replace(item, attempts=1))
    if lane.suspect:
        space.put(LANE, replace(lane, suspect=False))
        space.tell("ready", lane.key.platform)


def end(space: Space, item: Item, outcome: ItemOutcome, at: float) -> Turn | None:
    """End an item, and the items that went into its turn; return its journal, which is dropped. Raises SessionConflict
    if it had ended before."""
    if item.outcome is not None:
        raise SessionConflict(f"Item {item.number} has ended already.")
    space.put(ITEM, replace(item, outcome=outcome, ended_at=at))
    turn = space.get(TURN, item.number)
    if turn is not None:
        space.drop(TURN, item.number)
        for other in space.many(ITEM, turn.absorbed):
            space.put(ITEM, replace(other, outcome="absorbed", ended_at=at))
    return turn


def go_on(space: Space, lane: Lane) -> InboxItem | None:
    """The lane's item has ended: claim the next one under the same lease; None: the lane is idle."""
    waiting = space.first(QUEUE, lane.key.text)
    if not waiting:
        space.drop(LANE, lane.key.text)
    if lane.suspect:
        space.tell("ready", lane.key.platform)
    if not waiting:
        return None
    item = replace(waiting[0], attempts=waiting[0].attempts + 1)
    space.put(ITEM, item)
    space.put(LANE, replace(lane, head=item.number, suspect=False))
    return read(item)


def release(space: Space, lease: Lease, counted: bool) -> None:
    """Give a lane back. The attempt at its item counts only if it is `counted`."""
    lane = held(space, lease)
    item = space.get(ITEM, lane.head)
    assert item is not None
    if not counted:
        item = replace(item, attempts=item.attempts - 1)
        space.put(ITEM, item)
    _schedule(space, replace(lane, since=space.number()), item)


def leave(space: Space, owner: str) -> None:
    """A process is dead: its lanes wait for another worker, the one whose item came first before the others, and its
    items beside lanes for anybody."""
    for lane in space.first(HELD, owner, MANY):
        (head,) = space.first(QUEUE, lane.key.text)
        _schedule(space, replace(lane, since=head.number), head)
    for item in space.first(BYPASSED, owner, MANY):
        space.put(ITEM, replace(item, owner=""))
        space.tell("left")


# -- signals -------------------------------------------------------------------------------------------


def signal(space: Space, key: SessionKey, kind: SignalKind, at: float) -> bool:
    """Leave a signal for the item that runs in a lane, or is about to be resumed; False: there is none."""
    item = _current(space, key)
    if item is None:
        return False
    turn = space.get(TURN, item.number) or Turn(item=item.number, key=item.key)
    if kind not in [each for _, each in turn.signals]:
        space.put(TURN, replace(turn, signals=tuple(sorted((*turn.signals, (at, kind))))))
    space.tell("signal", key.text, kind)
    return True


def signals(space: Space, item: InboxItem) -> tuple[SignalKind, ...]:
    """The signals that were left for an item, oldest first."""
    turn = space.get(TURN, int(item.id))
    return () if turn is None else tuple([kind for _, kind in turn.signals])


def left_to(space: Space, owner: str) -> list[tuple[str, SignalKind]]:
    """The signals for the items that a process runs, each with its lane."""
    running = [(lane.key.text, space.get(TURN, lane.head)) for lane in space.first(HELD, owner, MANY)]
    return [(lane, kind) for lane, turn in running if turn is not None for _, kind in turn.signals]


# -- looking -------------------------------------------------------------------------------------------


def read(item: Item) -> InboxItem:
    """An item as it is handed out."""
    inbound = item.inbound
    if inbound is None:
        inbound = unreadable(item.key, str(item.number))
    return InboxItem(
        id=str(item.number), key=item.key, inbound=inbound, accepted_at=item.accepted_at, attempts=item.attempts
    )


def _current(space: Space, key: SessionKey) -> Item | None:
    lane = space.get(LANE, key.text)
    if lane is None:
        return None
    if lane.owner:
        return space.get(ITEM, lane.head)
    (first,) = space.first(QUEUE, key.text)
    return first if first.attempts else None


def running(space: Space, key: SessionKey) -> InboxItem | None:
    """The item of a key that runs, or was begun and is about to be resumed."""
    item = _current(space, key)
    return None if item is None else read(item)


def waiting(space: Space, key: SessionKey, limit: int) -> list[InboxItem]:
    """The first items of a lane behind the one that runs."""
    lane = space.get(LANE, key.text)
    head = lane.head if lane is not None else 0
    return [read(item) for item in space.first(QUEUE, key.text, limit + 1) if item.number != head][:limit]


def idle(space: Space) -> dict[str, float]:
    """By platform: since when the oldest item waits in a lane that nobody runs. A suspect waits for its time."""
    oldest: dict[str, float] = {}
    for platform in space.names(READY):
        for lane in space.first(READY, platform, _LOOKED_AT):
            (head,) = space.first(QUEUE, lane.key.text)
            oldest[platform] = min(head.accepted_at, oldest.get(platform, head.accepted_at))
    return oldest
