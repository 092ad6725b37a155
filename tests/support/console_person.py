"""A person at a terminal: types keys, and sees what the interactive console sends to the screen."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Sequence

from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import PipeInput
from prompt_toolkit.output.vt100 import Vt100_Output

from adapters.console.interactive import InteractiveConsole
from gateway.domain.adapter import Accepted
from gateway.domain.chat import Inbound
from gateway.runtime.errors import StoreUnavailable


class Paper(io.StringIO):
    """Keeps what is written and says that something was."""

    def __init__(self) -> None:
        super().__init__()
        self.written = asyncio.Event()

    def write(self, text: str, /) -> int:
        self.written.set()
        return super().write(text)


class Screen:
    """A terminal of 60 columns that keeps all it was sent; `answers`: it can be asked for its cursor."""

    def __init__(self, *, answers: bool = False) -> None:
        self.file = Paper()
        size = Size(rows=24, columns=60)
        self.output = Vt100_Output(self.file, lambda: size, term="xterm", enable_cpr=answers)

    @property
    def text(self) -> str:
        """Everything ever written, without colours and cursor movements."""
        return re.sub(r"\x1b(\[[0-?]*[ -/]*[@-~]|[=>])|\r", "", self.file.getvalue())


class Person:
    """Runs the console, types, and sees what the gateway was handed."""

    def __init__(self, console: InteractiveConsole, keys: PipeInput, screen: Screen) -> None:
        self.console = console
        self.keys = keys
        self.screen = screen
        self.said: asyncio.Queue[Inbound] = asyncio.Queue()
        self.down = False
        self._run: asyncio.Task[None] | None = None

    async def accept(self, batch: Sequence[Inbound]) -> Sequence[Accepted]:
        if self.down:
            raise StoreUnavailable("the disk is full")
        for inbound in batch:
            self.said.put_nowait(inbound)
        return [Accepted(event_id=inbound.event_id, status="new") for inbound in batch]

    def start(self) -> None:
        self._run = asyncio.create_task(self.console.run(self.accept))

    async def says(self, keys: str) -> Inbound:
        self.keys.send_text(keys)
        return await self.said.get()

    async def left(self) -> None:
        assert self._run is not None
        await self._run

    def cancel(self) -> None:
        assert self._run is not None
        self._run.cancel()

    async def sees(self, text: str) -> None:
        while text not in self.screen.text:
            self.screen.file.written.clear()
            await self.screen.file.written.wait()
