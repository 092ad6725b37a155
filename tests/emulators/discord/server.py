"""The door: HTTP and websockets in; one request at a time counted, disturbed if so wished, done and answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Final, Self

from aiohttp import web

from gateway.runtime.clock import Clock, SystemClock
from tests.emulators.discord.asked import LARGEST_REQUEST, read
from tests.emulators.discord.buckets import GLOBAL, Limits, Verdict
from tests.emulators.discord.cloud import Cloud, Settings
from tests.emulators.discord.disturbing import Mishap, RateLimit
from tests.emulators.discord.gateway import Connection
from tests.emulators.discord.people import PIXEL, People
from tests.emulators.discord.refusals import Refusal, not_found
from tests.emulators.discord.routes import ROUTES, Route
from tests.emulators.discord.sessions import Op
from tests.emulators.discord.world import Channel, Message, User
from tests.emulators.faults import Disconnect, Faults, Flood, LoseAnswer, Refuse, Slow, cut
from tests.emulators.journal import Call, Journal, Violation

CLOSE: Final = 0.2  # seconds that open requests get when the server closes
HUNG_UP: Final = 499  # what proxies note of a client that went away
VIA: Final = {"Via": "1.1 google"}
_DOCUMENTED: Final = Limits()
_OPEN: Final = ("GET /gateway", "POST /interactions", "/webhooks/")
_BANNED: Final = "<html><head><title>Access denied</title></head><body>error code: 1015</body></html>"


class DiscordServer:
    """Discord's REST API and gateway on a loopback port, and all of Discord behind them.

    `people` does what people do; `faults` disturbs requests and `frames` payloads of the gateway; see the package.
    `limits`: None switches rate limits off. Time is the `clock`'s, real by default.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        clock: Clock | None = None,
        limits: Limits | None = _DOCUMENTED,
        host: str = "127.0.0.1",
        port: int = 0,
        keep: int = 100_000,
    ) -> None:
        self.settings = settings or Settings()
        self.cloud = Cloud.make(self.settings, clock or SystemClock(), limits, keep=keep)
        self.people = People(self.cloud)
        self._host, self._port = host, port
        self._closing = asyncio.Event()
        self._runner: web.AppRunner | None = None

    # -- where it is -------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The root."""
        return f"http://{self._host}:{self._port}"

    @property
    def api_url(self) -> str:
        """Return the value of discord.py's `Route.BASE`."""
        return f"{self.url}/api/v10"

    @property
    def gateway_url(self) -> str:
        """Return the value of discord.py's `DiscordWebSocket.DEFAULT_GATEWAY`."""
        return f"ws://{self._host}:{self._port}/gateway/"

    @property
    def token(self) -> str:
        """The bot's token."""
        return self.settings.token

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=LARGEST_REQUEST)
        for name, route in ROUTES.items():
            method, _, path = name.partition(" ")
            for base in ("/api", "/api/v10", "/api/v9"):
                app.router.add_route(method, base + path, self._door(name, route))
        app.router.add_get("/gateway/", self._connected)
        app.router.add_get("/attachments/{path:.+}", self._downloaded)
        app.router.add_get("/stickers/{name}", self._sticker)
        app.router.add_route("*", "/{rest:.*}", self._lost)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=False, shutdown_timeout=CLOSE)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port, backlog=1024).start()
        self._port = self._runner.addresses[0][1]
        self.cloud.gateway_url, self.cloud.files.root = self.gateway_url, self.url
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing.set()
        for connection in list(self.cloud.connections):
            connection.close(1001)
        if self._runner is not None:
            await self._runner.cleanup()

    # -- what is to be seen ------------------------------------------------------------------------

    @property
    def faults(self) -> Faults[Mishap]:
        """Return the faults of requests."""
        return self.cloud.faults

    @property
    def frames(self) -> Faults[Mishap]:
        """Return the faults of the gateway's payloads."""
        return self.cloud.frames

    @property
    def journal(self) -> Journal:
        """All requests and payloads."""
        return self.cloud.journal

    @property
    def violations(self) -> Sequence[Violation]:
        """Return the deeds of a bot that breaks the rules: requests that Discord refuses, except those that no bot
        could foresee; and requests beyond the emulator."""
        return self.cloud.journal.violations

    @property
    def bot(self) -> User:
        """The bot."""
        return self.cloud.bot

    @property
    def connected(self) -> bool:
        """The bot is listening to the gateway."""
        return any(session.send is not None for session in self.cloud.sessions.values())

    def shown(self, channel: Channel) -> list[Message]:
        """Return the bot's messages in a channel, oldest first, as people see them."""
        return [message for message in channel.visible if message.author is self.bot]

    async def until(self, condition: Callable[[], Any]) -> Any:
        """Return the value of `condition()` once that is true; the server asks after every request and every change
        of a channel."""
        return await self.cloud.journal.until(condition)

    # -- what the gateway does on its own ----------------------------------------------------------

    def close(self, code: int) -> None:
        """Close every connection with a code; 0: without a word."""
        for connection in list(self.cloud.connections):
            connection.close(code)

    def reconnect(self) -> None:
        """Ask every connection to come again."""
        for connection in list(self.cloud.connections):
            connection.send(Op.RECONNECT)

    def invalidate(self, *, resumable: bool = False) -> None:
        """Declare every session invalid."""
        for connection in list(self.cloud.connections):
            connection.send(Op.INVALID_SESSION, resumable)

    def allow(self, intents: int) -> None:
        """Switch these intents on for the bot in Discord's portal, and no others."""
        self.settings = self.cloud.settings = replace(self.settings, allowed_intents=intents)

    def silence(self) -> None:
        """From now on, no connection says a word: they are zombies."""
        for connection in list(self.cloud.connections):
            connection.silence()

    def ban(self, seconds: float) -> None:
        """Lock the bot out, as Cloudflare does."""
        self.cloud.buckets.ban(seconds)

    # -- one request -------------------------------------------------------------------------------

    def _door(self, name: str, route: Route) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def called(request: web.Request) -> web.StreamResponse:
            place = request.match_info.get("channel") or request.match_info.get("token", "")
            call = self.journal.open(name, place, {})
            try:
                return await self._disturbed(request, call, route)
            except ConnectionError:  # the bot died in the middle of its request
                call.status = HUNG_UP
                return cut(request)
            finally:
                self.journal.changed()

        return called

    async def _disturbed(self, request: web.Request, call: Call, route: Route) -> web.StreamResponse:
        fault = self.faults.befalling(call)
        if isinstance(fault, Refuse):
            call.status, call.answered = fault.status, True
            return _broken(fault)
        if isinstance(fault, Disconnect) and not fault.done:
            return cut(request)
        if isinstance(fault, RateLimit) and fault.scope == "global":
            self.cloud.buckets.rest(fault.seconds)
        if isinstance(fault, RateLimit | Flood):
            return self._limited(call, _verdict(fault))
        if isinstance(fault, Slow):
            await self.cloud.clock.sleep(fault.seconds)
        response = await self._performed(request, call, route)
        if isinstance(fault, Disconnect):
            return cut(request)
        if isinstance(fault, LoseAnswer):
            return await self._lose(request, fault)
        call.answered = True
        return response

    async def _performed(self, request: web.Request, call: Call, route: Route) -> web.Response:
        major = request.match_info.get("channel") or request.match_info.get("guild", "")
        free = call.method.startswith("POST /interactions") or "/webhooks/" in call.method
        verdict = self.cloud.buckets.take(call.method, major + request.match_info.get("token", ""), free=free)
        if verdict.wait:
            return self._limited(call, verdict)
        try:
            if not any(part in call.method for part in _OPEN):
                self._check_token(request)
            asked = await read(request, call.method, call)
            result = route(self.cloud, asked)
        except Refusal as refused:
            return self._refused(call, refused, verdict)
        except ConnectionError:
            raise
        except Exception as error:
            self.journal.violation(call.method, call.chat_id, f"The emulator itself failed: {error!r}")
            raise
        call.done, call.result = True, result
        call.status = 204 if result is None else 200
        return _response(call.status, result, verdict.headers)

    def _refused(self, call: Call, refused: Refusal, verdict: Verdict) -> web.Response:
        call.status, call.description = refused.status, str(refused)
        self.cloud.buckets.refused(refused.status)
        if refused.status in (400, 401, 405, 413):
            self.journal.violation(call.method, call.chat_id, json.dumps(refused.body()))
        return _response(refused.status, refused.body(), verdict.headers)

    def _check_token(self, request: web.Request) -> None:
        if request.headers.get("Authorization") != f"Bot {self.token}":
            raise Refusal(401, 0)

    def _limited(self, call: Call, verdict: Verdict) -> web.Response:
        call.status, call.answered, call.description = 429, True, "You are being rate limited."
        self.cloud.buckets.refused(429)
        after = {"Retry-After": str(int(verdict.wait) + 1)}
        if verdict.banned:
            return web.Response(status=429, text=_BANNED, content_type="text/html", headers=after)
        headers = {**verdict.headers, **after, "X-RateLimit-Scope": verdict.scope}
        return _response(429, verdict.body, headers)

    async def _lose(self, request: web.Request, fault: LoseAnswer) -> web.StreamResponse:
        waits: Awaitable[Any]
        waits = self._closing.wait() if fault.seconds is None else self.cloud.clock.sleep(fault.seconds)
        await waits
        return cut(request)

    # -- other doors -------------------------------------------------------------------------------

    async def _connected(self, request: web.Request) -> web.StreamResponse:
        call = self.journal.open("GET /gateway/", "", dict(request.query))
        fault = self.faults.befalling(call)
        if isinstance(fault, Refuse):
            return _broken(fault)
        if isinstance(fault, Disconnect):
            return cut(request)
        if isinstance(fault, Slow):
            await self.cloud.clock.sleep(fault.seconds)
        if isinstance(fault, LoseAnswer):
            return await self._lose(request, fault)
        call.done = call.answered = True
        try:
            return await Connection(self.cloud, request).serve()
        except ConnectionError:  # the bot died before the handshake was over
            return cut(request)

    async def _sticker(self, request: web.Request) -> web.StreamResponse:
        found = self.cloud.stickers.get(request.match_info["name"])
        return web.Response(status=404) if found is None else web.Response(body=found)

    async def _downloaded(self, request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"]
        call = self.journal.open("(download)", "", {"path": path})
        fault = self.faults.befalling(call)
        if isinstance(fault, Slow):
            await self.cloud.clock.sleep(fault.seconds)
        if isinstance(fault, Refuse):
            return _broken(fault)
        if isinstance(fault, Disconnect | LoseAnswer):
            return cut(request)
        found = self.cloud.files.fetch(path, dict(request.query))
        call.done, call.status = found is not None, 200 if found else 404
        if found is None:
            return web.Response(status=404, text="This content is no longer available.")
        if found[1].startswith("video/") and request.query.get("format") == "jpeg":  # the proxy takes its first frame
            return web.Response(body=PIXEL, content_type="image/png")
        return web.Response(body=found[0], content_type=found[1])

    async def _lost(self, request: web.Request) -> web.StreamResponse:
        self.journal.violation(request.method, request.path, "This route is unknown to the emulator.")
        return _response(404, not_found(0).body() | {"message": "404: Not Found"}, {})


def _verdict(fault: RateLimit | Flood) -> Verdict:
    if isinstance(fault, Flood):
        return Verdict(wait=fault.seconds)
    headers = GLOBAL if fault.scope == "global" else {}
    return Verdict(wait=fault.seconds, scope=fault.scope, banned=not fault.via, headers=headers)


def _response(status: int, body: Any, headers: dict[str, str]) -> web.Response:
    text = None if body is None else json.dumps(body, ensure_ascii=False)
    response = web.Response(status=status, text=text, headers={**VIA, **headers})
    if text is not None:
        response.headers["Content-Type"] = "application/json"
    return response


def _broken(fault: Refuse) -> web.Response:
    page = f"<html><head><title>{fault.status}</title></head><body>Try again later.</body></html>"
    text = page if fault.body is None else fault.body
    kind = "application/json" if text.startswith("{") else "text/html"
    response = web.Response(status=fault.status, text=text, headers=VIA)
    response.headers["Content-Type"] = kind
    return response
