"""A server that has an address: what is sent there, and its answers, which are foreign and are bounded while they are
read."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Final

import httpx2
import mcp_types as types

from gateway.agent.mcp.server import LOG_IN, MOST_BYTES, OUTGROWN, UNSENT, LoginFailed, ServerFailed
from gateway.agent.mcp.settings import McpServerSettings
from gateway.domain.chat import one_line

_CONNECT: Final = 10.0  # seconds
_GOODBYE: Final = 2.0  # seconds for the request that ends a session
_LONGEST_ERROR: Final = 65_536  # bytes
_NO_ENTRY: Final = (401, 403)
LONGEST_REFUSAL: Final = 2_000  # characters of a server's words
STATUS: Final = "legato.status"  # under which an error holds the status of its answer


def hush() -> None:
    """Quieten the library, which writes a traceback for whatever a server does wrong, with what came from there."""
    for logger in ("mcp", "client"):
        logging.getLogger(logger).setLevel(logging.CRITICAL)


class AddressClient(httpx2.AsyncClient):
    """A client that reads answers up to the limits, and says in plain words who does not answer or refuses. `greeted`:
    there is a connection, so from now on a refusal only concerns its request."""

    greeted = False

    def __init__(self, name: str, settings: McpServerSettings, auth: httpx2.Auth | None = None) -> None:
        super().__init__(
            auth=auth,
            headers={**settings.headers, "accept-encoding": "identity"},  # nothing grows while it is unpacked
            timeout=httpx2.Timeout(_CONNECT, read=None),  # a call has its own limit, and may be silent meanwhile
        )
        how = LOG_IN.format(server=name) if name and settings.may_log_in else ""
        self._unknown = f"it wants a login; {how}" if how else ""

    async def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:
        if request.method == "DELETE":
            request.extensions["timeout"] = httpx2.Timeout(_GOODBYE).as_dict()
        asks = self.greeted and request.method == "POST"
        try:
            response = bounded(await super().send(request, **how))
        except (httpx2.TransportError, LoginFailed) as error:
            if not (why := _unsent(request, error)):
                raise
            if asks:
                return _no(request, UNSENT, types.INTERNAL_ERROR, why)
            raise ServerFailed(why) from error
        if asks:
            return await _read_refusal(response, self._unknown)
        if response.status_code in _NO_ENTRY:
            await response.aclose()
            raise ServerFailed(_no_entry(response, self._unknown))
        return response


def _unsent(request: httpx2.Request, error: httpx2.TransportError | LoginFailed) -> str:
    """Why a request was certainly not sent, as a clause; "" if it may have been."""
    if isinstance(error, LoginFailed):
        return str(error)
    if error.request is not request:
        return f"nothing answers at its login address ({error.request.url.host})"
    unheard = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
    return f"nothing answers at its url; check that the server runs there ({error})" if unheard else ""


def bounded(response: httpx2.Response) -> httpx2.Response:
    """Have an answer read up to the limits."""
    if response.headers.get("content-encoding", "identity") != "identity":
        raise ServerFailed("it compresses its answers, although Legato asked for uncompressed answers")
    assert isinstance(response.stream, httpx2.AsyncByteStream), "the client is asynchronous"
    events = response.headers.get("content-type", "").lower().startswith("text/event-stream")
    if not (events and response.is_success):  # of events, the library bounds each
        response.stream = _Whole(response.stream)
    return response


async def _read_refusal(response: httpx2.Response, unknown: str) -> httpx2.Response:
    """An answer that refuses a request, in the form that the library hands on whole: with the status beside the words,
    and as the answer to that request, whatever number it bears. Any other answer as it is."""
    kind = response.headers.get("content-type", "").lower()
    if response.is_success and not kind.startswith("application/json"):
        return response
    try:
        body = await response.aread()
    except httpx2.StreamError:
        if response.is_success:
            return response  # reading it once more tells why
        body = b""
    error = _error_in(body)
    if response.is_success and error is None:
        return response
    await response.aclose()
    status = response.status_code
    if status in _NO_ENTRY:
        said = _no_entry(response, unknown)
    elif error is not None:
        said = error.message
    else:
        plain = "" if kind.startswith("text/html") else one_line(body[:LONGEST_REFUSAL].decode("utf-8", "replace"))
        said = f"HTTP {status}: {plain or response.reason_phrase}"
    return _no(response.request, status, error.code if error else types.INTERNAL_ERROR, said)


def _error_in(body: bytes) -> types.ErrorData | None:
    """The error in an answer, if it is one. Errors are never long."""
    if len(body) <= _LONGEST_ERROR:
        with suppress(ValueError):
            message = types.jsonrpc_message_adapter.validate_json(body, by_name=False)
            return message.error if isinstance(message, types.JSONRPCError) else None
    return None


def _no(request: httpx2.Request, status: int, code: int, words: str) -> httpx2.Response:
    error = {"code": code, "message": words, "data": {STATUS: status}}
    return httpx2.Response(400, json={"jsonrpc": "2.0", "id": None, "error": error}, request=request)


def _no_entry(response: httpx2.Response, unknown: str) -> str:
    """Why nobody is let in; `unknown`: what to say if a login might help."""
    if response.status_code == httpx2.codes.UNAUTHORIZED and unknown:
        return unknown
    return f"it does not let anyone in with these headers (HTTP {response.status_code})"


class _Whole(httpx2.AsyncByteStream):
    """An answer that is handed on as a whole, if it is within the limits."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks, size = list[bytes](), 0
        async for chunk in self._stream:
            chunks.append(chunk)
            size += len(chunk)
            if size > MOST_BYTES:
                raise httpx2.StreamError(OUTGROWN)
        yield b"".join(chunks)

    async def aclose(self) -> None:
        await self._stream.aclose()
