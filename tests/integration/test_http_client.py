"""The shared HTTP client, against a real socket."""

import socket
from typing import Any

import httpx
import pytest
from aiohttp import web

from gateway.providers.http import http_client, transport_error
from gateway.runtime.connections import AT_ONCE, SlowSocket
from gateway.runtime.errors import ProviderRejected
from tests.support.loopback_proxy import loopback_proxy

PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment that names no proxy."""
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY"])
@pytest.mark.parametrize("scheme", ["http://", ""])
async def test_a_far_model_is_reached_by_the_proxy_that_the_environment_names(
    environment: pytest.MonkeyPatch, variable: str, scheme: str
) -> None:
    async with loopback_proxy() as proxy:
        proxy.page = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
        environment.setenv(variable, f"{scheme}127.0.0.1:{proxy.port}")
        async with http_client() as client:
            assert (await client.get("http://models.example/v1")).text == "hello"
        assert proxy.asked == ["GET http://models.example/v1 HTTP/1.1"]


async def test_no_proxy_names_hosts_that_are_reached_without_one(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    environment.setenv("NO_PROXY", "localhost.localdomain,.invalid")
    async with http_client() as client:
        with pytest.raises((httpx.HTTPError, OSError)):  # nobody is there, and no proxy was asked
            await client.get("http://models.invalid/v1")


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:9", "socks://127.0.0.1:9", "ftp://127.0.0.1:9", "http://a b:c"])
async def test_a_proxy_of_another_kind_is_named(environment: pytest.MonkeyPatch, proxy: str) -> None:
    environment.setenv("ALL_PROXY", proxy)
    async with http_client() as client:
        with pytest.raises(ProviderRejected, match="cannot reach models through the proxy"):
            await client.get("https://models.example/v1")


@pytest.mark.parametrize("address", ["https://models.example/v1", "http://models.example/v1"])
async def test_a_proxy_that_is_not_there_is_blamed_and_not_the_model(
    environment: pytest.MonkeyPatch, address: str
) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        environment.setenv("ALL_PROXY", f"http://127.0.0.1:{port}")
        async with http_client() as client:
            with pytest.raises(httpx.HTTPError) as caught:
                await client.get(address)
    told = str(transport_error(caught.value))
    assert told.startswith(
        f"The model cannot be reached through the proxy that the environment names (127.0.0.1:{port}: "
    )
    assert "model.base_url" not in told


async def test_a_proxy_that_lets_nobody_through_is_blamed(environment: pytest.MonkeyPatch) -> None:
    async with loopback_proxy() as proxy:
        proxy.page = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        environment.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        async with http_client() as client:
            with pytest.raises(httpx.HTTPError) as caught:
                await client.get("https://models.example/v1")
    told = str(transport_error(caught.value))
    assert f"(127.0.0.1:{proxy.port} answered 407 " in told


async def test_what_one_call_was_told_to_remember_is_not_sent_with_the_next() -> None:
    sent: list[str | None] = []

    async def answer(request: web.Request) -> web.Response:
        sent.append(request.headers.get("Cookie"))
        response = web.Response(text="hello")
        response.set_cookie("visitor", "somebody")
        return response

    app = web.Application()
    app.router.add_post("/", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with http_client() as client:
        for _ in range(2):
            await client.post(f"http://127.0.0.1:{runner.addresses[0][1]}/")
    await runner.cleanup()
    assert sent == [None, None]


async def test_little_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read at once is parsed before anybody else has a turn."""
    read, receive = list[int](), SlowSocket.recv

    def counted(socket: SlowSocket, *how: Any) -> bytes:
        data = receive(socket, *how)
        read.append(len(data))
        return data

    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=b"a" * 1_000_000)

    monkeypatch.setattr(SlowSocket, "recv", counted)
    app = web.Application()
    app.router.add_get("/", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with http_client() as client:
        assert len((await client.get(f"http://127.0.0.1:{runner.addresses[0][1]}/")).content) == 1_000_000
    await runner.cleanup()
    assert sum(read) > 1_000_000
    assert max(read) <= AT_ONCE


def test_a_socket_has_so_many_bytes_in_all() -> None:
    near, far = socket.socketpair()
    with SlowSocket(fileno=near.detach()) as slow, far:
        far.sendall(b"a" * 3 * AT_ONCE)
        assert slow.recv_into(bytearray(4 * AT_ONCE)) == AT_ONCE
        assert slow.recv_into(memoryview(bytearray(100)), 10) == 10
        slow.left = 100
        assert len(slow.recv(100)) == 100
        with pytest.raises(OSError, match="more than an answer takes"):
            slow.recv(1)
