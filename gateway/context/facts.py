"""Plain facts: short statements of people about themselves, their people, their things, choices and dates.

"I am allergic to shellfish" is no instruction and holds no identifier, and a summariser drops it after some
compactions. So such sentences are carried from summary to summary word for word, by code. They are looked for when
they leave view, in the person's own words alone (`personal`).

A fact that is said anew, or in a sentence that tells of a change, takes the place of the older one; any other stands
below it. If room is short, the last to go are those that say who somebody is, what they must not have, or what was
decided; among equals, the older ones go first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain
from typing import Annotated, Any, Final, NamedTuple

from msgspec import Meta, Struct

from gateway.context.dating import Days, Told, related, telling
from gateway.context.instructions import read, stands
from gateway.context.listing import Room
from gateway.context.personal import LASTING, NAMED, PLAIN, told
from gateway.context.readable import said_at
from gateway.context.statements import sentences, tells_of_change
from gateway.domain.message import Message, ends, is_request, own_words
from gateway.domain.notes import FACTS, section
from gateway.runtime.patterns import table, words
from gateway.runtime.structs import replace

HEADING: Final = section(FACTS, "").rstrip()
MOST: Final = 256  # facts that are kept, whatever the room
SHARE: Final = 0.16  # of a summary's room: the most that they take
FADING: Final = 0.995  # of a weight at each further compaction
_SAID: Final = "Said by the people here, word for word and in this order: what stands below may have changed it."
_READ: Final = 1_000  # newest messages of a middle that are read
_EDGE: Final = 2_000  # characters that are read at either end of a longer message
_BESIDE: Final = 40  # bytes that every fact is taken to be longer, so that length is not all that counts
_STEP: Final = 8  # bytes; of facts that are about as long, and worth as much, the newest stay
_EACH: Final = 6  # facts of one message
_LEAST_ROOM: Final = 4  # tokens; no fact is shorter
_OWN: Final = 0.4  # of the room, at first for what people tell of themselves alone
_ALIKE: Final = 0.5  # of the older fact's words are in the newer one, which tells of a change
_ABBREVIATED: Final = re.compile(r"\b(?:Dr|Mr|Mrs|Ms|St|Prof|Nr|No|Sr|Sra|Str|Hr|Fr|Mme|ca|approx)\.\Z", re.IGNORECASE)
_QUOTE: Final = re.compile(r"[ \t]{0,8}[>|]")
_EMPTY: Final = words(table(__file__)["empty"])


class PersonalFact(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A sentence. `by`: who said it, if several people talk. `weight`: its worth, which fades. `at`: when it was said,
    in seconds since the epoch; 0.0 if unknown."""

    text: Annotated[str, Meta(min_length=1)]
    weight: Annotated[float, Meta(gt=0, le=LASTING)]
    by: str = ""
    at: Annotated[float, Meta(ge=0)] = 0.0

    @property
    def line(self) -> str:
        """The fact as a line of a summary."""
        return f"- [{self.by}] {self.text}" if self.by else f"- {self.text}"

    @property
    def density(self) -> float:
        """Its worth for the room that it takes."""
        return self.weight / (_BESIDE + len(self.text.encode()) // _STEP * _STEP)


def carried(before: Iterable[PersonalFact], middle: Sequence[Message]) -> list[PersonalFact]:
    """Return the facts of the summaries `before` and of the `middle`, oldest first, at most `MOST`."""
    held = [_Told.of(_faded(each)) for each in before]
    seen = {words for each in held for words in (each.words, _unnumbered(each.words))}
    requests = [each for each in middle if is_request(each)]
    for message in requests[-_READ:]:
        for said in map(_Told.of, found(message)):
            changes = tells_of_change(said.fact.text)
            if changes or said.words in seen or _unnumbered(said.words) in seen:
                left = [each for each in held if not said.replaces(each, changes=changes)]
                anew = any(each not in left and each.words != said.words for each in held)
                weight = max(NAMED, said.fact.weight) if anew else said.fact.weight
                held, said = left, said._replace(fact=replace(said.fact, weight=weight))
            held.append(said)
            seen.update((said.words, _unnumbered(said.words)))
    return _best([each.fact for each in held], MOST)


def _faded(fact: PersonalFact) -> PersonalFact:
    """A fact after one more compaction. What lasts does not fade."""
    return fact if fact.weight == LASTING else replace(fact, weight=round(fact.weight * FADING, 3))


def _best(facts: Sequence[PersonalFact], most: int) -> list[PersonalFact]:
    """The best of these facts, in their order."""
    best = set(_by_worth(facts)[:most])
    return [each for place, each in enumerate(facts) if place in best]


def _by_worth(facts: Sequence[PersonalFact]) -> list[int]:
    """Return the places of facts, the best first, of equals the newest."""
    return sorted(range(len(facts)), key=lambda place: (-facts[place].density, -place))


def found(message: Mapping[str, Any]) -> list[PersonalFact]:
    """Return the facts that a person states in a message."""
    at = max(0.0, said_at(message))
    tell = [
        PersonalFact(text=kept.text, weight=kept.worth, by=by, at=at)
        for by, said in read(ends(own_words(message), _EDGE), _QUOTE, _whole)
        if (kept := told(said)) and not stands(said)
    ]
    return _best(tell, _EACH)


def _whole(line: str) -> Iterator[str]:
    """The sentences of a line, none of which ends in an abbreviation."""
    begun = ""
    for part in sentences(line):
        begun = f"{begun} {part}" if begun else part
        if not _ABBREVIATED.search(begun):
            yield begun
            begun = ""
    if begun:
        yield begun


def threads(facts: Sequence[PersonalFact]) -> list[list[Told]]:
    """Each fact that shares a telling word with others, with the last of these, the older of the two first."""
    told = [Told.of(each.text, each.at) for each in facts]
    return [
        sorted((told[place], told[others[-1]]), key=lambda each: each.at)
        for place, others in enumerate(related(told))
        if others and told[place].at
    ]


def listed(facts: Sequence[PersonalFact], days: Days, room: Room, changed: Set[str] = frozenset()) -> str:
    """The section of a summary with these facts, oldest first; "" if there are none. If not all fit, the best stay.
    Facts that may be about the same thing have their day. What was `changed`, which another section shows, is left out,
    unless it says who somebody is."""
    left = room.below(f"{HEADING}\n{_SAID}")
    lines: dict[int, str] = {}
    own = int(left.tokens * _OWN)  # tokens that what people tell of themselves may take before all else
    facts = [each for each in facts if each.weight == LASTING or each.text not in changed]
    told = [Told.of(each.text, each.at) for each in facts]
    others = related(told)
    worth = [each.weight for each in facts]
    for place, each in enumerate(told):
        for older in (other for other in others[place] if other < place):
            worth[place] = max(NAMED, worth[place])
            alike = len(told[older].words & each.words) >= _ALIKE * len(told[older].words)
            if alike and facts[older].weight < LASTING:
                worth[older] /= 2
    facts = [replace(each, weight=worth[place]) for place, each in enumerate(facts)]
    best = _by_worth(facts)
    # Then all else may have what that leaves.
    for kept, place in chain(((own, place) for place in best), ((0, place) for place in best)):
        fact = facts[place]
        line = f"{fact.line} ({days.of(fact.at)})" if fact.at and (others[place] or fact.text in changed) else fact.line
        if place not in lines and left.takes(line, end=1, least=kept if fact.weight <= NAMED else 0):
            lines[place] = line
        elif left.tokens < _LEAST_ROOM:
            break
    return "\n".join([HEADING, _SAID, *(lines[place] for place in sorted(lines))]) if lines else ""


class _Told(NamedTuple):
    """A fact and its telling words."""

    fact: PersonalFact
    words: frozenset[str]

    @classmethod
    def of(cls, fact: PersonalFact) -> _Told:
        """Return a fact with its words."""
        return cls(fact, telling(fact.text) - _EMPTY)

    def replaces(self, older: _Told, *, changes: bool) -> bool:
        """Whether this says the same as an older fact of the same person, or changes it. `changes`: whether it mentions
        a change."""
        if self.fact.by != older.fact.by:
            return False
        if self.words and self.words == older.words:
            return True
        if self.fact.weight >= PLAIN and (same := _unnumbered(self.words)) and same == _unnumbered(older.words):
            return True  # of what is so as a rule, the number has changed
        alike = len(self.words & older.words)
        return changes and (0 < alike == len(older.words) or alike >= max(2, _ALIKE * len(older.words)))


def _unnumbered(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word for word in words if not word[0].isdecimal())
