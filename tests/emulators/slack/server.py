"""The door: calls in; one at a time counted, disturbed if so wished, done and answered."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Final, Self

from aiohttp import web

from gateway.runtime.clock import Clock, SystemClock
from tests.emulators.faults import Disconnect, Fault, Faults, Flood, LoseAnswer, Refuse, Slow, cut
from tests.emulators.journal import Call, Journal, Violation
from tests.emulators.slack.delivery import Delivery
from tests.emulators.slack.methods import Methods, Refusal
from tests.emulators.slack.people import People
from tests.emulators.slack.world import Channel, Json, Message, Settings, User, World

CLOSE: Final = 0.2
USES: Final = 5  # of the address for a command's answer
# Calls a minute (https://docs.slack.dev/apis/web-api/rate-limits); of chat.postMessage one a second for each channel,
# with short bursts.
LIMITS: Final = {
    "chat.update": 50,
    "conversations.history": 50,
    "conversations.replies": 50,
    "conversations.info": 50,
    "conversations.open": 50,
    "users.conversations": 50,
    "users.info": 100,
    "files.info": 100,
    "files.getUploadURLExternal": 100,
    "files.completeUploadExternal": 100,
    "apps.connections.open": 20,
}
_BURST: Final = 6  # messages
_BURST_SECONDS: Final = 4.0


class SlackServer:
    """Slack's Web API and Socket Mode on a loopback port, and all of Slack behind them.

    `people` does what people do; `faults` disturbs calls and `frames` envelopes. `limited`: keep to the rate limits.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        clock: Clock | None = None,
        limited: bool = True,
        host: str = "127.0.0.1",
        port: int = 0,
        keep: int = 100_000,
    ) -> None:
        self.settings = settings or Settings()
        self.clock = clock or SystemClock()
        self.world = World(self.settings, self.clock)
        self.journal = Journal(self.clock, keep=keep)
        self.delivery = Delivery(self.world, self.journal)
        self.people = People(self.world, self.delivery)
        self.methods = Methods(self.world, self.people.told)
        self.faults: Faults[Fault] = Faults()
        self._host, self._port, self._limited = host, port, limited
        self._closing = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self._calls: dict[tuple[str, str], list[float]] = defaultdict(list)
        self._uses: dict[str, int] = defaultdict(int)
        self.refuses_sockets = False

    @property
    def url(self) -> str:
        """The root."""
        return f"http://{self._host}:{self._port}"

    @property
    def api_url(self) -> str:
        """The value of `base_url`."""
        return f"{self.url}/api/"

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 28)
        app.router.add_route("*", "/api/{method}", self._called)
        app.router.add_get("/link/{ticket}", self._connected)
        app.router.add_post("/upload/v1/{file}", self._uploaded)
        app.router.add_get("/files/{file}", self._downloaded)
        app.router.add_post("/commands/{path:.+}", self._answered)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=False, shutdown_timeout=CLOSE)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port, backlog=1024).start()
        self._port = self._runner.addresses[0][1]
        self.methods.root = self.people.root = self.url
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing.set()
        await self.delivery.aclose()
        if self._runner is not None:
            await self._runner.cleanup()

    # -- what is to be seen ------------------------------------------------------------------------

    @property
    def violations(self) -> Sequence[Violation]:
        """The deeds of a bot that breaks the rules."""
        return self.journal.violations

    @property
    def connected(self) -> bool:
        """The bot is listening."""
        return bool(self.delivery.connections)

    def shown(self, channel: Channel, thread: Message | None = None) -> list[Message]:
        """The bot's messages in a channel (or in a thread of it) that everybody sees, oldest first."""
        wanted = thread.ts if thread is not None else None
        return [
            each
            for each in channel.messages
            if each.user is self.world.bot and each.thread_ts == wanted and not each.deleted and each.only_for is None
        ]

    def whispered(self, user: User) -> list[Message]:
        """The bot's messages that only this person sees."""
        return [each for channel in self.world.channels.values() for each in channel.messages if each.only_for is user]

    async def until(self, condition: Callable[[], Any]) -> Any:
        """The value of `condition()` once that is true."""
        return await self.journal.until(condition)

    # -- one call ----------------------------------------------------------------------------------

    async def _called(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        given: Json = {**request.query, **await _body(request)}
        call = self.journal.open(method, str(given.get("channel", "") or given.get("channel_id", "")), given)
        try:
            return await self._disturbed(request, call, given)
        except ConnectionError:
            call.status = 499
            return cut(request)
        finally:
            self.journal.changed()

    async def _disturbed(self, request: web.Request, call: Call, given: Json) -> web.StreamResponse:
        fault = self.faults.befalling(call)
        if isinstance(fault, Refuse):
            call.status, call.answered = fault.status, True
            return web.Response(
                status=fault.status, text=fault.body or "<html>Try again</html>", content_type="text/html"
            )
        if isinstance(fault, Disconnect) and not fault.done:
            return cut(request)
        if isinstance(fault, Flood):
            return self._flooded(call, fault.seconds)
        if isinstance(fault, Slow):
            await self.clock.sleep(fault.seconds)
        wait = self._wait(call.method, call.chat_id)
        if wait:
            return self._flooded(call, wait)
        body = self._performed(request, call, given)
        if isinstance(fault, Disconnect):
            return cut(request)
        if isinstance(fault, LoseAnswer):
            await (self._closing.wait() if fault.seconds is None else self.clock.sleep(fault.seconds))
            return cut(request)
        call.answered, call.status = True, 200
        return web.json_response(body, headers={"X-OAuth-Scopes": ",".join(sorted(self.settings.scopes))})

    def _performed(self, request: web.Request, call: Call, given: Json) -> Json:
        try:
            socket = call.method == "apps.connections.open"
            token = self.settings.app_token if socket else self.settings.token
            if request.headers.get("Authorization") != f"Bearer {token}":
                raise Refusal("invalid_auth")
            if socket:
                body: Json = {"ok": True, "url": f"{self.url.replace('http', 'ws', 1)}/link/{self.world.new('L')}"}
            else:
                body = self.methods.call(call.method, given)
        except Refusal as refusal:
            call.description = str(refusal)
            if refusal.violation:
                self.journal.violation(call.method, call.chat_id, refusal.violation)
            return refusal.body
        call.done, call.result = True, body
        return body

    def _wait(self, method: str, chat: str) -> float:
        """The seconds that this call comes too early."""
        now = self.clock.monotonic()
        if not self._limited:
            return 0.0
        if method == "chat.postMessage":
            recent = self._calls[method, chat] = [at for at in self._calls[method, chat] if now - at < _BURST_SECONDS]
            if len(recent) >= _BURST:
                return max(1.0, recent[0] + _BURST_SECONDS - now)
        elif method in LIMITS:
            recent = self._calls[method, ""] = [at for at in self._calls[method, ""] if now - at < 60.0]
            if len(recent) >= LIMITS[method]:
                return max(1.0, recent[0] + 60.0 - now)
        else:
            return 0.0
        recent.append(now)
        return 0.0

    def _flooded(self, call: Call, seconds: float) -> web.Response:
        call.status, call.answered, call.description = 429, True, "ratelimited"
        headers = {"Retry-After": str(int(seconds + 0.999))}
        return web.json_response({"ok": False, "error": "ratelimited"}, status=429, headers=headers)

    # -- other doors -------------------------------------------------------------------------------

    async def _connected(self, request: web.Request) -> web.StreamResponse:
        if self.refuses_sockets:
            return web.Response(status=503)
        return await self.delivery.serve(request)

    async def _uploaded(self, request: web.Request) -> web.StreamResponse:
        call = self.journal.open("(upload)", "", {})
        fault = self.faults.befalling(call)
        if isinstance(fault, Refuse):
            return web.Response(status=fault.status)
        known = self.methods.uploaded(request.match_info["file"], await request.read())
        return web.Response(text="OK" if known else "unknown", status=200 if known else 404)

    async def _downloaded(self, request: web.Request) -> web.StreamResponse:
        call = self.journal.open("(download)", "", {"file": request.match_info["file"]})
        fault = self.faults.befalling(call)
        if isinstance(fault, Refuse):
            return web.Response(status=fault.status)
        file = self.world.files.get(request.match_info["file"])
        if request.headers.get("Authorization") != f"Bearer {self.settings.token}" or (
            "files:read" not in self.settings.scopes
        ):
            return web.Response(text="<html>Sign in</html>", content_type="text/html")
        if file is None:
            return web.Response(status=404)
        return web.Response(body=file.content, content_type=file.mime)

    async def _answered(self, request: web.Request) -> web.StreamResponse:
        """The address for the answer to a slash command."""
        path = request.match_info["path"]
        body = await request.json()
        call = self.journal.open("response_url", "", body)
        self._uses[path] += 1
        if self._uses[path] > USES:
            return web.Response(status=404, text="used_url")
        channel, _, person = path.split("/")[1].partition(".")
        try:
            where = self.world.channels[channel]
            text, shown = self.methods.content({**body, "blocks": json.dumps(body.get("blocks") or [])}, 40_000)
        except Refusal as refusal:
            self.journal.violation("response_url", channel, refusal.violation)
            return web.Response(status=400, text=str(refusal))
        message = Message(ts=self.world.ts(), channel=where, user=self.world.bot, texts=[text], blocks=shown)
        message.only_for = self.world.users[person] if body.get("response_type") != "in_channel" else None
        where.messages.append(message)
        call.done = call.answered = True
        self.journal.changed()
        return web.Response(text="ok")


async def _body(request: web.Request) -> Json:
    """The arguments of a call as a form has them, also where they came as JSON."""
    if request.content_type != "application/json":
        return dict(await request.post())
    given = await request.json()
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in given.items()}
