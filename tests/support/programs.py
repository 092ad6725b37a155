"""Programs of `tests/programs.txt`: some tests ask for one, by its fixture, and not every machine has it."""

from __future__ import annotations

import os
import shutil
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct

_TABLE: Final = Path(__file__).parents[1] / "programs.txt"
SYNAPSE: Final = (
    Path(__file__).parents[2] / "build" / "synapse" / "bin" / "python"
)  # a Matrix server; `make` puts it there


class Program(Struct, frozen=True, kw_only=True):
    """`names`: any of them will do. `package`: Debian's."""

    fixture: str
    names: tuple[str, ...]
    package: str

    @property
    def path(self) -> str | None:
        """Return where it is; None: nowhere."""
        return next(filter(None, map(shutil.which, self.names)), None)


@cache
def programs() -> dict[str, Program]:
    """Return all of them, by their fixture."""
    lines = [line.split() for line in _TABLE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return {
        fixture: Program(fixture=fixture, names=tuple(names.split(",")), package=package)
        for fixture, names, package in filter(None, lines)
    }


@cache
def lacking() -> dict[str, Program]:
    """Return those whose tests are left out here. None in CI, which installs them: there such a test fails."""
    return {} if os.environ.get("CI") else {name: each for name, each in programs().items() if each.path is None}


def path_of(fixture: str) -> str:
    """Return where a program is, for its fixture. Raises LookupError where it is missing: CI shall see that."""
    program = programs()[fixture]
    if program.path is None:
        raise LookupError(f"{program.names[0]} is not on this machine: apt-get install {program.package}")
    return program.path
