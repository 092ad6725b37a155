"""Finds the messages of an index that answer a question: one way for every store.

A store answers four small questions (`Index`); everything that decides stands here.

1. The messages that hold any word of the question are listed. A word weighs by its rarity (idf).
2. The 80 messages with the most weight are read, and their words weighed by BM25 (Robertson and Zaragoza, 2009; k1
   1.2, b 0.75). A message of the days that the question names weighs more. A message that only asks weighs less,
   because a person who asks does not know.
3. A message answers together with the messages around it: a person says their name once, and three messages later the
   thing that is looked for. So each word counts where it stands nearest: whole in the message itself, half in the next
   one, less up to the fourth. A tool's result counts among the messages around it, and the other way round.
4. The best are shown as passages, with two messages before and after, the talk around a tool's result, too. Passages do
   not overlap. What says almost the same as a better passage weighs half, so that the first ten show different things.

Cost: at most 4,000 messages are listed for one word, the newest ones, and about 8,000 for all words: common words then
only rank what the rarer words have found.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush, nlargest
from operator import itemgetter
from typing import Final, NamedTuple, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from gateway.domain.message import note_of, text_of
from gateway.runtime.structs import replace
from gateway.store.records import Found, Meaning, Passage
from gateway.store.shared.searchable import Kind
from gateway.words.dates import Span, spans
from gateway.words.earlier import announces, asks_for_earlier, without_asking
from gateway.words.misspellings import Vocabulary, may_slip
from gateway.words.related import kin
from gateway.words.text import (
    Occurrences,
    Question,
    asked_in,
    asks,
    asks_for_several,
    holds_phrases,
    parts_of,
    question,
)

MOST_OF_A_TERM: Final = 4_000
ANY: Final = "|"
_MOST_LISTED: Final = 8_000
_READ: Final = 80  # messages that are ranked by their text
_READ_EQUAL: Final = 150  # the same where the words tell none of them from the others
_LOOKED_AT: Final = 48  # for a value that messages must hold
_SHARING: Final = 48  # of these, the ones with neighbours that are looked at
_FOR_RESULTS: Final = 4  # one of so many places, rounded up, and at most half of them
REACH: Final = 2  # messages before and after a hit
_SHARES: Final = (1.0, 0.5, 0.35, 0.25, 0.2)  # of a word, by the distance of the message that holds it
_NEAR: Final = len(_SHARES) - 1
_SAME_STEP: Final = 0.8  # of a word, between results with nothing said between them
_K1: Final = 1.2
_B: Final = 0.75
_IN_SPAN: Final = 1.5  # the factor for the score of a message of the right day
_ONLY_ASKS: Final = 0.7  # and of one that is a question
_CHANGED_SINCE: Final = 0.6  # and of one that announces a change, where what was before is asked for
_BEST: Final = 3  # passages, among which the change may be
_AKIN: Final = 0.3  # of a change's score for its own words, which what held before it has at least
_WHOLE_RUN: Final = 1.25  # and pairs of characters, in a message that has them in a row
_ALIKE: Final = 0.5  # the share of their words in common from which two messages say almost the same
_REPEATS: Final = 0.8  # the share from which it is the same
_NAMED: Final = 2  # of the messages that are read, so many hold a word that names a member of a list
_AGAIN: Final = 0.5  # of a score is lost, by the share of words in common, if a better message is alike
_COMPARED: Final = 1_000  # characters of a message, for that
_FORGIVEN: Final = 4  # words of a question that no message holds, the longest, for which others are looked for
_MEANT: Final = 4  # words that stand for one
_ONLY_MEANT: Final = 0.6  # of the weight of a word
_KIN: Final = 0.4  # the same of words that people say where others ask
_MOST_WITH_KIN: Final = 24  # words of a question: each has some twenty
_FEW: Final = 3  # words: of fewer, one alone may stand anywhere
_MOSTLY: Final = 0.6  # of the words of a question
_BESIDE: Final = 0.3  # of the weight of a word beside the sentence that asks
_TURNS: Final = 4  # places, of which one is for what means nearly the same
_COUNTED: Final = 400  # characters of a message from which its words are counted
_TEXT: Final = 20_000  # characters of a message that are looked at

T = TypeVar("T")

Number: TypeAlias = int  # names a message in an index; a later message has a higher number


class Text(NamedTuple):
    """The words of a message, their time (seconds since the epoch), and their first session."""

    text: str
    at: float
    session_id: str


class Index(Protocol):
    """The messages of one kind, of one conversation or of all."""

    async def size(self) -> int:
        """Return the number of messages."""

    async def listed(self, terms: Sequence[str]) -> Mapping[str, Sequence[Number]]:
        """For each term, the newest messages that hold it, at most `MOST_OF_A_TERM`, in any order. Terms joined by
        `ANY` are one: messages that hold any of them."""

    async def vocabulary(self) -> Vocabulary:
        """The words of the index, and perhaps more."""

    async def holding(self, sought: Sequence[Question], limit: int) -> Sequence[Sequence[Number]]:
        """For each question, the messages that hold all of its words, as far as that is cheap to know: the newest
        `limit` and the oldest, in any order. None for a question without words."""

    async def texts(self, numbers: Sequence[Number]) -> Mapping[Number, Text]:
        """The words of messages. Missing ones are left out."""

    async def read(self, numbers: Sequence[Number]) -> Mapping[Number, Found]:
        """The messages. Missing ones are left out."""

    async def around(self, numbers: Sequence[Number], reach: int) -> Mapping[Number, Sequence[Number]]:
        """For each message, up to `reach` messages before and after it in the same talk, and itself, in rising
        order."""

    async def nearest(self, meaning: Meaning) -> Sequence[Number]:
        """The messages that mean nearly the same, nearest first."""

    async def beside(self, work: Callable[[], T]) -> T:
        """The result of work on megabytes of text, done where nobody waits for it."""


class Talks:
    """Which sessions form one talk, because each continues another. `parents`: what each continues."""

    def __init__(self, parents: Mapping[str, str | None]) -> None:
        self._parents = parents

    def of(self, session_id: str) -> str:
        """The first session of a talk, which names the talk."""
        seen = {session_id}
        while (above := self._parents.get(session_id)) is not None and above not in seen:
            seen.add(above)
            session_id = above
        return session_id

    def cut(self, number: Number, run: Sequence[Number], session_of: Mapping[Number, str]) -> list[Number]:
        """A run of messages, without those of other talks than this message's."""
        own = session_of.get(number, "")
        return [
            each
            for each in run
            if each == number or (other := session_of.get(each, "")) == own or self.of(other) == self.of(own)
        ]


def result_of(search: Coroutine[None, None, T]) -> T:
    """The result of a search that never waits, in the caller's thread."""
    try:
        search.send(None)
    except StopIteration as ended:
        result: T = ended.value
        return result
    raise RuntimeError("A search waited for something.")


async def around(index: Index, number: Number, reach: int) -> list[Found]:
    """A message and its neighbours; empty if it is gone."""
    numbers = (await index.around([number], reach))[number]
    found = await index.read(numbers)
    return [found[each] for each in numbers if each in found] if number in found else []


async def holding(indexes: Sequence[Index], values: Sequence[str], limit: int) -> list[list[Found]]:
    """For each value, the messages of these indexes that hold it exactly: the oldest, and up to `limit` of the newest,
    oldest first. Nothing is ranked. An index knows only words, so more messages have to be read."""
    sought = [question(value, stops=True) for value in values]
    found = [await index.holding(sought, _LOOKED_AT // len(indexes)) for index in indexes]
    numbers = [sorted(set().union(*some)) for some in zip(*found, strict=True)]
    every = sorted({each for some in numbers for each in some})
    read = await indexes[0].read(every) if every else {}
    texts = {number: text_of(each.message) for number, each in read.items()}
    held = [
        [each for each in some if value in texts.get(each, "")] for value, some in zip(values, numbers, strict=True)
    ]
    return [[read[each] for each in ends(some, limit)] for some in held]


def ends(numbers: Sequence[Number], limit: int) -> list[Number]:
    """The first of rising numbers, and up to `limit` of the last ones."""
    return [*numbers[:1], *numbers[1:][-limit:]]


class Sought(Struct, frozen=True):
    """A question once it is understood: its words, and the days that it names. `meant`: places of words that no message
    holds, so that similar words stand in. `kin`: places of words that are only related to those of the question.
    `earlier`: it asks for what held before a change. `several`: it asks for a list. Both states of a thing, or the
    members of a list, look alike, and all are wanted."""

    wanted: Question
    when: Sequence[Span]
    meant: frozenset[int] = frozenset()
    kin: frozenset[int] = frozenset()
    earlier: bool = False
    several: bool = False

    @classmethod
    def by(cls, words: str, now: float) -> Sought:
        """The search for these words. `now`: seconds since the epoch."""
        asked = asked_in(words)
        earlier = asks_for_earlier(asked)
        wanted = question(without_asking(asked) if earlier else words)
        several = not earlier and asks_for_several(asked)
        return cls(wanted if wanted.wanted else question(words), spans(asked, now), earlier=earlier, several=several)

    def with_kin(self) -> Sought:
        """The same, also with the words that people say where others ask."""
        wanted, asked, taken = self.wanted, len(self.wanted.wanted), set(self.wanted.terms)
        plain = set(question(" ".join(wanted.phrases)).terms)  # what is quoted is meant as it is written
        for place, terms in enumerate(wanted.wanted[:_MOST_WITH_KIN]):
            if place in wanted.beside or plain.intersection(terms):
                continue
            if others := tuple(each for each in kin(terms, wanted.language) if each not in taken):
                taken.update(others)
                wanted = replace(wanted, wanted=(*wanted.wanted, others))
        return replace(self, wanted=wanted, kin=frozenset(range(asked, len(wanted.wanted))))


class _Word(Struct, frozen=True):
    """A word of a question: the messages that hold it, and how much it tells."""

    held_by: frozenset[Number]
    weight: float


async def search(
    index_of: Callable[[Kind], Index], words: str, limit: int, now: float, meaning: Meaning | None = None
) -> list[Passage]:
    """The passages that answer best: see `find`. `now`: seconds since the epoch."""
    return await find(index_of("said"), index_of("returned"), Sought.by(words, now), limit, meaning)


async def find(
    said: Index, returned: Index, sought: Sought, limit: int, meaning: Meaning | None = None
) -> list[Passage]:
    """The passages that answer best, best first: people's and the model's words, then results of tools, each with two
    messages before and after. Some word of a question is in many messages, so results keep a quarter of the places. The
    two indexes number their messages together. `meaning`: messages that mean nearly the same form a second ranking."""
    near = await said.nearest(meaning) if meaning is not None else ()
    if not (sought.wanted.wanted or near) or limit < 1:
        return []
    found = await _find(said, returned, sought, limit, near)
    if sought.earlier:
        found = await _with_former(said, returned, found, limit)
    if len(found) >= limit or not sought.wanted.phrases or sought.wanted.only_phrases:
        return found
    # A question that quotes something, and hardly a message holds that: the others come behind.
    others = await _find(said, returned, replace(sought, wanted=replace(sought.wanted, phrases=())), limit, near)
    return [*found, *_behind(found, others)][:limit]


async def _with_former(said: Index, returned: Index, found: list[Passage], limit: int) -> list[Passage]:
    """The passages; if one of the best announces a change, before it what held until then. That may share no word with
    the question, but does so with the change: "the flat in Lindengasse", "we moved, the flat was mouldy"."""
    place = next((place for place, each in enumerate(found[:_BEST]) if announces(text_of(each.hit.message))), None)
    if place is None:
        return found
    change, shown = found[place], {note_of(turn.message)["id"] for each in found for turn in each.turns}
    again = await _find(said, returned, Sought(question(text_of(change.hit.message)[:_COMPARED]), ()), limit, ())
    former = next((each for each in again if each.hit.at <= change.hit.at and each.hit != change.hit), None)
    if former is None or former.score < _AKIN * again[0].score or note_of(former.hit.message)["id"] in shown:
        return found
    turns = tuple(turn for turn in former.turns if note_of(turn.message)["id"] not in shown)
    former = Passage(turns=turns, best=turns.index(former.hit), score=change.score)
    return [*found[:place], former, *found[place:]][:limit]


def _behind(found: Sequence[Passage], others: Sequence[Passage]) -> Iterator[Passage]:
    """More passages, without what is shown already, none with a higher score."""
    shown = {note_of(turn.message)["id"] for each in found for turn in each.turns}
    lowest = min((each.score for each in found), default=math.inf)
    for each in others:
        turns = tuple(turn for turn in each.turns if note_of(turn.message)["id"] not in shown)
        if each.hit in turns:
            yield Passage(turns=turns, best=turns.index(each.hit), score=min(each.score, lowest))


async def _find(said: Index, returned: Index, sought: Sought, limit: int, near: Sequence[Number]) -> list[Passage]:
    sought, *listed = await _understood((said, returned), sought)
    spoken, results = [
        await _hits(each, sought, limit, some) for each, some in zip((said, returned), listed, strict=True)
    ]
    if near:
        spoken = await _with_near(said, sought, spoken, near)
    around = await said.around([*spoken.best, *results.best], _NEAR)
    every = _Hits({**spoken.texts, **results.texts}, {**spoken.weights, **results.weights}, ())
    nearby = _Nearby(every, frozenset(results.texts))
    shown: set[Number] = set()
    room = min(limit // 2, -(-limit // _FOR_RESULTS))
    scores = nearby.scores(spoken.best, around)
    heard = _chosen(_fused(scores, near) if near else scores, around, every, limit, shown, sought)
    kept = limit - min(len(results.best), max(limit - len(heard), room))
    for _, part, _ in heard[kept:]:
        shown.difference_update(part)
    told = _chosen(nearby.scores(results.best, around), around, every, limit - kept, shown, None)
    return await _passages(said, [*heard[:kept], *told])


async def _with_near(said: Index, sought: Sought, hits: _Hits, near: Sequence[Number]) -> _Hits:
    """The hits, and messages with nearly the same meaning that hold every quoted phrase."""
    others = await said.texts([each for each in near if each not in hits.texts])
    texts = {number: each for number, each in others.items() if holds_phrases(each.text[:_TEXT], sought.wanted)}
    weights = {number: hits.weights.get(number, {}) for number in texts}
    best = [*hits.best, *(each for each in near if each in texts or (each in hits.weights and each not in hits.best))]
    return _Hits({**hits.texts, **texts}, {**hits.weights, **weights}, best)


def _fused(scores: Mapping[Number, float], near: Sequence[Number]) -> dict[Number, float]:
    """Scores from both rankings: of `_TURNS` places, the last goes to meaning and the others to words, because a list
    of what was said is found by its words and must not be crowded out."""
    by_words = sorted((each for each in scores if scores[each]), key=lambda each: (-scores[each], -each))
    queues = [deque(by_words), deque(each for each in near if each in scores)]
    order: dict[Number, None] = {}
    while any(queues):
        turn = len(order) % _TURNS == _TURNS - 1
        order.setdefault((queues[turn] or queues[not turn]).popleft())
    return dict.fromkeys(scores, 0.0) | {number: 1 / (1 + place) for place, number in enumerate(order)}


class _Hits(Struct, frozen=True):
    """Messages of one kind, with the weight of each word of the question (by its place) in each, and the best of
    them."""

    texts: Mapping[Number, Text]
    weights: Mapping[Number, Mapping[int, float]]
    best: Sequence[Number]


_Listed: TypeAlias = Mapping[str, Sequence[Number]]


async def _understood(indexes: tuple[Index, Index], sought: Sought) -> tuple[Sought, _Listed, _Listed]:
    """The question, with similar words in place of those that no message holds, and the messages that both indexes list
    for its terms."""
    said, returned = [await each.listed(sought.wanted.terms) for each in indexes]
    if not _is_answered(sought.wanted, said, await indexes[0].size()):
        sought = await indexes[0].beside(sought.with_kin)
        more = {ANY.join(terms): terms[0] for terms in map(sought.wanted.wanted.__getitem__, sought.kin)}
        said, returned = [
            {**known, **{more[some]: held for some, held in (await each.listed([*more])).items()}}
            for each, known in zip(indexes, (said, returned), strict=True)
        ]
    wanted = sought.wanted
    missing = [
        place
        for place, terms in enumerate(wanted.wanted)
        if place not in sought.kin
        and not any(said.get(term) or returned.get(term) for term in terms)
        and any(map(may_slip, terms))
    ]
    meant: dict[int, tuple[str, ...]] = {}
    vocabulary = await indexes[0].vocabulary() if missing else Vocabulary()
    for place in sorted(missing, key=lambda each: -len(wanted.wanted[each][0]))[:_FORGIVEN]:
        terms, (known, also) = await _meant(
            indexes, vocabulary, [*filter(may_slip, wanted.wanted[place])], wanted.language
        )
        if terms:
            meant[place], said, returned = terms, {**said, **known}, {**returned, **also}
    if not meant:
        return sought, said, returned
    words = tuple((*terms, *meant.get(place, ())) for place, terms in enumerate(wanted.wanted))
    return replace(sought, wanted=replace(wanted, wanted=words), meant=frozenset(meant)), said, returned


def _is_answered(wanted: Question, said: _Listed, size: int) -> bool:
    """Whether some message holds most of a question, by the weight of its words, so that no related words are needed. A
    name that stands before every other message says little."""
    if len(wanted.wanted) < _FEW:
        return False
    holding = [_holding(terms, said) for terms in wanted.wanted]
    weights = [math.log(1 + size / max(1, len(numbers))) for numbers in holding]
    left = sum(weights)
    most, held = _MOSTLY * left, dict[Number, float]()
    for weight, numbers in sorted(zip(weights, holding, strict=True), key=itemgetter(0), reverse=True):
        if left >= most:  # otherwise a message with none of the words so far holds too little
            held = dict.fromkeys(numbers, 0.0) | held
        for number in numbers.intersection(held):
            held[number] += weight
        left -= weight
    return max(held.values(), default=0) >= most


def _holding(terms: Iterable[str], listed: _Listed) -> frozenset[Number]:
    """The messages that hold one of the terms."""
    return frozenset[Number]().union(*(listed.get(term, ()) for term in terms))


async def _meant(
    indexes: tuple[Index, Index], words: Vocabulary, terms: Sequence[str], language: str
) -> tuple[tuple[str, ...], list[_Listed]]:
    """The words that may be meant by one that no message holds, and the messages that hold them."""

    def near() -> list[list[str]]:
        alike = [each for term in terms for each in words.alike(term)]
        return [alike, [each for term in terms for each in words.parts(term, language)]]

    for some in map(list, map(dict.fromkeys, await indexes[0].beside(near))):
        listed = [await each.listed(some) for each in indexes]
        held = [each for each in some if any(one.get(each) for one in listed)][:_MEANT]
        if held:
            return tuple(held), [{each: one.get(each, ()) for each in held} for one in listed]
    return (), [{}, {}]


async def _hits(index: Index, sought: Sought, limit: int, listed: _Listed) -> _Hits:
    size = await index.size()
    if not any(listed.values()):
        return _Hits({}, {}, ())
    words = _words(sought, listed, size)
    texts = await index.texts(_shortlist(words))
    weights = await index.beside(lambda: _weights(sought, words, texts))
    sums = {number: sum(each.values()) for number, each in weights.items()}
    return _Hits(texts, weights, nlargest(max(_SHARING, limit), sums, key=lambda number: (sums[number], number)))


def _words(sought: Sought, listed: _Listed, size: int) -> list[_Word]:
    found = []
    for place, alternatives in enumerate(sought.wanted.wanted):
        held_by = _holding(alternatives, listed)
        others = max(0, size - len(held_by))
        share = _ONLY_MEANT if place in sought.meant else _KIN if place in sought.kin else 1.0
        share *= _BESIDE if place in sought.wanted.beside else 1.0
        found.append(_Word(held_by, share * math.log(1 + (others + 0.5) / (len(held_by) + 0.5))))
    return found


def _shortlist(words: Iterable[_Word]) -> list[Number]:
    """The messages with the most weight of words. Rare words name them; common ones join while there is room."""
    weights: dict[Number, float] = {}
    room = _MOST_LISTED
    lightest = math.inf  # of the messages that are named by now
    left = sorted(words, key=lambda each: len(each.held_by))
    while left:
        # Enough messages are named, and nothing but the words left makes no message as heavy.
        is_full = len(weights) >= _READ and lightest > sum(word.weight for word in left)
        word = left.pop(0)
        held = word.held_by.intersection(weights)
        for number in held:
            weights[number] += word.weight
        if not is_full and (len(word.held_by) <= room or not weights):
            room -= len(word.held_by)
            weights |= dict.fromkeys(word.held_by - held, word.weight)
            lightest = word.weight
    # Thousands may weigh the same: the newest of these are taken.
    least = min(sorted(weights.values())[-_READ:], default=0.0)
    above = sorted(((weight, number) for number, weight in weights.items() if weight > least), reverse=True)
    equal = sorted((number for number, weight in weights.items() if weight == least), reverse=True)
    return [*(number for _, number in above), *equal][: _READ if above else _READ_EQUAL]


def _weights(sought: Sought, words: Sequence[_Word], texts: Mapping[Number, Text]) -> dict[Number, Mapping[int, float]]:
    wanted = sought.wanted
    average = sum(min(len(each.text), _TEXT) for each in texts.values()) / max(1, len(texts)) or 1.0
    occurrences = Occurrences(wanted)
    listed: dict[Number, list[int]] = {number: [] for number in texts}  # the places of the words that the index knows
    for place, word in enumerate(words):
        for number in word.held_by.intersection(texts):
            listed[number].append(place)
    weights: dict[Number, Mapping[int, float]] = {}
    for number, (whole, at, _) in texts.items():
        text = whole[:_TEXT]
        if wanted.phrases and not holds_phrases(text, wanted):
            continue
        length = _K1 * (1 - _B + _B * len(text) / average)
        factor = _IN_SPAN if any(begin <= at < end for begin, end in sought.when) else 1.0
        factor *= _ONLY_ASKS if asks(text) else 1.0
        factor *= _CHANGED_SINCE if sought.earlier and announces(text) else 1.0
        together = factor * (_WHOLE_RUN if any(run in text for run in wanted.runs) else 1.0)
        counts = dict.fromkeys(listed[number], 1)
        if len(text) > _COUNTED:  # a short text says a word once, and to count takes longer than all else
            # The index knows words that the eye misses: an accent, a form of a letter.
            counts |= {place: count for place, count in enumerate(occurrences.counts(text)) if count}
        weights[number] = {
            place: (together if place in occurrences.dense else factor)
            * words[place].weight
            * (count * (_K1 + 1) / (count + length))
            for place, count in counts.items()
        }
    return weights


class _Nearby:
    """Weighs messages together with their neighbours. `results`: those that tools returned."""

    def __init__(self, hits: _Hits, results: frozenset[Number]) -> None:
        self._hits = hits
        self._results = results
        self._numbers = sorted(hits.weights)

    def scores(self, numbers: Iterable[Number], around: Mapping[Number, Sequence[Number]]) -> dict[Number, float]:
        """The score of each message that still exists."""
        return {number: self._score(number, around[number]) for number in numbers if number in around}

    def _score(self, number: Number, around: Sequence[Number]) -> float:
        weights = self._hits.weights
        best = dict(weights[number])
        for other, share in self._shares(number, around):
            for place, weight in weights[other].items():
                if share * weight > best.get(place, 0.0):
                    best[place] = share * weight
        return sum(best.values())

    def _shares(self, number: Number, around: Sequence[Number]) -> Iterator[tuple[Number, float]]:
        """Other hits around a message, and how much each counts, by the number of messages between. The messages may be
        those of one chat among many."""
        texts, here = self._hits.texts, around.index(number)
        first, last = bisect_left(self._numbers, around[0]), bisect_right(self._numbers, around[-1])
        for other in self._numbers[first:last]:
            place = bisect_left(around, other)
            if other in self._results:
                between = here - place if place <= here else place - here - 1
                stands_here = texts[other].session_id == texts[number].session_id
            else:
                between = abs(here - place) - 1
                stands_here = around[place] == other
            if stands_here and between < _NEAR and other != number:
                of_one_step = not between and number in self._results and other in self._results
                yield other, _SAME_STEP if of_one_step else _SHARES[between + 1]


_Choice: TypeAlias = tuple[Number, list[Number], float]  # a message, the ones that are shown with it, its score


def _chosen(
    scores: Mapping[Number, float],
    around: Mapping[Number, Sequence[Number]],
    hits: _Hits,
    limit: int,
    shown: set[Number],
    sought: Sought | None,
) -> list[_Choice]:
    """The best messages, each with those neighbours that no better passage shows; `shown` grows. What looks like a
    better passage is put off. If the question asks for a list, that is not done to what looks like a member: a message
    that holds several words of the question and a rare one, or one that looks like such a member."""
    alike = 1.0 if sought is not None and sought.earlier else _ALIKE
    queue = [(-score, -number, False) for number, score in scores.items()]
    heapify(queue)
    chosen: list[_Choice] = []
    parts: list[tuple[frozenset[str], float]] = []  # of a passage, and the share from which another is put off
    members = _members(hits) if sought is not None and sought.several else frozenset[Number]()
    while queue and len(chosen) < limit:
        score, number, again = heappop(queue)
        number = -number
        if number in shown:
            continue
        own = parts_of(hits.texts[number].text[:_COMPARED])
        common = [(_shared(own, other), least) for other, least in parts]
        shared = 0.0 if again else max((share for share, least in common if share >= least), default=0.0)
        if shared:
            heappush(queue, (score * (1 - _AGAIN * (1.0 if shared >= _REPEATS else shared)), -number, True))
            continue
        place = around[number].index(number)
        part = [each for each in around[number][max(0, place - REACH) : place + REACH + 1] if each not in shown]
        shown.update(part)
        is_member = number in members or any(share >= _ALIKE and least == _REPEATS for share, least in common)
        parts.append((own, _REPEATS if is_member else alike))
        chosen.append((number, part, -score))
    return chosen


def _members(hits: _Hits) -> frozenset[Number]:
    """The messages that may be members of a list: they hold several words of the question, and a rare one."""
    parts = {number: parts_of(each.text[:_COMPARED]) for number, each in hits.texts.items()}
    holding = Counter(part for each in parts.values() for part in each)
    return frozenset(
        number
        for number, each in parts.items()
        if len(hits.weights.get(number, ())) > 1 and any(holding[part] <= _NAMED for part in each)
    )


def _shared(own: frozenset[str], other: frozenset[str]) -> float:
    """The share of the parts of two messages that both have."""
    common = len(own & other)
    return common / (len(own) + len(other) - common or 1)


async def _passages(index: Index, chosen: Sequence[_Choice]) -> list[Passage]:
    read = await index.read(sorted(each for _, part, _ in chosen for each in part))
    return [
        Passage(
            turns=tuple(read[each] for each in part if each in read),
            best=sum(each < number for each in part if each in read),
            score=score,
        )
        for number, part, score in chosen
        if number in read
    ]
