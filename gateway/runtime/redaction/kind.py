"""A kind of credential, and the facts about a text that spare most searches for it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

SHORTEST_RUN: Final = 15  # characters of a run (`Kind`) that is worth a look: most words are shorter
IN_RUN: Final = re.compile(r"[A-Za-z0-9_.=-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of credential. Group 1 of `pattern` is what is replaced.

    `starts`: literals with one of which every match begins, in lower case if the pattern takes any
    (`folded`); none where a match begins with no literal. `run`: how many characters out of `A-Za-z0-9_.=-`
    are next to each other in every match at least; 0 for less than `SHORTEST_RUN`. `needs`: a
    literal that is in every text with a match, so that nothing else is looked for without it.
    `probe`: a simpler pattern that finds something wherever `pattern` does, and begins with a literal. `is_run`:
    whether a match of it is part of a run.
    `within`: whether a run holds the literal as well, which then need not be looked for elsewhere.
    `foreign`: whether a literal has letters beyond ASCII. `plausible`: what a match must be like, too.
    `heads`: the first three letters of `starts`, of which one begins a run,
    or what follows `=` in one, that holds a match.
    """

    name: str
    pattern: re.Pattern[str]
    starts: tuple[str, ...] = ()
    folded: bool = False
    run: int = 0
    needs: str = ""
    probe: re.Pattern[str] | None = None
    within: bool = False
    is_run: bool = False
    foreign: bool = False
    plausible: Callable[[re.Match[str]], bool] = bool
    heads: frozenset[str] = frozenset()


def kind(
    name: str,
    starts: str | tuple[str, ...],
    pattern: str,
    *,
    run: int = 0,
    needs: str = "",
    probe: str | None = None,
    plausible: Callable[[re.Match[str]], bool] = bool,
    heads: bool = False,
) -> Kind:
    """A kind, from words as they are easily written: `starts` has its literals apart by blanks."""
    literals = tuple(starts.split()) if isinstance(starts, str) else starts
    folded = pattern.startswith("(?i)")
    return Kind(
        name=name,
        pattern=re.compile(pattern),
        starts=literals,
        folded=folded,
        run=run,
        needs=needs,
        probe=None if probe is None else re.compile(probe),
        is_run=bool(run and probe) and not str(probe).startswith(":"),
        within=bool(run and literals) and not folded and all(map(IN_RUN.match, "".join(literals))),
        foreign=not "".join(literals).isascii(),
        plausible=plausible,
        heads=frozenset(start[:3] for start in literals) if heads else frozenset(),
    )
