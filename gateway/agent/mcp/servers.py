"""All servers of the configuration.

The lists of tools and prompts that they gave last lie in files: a start offers them at once, while the servers are
started. So the first question after a start finds the same tools as the last one before, in the same prompt, and an
approval that a restart interrupted is asked again. The files hold servers' own descriptions, and no secret.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import structlog
from msgspec import DecodeError, Struct
from msgspec.json import decode, encode

from gateway.agent.mcp.server import Connect, Listing, McpServer, PromptFacts, ToolFacts
from gateway.agent.mcp.settings import ANY, McpServerSettings
from gateway.agent.tools.base import Tool
from gateway.agent.tools.offer import Toolbox
from gateway.agent.tools.shell import lent_of
from gateway.domain.adapter import Finding
from gateway.domain.chat import one_line
from gateway.domain.wording import counted, first_of, lasting
from gateway.runtime.clock import Clock
from gateway.runtime.errors import UserError
from gateway.runtime.owners import private
from gateway.runtime.plugins import imported
from gateway.runtime.tasks import Background

if TYPE_CHECKING:
    from gateway.agent.mcp.login import Attempt

log = structlog.get_logger(__name__)

CONNECTOR: Final = "gateway.agent.mcp.connection:Connector"  # which loads the library
_ATTEMPT: Final = "gateway.agent.mcp.login:Attempt"
_TOOLS: Final = "gateway.agent.mcp.tools"  # which nothing but a server needs
_WHAT: Final = "MCP server"
LOGGED_IN: Final = "logged in"
_LISTED: Final = 40  # tools
_PATIENCE: Final = 5.0  # seconds that a turn waits for servers
_LARGEST: Final = 8 * 1024 * 1024  # bytes of a kept list


class KeptList(Struct, frozen=True):
    """A file's content."""

    place: str
    tools: list[ToolFacts] = []
    prompts: list[PromptFacts] = []


def known_list(folder: Path, server: str, place: str) -> KeptList:
    """What a server at this place last offered; nothing if that is unknown."""
    path = folder / f"{server}.json"
    with suppress(OSError, DecodeError):
        if path.stat().st_size <= _LARGEST and (kept := decode(path.read_bytes(), type=KeptList)).place == place:
            return kept
    return KeptList(place)


def _keep_list(folder: Path, server: str, known: KeptList) -> None:
    """Keep a list, whole or not at all."""
    made = folder / f"{server}.{os.getpid()}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(made, "wb", opener=private) as file:
            file.write(encode(known))
        made.replace(folder / f"{server}.json")
    except OSError as error:
        log.info("mcp_list_not_kept", server=server, error=str(error))


def login_file(folder: Path, server: str) -> Path:
    """The file of a server's login, which holds secrets."""
    return folder / f"{server}.login"


@dataclass(slots=True, kw_only=True)
class McpServers:
    """The servers that are switched on. Their tools come to stand in the `toolbox`, those that are known at once.
    `folder` keeps lists and logins. `connect` stands in for the library; `learn` is told secrets, which `redact` takes
    out."""

    settings: Mapping[str, McpServerSettings]
    toolbox: Toolbox
    folder: Path
    clock: Clock
    redact: Callable[[str], str]
    learn: Callable[[Sequence[str]], None] = lambda _: None
    connect: Connect | None = None
    own: Sequence[Path] = ()  # what is lent to none in a sandbox
    servers: Sequence[McpServer] = field(init=False)
    offered: dict[str, Sequence[Tool]] = field(default_factory=dict)
    prompts: dict[str, Sequence[PromptFacts]] = field(default_factory=dict)
    _logins: dict[str, tuple[Attempt, asyncio.Task[None]]] = field(default_factory=dict)
    _owners: Background = field(default_factory=Background)

    def __post_init__(self) -> None:
        for name, each in self.settings.items():
            list(lent_of(each.folders, self.own, f"tools.mcp.{name}.folders"))  # a mistake is told at the start
        self.servers = [self._server(name, each) for name, each in self.settings.items() if each.enabled]

    async def serve(self) -> None:
        """Keep all servers connected until this is cancelled; then end them."""
        try:
            for server in self.servers:
                self._owners.start(server.serve(), name=f"mcp {server.name}")
            await self._owners.idle()
        finally:
            await self._owners.aclose()

    async def first_tried(self) -> None:
        """Return when each server whose tools nobody knows has had its first attempt, or after a few seconds. One that
        failed, and one whose tools are known of the last start, is not waited for."""
        with suppress(TimeoutError):
            async with self.clock.limit(_PATIENCE):
                for server in self.servers:
                    if not self.offered[server.name]:
                        await server.settled.wait()

    def troubled(self) -> Iterator[tuple[str, str]]:
        """The servers that cannot be used now, or not with all of their tools, each with how it is, for people."""
        for server in self.servers:
            if server.failure:
                then = (
                    f"the next attempt is in {lasting(max(1.0, server.pause), short=True)}"
                    if server.pause
                    else "Legato tries it again right now"
                )
                yield server.name, f"not usable: {server.failure}; {then}"
            elif not server.ready:
                yield server.name, "being started"
            elif server.left_out:
                yield server.name, f"used without the tools that cannot be read: {server.lacks}"

    # -- logins -----------------------------------------------------------------------------

    async def log_in(self, name: str) -> str:
        """Begin a login, in the place of one that has begun. Returns the link for the person. Raises UserError."""
        server = self._remote(name)
        if name in self._logins:
            self._logins.pop(name)[1].cancel()
        kind = await asyncio.to_thread(imported, _ATTEMPT)
        file = login_file(self.folder, name)
        attempt: Attempt = kind(path=file, settings=server.settings, clock=self.clock, learn=self.learn)
        self._logins[name] = attempt, self._owners.start(attempt.run(), name=f"mcp login {name}")
        return await attempt.given()

    async def came_back(self, name: str, address: str) -> str:
        """End a login with the address to which the person's browser was sent. Returns how the server is now. Raises
        UserError."""
        server = self._remote(name)
        if name not in self._logins or self._logins[name][0].done.done():
            raise UserError(f"There is no open login at {name} any more. /mcp login {name} starts a new one.")
        try:
            await self._logins[name][0].came_back(address)
        except UserError as error:
            raise UserError(self.redact(str(error))) from None
        await server.begin_anew()
        return self._finding(server).detail

    async def log_out(self, name: str) -> bool:
        """Forget a login; whether there was one. Raises UserError."""
        server, file = self._remote(name), login_file(self.folder, name)
        if known := file.exists():
            file.unlink()
            await server.begin_anew()
        return known

    def _remote(self, name: str) -> McpServer:
        found = {each.name: each for each in self.servers if each.settings.may_log_in}
        if name not in found:
            there = ", ".join(found) or "none"
            raise UserError(f"No MCP server {one_line(name, 24)} takes a login. These servers do: {there}.")
        return found[name]

    def states(self) -> Iterator[tuple[str, str]]:
        """All servers, each with how it is, for people."""
        troubled = dict(self.troubled())
        for server in self.servers:
            login = f", {LOGGED_IN}" if self._has_login(server) else ""
            offers = f"offers {counted(len(self.offered[server.name]), 'tool')}{login}"
            yield server.name, f"is {troubled[server.name]}" if server.name in troubled else offers

    def _has_login(self, server: McpServer) -> bool:
        return server.settings.may_log_in and login_file(self.folder, server.name).exists()

    def _server(self, name: str, settings: McpServerSettings) -> McpServer:
        made_safe: Callable[[Sequence[ToolFacts]], list[ToolFacts]] = imported(f"{_TOOLS}:made_safe")
        known = known_list(self.folder, name, settings.place)
        known = KeptList(known.place, made_safe(known.tools), known.prompts)

        def offered(listing: Listing) -> None:
            nonlocal known
            safe = KeptList(settings.place, made_safe(listing.tools), [*listing.prompts])
            self._offer(server, safe)
            if safe != known:
                known = safe
                _keep_list(self.folder, name, safe)

        server = McpServer(
            name=name, settings=settings, load=self._load, offered=offered, clock=self.clock, redact=self.redact
        )
        self._offer(server, known)
        return server

    async def probe(self) -> AsyncIterator[Finding]:
        """Start every server, tell its tools or the reason of its failure, and end all servers."""
        owners = Background()
        try:
            for server in self.servers:
                server.warns = False
            owners.start(self.serve(), name="mcp")
            for server in self.servers:
                await server.settled.wait()
                yield self._finding(server)
        finally:
            await owners.aclose()

    def _finding(self, server: McpServer) -> Finding:
        if server.failure:
            detail = f"{server.name} ({server.settings.place}): {server.failure}"
            return Finding(what=_WHAT, ok=False, detail=detail)
        names = [tool.name for tool in self.offered[server.name]]
        missing = sorted({*server.settings.only, *server.settings.ask} - {ANY, *server.known})
        detail = f"{server.name}: {counted(len(names), 'tool')}: {first_of(names, _LISTED)}"
        detail += f"; {LOGGED_IN}" if self._has_login(server) else ""
        if server.left_out:
            detail += f"; left out, because they cannot be read: {server.lacks}"
        if missing:
            detail += f"; it has no {', no '.join(missing)}, which the configuration names"
        return Finding(what=_WHAT, ok=None if missing or server.left_out else True, detail=detail)

    async def _load(self) -> Connect:
        if self.connect is None:
            kind = await asyncio.to_thread(imported, CONNECTOR)
            self.connect = kind(
                clock=self.clock, redact=self.redact, folder=self.folder, own=self.own, learn=self.learn
            )
        return self.connect

    def _offer(self, server: McpServer, known: KeptList) -> None:
        origin = f"mcp:{server.name}"
        tools: Sequence[Tool] = imported(f"{_TOOLS}:tools_of")(server, known.tools, self.toolbox.taken(origin))
        self.prompts[server.name] = known.prompts
        self.toolbox.register(origin, tools)
        self.offered[server.name] = tools
