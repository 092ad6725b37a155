"""The door of a server alone: who is slow, who makes room for others, and who never does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from gateway.runtime.door import MOST_ALIKE, Door
from tests.support.fakes import ManualClock
from tests.support.model import PATIENCE
from tests.support.redis_server import free_port

HEAD = b"POST / HTTP/1.1\r\nHost: x\r\n"
ASKED = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"

Talk = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Site:
    """A server behind a door: it reads a body, and answers "/stream" until the caller leaves."""

    def __init__(self, clock: ManualClock) -> None:
        self.port = free_port()
        self.door = Door("site", self._asked, clock, patience=15.0)
        self.more = asyncio.Event()
        self._talks: list[Talk] = []

    async def _asked(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/flood":
            return await self._flood(request)
        if request.path != "/stream":
            return web.Response(body=await request.read())
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"begins ")
        await self.more.wait()
        await response.write(b"ends")
        return response

    async def _flood(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(bytes(1_000_000))

    async def says(self, said: bytes) -> Talk:
        """Somebody comes and says this."""
        talk = await asyncio.open_connection("127.0.0.1", self.port)
        self._talks.append(talk)
        talk[1].write(said)
        return talk

    async def crowd(self, count: int, said: bytes) -> list[Talk]:
        """So many come and say the same."""
        return [await self.says(said) for _ in range(count)]

    async def leave(self) -> None:
        """All go."""
        for _, writer in self._talks:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


@pytest.fixture
async def site(clock: ManualClock) -> AsyncIterator[Site]:
    made = Site(clock)
    async with _open(made), asyncio.timeout(PATIENCE):
        yield made


@asynccontextmanager
async def _open(site: Site) -> AsyncIterator[None]:
    await site.door.open(host="127.0.0.1", port=site.port)
    try:
        yield
    finally:
        site.more.set()
        await site.leave()
        await site.door.close(1.0)


async def rest(talk: Talk) -> bytes:
    """What is said until the connection ends."""
    said = b""
    with suppress(ConnectionError):
        while more := await talk[0].read(1_000):
            said += more
    return said


async def answered(talk: Talk) -> bytes:
    """The status of the next answer, which is read."""
    head = await talk[0].readuntil(b"\r\n\r\n")
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    await talk[0].readexactly(int(length or b"0"))
    return head.split(b" ")[1]


async def asks(talk: Talk) -> bytes:
    talk[1].write(ASKED)
    return await answered(talk)


@pytest.mark.parametrize("said", [b"", b"GET / HT", HEAD, HEAD + b"Content-Length: 5\r\n\r\nab"])
async def test_who_owes_the_rest_is_ended_when_patience_is_over(site: Site, clock: ManualClock, said: bytes) -> None:
    slow = await site.says(said)
    await clock.until_pending()
    await clock.advance(14.9)
    slow[1].write(b"c" if said.endswith(b"ab") else b"")  # a body that comes on has its time anew
    assert await asks(await site.says(b"")) == b"200"
    await clock.advance(0.2)
    assert slow[0]._buffer == b""  # type: ignore[attr-defined]
    if said.endswith(b"ab"):
        assert not slow[0].at_eof()
        await clock.advance(15.0)
    assert b"200" not in await rest(slow)


async def test_a_body_that_comes_slowly_is_read(site: Site, clock: ManualClock) -> None:
    slow = await site.says(HEAD + b"Content-Length: 3\r\n\r\n")
    for letter in (b"a", b"b", b"c"):
        await clock.until_pending()
        await clock.advance(10.0)
        slow[1].write(letter)
        assert await asks(await site.says(b"")) == b"200"
    assert await answered(slow) == b"200"


@pytest.mark.parametrize("said", [b"GET / HTTP/1.1\r\nX:", HEAD + b"Content-Length: 5\r\n\r\nab", ASKED])
async def test_a_crowd_makes_room_and_who_is_being_answered_stays(site: Site, said: bytes) -> None:
    stream = await site.says(b"GET /stream HTTP/1.1\r\nHost: x\r\n\r\n")
    await stream[0].readuntil(b"begins ")
    crowd = await site.crowd(MOST_ALIKE, said)
    assert await asks(await site.says(b"")) == b"200"
    site.more.set()
    assert b"ends" in await stream[0].readuntil(b"ends")
    status = await rest(crowd[0])
    assert status.startswith(b"HTTP/1.1 200") == (said is ASKED)


async def test_the_oldest_makes_room_of_whom_there_are_more(site: Site) -> None:
    first, second = await site.says(b""), await site.says(b"")
    for talk in (first, second, first):
        assert await asks(talk) == b"200"
    halves = await site.crowd(MOST_ALIKE - 1, b"GET / HT")
    assert await rest(halves[0]) == b"", "there are more of these"
    for half in halves[1:]:
        half[1].write(b"TP/1.1\r\nHost: x\r\n\r\n")
        assert await answered(half) == b"200"
    assert await asks(await site.says(b"")) == b"200"
    assert await rest(second) == b""
    assert await asks(first) == b"200"


async def test_who_does_not_read_the_answer_makes_room(site: Site) -> None:
    unread = await site.says(b"GET /flood HTTP/1.1\r\nHost: x\r\n\r\n")
    for _ in range(2 * MOST_ALIKE):
        assert await asks(await site.says(b"")) == b"200"
    assert (await rest(unread)).startswith(b"HTTP/1.1 200 "), "it came to an end"


async def test_who_begins_with_https_is_refused_at_once(site: Site) -> None:
    talk = await site.says(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
    assert (await rest(talk)).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
        HEAD + b"Content-Length: -5\r\n\r\nabcde",
        HEAD + b"Content-Length: 99999999999999999999999\r\n\r\n",
        HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        HEAD + b"no colon\r\n\r\n",
        HEAD + b"X: a\x00\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
        HEAD + b"X: " + b"x" * 9_000 + b"\r\n\r\n",
    ],
)
async def test_what_is_no_http_costs_a_line_now_and_then(
    site: Site, said: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with capture_logs() as logs:
        for _ in range(10):
            assert (await rest(await site.says(said))).split(b" ")[1] == b"400"
    assert [line["count"] for line in logs if line["event"] == "request_refused"] == [1, 2, 4, 8]
    assert caplog.text == ""


async def test_who_hangs_up_in_the_midst_costs_no_traceback(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    with capture_logs() as logs:
        for _ in range(3):
            talk = await site.says(HEAD + b"Content-Length: 5\r\n\r\nab")
            assert await asks(await site.says(b"")) == b"200"  # so the first one is read by now
            talk[1].transport.abort()
        await site.leave()
        await site.door.close(1.0)
    assert [line["why"] for line in logs] == ["cut", "cut"]
    assert caplog.text == ""
