"""The proxy of sandboxes on real sockets: what it carries, and what it does not, whoever asks and however."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import sys
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Executor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gateway.runtime import proxy as proxying
from gateway.runtime import sandbox
from gateway.runtime.addresses import Address, Place, look_up
from gateway.runtime.clock import SystemClock
from gateway.runtime.proxy import Door, ForwardProxy, led_out
from gateway.runtime.sandbox import Reach, Sandbox
from tests.support.waiting import eventually

PUBLIC, PRIVATE = "127.0.0.1", "127.0.0.2"
SECRET = b"the password of the router"


@dataclass(slots=True)
class Internet:
    """A server at a public and at a private address, and a name service: each look at a name gives its next
    addresses, and the last ones from then on. `heard`: what the public one was sent."""

    port: int = 0
    names: dict[str, list[Sequence[str]]] = field(default_factory=dict)
    looked_up: list[str] = field(default_factory=list)
    heard: bytearray = field(default_factory=bytearray)
    answer: bytes | None = None  # None: it says again what it hears
    secrets_told: int = 0

    async def look_up(self, host: str, port: int, threads: Executor) -> Sequence[Place]:
        self.looked_up.append(host)
        known = self.names.get(host, [[PUBLIC]])
        found = known.pop(0) if len(known) > 1 else known[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (each, self.port)) for each in found]

    def proxy(self) -> ForwardProxy:
        def allows(address: Address) -> bool:
            return str(address) == PUBLIC

        return ForwardProxy(clock=SystemClock(), allows=allows, look_up=self.look_up)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            if writer.get_extra_info("sockname")[0] == PRIVATE:
                self.secrets_told += 1
                writer.write(SECRET)
            else:
                await self.say_again(reader, writer)
        writer.close()

    async def say_again(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(65_536):
            self.heard += piece
            if self.answer is not None:
                writer.write(self.answer)
                return
            writer.write(piece)
            await writer.drain()


@asynccontextmanager
async def online() -> AsyncIterator[Internet]:
    internet = Internet()
    public = await asyncio.start_server(internet.serve, PUBLIC, 0)
    internet.port = public.sockets[0].getsockname()[1]
    private = await asyncio.start_server(internet.serve, PRIVATE, internet.port)
    async with public, private:
        yield internet


Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def said(door: Door, sent: bytes) -> bytes:
    """All that the proxy answers."""
    reader, writer = await asyncio.open_unix_connection(str(door.path))
    writer.write(sent)
    answer = await reader.read()
    writer.close()
    return answer


async def tunnel(door: Door, to: str) -> tuple[bytes, Ends]:
    """The head of the answer to CONNECT, and the connection."""
    reader, writer = await asyncio.open_unix_connection(str(door.path))
    writer.write(f"CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n".encode())
    return await reader.readuntil(b"\r\n\r\n"), (reader, writer)


async def head_of_tunnel(door: Door) -> bytes:
    head, (_, writer) = await tunnel(door, "example.org:443")
    writer.close()
    return head


async def test_a_tunnel_carries_bytes_both_ways_and_each_end_of_them() -> None:
    async with online() as internet, internet.proxy().open(Reach(hosts=["example.org"])) as door:
        head, (reader, writer) = await tunnel(door, "example.org:443")
        assert head.startswith(b"HTTP/1.1 200 ")
        sent = os.urandom(3_000_000)
        writer.write(sent)
        writer.write_eof()
        assert await reader.read() == sent
        writer.close()


async def test_what_is_said_together_with_the_head_is_carried() -> None:
    async with online() as internet, internet.proxy().open(Reach(hosts=["example.org"])) as door:
        reader, writer = await asyncio.open_unix_connection(str(door.path))
        writer.write(b"CONNECT example.org:443 HTTP/1.1\r\n\r\nhello")
        writer.write_eof()
        assert (await reader.read()).endswith(b"\r\n\r\nhello")
        writer.close()


async def test_a_host_that_is_not_listed_is_neither_reached_nor_looked_up() -> None:
    async with online() as internet, internet.proxy().open(Reach(hosts=["example.org"], setting="a.hosts")) as door:
        for sent in (b"CONNECT secret.evil.example:443 HTTP/1.1", b"GET http://secret.evil.example/?q HTTP/1.1"):
            answer = await said(door, sent + b"\r\n\r\n")
            first, *_, text = answer.decode().splitlines()
            assert text == "secret.evil.example is not among the hosts that may be reached from here (a.hosts)"
            assert first == f"HTTP/1.1 403 {text}", "many programs show the first line alone"
        assert await said(door, b"CONNECT example.org:22 HTTP/1.1\r\n\r\n")
        assert list(door.refused) == ["secret.evil.example", "example.org:22"]
        assert (internet.looked_up, bytes(internet.heard)) == ([], b"")


@pytest.mark.parametrize("sent", [b"CONNECT inside.example:443 HTTP/1.1", b"GET http://inside.example/ HTTP/1.1"])
@pytest.mark.parametrize("found", [[PRIVATE], [], ["169.254.169.254"], [PRIVATE, "10.0.0.1"]])
async def test_a_name_that_leads_to_a_private_address_is_not_reached(sent: bytes, found: list[str]) -> None:
    async with online() as internet, internet.proxy().open(Reach(everywhere=True)) as door:
        internet.names["inside.example"] = [found]
        answer = await said(door, sent + b"\r\n\r\n")
        assert b" 403 inside.example: the address is not" in answer if found else b" 502 inside.example" in answer
        assert internet.secrets_told == 0


async def test_of_a_name_that_leads_to_both_the_public_address_alone_is_reached() -> None:
    async with online() as internet, internet.proxy().open(Reach(everywhere=True)) as door:
        internet.names["both.example"] = [[PRIVATE, PUBLIC]]
        for _ in range(5):
            _, (reader, writer) = await tunnel(door, "both.example:443")
            writer.write(b"x")
            assert await reader.readexactly(1) == b"x"
            writer.close()
        assert internet.secrets_told == 0


async def test_a_name_that_leads_elsewhere_at_each_look_is_looked_up_once_for_a_connection() -> None:
    async with online() as internet, internet.proxy().open(Reach(everywhere=True)) as door:
        internet.names["example.org"] = [[PUBLIC], [PRIVATE], [PUBLIC], [PRIVATE]]
        heads = [(await head_of_tunnel(door)).split()[1] for _ in range(4)]
        assert heads == [b"200", b"403", b"200", b"403"]
        assert (len(internet.looked_up), internet.secrets_told) == (4, 0)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "0x7f.1", "2130706433", "0177.0.0.1", "127.1", "0", "localhost", "localhost.", "[::1]", "[::]",
        "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
        "10.0.0.1", "192.168.1.1", "169.254.169.254", "[fd00:ec2::254]", "[fe80::1]", "0xa9fea9fe", "100.100.100.200",
        "224.0.0.1", "255.255.255.255",
    ],
)  # fmt: skip
async def test_no_way_to_write_an_address_leads_inside(host: str) -> None:
    async with online() as internet:
        proxy = ForwardProxy(clock=SystemClock(), look_up=look_up)  # the real judge and the real look-up
        async with proxy.open(Reach(everywhere=True, hosts=[f"{host.strip('[]')}:{internet.port}"])) as door:
            for sent in (f"CONNECT {host}:{internet.port}", f"GET http://{host}:{internet.port}/"):
                answer = await said(door, f"{sent} HTTP/1.1\r\n\r\n".encode())
                assert answer.split()[1] in (b"403", b"502"), answer
        assert not internet.heard


async def test_a_plain_request_reaches_its_host_without_what_follows_it() -> None:
    async with online() as internet, internet.proxy().open(Reach(hosts=["example.org"])) as door:
        internet.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        own = b"GET http://example.org/a HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n"
        for then in (
            b"",
            b"GET http://internal.example/ HTTP/1.1\r\n\r\n",
            b"\r\nGET /admin HTTP/1.1\r\nHost: x\r\n\r\n",
        ):
            internet.heard.clear()
            assert await said(door, own + then) == internet.answer
            assert bytes(internet.heard).startswith(b"GET /a HTTP/1.1\r\nHost: example.org\r\n")
            assert bytes(internet.heard).endswith(b"\r\nConnection: close\r\n\r\n")


@pytest.mark.parametrize("sent", [b"A" * 100_000, b"CONNECT a:443 HTTP/1.1\r\n" + b"X: y\r\n" * 20_000])
async def test_a_head_without_an_end_is_refused(sent: bytes) -> None:
    async with online() as internet, internet.proxy().open(Reach(everywhere=True)) as door:
        reader, writer = await asyncio.open_unix_connection(str(door.path))
        answer = b""
        with suppress(OSError):
            writer.write(sent)
            answer = await reader.read()
        assert answer == b"" or b" 431 " in answer
        writer.close()
        assert b" 200 " in await head_of_tunnel(door)


async def test_a_host_that_does_not_answer_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async with online() as internet, internet.proxy().open(Reach(everywhere=True)) as door:
        with socket.create_server((PUBLIC, 0)) as closed:
            free = closed.getsockname()[1]
        internet.port = free
        assert b" 502 example.org cannot be reached: " in await said(door, b"CONNECT example.org:443 HTTP/1.1\r\n\r\n")
        monkeypatch.setattr(proxying, "_PATIENCE", 0.05)

        async def never(*_: object) -> Sequence[Place]:
            await asyncio.Event().wait()
            raise AssertionError

        slow = ForwardProxy(clock=SystemClock(), look_up=never)
        async with slow.open(Reach(everywhere=True)) as other:
            assert b" 504 example.org did not answer" in await said(other, b"CONNECT example.org:443 HTTP/1.1\r\n\r\n")


async def test_a_crowd_of_half_open_connections_costs_nobody_else_anything() -> None:
    async with online() as internet:
        proxy = internet.proxy()
        async with proxy.open(Reach(everywhere=True)) as crowded, proxy.open(Reach(everywhere=True)) as other:
            crowd, turned_away = [], 0
            for _ in range(300):
                each = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
                crowd.append(each)
                try:
                    each.connect(str(crowded.path))
                    each.send(b"CONNECT ")
                except BlockingIOError:
                    turned_away += 1
            assert turned_away > 100, "they wait in the kernel, and no more of them than have room there"
            assert b" 200 " in await head_of_tunnel(other)
            for each in crowd:
                each.close()
            assert b" 200 " in await head_of_tunnel(crowded)


async def test_the_silence_of_a_connection_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxying, "_SILENCE", 0.05)
    async with online() as internet, internet.proxy().open(Reach(everywhere=True)) as door:
        _, (reader, writer) = await tunnel(door, "example.org:443")
        assert await reader.read() == b"", "it ended"
        writer.close()


async def test_the_door_is_for_its_owner_alone_and_is_gone_after_it_with_all_connections() -> None:
    async with online() as internet:
        async with internet.proxy().open(Reach(everywhere=True)) as door:
            folder = door.path.parent
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            _, (reader, writer) = await tunnel(door, "example.org:443")
        assert await reader.read() == b""
        assert not folder.exists()
        writer.close()


async def test_an_end_that_breaks_ends_the_other() -> None:
    async with online() as internet, internet.proxy().open(Reach(everywhere=True)) as door:
        for _ in range(3):
            _, (_, writer) = await tunnel(door, "example.org:443")
            writer.write(b"x" * 1_000_000)
            writer.transport.abort()
        await eventually(lambda: len(door._visits._jobs) == 1)  # the one that takes up connections


@pytest.mark.usefixtures("bwrap", "curl")
async def test_from_inside_there_is_no_other_way_and_none_to_a_host_of_ours(tmp_path: Path) -> None:
    private = ("127.0.0.1", "0x7f.1", "2130706433", "[::ffff:127.0.0.1]", "169.254.169.254", "localhost")
    async with online() as internet, internet.proxy().open(Reach(hosts=["example.org"])) as door:
        tunnels = [f"curl -s -m 9 --noproxy none -p http://{each}:{internet.port}/" for each in private]
        internet.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        commands = [
            "curl -s -m 9 -p http://example.org:443/",
            *tunnels,
            f"curl -s -m 9 --noproxy '*' http://{PUBLIC}:{internet.port}/",
            "curl -s -m 9 --noproxy '*' http://93.184.215.14/",
            "curl -s -m 9 --socks5-hostname 127.0.0.1:3128 http://example.org/",
            "rm -f /run/proxy",
        ]
        for number, command in enumerate(commands):
            box, led = led_out(Sandbox(folder=tmp_path), ("/bin/sh", "-c", command), door)
            ended = await sandbox.run(box, led, seconds=60.0, clock=SystemClock())
            assert (ended.code == 0) == (number == 0), (command, ended)
        assert bytes(internet.heard).startswith(b"GET / HTTP/1.1\r\nHost: example.org"), "through the tunnel"
        assert internet.heard.count(b"GET ") == 1
        assert internet.secrets_told == 0


@pytest.mark.usefixtures("bwrap")
async def test_a_command_in_a_sandbox_with_a_door_is_like_any_other(tmp_path: Path) -> None:
    async with online() as internet, internet.proxy().open(Reach(hosts=["example.org"])) as door:

        async def run(*command: str) -> tuple[int, str]:
            box, led = led_out(Sandbox(folder=tmp_path), command, door)
            ended = await sandbox.run(box, led, seconds=60.0, clock=SystemClock())
            return ended.code, ended.output

        assert await run("/bin/sh", "-c", "echo out; echo err >&2; exit 7") == (7, "out\nerr")
        python = os.path.realpath(sys._base_executable)  # type: ignore[attr-defined]  # noqa: ASYNC240
        code, said = await run(python, "-I", "-S", "-c", "import os; os.wait()")
        assert (code, "ChildProcessError" in said) == (1, True), "what forwards is no child of it"
        assert await run("no-such-program") == (127, "no-such-program cannot be started: no such file or directory")
        assert await run("/bin/sh", "-c", "kill -9 $$") == (137, "")
