"""Finds what answers a question among the messages of an index: one way for every store.

A store answers four small questions (`Index`); everything that decides stands here.

1. The messages that hold any word of the question are listed. A word weighs by its rarity (idf).
2. The 200 messages with the most weight are read and ranked by BM25 (Robertson and Zaragoza, 2009; k1 1.2, b 0.75). A
   message of the days that the question names weighs more.
3. A message shares its score with its neighbours, because an answer stands beside its question: 0.3 of the score with
   the next message, 0.1 with the one after.
4. The best are shown as passages, with two messages before and after. Passages do not overlap.

Cost: at most 4,000 messages are listed for one word, the newest ones, and about 8,000 for all words: common words then
only rank what the rarer words have found.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from typing import Final, Protocol, TypeAlias

from gateway.domain.message import said_in, text_of
from gateway.store.records import Found, Passage
from gateway.store.shared.dates import Span, spans
from gateway.store.shared.searchable import Kind
from gateway.store.shared.text import Occurrences, Question, holds_phrases, question

MOST_OF_A_TERM: Final = 4_000
_MOST_LISTED: Final = 8_000
_READ: Final = 200  # messages that are ranked by their text
_LOOKED_AT: Final = 24  # for a value that messages must hold
_SHARING: Final = 24  # of these, the ones whose neighbours are looked at
_FOR_RESULTS: Final = 5  # one of so many places
REACH: Final = 2  # messages before and after a hit
_SHARES: Final = (0.3, 0.1)  # of a score, for the next message and the one after
_K1: Final = 1.2
_B: Final = 0.75
_IN_SPAN: Final = 1.5  # what the score of a message of the right day is multiplied by
_WHOLE_RUN: Final = 2.0  # and of one that has the pairs of characters in a row
_ASKED: Final = 2_000  # characters of a question in which a date is looked for
_TEXT: Final = 20_000  # characters of a message that are looked at

Number: TypeAlias = int  # names a message in an index; a later message has a higher number


class Index(Protocol):
    """The messages of one kind, of one conversation or of all."""

    async def size(self) -> int:
        """Return the number of messages."""

    async def listed(self, terms: Sequence[str]) -> Mapping[str, Sequence[Number]]:
        """For each term the newest messages that hold the term, at most `MOST_OF_A_TERM`, in any order."""

    async def holding(self, sought: Sequence[Question], limit: int) -> Sequence[Sequence[Number]]:
        """For each question the messages that hold each of its words, as far as that is known cheaply: the newest
        `limit` and the oldest, in any order. A question without words has none."""

    async def read(self, numbers: Sequence[Number]) -> Mapping[Number, Found]:
        """The messages. One that is gone is left out."""

    async def around(self, numbers: Sequence[Number], reach: int) -> Mapping[Number, Sequence[Number]]:
        """For each message up to `reach` messages before and after the message, rising, the message among them."""


async def around(index: Index, number: Number, reach: int) -> list[Found]:
    """A message, and what was said before and after it; empty if it is gone."""
    numbers = (await index.around([number], reach))[number]
    found = await index.read(numbers)
    return [found[each] for each in numbers if each in found] if number in found else []


async def holding(index_of: Callable[[Kind], Index], values: Sequence[str], limit: int) -> list[list[Found]]:
    """For each value the messages of either kind that hold it as it is written: the oldest and up to `limit` of the
    newest, oldest first. Nothing is ranked. An index knows words only, so more messages are looked at."""
    said, returned = index_of("said"), index_of("returned")
    sought = [question(value, stops=True) for value in values]
    found = await asyncio.gather(said.holding(sought, _LOOKED_AT), returned.holding(sought, _LOOKED_AT))
    numbers = [sorted({*one, *other}) for one, other in zip(*found, strict=True)]
    every = sorted({each for some in numbers for each in some})
    read = await said.read(every) if every else {}
    texts = {number: text_of(each.message) for number, each in read.items()}
    held = [
        [each for each in some if value in texts.get(each, "")] for value, some in zip(values, numbers, strict=True)
    ]
    return [[read[each] for each in ends(some, limit)] for some in held]


def ends(numbers: Sequence[Number], limit: int) -> list[Number]:
    """The first of rising numbers, and up to `limit` of the last ones."""
    return [*numbers[:1], *numbers[1:][-limit:]]


@dataclass(frozen=True, slots=True)
class Sought:
    """A question, understood: its words, and the days that it names."""

    wanted: Question
    when: Sequence[Span]

    @classmethod
    def by(cls, words: str, now: float) -> Sought:
        """Return the search for these words. `now`: seconds since the epoch."""
        return cls(question(words), spans(words[:_ASKED], now))


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of a question: the messages that hold the word, and how much the word tells."""

    held_by: frozenset[Number]
    weight: float


async def search(index_of: Callable[[Kind], Index], words: str, limit: int, now: float) -> list[Passage]:
    """The passages that answer best, best first: what was said, then what tools returned, each result alone. Some word
    of a question stands in many messages, so a fifth of the places is kept for results. `now`: seconds since the
    epoch."""
    sought = Sought.by(words, now)
    said = await find(index_of("said"), sought, limit)
    room = max(limit - len(said), limit // _FOR_RESULTS)
    returned = await find(index_of("returned"), sought, room, reach=0)
    return [*said[: limit - len(returned)], *returned]


async def find(index: Index, sought: Sought, limit: int, *, reach: int = REACH) -> list[Passage]:
    """The passages of one index that answer best, best first, with `reach` messages before and after."""
    wanted = sought.wanted
    if not wanted.wanted or limit < 1 or not (size := await index.size()):
        return []
    listed = await index.listed(wanted.terms)
    if not any(listed.values()):
        return []
    told = _words(wanted, listed, size)
    read = await index.read(_shortlist(told))
    # Megabytes of texts: in a thread, so that nobody waits for a search.
    scores = await asyncio.to_thread(_scores, wanted, told, read, sought.when)
    best = nlargest(max(_SHARING, limit), scores, key=lambda number: (scores[number], number))
    around = await index.around(best, reach)
    shared = {number: _shared(number, around[number], scores) for number in best if number in around}
    return await _passages(index, shared, around, read, limit)


def _words(wanted: Question, listed: Mapping[str, Sequence[Number]], size: int) -> list[_Word]:
    found = []
    for alternatives in wanted.wanted:
        held_by = frozenset(number for term in alternatives for number in listed.get(term, ()))
        others = max(0, size - len(held_by))
        found.append(_Word(held_by, math.log(1 + (others + 0.5) / (len(held_by) + 0.5))))
    return found


def _shortlist(words: Iterable[_Word]) -> list[Number]:
    """The messages with the most weight of words. Rare words name them; common ones join while there is room."""
    weights: dict[Number, float] = {}
    room = _MOST_LISTED
    for word in sorted(words, key=lambda each: len(each.held_by)):
        fresh = word.held_by.difference(weights)
        for number in word.held_by - fresh if weights else ():
            weights[number] += word.weight
        if len(word.held_by) <= room or not weights:
            room -= len(word.held_by)
            weights |= dict.fromkeys(fresh, word.weight)
    # Thousands may weigh the same: the newest of these are taken.
    least = min(sorted(weights.values())[-_READ:], default=0.0)
    above = sorted(((weight, number) for number, weight in weights.items() if weight > least), reverse=True)
    equal = sorted((number for number, weight in weights.items() if weight == least), reverse=True)
    return [*(number for _, number in above), *equal][:_READ]


def _scores(
    wanted: Question, words: Sequence[_Word], read: Mapping[Number, Found], when: Sequence[Span]
) -> dict[Number, float]:
    texts = {number: said_in(found.message)[:_TEXT] for number, found in read.items()}
    average = sum(map(len, texts.values())) / max(1, len(texts)) or 1.0
    occurrences = Occurrences(wanted)
    scores = {}
    for number, text in texts.items():
        if not holds_phrases(text, wanted):
            continue
        length = _K1 * (1 - _B + _B * len(text) / average)
        score = 0.0
        for word, count in zip(words, occurrences.counts(text), strict=True):
            # The index knows words that the eye misses: an accent, a form of a letter.
            count = count or (number in word.held_by)
            score += word.weight * count * (_K1 + 1) / (count + length) if count else 0.0
        at = read[number].at
        score *= _IN_SPAN if any(begin <= at < end for begin, end in when) else 1.0
        scores[number] = score * (_WHOLE_RUN if any(run in text for run in wanted.runs) else 1.0)
    return scores


def _shared(number: Number, around: Sequence[Number], scores: Mapping[Number, float]) -> float:
    place = around.index(number)
    others = (
        share * scores.get(around[place + step * sign], 0.0)
        for step, share in enumerate(_SHARES, start=1)
        for sign in (-1, 1)
        if 0 <= place + step * sign < len(around)
    )
    return scores[number] + sum(others)


async def _passages(
    index: Index,
    scores: Mapping[Number, float],
    around: Mapping[Number, Sequence[Number]],
    known: Mapping[Number, Found],
    limit: int,
) -> list[Passage]:
    """The best messages, each with the messages around that no better passage shows. `known`: messages that were read
    already."""
    shown: set[Number] = set()
    chosen: list[tuple[Number, list[Number]]] = []
    for number in sorted(scores, key=lambda each: (scores[each], each), reverse=True):
        if number not in shown and len(chosen) < limit:
            part = [each for each in around[number] if each not in shown]
            shown.update(part)
            chosen.append((number, part))
    missing = sorted(shown - known.keys())
    read = {**known, **await index.read(missing)} if missing else known
    return [
        Passage(
            turns=tuple(read[each] for each in part if each in read),
            best=sum(each < number for each in part if each in read),
            score=scores[number],
        )
        for number, part in chosen
        if number in read
    ]
