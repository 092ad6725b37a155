"""`legato logs`: the last lines of the log, those that come, and those of one turn alone.

`legato chat` logs to a file of Legato's folder; `legato run` logs to stderr, and whoever runs it keeps that: its lines
can be read from stdin.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, TextIO

from gateway.runtime.clock import Clock
from gateway.runtime.errors import UserError

_PAUSE: Final = 0.5  # seconds between two looks for new lines
_BEGINS: Final = re.compile(
    r"\{|\d{4}-\d\d-\d\d[T ]"
)  # an entry; other lines belong to the one before, as tracebacks do


def opened(path: Path) -> TextIO:
    """The log. Raises UserError."""
    try:
        return path.open(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        raise UserError(
            f"There is no log at {path}, where `legato chat` would keep one. `legato run` logs to stderr. Under "
            "systemd, read the log with `journalctl -u legato -o cat | legato logs -`."
        ) from None
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}).") from error


def of_turn(turn: str) -> Callable[[str], bool]:
    """Say of each line in turn whether it belongs to this turn; "" is every turn."""
    mark = re.compile(rf'(?:\bturn=["\']?|"turn": ?"){re.escape(turn)}(?:["\'\s,}}]|$)')
    inside = False

    def belongs(line: str) -> bool:
        nonlocal inside
        if _BEGINS.match(line):
            inside = mark.search(line) is not None
        return inside

    return belongs if turn else lambda _: True


def last(lines: Iterable[str], count: int, belongs: Callable[[str], bool]) -> Iterator[str]:
    """The last `count` lines of those that belong, without their ends."""
    return iter(deque((line.rstrip("\n") for line in lines if belongs(line)), maxlen=count))


async def coming(file: TextIO, clock: Clock, belongs: Callable[[str], bool]) -> AsyncIterator[str]:
    """The lines that come, for ever; a file that was emptied is read from its beginning."""
    part = ""
    while True:
        while line := file.readline():
            part += line
            if part.endswith("\n"):
                if belongs(part):
                    yield part.rstrip("\n")
                part = ""
        here = file.tell()
        if file.seek(0, os.SEEK_END) >= here:
            file.seek(here)
        else:
            file.seek(0)
        await clock.sleep(_PAUSE)
