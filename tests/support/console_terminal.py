"""The real program on a real terminal: `legato chat` behind a pty, its keys and what it writes."""

from __future__ import annotations

import asyncio
import os
import pty
import re
import signal
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.forks import Child, forks
from tests.support.program import environment
from tests.support.waiting import eventually

_ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|[=>])|\r")
_CHUNK = 65_536


class Terminal:
    """A program's other end; `text` is all that it ever wrote, without colours and cursor movements."""

    def __init__(self, program: Child, end: int) -> None:
        self._program = program
        self._end = end
        self._written = b""
        os.set_blocking(end, False)
        asyncio.get_running_loop().add_reader(end, self._read)

    @property
    def written(self) -> bytes:
        """All that it ever wrote."""
        return self._written

    @property
    def text(self) -> str:
        return _ESCAPES.sub("", self._written.decode("utf-8", "replace"))

    def _read(self) -> None:
        try:
            self._written += os.read(self._end, _CHUNK)
        except OSError:  # the program has gone
            asyncio.get_running_loop().remove_reader(self._end)

    async def sees(self, text: str) -> None:
        await eventually(lambda: text in self.text)

    def types(self, keys: str) -> None:
        os.write(self._end, keys.encode())

    def interrupts(self) -> None:
        """Interrupt as a terminal does for Ctrl-C while no prompt reads keys."""
        self._program.send(signal.SIGINT)

    async def left(self) -> int:
        """The exit status."""
        async with asyncio.timeout(60):
            return await asyncio.shield(self._program.ended)


@asynccontextmanager
async def chatting(
    folder: Path, *arguments: str, rows: int = 24, columns: int = 80, **more: str
) -> AsyncIterator[Terminal]:
    """`legato chat` with `arguments` started in `folder`, in a terminal, with `more` variables."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (rows, columns))
    variables = environment(TERM="xterm", PROMPT_TOOLKIT_NO_CPR="1", **more)
    program = await forks().start(
        "gateway", "chat", *arguments, descriptors=(theirs,) * 3, cwd=folder, environment=variables, leads=True
    )
    os.close(theirs)
    try:
        yield Terminal(program, ours)
    finally:
        program.send(signal.SIGKILL)
        await program.ended
        asyncio.get_running_loop().remove_reader(ours)
        os.close(ours)
