"""Records in memory, for what need not outlive a process. They are kept as documents, as everywhere."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from gateway.store.draft import Draft
from gateway.store.space import Index, Key, Kind, Order

T = TypeVar("T")

_Place = tuple[Order, Key]


class MemoryRecords:
    """Documents by kind and key; places by index and name."""

    dense = True

    def __init__(self) -> None:
        self._documents: dict[tuple[str, Key], bytes] = {}
        self._places: dict[tuple[str, str, str], list[_Place]] = {}
        self._series: dict[str, list[int]] = {}
        self._last = 0

    @property
    def documents(self) -> list[bytes]:
        """Everything, as it is kept."""
        return list(self._documents.values())

    def run(self, step: Callable[..., T], *args: Any) -> tuple[T, list[tuple[str, ...]]]:
        """Run a step completely or not at all. Returns its result, and the news that it tells."""
        draft = Draft(self)
        result = step(draft, *args)
        for kind, records in draft.records.items():
            for key, record in records.items():
                self._write(kind, key, record)
        for name, (place, numbers) in draft.series.items():
            series = self._series.setdefault(name, [])
            assert len(series) >= place, f"{name} would get a gap"
            series[place:] = numbers
        return result, draft.news

    def _write(self, kind: Kind[T], key: Key, record: T | None) -> None:
        old = self.get(kind, key)
        for index in kind.indexes:
            entry = None if old is None else index.entry(old)
            if entry is not None:
                self._places[kind.name, index.name, entry[0]].remove((entry[1], key))
        if record is None:
            self._documents.pop((kind.name, key), None)
            return
        self._documents[kind.name, key] = kind.document(record)
        for index in kind.indexes:
            entry = index.entry(record)
            if entry is not None:
                insort(self._places.setdefault((kind.name, index.name, entry[0]), []), (entry[1], key))

    def get(self, kind: Kind[T], key: Key) -> T | None:
        document = self._documents.get((kind.name, key))
        return None if document is None else kind.record(document)

    def many(self, kind: Kind[T], keys: Sequence[Key]) -> list[T]:
        return [record for key in keys if (record := self.get(kind, key)) is not None]

    def look(
        self, index: Index[T], under: str, most: int, since: Order | None, before: Order | None, last: bool
    ) -> list[T]:
        kind = index.kind
        places = self._places.get((kind.name, index.name, under), [])
        begin = 0 if since is None else bisect_left(places, since, key=_order)
        places = places[begin : None if before is None else bisect_left(places, before, key=_order)]
        return [kind.record(self._documents[kind.name, key]) for _, key in (places[::-1] if last else places)[:most]]

    def count(self, index: Index[Any], under: str) -> int:
        return len(self._places.get((index.kind.name, index.name, under), ()))

    def names(self, index: Index[Any]) -> list[str]:
        wanted = (index.kind.name, index.name)
        return sorted(under for (*of, under), places in self._places.items() if tuple(of) == wanted and places)

    def members(self, series: str, since: int = 0) -> list[int]:
        return self._series.get(series, [])[since:]

    def number(self) -> int:
        self._last += 1
        return self._last


def _order(place: _Place) -> Order:
    return place[0]
