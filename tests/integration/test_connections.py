"""Pools of connections, against real sockets: calls that are cancelled, and pools that give nothing any more."""

from __future__ import annotations

import asyncio
import functools
import ssl
from collections.abc import AsyncIterator

import httpx
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateway.runtime.connections import Pool
from tests.support.model import Changing

MOST = 2
TURNS = 60  # of the loop: a call on loopback is over before


class Site(Changing):
    """A server whose answers may be kept back."""

    def __init__(self) -> None:
        super().__init__()
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.asked = 0
        app = web.Application()
        app.router.add_post("/", self._answer)
        self.server = TestServer(app)

    @property
    def url(self) -> str:
        return str(self.server.make_url("/"))

    async def _answer(self, request: web.Request) -> web.Response:
        self.asked += 1
        self.changed()
        await self.may_answer.wait()
        return web.Response(text="hello")


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    made = Site()
    async with made.server:
        yield made
        made.may_answer.set()


@functools.cache
def trusts() -> ssl.SSLContext:
    """One for all pools: to read the certificates takes longer than the calls."""
    return httpx.create_ssl_context()


def pool() -> Pool:
    return Pool(trusts=trusts(), most=MOST, keepalive=5.0)


def client(transport: Pool, seconds: float = 10.0) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=transport, timeout=httpx.Timeout(10.0, pool=seconds))


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize("warm", [False, True])
async def test_a_call_that_is_cancelled_at_any_moment_takes_no_connection_with_it(site: Site, warm: bool) -> None:
    for moment in range(TURNS):
        transport = pool()
        async with client(transport) as calls:
            if warm:
                await calls.post(site.url)
            call = asyncio.create_task(calls.post(site.url))
            await turns(moment)
            call.cancel()
            await asyncio.wait([call])
            assert transport.in_use == 0, moment
            answers = await asyncio.gather(*[calls.post(site.url) for _ in range(2 * MOST)])
            assert [each.text for each in answers] == ["hello"] * 2 * MOST


async def test_one_that_is_cancelled_in_the_queue_takes_none_either(site: Site) -> None:
    transport = pool()
    async with client(transport) as calls:
        site.may_answer.clear()
        busy = [asyncio.create_task(calls.post(site.url)) for _ in range(MOST)]
        await site.until(lambda: site.asked >= MOST)
        for moment in range(TURNS):
            waiting = asyncio.create_task(calls.post(site.url))
            await turns(moment)
            waiting.cancel()
            await asyncio.wait([waiting])
        site.may_answer.set()
        await asyncio.gather(*busy)
        assert transport.in_use == 0
        assert (await calls.post(site.url)).text == "hello"
