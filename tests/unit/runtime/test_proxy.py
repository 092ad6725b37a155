"""What the proxy of sandboxes reads in a request, and which hosts are in reach."""

from __future__ import annotations

import pytest

from gateway.runtime.proxy import Refused, asked
from gateway.runtime.sandbox import Reach


def head(first: str, *lines: str) -> bytes:
    return "\r\n".join([first, *lines]).encode() + b"\r\n\r\n"


@pytest.mark.parametrize(
    ("hosts", "host", "port", "included"),
    [
        (["files.example"], "files.example", 443, True),
        (["files.example"], "files.example", 80, True),
        (["files.example"], "files.example", 22, False),
        (["files.example"], "evil-files.example", 443, False),
        (["files.example"], "files.files.example", 443, False),
        (["files.example"], "files.example.evil.example", 443, False),
        (["*.files.example"], "files.files.example", 443, True),
        (["*.files.example"], "a.b.files.example", 443, True),
        (["*.files.example"], "files.example", 443, False),
        (["*.files.example"], ".files.example", 443, False),
        (["*.files.example"], "evilfiles.example", 443, False),
        (["git.example.org:8443"], "git.example.org", 8443, True),
        (["git.example.org:8443"], "git.example.org", 443, False),
        (["*.example.org:8443"], "git.example.org", 8443, True),
        ([], "files.example", 443, False),
    ],
)
def test_which_hosts_are_in_reach(hosts: list[str], host: str, port: int, included: bool) -> None:
    assert Reach(hosts=hosts).includes(host, port) is included


def test_everywhere_is_every_host_at_the_usual_ports() -> None:
    reach = Reach(everywhere=True, hosts=["git.example.org:8443"])
    assert reach.includes("anything.example", 443)
    assert reach.includes("git.example.org", 8443)
    assert not reach.includes("anything.example", 8443)
    assert not reach.includes("anything.example", 25)


def test_a_tunnel() -> None:
    assert asked(head("CONNECT Files.Example:443 HTTP/1.1", "Host: else.example")) == ("files.example", 443, b"")
    assert asked(head("CONNECT files.example.:443 HTTP/1.0")) == ("files.example", 443, b"")
    assert asked(head("CONNECT [2606:4700::1111]:443 HTTP/1.1")) == ("2606:4700::1111", 443, b"")


def test_of_a_plain_request_the_address_alone_is_sent_on() -> None:
    given = head(
        "GET http://Example.org:8080/a?b HTTP/1.1",
        "Host: internal.example",
        "Connection: keep-alive",
        "Transfer-Encoding: chunked",
        "Content-Length: 3",
        " folded: a",
    )
    assert asked(given) == (
        "example.org",
        8080,
        b"GET /a?b HTTP/1.1\r\nHost: Example.org:8080\r\nUser-Agent: Legato\r\nAccept: */*\r\n"
        b"Connection: close\r\n\r\n",
    )
    assert asked(head("HEAD http://example.org HTTP/1.0"))[2].startswith(b"HEAD / HTTP/1.1\r\nHost: example.org\r\n")


@pytest.mark.parametrize(
    "given",
    [
        b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n",
        b"CONNECT example.org HTTP/1.1\r\n\r\n",
        b"CONNECT example.org:0 HTTP/1.1\r\n\r\n",
        b"CONNECT example.org:65536 HTTP/1.1\r\n\r\n",
        b"CONNECT example.org:443 HTTP/2\r\n\r\n",
        b"CONNECT  example.org:443 HTTP/1.1\r\n\r\n",
        b"CONNECT\texample.org:443 HTTP/1.1\r\n\r\n",
        b"CONNECT user@example.org:443 HTTP/1.1\r\n\r\n",
        b"CONNECT [fe80::1%25eth0]:443 HTTP/1.1\r\n\r\n",
        b"CONNECT ex\x00ample.org:443 HTTP/1.1\r\n\r\n",
        b"CONNECT example.org:443\nX: HTTP/1.1\r\n\r\n",
        "CONNECT ①②⑦.0.0.1:443 HTTP/1.1\r\n\r\n".encode(),
        "CONNECT example.org:４４３ HTTP/1.1\r\n\r\n".encode(),
        b"\r\nCONNECT example.org:443 HTTP/1.1\r\n\r\n",
        b"GET https://example.org/ HTTP/1.1\r\n\r\n",
        b"GET file:///etc/passwd HTTP/1.1\r\n\r\n",
        b"GET http://user:word@example.org/ HTTP/1.1\r\n\r\n",
        b"GET http://example.org\\@internal/ HTTP/1.1\r\n\r\n",
        b"POST http://example.org/ HTTP/1.1\r\nContent-Length: 3\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
        b"\r\n\r\n",
    ],
)
def test_what_two_programs_may_read_in_two_ways_is_refused(given: bytes) -> None:
    with pytest.raises(Refused):
        asked(given)
