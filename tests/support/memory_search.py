"""The messages of a space in memory as an index of words: all of them are looked at for each question."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from gateway.domain.chat import SessionKey
from gateway.domain.message import said_in
from gateway.store.kinds import MESSAGE, MESSAGES, SESSIONS, MessageRecord
from gateway.store.records import Found, Meaning, Vector
from gateway.store.shared.ranking import ANY, MOST_OF_A_TERM, Talks, Text
from gateway.store.shared.searchable import Kind, kind_of, terms_of
from gateway.store.shared.vectors import by_signs, nearest
from gateway.store.space import MANY, Space
from gateway.store.steps import sessions
from gateway.words.misspellings import Vocabulary
from gateway.words.text import Question

T = TypeVar("T")


class MemoryIndex:
    """The messages of one kind (None: of either), of one key or of all. No method waits."""

    def __init__(
        self, space: Space, key: SessionKey | None, kind: Kind | None, vectors: Mapping[int, Vector] | None = None
    ) -> None:
        self._space = space
        self._kind = kind
        self._vectors = vectors or {}
        lanes = space.names(MESSAGES) if key is None else [key.text]
        found = sorted((each for lane in lanes for each in space.first(MESSAGES, lane, MANY)), key=_number)
        self._kinds = {each.number: kind_of(sessions.message(each)) for each in found}
        self._said = {each.number: each for each in found}
        self._terms = {number: set(terms_of(sessions.message(self._said[number]), of)) for number, of in self._mine()}

    def _mine(self) -> Iterable[tuple[int, Kind]]:
        """The messages of the index's kind that a search finds."""
        return [(number, of) for number, of in self._kinds.items() if of is not None and self._kind in (None, of)]

    async def size(self) -> int:
        """Return the number of messages."""
        return len(self._terms)

    async def listed(self, terms: Sequence[str]) -> Mapping[str, Sequence[int]]:
        """The newest messages of each term."""
        return {term: self._holding([term])[-MOST_OF_A_TERM:] for term in terms}

    async def vocabulary(self) -> Vocabulary:
        """Return the words of all messages."""
        return Vocabulary(sorted({term for terms in self._terms.values() for term in terms}))

    async def holding(self, sought: Sequence[Question], limit: int) -> Sequence[Sequence[int]]:
        """For each question the messages that hold each of its words: the newest, and the oldest."""
        found = []
        for each in sought:
            held = [set(self._holding(alternatives)) for alternatives in each.wanted]
            numbers = sorted(set.intersection(*held)) if held else []
            found.append([*numbers[-limit:], *numbers[:1]])
        return found

    def _holding(self, terms: Sequence[str]) -> list[int]:
        return [number for number, own in self._terms.items() if any(_is_held(term, own) for term in terms)]

    async def texts(self, numbers: Sequence[int]) -> Mapping[int, Text]:
        """Return the words of the messages."""
        found = self._of(numbers)
        return {each.number: Text(said_in(sessions.message(each)), each.at, each.session_id) for each in found}

    async def read(self, numbers: Sequence[int]) -> Mapping[int, Found]:
        """The messages themselves."""
        found = self._of(numbers)
        return {
            each.number: Found(session_id=each.session_id, message=sessions.message(each), at=each.at) for each in found
        }

    def _of(self, numbers: Sequence[int]) -> list[MessageRecord]:
        found = [self._said.get(number) or self._space.get(MESSAGE, number) for number in numbers]
        return [each for each in found if each is not None]

    async def around(self, numbers: Sequence[int], reach: int) -> Mapping[int, Sequence[int]]:
        """The messages of the same talk before and after each."""
        sessions_of = {number: each.session_id for number, each in self._said.items()}
        listed = self._space.first(SESSIONS, "", MANY) if reach else []
        parents = {kept.session.id: kept.session.parent_id for kept in listed}
        talks = Talks({session: parent for session, parent in parents.items() if parent is not None})
        return {each: talks.cut(each, self._beside(each, reach), sessions_of) for each in numbers}

    def _beside(self, number: int, reach: int) -> list[int]:
        """The messages of the same conversation that people or the model said, and that one."""
        middle = self._said.get(number)
        if middle is None or not reach:
            return [number]
        known = [each for each, kind in self._mine() if kind == (self._kind or kind)]
        known = [each for each in known if self._said[each].key == middle.key]
        place = bisect_left(known, number)
        after = place + 1 if place < len(known) and known[place] == number else place
        return [*known[max(0, place - reach) : place], number, *known[after : after + reach]]

    async def nearest(self, meaning: Meaning) -> Sequence[int]:
        """The messages that mean nearly the same, nearest first."""
        known = {number: each for number, each in self._vectors.items() if number in self._said and each[1]}
        near = by_signs(meaning.vector[0], [(number, signs) for number, (signs, _) in known.items()])
        return nearest(meaning.vector[1], [(number, known[number][1]) for number in near])

    async def beside(self, work: Callable[[], T]) -> T:
        """The result of work that takes long."""
        return work()


def _is_held(term: str, own: set[str]) -> bool:
    """Say whether a message with these terms holds a term, or one of some."""
    return any(
        any(each.startswith(one[1:]) for each in own) if one.startswith("^") else one in own for one in term.split(ANY)
    )


def _number(said: MessageRecord) -> int:
    return said.number
