"""All records of a database, for those that read or fill the whole of it, as no gateway works on it."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Coroutine, Iterator, Sequence
from typing import Any, Final, TypeVar

from gateway.domain.chat import SessionKey
from gateway.store.backend import nothing
from gateway.store.kinds import ACCOUNT, NAME, NOTE
from gateway.store.redis.endpoint import Endpoint
from gateway.store.redis.keyspace import keys
from gateway.store.redis.partitions import EVERYWHERE, PARTITIONS, partition_of_key, partition_of_name
from gateway.store.redis.records import parsed
from gateway.store.redis.routes import MONEY, of_folder
from gateway.store.redis.running import Fleet, Runner, Work
from gateway.store.redis.wire import Wire
from gateway.store.space import Key, Kind, grouped
from gateway.store.steps import copying
from gateway.store.steps.copying import Copied

T = TypeVar("T")

_TOGETHER: Final = 500  # documents that are read together


class Whole:
    """The records under a wire's keys. They are put into pages in a thread beside its event loop."""

    def __init__(self, endpoint: Endpoint, wire: Wire) -> None:
        self._endpoint = endpoint
        self.wire = wire
        self._loop = asyncio.get_running_loop()
        self._kind = ""  # whose keys are known, by partition
        self._keys: dict[int, list[str]] = {}

    async def pages(self) -> AsyncGenerator[Sequence[Copied], None]:
        """All records in pages."""
        pages = copying.pages([Part(self, partition) for partition in EVERYWHERE])
        while page := await asyncio.to_thread(next, pages, None):
            yield page

    async def last_number(self) -> int:
        """A number that is not below any that was given in a partition."""
        given = await self.wire.ask_all((partition, ("GET", "seq")) for partition in EVERYWHERE)
        return max(int(number or 0) for number in given)

    def keys(self, kind: Kind[Any], partition: int) -> list[str]:
        """The keys of a kind in a partition; those of all partitions are looked for together."""
        if self._kind != kind.name:
            self._keys = self.wait(self._found(kind))
            self._kind = kind.name
        return self._keys.get(partition, [])

    async def _found(self, kind: Kind[Any]) -> dict[int, list[str]]:
        begin = f"{self.wire.under}{kind.name}:"
        found = defaultdict[int, dict[str, None]](dict)
        async for name in keys(self._endpoint, f"{{p??}}:{_literal(begin)}*"):
            found[int(name[2:4])][name[6 + len(begin) :]] = None
        return {partition: list(names) for partition, names in found.items()}

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """What a coroutine on the loop returns."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


class Part:
    """The records of one partition."""

    def __init__(self, whole: Whole, partition: int) -> None:
        self._whole = whole
        self._partition = partition

    def every(self, kind: Kind[T]) -> Iterator[T]:
        for some in grouped(kind, self._whole.keys(kind, self._partition), _TOGETHER):
            yield from self.many(kind, some)

    def many(self, kind: Kind[T], wanted: Sequence[Key]) -> list[T]:
        texts = self._asked([("GET", f"{kind.name}:{key}") for key in wanted])
        return [parsed(kind, text).record for text in texts if text]

    def members(self, series: str) -> list[int]:
        return list(map(int, self._asked([("LRANGE", f"s:{series}", "0", "-1")])[0]))

    def _asked(self, commands: Sequence[tuple[str, ...]]) -> list[Any]:
        return self._whole.wait(self._whole.wire.ask_all((self._partition, each) for each in commands))


def _literal(text: str) -> str:
    """A text as a pattern that matches nothing else."""
    return "".join(f"\\{each}" if each in "*?[]^-\\" else each for each in text)


class Filling:
    """Puts records into a database that holds nothing."""

    def __init__(self, wire: Wire, owner: str) -> None:
        self._wire = wire
        fleet = Fleet(owner=owner, now=lambda: 0.0, hear=nothing, wrote=lambda *_: None)
        self._runners = [Runner(each, wire, fleet) for each in EVERYWHERE]

    async def restore(self, page: Sequence[Copied]) -> None:
        """Put records, in the order in which a source gives them."""
        of = defaultdict[int, list[Copied]](list)
        for each in page:
            of[_partition_of(each)].append(each)
        works = []
        for partition, some in of.items():
            work = Work(step=copying.put, args=[some], future=asyncio.get_running_loop().create_future())
            works.append(work)
            self._runners[partition].put(work)
        await asyncio.gather(*(work.future for work in works))

    async def complete(self, last_number: int) -> None:
        """Numbers that are given from now on are above all that are there."""
        above = str(last_number + PARTITIONS)
        await asyncio.gather(*(self._wire.run(each, "above", above) for each in EVERYWHERE))


def _partition_of(copied: Copied) -> int:
    """Where the steps of `routes` look for a record."""
    kind, record = copied.kind, copied.record
    if kind is ACCOUNT:
        return MONEY
    if kind is NOTE:
        return of_folder(record.folder)
    key: SessionKey | None = copied.key
    if key is None:  # a call whose conversation was erased
        return partition_of_name(record.platform)
    return partition_of_name(key.platform) if kind is NAME else partition_of_key(key)
