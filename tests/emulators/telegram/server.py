"""The door: HTTP in, one call at a time checked, disturbed if so wished, done and answered."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Sequence
from typing import Any, Final, Self

from aiohttp import web

from gateway.runtime.clock import Clock, SystemClock
from tests.emulators.faults import Disconnect, Fault, Faults, Flood, LoseAnswer, Refuse, Slow, cut
from tests.emulators.journal import Call, Journal, Violation
from tests.emulators.telegram.cloud import Cloud, Settings
from tests.emulators.telegram.flood import Limits
from tests.emulators.telegram.methods import METHODS, NAMES
from tests.emulators.telegram.methods.reading import Told
from tests.emulators.telegram.parameters import LARGEST_REQUEST, Parameters
from tests.emulators.telegram.people import People
from tests.emulators.telegram.refusals import Refusal
from tests.emulators.telegram.world import Chat, Message, User

CLOSE: Final = 0.2  # seconds that open calls get when the server closes
_DOCUMENTED: Final = Limits()


class TelegramServer:
    """A Bot API server on a loopback port, and all of Telegram behind it.

    `people` does what people do, `faults` disturbs calls, `chats` shows what is to be seen; see the package. `limits`:
    None switches flood control off. Time is the `clock`'s, real by default. `seed` chooses where update ids begin.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        clock: Clock | None = None,
        limits: Limits | None = _DOCUMENTED,
        host: str = "127.0.0.1",
        port: int = 0,
        seed: int = 1,
        keep: int = 100_000,
    ) -> None:
        self.settings = settings or Settings()
        self.cloud = Cloud.make(self.settings, clock or SystemClock(), limits, seed=seed, keep=keep)
        self.people = People(self.cloud)
        self._host, self._port = host, port
        self._closing = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self._late: set[asyncio.Task[tuple[int, dict[str, Any]]]] = set()

    # -- where it is --------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The root."""
        return f"http://{self._host}:{self._port}"

    @property
    def base_url(self) -> str:
        """Return python-telegram-bot's `base_url`: the token follows."""
        return f"{self.url}/bot"

    @property
    def base_file_url(self) -> str:
        """Return python-telegram-bot's `base_file_url`."""
        return f"{self.url}/file/bot"

    @property
    def token(self) -> str:
        """The bot's token."""
        return self.settings.token

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=LARGEST_REQUEST)
        app.router.add_route("*", "/bot{token}/{method}", self._called)
        app.router.add_get("/file/bot{token}/{path:.+}", self._downloaded)
        app.router.add_route("*", "/{rest:.*}", self._lost)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=CLOSE)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port, backlog=1024).start()
        self._port = self._runner.addresses[0][1]
        await self.cloud.webhook.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing.set()
        for task in self._late:
            task.cancel()
        await asyncio.gather(*self._late, return_exceptions=True)
        await self.cloud.webhook.__aexit__()
        if self._runner is not None:
            await self._runner.cleanup()

    # -- what is to be seen ------------------------------------------------------------------------------

    @property
    def faults(self) -> Faults[Fault]:
        """Return the faults of calls."""
        return self.cloud.faults

    @property
    def journal(self) -> Journal:
        """All calls."""
        return self.cloud.journal

    @property
    def violations(self) -> Sequence[Violation]:
        """Calls that should not have been made: to a chat inside its `retry_after`, or of an unknown method. What the
        emulator cannot cope with is here too."""
        return self.cloud.journal.violations

    @property
    def chats(self) -> dict[int, Chat]:
        """All chats by id."""
        return self.cloud.world.chats

    @property
    def bot(self) -> User:
        """The bot."""
        return self.cloud.world.bot

    def shown(self, chat: Chat) -> list[Message]:
        """Return the bot's messages in a chat, oldest first, as a person sees them."""
        return [message for message in chat.visible if message.sender is self.bot]

    async def until(self, condition: Callable[[], Any]) -> Any:
        """Return the value of `condition()` once that is true; the server asks after every call and every change of a
        chat."""
        return await self.cloud.journal.until(condition)

    # -- one call ------------------------------------------------------------------------------------------

    async def _called(self, request: web.Request) -> web.StreamResponse:
        try:
            self._check_token(request.match_info["token"])
            parameters = await Parameters.of(request)
        except Refusal as refused:
            return _response(refused.code, refused.body())
        method, chat_id = request.match_info["method"], parameters.text("chat_id")
        method = NAMES.get(method.lower(), method)
        call = self.journal.open(method, chat_id, dict(parameters))
        try:
            return await self._disturbed(request, call, parameters)
        finally:
            self.journal.changed()

    def _check_token(self, token: str) -> None:
        if ":" not in token or token.startswith("0") or len(token) > 80:
            raise Refusal(401, "Unauthorized: invalid token specified")
        if token != self.token:
            raise Refusal(401, "Unauthorized")

    async def _disturbed(self, request: web.Request, call: Call, parameters: Parameters) -> web.StreamResponse:
        fault = self.faults.befalling(call)
        if isinstance(fault, Refuse):
            return self._answered(call, fault.status, _broken(fault), "refused on purpose")
        if isinstance(fault, Disconnect) and not fault.done:
            return cut(request)
        if isinstance(fault, Slow):
            status, body = await self._done_late(call, parameters, fault)
        else:
            status, body = await self._performed(call, parameters, fault)
        if isinstance(fault, Disconnect):
            return cut(request)
        if isinstance(fault, LoseAnswer):
            return await self._lose(request, fault)
        return self._answered(call, status, json.dumps(body, ensure_ascii=False), body.get("description", ""))

    async def _done_late(self, call: Call, parameters: Parameters, fault: Slow) -> tuple[int, dict[str, Any]]:
        """A call that takes long is done even if its caller has lost patience and gone."""

        async def late() -> tuple[int, dict[str, Any]]:
            await self.cloud.clock.sleep(fault.seconds)
            return await self._performed(call, parameters, fault)

        task = asyncio.get_running_loop().create_task(late())
        self._late.add(task)
        task.add_done_callback(self._late.discard)
        return await asyncio.shield(task)

    async def _performed(self, call: Call, parameters: Parameters, fault: Fault | None) -> tuple[int, dict[str, Any]]:
        """Do what is asked; status and body of the answer."""
        try:
            result = await self._result(call, parameters, fault)
        except Refusal as refused:
            call.status, call.description = refused.code, refused.description
            return refused.code, refused.body()
        except Exception as error:
            self.journal.violation(call.method, call.chat_id, f"The emulator itself failed: {error!r}")
            raise
        told = result if isinstance(result, Told) else Told(result=result, description="")
        call.done, call.status, call.result = True, 200, told.result
        body = {"ok": True, "result": told.result}
        return 200, {**body, "description": told.description} if told.description else body

    async def _result(self, call: Call, parameters: Parameters, fault: Fault | None) -> Any:
        method = METHODS.get(call.method.lower())
        if method is None:
            self.journal.violation(call.method, call.chat_id, "This method is unknown to the emulator.")
            raise Refusal(404, "Not Found: method not found")
        self._check_rest(call)
        if isinstance(fault, Flood):
            chat = self.cloud.world.find(call.chat_id)
            raise self.cloud.flood.rest(chat.id if chat else 0, fault.seconds)
        result = method(self.cloud, parameters)
        return await result if inspect.isawaitable(result) else result

    def _check_rest(self, call: Call) -> None:
        """A chat that answered 429 is to be left alone until its time is over; reading is free."""
        chat = self.cloud.world.find(call.chat_id) if call.chat_id else None
        if chat is None or call.method.lower().startswith("get"):
            return
        left = self.cloud.flood.resting(chat.id)
        if left and not self.cloud.flood.asked_after(chat.id, call.at):
            self.journal.violation(call.method, call.chat_id, f"The chat was to be left alone for {left} more seconds.")
        if left:
            raise self.cloud.flood.still(left)

    # -- answers -----------------------------------------------------------------------------------------------

    def _answered(self, call: Call, status: int, text: str, description: str) -> web.Response:
        call.status, call.description, call.answered = status, description, True
        kind = "application/json" if text.startswith("{") else "text/html"
        return web.Response(status=status, text=text, content_type=kind, headers=_retry_header(text, status))

    async def _lose(self, request: web.Request, fault: LoseAnswer) -> web.StreamResponse:
        if fault.seconds is not None:
            await self.cloud.clock.sleep(fault.seconds)
        else:
            await self._closing.wait()
        return cut(request)

    async def _downloaded(self, request: web.Request) -> web.StreamResponse:
        try:
            self._check_token(request.match_info["token"])
        except Refusal as refused:
            return _response(refused.code, refused.body())
        call = self.journal.open("(download)", "", {"path": request.match_info["path"]})
        stored = self.cloud.files.at(request.match_info["path"])
        fault = self.faults.befalling(call)
        if isinstance(fault, Slow):
            await self.cloud.clock.sleep(fault.seconds)
        if isinstance(fault, Refuse):
            return self._answered(call, fault.status, _broken(fault), "refused on purpose")
        if isinstance(fault, Disconnect) and fault.done and stored is not None:
            return await _cut_half_way(request, stored.content)
        if isinstance(fault, Disconnect | LoseAnswer):
            return cut(request)
        if stored is None:
            return _response(404, Refusal(404, "Not Found").body())
        call.done, call.answered, call.status = True, True, 200
        return web.Response(body=stored.content, content_type="application/octet-stream")

    async def _lost(self, request: web.Request) -> web.StreamResponse:
        return _response(404, Refusal(404, "Not Found").body())


def _response(status: int, body: dict[str, Any]) -> web.Response:
    return web.json_response(body, status=status)


def _retry_header(text: str, status: int) -> dict[str, str]:
    return {"Retry-After": str(json.loads(text)["parameters"]["retry_after"])} if status == 429 else {}


def _broken(fault: Refuse) -> str:
    if fault.body is not None:
        return fault.body
    if fault.status >= 502:
        return f"<html><head><title>{fault.status} Bad Gateway</title></head><body>Try again later.</body></html>"
    return json.dumps(Refusal(fault.status, "Internal Server Error").body())


async def _cut_half_way(request: web.Request, content: bytes) -> web.StreamResponse:
    """Send half of a file and break the connection."""
    response = web.StreamResponse(headers={"Content-Length": str(len(content))})
    await response.prepare(request)
    await response.write(content[: len(content) // 2])
    cut(request)
    return response
