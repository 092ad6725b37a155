"""The space of one step. Whatever the step puts is a draft that only the step sees, until its backend writes all of it
at once. So a step that fails has written nothing, and a record that is put twice is written once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeVar

from gateway.store.space import Entry, Index, Key, Kind, Order

T = TypeVar("T")

_NOTHING: Final[Mapping[tuple[str, Key], Any]] = MappingProxyType({})
_NO_ENTRIES: Final[Mapping[Key, Sequence[Entry]]] = MappingProxyType({})


class Records(Protocol):
    """What is stored, as a backend shows it to a step: `Space` without its writing half."""

    dense: bool

    def get(self, kind: Kind[T], key: Key) -> T | None:
        """The record of this key."""

    def many(self, kind: Kind[T], keys: Sequence[Key]) -> list[T]:
        """The records of these keys, in order, leaving out those that do not exist."""

    def look(
        self, index: Index[T], under: str, most: int, since: Order | None, before: Order | None, last: bool
    ) -> list[T]:
        """`Space.first`, or `Space.last`."""

    def count(self, index: Index[Any], under: str) -> int:
        """Count the records under a name."""

    def names(self, index: Index[Any]) -> list[str]:
        """The names that records stand under."""

    def members(self, series: str, since: int) -> list[int]:
        """The numbers of a series from a place on."""

    def number(self) -> int:
        """A number higher than all that were given before."""


class Draft:
    """A `Space` on top of stored records. `known`: records that need not be asked for, by kind and key (None: it does
    not exist). `records`: what the step has put, by kind and key (None: it was dropped); `entries`: of those that were
    not dropped, if their kind has indexes. `series`: from which place on a series is new, and with what. `cut`: series
    that were longer before. `news`: what it tells."""

    __slots__ = ("_known", "_stored", "cut", "dense", "entries", "news", "number", "records", "series")

    def __init__(self, stored: Records, known: Mapping[tuple[str, Key], Any] = _NOTHING) -> None:
        self._stored = stored
        self._known = known
        self.number = stored.number
        self.dense = stored.dense
        self.records: dict[Kind[Any], dict[Key, Any]] = {}
        self.entries: dict[Kind[Any], dict[Key, Sequence[Entry]]] = {}
        self.series: dict[str, tuple[int, list[int]]] = {}
        self.cut: set[str] = set()
        self.news: list[tuple[str, ...]] = []

    def get(self, kind: Kind[T], key: Key) -> T | None:
        drafted = self.records.get(kind)
        if drafted is not None and key in drafted:
            found: T | None = drafted[key]
        elif (kind.name, key) in self._known:
            found = self._known[kind.name, key]
        else:
            found = self._stored.get(kind, key)
        return found

    def many(self, kind: Kind[T], keys: Sequence[Key]) -> list[T]:
        if kind not in self.records:
            return self._stored.many(kind, keys)
        return [record for key in keys if (record := self.get(kind, key)) is not None]

    def put(self, kind: Kind[T], record: T) -> None:
        key = kind.key(record)
        self.records.setdefault(kind, {})[key] = record
        if kind.indexes:
            self.entries.setdefault(kind, {})[key] = kind.entries(record)

    def drop(self, kind: Kind[T], key: Key) -> None:
        self.records.setdefault(kind, {})[key] = None
        if kind in self.entries:
            self.entries[kind].pop(key, None)

    def first(
        self, index: Index[T], under: str, most: int = 1, *, since: Order | None = None, before: Order | None = None
    ) -> list[T]:
        if index.kind not in self.records:
            return self._stored.look(index, under, most, since, before, last=False)
        return self._look(index, under, most, since, before, last=False)

    def last(
        self, index: Index[T], under: str, most: int = 1, *, since: Order | None = None, before: Order | None = None
    ) -> list[T]:
        if index.kind not in self.records:
            return self._stored.look(index, under, most, since, before, last=True)
        return self._look(index, under, most, since, before, last=True)

    def _look(
        self, index: Index[T], under: str, most: int, since: Order | None, before: Order | None, last: bool
    ) -> list[T]:
        kind, wanted = index.kind, most
        drafted, key_of = self.records[kind], kind.key
        while True:
            found = self._stored.look(index, under, wanted, since, before, last)
            left = [each for each in found if key_of(each) not in drafted] if found else found
            if len(left) >= most or len(found) < wanted:
                break
            wanted += len(found) - len(left)  # others may stand in the places of those that the step has put
        placed = [index.placed(each) for each in left] if left else []
        which = kind.indexes.index(index)
        for key, entries in self.entries.get(kind, _NO_ENTRIES).items():
            entry = entries[which]
            if entry is not None and entry[0] == under and _is_between(entry[1], since, before):
                placed.append((entry[1], key, drafted[key]))
        if len(placed) > 1:
            placed.sort(key=_place, reverse=last)
        return [record for _, _, record in placed[:most]] if placed else []

    def count(self, index: Index[Any], under: str) -> int:
        counted = self._stored.count(index, under)
        for key, record in self.records.get(index.kind, {}).items():
            counted += _stands(index, record, under) - _stands(index, self._stored.get(index.kind, key), under)
        return counted

    def names(self, index: Index[Any]) -> list[str]:
        drafted = [index.entry(each) for each in self.records.get(index.kind, {}).values() if each is not None]
        return sorted({*self._stored.names(index), *(entry[0] for entry in drafted if entry is not None)})

    def members(self, series: str, since: int = 0) -> list[int]:
        place, drafted = self.series.get(series, (None, []))
        if place is None:
            return self._stored.members(series, since)
        if since >= place:
            return drafted[since - place :]
        return self._stored.members(series, since)[: place - since] + drafted

    def extend(self, series: str, numbers: Sequence[int], *, at: int) -> None:
        place, drafted = self.series.get(series, (at, []))
        self.series[series] = (place, [*drafted, *numbers])

    def shorten(self, series: str, length: int) -> None:
        self.cut.add(series)
        place, drafted = self.series.get(series, (length, []))
        self.series[series] = (min(place, length), drafted[: max(0, length - place)])

    def tell(self, topic: str, *words: str) -> None:
        self.news.append((topic, *words))


def _is_between(place: Order, since: Order | None, before: Order | None) -> bool:
    return (since is None or place >= since) and (before is None or place < before)


def _place(placed: tuple[Order, Key, Any]) -> tuple[Order, Any]:
    return placed[:2]


def _stands(index: Index[Any], record: Any, under: str) -> int:
    entry = None if record is None else index.entry(record)
    return int(entry is not None and entry[0] == under)
