"""The page as a platform. A row is shown by being in the store: `send` only has the open pages look there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from socket import socket

import structlog

from adapters.web.guard import Guard
from adapters.web.log import Log
from adapters.web.platform import ACCOUNT, LIMITS, LINK_FILE, NAME, WebSettings
from adapters.web.server import Server, opened, source_of
from adapters.web.stream import Bells, Work
from gateway.domain.adapter import Accept, Doing, Finding, Notebook
from gateway.domain.chat import ChatAddress, Outbound
from gateway.domain.platform import AdapterHost
from gateway.domain.views import Inside, SettingUp, Views
from gateway.runtime.errors import StoreUnavailable
from gateway.runtime.tasks import Background

log = structlog.get_logger(__name__)

_TICK = 1.0  # seconds
_LOOK = 5.0  # seconds between two looks at whether a shell ended logins
_WORKING = "Working"  # until it is said at what
_SAYS = ("reply", "remark", "notice", "error")  # kinds of rows that change no other


class WebAdapter:
    """Serves the page. `at`: its address on this machine, once it `listens`."""

    name = NAME
    account = ACCOUNT  # of several processes one listens
    waits_for_account = True
    reader_sends = True
    limits = LIMITS
    longest_token = 200

    def __init__(self, settings: WebSettings, host: AdapterHost) -> None:
        self._settings = settings
        self._host = host
        self._bells = Bells()
        self._log = Log(aside=host.aside)
        self._drafts: dict[ChatAddress, Outbound] = {}
        self._work: dict[ChatAddress, Work] = {}
        self._anew: set[ChatAddress] = set()
        self._only_asks: dict[ChatAddress, bool] = {}  # whether the turn of a chat does, until its answer
        self._link_file = host.home.absolute() / LINK_FILE
        self.guard = Guard(settings, host.clock, self._link_file)
        self.at = ""
        self._socket: socket | None = None
        self.listens = asyncio.Event()
        self.views: Views | None = None
        self.inside: Inside | None = None
        self.notebook: Notebook | None = None
        self.setting_up: Callable[[], SettingUp] | None = None

    def open(self) -> str:
        """Take the port; returns the line that says where the page is. Raises AdapterError."""
        self._socket, self.at = opened(self._settings)
        self.guard.open(self.at)
        where = (
            f"This link opens the page once:\n{self.guard.link}"
            if self.guard.link
            else f"People log in at {self._settings.url}"
        )
        return f"The page is at {self.at}. {where}"

    def take_up(self, settings: WebSettings) -> None:
        self.guard.take_up(settings)

    async def run(self, accept: Accept) -> None:
        """Listen until cancelled. Raises AdapterError if the port is taken."""
        assert self.views is not None, "the gateway sets it"
        assert self.inside is not None, "the gateway sets it"
        server = Server(
            guard=self.guard,
            log=self._log,
            bells=self._bells,
            clock=self._host.clock,
            ids=self._host.ids,
            views=self.views,
            inside=self.inside,
            accept=accept,
            desk=self.setting_up,
            drafts=self._drafts,
            work=self._work,
            anew=self._anew,
        )
        if self._socket is None:
            self._host.tell(self.open())
        await self.guard.begin(self.notebook)
        taken, self._socket = self._socket, None
        assert taken is not None, "it was opened"
        background = Background()
        async with server.listening(taken):
            self.listens.set()
            log.info("page_listens", at=self.at)
            background.start(self._keep_logins(), name="logins")
            try:
                while True:
                    await self._host.clock.sleep(_TICK)
                    self._bells.tick(self._host.clock.monotonic())
            finally:
                await background.aclose()

    async def _keep_logins(self) -> None:
        while True:
            await self._host.clock.sleep(_LOOK)
            with suppress(StoreUnavailable):
                await self.guard.refresh()

    async def send(self, outbound: Outbound) -> str:
        """Have the person's open pages show a row that is stored."""
        to = outbound.to
        draft = self._drafts.get(to)
        if draft is not None and outbound.id == draft.id:
            del self._drafts[to]
        alone = self._only_asks.pop(to, False) and outbound.kind in _SAYS
        alone = alone and outbound.file is None and outbound.edits is None and not outbound.buttons
        self._bells.ring(to, news=outbound if alone else None)
        return outbound.id

    async def send_file(self, outbound: Outbound, content: bytes) -> str:
        """The same of a row with a file, which the page asks for by itself."""
        return await self.send(outbound)

    async def show_partial(self, outbound: Outbound) -> None:
        self._drafts[outbound.to] = outbound
        self._bells.ring(outbound.to, stored=False)

    async def typing(self, to: ChatAddress, active: bool) -> None:
        if active != (to in self._work):
            self._bells.ring_side(to.chat, besides=to)
        if active:
            self._work.setdefault(to, Work(_WORKING, self._host.clock.monotonic()))
            self._only_asks.setdefault(to, True)
        else:
            self._work.pop(to, None)
        changed = to in self._anew if active else not self._only_asks.get(to)
        self._anew.discard(to)
        self._bells.ring(to, stored=changed)

    def working(self, to: ChatAddress, doing: Doing, again_in: float) -> None:
        if not doing.asks:
            self._only_asks[to] = False
        if to in self._work:
            told = f"{doing.words[:1].upper()}{doing.words[1:]}{f', again in {again_in:.0f} s' if again_in else ''}"
            before = self._work[to]
            goes_on = told.partition(":")[0] == before.words.partition(":")[0]  # a tool says how far it is
            self._work[to] = Work(told, before.since if goes_on else self._host.clock.monotonic())
            self._bells.ring(to, stored=not self._only_asks.get(to, True))  # what tools do lies in the store

    async def end_links(self, chat: str) -> None:
        assert self.views is not None, "the gateway sets it"
        await self.guard.shares.begin(self.notebook)  # another process may have made some
        await self.guard.shares.end_gone(chat, partial(self.views.title, source_of(chat)))

    async def probe(self) -> Sequence[Finding]:
        where = self._settings.url or f"http://{self._settings.host}:{self._settings.port}"
        people = (
            f"{len(self._settings.people)} people"
            if self._settings.people
            else f"whoever opens the link in {self._link_file}"
        )
        return [Finding(what="page", ok=True, detail=f"{where}, for {people}")]

    async def aclose(self) -> None:
        """End the open pages, and give the port back. Idempotent."""
        self._bells.end()
        if self._socket is not None:
            self._socket.close()


def create(settings: WebSettings, host: AdapterHost) -> WebAdapter:
    """The page of these settings."""
    return WebAdapter(settings, host)
