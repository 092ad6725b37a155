"""IRC keeps Legato's promises."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from irc_server import IrcServer
from legato.testing import AdapterSuite, Emulator
from legato_irc import PLATFORM


class IrcPeople(Emulator):
    """Anna and Eve on a server with history."""

    person, stranger = "anna", "eve"

    def __init__(self, server: IrcServer) -> None:
        self._server = server
        self.settings = {"port": server.port, "trust_nicks": True, "pause": 0.01}

    async def say(self, who: str, text: str) -> None:
        self._server.say(who, text)

    def shown(self, who: str) -> list[str]:
        return [text for to, text in self._server.said if to == who]

    async def repeat(self) -> None:
        self._server.again()

    async def cut(self) -> None:
        self._server.cut()


class TestIrc(AdapterSuite):
    platform = PLATFORM

    @asynccontextmanager
    async def emulator(self) -> AsyncIterator[Emulator]:
        async with IrcServer() as server:
            yield IrcPeople(server)
            assert server.violations == []
