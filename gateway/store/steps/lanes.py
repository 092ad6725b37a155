"""Lanes: each event is accepted once, and the items of a conversation run one after the other.

A lane with items is a record: it waits for a worker, or a process has claimed it under a fence. Numbers give the
order of everything, and fences are numbers, so a later claim has a higher fence.

An item that was running at several crashes is a suspect: only one of several may be the cause. So a process tries one
suspect at a time, each when the process has run for a while, and only the cause uses up its attempts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

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
    READY,
    SUSPECTS,
    TRIED,
    TURN,
    EventRecord,
    Item,
    Lane,
    TurnRecord,
    event_name,
)
from gateway.store.records import (
    SUSPECT_ATTEMPTS,
    Arrival,
    Beginning,
    InboxItem,
    ItemOutcome,
    Lease,
    Pile,
    Receipt,
    SignalKind,
    attempt_pause,
)
from gateway.store.shared.documents import unreadable
from gateway.store.shared.platforms import chat_name
from gateway.store.space import MANY, Caller, Index, Space, served
from gateway.store.steps import outbox

T = TypeVar("T")

NO_CAP: Final = MANY  # of what the gateway itself puts into a lane
_LOOKED_AT: Final = 100  # suspects: there are hardly ever more


class Claimed(Struct, frozen=True, kw_only=True):
    """A lane that a process has claimed under this fence, and the item that it runs. `begins`: what its turn begins
    with, if known."""

    fence: int
    item: InboxItem
    begins: Beginning | None = None


class Accepted(Struct, frozen=True, kw_only=True):
    """What became of arrivals, and the lanes that were claimed at once."""

    receipts: list[Receipt]
    claimed: list[Claimed]


class NoClaim(Struct, frozen=True, kw_only=True):
    """There is no lane to claim. `again_in`: seconds until a suspect may be tried; None if there is none."""

    again_in: float | None = None


# -- accepting -----------------------------------------------------------------------------------------


def accept(space: Space, caller: Caller, arrivals: Sequence[Arrival], cap: int, room: int) -> Accepted:
    """Store each new event at the end of its lane. The process has `room` for so many more lanes: idle ones are claimed
    in the same step."""
    receipts, claimed = list[Receipt](), list[Claimed]()
    names = [event_name(arrival.inbound.source.platform, arrival.inbound.event_id) for arrival in arrivals]
    there = {event.name for event in space.many(EVENT, names)}
    for arrival, event in zip(arrivals, names, strict=True):
        event_id, lane = arrival.inbound.event_id, arrival.key.text
        if event in there:
            receipts.append(Receipt(event_id=event_id, status="duplicate"))
            continue
        known = None if arrival.bypass else space.get(LANE, lane)
        waiting = 0 if known is None else len(known.queue)
        if waiting >= cap and not arrival.bypass:
            receipts.append(Receipt(event_id=event_id, status="full", waiting=waiting))
            continue
        claims = known is None and not arrival.bypass and len(claimed) < room and arrival.key.platform in caller.runs
        there.add(event)
        item = _new_item(space, caller, arrival, event, attempts=int(arrival.bypass or claims))
        if claims:
            new = Lane(key=item.key, since=0, queue=(item.number,))
            claimed.append(Claimed(fence=_hold(space, caller, new), item=read(item)))
        elif known is not None:
            space.put(LANE, replace(known, queue=(*known.queue, item.number)))
            space.tell("behind", lane)
        elif not arrival.bypass:
            _schedule(space, Lane(key=item.key, since=space.number(), queue=(item.number,)), item)
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
    space.put(EVENT, EventRecord(name=event, item=number))
    space.put(ITEM, item)
    return item


def _stored(inbound: Inbound) -> Inbound:
    """An Inbound without what nobody needs once it is stored."""
    if inbound.only_as_part or inbound.notice or inbound.can_wait or inbound.amends or inbound.before:
        return replace(inbound, only_as_part=False, notice="", can_wait=False, amends=(), before=())
    return inbound


def _heard(space: Space, arrival: Arrival) -> bool:
    """Open the chat of a message, unless it is the gateway's own request. Returns whether the chat was closed."""
    is_own = arrival.inbound.is_own_request
    return not is_own and outbox.reopen(space, chat_name(arrival.inbound.source.address))


def refuse(space: Space, caller: Caller, arrival: Arrival, notice: Outbound) -> tuple[Outbound, ...]:
    """Store an event as refused and say so, unless it is known."""
    event = event_name(arrival.inbound.source.platform, arrival.inbound.event_id)
    if space.get(EVENT, event) is not None:
        return ()
    item = _new_item(space, caller, replace(arrival, bypass=False), event, attempts=0)
    space.put(ITEM, replace(item, outcome="refused", ended_at=arrival.at))
    _heard(space, arrival)
    return outbox.emit(space, caller, [notice])


def amend(space: Space, arrival: Arrival) -> bool:
    """Give an item that waits and was never begun another Inbound; False if there is none."""
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
    """Claim the lane that has waited longest, of the process's platforms. This counts as an attempt at its first
    item."""
    platforms = served(space, caller.runs, READY, SUSPECTS)
    ready = _earliest(lane for name in platforms for lane in space.first(READY, name))
    suspect, again_in = _suspect(space, caller, platforms)
    lane = _earliest(filter(None, (ready, suspect)))
    if lane is None:
        return NoClaim(again_in=again_in)
    head = _head(space, lane)
    item = replace(head, attempts=head.attempts + 1)
    space.put(ITEM, item)
    return Claimed(fence=_hold(space, caller, lane), item=read(item))


def _head(space: Space, lane: Lane) -> Item:
    """The first item of a lane."""
    item = space.get(ITEM, lane.head)
    assert item is not None
    return item


def waits(space: Space, caller: Caller) -> bool:
    """Whether there is a lane that the process may claim."""
    platforms = served(space, caller.runs, READY, SUSPECTS)
    if any(space.first(READY, name) for name in platforms):
        return True
    suspect, _ = _suspect(space, caller, platforms)
    return suspect is not None


def _earliest(lanes: Iterable[Lane]) -> Lane | None:
    return min(lanes, key=lambda lane: lane.since, default=None)


def _suspect(space: Space, caller: Caller, platforms: Sequence[str]) -> tuple[Lane | None, float | None]:
    """The suspect that this process may try now, or the seconds until it may try one."""
    if space.first(TRIED, caller.owner):
        return None, None
    pauses = list[float]()
    for lane in sorted((s for name in platforms for s in space.first(SUSPECTS, name, _LOOKED_AT)), key=_since):
        pause = attempt_pause(_head(space, lane).attempts, caller.pauses) - caller.uptime
        if pause <= 0.0:
            return lane, None
        pauses.append(pause)
    return None, min(pauses, default=None)


def _since(lane: Lane) -> int:
    return lane.since


def _hold(space: Space, caller: Caller, lane: Lane) -> int:
    """From now on this process runs the lane; return the fence."""
    fence = space.number()
    space.put(LANE, replace(lane, owner=caller.owner, fence=fence))
    return fence


def _schedule(space: Space, lane: Lane, head: Item) -> None:
    """The lane waits for a worker, as a suspect if its first item is one."""
    suspect = head.attempts >= SUSPECT_ATTEMPTS
    space.put(LANE, replace(lane, owner="", fence=0, suspect=suspect))
    space.tell("ready", lane.key.platform)


def claim_left(space: Space, caller: Caller) -> list[InboxItem]:
    """Take over the bypass items that a dead process left, on this process's platforms."""
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
    """The lane of a lease. Raises SessionConflict if the lease is stale, or the lane runs another item."""
    lane = space.get(LANE, lease.key.text)
    if lane is None or lane.fence != lease.fence or not lane.owner:
        raise SessionConflict(f"Worker {lease.worker} does not run this lane any more.")
    if item is not None and lane.head != int(item):
        raise SessionConflict("This item is not the one its lane runs.")
    return lane


def absorb(space: Space, item: Item, others: Sequence[str]) -> None:
    """Take waiting items of the lane into the turn of `item`; they end together with it. One whose writer has taken it
    back since it was read stays behind the turn, which is to be forgotten."""
    if not others:
        return
    taken = list[int]()
    for name in others:
        other = space.get(ITEM, int(name)) if name.isdecimal() else None
        if other is None or not _may_be_absorbed(other, item):
            raise SessionConflict(f"Item {name} does not wait in this lane any more.")
        if (gone := other.inbound) is not None and gone.kind == "withdrawn":
            space.put(ITEM, replace(other, inbound=replace(gone, text=gone.event_id)))
            continue
        space.put(ITEM, replace(other, absorbed_by=item.number))
        taken.append(other.number)
    lane = space.get(LANE, item.lane)
    assert lane is not None
    absorbed = tuple(dict.fromkeys((*lane.absorbed, *taken)))
    space.put(LANE, replace(lane, queue=tuple([n for n in lane.queue if n not in absorbed]), absorbed=absorbed))


def _may_be_absorbed(other: Item, item: Item) -> bool:
    is_apart = other.number != item.number and other.lane == item.lane and not other.bypass
    return is_apart and other.outcome is None and other.absorbed_by in (None, item.number)


def count_anew(space: Space, item: Item) -> None:
    """A step of the item is stored, so its attempts count from zero, and it is no longer suspect. What it waits for may
    be."""
    if item.attempts > 1:
        space.put(ITEM, replace(item, attempts=1))
    lane = space.get(LANE, item.lane)
    if lane is not None and lane.suspect:
        space.put(LANE, replace(lane, suspect=False))
        space.tell("ready", lane.key.platform)


def end(space: Space, item: Item, outcome: ItemOutcome, at: float) -> TurnRecord | None:
    """End an item, drop its journal, and return it. Raises SessionConflict if the item had already ended."""
    if item.outcome is not None:
        raise SessionConflict(f"Item {item.number} has ended already.")
    space.put(ITEM, replace(item, outcome=outcome, ended_at=at))
    turn = space.get(TURN, item.number)
    if turn is not None:
        space.drop(TURN, item.number)
    return turn


def go_on(space: Space, key: SessionKey, at: float) -> InboxItem | None:
    """The lane's item has ended, and with it those in its turn: claim the next one under the same lease; None if the
    lane is idle."""
    lane = space.get(LANE, key.text)
    assert lane is not None
    for other in space.many(ITEM, lane.absorbed) if lane.absorbed else ():
        space.put(ITEM, replace(other, outcome="absorbed", ended_at=at))
    if lane.suspect:
        space.tell("ready", lane.key.platform)
    if len(lane.queue) == 1:
        space.drop(LANE, lane.key.text)
        return None
    lane = replace(lane, queue=lane.queue[1:], absorbed=(), suspect=False)
    head = _head(space, lane)
    item = replace(head, attempts=head.attempts + 1)
    space.put(ITEM, item)
    space.put(LANE, lane)
    return read(item)


def release(space: Space, lease: Lease, counted: bool) -> None:
    """Give a lane back. The attempt counts only if it is `counted`."""
    lane = held(space, lease)
    item = _head(space, lane)
    if not counted:
        item = replace(item, attempts=item.attempts - 1)
        space.put(ITEM, item)
    _schedule(space, replace(lane, since=space.number()), item)


def leave(space: Space, owner: str) -> None:
    """A process is dead: its lanes wait for other workers, oldest item first, and its bypass items for anybody."""
    for lane in space.first(HELD, owner, MANY):
        _schedule(space, replace(lane, since=lane.head), _head(space, lane))
    for item in space.first(BYPASSED, owner, MANY):
        space.put(ITEM, replace(item, owner=""))
        space.tell("left")


# -- signals -------------------------------------------------------------------------------------------


def signal(space: Space, key: SessionKey, kind: SignalKind, at: float) -> bool:
    """Leave a signal for the item that runs in a lane, or will be resumed; False if there is none."""
    item = _current(space, key)
    if item is None:
        return False
    turn = space.get(TURN, item.number) or TurnRecord(item=item.number, key=item.key)
    if kind not in [each for _, each in turn.signals]:
        space.put(TURN, replace(turn, signals=tuple(sorted((*turn.signals, (at, kind))))))
    space.tell("signal", key.text, kind)
    return True


def signals(space: Space, item: InboxItem) -> tuple[SignalKind, ...]:
    """The signals for an item, oldest first."""
    turn = space.get(TURN, int(item.id))
    return () if turn is None else tuple([kind for _, kind in turn.signals])


def left_to(space: Space, owner: str) -> list[tuple[str, SignalKind]]:
    """The signals for the items that a process runs, each with its lane."""
    running = [(lane.key.text, space.get(TURN, lane.head)) for lane in space.first(HELD, owner, MANY)]
    return [(lane, kind) for lane, turn in running if turn is not None for _, kind in turn.signals]


# -- looking -------------------------------------------------------------------------------------------


def read(item: Item) -> InboxItem:
    """An item in the form in which it is handed out."""
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
    head = _head(space, lane)
    return head if lane.owner or head.attempts else None


def running(space: Space, key: SessionKey) -> InboxItem | None:
    """A key's item that runs, or was begun and will be resumed."""
    item = _current(space, key)
    return None if item is None else read(item)


def waiting(space: Space, key: SessionKey, limit: int) -> list[InboxItem]:
    """The first items of a lane behind the running one."""
    lane = space.get(LANE, key.text)
    if lane is None:
        return []
    behind = lane.queue[1 if lane.owner else 0 :][:limit]
    return [read(item) for item in space.many(ITEM, behind) if item.waits] if behind else []


def idle(space: Space) -> dict[str, float]:
    """By platform, since when the oldest item waits in a lane that nobody runs. A suspect only waits once its time has
    come."""
    oldest: dict[str, float] = {}
    for platform in space.names(READY):
        for lane in space.first(READY, platform, _LOOKED_AT):
            since = _head(space, lane).accepted_at
            oldest[platform] = min(since, oldest.get(platform, since))
    return oldest


def unfinished(space: Space) -> dict[str, Pile]:
    """The items that have not ended, by platform."""
    there = [lane for index in (READY, SUSPECTS, HELD) for lane in _every(space, index)]
    beside = [item for index in (BYPASSED, LEFT) for item in _every(space, index)]
    counts = Counter([item.key.platform for item in beside])
    for lane in there:
        counts[lane.key.platform] += len(lane.queue) + len(lane.absorbed)
    oldest: dict[str, float] = {}
    for item in [*beside, *space.many(ITEM, [lane.head for lane in there])]:
        since = item.accepted_at
        oldest[item.key.platform] = min(since, oldest.get(item.key.platform, since))
    return {platform: Pile(count=count, oldest=oldest.get(platform)) for platform, count in counts.items()}


def _every(space: Space, index: Index[T]) -> list[T]:
    return [record for name in space.names(index) for record in space.first(index, name, MANY)]
