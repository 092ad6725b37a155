"""Queries over many facts: transcripts, and lists, totals and figures for people, which may lag behind.

A list over all chats asks each partition and merges the answers by the partitions' numbers, which are near the
server's microseconds.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from math import ceil
from typing import Any, Final, TypeAlias

from msgspec import Struct

from gateway.domain.chat import ChatAddress, Outbound, OutboundState, SessionKey
from gateway.domain.message import Message
from gateway.domain.session import Session
from gateway.domain.usage import CanonicalUsage, LedgerEntry, UsageTotal
from gateway.domain.wording import utc
from gateway.store.records import (
    MOST_HEARD,
    Backlog,
    Beginning,
    Call,
    Fate,
    Found,
    InboxItem,
    Named,
    Pile,
    SignalKind,
    StoreStatus,
    TurnJournal,
    UsageBy,
)
from gateway.store.redis import searching
from gateway.store.redis.codec import (
    approvals_from,
    document_in,
    message_from,
    messages_from,
    number,
    pairs,
    row_from,
    session_from,
)
from gateway.store.redis.partitions import EVERYWHERE, Places, address_name, partition_of, partition_of_key
from gateway.store.redis.wire import Wire
from gateway.store.shared.documents import ERASED, intents_from, item_from
from gateway.store.shared.fields import USAGE
from gateway.store.shared.platforms import Platforms, chat_name
from gateway.store.shared.transcripts import size_stored

_DAY: Final = 86_400
_LATE: Final = 3_600  # seconds after a day by which all its calls are entered
_PAGE: Final = 1_000  # messages, rows or ledger entries read at a time
_LOOKED_AT: Final = 50  # lanes, chats and rows of a platform in a partition, for their ages


async def signals(wire: Wire, item: InboxItem) -> tuple[SignalKind, ...]:
    """Signals left for an item, oldest first."""
    flat = await wire.ask(partition_of_key(item.key), "HGETALL", f"signals:{item.id}")
    left: dict[Any, str] = pairs(flat)
    return tuple(sorted(left, key=lambda kind: (float(left[kind]), kind)))


def beginning_from(item: InboxItem, places: Places, facts: Sequence[Any]) -> Beginning:
    """What an item's turn begins with, as the scripts give it."""
    turn, row, fields, reminders = facts
    tip = session_from(fields) if fields else None
    if tip is not None:
        places.note(tip.id, partition_of_key(item.key))
    return Beginning(_journal_from(item, turn, row) if turn else None, tip, bool(reminders))


def _journal_from(item: InboxItem, turn: Sequence[str], row: Sequence[str]) -> TurnJournal:
    """The progress of an unfinished item, and the row of its reply, if there is one."""
    facts = pairs(turn)
    reply = row_from(row) if row else None
    return TurnJournal(
        session_id=facts.get("session") or (reply and reply.session_id) or "",
        steps=int(facts.get("steps", 0)),
        intents=intents_from(facts.get("intents", "[]")),
        reply=reply,
        approvals=approvals_from(facts, item.id),
    )


async def transcript_from(
    wire: Wire, session: Session, known: tuple[Message, ...]
) -> tuple[tuple[Message, ...], int | None]:
    """A whole transcript, whose beginning is known, and the bytes of memory that it takes, if nothing was known."""
    partition, size = partition_of_key(session.key), None if known else 0
    while len(known) < session.message_count:
        flat = await wire.look(partition, "transcript", session.id, str(len(known)), str(_PAGE))
        if not flat:
            break
        known = (*known, *messages_from(zip(flat[::2], flat[1::2], strict=True)))
        size = None if size is None else size + size_stored(flat[1::2])
    return known, size


async def sessions(wire: Wire, key: SessionKey | None, limit: int, offset: int = 0) -> list[Session]:
    """A key's sessions, newest first. `key` None: all sessions, which costs `offset + limit` short answers from each
    partition."""
    if key is None:
        return await _sessions(wire, (await _newest(wire, "sessions", offset + limit))[offset:])
    partition = partition_of_key(key)
    ids = await wire.ask(partition, "LRANGE", f"sessions:{key}", str(offset), str(offset + limit - 1))
    return await _sessions(wire, [(partition, session_id) for session_id in ids])


async def conversations(wire: Wire, chat: SessionKey, limit: int) -> list[SessionKey]:
    """The keys with sessions of a chat, its threads among them, newest first."""
    partition, found, begin = partition_of_key(chat), dict[str, SessionKey](), 0
    while ids := await wire.ask(partition, "ZREVRANGE", "sessions", str(begin), str(begin + _PAGE - 1)):
        for text in await wire.ask_all((partition, ("HGET", f"session:{each}", "key")) for each in ids):
            if text == chat.text or (text or "").startswith(f"{chat}/thread="):
                found.setdefault(text, SessionKey.parse(text))
        begin += len(ids)
    return [key for key in found.values() if key.helper is None][:limit]


async def rows(
    wire: Wire, address: ChatAddress | None, limit: int, states: Collection[OutboundState] = ()
) -> list[Outbound]:
    """Rows of an address (None: of all), newest first; only those in one of these states, if any is given."""
    found: list[Outbound] = []
    seen, most = 0, limit if not states else max(limit, _PAGE)
    while len(found) < limit:
        places = await _places_of_rows(wire, address, most)
        fresh = [row_from(fields) for fields in await _hashes(wire, "row", places[seen:])]
        found += [row for row in fresh if not states or row.state in states]
        if len(places) < most or not states:
            break
        seen, most = most, 2 * most
    return found[:limit]


async def _places_of_rows(wire: Wire, address: ChatAddress | None, limit: int) -> list[tuple[int, str]]:
    """(partition, id) of the newest rows."""
    if address is None:
        return await _newest(wire, "rows", limit)
    partition = partition_of(address.platform, address.chat)
    ids = await wire.ask(partition, "ZREVRANGE", f"rows:{address_name(address)}", "0", str(limit - 1))
    return [(partition, row_id) for row_id in ids]


async def rows_of_chat(wire: Wire, chat: ChatAddress, row_ids: Sequence[str]) -> list[Outbound]:
    """The rows of these ids that are of a chat."""
    partition = partition_of(chat.platform, chat.chat)
    found = map(row_from, await _hashes(wire, "row", [(partition, row_id) for row_id in row_ids]))
    return [row for row in found if chat_name(row.to) == chat_name(chat)]


async def status(wire: Wire, platforms: Platforms, old: Collection[int]) -> StoreStatus:
    """Counts over everything, which the scripts keep; waiting items and unsent rows only of these platforms. `old`: the
    partitions whose search entries another version made."""
    totals: Counter[str] = Counter()
    for flat in await wire.ask_all((each, ("HGETALL", "figures")) for each in EVERYWHERE):
        for name, value in pairs(flat).items():
            what, _, platform = name.partition(":")
            if not platform or platforms.has_chat_of(platform):
                totals[what] += int(value)
    known = await wire.ask_all((each, ("ZCARD", "sessions")) for each in EVERYWHERE)
    return StoreStatus(
        waiting=totals["waiting"],
        unsent=totals["unsent"],
        dead=totals["dead"],
        sessions=sum(known),
        unindexed=await searching.left(wire, old),
    )


async def backlog(wire: Wire) -> Backlog:
    """What waits, over all platforms. A reply that streams counts as a row that waits for its turn."""
    waiting, idle, unsent = dict[str, Pile](), dict[str, float](), dict[tuple[str, str], Pile]()
    dead = 0
    for given_up, *platforms in await wire.look_everywhere("backlog", str(_LOOKED_AT)):
        dead += int(given_up)
        for platform, items, oldest, untouched, rows, sending, made in platforms:
            waiting[platform] = _heaped(waiting.get(platform), int(items), oldest)
            if untouched:
                idle[platform] = min(idle.get(platform, float(untouched)), float(untouched))
            busy = int(sending)
            for state, count in ((OutboundState.SENDING, busy), (OutboundState.PENDING, max(0, int(rows) - busy))):
                unsent[platform, state] = _heaped(unsent.get((platform, state)), count, made if count else "")
    return Backlog(
        waiting={platform: pile for platform, pile in waiting.items() if pile.count},
        idle=idle,
        unsent={place: pile for place, pile in unsent.items() if pile.count},
        dead=dead,
    )


def _heaped(pile: Pile | None, count: int, oldest: str) -> Pile:
    """A pile and what one more partition has."""
    pile = pile or Pile()
    since = [each for each in (pile.oldest, float(oldest) if oldest else None) if each is not None]
    return Pile(count=pile.count + count, oldest=min(since, default=None))


async def heard(wire: Wire, key: SessionKey, limit: int) -> list[InboxItem]:
    """A key's items, whatever became of them, newest first, without those that were erased whole."""
    partition = partition_of_key(key)
    ids = await wire.ask(partition, "LRANGE", f"heard:{key}", str(-min(limit, MOST_HEARD)), "-1")
    return await _items(wire, [(partition, item) for item in reversed(ids)], erased=False)


async def _items(wire: Wire, places: Sequence[tuple[int, str]], *, erased: bool) -> list[InboxItem]:
    asked = [(where, ("HMGET", f"item:{item}", "key", "inbound", "at", "attempts")) for where, item in places]
    found = zip(places, await wire.ask_all(asked), strict=True)
    return [item_from((item, *facts)) for (_, item), facts in found if erased or facts[1] != ERASED]


async def dead(wire: Wire, limit: int) -> list[InboxItem]:
    """The items that were given up, newest first."""
    lists = await wire.ask_all((each, ("LRANGE", "dead", str(-limit), "-1")) for each in EVERYWHERE)
    newest = sorted(((int(item), where) for where, items in enumerate(lists) for item in items), reverse=True)[:limit]
    return await _items(wire, [(where, str(item)) for item, where in newest], erased=True)


async def usage(
    wire: Wire, partitions: Iterable[int], since: float, by: UsageBy, session_id: str | None, key: SessionKey | None
) -> list[UsageTotal]:
    """Ledger totals from `since` on, most expensive first; every entry in question is read."""
    totals: dict[str, UsageTotal] = {}
    name = "ledger" if key is None else f"ledger:{key}"
    for partition in partitions:
        async for entry in _ledger(wire, partition, name, since):
            if session_id is None or entry["session"] == session_id:
                # An earlier release noted no keys.
                label = utc(entry["at"])[:10] if by == "day" else entry.get(by, "")
                totals[label] = _with(totals.get(label), label, entry)
    return _dearest_first(totals)


Sums: TypeAlias = dict[tuple[int, str, str, str], UsageTotal]
"""What the model calls of a day, platform, purpose and model came to."""


class DaySums(Struct):
    """The sums of days that are over, as this process once read them: the first of these days, the one after the last,
    and the sums."""

    kept: tuple[int, int, Sums] = (0, 0, {})

    async def usage(self, wire: Wire, since: float, by: UsageBy, now: float) -> list[UsageTotal]:
        """The totals of everybody's calls from `since` on, most expensive first."""
        first = ceil(since / _DAY)  # the first day of which all calls count
        begin, end, sums = self.kept if self.kept[0] <= first <= self.kept[1] else (first, first, {})
        part = await _day_sums(wire, since, f"({first * _DAY}") if since < first * _DAY else {}
        news = await _day_sums(wire, end * _DAY, "+inf")
        over = max(end, int((now - _LATE) // _DAY))
        self.kept = begin, over, sums | {each: total for each, total in news.items() if each[0] < over}
        whole = {each: total for each, total in (sums | news).items() if each[0] >= first}
        totals = dict[str, UsageTotal]()
        for (day, platform, purpose, model), total in (part | whole).items():
            label = {"platform": platform, "purpose": purpose, "model": model}.get(by, utc(day * _DAY)[:10])
            totals[label] = totals.get(label, UsageTotal(label=label)) + total
        return _dearest_first(totals)


async def _day_sums(wire: Wire, since: float, until: str) -> Sums:
    """The sums of the calls between two moments, as Redis names them."""
    sums: Sums = {}

    async def read(partition: int) -> None:
        passed, count = 0, _PAGE
        while count == _PAGE:
            count, *page = await wire.look(partition, "day_sums", number(since), until, str(passed), str(_PAGE))
            passed += count
            for day, platform, purpose, model, calls, *used, cost, unpriced in page:
                total = UsageTotal(
                    calls=int(calls),
                    usage=USAGE.of_row([int(each) for each in used]),
                    cost_usd=float(cost),
                    unpriced_calls=int(unpriced),
                )
                what = (int(day), platform, purpose, model)
                sums[what] = sums.get(what, UsageTotal()) + total

    await asyncio.gather(*map(read, EVERYWHERE))
    return sums


def _dearest_first(totals: Mapping[str, UsageTotal]) -> list[UsageTotal]:
    return sorted(
        totals.values(), key=lambda t: (-t.cost_usd, -(t.usage.input_tokens + t.usage.output_tokens), t.label)
    )


def _with(total: UsageTotal | None, label: str, entry: dict[str, Any]) -> UsageTotal:
    """A total and one more call."""
    total = total or UsageTotal(label=label, calls=0, usage=CanonicalUsage(), cost_usd=0.0, unpriced_calls=0)
    return UsageTotal(
        label=label,
        calls=total.calls + 1,
        usage=total.usage + USAGE.of_row(entry["usage"]),
        cost_usd=total.cost_usd + (entry["cost"] or 0.0),
        unpriced_calls=total.unpriced_calls + (entry["cost"] is None),
    )


async def calls(wire: Wire, key: SessionKey, since: float, until: float) -> list[Call]:
    """The model calls of a key between two moments, oldest first."""
    reached = (number(since), number(until))
    flat = await wire.ask(partition_of_key(key), "ZRANGEBYSCORE", f"ledger:{key}", *reached, "WITHSCORES")
    entries = [(json.loads(document_in(text)), float(at)) for text, at in zip(flat[::2], flat[1::2], strict=True)]
    return [
        Call(
            session_id=entry["session"],
            entry=LedgerEntry(
                at=at,
                purpose=entry["purpose"],
                provider=entry["provider"],
                model=entry["model"],
                usage=USAGE.of_row(entry["usage"]),
                cost_usd=entry["cost"],
            ),
        )
        for entry, at in entries
    ]


async def named(wire: Wire, name: str, platforms: Collection[str]) -> Named:
    """Items, a message and a row that have this name; each partition is asked."""
    events = await wire.ask_all(
        (each, ("HGET", f"events:{platform}", name)) for platform in platforms for each in EVERYWHERE
    )
    ids = {name, *filter(None, events)}
    texts = await wire.ask_all((each, ("GET", f"message:{name}")) for each in EVERYWHERE)
    rows = await _hashes(wire, "row", [(each, name) for each in EVERYWHERE])
    found = [message_from(name, text) for text in texts if text]
    message = found[0] if found else None
    return Named(
        fates=tuple([fate for each in sorted(ids) for fate in await _fates(wire, each)]),
        message=message and Found(session_id=message[1]["s"], message=message[0], at=message[1]["at"]),
        row=row_from(rows[0]) if rows else None,
    )


async def _fates(wire: Wire, item: str) -> list[Fate]:
    asked = ("HMGET", f"item:{item}", "key", "inbound", "at", "attempts", "outcome", "ended_at", "absorbed_by")
    found = await wire.ask_all((each, asked) for each in EVERYWHERE)
    return [
        Fate(
            item=item_from((item, *facts[:4])),
            outcome=facts[4] or None,
            ended_at=float(facts[5]) if facts[5] else None,
            absorbed_by=facts[6] or None,
        )
        for facts in found
        if facts[0]
    ]


async def _ledger(wire: Wire, partition: int, name: str, since: float) -> AsyncIterator[dict[str, Any]]:
    first = 0
    while True:
        reached = (number(since), "+inf", "WITHSCORES", "LIMIT", str(first), str(_PAGE))
        page = await wire.ask(partition, "ZRANGEBYSCORE", name, *reached)
        for text, at in zip(page[::2], page[1::2], strict=True):
            yield {**json.loads(document_in(text)), "at": float(at)}
        if len(page) < 2 * _PAGE:
            return
        first += _PAGE


async def _newest(wire: Wire, name: str, limit: int) -> list[tuple[int, str]]:
    """(partition, member) of the highest numbers in the sorted sets of this name."""
    if limit < 1:
        return []
    commands = ((each, ("ZREVRANGE", name, "0", str(limit - 1), "WITHSCORES")) for each in EVERYWHERE)
    numbered = [
        (float(score), partition, member)
        for partition, flat in enumerate(await wire.ask_all(commands))
        for member, score in zip(flat[::2], flat[1::2], strict=True)
    ]
    return [(partition, member) for _, partition, member in sorted(numbered, reverse=True)[:limit]]


async def _sessions(wire: Wire, places: Sequence[tuple[int, str]]) -> list[Session]:
    return [session_from(fields) for fields in await _hashes(wire, "session", places)]


async def _hashes(wire: Wire, what: str, places: Sequence[tuple[int, str]]) -> list[list[str]]:
    """The fields of the hashes at these places, in their order."""
    found = await wire.ask_all((where, ("HGETALL", f"{what}:{name}")) for where, name in places)
    return [fields for fields in found if fields]
