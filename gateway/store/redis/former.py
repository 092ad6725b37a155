"""Databases of the layout before there were records of kinds: their facts. Nobody writes this layout any more.

Partitions number what they store; sessions, rows, hooks and calls of all partitions are merged by these
numbers. Events are kept without an order: the ids of all items are read first and sorted, eight bytes for
each; so are the ids of all messages, which get other ones.
"""

from __future__ import annotations

import json
import re
from array import array
from base64 import b64decode
from bisect import bisect_left
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush, merge
from itertools import count, islice, repeat
from typing import Any, Final

from msgspec.structs import asdict

from gateway.domain.chat import PLACED
from gateway.domain.chat import OutboundState as State
from gateway.runtime.errors import StoreError
from gateway.store.redis.endpoint import Endpoint
from gateway.store.redis.keyspace import keys
from gateway.store.redis.partitions import PARTITIONS, partition_of_name
from gateway.store.redis.wire import Wire
from gateway.store.shared.documents import dumps, file_from, storable
from gateway.store.shared.facts import FIELDS, PAGE, Record, lost
from gateway.store.shared.fields import USAGE

Place = tuple[int, str, float]  # a partition, a name in it, and the number that it is sorted by there
Hash = dict[str, str]

_ROUND: Final = 200  # things asked for at a time, of one partition or of all
_SAID: Final = 500  # messages asked for at a time: of each there may be two records
_GUEST_BOOK: Final = "guest_book"  # the folder whose key has no `notes:` before it: early versions made it so
_MESSAGE_ID: Final = re.compile(r"(?<![^\"])([0-9]+)p([0-9]{2})(?![^\"])")  # all of a text, or of a text within JSON


def pairs(flat: Sequence[str]) -> Hash:
    """Names and values in turn, as a mapping."""
    return dict(zip(flat[::2], flat[1::2], strict=True))


class Numbers:
    """The numbers that messages get for their ids: `<number>p<partition>` as their partition gave them, or a number
    alone that came from a SQLite file and stays."""

    def __init__(self, ids: Iterable[str]) -> None:
        self._given = [array("Q") for _ in range(PARTITIONS)]
        highest = 0
        for each in ids:
            number, at, partition = each.partition("p")
            if at:
                self._given[int(partition)].append(int(number))
            else:
                highest = max(highest, int(number))
        self._given = [array("Q", sorted(set(numbers))) for numbers in self._given]
        self._ranks = [array("Q", bytes(8 * len(numbers))) for numbers in self._given]
        ordered = merge(*(zip(numbers, repeat(at), count()) for at, numbers in enumerate(self._given)))
        for rank, (_, there, place) in enumerate(ordered, highest // PARTITIONS + 1):
            self._ranks[there][place] = rank

    def within(self, text: str) -> str:
        """A text, or JSON, in which the ids of messages are their numbers."""
        return _MESSAGE_ID.sub(self._new, text)

    def _new(self, found: re.Match[str]) -> str:
        number, partition = int(found[1]), int(found[2])
        given = self._given[partition] if partition < PARTITIONS else ()
        place = bisect_left(given, number)
        if place == len(given) or given[place] != number:
            return found[0]
        return str(self._ranks[partition][place] * PARTITIONS + partition)


class Reading:
    """Reads a store that nobody writes to."""

    def __init__(self, endpoint: Endpoint, wire: Wire) -> None:
        self._endpoint = endpoint
        self._wire = wire
        self._numbers = Numbers(())

    async def pages(self) -> AsyncGenerator[Sequence[Record], None]:
        """All records."""
        found = [name async for name in keys(self._endpoint, "{p??}:message:*")]
        self._numbers = Numbers(name.split(":", 2)[2] for name in found)
        kinds = (
            self._sessions,
            self._hooks,
            self._items,
            self._rows,
            self._calls,
            self._spending,
            self._pins,
            self._forgotten,
        )
        kept = (self._memory, self._memory_counters, self._reminders, self._files, self._notes)
        for records in (*kinds, *kept, self._chats):
            async for page in records():
                if page:
                    yield page

    # -- sessions ---------------------------------------------------------------------------

    async def _sessions(self) -> AsyncIterator[list[Record]]:
        async for places in self._merged("sessions"):
            sessions = await self._hashes("session", places)
            owners = [(at, session["key"], 0.0) for (at, _, _), session in zip(places, sessions, strict=True)]
            tips = await self._of(owners, "GET", "tip")
            yield [
                Record("sessions", {**self._session(session), "is_tip": int(tip == session["id"])})
                for session, tip in zip(sessions, tips, strict=True)
            ]
            async for page in self._transcripts(places, sessions):
                yield page
            runs = await self._of(places, "LRANGE", "compactions", "0", "-1")
            yield [
                Record("compactions", run)
                for session, documents in zip(sessions, runs, strict=True)
                for run in map(json.loads, documents)
                if run["parent_id"] == session["id"]  # its child has it, too
            ]

    def _session(self, session: Hash) -> Mapping[str, Any]:
        state = session.get("engine_state")
        return {**session, "engine_state": state and self._numbers.within(state)}

    async def _transcripts(self, places: Sequence[Place], sessions: Sequence[Hash]) -> AsyncIterator[list[Record]]:
        """Each place, and the message where it was first stored."""
        members = await self._of(places, "LRANGE", "transcript", "0", "-1")
        flat = [
            (partition, session, position, message_id)
            for (partition, _, _), session, ids in zip(places, sessions, members, strict=True)
            for position, message_id in enumerate(ids[: int(session["message_count"])])
        ]
        for start in range(0, len(flat), _SAID):
            some = flat[start : start + _SAID]
            texts = await self._of([(partition, name, 0.0) for partition, _, _, name in some], "GET", "message")
            yield [
                record
                for (_, session, position, name), text in zip(some, texts, strict=True)
                for record in self._said(session, position, name, text)
            ]

    def _said(self, session: Hash, position: int, name: str, text: str | None) -> list[Record]:
        if text is None:
            raise lost(name, session["id"])
        tokens, _, document = text.partition("|")
        data = json.loads(document)
        number = self._numbers.within(name)
        place = {"session_id": session["id"], "key": session["key"], "position": position, "message_id": number}
        if data["s"] != session["id"]:
            return [Record("transcripts", place)]
        message = {
            "id": number,
            "key": data["k"],
            "session_id": data["s"],
            "role": data["b"]["role"],
            "body": dumps(data["b"]),
            "note": self._numbers.within(dumps(data["n"])) if data["n"] else None,
            "tokens": int(tokens) if tokens else None,
            "at": float(data["at"]),
        }
        return [Record("messages", message), Record("transcripts", place)]

    async def _hooks(self) -> AsyncIterator[list[Record]]:
        async for places in self._merged("hooks"):
            found = await self._of(places, "HGET", "session", "key")
            yield [
                Record("hooks", {"session_id": name, "key": key})
                for (_, name, _), key in zip(places, found, strict=True)
            ]

    # -- items ------------------------------------------------------------------------------

    async def _items(self) -> AsyncIterator[list[Record]]:
        """Items of all partitions by their number. Two partitions may have given the same one: the later is then
        known by the next that is free, so that ids are unique and stay in order."""
        numbers = [array("Q") for _ in range(PARTITIONS)]
        async for partition, _, events in self._events():
            numbers[partition].extend(map(int, events.values()))
        rising = (array("Q", sorted(set(numbers.pop(0)))) for _ in range(PARTITIONS))
        ordered = merge(*(zip(each, repeat(partition), strict=False) for partition, each in enumerate(rising)))
        renamed: dict[tuple[int, str], int] = {}
        last = 0
        while places := [(partition, str(number), number) for number, partition in islice(ordered, _ROUND)]:
            for partition, name, number in places:
                last = max(number, last + 1)
                if last != number:
                    renamed[partition, name] = last
            yield await self._round(places, renamed)

    async def _events(self) -> AsyncIterator[tuple[int, str, Hash]]:
        """(partition, platform, items by their events) in pages."""
        async for places in self._named("events"):
            for partition, platform, _ in places:
                at, cursor = f"events:{platform}", ""
                while cursor != "0":
                    cursor, flat = await self._wire.ask(partition, "HSCAN", at, cursor or "0", "COUNT", str(PAGE))
                    yield partition, platform, pairs(flat)

    async def _round(self, places: Sequence[Place], renamed: Mapping[tuple[int, str], int]) -> list[Record]:
        items = await self._hashes("item", places)
        events = {place[:2]: _event_in(item["inbound"]) for place, item in zip(places, items, strict=True)}
        if None in events.values():  # a damaged document does not say
            async for partition, platform, found in self._events():
                for event, item_name in found.items():
                    if events.get((partition, item_name), ()) is None:
                        events[partition, item_name] = (platform, event)

        def number_of(partition: int, name: str) -> int:
            return renamed.get((partition, name), int(name))

        page: list[Record] = []
        unfinished: list[tuple[Place, dict[str, Any]]] = []
        in_lanes: list[tuple[int, tuple[str, str, str]]] = []
        for place, item in zip(places, items, strict=True):
            platform, event_id = events[place[:2]] or ("", "")
            absorber = item.get("absorbed_by")
            facts: dict[str, Any] = {
                "id": number_of(*place[:2]),
                "key": item["key"],
                "platform": platform,
                "event_id": event_id,
                "inbound": item["inbound"],
                "accepted_at": float(item["at"]),
                "attempts": int(item["attempts"]),
                "bypass": int("bypass" in item),
                "absorbed_by": None if absorber is None else number_of(place[0], absorber),
                "outcome": item.get("outcome"),
                "ended_at": float(item["ended_at"]) if "ended_at" in item else None,
            }
            page.append(Record("events", facts))
            if "outcome" not in item:
                unfinished.append((place, {"item": facts["id"], "key": item["key"]}))
                if not item.keys() & {"bypass", "absorbed_by"}:
                    in_lanes.append((place[0], ("LPOS", f"inbox:{item['key']}", place[1])))
        for (_, (_, inbox, name)), rank in zip(in_lanes, await self._wire.ask_all(in_lanes), strict=True):
            if rank is None:
                raise StoreError(f"The store is damaged: message {name} is not in {inbox}, where it should wait.")
        where = [place for place, _ in unfinished]
        turns = await self._hashes("turn", where, needed=False)
        signals = await self._hashes("signals", where, needed=False)
        for (_, item), turn, left in zip(unfinished, turns, signals, strict=True):
            page += _of_turn(item, turn, left)
        return page

    # -- rows and calls ---------------------------------------------------------------------

    async def _rows(self) -> AsyncIterator[list[Record]]:
        async for places in self._merged("rows"):
            rows = await self._hashes("row", places)
            found = zip(places, rows, strict=True)
            waiting = [(at, row) for (at, _, _), row in found if row["state"] in PLACED]
            chats = [(at, row["chat"], 0.0) for at, row in waiting]
            ranks = await self._wire.ask_all((at, ("ZRANK", f"out:{row['chat']}", row["id"])) for at, row in waiting)
            for (_, row), rank in zip(waiting, ranks, strict=True):
                if rank is None:
                    raise StoreError(
                        f"The store is damaged: row {row['id']} is not in out:{row['chat']}, where it should wait."
                    )
            heads = await self._of(chats, "ZRANGE", "out", "0", "0")
            firsts = [(at, head, 0.0) for (at, _), (head,) in zip(waiting, heads, strict=True)]
            # The first sender of a confirmed row knows that it was shown; a gateway that looked would say so, too.
            shown = await self._of(firsts, "HGET", "row", "confirmed")
            ahead = {
                row["id"]: rank - (confirmed is not None)
                for (_, row), rank, confirmed in zip(waiting, ranks, shown, strict=True)
            }
            yield [_row(row, ahead.get(row["id"])) for row in rows]

    async def _calls(self) -> AsyncIterator[list[Record]]:
        async for places in self._merged("ledger"):
            calls = [json.loads(text.partition("|")[2]) for _, text, _ in places]
            sessions = [(at, call["session"], 0.0) for (at, _, _), call in zip(places, calls, strict=True)]
            found = await self._of(sessions, "HGET", "session", "key")
            # Whose a call is, it says itself (nobody's, once its conversation was erased); one of an early version does
            # not.
            keys = [call.get("key", key) for key, call in zip(found, calls, strict=True)]
            yield [_call(key, at, call) for key, (_, _, at), call in zip(keys, places, calls, strict=True)]

    # -- what goes by its name --------------------------------------------------------------

    async def _spending(self) -> AsyncIterator[list[Record]]:
        async for places in self._named("spent"):
            spent = await self._of(places, "GET", "spent")
            until = await self._of(places, "PEXPIRETIME", "spent")
            yield [
                Record("spending", {"account": name, "spent": int(total), "forget_at": at if at >= 0 else None})
                for (_, name, _), total, at in zip(places, spent, until, strict=True)
                if total is not None
            ]

    async def _pins(self) -> AsyncIterator[list[Record]]:
        async for places in self._named("pins"):
            found = await self._of(places, "GET", "pins")
            yield [
                Record("pins", {"key": name, "rules": rules}) for (_, name, _), rules in zip(places, found, strict=True)
            ]

    async def _forgotten(self) -> AsyncIterator[list[Record]]:
        async for places in self._named("forgotten"):
            for (_, key, _), deeds in zip(places, await self._hashes("forgotten", places), strict=True):
                done = {deed: json.loads(deeds[deed]) for deed in sorted(deeds)}
                yield [
                    Record("forgotten", {"deed": deed, "key": key, "at": each["at"], "counts": dumps(each["counts"])})
                    for deed, each in done.items()
                ]

    async def _memory(self) -> AsyncIterator[list[Record]]:
        async for places in self._named("facts"):
            for documents in await self._of(places, "HVALS", "facts"):
                facts = sorted(map(json.loads, documents), key=lambda fact: (fact["made_at"], fact["id"]))
                yield [Record("memory", {"number": 0, **fact, **self._source(fact)}) for fact in facts]

    def _source(self, fact: Mapping[str, Any]) -> Mapping[str, str]:
        return {"message_id": self._numbers.within(fact["message_id"])}

    async def _memory_counters(self) -> AsyncIterator[list[Record]]:
        async for places in self._named("facts_version"):
            versions, numbers = [await self._of(places, "GET", name) for name in ("facts_version", "facts_number")]
            yield [
                Record("memory counters", {"scope": scope, "version": int(version), "last_number": int(number or 0)})
                for (_, scope, _), version, number in zip(places, versions, numbers, strict=True)
            ]

    async def _reminders(self) -> AsyncIterator[list[Record]]:
        async for places in self._named("reminders"):
            for partition, key, _ in places:
                ids = await self._wire.ask(partition, "ZRANGE", f"reminders:{key}", "0", "-1")
                for start in range(0, len(ids), _ROUND):
                    some = [(partition, name, 0.0) for name in ids[start : start + _ROUND]]
                    yield [_reminder(facts) for facts in await self._hashes("reminder", some)]

    async def _files(self) -> AsyncIterator[list[Record]]:
        """A file at a time: a content may be long."""
        async for places in self._named("files"):
            for partition, key, _ in places:
                documents = await self._wire.ask(partition, "HVALS", f"files:{key}")
                for file in sorted(map(file_from, documents), key=lambda each: (each.at, each.ref)):
                    content = await self._content(partition, key, file.digest)
                    if content is None:
                        raise StoreError(f"The store is damaged: file {file.ref} of {key} has no content.")
                    yield [Record("files", {**asdict(file), "key": key, "content": content})]

    async def _content(self, partition: int, key: str, digest: str) -> bytes | None:
        """A content, put together again: no piece of it is longer than a megabyte."""
        name = f"content:{key}:{storable(digest)}"
        length = int(await self._wire.ask(partition, "HLEN", name))
        parts = [await self._wire.ask(partition, "HGET", name, str(place)) for place in range(length)]
        return b"".join(map(b64decode, parts)) if length else None

    async def _notes(self) -> AsyncIterator[list[Record]]:
        async for places in self._named("notes", also=_GUEST_BOOK):
            found = await self._wire.ask_all(
                (at, ("HGETALL", name if name == _GUEST_BOOK else f"notes:{name}")) for at, name, _ in places
            )
            yield [
                Record("notes", {"account": folder, "name": name, "value": self._numbers.within(value)})
                for (_, folder, _), flat in zip(places, found, strict=True)
                for name, value in sorted(pairs(flat).items())
            ]

    async def _chats(self) -> AsyncIterator[list[Record]]:
        closed, first, later = [await self._of_chats(name) for name in ("closed", "first_names", "later_names")]
        records = [Record("closed chats", {"lane": lane, "reason": closed[lane]}) for lane in sorted(closed)]
        records += [
            Record("renamed chats", {"lane": lane, "first": first.get(lane), "later": later.get(lane)})
            for lane in sorted(first.keys() | later.keys())
        ]
        for start in range(0, len(records), PAGE):
            yield records[start : start + PAGE]

    async def _of_chats(self, name: str) -> Hash:
        """Return the notes of all partitions about chats under this key."""
        found = await self._wire.ask_all((partition, ("HGETALL", name)) for partition in range(PARTITIONS))
        return {chat: noted for flat in found for chat, noted in pairs(flat).items()}

    # -- many at a time ---------------------------------------------------------------------

    async def _of(self, places: Iterable[Place], verb: str, kind: str, *rest: str) -> list[Any]:
        """Return the answers of a command about keys of a kind."""
        return await self._wire.ask_all((partition, (verb, f"{kind}:{name}", *rest)) for partition, name, _ in places)

    async def _hashes(self, kind: str, places: Sequence[Place], *, needed: bool = True) -> list[Hash]:
        found = list(map(pairs, await self._of(places, "HGETALL", kind)))
        for (_, name, _), fields in zip(places, found, strict=True):
            if needed and not fields:
                raise StoreError(f"The store is damaged: {kind} {name} is missing.")
        return found

    async def _named(self, kind: str, *, also: str | None = None) -> AsyncIterator[list[Place]]:
        """Yield the places of keys of a kind, and of one more name, in the order of their names."""
        found = {name async for name in keys(self._endpoint, f"{{p??}}:{kind}:*")}
        more = [] if also is None else [(also, partition_of_name(also))]
        places = sorted([(name.split(":", 2)[2], int(name[2:4])) for name in found] + more)
        for start in range(0, len(places), _ROUND):
            yield [(partition, name, 0.0) for name, partition in places[start : start + _ROUND]]

    async def _merged(self, name: str) -> AsyncIterator[list[Place]]:
        """Yield the members of the sorted sets of this name, lowest number first."""
        pages = [await self._members(partition, name, 0) for partition in range(PARTITIONS)]
        heap = [(*page[0], partition, 0) for partition, page in enumerate(pages) if page]
        heapify(heap)
        places: list[Place] = []
        while heap:
            number, member, partition, rank = heappop(heap)
            places.append((partition, member, number))
            rank += 1
            if rank % _ROUND == 0:
                pages[partition] = await self._members(partition, name, rank)
            if rank % _ROUND < len(pages[partition]):
                heappush(heap, (*pages[partition][rank % _ROUND], partition, rank))
            if len(places) == _ROUND or not heap:
                yield places
                places = []

    async def _members(self, partition: int, name: str, first: int) -> list[tuple[float, str]]:
        flat = await self._wire.ask(partition, "ZRANGE", name, str(first), str(first + _ROUND - 1), "WITHSCORES")
        return [(float(number), member) for member, number in zip(flat[::2], flat[1::2], strict=True)]


def _event_in(document: str) -> tuple[str, str] | None:
    """The platform and the id of a document's event, unless the document is damaged."""
    try:
        data = json.loads(document)
        return storable(data["source"]["platform"]), storable(data["event_id"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _of_turn(item: dict[str, Any], turn: Hash, signals: Hash) -> list[Record]:
    """Return the progress of an unfinished item, its questions and its signals."""
    found: list[Record] = []
    if turn:
        steps, intents = int(turn.get("steps", 0)), turn.get("intents", "[]")
        begun = {"session_id": turn.get("session"), "steps": steps, "intents": intents, "reply": turn.get("reply")}
        found.append(Record("turns", {**item, **begun}))
    chat = "/".join(item["key"].split("/")[:2])
    for token in sorted(name.partition(":")[2] for name in turn if name.startswith("asked:")):
        asked, verdict = turn[f"asked:{token}"], turn.get(f"verdict:{token}")
        found.append(Record("approvals", {**item, "token": token, "chat": chat, "asked": asked, "verdict": verdict}))
    for at, kind in sorted((float(at), kind) for kind, at in signals.items()):
        found.append(Record("signals", {**item, "kind": kind, "at": at}))
    return found


def _row(row: Hash, ahead: int | None) -> Record:
    state = {"state": str(State.SENT), "ahead": None} if ahead == -1 else {"ahead": ahead}
    return Record("outbox", {**row, "chat": row["to"], **state})


def _reminder(facts: Hash) -> Record:
    data: dict[str, Any] = {name: facts.get(name) for name in FIELDS["reminders"]}
    data |= {name: int(facts[name]) for name in ("number", "version", "open", "parked")}
    return Record("reminders", {**data, "due_at": float(facts["due_at"]) if "due_at" in facts else None})


def _call(key: str | None, at: float, call: dict[str, Any]) -> Record:
    if key is None:
        raise StoreError(f"The store is damaged: session {call['session']} has used tokens and is missing.")
    usage = dict(zip(USAGE.names, call["usage"], strict=True))
    cost = None if call["cost"] is None else float(call["cost"])
    of = {name: call[name] for name in ("platform", "purpose", "provider", "model")}
    return Record("ledger", {"key": key, "session_id": call["session"], "at": at, **of, "cost_usd": cost, **usage})
