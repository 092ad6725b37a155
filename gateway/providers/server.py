"""One call to a model's server over HTTP, the same for every API.

An API's package knows the address, and the meaning of the events of an answer (`Answer`). Here a body is sent, its
answer is read event by event, and every failure becomes one of `ProviderError`'s tree.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, aclosing, nullcontext, suppress
from functools import lru_cache
from typing import Any, Final, Protocol, cast

import httpx
from msgspec import MsgspecError
from msgspec.json import decode

from gateway.domain.usage import CanonicalUsage
from gateway.providers.base import READ_TIMEOUT, Completed, ModelEvent, ModelSpec, ReasoningDelta, TextDelta
from gateway.providers.bodies import Body
from gateway.providers.errors import classify
from gateway.providers.http import FOREIGN_ERRORS, json_bytes, posted, transport_error
from gateway.providers.sse import EventReader
from gateway.providers.usage import told
from gateway.runtime.clock import Clock, SystemClock, SystemIds
from gateway.runtime.errors import NoModelThere, ProviderError, ProviderRejected, ProviderUnavailable

_ERROR_BODY: Final = 64_000  # bytes of an error page that are read
_LAST_BYTES: Final = 0.5  # seconds that a server may take to end an answer it has called done
# No answer is that long, and a server without an end must not fill the memory.
_WHOLE_ANSWER: Final = 64_000_000  # bytes, unpacked; a stream wraps every token in 300 bytes
_SAID: Final = 8_000_000  # characters of words and thoughts
# Characters of one event, or of an answer in one piece: the last event of some APIs repeats the answer, the prompt and
# the tools, escaped. Its JSON is read in 50 ms, for which everybody else waits.
_AT_ONCE: Final = 4_000_000
_IN_ONE_GO: Final = 0.002  # seconds of events that have come already, until others have their turn
_LINE_END: Final = re.compile(rb"[\r\n]")
_NO_WORD: Final = b": \t\r\n\v\f"  # what a line without a word begins with


class Answer(Protocol):
    """One answer, put together from its events. Pure."""

    @property
    def finished(self) -> bool:
        """Whether the model has said everything; figures may follow."""

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""

    @property
    def usage(self) -> CanonicalUsage | None:
        """What the server has told of the call's usage; None: nothing."""

    @property
    def pieces(self) -> int:
        """How many pieces have come of what no delta shows, such as the arguments of a call."""

    def done(self) -> None:
        """The server sent `[DONE]`."""

    def figures(self, data: Any) -> None:
        """Take the usage that an event or an error's body may carry."""

    def refusal(self, data: Mapping[str, Any]) -> str | None:
        """The error that an event carries, as JSON text; None for any other event."""

    def feed(self, data: Mapping[str, Any]) -> list[ModelEvent]:
        """Return the deltas of an event. Unknown shapes add nothing. Raises ProviderError."""

    def whole(self, data: Mapping[str, Any]) -> list[ModelEvent]:
        """Return the deltas of an answer that is not streamed."""

    def finish(self) -> Completed:
        """The whole answer. Raises ProviderUnavailable (malformed) if it is cut off or empty."""


class Refused(Exception):
    """A call that ended before its answer began: the refusal's own text, and its meaning."""

    def __init__(self, body: str, error: ProviderError) -> None:
        super().__init__(str(error))
        self.body = body
        self.error = error


class ModelServer:
    """Calls of servers. `client` is `providers.http.http_client()` and belongs to this instance from then on; `redact`
    takes credentials out of quotes in error texts."""

    def __init__(self, client: httpx.AsyncClient, redact: Callable[[str], str], clock: Clock | None) -> None:
        self._client = client
        self._redact = redact
        self._clock = clock or SystemClock()
        self._ids = SystemIds()

    async def aclose(self) -> None:
        await self._client.aclose()

    def new_id(self) -> str:
        """An id for a tool call that the server left without a usable one."""
        return self._ids.new("call")

    async def call(
        self, url: str, headers: Mapping[str, str], body: Body, answer: Answer, *, spec: ModelSpec
    ) -> AsyncGenerator[ModelEvent, None]:
        """Send `body` and give the answer's events, `Completed` last. A stream begins within the `silence` of `spec`,
        any other answer ends within its `whole_answer`, and the connection is kept for at least as long. A stream that
        only pretends to live, by comments and empty events, is given up like a silent one. Raises Refused before the
        first event, and ProviderError, both with the usage that the server told."""
        patience = spec.silence if body.streams else spec.whole_answer
        silent = max(self._client.timeout.read or 0.0, patience or 0.0)
        ends = None if body.streams else self._clock.monotonic() + spec.whole_answer
        answered = False
        try:
            try:
                async with AsyncExitStack() as stack:
                    async with nullcontext() if patience is None else self._clock.limit(patience):
                        at, login = _taken_apart(url)
                        response = await posted(self._client, at, {**headers, **login}, body.pieces, silent)
                        stack.push_async_callback(response.aclose)
                        chunks = await stack.enter_async_context(aclosing(_chunks(response)))
                        if ends is not None:
                            chunks = await stack.enter_async_context(aclosing(_until(ends, self._clock, chunks)))
                        silence = _Silence(self._clock, silent, answer)
                        answered = response.is_success
                        first = await _until_it_speaks(chunks, silence) if answered else b""
                    events = await stack.enter_async_context(
                        aclosing(self._events(response, answer, first, chunks, silence))
                    )
                    async for event in events:
                        yield event
            except FOREIGN_ERRORS as error:
                # A connection that drops after the last word took nothing away from the answer.
                if not answer.finished:
                    raise transport_error(error, self._redact) from error
            yield answer.finish()
        except Refused as refused:
            refused.error.usage = answer.usage
            raise
        except ProviderError as error:
            error.usage = answer.usage
            error.billable = error.billable or (answered and not isinstance(error, NoModelThere))
            raise

    async def look_up(self, url: str, headers: Mapping[str, str], post: Mapping[str, Any] | None = None) -> Any | None:
        """Return the JSON at an address of the server; None if there is no such page, or no JSON. `post`: a body to be
        posted there. Raises ProviderError if the server cannot be asked, so that a wrong address or key is found before
        the first message is."""
        method, content = ("GET", None) if post is None else ("POST", json_bytes(post))
        try:
            at, login = _taken_apart(url)
            async with self._client.stream(method, at, headers={**headers, **login}, content=content) as response:
                text = await _read(_chunks(response), _WHOLE_ANSWER)
        except FOREIGN_ERRORS as error:
            raise transport_error(error, self._redact) from error
        if response.status_code in (404, 405):
            return None
        if not response.is_success:
            refusal = self._classified(response, text)
            with suppress(ValueError, RecursionError):
                refusal.usage = told(json.loads(text), "chat_completions")
            raise refusal
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return None

    async def _events(
        self,
        response: httpx.Response,
        answer: Answer,
        first: bytes,
        chunks: AsyncGenerator[bytes, None],
        silence: _Silence,
    ) -> AsyncGenerator[ModelEvent, None]:
        if not response.is_success:
            refusal = await _read(chunks, _ERROR_BODY)
            with suppress(ValueError, RecursionError):
                answer.figures(json.loads(refusal))
            raise self._refused(response, refusal)
        reader, size, said, begun = EventReader(), 0, 0, False
        since = self._clock.monotonic()
        chunk: bytes | None = first
        while chunk is not None:
            size += len(chunk)
            events = reader.feed(chunk)
            if size > _WHOLE_ANSWER or max([reader.held, *[len(data) for _, data in events]]) > _AT_ONCE:
                raise _endless()
            before = said
            for name, data in events:
                for event in self._read(response, name, data, answer, begun=begun):
                    begun = True
                    said += len(event.text) if isinstance(event, (TextDelta, ReasoningDelta)) else 0
                    if said > _SAID:
                        raise _endless()
                    yield event
                if self._clock.monotonic() - since > _IN_ONE_GO:
                    await self._clock.sleep(0)
                    since = self._clock.monotonic()
            silence.heard(said > before)
            if answer.over:
                await self._see_off(chunks)
                return
            chunk = await anext(chunks, None)
        text = reader.body
        if text is not None:
            for event in self._whole(response, text, answer):
                yield event

    def _read(self, response: httpx.Response, name: str, data: str, answer: Answer, *, begun: bool) -> list[ModelEvent]:
        """One event of a stream; nothing for an empty event (heartbeats). Raises Refused and ProviderError."""
        if answer.over:
            return []
        if data.strip() == "[DONE]":
            answer.done()
            return []
        try:
            event = _parsed(data)
        except (ValueError, RecursionError) as error:
            if name == "error":
                raise self._classified(response, data) from error
            if not data.lstrip().startswith("{"):
                return []
            # Half an event is lost text: better no answer than one with a hole in it.
            raise ProviderUnavailable("The model's answer is garbled. Try again.", malformed=True) from error
        if not isinstance(event, dict):
            return []
        refusal = answer.refusal(event)
        if refusal is not None:
            answer.figures(event)
            refused = self._refused(response, refusal)
            raise refused.error if begun or answer.pieces else refused
        return answer.feed(event)

    def _whole(self, response: httpx.Response, text: str, answer: Answer) -> list[ModelEvent]:
        """The events of an answer in one JSON object."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            if not text.strip():
                raise ProviderUnavailable("The model gave an empty answer. Try again.", malformed=True) from error
            what = "a web page" if text.lstrip().startswith("<") else "something that is not JSON"
            raise NoModelThere(
                f"The address of the model answered with {what}. Check model.base_url.", malformed=True
            ) from error
        if not isinstance(data, dict):
            raise ProviderUnavailable("The model's answer has an unknown shape.", malformed=True)
        refusal = answer.refusal(data)
        if refusal is not None:
            answer.figures(data)
            raise self._refused(response, refusal)
        return answer.whole(data)

    async def _see_off(self, chunks: AsyncIterator[bytes]) -> None:
        """Read a finished answer to the end of its HTTP body, which most often is there already:
        a connection that is left before it cannot be used again, and TLS begins anew at each call."""
        try:
            async with self._clock.limit(_LAST_BYTES):
                async for _ in chunks:
                    pass
        except TimeoutError:
            return

    def _classified(self, response: httpx.Response, text: str) -> ProviderError:
        host = response.url.host
        return classify(response.status_code, text, response.headers, redact=self._redact, host=host)

    def _refused(self, response: httpx.Response, text: str) -> Refused:
        return Refused(text, self._classified(response, text))


def key_of(api_key: str | None) -> str:
    """A key in the form for a header; "" if there is none. Raises ProviderRejected."""
    key = (api_key or "").strip()
    if not (key.isascii() and key.isprintable()):
        raise ProviderRejected("The API key contains characters that a key never has. Check model.api_key.")
    return key


def bearer(spec: ModelSpec) -> dict[str, str]:
    """The headers of a call for a server that takes a key as most do. Raises ProviderRejected."""
    headers = {"Content-Type": "application/json", "Accept": "text/event-stream", "Cache-Control": "no-store"}
    if key := key_of(spec.api_key):
        headers |= {spec.key_header: key} if spec.key_header else {"Authorization": f"Bearer {key}"}
    return headers | further_headers(spec)


def further_headers(spec: ModelSpec) -> dict[str, str]:
    """The headers that a model's settings add. Raises ProviderRejected."""
    headers: Mapping[str, str] = getattr(spec.settings, "headers", {})
    for name, value in headers.items():
        if not (f"{name}{value}".isascii() and f"{name}{value}".isprintable() and name.strip()):
            raise ProviderRejected(f"The header {name!r} cannot be sent. Check model.headers.")
    return dict(headers)


@lru_cache(maxsize=64)
def _taken_apart(address: str) -> tuple[httpx.URL, Mapping[str, str]]:
    """The address, which httpx would take apart twice at every call, and the header of the name and password in it:
    the transport refuses an address that has them beside a key."""
    url = httpx.URL(address)
    if not url.userinfo:
        return url, {}
    pair = b64encode(f"{url.username}:{url.password}".encode()).decode()
    return url.copy_with(username=None, password=None), {"Authorization": f"Basic {pair}"}


def _parsed(text: str) -> Any:
    """The value of a JSON text. Raises ValueError and RecursionError."""
    try:
        return decode(text)
    except (MsgspecError, UnicodeEncodeError):  # Python's reads more: halves of characters, NaN
        return json.loads(text)


def _endless() -> ProviderUnavailable:
    return ProviderUnavailable("The model's answer does not end. Try again.", malformed=True)


def _chunks(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    plain: Any = response.stream if "content-encoding" not in response.headers else None
    return cast(
        AsyncGenerator[bytes, None],
        aiter(plain) if isinstance(plain, httpx.AsyncByteStream) else response.aiter_bytes(),
    )


async def _until(ends: float, clock: Clock, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """The chunks that come before this moment. Raises TimeoutError."""
    while True:
        async with clock.limit(max(0.0, ends - clock.monotonic())):
            chunk = await anext(chunks, None)
        if chunk is None:
            return
        yield chunk


class _Silence:
    """Raises TimeoutError if nothing of an answer has come for so many seconds, even though bytes come."""

    def __init__(self, clock: Clock, seconds: float | None, answer: Answer) -> None:
        self._clock = clock
        self._seconds = seconds or READ_TIMEOUT
        self._answer = answer
        self._since = clock.monotonic()
        self._pieces = 0

    def heard(self, something: bool) -> None:
        """Bytes came. `something`: words or thoughts were among them."""
        now = self._clock.monotonic()
        if something:
            self._since = now
        elif now - self._since > self._seconds:
            if self._answer.pieces == self._pieces:
                raise TimeoutError
            self._since, self._pieces = now, self._answer.pieces


async def _until_it_speaks(chunks: AsyncIterator[bytes], silence: _Silence) -> bytes:
    """Read until there is something other than a comment: a router keeps a stream open with comments while the model
    behind it is silent."""
    read, line = bytearray(), b""
    async for chunk in chunks:
        if not read and chunk[:1] not in _NO_WORD:  # nearly always
            return chunk
        read += chunk
        *ended, line = _LINE_END.split(line[:1] + chunk if line.startswith(b":") else line + chunk)
        if len(read) > _AT_ONCE or any(each.strip() and not each.startswith(b":") for each in (*ended, line)):
            break
        silence.heard(False)
    return bytes(read)


async def _read(chunks: AsyncIterator[bytes], limit: int) -> str:
    """At most `limit` bytes of the body as text, whatever they are."""
    pieces: list[bytes] = []
    size = 0
    async for chunk in chunks:
        pieces.append(chunk)
        size += len(chunk)
        if size >= limit:
            break
    return b"".join(pieces)[:limit].decode(errors="replace")
