"""Chat Completions over HTTP: OpenAI and everything that imitates it.

The codec is pure (`codec`, `answer`); here is only the conversation with the server.
Servers differ in their refusals: if one objects to an optional field, the call is made again
without it, and what was learned is kept for the life of the process.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any

import httpx

from gateway.providers.base import Embedded, ModelEvent, ModelRequest, ModelSpec, OfferedModel, anew
from gateway.providers.bodies import Bodies
from gateway.providers.http import http_client
from gateway.providers.openai.answer import ChatAnswer
from gateway.providers.openai.codec import (
    Entries,
    Habits,
    at_path,
    encode_request,
    endpoint,
    learn,
    server_of,
    speaks_responses,
    thinks_by_name,
)
from gateway.providers.openai.embeddings import embedded
from gateway.providers.openai.local import running_window
from gateway.providers.plugin import ProviderHost
from gateway.providers.server import ModelServer, Refused, bearer
from gateway.providers.windows import is_near, offered, window_in
from gateway.runtime.clock import Clock
from gateway.runtime.errors import ProviderError


class ChatCompletions:
    """`Provider` for any OpenAI-compatible server. One instance serves all sessions.

    `client` is `providers.http.http_client()` and belongs to this instance from then on; `redact`
    takes credentials out of quotes in error texts.
    """

    name = "openai"

    def __init__(self, client: httpx.AsyncClient, redact: Callable[[str], str], *, clock: Clock | None = None) -> None:
        self._server = ModelServer(client, redact, clock)
        self._bodies = Bodies()
        self._habits: dict[tuple[str, str], Habits] = {}  # by (address, model), where not the usual
        self._unopened: dict[tuple[str, str], bool] = {}  # whether the last answer began with thoughts in its words

    async def aclose(self) -> None:
        await self._server.aclose()

    def rest(self) -> int:
        """As `KeepsBodies`."""
        return self._bodies.rest()

    async def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Call the model. Yields deltas, then exactly one `Completed`. Raises ProviderError."""
        model = (endpoint(spec), spec.name)
        habits = self._habits.get(model, Habits())
        while True:
            entries, encode = partial(Entries, spec, habits), partial(encode_request, spec, habits=habits)
            body = self._bodies.of(request, (*model, habits), entries, encode)
            try:
                unopened = self._unopened.get(model, thinks_by_name(spec.name))
                answer = ChatAnswer(
                    self._server.new_id,
                    model=spec.name,
                    server=server_of(spec),
                    unopened=unopened,
                    tools=request.tool_names,
                )
                call = self._server.call(endpoint(spec), bearer(spec), body, answer, spec=spec)
                async with aclosing(call) as events:
                    async for event in events:
                        yield event
                self._unopened[model] = answer.unopened
                return
            except Refused as refused:
                learned = learn(habits, encode_request(spec, request, habits), refused.body)
                if learned is None:
                    raise (speaks_responses(refused.body) or refused.error) from None
                self._habits[model] = habits = learned
                for lost in anew(refused.error):
                    yield lost

    async def reported_window(self, spec: ModelSpec) -> int | None:
        """The model's window in tokens as its server states it in `/models`, or None: many say
        nothing. A server of one's own is asked further (`local`). Raises ProviderError if the server cannot be asked,
        so that a wrong address or key is found before the first message is."""
        listed = await self._server.look_up(_models(spec), bearer(spec))
        if not is_near(spec.base_url) or spec.base_url is None:
            return window_in(listed, spec.name)
        root = spec.base_url.rstrip("/").removesuffix("/chat/completions").removesuffix("/v1")

        async def look_up(path: str, post: Mapping[str, Any] | None) -> Any | None:
            try:
                return await self._server.look_up(root + path, bearer(spec), post)
            except ProviderError:  # what a server does not know, it may refuse in any way
                return None

        return window_in(listed, spec.name) or await running_window(look_up, spec.name)

    async def models(self, spec: ModelSpec) -> list[OfferedModel]:
        """Return the models that the server lists in `/models`; nothing if it has no such list. Raises
        ProviderError."""
        return offered(await self._server.look_up(_models(spec), bearer(spec)))

    async def embed(self, spec: ModelSpec, texts: Sequence[str]) -> Embedded:
        """Return the vectors that the server's `/embeddings` gives for texts. Raises ProviderError."""
        body = {"model": spec.name, "input": list(texts), "encoding_format": "float"}
        return embedded(await self._server.look_up(at_path(spec, "/embeddings"), bearer(spec), body), len(texts))


def create(host: ProviderHost) -> ChatCompletions:
    """For `PLUGIN`. Call it inside a running event loop."""
    return ChatCompletions(http_client(), host.redact, clock=host.clock)


def _models(spec: ModelSpec) -> str:
    return at_path(spec, "/models")
