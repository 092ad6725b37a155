"""All records of a database, for those that read or fill the whole of it, as no gateway works on it."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterator, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from gateway.domain.chat import SessionKey
from gateway.runtime.errors import StoreError
from gateway.store.backend import nothing
from gateway.store.draft import Draft
from gateway.store.kinds import CONTENT, MESSAGE, SESSION
from gateway.store.redis.endpoint import Endpoint
from gateway.store.redis.keyspace import keys
from gateway.store.redis.partitions import EVERYWHERE, PARTITIONS, partition_of_key, partition_of_name
from gateway.store.redis.records import parsed
from gateway.store.redis.routes import MONEY, of_folder
from gateway.store.redis.running import Fleet, Runner, Work
from gateway.store.redis.wire import Wire
from gateway.store.shared.facts import Record
from gateway.store.space import Index, Key, Kind
from gateway.store.steps import moving
from gateway.store.steps.facts import dump

T = TypeVar("T")

_TOGETHER: Final = 500  # documents that are read together


async def facts(endpoint: Endpoint, wire: Wire) -> AsyncGenerator[Sequence[Record], None]:
    """All facts in pages. They are put together in a thread."""
    pages = dump(Holdings(endpoint, wire))
    while page := await asyncio.to_thread(next, pages, None):
        yield page


class Holdings:
    """The records under a wire's keys, for a thread beside its event loop."""

    def __init__(self, endpoint: Endpoint, wire: Wire) -> None:
        self._endpoint = endpoint
        self._wire = wire
        self._loop = asyncio.get_running_loop()
        self._sessions: dict[Key, int] = {}  # in which partition they are
        self._said: dict[Key, int] = {}  # the same of the messages whose series were read last

    def every(self, kind: Kind[T], index: Index[T] | None = None) -> Iterator[T]:
        """The records of a kind by their keys; or those that stand in an index, by name, place and key."""
        found = self._wait(self._keys(kind) if index is None else self._placed(index))
        for start in range(0, len(found), _TOGETHER):
            yield from self._wait(self._read(kind, found[start : start + _TOGETHER]))

    def many(self, kind: Kind[T], wanted: Sequence[Key]) -> list[T]:
        """The records of these keys in their order, as far as they are there."""
        places = [self._place(kind, key) for key in wanted]
        return self._wait(self._read(kind, places))

    def series(self, names: Sequence[str]) -> list[list[int]]:
        """All numbers of each of these series, which are sessions'."""
        return self._wait(self._series(names))

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _named(self, begin: str) -> AsyncIterator[tuple[int, str]]:
        """The partition of each key that begins so, and what comes behind that."""
        begin = f"{self._wire.under}{begin}"
        async for name in keys(self._endpoint, f"{{p??}}:{_literal(begin)}*"):
            yield int(name[2:4]), name[6 + len(begin) :]

    async def _keys(self, kind: Kind[Any]) -> list[tuple[int, Key]]:
        found = {each async for each in self._named(f"{kind.name}:")}
        named: list[tuple[Any, int]] = [(int(name) if kind.numbered else name, at) for at, name in found]
        return [(at, key) for key, at in sorted(named)]

    async def _placed(self, index: Index[Any]) -> list[tuple[int, Key]]:
        begin = f"i:{index.kind.name}.{index.name}:"
        names = defaultdict[str, set[int]](set)
        async for partition, name in self._named(begin):
            names[name].add(partition)
        asked = [(name, at) for name in sorted(names) for at in names[name]]
        placed: list[tuple[str, float, Any, int]] = []
        for start in range(0, len(asked), _TOGETHER):
            some = asked[start : start + _TOGETHER]
            flats = await self._wire.ask_all(
                (at, ("ZRANGE", f"{begin}{name}", "0", "-1", "WITHSCORES")) for name, at in some
            )
            for (name, at), flat in zip(some, flats, strict=True):
                members = [int(each) if index.kind.numbered else each for each in flat[::2]]
                placed += [(name, float(place), key, at) for key, place in zip(members, flat[1::2], strict=True)]
        return [(at, key) for _, _, key, at in sorted(placed)]

    async def _read(self, kind: Kind[T], places: Sequence[tuple[int, Key]]) -> list[T]:
        texts = await self._wire.ask_all((at, ("GET", f"{kind.name}:{key}")) for at, key in places)
        if kind is SESSION:
            self._sessions |= {key: at for at, key in places}
        for (_, key), text in zip(places, texts, strict=True):
            if not text and kind is SESSION:
                raise StoreError(
                    f"The store is damaged: session {key} is missing; restore a backup, then migrate that."
                )
        return [parsed(kind, text).record for text in texts if text]

    def _place(self, kind: Kind[Any], key: Key) -> tuple[int, Key]:
        if kind is CONTENT:
            return partition_of_key(SessionKey.parse(str(key).rpartition(" ")[0])), key
        return (self._said if kind is MESSAGE else self._sessions)[key], key

    async def _series(self, names: Sequence[str]) -> list[list[int]]:
        places = [self._sessions[name] for name in names]
        texts = await self._wire.ask_all(
            (at, ("LRANGE", f"s:{name}", "0", "-1")) for at, name in zip(places, names, strict=True)
        )
        found = [list(map(int, numbers)) for numbers in texts]
        self._said = {number: at for at, numbers in zip(places, found, strict=True) for number in numbers}
        return found


def _literal(text: str) -> str:
    """A text as a pattern that matches nothing else."""
    return "".join(f"\\{each}" if each in "*?[]^-\\" else each for each in text)


class Filling:
    """Puts facts into a database that holds nothing."""

    def __init__(self, wire: Wire, owner: str) -> None:
        self._wire = wire
        self._fleet = Fleet(owner=owner, now=lambda: 0.0, hear=nothing, wrote=lambda *_: None)
        self._runners = [Runner(each, wire, self._fleet) for each in EVERYWHERE]
        self._given = 0  # to facts of any kind
        self._highest = 0

    async def restore(self, page: Sequence[Record]) -> None:
        """Put facts, in the order in which a source gives them."""
        first = 0
        for place in range(1, len(page) + 1):
            if place == len(page) or page[place].kind != page[first].kind:
                await self._put(page[first:place])
                first = place

    async def _put(self, records: Sequence[Record]) -> None:
        """Put facts of one kind: each may have a number, which stands in their order, and tells its partition."""
        of = defaultdict[int, list[tuple[int, Record]]](list)
        for record in records:
            self._given += PARTITIONS
            partition = partition_of_fact(record)
            of[partition].append((self._given + partition, record))
            if record.kind in ("events", "messages"):
                self._highest = max(self._highest, int(record.data["id"]))
        works = []
        for partition, some in of.items():
            work = Work(step=_put, args=[some], future=asyncio.get_running_loop().create_future())
            works.append(work)
            self._runners[partition].put(work)
        await asyncio.gather(*(work.future for work in works))

    async def complete(self) -> None:
        """Numbers that are given from now on are above all that are there."""
        highest = max(self._given + PARTITIONS, self._highest)
        await asyncio.gather(*(self._wire.run(each, "above", str(highest)) for each in EVERYWHERE))


def _put(space: Draft, records: Sequence[tuple[int, Record]]) -> None:
    for number, record in records:
        space.number = partial(int, number)
        moving.put(space, (record,))


def partition_of_fact(record: Record) -> int:
    """The partition of what a fact becomes: where the steps of `routes` look for that."""
    data = record.data
    if record.kind == "spending":
        return MONEY
    if record.kind == "notes":
        return of_folder(data["account"])
    of_chat = data.get("lane") or data.get("key") or data.get("scope")
    if not of_chat:  # a call whose conversation was erased
        return partition_of_name(data["platform"])
    key = SessionKey.parse(of_chat)
    return partition_of_name(key.platform) if record.kind == "renamed chats" else partition_of_key(key)
