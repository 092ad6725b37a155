"""A kind of credential, and the facts about a text that spare most searches for it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from gateway.runtime.patterns import late

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
