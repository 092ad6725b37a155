"""A small IRC server with accounts and history: it keeps what is said to the bot while the bot is away, and says the
last lines again to a bot that comes back, as bouncers and servers with history do. https://modern.ircdocs.horse"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Self

_LONGEST = 512  # bytes of a line, with its end, but for tags


class IrcServer:
    """People write with `say`. `said`: what the bot said, as (to, text). `violations`: what it must not do."""

    def __init__(self, nick: str = "legato", *, replays: int = 50) -> None:
        self.said: list[tuple[str, str]] = []
        self.violations: list[str] = []
        self.port, self._nick, self._replays = 0, nick, replays
        self._history: list[str] = []
        self._bots: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.cut()
        await self._server.wait_closed()

    def say(self, who: str, text: str, to: str = "", *, account: str = "") -> None:
        """Somebody writes to the bot, or into a channel."""
        tags = f"msgid={len(self._history)}" + (f";account={account}" if account else "")
        self._history.append(f"@{tags} :{who}!{who}@host PRIVMSG {to or self._nick} :{text}")
        self._tell(self._history[-1])

    def again(self) -> None:
        """The newest line once more."""
        self._tell(self._history[-1])

    def cut(self) -> None:
        """Break the bot's connections."""
        for bot in self._bots:
            bot.transport.abort()
        self._bots.clear()

    def _tell(self, line: str) -> None:
        for bot in self._bots:
            bot.write(f"{line}\r\n".encode())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answer: Callable[[str], None] = lambda line: writer.write(f":irc.example {line}\r\n".encode())  # noqa: E731
        while line := (await _read(reader)):
            if len(line) > _LONGEST - 60 or b"\n" in line[:-1] or not line.endswith(b"\r\n"):
                self.violations.append(line.decode())
            command, _, rest = line.decode().strip().partition(" ")
            if command == "CAP" and rest.startswith("REQ"):
                answer(f"CAP * ACK {rest.removeprefix('REQ ')}")
            elif command == "USER":
                answer(f"001 {self._nick} :Welcome to IRC")
                self._bots.append(writer)
                for each in self._history[-self._replays :]:
                    writer.write(f"{each}\r\n".encode())
            elif command == "PING":
                answer(f"PONG irc.example {rest}")
            elif command == "PRIVMSG":
                to, _, text = rest.partition(" :")
                if to == "nobody":
                    answer(f"401 {self._nick} {to} :No such nick")
                self.said.append((to, text))
        if writer in self._bots:
            self._bots.remove(writer)
        writer.close()


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readline()
    except OSError:
        return b""
