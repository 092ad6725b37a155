"""The endpoint of the webhook alone: slow callers, crowds, and callers that are not Telegram."""

from __future__ import annotations

import asyncio
import gc
import gzip
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from adapters.telegram.endpoint import SECRET_HEADER, WebhookEndpoint
from gateway.runtime.clock import SystemClock
from gateway.runtime.door import MOST_ALIKE, MOST_HEAD, MOST_REST, MOST_WAITING
from tests.support.model import PATIENCE
from tests.support.redis_server import free_port
from tests.support.serving import serving

SECRET = "a-secret-of-some-length"


@asynccontextmanager
async def door(patience: float = PATIENCE) -> AsyncIterator[tuple[WebhookEndpoint, list[dict[str, Any]]]]:
    """An endpoint that listens, and what it took."""
    taken: list[dict[str, Any]] = []

    async def take(update: dict[str, Any]) -> None:
        taken.append(update)

    endpoint = WebhookEndpoint(
        host="127.0.0.1",
        port=free_port(),
        path="/hook",
        secret=SECRET,
        clock=SystemClock(),
        take=take,
        patience=patience,
    )
    async with serving(endpoint):
        yield endpoint, taken


HEAD = f"POST /hook HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{SECRET_HEADER}: {SECRET}\r\n"


@pytest.mark.parametrize(
    "said",
    [
        "",
        "POST /hook HT",
        HEAD,
        HEAD + "Content-Length: 20\r\n\r\n{",
        HEAD + "Transfer-Encoding: chunked\r\n\r\n5\r\n{",
    ],
)
async def test_who_is_slow_is_cut_off(said: str) -> None:
    async with door(patience=0.1) as (endpoint, taken), asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", endpoint.port)
        writer.write(said.encode())
        answer = await reader.read()  # until the other side hangs up
        assert answer.partition(b"\r\n")[0] in (b"", b"HTTP/1.1 408 Request Timeout")
        assert taken == []
        writer.close()


async def test_a_body_without_an_end_is_cut_off_when_it_is_too_long() -> None:
    async with door() as (endpoint, taken), asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", endpoint.port)
        writer.write((HEAD + "Transfer-Encoding: chunked\r\n\r\n").encode())
        chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        with suppress(ConnectionError):
            while not reader.at_eof() and not reader._buffer:  # type: ignore[attr-defined]
                writer.write(chunk)
                await writer.drain()
                await asyncio.sleep(0)
        assert (await reader.readline()).startswith(b"HTTP/1.1 413")
        assert taken == []
        writer.close()


async def test_a_crowd_of_idlers_keeps_nobody_out_for_long() -> None:
    async with door(patience=0.5) as (endpoint, _), asyncio.timeout(PATIENCE):
        idlers = [await asyncio.open_connection("127.0.0.1", endpoint.port) for _ in range(MOST_WAITING + 20)]
        turned_away = [reader for reader, _ in idlers if await _hung_up(reader)]
        body = b'{"update_id": 1}'
        reader, writer = await asyncio.open_connection("127.0.0.1", endpoint.port)
        writer.write(f"{HEAD}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        assert len(turned_away) == len(idlers)
        for _, idler in (*idlers, (reader, writer)):
            idler.close()


async def _hung_up(reader: asyncio.StreamReader) -> bool:
    """Wait until the other side has gone."""
    with suppress(ConnectionError):
        return await reader.read() == b""
    return True


BODY = b'{"update_id": 1}'


async def test_a_body_is_never_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = gzip.compress(b" " * 10_000_000 + BODY)
    unpacking = []
    monkeypatch.setattr(zlib, "decompressobj", lambda *given, **named: unpacking.append((given, named)))
    async with door() as (endpoint, taken), aiohttp.ClientSession() as http:
        for secret, status in (("", 401), (SECRET, 415)):
            headers = {SECRET_HEADER: secret, "Content-Encoding": "gzip", "Content-Type": "application/json"}
            async with http.post(f"http://127.0.0.1:{endpoint.port}/hook", data=packed, headers=headers) as response:
                assert response.status == status
        assert taken == unpacking == []


async def test_who_came_first_without_the_secret_makes_room(caplog: pytest.LogCaptureFixture) -> None:
    unhandled: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
    async with door() as (endpoint, taken), asyncio.timeout(PATIENCE):
        telegram = await asyncio.open_connection("127.0.0.1", endpoint.port)
        call = f"{HEAD}Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY
        telegram[1].write(call)
        assert (await telegram[0].readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        idlers = []
        for _ in range(4):
            together = [asyncio.open_connection("127.0.0.1", endpoint.port) for _ in range(MOST_ALIKE)]
            idlers += await asyncio.gather(*together)
        for reader, _ in idlers[:MOST_ALIKE]:
            assert await _hung_up(reader)
        newest = await asyncio.open_connection("127.0.0.1", endpoint.port)
        for reader, writer in (telegram, newest):  # who showed the secret is still there, and who comes is let in
            writer.write(call)
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        assert len(taken) == 3
        for _, writer in (telegram, newest, *idlers):
            writer.close()
    gc.collect()  # a task that failed is told of when it is thrown away
    assert unhandled == caplog.records == []


async def test_a_flood_of_forgeries_does_not_flood_the_log() -> None:
    with capture_logs() as logs:
        async with door() as (endpoint, taken), aiohttp.ClientSession() as http:
            for _ in range(100):
                async with http.post(f"http://127.0.0.1:{endpoint.port}/hook", data=b"{}") as response:
                    assert response.status == 401
    counts = [line["count"] for line in logs if line["event"] == "request_refused"]
    assert counts == [1, 2, 4, 8, 16, 32, 64]
    assert taken == []
    assert SECRET not in str(logs)


@pytest.mark.parametrize(("secret", "status"), [("", b"401"), (f"{SECRET_HEADER}: {SECRET}\r\n", b"400")])
async def test_who_speaks_no_http_does_not_flood_the_log_either(
    secret: str, status: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with capture_logs() as logs:
        async with door() as (endpoint, taken), asyncio.timeout(PATIENCE):
            for _ in range(10):
                reader, writer = await asyncio.open_connection("127.0.0.1", endpoint.port)
                writer.write(f"GET /hook HTTP/1.1\r\n{secret}no header\r\n\r\n".encode())
                assert (await reader.readline()).split()[1] == status
                writer.close()
    assert [line["count"] for line in logs if line["event"] == "request_refused"] == [1, 2, 4, 8]
    assert caplog.text == ""
    assert taken == []


async def test_all_strangers_cost_one_task() -> None:
    async with door() as (endpoint, _), asyncio.timeout(PATIENCE):
        before = len(asyncio.all_tasks())
        idlers = [await asyncio.open_connection("127.0.0.1", endpoint.port) for _ in range(20)]
        reader, refused = await asyncio.open_connection("127.0.0.1", endpoint.port)
        refused.write(b"POST /hook HTTP/1.1\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 401 Unauthorized\r\n")  # so the idlers were let in before
        assert len(asyncio.all_tasks()) == before + 1
        for writer in (refused, *(idler for _, idler in idlers)):
            writer.close()


async def test_each_request_of_a_connection_shows_the_secret() -> None:
    async with door() as (endpoint, taken), asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", endpoint.port)
        for head, status in ((HEAD, b"200"), (HEAD.replace(SECRET, "wrong"), b"401")):
            writer.write(f"{head}Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY)
            assert (await reader.readuntil(b"\r\n\r\n")).split()[1] == status
        assert len(taken) == 1
        writer.close()


async def test_the_secret_may_arrive_in_pieces() -> None:
    async with door() as (endpoint, taken), asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", endpoint.port)
        head = HEAD.replace(SECRET_HEADER, SECRET_HEADER.lower())
        for piece in f"{head}Content-Length: {len(BODY)}\r\n\r\n":
            writer.write(piece.encode())
            await writer.drain()
            await asyncio.sleep(0)
        writer.write(BODY)
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        assert taken == [{"update_id": 1}]
        writer.close()


@pytest.mark.parametrize(
    "said",
    [
        b"POST /hook HTTP/1.1\r\n\r\n" + b"x" * 2 * MOST_REST,  # more than is read after a refusal
        b"x" * 3 * MOST_REST,  # no head
    ],
)
async def test_a_stranger_who_goes_on_sending_is_ended(said: bytes) -> None:
    async with door() as (endpoint, taken), asyncio.timeout(PATIENCE):
        _, writer = await asyncio.open_connection("127.0.0.1", endpoint.port)
        with suppress(ConnectionError):
            while True:
                writer.write(said)
                await writer.drain()
        assert taken == []
        writer.close()


async def test_too_long_a_head_is_refused() -> None:
    async with door() as (endpoint, _), asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", endpoint.port)
        writer.write(b"x" * (MOST_HEAD + 1))
        assert (await reader.readline()).startswith(b"HTTP/1.1 431")
        writer.close()


@pytest.mark.parametrize("path", ["/a%20b", "/a b", "/%D0%B1%D0%BE%D1%82", "/бот"])
async def test_a_path_means_the_same_however_it_is_written(path: str) -> None:
    taken: list[dict[str, Any]] = []

    async def take(update: dict[str, Any]) -> None:
        taken.append(update)

    endpoint = WebhookEndpoint(
        host="127.0.0.1", port=free_port(), path=path, secret=SECRET, clock=SystemClock(), take=take
    )
    async with serving(endpoint), aiohttp.ClientSession() as http:
        address = f"http://127.0.0.1:{endpoint.port}{path}"
        async with http.post(address, json={"update_id": 1}, headers={SECRET_HEADER: SECRET}) as response:
            assert response.status == 200
    assert taken == [{"update_id": 1}]


async def test_what_is_being_answered_when_it_ends_is_answered() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def take(update: dict[str, Any]) -> None:
        begun.set()
        await go_on.wait()

    port = free_port()
    endpoint = WebhookEndpoint(host="127.0.0.1", port=port, path="/", secret=SECRET, clock=SystemClock(), take=take)
    async with aiohttp.ClientSession() as http:
        async with serving(endpoint):
            call = asyncio.create_task(
                http.post(f"http://127.0.0.1:{port}/", json={"update_id": 1}, headers={SECRET_HEADER: SECRET})
            )
            await begun.wait()
            asyncio.get_running_loop().call_later(0.05, go_on.set)
        assert (await call).status == 200
