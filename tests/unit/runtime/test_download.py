"""The addresses of the public internet, and those that are never asked for."""

from __future__ import annotations

import asyncio
import socket
import threading
from ipaddress import ip_address
from typing import Any

import pytest

from gateway.runtime.addresses import is_public
from gateway.runtime.clock import SystemClock
from gateway.runtime.download import Downloader
from gateway.runtime.errors import ToolError

PUBLIC = ["93.184.215.14", "1.1.1.1", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]
NOT_PUBLIC = [
    "127.0.0.1", "127.9.9.9", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254",
    "100.64.0.1", "192.0.0.8", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.51.100.7", "203.0.113.9", "224.0.0.1",
    "239.255.255.250", "240.0.0.1", "255.255.255.255", "::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
    "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1", "2001::1",
    "2001:db8::1", "2002:7f00:1::", "2002:101:101::", "3fff::1", "5f00::1", "fc00::1", "fd12:3456::1", "fe80::1",
    "fec0::1", "ff02::1",
]  # fmt: skip


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://127.0.0.1/", "not on the public internet"),
        ("http://[::1]/", "not on the public internet"),
        ("http://[fe80::1%25eth0]/", "not on the public internet"),
        ("http://[::ffff:169.254.169.254]/latest/meta-data", "not on the public internet"),
        ("http://①②⑦.0.0.1/", "not on the public internet"),
        ("http://127.1/", "cannot be read"),
        ("http://0x7f000001/", "cannot be read"),
        ("http://2130706433/", "cannot be read"),
        ("http://localhost/", "not on the public internet"),
        ("http://localhost./", "cannot be read"),
        ("file:///etc/passwd", "begins with http"),
        ("ftp://example.org/", "begins with http"),
        ("gopher://example.org:70/", "begins with http"),
        ("https://", "begins with http"),
        ("http:///x", "begins with http"),
        ("http://[::1", "not a web address"),
        ("http://example.org:99999/", "not a web address"),
        ("http://example.org:22/", "does not use port 22"),
        ("http://someone:secret@example.org/", "a name and a password"),
        ("http://example.org/" + "a" * 3_000, "begins with http"),
        ("", "begins with http"),
    ],
)
async def test_what_is_not_asked_for(url: str, said: str) -> None:
    with pytest.raises(ToolError, match=said):
        await Downloader(clock=SystemClock(), agent="test", accepts=lambda _: True).get(url)


async def test_names_that_nobody_answers_for_hold_up_no_other_work(monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()

    def silent(*_: Any, **__: Any) -> Any:
        released.wait(100)
        raise OSError("nobody knows")

    monkeypatch.setattr(socket, "getaddrinfo", silent)
    downloader = Downloader(clock=SystemClock(), agent="test", accepts=lambda _: True)
    asked = [asyncio.create_task(downloader.get(f"http://{number}.example.org/")) for number in range(40)]
    try:
        await asyncio.sleep(0)
        async with asyncio.timeout(60):
            assert await asyncio.to_thread(lambda: "done") == "done"
    finally:
        released.set()
    assert all("nobody knows" in str(error) for error in await asyncio.gather(*asked, return_exceptions=True))
