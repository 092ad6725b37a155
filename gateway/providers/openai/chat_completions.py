"""Chat Completions over HTTP: OpenAI and everything that imitates it.

The codec is pure (`codec`, `answer`); here is only the conversation with the server.
Servers differ in their refusals: if one objects to an optional field, the call is made again
without it, and what was learned is kept for the life of the process.
"""

from __future__ import annotations

import math
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, Final

import httpx

from gateway.domain.usage import CanonicalUsage
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
from gateway.providers.plugin import ProviderHost
from gateway.providers.server import ModelServer, Refused, bearer
from gateway.providers.usage import told
from gateway.providers.windows import is_named, is_near, offered, tokens_in, window_in
from gateway.runtime.clock import Clock
from gateway.runtime.errors import ProviderError, ProviderRejected, ProviderUnavailable


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
        """The model's window in tokens, as its server states it in `/models`, or None: many say nothing. Your own
        server is asked further (`local`). Raises ProviderError if the server cannot be asked, so that a wrong address
        or key is found before the first message."""
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


# -- embeddings ----------------------------------------------------------------------------------------


def embedded(answer: Any, count: int) -> Embedded:
    """The vectors in an answer about so many texts. Raises ProviderRejected if there was no such page, and
    ProviderUnavailable for any other answer."""
    if answer is None:
        raise ProviderRejected(
            "The server lacks this embedding model. Check search.embeddings.name and search.embeddings.base_url."
        )
    usage = told(answer, "chat_completions")
    try:
        rows = sorted(answer["data"], key=lambda row: row["index"])
        vectors = [[float(number) for number in row["embedding"]] for row in rows]
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
        raise _unusable("The embedding server answered something else.", usage) from error
    whole = len(vectors) == count and all(vectors) and len({len(each) for each in vectors}) == 1
    if not whole or not all(math.isfinite(number) for each in vectors for number in each):
        raise _unusable("The embedding server's vectors are not whole.", usage)
    return Embedded(vectors=vectors, tokens=usage.prompt_tokens if usage else 0)


def _unusable(text: str, usage: CanonicalUsage | None) -> ProviderUnavailable:
    """The error for an answer that cost something all the same."""
    error = ProviderUnavailable(text, malformed=True, billable=True)
    error.usage = usage
    return error


# -- servers of one's own ------------------------------------------------------------------------------


LookUp = Callable[[str, Mapping[str, Any] | None], Awaitable[Any | None]]
"""The JSON at a path of the server; with a body it is posted. None where there is no such page."""

_NUM_CTX: Final = re.compile(r"^\s*num_ctx\s+(\d+)", re.MULTILINE)


async def running_window(look_up: LookUp, name: str) -> int | None:
    """The tokens that `name` runs with; None if the server does not say. Raises ProviderError."""
    props = await look_up("/props", None)
    settings = props.get("default_generation_settings") if isinstance(props, Mapping) else None
    if isinstance(settings, Mapping) and (window := tokens_in(settings, "n_ctx")):
        return window
    return window_in(await look_up("/api/v0/models", None), name) or await _of_ollama(look_up, name)


async def _of_ollama(look_up: LookUp, name: str) -> int | None:
    loaded = _loaded(await look_up("/api/ps", None), name)
    if loaded is not None:
        return loaded
    shown = await look_up("/api/show", {"model": name})
    if not isinstance(shown, Mapping):
        return None
    if set_by_file := _NUM_CTX.search(str(shown.get("parameters", ""))):
        return int(set_by_file[1])
    await look_up("/api/generate", {"model": name, "stream": False})  # loads it, as the first message would
    return _loaded(await look_up("/api/ps", None), name)


def _loaded(running: Any, name: str) -> int | None:
    entries = running.get("models") if isinstance(running, Mapping) else None
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, Mapping) and is_named(entry.get("name"), name):
            return tokens_in(entry, "context_length")
    return None
