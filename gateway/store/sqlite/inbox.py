"""Inbox rows: accepting each event once, and the order of a key's items."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Final

import apsw

from gateway.runtime.errors import SessionConflict
from gateway.runtime.structs import replace
from gateway.store.records import MOST_HEARD, Arrival, Fate, InboxItem, ItemOutcome, Receipt, SignalKind
from gateway.store.shared.documents import ERASED, inbound_json, item_from
from gateway.store.shared.platforms import chat_name
from gateway.store.sqlite import outbox
from gateway.store.sqlite.connection import change, many, one

ABSORBED: Final[ItemOutcome] = "absorbed"
_COLUMNS: Final = "id, key, inbound, accepted_at, attempts"
_QUEUED: Final = "outcome IS NULL AND bypass = 0 AND absorbed_by IS NULL"


def accept(
    connection: apsw.Connection, arrivals: Sequence[Arrival], cap: int, idle: Collection[str]
) -> tuple[list[Receipt], list[InboxItem]]:
    """Store new events, and return the new items of lanes. The first of each lane of `idle`, which is empty, is
    claimed: its first attempt is counted."""
    lengths = dict.fromkeys(idle, 0)  # each lane is counted once: nothing leaves it meanwhile
    receipts, queued, full = list[Receipt](), list[InboxItem](), list[int]()
    for arrival in arrivals:
        event, lane = arrival.inbound.event_id, arrival.key.text
        if not arrival.bypass and lane not in lengths:
            lengths[lane] = _length(connection, lane, cap)
        waiting = 0 if arrival.bypass else lengths[lane]
        if waiting >= cap:
            full.append(len(receipts))
            receipts.append(Receipt(event_id=event, status="full", waiting=waiting))
            continue
        attempts = int(arrival.bypass or (not waiting and lane in idle))
        stored = _insert(connection, arrival, attempts=attempts)
        if stored is None:
            receipts.append(Receipt(event_id=event, status="duplicate"))
            continue
        number, reopened = stored
        item = InboxItem(
            id=str(number), key=arrival.key, inbound=arrival.inbound, accepted_at=arrival.at, attempts=attempts
        )
        own = item if arrival.bypass else None
        receipts.append(Receipt(event_id=event, status="new", waiting=waiting, item=own, reopened=reopened))
        if not arrival.bypass:
            lengths[lane] += 1
            queued.append(item)
    known = _known(connection, [arrivals[place] for place in full]) if full else ()
    for place in full:
        if _event(arrivals[place]) in known:
            receipts[place] = replace(receipts[place], status="duplicate")
    return receipts, queued


def _event(arrival: Arrival) -> tuple[str, str]:
    return arrival.inbound.source.platform, arrival.inbound.event_id


def _known(connection: apsw.Connection, arrivals: Sequence[Arrival]) -> Collection[tuple[str, str]]:
    """Return the events of these that are stored. All are looked up at once: a flood must not hold up the others."""
    events = json.dumps([_event(arrival) for arrival in arrivals])
    return {
        (platform, event)
        for platform, event in many(
            connection,
            "SELECT platform, event_id FROM inbox"
            " WHERE (platform, event_id) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))",
            (events,),
        )
    }


def amend(connection: apsw.Connection, arrival: Arrival) -> bool:
    """Give a queued item that nobody began another Inbound; whether there was one."""
    return bool(
        change(
            connection,
            "UPDATE inbox SET inbound = ? WHERE platform = ? AND event_id = ? AND key = ?"
            f" AND attempts = 0 AND {_QUEUED} AND NOT EXISTS (SELECT 1 FROM turns WHERE item = inbox.id)",
            (
                inbound_json(arrival.inbound),
                arrival.inbound.source.platform,
                arrival.inbound.event_id,
                arrival.key.text,
            ),
        )
    )


def record_refused(connection: apsw.Connection, arrival: Arrival) -> bool:
    """Keep an event as refused; False: the event was known already."""
    return _insert(connection, arrival, attempts=0, outcome="refused") is not None


def _insert(
    connection: apsw.Connection, arrival: Arrival, *, attempts: int, outcome: ItemOutcome | None = None
) -> tuple[int, bool] | None:
    """Store an event that is new, and open the chat that it came from. Return its number, and whether the chat was
    closed. The gateway's own request says nothing of the chat."""
    chat, lane = chat_name(arrival.inbound.source.address), arrival.key.text
    row = one(
        connection,
        "INSERT INTO inbox(platform, event_id, key, inbound, accepted_at, bypass, attempts, outcome, ended_at)"
        " VALUES (?2,?3,?4,?5,?6,?7,?8,?9,?10) ON CONFLICT (platform, event_id) DO NOTHING"
        f" RETURNING id, {outbox.OF_CHAT}",
        (
            chat,
            arrival.inbound.source.platform,
            arrival.inbound.event_id,
            lane,
            inbound_json(arrival.inbound),
            arrival.at,
            arrival.bypass,
            attempts,
            outcome,
            None if outcome is None else arrival.at,
        ),
    )
    if row is None:
        return None
    number, is_closed, is_sent_to = row
    tells = (is_closed or is_sent_to) and not arrival.inbound.is_own_request
    return number, bool(tells and outbox.reopen(connection, chat))


def _length(connection: apsw.Connection, lane: str, cap: int) -> int:
    row = one(
        connection,
        f"SELECT count(*) FROM (SELECT 1 FROM inbox WHERE key = ? AND {_QUEUED} LIMIT ?)",
        (lane, cap),
    )
    assert row is not None
    return int(row[0])


def next_of_lane(connection: apsw.Connection, lane: str) -> InboxItem | None:
    """Claim the lane's oldest unfinished item."""
    row = one(connection, f"SELECT {_COLUMNS} FROM inbox WHERE key = ? AND {_QUEUED} ORDER BY id LIMIT 1", (lane,))
    return None if row is None else count_attempt(connection, item_from(row))


def count_attempt(connection: apsw.Connection, item: InboxItem, by: int = 1) -> InboxItem:
    """Add `by` to an item's attempts."""
    change(connection, "UPDATE inbox SET attempts = attempts + ? WHERE id = ?", (by, int(item.id)))
    return replace(item, attempts=item.attempts + by)


def count_anew(connection: apsw.Connection, item: InboxItem) -> None:
    """A step of the item is stored: this attempt is the first of those that count."""
    if item.attempts > 1:
        change(connection, "UPDATE inbox SET attempts = 1 WHERE id = ?", (int(item.id),))


def uncount(connection: apsw.Connection, items: Sequence[InboxItem]) -> None:
    """Take back claims that no worker was given."""
    for item in items:
        count_attempt(connection, item, -1)


def heard(connection: apsw.Connection, lane: str, limit: int) -> list[InboxItem]:
    """The lane's items, whatever became of them, newest first, without those that were erased whole. Each half of them
    has an index."""
    half = "SELECT id FROM (SELECT id FROM inbox WHERE key = ?1 AND outcome IS {} NULL ORDER BY id DESC LIMIT ?2)"
    rows = many(
        connection,
        f"SELECT {_COLUMNS} FROM inbox WHERE id IN ({half.format('NOT')} UNION ALL {half.format('')})"
        " ORDER BY id DESC LIMIT ?2",
        (lane, min(limit, MOST_HEARD)),
    )
    return [item_from(row) for row in rows if row[2] != ERASED]


def absorb(connection: apsw.Connection, item: InboxItem, absorbed: Sequence[str]) -> None:
    """Let queued items of its lane go into the turn of `item`; they will end with that item."""
    number = int(item.id)
    for other in absorbed:
        taken = change(
            connection,
            "UPDATE inbox SET absorbed_by = ? WHERE id = ? AND key = ? AND outcome IS NULL AND bypass = 0"
            " AND id <> ? AND coalesce(absorbed_by, ?) = ?",
            (number, int(other), item.key.text, number, number, number),
        )
        if not taken:
            raise SessionConflict(f"Item {other} does not wait in this lane any more.")


def end(connection: apsw.Connection, item: int, outcome: ItemOutcome, at: float) -> bool:
    """End an item and the items that it absorbed, and drop its signals. Say whether it left a journal. Raises
    SessionConflict if the item had ended before."""
    ended = many(
        connection,
        "UPDATE inbox SET outcome = iif(id = ?1, ?2, ?3), ended_at = ?4"
        " WHERE outcome IS NULL AND id IN (SELECT ?1 UNION ALL SELECT id FROM inbox WHERE outcome IS NULL"
        " AND absorbed_by = ?1) RETURNING id, EXISTS (SELECT 1 FROM signals WHERE item = ?1),"
        " EXISTS (SELECT 1 FROM turns WHERE item = ?1)",
        (item, outcome, ABSORBED, at),
    )
    for number, has_signals, has_journal in ended:
        if number == item:
            if has_signals:
                change(connection, "DELETE FROM signals WHERE item = ?", (item,))
            return bool(has_journal)
    raise SessionConflict(f"Item {item} has ended already.")


def unfinished(connection: apsw.Connection) -> tuple[list[InboxItem], list[InboxItem]]:
    """(queued, bypassed) items that an earlier process left, in the order of acceptance."""
    columns = f"SELECT bypass, {_COLUMNS} FROM inbox WHERE outcome IS NULL AND absorbed_by IS NULL ORDER BY id"
    queued: list[InboxItem] = []
    bypassed: list[InboxItem] = []
    for row in many(connection, columns):
        (bypassed if row[0] else queued).append(item_from(row[1:]))
    return queued, bypassed


def leave_signal(connection: apsw.Connection, item: InboxItem, kind: SignalKind, at: float) -> bool:
    """Leave a signal for an item, unless the item has ended. The same signal again changes nothing."""
    if one(connection, "SELECT 1 FROM inbox WHERE id = ? AND outcome IS NULL", (int(item.id),)) is None:
        return False
    change(connection, "INSERT OR IGNORE INTO signals(item, kind, at) VALUES (?,?,?)", (int(item.id), kind, at))
    return True


def signals(connection: apsw.Connection, item: InboxItem) -> tuple[SignalKind, ...]:
    """Signals left for an item, oldest first."""
    rows = many(connection, "SELECT kind FROM signals WHERE item = ? ORDER BY at, kind", (int(item.id),))
    return tuple([row[0] for row in rows]) if rows else ()


def fates(connection: apsw.Connection, name: str, platforms: Collection[str]) -> list[Fate]:
    """The items of this id, and of this event on the platforms, and what became of them."""
    number = int(name) if name.isdecimal() and int(name) < 1 << 63 else None
    rows = many(
        connection,
        f"SELECT {_COLUMNS}, outcome, ended_at, absorbed_by FROM inbox WHERE id = ?1 OR id IN (SELECT i.id FROM inbox i"
        " JOIN json_each(?2) p ON i.platform = p.value WHERE i.event_id = ?3) ORDER BY id",
        (number, json.dumps([*platforms]), name),
    )
    return [
        Fate(item=item_from(row), outcome=outcome, ended_at=ended, absorbed_by=None if by is None else str(by))
        for *row, outcome, ended, by in rows
    ]


def dead(connection: apsw.Connection, limit: int) -> list[InboxItem]:
    """The items that were given up, newest first."""
    rows = many(connection, f"SELECT {_COLUMNS} FROM inbox WHERE outcome = 'dead' ORDER BY id DESC LIMIT ?", (limit,))
    return [item_from(row) for row in rows]


def bury(connection: apsw.Connection, item: InboxItem) -> bool:
    """Take an item off the dead ones, and say whether it was one."""
    return bool(
        change(connection, "UPDATE inbox SET outcome = 'withdrawn' WHERE id = ? AND outcome = 'dead'", (int(item.id),))
    )
