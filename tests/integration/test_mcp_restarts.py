"""Servers on loopback HTTP that are started anew while a connection to them goes on: they do not know it any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from aiohttp import web

from gateway.agent.mcp.settings import McpServerSettings
from tests.support.mcp_running import Hasty, real_server, running
from tests.support.redis_server import free_port
from tests.support.waiting import eventually


def error(code: int, words: str, number: Any = None) -> dict[str, Any]:
    """An error of the protocol."""
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": words}}


def refuses(status: int, body: Any = "") -> web.Response:
    """An answer that refuses."""
    return web.json_response(body, status=status) if isinstance(body, dict) else web.Response(status=status, text=body)


class Small:
    """A server with sessions. `refusal`: how it answers who has none."""

    def __init__(self, refusal: tuple[int, Any]) -> None:
        self.port, self.refusal = free_port(), refusal
        self.sessions: set[str] = set()
        self.begun = self.calls = self.done = 0
        self.status = 200  # of an answer to a call that is known
        self.broken_calls = self.pingless = False
        self.forgets = False  # everybody who has seen the list

    @property
    def settings(self) -> McpServerSettings:
        return McpServerSettings(url=f"http://127.0.0.1:{self.port}/mcp")

    def restart(self) -> None:
        """Forget everybody."""
        self.sessions.clear()

    async def answer(self, request: web.BaseRequest) -> web.Response:
        if request.method != "POST":
            return web.Response(status=405)
        message = await request.json()
        method, number = message["method"], message.get("id")
        headers = {}
        if method == "initialize":
            self.begun += 1
            headers["mcp-session-id"] = f"s{self.begun}"
            self.sessions.add(f"s{self.begun}")
        elif request.headers.get("mcp-session-id") not in self.sessions:
            self.calls += method == "tools/call"
            return refuses(*self.refusal)
        if number is None:
            return web.Response(status=202)
        if method == "tools/call":
            self.calls += 1
            if self.status != 200:
                return refuses(self.status, "of this call")
            if self.broken_calls:
                return web.json_response(error(-32602, "no such argument", number))
            self.done += 1
        if method == "tools/list" and self.forgets:
            self.restart()
        if method == "ping" and self.pingless:
            return web.json_response(error(-32601, "no ping here", number))
        return web.json_response({"jsonrpc": "2.0", "id": number, "result": RESULTS[method]}, headers=headers)


RESULTS: Final[dict[str, dict[str, Any]]] = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "small", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "do", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "done"}]},
    "ping": {},
}


@asynccontextmanager
async def listening(small: Small) -> AsyncIterator[None]:
    """The server on its port."""
    runner = web.ServerRunner(web.Server(small.answer), shutdown_timeout=0.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", small.port, reuse_address=True).start()
    try:
        yield
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    "refusal",
    [
        (404, error(-32001, "Session not found", "server-error")),
        (404, "404 page not found"),
        (400, error(-32000, "Bad Request: No valid session ID provided")),
        (400, "Missing session"),
        (401, ""),
        (412, "会话不存在"),
        (200, error(-32600, "Invalid Request: session")),
        (200, error(-32602, "Invalid request parameters")),
    ],
    ids=str,
)
async def test_a_server_that_forgot_us_gets_the_call_once_more(refusal: tuple[int, Any]) -> None:
    small = Small(refusal)
    async with listening(small), running(small.settings, Hasty()) as it:
        assert await it.call("do") == "done"
        for _ in range(2):
            small.restart()
            small.calls = small.done = 0
            assert await asyncio.gather(*(it.call("do") for _ in range(5))) == ["done"] * 5
            assert small.done == 5
        assert small.begun == 3


async def test_a_call_waits_for_a_server_that_is_being_started() -> None:
    small = Small((404, ""))
    back = asyncio.Event()

    class Slow(Hasty):
        async def sleep(self, seconds: float) -> None:
            await back.wait()

    async with running(small.settings, Slow()) as it:
        assert "nothing answers" in it.server.failure
        async with listening(small):
            back.set()
            await it.ready()
            back.clear()
        call = asyncio.create_task(it.call("do"))
        await eventually(lambda: it.server.failure)
        assert it.server.failure.startswith("nothing answers at its url")
        assert "cannot be used now" in await it.refused("do"), "who comes later is told at once"
        async with listening(small):
            small.restart()
            back.set()
            assert await call == "done"
            assert small.done == 1


async def test_a_call_whose_server_stays_away_is_told_so_and_nothing_about_an_effect() -> None:
    small = Small((404, ""))
    async with running(small.settings, Hasty()) as it:
        async with listening(small):
            await it.ready()
        why = await it.refused("do")
        assert "cannot be used now" in why
        assert "effect" not in why


@pytest.mark.parametrize("refusal", [(502, "Bad Gateway"), (503, ""), (500, error(-32603, "Internal error"))], ids=str)
async def test_a_call_that_a_proxy_may_have_passed_on_is_not_made_again(refusal: tuple[int, Any]) -> None:
    small = Small(refusal)
    async with listening(small), running(small.settings, Hasty()) as it:
        await it.ready()
        small.restart()
        assert "may or may not have taken effect" in await it.refused("do")
        assert small.calls == 1
        await it.ready()
        assert await it.call("do") == "done"
        assert small.begun == 2


@pytest.mark.parametrize("pingless", [False, True])
async def test_a_refusal_that_is_for_the_call_alone_costs_the_call_alone(pingless: bool) -> None:
    small = Small((404, ""))
    small.pingless = pingless
    async with listening(small), running(small.settings, Hasty()) as it:
        small.broken_calls = True
        assert await it.refused("do") == "The server demo refused: no such argument"
        small.broken_calls = False
        for status in (400, 403, 404, 429):
            small.status = status
            assert await it.refused("do") == {
                403: "The server demo refused: it does not let anyone in with these headers (HTTP 403)"
            }.get(status, f"The server demo refused: HTTP {status}: of this call")
        small.status = 500
        assert "may or may not have taken effect" in await it.refused("do")
        small.status = 200
        assert await it.call("do") == "done"
        assert (small.begun, small.calls) == (1, 7)


async def test_a_server_that_knows_nobody_ever_is_asked_twice() -> None:
    """Such as two servers behind one address, of which each call meets the other one."""
    small = Small((404, error(-32600, "Session not found")))
    small.forgets = True
    async with listening(small), running(small.settings, Hasty()) as it:
        assert await it.refused("do") == "The server demo refused: Session not found"
        assert (small.calls, small.begun) == (2, 2)


@pytest.mark.slow  # it waits for the port; what the library answers after a restart stands in the tables above
async def test_the_librarys_own_server_is_started_anew_on_its_port() -> None:
    port = free_port()
    async with running(McpServerSettings(url=f"http://127.0.0.1:{port}/mcp"), Hasty()) as it:
        for number in range(3):
            async with real_server(port):
                if number == 0:
                    await it.ready()
                assert await it.call("add", a=number, b=1) == str(number + 1)
                assert await it.call("add", a=number, b=2) == str(number + 2)
