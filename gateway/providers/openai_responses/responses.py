"""The Responses API over HTTP. The codec is pure (`codec`, `answer`); here is only the conversation with the server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial

import httpx

from gateway.providers.base import ModelEvent, ModelRequest, ModelSpec, OfferedModel, anew
from gateway.providers.bodies import Bodies
from gateway.providers.http import http_client
from gateway.providers.openai_responses.answer import ResponsesAnswer
from gateway.providers.openai_responses.codec import Entries, Habits, encode_request, endpoint, learn, refuses_thoughts
from gateway.providers.plugin import ProviderHost
from gateway.providers.server import ModelServer, Refused, bearer
from gateway.providers.windows import offered, window_in
from gateway.runtime.clock import Clock


class Responses:
    """`Provider` for OpenAI and servers with its newer API. One instance serves all sessions.

    `client` is `providers.http.http_client()` and belongs to this instance from then on; `redact`
    takes credentials out of quotes in error texts.
    """

    name = "openai-responses"

    def __init__(self, client: httpx.AsyncClient, redact: Callable[[str], str], *, clock: Clock | None = None) -> None:
        self._server = ModelServer(client, redact, clock)
        self._bodies = Bodies()
        self._habits: dict[tuple[str, str], Habits] = {}  # by (address, model), where not the usual

    async def aclose(self) -> None:
        await self._server.aclose()

    def rest(self) -> int:
        """As `KeepsBodies`."""
        return self._bodies.rest()

    async def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        model = (endpoint(spec), spec.name)
        habits, thoughts = self._habits.get(model, Habits()), True
        while True:
            encode = partial(encode_request, spec, habits=habits, thoughts=thoughts)
            body = self._bodies.of(request, (spec.name, thoughts), partial(Entries, spec, thoughts), encode)
            answer = ResponsesAnswer(spec.name, self._server.new_id, request.tool_names)
            try:
                async with aclosing(self._server.call(endpoint(spec), bearer(spec), body, answer, spec=spec)) as events:
                    async for event in events:
                        yield event
                return
            except Refused as refused:
                learned = learn(habits, refused.body)
                if learned is not None:
                    self._habits[model] = habits = learned
                elif thoughts and refuses_thoughts(refused.body):
                    thoughts = False
                else:
                    raise refused.error from None
                for lost in anew(refused.error):
                    yield lost

    async def reported_window(self, spec: ModelSpec) -> int | None:
        return window_in(await self._server.look_up(_models(spec), bearer(spec)), spec.name)

    async def models(self, spec: ModelSpec) -> list[OfferedModel]:
        return offered(await self._server.look_up(_models(spec), bearer(spec)))


def create(host: ProviderHost) -> Responses:
    """For `PLUGIN`. Call it inside a running event loop."""
    return Responses(http_client(), host.redact, clock=host.clock)


def _models(spec: ModelSpec) -> str:
    return endpoint(spec).removesuffix("/responses") + "/models"
