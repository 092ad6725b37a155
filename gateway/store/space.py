"""The place that a store's steps work on, and how a kind of record is declared.

A step is a plain function of a `Space`: it gets and puts records, looks at their indexes, and returns. It does no
input or output and awaits nothing, so it is written once for every store. A backend runs a step whole or not at all:
an error that leaves the step undoes what the step had put.

A `Kind` says what a record is made of, what its key is, and which indexes it stands in. An index is a function of the
record, so a step never touches an index itself: it puts the record, and the space keeps the indexes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import structlog
from msgspec import MsgspecError, Struct, convert, to_builtins
from msgspec.json import Decoder, Encoder

from gateway.runtime.structs import replace
from gateway.store.shared.platforms import Platforms

T = TypeVar("T")

log = structlog.get_logger(__name__)

_write: Callable[[Any], bytes] = Encoder().encode

Key: TypeAlias = str | int
Order: TypeAlias = int | float
Entry: TypeAlias = tuple[str, Order] | None  # the name it stands under, and its place there; None: it is not in it


class Index(Generic[T]):
    """Some records of a kind, in order under a name. Records in the same place are ordered by their keys."""

    __slots__ = ("entry", "kind", "name")

    def __init__(self, kind: Kind[T], name: str, entry: Callable[[T], Entry]) -> None:
        self.kind = kind
        self.name = name
        self.entry = entry

    def placed(self, record: T) -> tuple[Order, Key, T]:
        """A record of the index, after its place and its key."""
        entry = self.entry(record)
        assert entry is not None
        return entry[1], self.kind.key(record), record


class Kind(Generic[T]):
    """A kind of record: its name, its type and its key. Records are stored as JSON."""

    def __init__(
        self,
        name: str,
        made_of: type[T],
        key: Callable[[T], Key],
        *,
        numbered: bool = False,
        spares: str = "",
        raw: str = "",
    ) -> None:
        self.name = name
        self.numbered = numbered  # its keys are numbers
        self.spares = spares  # the field without which a damaged record is read
        self.raw = raw  # the field of bytes that stands behind the JSON as it is, after a line feed
        self.made_of = made_of
        self.key = key
        self.indexes: list[Index[T]] = []
        self.entries: Callable[[T], Sequence[Entry]] = self._entries  # of a record, in the order of `indexes`
        self._read = Decoder(made_of).decode
        self.plain = self.document if raw else _write  # `document`, but for half a surrogate pair

    def index(self, name: str, entry: Callable[[T], Entry]) -> Index[T]:
        """Declare an index; only where the kind itself is declared."""
        made = Index(self, name, entry)
        self.indexes.append(made)
        return made

    def indexed(self, entries: Callable[[T], Sequence[Entry]], *names: str) -> tuple[Index[T], ...]:
        """Declare all indexes of a kind that is put often, with one function that gives all entries."""
        self.indexes = [Index(self, name, partial(_nth, entries, place)) for place, name in enumerate(names)]
        self.entries = entries
        return tuple(self.indexes)

    def _entries(self, record: T) -> Sequence[Entry]:
        return [index.entry(record) for index in self.indexes]

    def document(self, record: T) -> bytes:
        """A record as JSON. Half a surrogate pair, which UTF-8 cannot carry, becomes an escape."""
        if self.raw:
            kept: Any = record
            return b"\n".join((_write(replace(kept, **{self.raw: b""})), getattr(record, self.raw)))
        try:
            return _write(record)
        except UnicodeEncodeError:
            return json.dumps(to_builtins(record), separators=(",", ":")).encode()

    def record(self, document: bytes | str) -> T:
        """The inverse of `document`. Fields of a later release are ignored. Raises ValueError."""
        if self.raw and isinstance(document, bytes):
            head, _, content = document.partition(b"\n")
            made: Any = self._read(head)
            whole: T = replace(made, **{self.raw: content})
            return whole
        try:
            return self._read(document)
        except (MsgspecError, UnicodeError):  # an escape that stands for half a pair, or what no record is
            data = json.loads(document)
            try:
                return convert(data, self.made_of)
            except MsgspecError as error:
                if not self.spares:
                    raise
                log.error("record_unreadable", kind=self.name, error=str(error))
                return convert({**data, self.spares: None}, self.made_of)


def grouped(kind: Kind[Any], keys: Iterable[T], most: int) -> Iterator[list[T]]:
    """Keys or records of a kind, so many together; one by one where each may be large."""
    left = iter(keys)
    while group := list(islice(left, 1 if kind.raw else most)):
        yield group


def _nth(entries: Callable[[T], Sequence[Entry]], place: int, record: T) -> Entry:
    return entries(record)[place]


class Space(Protocol):
    """Records by kind and key, their indexes, lists of numbers, and a number that only rises. `dense`: these numbers
    follow one another; otherwise they follow the time, with many between two messages."""

    dense: bool

    def get(self, kind: Kind[T], key: Key) -> T | None:
        """The record of this key."""

    def many(self, kind: Kind[T], keys: Sequence[Key]) -> list[T]:
        """The records of these keys, in order, leaving out those that do not exist."""

    def put(self, kind: Kind[T], record: T) -> None:
        """Keep a record, in place of the one with its key."""

    def drop(self, kind: Kind[T], key: Key) -> None:
        """Remove the record with this key, if there is one."""

    def first(
        self, index: Index[T], under: str, most: int = 1, *, since: Order | None = None, before: Order | None = None
    ) -> list[T]:
        """The first records under a name, optionally only those with a place from `since` on and before `before`."""

    def last(
        self, index: Index[T], under: str, most: int = 1, *, since: Order | None = None, before: Order | None = None
    ) -> list[T]:
        """The same from the end, the last one first."""

    def count(self, index: Index[Any], under: str) -> int:
        """Count the records under a name."""

    def names(self, index: Index[Any]) -> list[str]:
        """The names under which there are records. May read the whole index."""

    def members(self, series: str, since: int = 0) -> list[int]:
        """The numbers of a series, from a place on."""

    def extend(self, series: str, numbers: Sequence[int], *, at: int) -> None:
        """Append numbers to a series that has this many members."""

    def shorten(self, series: str, length: int) -> None:
        """Keep only so many numbers of a series."""

    def number(self) -> int:
        """A number higher than all that were given before."""

    def tell(self, topic: str, *words: str) -> None:
        """Tell every process a piece of news, once the step is stored."""


class Caller(Struct, frozen=True, kw_only=True):
    """The process that asks for a step. `owner`: its name, which no other process ever had. `now`: seconds since the
    epoch, by a time that passes steadily. `uptime`: for how many seconds it has run."""

    owner: str
    now: float
    uptime: float
    runs: Platforms
    sends: Platforms
    pauses: Sequence[float]
    sole: bool = False  # no other process works on the store


MANY: int = 1_000_000  # of records that are hardly ever more than a few


def served(space: Space, platforms: Platforms, *indexes: Index[Any]) -> list[str]:
    """The platforms that a process works for. One that works for all gets those that these indexes have something
    of."""
    if platforms.text != "*":
        return sorted(platforms.names)  # type: ignore[call-overload,no-any-return]
    return sorted({name for index in indexes for name in space.names(index)})
