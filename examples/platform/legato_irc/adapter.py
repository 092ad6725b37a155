"""The adapter: one connection, which reads, and shows messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

import structlog

from gateway.domain.adapter import Accept, Finding, Limits
from gateway.domain.chat import Inbound, Outbound
from gateway.domain.platform import AdapterHost
from gateway.runtime.backoff import Backoff
from gateway.runtime.errors import AdapterError, Ambiguous, ChatGone, DeliveryRefused, Disconnected, StoreUnavailable
from gateway.runtime.tasks import Crew
from legato_irc import IrcSettings, codec

log = structlog.get_logger(__name__)

_PATIENCE = 20.0  # seconds for an answer of the server's
_SILENCE = 600.0  # seconds without a line: servers ask more often whether the bot is there
_FATAL = {"464": "the server refuses the password: set adapters.irc.password", "465": "the server has banned the bot"}
_REFUSED = {"401": ChatGone, "403": ChatGone, "404": DeliveryRefused}  # no such nick, no such channel, may not speak
_LOST = (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError)


class Irc:
    """A bot on an IRC server. Only the process that is connected can show anything."""

    name = "irc"
    limits = Limits(text_units=1_600)
    waits_for_account = True
    reader_sends = True

    def __init__(self, settings: IrcSettings, host: AdapterHost) -> None:
        self._settings, self._clock, self._ids = settings, host.clock, host.ids
        self.account = f"{settings.nick}@{settings.host}:{settings.port}"
        self._writer: asyncio.StreamWriter | None = None  # while the server knows the bot
        self._pongs: dict[str, asyncio.Future[None]] = {}
        self._refusal: AdapterError | None = None  # of what is being sent
        self._sending = asyncio.Lock()

    # -- reading ----------------------------------------------------------------------------

    async def run(self, accept: Accept) -> None:
        heard: asyncio.Queue[Inbound] = asyncio.Queue()
        crew = Crew()
        crew.start(self._hand_over(heard, accept))
        crew.start(self._stay_connected(heard))
        await crew.work()

    async def _stay_connected(self, heard: asyncio.Queue[Inbound]) -> None:
        backoff = Backoff(1.0, 60.0)
        while True:
            why = await self._connected(heard, backoff)
            wait = backoff.pause()
            log.warning("irc_disconnected", error=why, again_in=wait)
            await self._clock.sleep(wait)

    async def _hand_over(self, heard: asyncio.Queue[Inbound], accept: Accept) -> None:
        """Store what was heard, beside the reading: a server that gets no answer to its PING hangs up."""
        while True:
            said = await heard.get()
            while True:
                with suppress(StoreUnavailable):
                    await accept([said])
                    break
                await self._clock.sleep(1.0)

    async def _connected(self, heard: asyncio.Queue[Inbound], backoff: Backoff) -> str:
        """Be on the server until the connection ends; why it did. Raises AdapterError where trying again is no use."""
        try:
            reader, writer = await self._dial()
        except _LOST as error:
            return _reason(error)
        try:
            async for line in self._read(reader, writer):
                if line.command == "001":  # welcome
                    self._writer = writer
                    backoff.reset()
                    if self._settings.channels:
                        self._say(writer, f"JOIN {','.join(self._settings.channels)}")
                elif line.command == "PRIVMSG":
                    nick, trust = self._settings.nick, self._settings.trust_nicks
                    if said := codec.inbound(line, me=nick, trust_nicks=trust, new_id=self._ids.new("irc")):
                        heard.put_nowait(said)
                elif line.command == "PONG" and line.args[-1] in self._pongs:
                    self._pongs[line.args[-1]].set_result(None)
                elif line.command in _REFUSED:
                    self._refusal = _REFUSED[line.command](f"the server refuses the message: {line.args[-1]}")
                elif line.command == "433":  # it may be the bot's own connection of before, which dies soon
                    return f"the nick {self._settings.nick} is taken; adapters.irc.nick can name another one"
            return "the server hung up"
        except _LOST as error:
            return _reason(error)
        finally:
            self._writer = None
            writer.close()
            for pong in self._pongs.values():
                pong.cancel()

    async def _dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        settings = self._settings
        async with self._clock.limit(_PATIENCE):
            reader, writer = await asyncio.open_connection(settings.host, settings.port, ssl=settings.tls or None)
        self._say(writer, f"CAP REQ :{codec.CAPABILITIES}")
        if settings.password:
            self._say(writer, f"PASS {settings.password.get_secret_value()}")
        self._say(writer, f"NICK {settings.nick}")
        self._say(writer, f"USER {settings.nick} 0 * :Legato")
        self._say(writer, "CAP END")
        return reader, writer

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> AsyncIterator[codec.Line]:
        while True:
            async with self._clock.limit(_SILENCE):
                line = codec.read((await reader.readuntil(b"\n")).decode(errors="replace").rstrip("\r\n"))
            if line.command == "PING":
                self._say(writer, f"PONG :{line.args[-1]}")
            elif line.command == "ERROR":
                raise ConnectionError(line.args[-1])
            elif line.command in _FATAL:
                raise AdapterError(_FATAL[line.command])
            else:
                yield line

    def _say(self, writer: asyncio.StreamWriter, line: str) -> None:
        writer.write(f"{line}\r\n".encode())

    # -- showing ----------------------------------------------------------------------------

    async def send(self, outbound: Outbound) -> str:
        async with self._sending:
            self._refusal = None
            for number, line in enumerate(codec.lines(outbound.text)):
                if number:
                    await self._clock.sleep(self._settings.pause)
                if self._writer is None:
                    raise Ambiguous("the connection broke") if number else Disconnected("the server is not reached")
                self._say(self._writer, f"PRIVMSG {outbound.to.chat} :{line}")
            await self._echo(outbound.id)
            if self._refusal is not None:
                raise self._refusal
            return outbound.id

    async def ping(self) -> None:
        await self._echo(self._ids.new("ping"))

    async def _echo(self, token: str) -> None:
        """Return once the server has worked through all that was sent. Raises Disconnected, Ambiguous."""
        if self._writer is None:
            raise Disconnected("the server is not reached")
        pong = self._pongs[token] = asyncio.get_running_loop().create_future()
        self._say(self._writer, f"PING :{token}")
        try:
            async with self._clock.limit(_PATIENCE):
                await asyncio.wait([pong])
        except TimeoutError:
            raise Ambiguous("the server does not answer") from None
        finally:
            del self._pongs[token]
        if pong.cancelled():
            raise Ambiguous("the connection broke before the server answered")

    async def probe(self) -> Sequence[Finding]:
        """Say whether the server takes the bot."""
        try:
            reader, writer = await self._dial()
            async for line in self._read(reader, writer):
                if line.command in ("001", "433"):  # the nick may be taken by the bot itself, which runs
                    break
            writer.close()
        except (*_LOST, AdapterError) as error:
            return [Finding(what="irc", ok=False, detail=f"{self.account}: {_reason(error)}")]
        return [
            Finding(what="irc", ok=line.command == "001" or None, detail=f"{self.account}: {' '.join(line.args[1:])}")
        ]

    async def aclose(self) -> None:
        if self._writer is not None:
            self._say(self._writer, "QUIT :Bye")
            self._writer.close()


def _reason(error: Exception) -> str:
    if isinstance(error, EOFError):  # asyncio's IncompleteReadError
        return "the server hung up"
    return getattr(error, "strerror", None) or str(error) or "the server does not answer"


def create(settings: IrcSettings, host: AdapterHost) -> Irc:
    """The bot of these settings."""
    return Irc(settings, host)
