"""Patterns that are compiled when they are first used: all of them take a tenth of the start of the program, and most
conversations need few. Whoever serves others meanwhile has large ones compiled in a thread, by using them there.

What people say in many languages stands in tables: text files beside the modules that look for it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, cast

_NAMED: Final = re.compile(r"\{\{(\w+)\}\}")


def late(text: str | Sequence[str], flags: int = 0) -> re.Pattern[str]:
    """What `re.compile` returns, compiled later. Several texts are alternatives."""
    return cast("re.Pattern[str]", Pattern(text if isinstance(text, str) else "|".join(text), flags))


def table(module: str) -> Mapping[str, Sequence[str]]:
    """The lines of the table beside a module (its `__file__`), by the headings `== name` above them. A line goes on
    behind two blanks, and "# " begins a comment. `{{name}}` stands for the lines of an earlier heading, as
    alternatives."""
    found: dict[str, list[str]] = {}
    for line in Path(module).with_suffix(".txt").read_text(encoding="utf-8").split("\n"):
        if line.startswith("== "):
            lines = found[line[3:]] = []
            continue
        whole = _NAMED.sub(lambda named: "|".join(found[named[1]]), line) if "{{" in line else line
        if line.startswith("  "):
            lines[-1] += whole[2:]
        elif line and not line.startswith("# "):
            lines.append(whole)
    return found


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


def words(lines: Sequence[str]) -> frozenset[str]:
    """The words of some lines of a table."""
    return frozenset(" ".join(lines).split())
