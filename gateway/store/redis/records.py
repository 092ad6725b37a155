"""The records on Redis, as a step sees them: what this process takes for true.

A step runs in the process, against what the process remembers of a partition. All that the step asked is noted, and
goes to the server with what the step puts (`scripts/commit.lua`). If all of it is so, the server keeps the records;
otherwise it answers what is so, the process learns that, and the step runs again. So what is remembered need not be
true: it decides only how often a step runs.

A document is `<kind>:<key>` and holds a version before its JSON; each commit has a version of its own, so to compare
versions is to compare documents. An index is `i:<kind>.<index>:<name>`, a sorted set of keys, `n:<kind>.<index>` has
the names that it ever had, and a series is the list `s:<name>`. `unindexed` names the messages that are owed entries
in the search index, `gone` those whose entries are to be taken away, and `gone:<number>` is such a message.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias, TypeVar

from msgspec import Struct

from gateway.domain.message import Message
from gateway.store.draft import Draft
from gateway.store.kinds import CALL, CONTENT, EVENT, MESSAGE, MessageRecord
from gateway.store.redis.connection import Argument
from gateway.store.redis.partitions import PARTITIONS
from gateway.store.shared.searchable import kind_of
from gateway.store.space import Entry, Index, Key, Kind, Order
from gateway.store.steps.sessions import message

T = TypeVar("T")

_REMEMBERED: Final = 1_024  # documents of a partition, and indexes
_FORGOTTEN: Final = 256  # the oldest of them, when there are too many
_MOST_PLACES: Final = 64  # of an index, when its step is done; a longer one is remembered at both ends
_PASSING: Final = (MESSAGE.name, CALL.name, EVENT.name, CONTENT.name)  # kinds that no later step asks for

Ask: TypeAlias = tuple[Any, ...]  # what a step asked: a letter, as in commit.lua, and what it names
Place: TypeAlias = tuple[Order, str]


class Document(Struct, frozen=True):
    """A record and the version under which it is stored; both empty: there is none. `entries`: those of the record,
    where they are known."""

    version: str
    record: Any
    entries: Sequence[Entry] | None = None


_NONE: Final = Document("", None)


@lru_cache(maxsize=8_192)
def index_key(index: Index[Any], under: str) -> str:
    """The key of an index without the prefix of its partition."""
    return f"i:{index.kind.name}.{index.name}:{under}"


def names_key(index: Index[Any]) -> str:
    """The key of an index's names."""
    return f"n:{index.kind.name}.{index.name}"


class Known:
    """What this process takes for true of one partition."""

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.last = 0  # the highest number that is known to be taken
        self.documents: dict[tuple[str, Key], Document] = {}
        self.places: dict[str, list[Place]] = {}
        self.counts: dict[str, int] = {}
        self.names: dict[str, list[str]] = {}
        self.series: dict[tuple[str, int], list[int]] = {}
        self.asked: set[Index[Any]] = set()  # indexes that some step looked at
        self.added: set[str] = set()  # indexes whose name was added to the names

    def rest(self) -> None:
        """Forget the oldest, where there is too much."""
        for remembered in (self.documents, self.places, self.counts):
            if len(remembered) > _REMEMBERED:
                for each in list(remembered)[:_FORGOTTEN]:
                    del remembered[each]  # type: ignore[arg-type]
        if len(self.added) > _REMEMBERED:
            self.added.clear()

    # -- what a server answered -------------------------------------------------------------

    def learn(self, ask: Ask, answer: Any) -> None:
        """The server says what is so."""
        letter, *of = ask
        if letter == "g":
            self._document(of[0], of[1], answer)
        elif letter == "r":
            self._range(answer, *of)
        elif letter == "c":
            self.counts[index_key(*of)] = int(answer)
        elif letter == "n":
            self.names[names_key(*of)] = answer
        else:
            self.series[of[0], of[1]] = [int(each) for each in answer]

    def _document(self, kind: Kind[Any], key: Key, text: str) -> None:
        self.documents[kind.name, key] = parsed(kind, text)

    def _range(
        self,
        answer: Sequence[str],
        index: Index[Any],
        under: str,
        most: int,
        since: Order | None,
        before: Order | None,
        last: bool,
    ) -> None:
        kind, name = index.kind, index_key(index, under)
        found = sorted((_order(answer[n + 1]), answer[n]) for n in range(0, len(answer), 3))
        for n in range(0, len(answer), 3):
            if answer[n + 2]:
                self._document(kind, _key(kind, answer[n]), answer[n + 2])
        known = self.places.get(name, [])
        begin = 0 if since is None else bisect_left(known, (since,))
        end = len(known) if before is None else bisect_left(known, (before,))
        if len(found) == most and last:
            begin = max(begin, bisect_left(known, found[0]))
        elif len(found) == most:
            end = min(end, bisect_left(known, (found[-1][0], found[-1][1] + "\0")))
        self.places[name] = [*known[:begin], *found, *known[max(begin, end) :]]
        if len(found) < most and since is None and before is None:
            self.counts[name] = len(found)

    # -- what is stored by now --------------------------------------------------------------

    def landed(self, writes: Writes) -> None:
        """The server has kept what a step put."""
        self.last = max(self.last, writes.highest)
        self.series.clear()
        self.added |= writes.added
        for kind, key, document in writes.documents:
            self.documents.pop((kind.name, key), None)
            if kind.name not in _PASSING:
                self.documents[kind.name, key] = document
        for index, under, place, is_added in writes.moves:
            if index in self.asked:
                self._move(index, under, place, is_added)
        self.rest()

    def _move(self, index: Index[Any], under: str, place: Place, is_added: bool) -> None:
        name = index_key(index, under)
        if name in self.counts:
            self.counts[name] += 1 if is_added else -1
        places = self.places.setdefault(name, [])
        there = bisect_left(places, place)
        if is_added:
            places.insert(there, place)
            if len(places) > _MOST_PLACES:
                del places[_MOST_PLACES // 2 : -_MOST_PLACES // 2]
        elif there < len(places) and places[there] == place:
            del places[there]


def parsed(kind: Kind[Any], text: str) -> Document:
    """A document as it is stored."""
    if not text:
        return _NONE
    version, _, document = text.partition(" ")
    return Document(version, kind.record(document.encode("utf-8", "surrogateescape") if kind.raw else document))


def _key(kind: Kind[Any], member: str) -> Key:
    return int(member) if kind.numbered else member


def _order(text: str) -> Order:
    return int(text) if text.lstrip("-").isdecimal() else float(text)


class Guess:
    """The records of a partition for one run of a step. `asked`: all that the step asked, with what it was told;
    `seen`: the records among that. `lowest`, `highest`: of the numbers that it took (0: none)."""

    dense = False

    def __init__(self, known: Known, above: Callable[[], int]) -> None:
        """Its numbers are above what `above` says."""
        self._known = known
        self._above = above
        self.asked: dict[Ask, Any] = {}
        self.seen: dict[tuple[str, Key], Any] = {}
        self.lowest = self.highest = 0

    def get(self, kind: Kind[T], key: Key) -> T | None:
        name = (kind.name, key)
        document = self.asked["g", kind, key] = self._known.documents.get(name, _NONE)
        record: T | None = document.record
        self.seen[name] = record
        return record

    def many(self, kind: Kind[T], keys: Sequence[Key]) -> list[T]:
        return [record for key in keys if (record := self.get(kind, key)) is not None]

    def look(
        self, index: Index[T], under: str, most: int, since: Order | None, before: Order | None, last: bool
    ) -> list[T]:
        ask = ("r", index, under, most, since, before, last)
        members: list[str] | None = self.asked.get(ask)
        if members is None:
            self._known.asked.add(index)
            places = self._known.places.get(index_key(index, under))
            if places:
                begin = 0 if since is None else bisect_left(places, (since,))
                places = places[begin : None if before is None else bisect_left(places, (before,))]
            members = [member for _, member in (places[::-1] if last else places)[:most]] if places else []
            self.asked[ask] = members
        kind, found = index.kind, list[T]()
        for member in members:
            record = self.get(kind, _key(kind, member))
            if record is not None:
                found.append(record)
        return found

    def count(self, index: Index[Any], under: str) -> int:
        ask = ("c", index, under)
        if ask not in self.asked:
            self._known.asked.add(index)
            name = index_key(index, under)
            counted = self._known.counts.get(name)
            self.asked[ask] = len(self._known.places.get(name, ())) if counted is None else counted
        result: int = self.asked[ask]
        return result

    def names(self, index: Index[Any]) -> list[str]:
        found: list[str] = self.asked.setdefault(("n", index), self._known.names.get(names_key(index), []))
        return found

    def members(self, series: str, since: int = 0) -> list[int]:
        found: list[int] = self.asked.setdefault(("s", series, since), self._known.series.get((series, since), []))
        return found

    def number(self) -> int:
        last = self.highest or max(self._known.last, self._above())
        self.highest = (last // PARTITIONS + 1) * PARTITIONS + self._known.partition
        self.lowest = self.lowest or self.highest
        return self.highest


class Writes:
    """What a step put, as the server is to keep it."""

    def __init__(self, known: Known, guess: Guess, draft: Draft, version: str) -> None:
        self.documents: list[tuple[Kind[Any], Key, Document]] = []
        self.moves: list[tuple[Index[Any], str, Place, bool]] = []
        self.lowest, self.highest = guess.lowest, guess.highest
        self.added = set[str]()  # indexes whose names are added to the names
        self.searched: list[tuple[MessageRecord, Message]] = []  # new messages that a search is to find
        self._known, self._guess, self._version = known, guess, version
        self._begins = f"{version} ".encode()
        self.arguments: list[Argument] = []
        for kind, records in draft.records.items():
            entries = draft.entries.get(kind)
            for key, record in records.items():
                self._put(kind, key, record, entries)
        for name, (place, numbers) in draft.series.items():
            if name in draft.cut:
                self.arguments += ("t", f"s:{name}", place)
            if numbers:
                self.arguments += ("e", f"s:{name}", len(numbers), *numbers)

    def _put(self, kind: Kind[Any], key: Key, record: Any, entries: Mapping[Key, Sequence[Entry]] | None) -> None:
        if kind.numbered and self.lowest and int(key) >= self.lowest:  # its number was just given
            old = _NONE
        else:
            if (kind.name, key) not in self._guess.seen:
                self._guess.get(kind, key)
            old = self._guess.asked["g", kind, key]
        if record is None and old.record is None:
            return
        nowhere = (None,) * len(kind.indexes)
        befores = nowhere if old.record is None or not nowhere else old.entries or kind.entries(old.record)
        afters = nowhere if record is None or entries is None else entries[key]
        if record is None:
            self.arguments += ("d", f"{kind.name}:{key}")
        else:
            try:
                document = kind.plain(record)
            except UnicodeEncodeError:
                document = kind.document(record)
            self.arguments += ("p", f"{kind.name}:{key}", self._begins + document)
        self.documents.append((kind, key, _NONE if record is None else Document(self._version, record, afters)))
        if befores != afters:
            self._index(kind, str(key), befores, afters)
        if kind is MESSAGE and (old.record is None) != (record is None):
            self._search(str(key), old.record, record)

    def _search(self, number: str, old: MessageRecord | None, said: MessageRecord | None) -> None:
        """A message that is new is owed its entries in the search index; of one that goes they are to be taken away."""
        if said is not None and kind_of(new := message(said)) is not None:
            self.searched.append((said, new))
            self.arguments += ("n", "unindexed", number)
        elif old is not None:
            self.arguments += ("u", "unindexed", number)
            self.arguments += ("p", f"gone:{number}", b"- %s" % MESSAGE.document(old))
            self.arguments += ("n", "gone", number)

    def _index(self, kind: Kind[Any], member: str, befores: Sequence[Entry], afters: Sequence[Entry]) -> None:
        """A record stands elsewhere in some indexes than it did."""
        for index, before, after in zip(kind.indexes, befores, afters, strict=True):
            if before == after:
                continue
            if before is not None:
                self.moves.append((index, before[0], (before[1], member), False))
                if after is None or after[0] != before[0]:
                    self.arguments += ("r", index_key(index, before[0]), member)
            if after is not None:
                name = index_key(index, after[0])
                self.moves.append((index, after[0], (after[1], member), True))
                self.arguments += ("a", name, str(after[1]), member)
                if name not in self._known.added and name not in self.added:
                    self.added.add(name)
                    self.arguments += ("n", names_key(index), after[0])


def checks(asked: Iterable[tuple[Ask, Any]]) -> list[Argument]:
    """What a step was told, as the server is to check it."""
    arguments: list[Argument] = []
    for (letter, *of), told in asked:
        if letter == "g":
            arguments += ("g", f"{of[0].name}:{of[1]}", told.version)
        elif letter == "r":
            index, under, most, since, before, last = of
            bounds = ("" if since is None else str(since), "" if before is None else str(before), most)
            arguments += ("r", index.kind.name, index_key(index, under), int(last), *bounds, len(told), *told)
        elif letter == "c":
            arguments += ("c", index_key(*of), told)
        elif letter == "n":
            arguments += ("n", names_key(*of), index_key(of[0], ""), len(told), *told)
        else:
            arguments += ("s", f"s:{of[0]}", of[1], len(told), *told)
    return arguments
