"""Steps that look at any number of records: each asks the server for all that it lacks, and runs again, until it lacks
nothing. What such a step sees may change between two of its runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from heapq import merge
from typing import Any, Final, TypeVar

from gateway.runtime.errors import StoreError
from gateway.store.draft import Draft
from gateway.store.redis.connection import Argument
from gateway.store.redis.partitions import PARTITIONS
from gateway.store.redis.records import Ask, Document, checks, parsed
from gateway.store.space import Index, Key, Kind, Order

T = TypeVar("T")

_MOST_ROUNDS: Final = 100
_UNLIKE: Final = Document("?", None)  # a version that no document has: the server answers what is so
_NOBODY: Final = ["\0?"]  # members that no index has

Asked = Callable[[int, list[Argument]], Awaitable[list[Any]]]  # of a partition: (number of an ask, answer)…


class Reader:
    """The records of some partitions, as far as they were asked for."""

    dense = False

    def __init__(self, partitions: Sequence[int]) -> None:
        self.partitions = partitions
        self.facts: dict[int, dict[Ask, Any]] = {partition: {} for partition in partitions}
        self.missing: dict[int, dict[Ask, Any]] = {partition: {} for partition in partitions}

    def learn(self, partition: int, answers: Sequence[Any]) -> None:
        """The server's answers to what was missing in a partition."""
        asks, facts = list(self.missing[partition]), self.facts[partition]
        given = {int(answers[n]) - 1: answers[n + 1] for n in range(0, len(answers), 2)}
        for place, ask in enumerate(asks):
            answer = given.get(place)
            if ask[0] == "g":
                facts[ask] = parsed(ask[1], answer or "").record
            elif ask[0] == "r":
                facts[ask] = self._places(partition, ask, answer or [])
            else:
                facts[ask] = answer
        self.missing[partition] = {}

    def _places(self, partition: int, ask: Ask, answer: Sequence[str]) -> list[tuple[Order, Key, Any]]:
        index: Index[Any] = ask[1]
        records = [parsed(index.kind, answer[n + 2]).record for n in range(0, len(answer), 3)]
        return [index.placed(record) for record in records if record is not None]

    def _told(self, partition: int, ask: Ask, wrong: Any, meanwhile: Any) -> Any:
        facts = self.facts[partition]
        if ask in facts:
            return facts[ask]
        self.missing[partition][ask] = wrong
        return meanwhile

    def get(self, kind: Kind[T], key: Key) -> T | None:
        """A number tells its partition, unless it was brought from another store."""
        likely, ask = int(key) % PARTITIONS if kind.numbered else -1, ("g", kind, key)
        if likely in self.partitions:
            record: T | None = self._told(likely, ask, _UNLIKE, None)
            if record is not None or ask in self.missing[likely]:
                return record
        asked = [self._told(partition, ask, _UNLIKE, None) for partition in self.partitions]
        return next((record for record in asked if record is not None), None)

    def many(self, kind: Kind[T], keys: Sequence[Key]) -> list[T]:
        return [record for record in [self.get(kind, key) for key in keys] if record is not None]

    def look(
        self, index: Index[T], under: str, most: int, since: Order | None, before: Order | None, last: bool
    ) -> list[T]:
        ask = ("r", index, under, most, since, before, last)
        found = [self._told(partition, ask, _NOBODY, []) for partition in self.partitions]
        merged = merge(*found, key=lambda placed: placed[:2], reverse=last)
        return [record for _, _, record in merged][:most]

    def count(self, index: Index[Any], under: str) -> int:
        asked = [self._told(partition, ("c", index, under), -1, 0) for partition in self.partitions]
        return sum(map(int, asked))

    def names(self, index: Index[Any]) -> list[str]:
        asked = [self._told(partition, ("n", index), _NOBODY, []) for partition in self.partitions]
        return sorted({name for names in asked for name in names or ()})

    def members(self, series: str, since: int = 0) -> list[int]:
        asked = [self._told(partition, ("s", series, since), _NOBODY, []) for partition in self.partitions]
        return [int(number) for numbers in asked for number in numbers or ()]

    def number(self) -> int:
        raise AssertionError("A step that only looks needs no number.")


async def read(ask: Asked, partitions: Sequence[int], step: Callable[..., T], args: Sequence[Any]) -> T:
    """What a step finds in these partitions."""
    reader = Reader(partitions)
    for _ in range(_MOST_ROUNDS):
        error: Exception | None = None
        try:
            result = step(Draft(reader), *args)
        except Exception as raised:  # of a step that was told less than there is
            error = raised
        lacking = [partition for partition in partitions if reader.missing[partition]]
        if not lacking and error is not None:
            raise error
        if not lacking:
            return result
        for partition in lacking:
            arguments = checks(reader.missing[partition].items())
            reader.learn(partition, await ask(partition, [0, len(reader.missing[partition]), *arguments, 0, 0, ""]))
    raise StoreError("A look at the store found no end.")
