"""Chat Completions over HTTP: OpenAI and everything that imitates it.

The codec is pure (`codec`, `answer`); here is only the conversation with the server.
Servers differ in what they refuse: if one objects to an optional field, the call is made again
without it, and what was learned is kept for the life of the process.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from functools import lru_cache
from typing import Any, Final

import httpx
from httpx_sse import EventSource

from gateway.providers.base import ModelEvent, ModelRequest, ModelSpec
from gateway.providers.errors import classify
from gateway.providers.http import FOREIGN_ERRORS, http_client, json_bytes, sendable, transport_error
from gateway.providers.openai.answer import ChatAnswer
from gateway.providers.openai.codec import Habits, encode_request, endpoint, learn, window_in
from gateway.providers.plugin import ProviderHost
from gateway.runtime.clock import Clock, Ids, SystemClock, SystemIds
from gateway.runtime.errors import ProviderError, ProviderRejected, ProviderUnavailable

_ERROR_BODY: Final = 64_000  # bytes of an error page that are read
_LAST_BYTES: Final = 0.5  # seconds that a server may take to end an answer it has called done
_WHOLE_BODY: Final = 64_000_000  # bytes of an answer that is not streamed


class ChatCompletions:
    """`Provider` for any OpenAI-compatible server. One instance serves all sessions.

    `client` is `providers.http.http_client()` and belongs to this instance from then on; `redact`
    takes credentials out of what is quoted in error texts; `ids` names tool calls that a server
    sends without an id.
    """

    name = "openai"

    def __init__(
        self,
        client: httpx.AsyncClient,
        redact: Callable[[str], str],
        *,
        ids: Ids | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._client = client
        self._redact = redact
        self._clock = clock or SystemClock()
        self._ids = ids or SystemIds()
        self._habits: dict[tuple[str, str], Habits] = {}  # by (address, model), where not the usual

    async def aclose(self) -> None:
        await self._client.aclose()

    async def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Call the model. Yields deltas, then exactly one `Completed`. Raises ProviderError."""
        model = (endpoint(spec), spec.name)
        habits = self._habits.get(model, Habits())
        while True:
            body = encode_request(spec, request, habits)
            try:
                async with aclosing(self._call(spec, body)) as events:
                    async for event in events:
                        yield event
                return
            except _Refused as refused:
                learned = learn(habits, body, refused.body)
                if learned is None:
                    raise refused.error from None
                self._habits[model] = habits = learned

    async def reported_window(self, spec: ModelSpec) -> int | None:
        """The model's window in tokens as its server states it in `/models`, or None: many say
        nothing. Raises ProviderError if the server cannot be asked, so that a wrong address or key
        is found before the first message is."""
        address = endpoint(spec).removesuffix("/chat/completions") + "/models"
        try:
            async with self._client.stream("GET", address, headers=_headers(spec)) as response:
                text = await _read(response, _WHOLE_BODY)
        except FOREIGN_ERRORS as error:
            raise transport_error(error, self._redact) from error
        if response.status_code in (404, 405):  # a server without such a list
            return None
        if not response.is_success:
            raise self._classified(response, text)
        try:
            return window_in(json.loads(text), spec.name)
        except (ValueError, RecursionError):
            return None

    async def _call(self, spec: ModelSpec, body: Mapping[str, Any]) -> AsyncGenerator[ModelEvent, None]:
        """One HTTP call. Raises _Refused before the first event, or ProviderError."""
        answer = ChatAnswer(lambda: self._ids.new("call"))
        content, headers = sendable(json_bytes(body))
        try:
            async with (
                self._client.stream(
                    "POST", _url(endpoint(spec)), content=content, headers=_headers(spec) | headers
                ) as response,
                aclosing(self._events(response, answer)) as events,
            ):
                async for event in events:
                    yield event
        except FOREIGN_ERRORS as error:
            # A connection that drops after the last word took nothing away from the answer.
            if not answer.finished:
                raise transport_error(error, self._redact) from error
        yield answer.finish()

    async def _events(self, response: httpx.Response, answer: ChatAnswer) -> AsyncGenerator[ModelEvent, None]:
        if not response.is_success:
            raise self._refused(response, await _read(response, _ERROR_BODY))
        kind = response.headers.get("content-type", "").lower()
        if "text/event-stream" not in kind:
            text = await _read(response, _WHOLE_BODY)
            if not text.lstrip().startswith(("data:", "event:", ":")):
                for event in self._whole(response, text, answer):
                    yield event
                return
            # A stream under a wrong label: the body is kept, so it can be read again as one.
            response = httpx.Response(200, headers={"content-type": "text/event-stream"}, text=text)
        async with aclosing(EventSource(response).aiter_sse()) as lines:
            async for line in lines:
                if line.data.strip() == "[DONE]":
                    answer.done()
                    await self._see_off(lines)
                    return
                for event in answer.feed(self._chunk(response, line.data)):
                    yield event

    async def _see_off(self, lines: AsyncGenerator[object, None]) -> None:
        """Read a finished answer to the end of its HTTP body, which most often is there already:
        a connection that is left before it cannot be used again, and TLS begins anew at each call."""
        try:
            async with self._clock.limit(_LAST_BYTES):
                async for _ in lines:
                    pass
        except TimeoutError:
            return

    def _whole(self, response: httpx.Response, text: str, answer: ChatAnswer) -> list[ModelEvent]:
        """The events of a server that ignored `stream` and sent one JSON object."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            what = "a web page" if text.lstrip().startswith("<") else "something that is not JSON"
            raise ProviderUnavailable(
                f"The model's address answered with {what}; check model.base_url.", malformed=True
            ) from error
        if not isinstance(data, dict):
            raise ProviderUnavailable("The model's answer has an unknown shape.", malformed=True)
        if data.get("error"):
            raise self._refused(response, text)
        events = answer.feed(data)
        if "choices" in data:
            answer.done()
        return events

    def _chunk(self, response: httpx.Response, data: str) -> dict[str, Any]:
        """One event's data; {} for what is no chunk (heartbeats). Raises ProviderError."""
        try:
            chunk = json.loads(data)
        except (ValueError, RecursionError) as error:
            if not data.lstrip().startswith("{"):
                return {}
            # Half a chunk is lost text: better no answer than one with a hole in it.
            raise ProviderUnavailable("The model's answer is garbled. Try again.", malformed=True) from error
        if not isinstance(chunk, dict):
            return {}
        if chunk.get("error") or (chunk.get("object") == "error" and "choices" not in chunk):
            raise self._classified(response, data)
        return chunk

    def _classified(self, response: httpx.Response, text: str) -> ProviderError:
        return classify(response.status_code, text, response.headers, redact=self._redact)

    def _refused(self, response: httpx.Response, text: str) -> _Refused:
        return _Refused(text, self._classified(response, text))


def create(host: ProviderHost) -> ChatCompletions:
    """For `PLUGIN`. Call it inside a running event loop."""
    return ChatCompletions(http_client(), host.redact, clock=host.clock)


class _Refused(Exception):
    """A call that ended before it began: the refusal's text, and what it means."""

    def __init__(self, body: str, error: ProviderError) -> None:
        super().__init__(str(error))
        self.body = body
        self.error = error


@lru_cache(maxsize=64)
def _url(address: str) -> httpx.URL:
    """The address taken apart, which httpx would do twice at every call."""
    return httpx.URL(address)


def _headers(spec: ModelSpec) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "Accept": "text/event-stream", "Cache-Control": "no-store"}
    key = (spec.api_key or "").strip()
    if not (key.isascii() and key.isprintable()):
        raise ProviderRejected("The API key holds characters that no key has. Check model.api_key.")
    if key:
        headers["Authorization"] = f"Bearer {key}"
    return headers


async def _read(response: httpx.Response, limit: int) -> str:
    """At most `limit` bytes of the body as text, whatever they are."""
    pieces: list[bytes] = []
    size = 0
    async for chunk in response.aiter_bytes():
        pieces.append(chunk)
        size += len(chunk)
        if size >= limit:
            break
    return b"".join(pieces)[:limit].decode(errors="replace")
