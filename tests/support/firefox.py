"""A real Firefox, Debian's: see `tests/programs.txt`. It is told what to do over Marionette, as its own tests do."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from tests.support.model import PATIENCE
from tests.support.programs import path_of
from tests.support.waiting import eventually

ENTER, ESCAPE, UP = "\ue007", "\ue00c", "\ue013"
_CSS: Final = "css selector"
# What the page does wrong, as the page itself hears of it.
_WATCH: Final = """window.wrong ??= [];
for (const each of ["error", "securitypolicyviolation"])
  addEventListener(each, (event) => wrong.push(event.message || `${event.violatedDirective} ${event.blockedURI}`));"""


class Firefox(Struct):
    """A tab. Raises RuntimeError where Firefox refuses."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    numbers: count[int] = field(default_factory=lambda: count(1))

    async def read(self) -> Any:
        """The next packet: its length, and JSON."""
        size = await self.reader.readuntil(b":")
        return json.loads(await self.reader.readexactly(int(size[:-1])))

    async def do(self, command: str, **given: Any) -> Any:
        """Carry out a command of WebDriver."""
        sent = json.dumps([0, next(self.numbers), f"WebDriver:{command}", given]).encode()
        self.writer.write(b"%d:%b" % (len(sent), sent))
        *_, error, result = await self.read()
        if error:
            raise RuntimeError(f"{command}: {error['message']}")
        return result.get("value") if isinstance(result, dict) else result

    async def open(self, address: str) -> None:
        """Go to an address."""
        await self.do("Navigate", url=address)
        await self.run(_WATCH)

    async def run(self, script: str) -> Any:
        """What a script of the page returns."""
        return await self.do("ExecuteScript", script=script, args=[])

    async def until(self, holds: str) -> None:
        """Return once an expression of the page holds."""
        await eventually(lambda: self.run(f"return Boolean({holds})"))

    async def click(self, selector: str) -> None:
        """Click an element, which can be seen."""
        await self.do("ElementClick", id=await self._found(selector))

    async def type(self, selector: str, keys: str) -> None:
        """Press keys in a field."""
        await self.do("ElementSendKeys", id=await self._found(selector), text=keys)

    async def _found(self, selector: str) -> str:
        found: dict[str, str] = await self.do("FindElement", using=_CSS, value=selector)
        return next(iter(found.values()))


@asynccontextmanager
async def firefox(folder: Path) -> AsyncIterator[Firefox]:
    """A running Firefox with a fresh profile in a folder."""
    (folder / "user.js").write_text('user_pref("marionette.port", 0);', encoding="utf-8")
    how = ["--headless", "--marionette", "--no-remote", "--profile", str(folder)]
    running = await asyncio.create_subprocess_exec(
        path_of("firefox"), *how, env={**os.environ, "HOME": str(folder)}, stdout=-3, stderr=-3
    )
    port = folder / "MarionetteActivePort"
    try:
        await eventually(lambda: port.is_file() and port.read_text(encoding="utf-8").isdigit())
        async with asyncio.timeout(PATIENCE):
            tab = Firefox(*await asyncio.open_connection("127.0.0.1", int(port.read_text(encoding="utf-8"))))
            await tab.read()  # it says what it is
            await tab.do("NewSession", capabilities={})
        yield tab
        tab.writer.close()
    finally:
        running.terminate()
        await running.wait()
