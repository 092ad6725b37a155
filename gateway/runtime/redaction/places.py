"""Shared by all searches for credentials: their kinds, the places where one may begin, and cutting it out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from gateway.runtime.patterns import late

MARK: Final = "[REDACTED]"

Span = tuple[int, int]
"""(start, end) of a credential in a text."""


def folded(text: str) -> str:
    """`text` in lower case, character by character, with `?` for what is not ASCII."""
    return text.encode("ascii", "replace").lower().decode("ascii")


def places_of(literal: str, text: str) -> Iterator[int]:
    """Yield the places of `literal` in `text`, in order."""
    place = text.find(literal)
    while place >= 0:
        yield place
        place = text.find(literal, place + 1)


def matches(text: str, places: Iterable[int], pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """Yield the matches of `pattern.finditer` that begin at one of `places`, which are in order."""
    done = 0
    for place in places:
        match = pattern.match(text, place) if place >= done else None
        if match is not None:
            yield match
            done = match.end()


def cut(text: str, spans: Iterable[Span]) -> str:
    """`text` with one mark in place of each span; spans that touch or overlap are one."""
    pieces: list[str] = []
    done = 0
    for start, end in merged(spans):
        pieces += (text[done:start], MARK)
        done = end
    return "".join([*pieces, text[done:]]) if pieces else text


def merged(spans: Iterable[Span]) -> list[Span]:
    """The spans in order, those that touch or overlap as one."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


# -- kinds ---------------------------------------------------------------------------------------------


SHORTEST_RUN: Final = 15  # characters of a run (`Kind`) that is worth a look: most words are shorter
IN_RUN: Final = re.compile(r"[A-Za-z0-9_.=-]")


class Kind:
    """One kind of credential. Group 1 of `pattern` is what is replaced.

    `starts`: literals with one of which every match begins, in lower case if the pattern takes any
    (`folded`); none where a match begins with no literal. They may be written apart by blanks. `run`: how many
    characters out of `A-Za-z0-9_.=-` are next to each other in every match at least; 0 for less than `SHORTEST_RUN`.
    `needs`: a literal that is in every text with a match, so that nothing else is looked for without it.
    `probe`: a simpler pattern that finds something wherever `pattern` does, and begins with a literal. `plausible`:
    what a match must be like, too. `heads`: a match begins a run, or what follows `=` in one.
    """

    def __init__(
        self,
        name: str,
        starts: str | tuple[str, ...],
        pattern: str,
        *,
        run: int = 0,
        needs: str = "",
        probe: str | None = None,
        plausible: Callable[[re.Match[str]], bool] = bool,
        heads: bool = False,
    ) -> None:
        self.name, self.run, self.needs, self.plausible, self.heads = name, run, needs, plausible, heads
        self.pattern = late(pattern)
        self.starts = tuple(starts.split()) if isinstance(starts, str) else starts
        self.folded = pattern.startswith("(?i)")
        self.probe = None if probe is None else late(probe)
        # Whether a match of the probe is part of a run.
        self.is_run = bool(run and probe) and not str(probe).startswith(":")
        letters = "".join(self.starts)
        # Whether a run holds the literal as well, which then need not be looked for elsewhere.
        self.within = bool(run and letters) and not self.folded and all(map(IN_RUN.match, letters))
        # Whether a literal has letters beyond ASCII.
        self.foreign = not letters.isascii()
