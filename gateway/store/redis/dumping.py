"""A store's facts out of its partitions, merged into one order.

Each partition numbers what it stores; sessions, rows, hooks and items of all partitions are merged by
these numbers. Events are kept without an order: the ids of all items are read first and sorted, eight
bytes for each, which is all that grows with the store.
"""

from __future__ import annotations

import asyncio
import json
from array import array
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from heapq import heapify, heappop, heappush, merge
from itertools import islice, repeat
from typing import Any, Final, TypeVar

from gateway.domain.chat import SessionKey
from gateway.domain.session import Session
from gateway.domain.usage import LedgerEntry
from gateway.runtime.errors import StoreError
from gateway.store.moved import (
    PAGE,
    MovedCall,
    MovedCompaction,
    MovedHook,
    MovedItem,
    MovedMessage,
    MovedReference,
    MovedRow,
    MovedSession,
    MovedTurn,
    Record,
)
from gateway.store.redis.arguments import listed
from gateway.store.redis.codec import (
    approvals_from,
    compaction_from,
    message_from,
    pairs,
    row_from,
    session_from,
)
from gateway.store.redis.dumping_named import named_facts
from gateway.store.redis.endpoint import Endpoint
from gateway.store.redis.keyspace import keys
from gateway.store.redis.partitions import PARTITIONS, partition_of_key
from gateway.store.redis.reading import EVERYWHERE
from gateway.store.redis.wire import Wire
from gateway.store.shared.documents import intents_from, storable
from gateway.store.shared.fields import USAGE

_ROUND: Final = 200  # things asked for at a time, of one partition or of all

T = TypeVar("T")

Place = tuple[int, str]  # a partition and an id in it
Event = tuple[str, str]  # its platform and its id
Numbered = tuple[int, str, float]  # the same, and the number that it is sorted by


async def dump(endpoint: Endpoint, wire: Wire, now: float) -> AsyncGenerator[Sequence[Record], None]:
    """All records in pages. Nothing may write to the store meanwhile."""
    async for sessions in _paged(_merged(wire, "sessions")):
        page: list[Record] = []
        opened: list[Session] = []
        compactions: list[Record] = []
        for fields, is_tip, documents in await _looks(wire, "dump_sessions", _places(sessions)):
            session = session_from(fields)
            opened.append(session)
            page.append(MovedSession(session=session, is_tip=bool(is_tip)))
            runs = (compaction_from(document) for document in documents)
            # Each is kept with its parent and with its child.
            compactions += [
                MovedCompaction(key=session.key, compaction=run) for run in runs if run.parent_id == session.id
            ]
        yield page
        async for messages in _transcripts(wire, opened):
            yield messages
        yield compactions
    async for hooks in _paged(_merged(wire, "hooks")):
        found = await wire.ask_all((place, ("HGET", f"session:{session_id}", "key")) for place, session_id, _ in hooks)
        yield [
            MovedHook(key=SessionKey.parse(key), session_id=session_id)
            for key, (_, session_id, _) in zip(found, hooks, strict=True)
        ]
    async for items in _items(endpoint, wire):
        yield items
    async for rows in _paged(_merged(wire, "rows")):
        yield [_row(fields, first) for fields, first in await _looks(wire, "dump_rows", _places(rows))]
    async for calls in _paged(_merged(wire, "ledger")):
        yield await _calls(wire, calls)
    async for named in named_facts(endpoint, wire, now):
        yield named


# -- transcripts --------------------------------------------------------------------------------


async def _transcripts(wire: Wire, sessions: Iterable[Session]) -> AsyncIterator[list[Record]]:
    """A message where it was first stored, and every reference."""
    parts: list[tuple[Session, int, int]] = []
    size = 0
    for session in sessions:
        for first in range(0, session.message_count, PAGE // 2):
            length = min(PAGE // 2, session.message_count - first)
            if size + length > PAGE // 2:  # of each message there may be two records
                yield await _parts(wire, parts)
                parts, size = [], 0
            parts.append((session, first, length))
            size += length
    yield await _parts(wire, parts)


async def _parts(wire: Wire, parts: Sequence[tuple[Session, int, int]]) -> list[Record]:
    looks = (
        wire.look(partition_of_key(session.key), "transcript", session.id, str(first), str(length))
        for session, first, length in parts
    )
    found = await asyncio.gather(*looks)
    return [
        record
        for (session, _, _), flat in zip(parts, found, strict=True)
        for message_id, text in zip(flat[::2], flat[1::2], strict=True)
        for record in _place(session, message_id, text)
    ]


def _place(session: Session, message_id: str, text: str | None) -> list[Record]:
    reference = MovedReference(key=session.key, session_id=session.id, message_id=message_id)
    if text is None:
        raise StoreError(
            f"The store is damaged: message {message_id} of session {session.id} is missing; "
            "restore a backup, then migrate that."
        )
    message, document = message_from(message_id, text)
    if document["s"] != session.id:
        return [reference]
    home = MovedMessage(key=SessionKey.parse(document["k"]), session_id=session.id, message=message)
    return [home, reference]


# -- items --------------------------------------------------------------------------------------


async def _items(endpoint: Endpoint, wire: Wire) -> AsyncIterator[list[Record]]:
    """Items of all partitions by their number. Two partitions may have given the same one: the later
    is then known by the next that is free, so that ids are unique and stay in order."""
    numbers = await _item_numbers(endpoint, wire)
    ordered = merge(*(zip(each, repeat(partition), strict=False) for partition, each in enumerate(numbers)))
    renamed: dict[Place, str] = {}
    last = 0
    while some := list(islice(ordered, _ROUND)):
        places = [(partition, str(number)) for number, partition in some]
        for place in places:
            last = max(int(place[1]), last + 1)
            if str(last) != place[1]:
                renamed[place] = str(last)
        found = await _looks(wire, "dump_items", places)
        facts = [pairs(each[0]) for each in found]
        events = [_event_in(each["inbound"]) for each in facts]
        damaged = {place for place, event in zip(places, events, strict=True) if event is None}
        known = await _events_of(endpoint, wire, damaged) if damaged else {}
        yield [
            _item(place, renamed, event or known[place], fields, *each[1:])
            for place, event, fields, each in zip(places, events, facts, found, strict=True)
        ]


async def _item_numbers(endpoint: Endpoint, wire: Wire) -> list[array[int]]:
    """The numbers of each partition's items, rising."""
    numbers = [array("Q") for _ in range(PARTITIONS)]
    async for partition, _, flat in _events(endpoint, wire):
        numbers[partition].extend(map(int, flat[1::2]))
    return [array("Q", sorted(set(each))) for each in numbers]


async def _events(endpoint: Endpoint, wire: Wire) -> AsyncIterator[tuple[int, str, list[str]]]:
    """(partition, platform, events and items in turn) in pages."""
    async for name in keys(endpoint, "{p??}:events:*"):
        partition, key = int(name[2:4]), name.partition(":")[2]
        cursor = "0"
        while True:
            cursor, flat = await wire.ask(partition, "HSCAN", key, cursor, "COUNT", str(PAGE))
            yield partition, key.partition(":")[2], flat
            if cursor == "0":
                break


def _event_in(document: str) -> Event | None:
    """What event a document is about, unless it is damaged."""
    try:
        data = json.loads(document)
        return storable(data["source"]["platform"]), storable(data["event_id"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


async def _events_of(endpoint: Endpoint, wire: Wire, damaged: set[Place]) -> dict[Place, Event]:
    """The events of items whose documents do not say."""
    return {
        (partition, number): (platform, event)
        async for partition, platform, flat in _events(endpoint, wire)
        for event, number in zip(flat[::2], flat[1::2], strict=True)
        if (partition, number) in damaged
    }


def _item(
    place: Place,
    renamed: dict[Place, str],
    event: Event,
    facts: dict[str, Any],
    turn: list[str],
    signals: list[str],
    waits: int,
) -> MovedItem:
    partition, number = place
    if not waits:
        raise StoreError(f"The store is damaged: message {number} of {facts['key']} waits in no lane.")
    absorber = facts.get("absorbed_by")
    journal = pairs(turn)
    left: dict[Any, str] = pairs(signals)
    return MovedItem(
        number=renamed.get(place, number),
        key=SessionKey.parse(facts["key"]),
        platform=event[0],
        event_id=event[1],
        document=facts["inbound"],
        accepted_at=float(facts["at"]),
        attempts=int(facts["attempts"]),
        bypass="bypass" in facts,
        absorbed_by=None if absorber is None else renamed.get((partition, absorber), absorber),
        outcome=facts.get("outcome"),
        ended_at=float(facts["ended_at"]) if "ended_at" in facts else None,
        turn=_turn(journal, renamed.get(place, number)) if journal else None,
        signals=tuple(sorted(((kind, float(at)) for kind, at in left.items()), key=lambda each: (each[1], each[0]))),
    )


def _turn(journal: dict[str, str], item: str) -> MovedTurn:
    return MovedTurn(
        session_id=journal.get("session"),
        steps=int(journal.get("steps", 0)),
        intents=intents_from(journal.get("intents", "[]")),
        reply_id=journal.get("reply"),
        approvals=approvals_from(journal, item),
    )


# -- rows and calls -----------------------------------------------------------------------------


def _row(fields: list[str], first: str) -> MovedRow:
    facts = pairs(fields)
    if facts["state"] == "sending" and "confirmed" in facts:
        # Its first sender knows that it was shown; a gateway that looked at it would say so, too.
        fields = [*fields, "state", "sent"]
    return MovedRow(row=row_from(fields), stands_for=first)


async def _calls(wire: Wire, calls: Sequence[Numbered]) -> list[Record]:
    documents = [(place, at, json.loads(text.partition("|")[2])) for place, text, at in calls]
    sessions = list(dict.fromkeys((place, document["session"]) for place, _, document in documents))
    found = await wire.ask_all((place, ("HGET", f"session:{session_id}", "key")) for place, session_id in sessions)
    keys_of = dict(zip(sessions, found, strict=True))
    return [_call(keys_of[place, document["session"]], at, document) for place, at, document in documents]


def _call(key: str | None, at: float, document: dict[str, Any]) -> MovedCall:
    if key is None:
        raise StoreError(f"The store is damaged: session {document['session']} has used tokens and is missing.")
    cost = document["cost"]
    entry = LedgerEntry(
        at=at,
        purpose=document["purpose"],
        provider=document["provider"],
        model=document["model"],
        usage=USAGE.of_row(document["usage"]),
        cost_usd=None if cost is None else float(cost),
    )
    return MovedCall(key=SessionKey.parse(key), session_id=document["session"], entry=entry)


# -- many partitions ----------------------------------------------------------------------------


async def _merged(wire: Wire, name: str) -> AsyncIterator[Numbered]:
    """What is in the sorted sets of this name, lowest number first."""
    pages = await asyncio.gather(*(_page(wire, partition, name, 0) for partition in EVERYWHERE))
    heap = [(*page[0], partition, 0) for partition, page in enumerate(pages) if page]
    heapify(heap)
    while heap:
        score, member, partition, rank = heappop(heap)
        yield partition, member, score
        rank += 1
        if rank % _ROUND == 0:
            pages[partition] = await _page(wire, partition, name, rank)
        if rank % _ROUND < len(pages[partition]):
            heappush(heap, (*pages[partition][rank % _ROUND], partition, rank))


async def _page(wire: Wire, partition: int, name: str, first: int) -> list[tuple[float, str]]:
    flat = await wire.ask(partition, "ZRANGE", name, str(first), str(first + _ROUND - 1), "WITHSCORES")
    return [(float(score), member) for member, score in zip(flat[::2], flat[1::2], strict=True)]


async def _paged(stream: AsyncIterator[T]) -> AsyncIterator[list[T]]:
    page: list[T] = []
    async for each in stream:
        page.append(each)
        if len(page) == _ROUND:
            yield page
            page = []
    if page:
        yield page


async def _looks(wire: Wire, script: str, places: Sequence[Place]) -> list[Any]:
    """What a script says about things in several partitions, in their order."""
    of: dict[int, list[str]] = {}
    for partition, name in places:
        of.setdefault(partition, []).append(name)
    replies = await asyncio.gather(*(wire.look(partition, script, *listed(names)) for partition, names in of.items()))
    answers = {partition: iter(reply) for partition, reply in zip(of, replies, strict=True)}
    return [next(answers[partition]) for partition, _ in places]


def _places(numbered: Iterable[Numbered]) -> list[Place]:
    return [(partition, name) for partition, name, _ in numbered]
