"""Patterns that are compiled when they are first used: all of them take a tenth of the start of the program, and most
conversations need few. Whoever serves others meanwhile has large ones compiled in a thread, by using them there."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, cast


def late(text: str, flags: int = 0) -> re.Pattern[str]:
    """What `re.compile` returns, compiled later."""
    return cast("re.Pattern[str]", Pattern(text, flags))


class Pattern:
    """Behaves as the `re.Pattern` does that it will be."""

    def __init__(self, text: str, flags: int) -> None:
        self.pattern = text  # a part of other patterns before this one is compiled
        self._flags = flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, self._flags)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._compiled, name)
        setattr(self, name, found)  # so that the next call is as quick as the pattern's own
        return found
