"""The ledger: the identifiers that notes should hold, the best first.

A value that a person said is worth more than one that a tool printed, and newer and repeated mentions more than old
ones. What earlier notes held fades with each compaction, if nobody mentions it again. People say few values and tools
print many, so each eighth place is kept for the values of people, which fade more slowly there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Final, NamedTuple

from msgspec import Struct, field

from gateway.context.identifiers import SERIES, codes_in, is_time, of, series
from gateway.context.readable import calls_of
from gateway.domain.message import Message, text_of

LEDGER: Final = 192  # of the middle's own that are looked at, at least; the room decides how many are listed
PER_TOKENS: Final = 40  # tokens of a summary's room: one more is looked at for each
HALF_LIFE: Final = 14  # messages
WEIGHTS: Final[Mapping[str, float]] = {"user": 4.0, "assistant": 3.0, "tool": 1.0}
EARLIER: Final = 4096  # of the earlier notes, at most; the room decides on their number in the next notes
CORRECTION: Final = 5.0  # the highest weight: without a correction the messages in view mislead
FADING: Final = 0.5 ** (1 / 4)  # of a weight at each further compaction without a mention: half after four
OWN_FADING: Final = 0.97  # the same of a person's values, among themselves
_OWN_EACH: Final = 8  # one place of so many is kept for a person's values
_HOUR: Final = 0.25  # of the weight of another value: a bare time of day tells hardly anything
UNKNOWN: Final = WEIGHTS["assistant"]  # of an identifier of notes without weights
# Bare codes under one key of a result belong to the thing that has them: they are no rows.
_LISTED: Final = re.compile(r"\[\s{0,8}\"[\w.:-]{1,40}\"(?:\s{0,8},\s{0,8}\"[\w.:-]{1,40}\"){0,10}\s{0,8}\]")
_FEW: Final = 3  # values of one message that are not compared
_HORIZON: Final = 30 * HALF_LIFE  # messages back; beyond, nothing weighs enough for a place


class Entry(NamedTuple):
    """An identifier of a ledger.

    `source`: the newest message that says it, or at least contains it; None if only earlier notes do. `weight`: its
    worth to the notes; 0.0 if the next notes may drop it, because it was only passed to a tool or is one row of many.
    `own`: its worth among the values that people said; 0.0 if nobody said it.
    """

    source: Message | None
    weight: float
    own: float = 0.0

    @property
    def lasting(self) -> bool:
        """Whether the next notes should hold the identifier, too."""
        return self.weight > 0


Ledger = Mapping[str, Entry]


def ledger(
    middle: Sequence[Message],
    earlier: Mapping[str, float] = MappingProxyType({}),
    corrections: AbstractSet[str] = frozenset(),
    most: int = LEDGER,
    owned: Mapping[str, float] = MappingProxyType({}),
) -> dict[str, Entry]:
    """Return the identifiers that a summary of `middle` should hold, best first; the room decides how many it lists.

    They are up to `most` of the middle's own and those of `earlier` notes with their weights, of which people said
    those `owned`. Each is worth as much as the highest role among its speakers, halved by every four compactions since;
    of equals, those with more and newer mentions come first. So the words of a person long ago outlive later results of
    tools. Rows and values only passed to a tool come last. `corrections` come first and do not fade.
    """
    tally = _tally(middle, most)
    weights = tally.weights
    own = sorted(tally.scores, key=tally.scores.__getitem__, reverse=True)
    for value in own:
        weights[value] = max(weights.get(value, 0.0), earlier.get(value, 0.0))
    weights |= dict.fromkeys(corrections & tally.scores.keys(), CORRECTION)
    own.sort(key=weights.__getitem__, reverse=True)
    chosen = {value: weights[value] for value in own[:most]}
    others = sorted((value for value in earlier if value not in chosen), key=earlier.__getitem__, reverse=True)
    for value in others[:EARLIER]:
        lasts = value in corrections or earlier[value] == CORRECTION
        chosen[value] = CORRECTION if lasts else earlier[value] * FADING
    best = sorted(chosen, key=chosen.__getitem__, reverse=True)
    own_ones = {value: worth * OWN_FADING for value, worth in owned.items() if value in chosen} | tally.owned
    kept = sorted(own_ones, key=own_ones.__getitem__, reverse=True)
    return {
        value: Entry(tally.sources.get(value), chosen[value], own_ones.get(value, 0.0))
        for value in _mixed(best, [each for each in kept if each in chosen])
    }


def _mixed(best: Sequence[str], kept: Sequence[str]) -> Iterator[str]:
    """The `best` in their order, with every eighth place given to the next one that is `kept`; each once."""
    seen: set[str] = set()
    ranked, spare = iter(best), iter(kept)
    for place in range(1, len(best) + 1):
        row = (spare, ranked) if place % _OWN_EACH == 0 else (ranked,)
        value = next(each for source in row for each in source if each not in seen)
        seen.add(value)
        yield value


class _Tally(Struct, frozen=True):
    """For each identifier of a middle: its score by number and age of mentions, the newest message that says it, and
    its weight, unless it is a row."""

    scores: dict[str, float] = field(default_factory=dict)
    sources: dict[str, Message] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    owned: dict[str, float] = field(default_factory=dict)  # those of people


def _tally(middle: Sequence[Message], most: int) -> _Tally:
    tally = _Tally()
    scores, sources, weights = tally.scores, tally.sources, tally.weights
    said: set[str] = set()
    for age, message in enumerate(reversed(middle)):
        if age > _HORIZON and len(scores) >= most:
            break
        values = of(message)
        if not values:
            continue
        role = WEIGHTS.get(message.get("role", ""), 1.0)
        score = role * 0.5 ** (age / HALF_LIFE)
        alike = series(values) if len(values) > _FEW else {}
        returned = message.get("role") == "tool"
        spoken = not returned and bool(message.get("content"))
        text = _told_in(message) if message.get("tool_calls") else None
        listed = "".join(_LISTED.findall(text_of(message))) if returned and alike else ""
        for value in values:
            scores[value] = scores.get(value, 0.0) + score
            if value not in sources or (spoken and value not in said):
                sources[value] = message
            if spoken:
                said.add(value)
            rows = 1 if f'"{value}"' in listed else alike.get(value, 1)
            if rows <= SERIES and (text is None or value in text):
                worth = role / rows * (_HOUR if is_time(value) else 1.0)
                weights[value] = max(worth, weights.get(value, 0.0))
                if role == WEIGHTS["user"]:
                    tally.owned[value] = max(worth, tally.owned.get(value, 0.0))
    return tally


def _told_in(message: Message) -> str:
    """The text of a message with calls, and the codes in their arguments. The model has got a code from somebody, but
    it made up a path or a command itself."""
    codes = (value for call in calls_of(message) for value in codes_in(call.arguments))
    return "\n".join([text_of(message), *codes])
