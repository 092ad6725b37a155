"""The Messages API over HTTP. The codec is pure (`codec`, `answer`); here is only the conversation with the server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from typing import Final
from urllib.parse import quote

import httpx

from gateway.providers.anthropic.answer import MessagesAnswer
from gateway.providers.anthropic.codec import VERSION, Entries, encode_request, endpoint
from gateway.providers.base import ModelEvent, ModelRequest, ModelSpec, OfferedModel, anew
from gateway.providers.bodies import Bodies
from gateway.providers.http import http_client
from gateway.providers.plugin import ProviderHost
from gateway.providers.server import ModelServer, Refused, further_headers, key_of
from gateway.providers.windows import offered, window_in
from gateway.runtime.clock import Clock
from gateway.runtime.errors import OutputCapTooLarge

_LISTED: Final = 1_000  # models on one page of the list, the most that the API gives


class Messages:
    """`Provider` for Anthropic and servers with its API. One instance serves all sessions.

    `client` is `providers.http.http_client()` and belongs to this instance from then on; `redact`
    takes credentials out of quotes in error texts.
    """

    name = "anthropic"

    def __init__(self, client: httpx.AsyncClient, redact: Callable[[str], str], *, clock: Clock | None = None) -> None:
        self._server = ModelServer(client, redact, clock)
        self._bodies = Bodies()
        self._caps: dict[tuple[str, str], int] = {}  # by (address, model), where the server said it

    async def aclose(self) -> None:
        await self._server.aclose()

    def rest(self) -> int:
        """As `KeepsBodies`."""
        return self._bodies.rest()

    async def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        model = (endpoint(spec), spec.name)
        thoughts, corrected = True, False
        while True:
            encode = partial(encode_request, spec, cap=self._caps.get(model), thoughts=thoughts)
            body = self._bodies.of(request, (spec.name, thoughts), partial(Entries, spec, thoughts), encode)
            answer = MessagesAnswer(spec.name, self._server.new_id, request.tool_names)
            try:
                async with aclosing(
                    self._server.call(endpoint(spec), _headers(spec), body, answer, spec=spec)
                ) as events:
                    async for event in events:
                        yield event
                return
            except Refused as refused:
                most = most_output(request, refused)
                if most is not None and not corrected:
                    self._caps[model], corrected = most, True
                elif thoughts and refuses_thoughts(refused.body):
                    thoughts = False
                else:
                    raise refused.error from None
                for lost in anew(refused.error):
                    yield lost

    async def reported_window(self, spec: ModelSpec) -> int | None:
        about = await self._server.look_up(f"{_models(spec)}/{quote(spec.name, safe='')}", _headers(spec))
        if isinstance(about, dict) and isinstance(cap := about.get("max_tokens"), int) and cap > 0:
            self._caps[endpoint(spec), spec.name] = cap
        return window_in([about], spec.name)

    async def models(self, spec: ModelSpec) -> list[OfferedModel]:
        return offered(await self._server.look_up(f"{_models(spec)}?limit={_LISTED}", _headers(spec)))


def most_output(request: ModelRequest, refused: Refused) -> int | None:
    """The most tokens that a model writes, which it says when it refuses a cap that nobody asked for, because the usual
    one is ours. None if the refusal is about something else."""
    if request.max_tokens is not None or not isinstance(refused.error, OutputCapTooLarge):
        return None
    return refused.error.available if "maximum allowed number of output tokens" in refused.body.lower() else None


def refuses_thoughts(body: str) -> bool:
    """Whether a refusal is about earlier thoughts: their signatures are those of another account, say."""
    text = body.lower()
    return "thinking" in text and ("signature" in text or "cannot be modified" in text or "redacted" in text)


def create(host: ProviderHost) -> Messages:
    """For `PLUGIN`. Call it inside a running event loop."""
    return Messages(http_client(), host.redact, clock=host.clock)


def _models(spec: ModelSpec) -> str:
    return endpoint(spec).removesuffix("/messages") + "/models"


def _headers(spec: ModelSpec) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "Accept": "text/event-stream", "anthropic-version": VERSION}
    if key := key_of(spec.api_key):
        headers["x-api-key"] = key
    return headers | further_headers(spec)
