"""Searches by entries: what a backend must answer about its index, and everything that is made of the answers.

An entry stands for a message: its number, conversation, kind and terms, and its vector. `shared/ranking` decides which
messages answer a question.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import Final, Protocol, TypeAlias, TypeVar

from gateway.domain.chat import SessionKey
from gateway.domain.message import said_in
from gateway.store.draft import Records
from gateway.store.kinds import MESSAGE, SESSION, MessageRecord
from gateway.store.records import Found, Meaning, Passage, Unembedded, Vector
from gateway.store.shared import ranking
from gateway.store.shared.ranking import ANY, MOST_OF_A_TERM, Talks, Text
from gateway.store.shared.searchable import Kind, kind_of
from gateway.store.shared.vectors import MOST, by_signs, nearest, size_of
from gateway.store.steps.sessions import message
from gateway.words.misspellings import Vocabulary
from gateway.words.text import Question

T = TypeVar("T")

_GROWN: Final = 1.05  # times as many messages: the words are read anew
_MOST_PARENTS: Final = 50_000  # sessions of which the one before is remembered

Wanted: TypeAlias = Sequence[
    Sequence[str]
]  # one term of each of these; one that begins with "^" is the start of a word


class Entries(Protocol):
    """The index as one transaction sees it. A `kind` or a `lane` of "" means any, but entries without a kind are never
    returned."""

    def size(self, kind: str, lane: str) -> int:
        """Count the entries."""

    def listed(
        self, kind: str, lane: str, sought: Sequence[Wanted], most: int, *, oldest: bool = False
    ) -> list[list[int]]:
        """For each of these, the newest or the oldest entries with such terms."""

    def beside(
        self, kind: str, lane: str, numbers: Sequence[int], reach: int
    ) -> Iterable[tuple[int, list[int], list[int]]]:
        """For each of these entries that exists: those before it in its conversation, nearest first, and those after
        it. A `lane` of "" means that of each."""

    def sessions(self, numbers: Sequence[int]) -> dict[int, str]:
        """The sessions of entries."""

    def words(self) -> list[str]:
        """All terms except conversations, in order."""

    def newest(self) -> int:
        """The last entry; 0: there is none."""

    def left(self, made: int) -> int:
        """Count the entries that another version made."""

    def vectors_of(self) -> tuple[str, int]:
        """The model that made the vectors, and their length; "" and 0 at first."""

    def embedded_by(self, model: str, length: int, *, anew: bool) -> None:
        """Note the model and length of the vectors; with `anew`, delete the present ones."""

    def unembedded(self, most: int, *, anew: bool) -> list[int]:
        """Some messages without a vector; with `anew`, as if none had one."""

    def embed(self, number: int, vector: Vector) -> None:
        """Keep a vector with a message, if that exists."""

    def signs(self, lane: str, most: int) -> Iterable[tuple[int, bytes]]:
        """The signs of the newest vectors."""

    def values(self, numbers: Sequence[int]) -> Iterable[tuple[int, bytes]]:
        """The numbers of these vectors."""


class SearchMemory:
    """What a process remembers from search to search: the words of all messages, read again once a twentieth of the
    messages is new, and which session each session goes on from, which never changes."""

    def __init__(self) -> None:
        self.parents: dict[str, str | None] = {}
        self._words, self._read_at = Vocabulary(), 0

    def words(self, entries: Entries) -> Vocabulary:
        """The words."""
        newest = entries.newest()
        if newest > self._read_at * _GROWN:
            self._words, self._read_at = Vocabulary(entries.words()), newest
        return self._words


class Search:
    """The searches of a backend, in one transaction."""

    def __init__(self, records: Records, entries: Entries, memory: SearchMemory) -> None:
        self.records = records
        self.entries = entries
        self.memory = memory

    def passages(
        self, words: str, key: SessionKey | None, limit: int, now: float, meaning: Meaning | None
    ) -> list[Passage]:
        """The passages that answer best."""
        return ranking.result_of(ranking.search(partial(EntryIndex, self, key), words, limit, now, meaning))

    def talks(self, sessions: Collection[str]) -> Talks:
        """The talks of these sessions."""
        known, wanted = self.memory.parents, set(sessions)
        if len(known) > _MOST_PARENTS:
            known.clear()
        while wanted := {each for each in wanted if each not in known}:
            found = {kept.session.id: kept.session.parent_id for kept in self.records.many(SESSION, sorted(wanted))}
            known |= {each: found.get(each) for each in wanted}
            wanted = {parent for parent in found.values() if parent is not None}
        return Talks(known)

    def holding(self, values: Sequence[str], key: SessionKey, limit: int) -> list[list[Found]]:
        """For each value the messages of the key that hold it."""
        return ranking.result_of(ranking.holding([EntryIndex(self, key, None)], values, limit))

    def around(self, key: SessionKey, message_id: str, reach: int) -> list[Found]:
        """A message of the key among its neighbours; empty if it is not the key's."""
        is_number = message_id.isdecimal() and int(message_id) < 1 << 63
        said = self.records.get(MESSAGE, int(message_id)) if is_number else None
        if said is None or said.key != key:
            return []
        return ranking.result_of(ranking.around(EntryIndex(self, key, "said"), said.number, reach))

    def unembedded(self, model: str, length: int, limit: int) -> list[Unembedded]:
        """A conversation's messages without a vector."""
        numbers = self.entries.unembedded(limit, anew=self._is_anew(model, length))
        said = self.records.many(MESSAGE, numbers)
        return [_unembedded(each) for each in takewhile(lambda one: one.key == said[0].key, said)]

    def keep_vectors(self, model: str, kept: Mapping[str, Vector]) -> None:
        """Keep vectors of messages that still exist. Those of another model go."""
        size, anew = size_of(kept), self._is_anew(model, size_of(kept))
        _, length = self.entries.vectors_of()
        self.entries.embedded_by(model, size or (0 if anew else length), anew=anew)
        for number, vector in kept.items():
            self.entries.embed(int(number), vector)

    def _is_anew(self, model: str, length: int) -> bool:
        of, known = self.entries.vectors_of()
        return of != model or bool(length and known and length != known)


def _unembedded(said: MessageRecord) -> Unembedded:
    whole = message(said)
    text = said_in(whole) if kind_of(whole) == "said" else ""
    return Unembedded(message_id=str(said.number), key=said.key, session_id=said.session_id, text=text)


class SearchingBackend(ABC):
    """The part of a `Backend` that answers searches, where the database itself keeps the entries."""

    @abstractmethod
    async def _searched(self, ask: Callable[[Search], T]) -> T:
        """What a search says, in a transaction of its own."""

    async def search(
        self, words: str, key: SessionKey | None, limit: int, now: float, meaning: Meaning | None
    ) -> list[Passage]:
        return await self._searched(lambda search: search.passages(words, key, limit, now, meaning))

    async def holding(self, values: Sequence[str], key: SessionKey, limit: int) -> list[list[Found]]:
        return await self._searched(lambda search: search.holding(values, key, limit))

    async def around(self, key: SessionKey, message_id: str, reach: int) -> list[Found]:
        return await self._searched(lambda search: search.around(key, message_id, reach))

    async def unembedded(self, model: str, length: int, limit: int) -> list[Unembedded]:
        return await self._searched(lambda search: search.unembedded(model, length, limit))


class EntryIndex:
    """The messages of one kind (None: of both), of one key or of all. No method waits."""

    def __init__(self, search: Search, key: SessionKey | None, kind: Kind | None) -> None:
        self._search = search
        self._entries = search.entries
        self._kind, self._lane = kind or "", "" if key is None else key.text
        self._size: int | None = None

    async def size(self) -> int:
        if self._size is None:
            self._size = self._entries.size(self._kind, self._lane)
        return self._size

    async def listed(self, terms: Sequence[str]) -> Mapping[str, Sequence[int]]:
        if not terms or (self._lane and not await self.size()):  # most chats have no results of tools
            return dict.fromkeys(terms, ())
        sought = [[term.split(ANY)] for term in terms]
        return dict(zip(terms, self._entries.listed(self._kind, self._lane, sought, MOST_OF_A_TERM), strict=True))

    async def vocabulary(self) -> Vocabulary:
        return self._search.memory.words(self._entries)

    async def holding(self, sought: Sequence[Question], limit: int) -> Sequence[Sequence[int]]:
        asked = [each.wanted for each in sought if each.wanted]
        newest = self._entries.listed(self._kind, self._lane, asked, limit)
        oldest = self._entries.listed(self._kind, self._lane, asked, 1, oldest=True)
        found = iter([[*some, *first] for some, first in zip(newest, oldest, strict=True)])
        return [next(found) if each.wanted else [] for each in sought]

    async def texts(self, numbers: Sequence[int]) -> Mapping[int, Text]:
        found = self._search.records.many(MESSAGE, numbers)
        return {each.number: Text(said_in(message(each)), each.at, each.session_id) for each in found}

    async def read(self, numbers: Sequence[int]) -> Mapping[int, Found]:
        found = self._search.records.many(MESSAGE, numbers)
        return {each.number: Found(session_id=each.session_id, message=message(each), at=each.at) for each in found}

    async def around(self, numbers: Sequence[int], reach: int) -> Mapping[int, Sequence[int]]:
        runs = {each: [each] for each in numbers}
        if not (numbers and reach):
            return runs
        for number, before, after in self._entries.beside(self._kind or "said", self._lane, numbers, reach):
            runs[number] = [*reversed(before), number, *after]
        session_of = self._entries.sessions(sorted({each for run in runs.values() for each in run}))
        talks = self._search.talks(set(session_of.values()))
        return {each: talks.cut(each, run, session_of) for each, run in runs.items()}

    async def nearest(self, meaning: Meaning) -> Sequence[int]:
        if self._entries.vectors_of()[0] != meaning.model:
            return []
        near = by_signs(meaning.vector[0], self._entries.signs(self._lane, MOST))
        return nearest(meaning.vector[1], self._entries.values(near))

    async def beside(self, work: Callable[[], T]) -> T:
        return work()  # this thread is only for searches
