"""The API as a platform. A row is shown by being in the store: `send` only wakes the requests that wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog
from aiohttp import web

from adapters.api import embeddings, hooks, mcp, responses
from adapters.api.answers import Answers
from adapters.api.chat import MODEL, Chat
from adapters.api.desk import Desk
from adapters.api.missed import comes_by_itself
from adapters.api.platform import ACCOUNT, LIMITS, NAME, ApiSettings
from adapters.api.server import Server
from gateway.domain.adapter import Accept, AnswerMcp, Doing, Finding, KnowsKeys, Notebook, TakeEvent
from gateway.domain.chat import ChatAddress, Outbound
from gateway.domain.platform import AdapterHost
from gateway.domain.views import Histories, Inside, Views

_BEAT = 10.0  # seconds without news, after which a request is told that the turn goes on

log = structlog.get_logger(__name__)


class ApiAdapter:
    """Serves the API. `at`: its address, once it `listens`."""

    name = NAME
    account = ACCOUNT  # of several processes one listens
    waits_for_account = True
    reader_sends = True
    limits = LIMITS

    def __init__(self, settings: ApiSettings, host: AdapterHost) -> None:
        self._settings = settings
        self._host = host
        self._answers = Answers()
        self.listens = asyncio.Event()
        self.at = ""
        self.keys: KnowsKeys | None = None
        self.notebook: Notebook | None = None
        self.take_event: TakeEvent | None = None
        self.mcp: AnswerMcp | None = None
        self.views: Views | None = None
        self.inside: Inside | None = None
        self.histories: Histories | None = None

    async def run(self, accept: Accept) -> None:
        """Listen until cancelled. Raises AdapterError if the port is taken."""
        assert self.keys is not None, "the gateway sets it"
        self._answers.missed.notebook = self.notebook
        await self._answers.missed.begin()
        server = Server(host=self._settings.host, port=self._settings.port, clock=self._host.clock, keys=self.keys)
        for routes in self._routes(server, accept):
            server.add(routes)
        async with server.listening():
            self.at = server.at
            self.listens.set()
            log.info("api_listens", at=self.at)
            self._host.tell(f"The API is at {self.at}/v1. The API needs a key: `legato keys add NAME` makes a key.")
            try:
                while True:
                    await self._host.clock.sleep(_BEAT)
                    self._answers.beat()
            finally:
                self._answers.close()

    def _routes(self, server: Server, accept: Accept) -> Sequence[Sequence[web.RouteDef]]:
        """The routes of everything that is served here; each subject gives them in a file of its own."""
        clock = self._host.clock
        assert self.views is not None, "the gateway sets it"
        assert self.histories is not None, "the gateway sets it"
        assert self.take_event is not None, "the gateway sets it"
        assert self.mcp is not None, "the gateway sets it"
        desk = Desk(accept=accept, views=self.views, histories=self.histories, clock=clock, answers=self._answers)
        models = tuple(dict.fromkeys((MODEL, self._host.model)))
        chat = Chat(server=server, desk=desk, clock=clock, models=models)
        return [
            chat.routes(),
            responses.routes(chat),
            embeddings.routes(chat),
            hooks.routes(self._settings.hooks, self.take_event, clock),
            mcp.routes(server, clock, self.mcp),
        ]

    async def send(self, outbound: Outbound) -> str:
        """Show a row to the requests that wait for it. Nothing waits for one that was shown before."""
        waiting = self._answers.at(outbound.to, outbound.answers or "")
        for answer in waiting:
            answer.show(outbound)
        if not waiting and comes_by_itself(outbound):
            await self._answers.missed.keep(outbound)
        return outbound.id

    async def show_partial(self, outbound: Outbound) -> None:
        for answer in self._answers.at(outbound.to, outbound.answers or ""):
            if not answer.quiet:
                answer.grow(outbound.id, outbound.text)

    async def typing(self, to: ChatAddress, active: bool) -> None:
        for answer in self._answers.at(to):
            answer.rests = answer.works and not active
            answer.works = active

    def working(self, to: ChatAddress, doing: Doing, again_in: float) -> None:
        for answer in () if doing.asks or doing.thinks else self._answers.at(to):
            answer.think(f"{doing.words}\n")

    async def probe(self) -> Sequence[Finding]:
        where = f"http://{self._settings.host}:{self._settings.port}"
        found = [
            Finding(
                what="API",
                ok=True,
                detail=f"{where}/v1, for everybody who has a key (`legato keys add NAME` makes a key)",
            )
        ]
        return [*found, *hooks.findings(self._settings.hooks, where, self._host.served)]

    async def aclose(self) -> None:
        """Let the requests go that still wait. Idempotent."""
        self._answers.close()


def create(settings: ApiSettings, host: AdapterHost) -> ApiAdapter:
    """The API of these settings."""
    return ApiAdapter(settings, host)
