"""The API as a platform. A row is shown by being in the store: `send` only wakes the requests that wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog
from aiohttp import web

from adapters.api.platform import ACCOUNT, LIMITS, NAME, ApiSettings
from adapters.api.server import Server, answered
from gateway.domain.adapter import Accept, Finding, KnowsKeys, Notebook
from gateway.domain.chat import Outbound
from gateway.domain.platform import AdapterHost
from gateway.domain.views import Inside, Views

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
        self.listens = asyncio.Event()
        self.at = ""
        self.keys: KnowsKeys | None = None
        self.views: Views | None = None
        self.inside: Inside | None = None
        self.notebook: Notebook | None = None

    async def run(self, accept: Accept) -> None:
        """Listen until cancelled. Raises AdapterError if the port is taken."""
        assert self.keys is not None, "the gateway sets it"
        server = Server(host=self._settings.host, port=self._settings.port, clock=self._host.clock, keys=self.keys)
        for routes in self._routes(server, accept):
            server.add(routes)
        async with server.listening():
            self.at = server.at
            self.listens.set()
            log.info("api_listens", at=self.at)
            await asyncio.Event().wait()

    def _routes(self, server: Server, accept: Accept) -> Sequence[Sequence[web.RouteDef]]:
        """The routes of all that is served here; a file of its own for each subject has a function `routes`."""

        async def models(request: web.BaseRequest) -> web.StreamResponse:
            await server.caller(request)
            model = {"id": self._host.model, "object": "model", "created": 0, "owned_by": "legato"}
            return answered({"object": "list", "data": [model]})

        return [[web.get("/v1/models", models)]]

    async def send(self, outbound: Outbound) -> str:
        """Show a row that is stored."""
        return outbound.id

    async def probe(self) -> Sequence[Finding]:
        """What `legato check` says of the API."""
        where = f"http://{self._settings.host}:{self._settings.port}"
        return [Finding(what="API", ok=True, detail=f"{where}/v1, for who has a key (`legato keys add NAME`)")]

    async def aclose(self) -> None:
        """Nothing is held here. Idempotent."""


def create(settings: ApiSettings, host: AdapterHost) -> ApiAdapter:
    """The API of these settings."""
    return ApiAdapter(settings, host)
