"""The turns of a run that give way to a summary: numbers in, numbers out.

Protected are the first turn of each speaker (system, human, gpt, tool) and the last few. Turns between them may go,
from the front, until enough is saved. Nearly always the protected first turns are the first four, and one stretch
follows. A first turn that comes late divides it. Then the foremost stretch that is long enough is taken, else the one
that saves most.

A tool turn belongs to the turn before it, so no cut is made in front of one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from msgspec import Struct

from gateway.trajectories.sharegpt import Speaker, Turn


class TrajectorySettings(Struct, frozen=True, kw_only=True):
    """Tokens, all but `last_turns`. `target`: tokens of a run. `summary`: tokens of the turn that holds the summary.
    `notice`: whether the system turn says that turns were condensed."""

    target: int = 15_250
    summary: int = 750
    last_turns: int = 4
    notice: bool = False


class Region(Struct, frozen=True, kw_only=True):
    """Turns `first` up to, not including, `end`, and their tokens."""

    first: int
    end: int
    tokens: int


def region(turns: Sequence[Turn], counts: Sequence[int], settings: TrajectorySettings, to_save: int) -> Region | None:
    """The turns to replace so that `to_save` tokens are saved, a summary of `settings.summary` tokens
    allowed for. None if no stretch is longer than such a summary."""
    wanted = to_save + settings.summary
    best: Region | None = None
    for first, end in _stretches(turns, settings.last_turns):
        found = _taken(turns, counts, first, end, wanted)
        if found.tokens >= wanted:
            return found
        if best is None or found.tokens > best.tokens:
            best = found
    return best if best is not None and best.tokens > settings.summary else None


def _taken(turns: Sequence[Turn], counts: Sequence[int], first: int, end: int, wanted: int) -> Region:
    position, tokens = first, 0
    while position < end and (tokens < wanted or turns[position].speaker == "tool"):
        tokens += counts[position]
        position += 1
    return Region(first=first, end=position, tokens=tokens)


def _stretches(turns: Sequence[Turn], last_turns: int) -> Iterator[tuple[int, int]]:
    """The runs of turns between protected ones; a response keeps its call."""
    tail = _before_call(turns, max(0, len(turns) - last_turns))
    edges = [-1, *(place for place in sorted(_firsts(turns)) if place < tail), tail]
    for before, after in itertools.pairwise(edges):
        first, end = before + 1, _before_call(turns, after)
        while first < end and turns[first].speaker == "tool":
            first += 1
        if first < end:
            yield first, end


def _firsts(turns: Sequence[Turn]) -> set[int]:
    places: dict[Speaker, int] = {}
    for place, turn in enumerate(turns):
        places.setdefault(turn.speaker, place)
    places.pop("other", None)
    return set(places.values())


def _before_call(turns: Sequence[Turn], place: int) -> int:
    """`place`, moved back to where no response is cut from its call."""
    while 0 < place < len(turns) and turns[place].speaker == "tool":
        place -= 1
    return place
