"""Messages as they are read where no index can be asked: while entries that another version of Legato made are made
anew. A search reads every message. It finds what it would find in an index, except slips of the pen and words that only
stand for those of the question."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence

from gateway.domain.message import Message, said_in
from gateway.store.records import Meaning
from gateway.store.shared.ranking import MOST_OF_A_TERM, Index, Number
from gateway.store.shared.searchable import Kind, kind_of
from gateway.words.misspellings import Vocabulary
from gateway.words.text import Holds


class Unindexed:
    """The messages of one conversation or of all, and which of them hold words of a question."""

    def __init__(self, words: str) -> None:
        self._sought = Holds(words)
        self._all: dict[Kind, list[Number]] = {"said": [], "returned": []}
        self._of_talk: defaultdict[str, list[Number]] = defaultdict(list)  # what was said
        self._talk_of: dict[Number, str] = {}
        self._held: dict[Kind, defaultdict[str, list[Number]]] = {
            "said": defaultdict(list),
            "returned": defaultdict(list),
        }

    def take(self, number: Number, talk: str, message: Message) -> None:
        """Look at a message. They come in order of their numbers."""
        kind = kind_of(message)
        if kind is None:
            return
        self._all[kind].append(number)
        if kind == "said":
            self._of_talk[talk].append(number)
        held = self._sought.held(said_in(message))
        if held:
            self._talk_of[number] = talk
        for place in held:
            for term in self._sought.wanted[place]:
                self._held[kind][term].append(number)

    def size(self, kind: Kind) -> int:
        """Return the number of messages."""
        return len(self._all[kind])

    def listed(self, kind: Kind, terms: Sequence[str]) -> Mapping[str, Sequence[Number]]:
        """For each term, the newest messages that hold it."""
        return {term: self._held[kind][term][-MOST_OF_A_TERM:] for term in terms}

    def around(self, number: Number, reach: int) -> Sequence[Number]:
        """A message that holds some word, with what was said before and after it."""
        known = self._of_talk[self._talk_of[number]]
        place = bisect_left(known, number)
        after = place + 1 if place < len(known) and known[place] == number else place
        return [*known[max(0, place - reach) : place], number, *known[after : after + reach]]


class ReadIndex:
    """Messages of one kind that were read, in the form of an index. `index`: of their texts."""

    def __init__(self, index: Index, messages: Unindexed, kind: Kind) -> None:
        self._messages, self._kind = messages, kind
        self.holding, self.texts, self.read, self.beside = index.holding, index.texts, index.read, index.beside

    async def size(self) -> int:
        return self._messages.size(self._kind)

    async def listed(self, terms: Sequence[str]) -> Mapping[str, Sequence[Number]]:
        return self._messages.listed(self._kind, terms)

    async def vocabulary(self) -> Vocabulary:
        """None: only the words of the question were looked for."""
        return Vocabulary()

    async def around(self, numbers: Sequence[Number], reach: int) -> Mapping[Number, Sequence[Number]]:
        return {each: self._messages.around(each, reach) for each in numbers}

    async def nearest(self, meaning: Meaning) -> Sequence[Number]:
        """None: only the words of the question were looked for."""
        return ()
