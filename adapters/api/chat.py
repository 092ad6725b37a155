"""`/v1/models` and `/v1/chat/completions`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from urllib.parse import unquote

from aiohttp import web
from msgspec import Struct

from adapters.api import shapes
from adapters.api.answers import Answer
from adapters.api.desk import Asked, Desk
from adapters.api.history import hashed, history
from adapters.api.platform import NAME
from adapters.api.server import USER, Server, body_of, json_of, parts_of, user_named
from adapters.api.shapes import BEAT, ApiError, ChatRequest, Chunks, Wire
from gateway.domain.adapter import ADMIN_ROLE
from gateway.domain.chat import ERRANDS, Returns, Source
from gateway.domain.command import parse_command
from gateway.domain.keys import Key
from gateway.runtime.clock import Clock

MODEL: Final = "legato"  # what this bot is called as a model, whichever answers
_STREAM: Final = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_USER_NAME: Final = "X-OpenWebUI-User-Name"
_CHAT: Final = "X-OpenWebUI-Chat-Id"
_CHAT_FIELDS: Final = ("chat_id", "conversation_id", "session_id")
_LONGEST_NAME: Final = 128  # characters
_DAY: Final = 86_400.0  # seconds: caps begin anew at midnight, UTC
_CLOSED: Final = "The server is stopping, but has stored your message. Send the message again to get the answer."


class Chat(Struct, kw_only=True):
    """Answers in OpenAI's Chat Completions. `models`: the names by which the bot can be asked."""

    server: Server
    desk: Desk
    clock: Clock
    models: tuple[str, ...]

    def routes(self) -> list[web.RouteDef]:
        """What is served here."""
        return [
            web.get("/v1/models", self.listed),
            web.get("/v1/models/{model}", self.one),
            web.post("/v1/chat/completions", self.complete),
        ]

    async def listed(self, request: web.BaseRequest) -> web.StreamResponse:
        """GET /v1/models."""
        await self.server.caller(request)
        return json_of(shapes.model_list(self.models, 0))

    async def one(self, request: web.BaseRequest) -> web.StreamResponse:
        """GET /v1/models/NAME."""
        await self.server.caller(request)
        model = parts_of(request)["model"]
        self.require(model)
        return json_of(shapes.written(shapes.model_facts(model, 0)))

    def require(self, model: str) -> None:
        """Raises ApiError unless the bot goes by this name."""
        if model not in self.models:
            raise shapes.no_model(model)

    async def complete(self, request: web.BaseRequest) -> web.StreamResponse:
        """POST /v1/chat/completions."""
        key = await self.server.caller(request)
        wanted = shapes.read_chat(await body_of(request, self.clock))
        self.require(wanted.model)
        asked = asked_in(request, key, wanted)

        def wire(answer: Answer) -> Wire:
            return Chunks(
                id=f"chatcmpl-{answer.event}",
                model=wanted.model,
                created=int(self.clock.now()),
                include_usage=wanted.include_usage,
            )

        return await self.deliver(request, asked, wanted, wire)

    async def deliver(
        self, request: web.BaseRequest, asked: Asked, wanted: ChatRequest, wire: Callable[[Answer], Wire]
    ) -> web.StreamResponse:
        """Ask, and answer in the words of an API. Raises ApiError, StoreUnavailable."""
        if wanted.settings:
            wanted.refuse_beyond(self.desk.views.takes(asked.source))
        answer = await self.desk.ask(asked)
        try:
            deliver = self._streamed if wanted.stream else self._whole
            return await deliver(request, asked, answer, wire(answer))
        finally:
            self.desk.answers.forget(answer)

    async def _whole(self, request: web.BaseRequest, asked: Asked, answer: Answer, wire: Wire) -> web.StreamResponse:
        said: list[str] = []
        async for pieces in self.desk.pieces(asked, answer, whole=True):
            said += [each.text for each in pieces if not each.thought]
        text, returns = "".join(said), self._returns(asked, answer)
        if returns.calls:  # no person reads what stands beside calls
            text = text.removeprefix(answer.before).lstrip()
        response = json_of(wire.whole(text, returns))
        await response.prepare(request)
        await response.write_eof()
        await self.desk.given(asked, answer, begun=not returns.calls)
        return response

    async def _streamed(self, request: web.BaseRequest, asked: Asked, answer: Answer, wire: Wire) -> web.StreamResponse:
        response = web.StreamResponse(headers=_STREAM)
        said: list[str] = []
        try:
            await response.prepare(request)
            await response.write(wire.opening())
            async for pieces in self.desk.pieces(asked, answer):
                said += [each.text for each in pieces if not each.thought]
                words = [wire.thought(each.text) if each.thought else wire.words(each.text) for each in pieces]
                if not answer.final.over or words:
                    await response.write(b"".join(words) or BEAT)
            try:
                end = wire.ending("".join(said), self._returns(asked, answer))
            except ApiError as error:
                end = wire.failure(error)
            await response.write_eof(end)
        except ConnectionError:
            return response  # the client has gone; the turn goes on
        await self.desk.given(asked, answer)
        return response

    def _returns(self, asked: Asked, answer: Answer) -> Returns:
        """What the row says that ended an answer. Raises ApiError if it reports a failure, unless it answers a
        command."""
        end = answer.final
        if end.last is None and end.cut:
            raise shapes.unavailable(_CLOSED, 1)
        if end.last is not None and end.last.kind == "error" and parse_command(asked.text) is None:
            self.desk.got(asked, answer)
            fault = end.last.returns.fault if end.last.returns is not None else ""
            raise shapes.no_answer(end.last.text, fault, asked.param, _DAY - self.clock.now() % _DAY)
        return (end.last and end.last.returns) or Returns()


def asked_in(request: web.BaseRequest, key: Key, wanted: ChatRequest) -> Asked:
    """The message of a request. Raises ApiError."""
    user, user_name = _spoken_for(request, key, wanted)
    person = key.person_named(user)
    chat = request.headers.get(_CHAT) or next(filter(None, map(wanted.metadata.get, _CHAT_FIELDS)), "")
    whole = history(wanted.turns, hashed(person, chat))
    new, past = whole.split()
    thread = f"c-{_short(chat)}" if chat else f"h-{whole.first}"
    if wanted.is_errand:
        thread = ERRANDS
    source = Source(
        platform=NAME,
        chat=person,
        chat_type="direct",
        user=person,
        thread=thread,
        user_name=user_name or user or key.name,
        roles=(ADMIN_ROLE,) if key.admin else (),
        within=(key.name,) if user else (),
        cap=(key.name, key.cap) if key.cap is not None else None,
    )
    return Asked(
        source=source,
        name=new.name,
        text="\n\n".join(turn.text for turn in new.asked if turn.role == "user"),
        terms=wanted.terms(new.asked),
        pieces=[piece for turn in new.asked for piece in turn.pieces],
        past=past,
        anew=not chat or _CHAT in request.headers or wanted.is_errand,
        system=None if wanted.is_errand else wanted.system,
        once=request.headers.get("Idempotency-Key", "")[:_LONGEST_NAME],
        again=request.headers.get("X-Stainless-Retry-Count", "0") != "0",
    )


def _spoken_for(request: web.BaseRequest, key: Key, wanted: ChatRequest) -> tuple[str, str]:
    """The id and the name of the person for whom a front end speaks; empty if it speaks for itself."""
    if not key.front_end:
        return "", ""
    user = user_named(request.headers.get(USER) or wanted.user or wanted.metadata.get("user_id", ""), "user", "`user`")
    return user, unquote(request.headers.get(_USER_NAME, ""))[:_LONGEST_NAME] if user else ""


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME and name.isprintable() else hashed(name)
