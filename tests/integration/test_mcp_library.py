"""Servers that are made with the library's own server side, on standard streams and on loopback HTTP."""

from __future__ import annotations

import asyncio
import gzip
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from aiohttp import web

from gateway.agent.mcp.server import Beside
from gateway.agent.mcp.settings import McpServerSettings
from gateway.domain.approval import Labels, Verdict
from gateway.runtime.errors import ToolError
from tests.support.mcp_running import REAL, Hasty, Running, real_server, running
from tests.support.redis_server import free_port
from tests.support.waiting import eventually


async def does_everything(it: Running) -> None:
    """Every kind of call and answer."""
    assert await it.call("add", a=2, b=40) == "42"
    assert "picture image.png, 70 bytes" in await it.call("picture")
    assert [mime for _, mime, _ in it.files.kept] == ["image/png"]
    assert "fail" in await it.refused("fail")
    assert "validation error" in await it.refused("add", a="x", b=1)
    call = asyncio.create_task(it.call("wait"))
    await eventually(lambda: any(each.job for each in it.server._open))
    assert await it.call("given_up") == "0"
    call.cancel()
    await asyncio.wait([call])
    while await it.call("given_up") != "1":
        pass
    assert await it.call("grow") == "grown"
    await eventually(lambda: "demo_late" in it.offer.names)
    assert await it.call("late") == "here"


async def test_a_server_on_standard_streams() -> None:
    async with running(McpServerSettings(command=(sys.executable, str(REAL)))) as it:
        await does_everything(it)


async def test_an_address_where_nobody_answers(unused_tcp_port: int) -> None:
    async with running(McpServerSettings(url=f"http://127.0.0.1:{unused_tcp_port}/mcp")) as it:
        assert "nothing answers at its url; check that the server runs" in it.server.failure


async def test_a_server_on_http_that_dies(unused_tcp_port: int) -> None:
    address = f"http://127.0.0.1:{unused_tcp_port}/mcp"
    settings = McpServerSettings(url=address, headers={"Authorization": "Bearer x"})
    async with real_server(unused_tcp_port) as process, running(settings, Hasty()) as it:
        await does_everything(it)
        assert "the answer has more than 8 MB" in await it.refused("much", mb=9)
        process.kill()
        await process.wait()
        for _ in range(2):
            assert "cannot be used now" in await it.refused("add", a=1, b=1), "nothing was done"
        assert "demo_add" in it.offer.names


@pytest.mark.parametrize(
    ("status", "headers", "reason"),
    [
        (
            200,
            {"Content-Encoding": "gzip"},
            "it compresses its answers, although Legato asked for uncompressed answers",
        ),
        (401, {}, "it wants a login; an admin of this bot sends /mcp login demo"),
        (403, {}, "it does not let anyone in with these headers (HTTP 403)"),
        (200, {}, "8 MB"),
        (307, {"Location": "/sk-in-the-path/mcp/"}, "Redirect to http://127.0.0.1:{port} not followed"),
    ],
)
async def test_answers_of_an_address_that_no_server_should_give(
    unused_tcp_port: int, status: int, headers: dict[str, str], reason: str
) -> None:
    bomb = gzip.compress(b"x" * 100_000_000, 1) if headers else b'{"x":"' + b"x" * 9_000_000

    async def answer(_: web.BaseRequest) -> web.Response:
        return web.Response(status=status, body=bomb, headers={**headers, "Content-Type": "application/json"})

    listener = web.ServerRunner(web.Server(answer))
    await listener.setup()
    await web.TCPSite(listener, "127.0.0.1", unused_tcp_port).start()
    try:
        async with running(McpServerSettings(url=f"http://127.0.0.1:{unused_tcp_port}/sk-in-the-path/mcp")) as it:
            assert reason.format(port=unused_tcp_port) in it.server.failure
            assert "sk-in-the-path" not in it.server.failure
    finally:
        await listener.cleanup()


async def test_nobody_is_asked_where_it_is_not_clear_whom_a_server_means(tmp_path: Path) -> None:
    go = tmp_path / "go"

    async def nobody(text: str, labels: Labels | None, choices: Sequence[str]) -> tuple[Verdict, str]:
        raise AssertionError(text)

    async with running(McpServerSettings(command=(sys.executable, str(REAL.with_name("rich.py"))))) as it:
        other = {"name": "wait_for", "arguments": {"path": str(go)}}
        running_call = asyncio.create_task(it.server.ask("tools/call", other, Beside(person=nobody)))
        await eventually(lambda: any(each.begun for each in it.server._open))
        with pytest.raises(ToolError, match="It is not clear whom to ask"):
            await it.server.ask("tools/call", {"name": "book", "arguments": {}}, Beside(person=nobody))
        await asyncio.to_thread(go.touch)
        assert (await running_call)["content"][0]["text"] == "copied"


@pytest.fixture
def unused_tcp_port() -> int:
    """A port that nobody listens on."""
    return free_port()
