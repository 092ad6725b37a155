"""A program that talks to the gateway as in a terminal: JSON lines in, JSON lines out.

The input stays open. When the process at the other end dies, everything it had not answered is said
again to the next one, in order, and some of what it had answered, as by a sender that is not sure.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from pathlib import Path
from typing import Final

from tests.chaos.drive import ANSWERS
from tests.chaos.script import Event
from tests.chaos.socket_platform import Send

_AGAIN: Final = 0.3
_CHUNK: Final = 1 << 16


def pipes(folder: Path, process: int) -> tuple[Path, Path]:
    """Return the paths of a process's input and output."""
    return folder / f"terminal-{process}-in", folder / f"terminal-{process}-out"


class Terminal:
    """`sends` is what it was shown: whole lines, in their order."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.sends: list[Send] = []
        self.processes: set[int] = set()
        self._folder = folder
        self._rng = rng
        self._said: list[Event] = []
        self._answered: set[str] = set()
        self._feed: int | None = None  # the present process's input
        self._read: dict[int, tuple[int, bytes]] = {}  # descriptor of an output → its process, half a line

    @property
    def said(self) -> set[str]:
        """The ids of all events so far."""
        return {event.id for event in self._said}

    def say(self, event: Event) -> None:
        """A person has typed something."""
        self._said.append(event)
        if self._feed is not None:
            os.write(self._feed, event.line())

    def attach(self, process: int) -> None:
        """Make the pipes of a process that is about to start, and say what is still to be answered."""
        entrance, exit_ = pipes(self._folder, process)
        os.mkfifo(entrance)
        os.mkfifo(exit_)
        self.processes.add(process)
        output = os.open(exit_, os.O_RDONLY | os.O_NONBLOCK)
        self._read[output] = process, b""
        asyncio.get_running_loop().add_reader(output, self._look, output)
        self._feed = os.open(entrance, os.O_RDWR | os.O_NONBLOCK)  # both ends: it stays open, whoever dies
        for event in self._said:
            if event.id not in self._answered or self._rng.random() < _AGAIN:
                os.write(self._feed, event.line())

    def detach(self) -> None:
        """The process has died, and what it had not read with it."""
        if self._feed is not None:
            os.close(self._feed)
            self._feed = None

    def close(self) -> None:
        """Let go of every pipe."""
        self.detach()
        for output in list(self._read):
            self._hang_up(output)

    def _look(self, output: int) -> None:
        data = os.read(output, _CHUNK)
        process, begun = self._read[output]
        *lines, rest = (begun + data).split(b"\n")
        self._read[output] = process, rest
        for line in lines:
            self._shown(process, json.loads(line))
        if not data:
            self._hang_up(output)  # half a line that a kill cut short is nobody's

    def _hang_up(self, output: int) -> None:
        asyncio.get_running_loop().remove_reader(output)
        os.close(output)
        del self._read[output]

    def _shown(self, process: int, fields: dict[str, str]) -> None:
        if fields["kind"] in ANSWERS and fields["answers"]:
            self._answered.add(fields["answers"])
        self.sends.append(
            Send(
                number=0,
                at=time.monotonic(),
                process=process,
                row=fields["id"],
                chat=fields["chat"],
                kind=fields["kind"],
                text=fields["text"],
                answers=fields["answers"],
                shown=True,
                heard=True,
                fault=None,
            )
        )
