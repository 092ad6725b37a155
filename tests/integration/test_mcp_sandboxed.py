"""Servers whose programs run in a sandbox: what they see, what they reach, and that they end with us."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.agent.mcp import process
from gateway.agent.mcp.connection import Connector
from gateway.agent.mcp.settings import McpServerSettings
from gateway.agent.tools.shell import FolderSettings
from gateway.runtime.clock import SystemClock
from gateway.runtime.proxy import ForwardProxy
from gateway.runtime.sandbox import Limits
from tests.support.mcp_running import RAW, Running, alive, running
from tests.support.waiting import eventually


@pytest.fixture
def lendable() -> Iterator[str]:
    """A folder that may be lent; those of tests may lie in /dev."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield folder


@asynccontextmanager
async def boxed(home: Path, *habits: str, proxy: ForwardProxy | None = None, **more: Any) -> AsyncIterator[Running]:
    """The server of the tests, in a sandbox with our own Python."""
    python = Path(sys._base_executable)  # type: ignore[attr-defined]
    lent = {
        "python": FolderSettings(path=sys.base_prefix),
        "server": FolderSettings(path=str(RAW.parent)),
        **more.pop("lent", {}),
    }
    settings = McpServerSettings(
        command=(f"/folders/python/bin/{python.name}", "-I", "-S", f"/folders/server/{RAW.name}"),
        args=(*habits, "tool:run"),
        env={"LD_LIBRARY_PATH": "/folders/python/lib", **more.pop("env", {})},  # of a Python that is moved
        sandbox=True,
        folders=lent,
        **more,
    )
    connect = Connector(clock=SystemClock(), redact=str, folder=home / "mcp", proxy=proxy)
    async with running(settings, connect=connect) as it:
        assert it.server.failure == ""
        yield it


async def test_a_server_sees_its_folder_and_nothing_else_of_ours(
    tmp_path: Path, bwrap: None, lendable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", "secret")
    tmp_path.joinpath("config.yaml").write_text("secret")
    other = Path(lendable)
    lent = {"mine": FolderSettings(path=str(other), write=True)}
    async with boxed(tmp_path, lent=lent, env={"API_KEY": "k3y"}) as it:
        assert await it.call("echo", text="天气") == "天气"
        seen = await it.call(
            "run", text="env; pwd; ls -a / ~; ls /proc; cat /proc/*/cmdline /proc/*/environ | tr '\\0' '\\n'"
        )
        assert "API_KEY=k3y" in seen
        assert "PWD=/workspace" in seen
        for hidden in ("secret", "TELEGRAM", str(tmp_path), "legato gateway"):
            assert hidden not in seen.replace(str(other), "").replace(str(tmp_path / "mcp" / "demo"), "")
        await it.call("run", text="echo kept > note; echo lent > /folders/mine/x; echo no > /folders/server/x")
        assert (tmp_path / "mcp" / "demo" / "note").read_text() == "kept\n"
        assert (other / "x").read_text() == "lent\n"
        assert not RAW.with_name("x").exists()
    async with boxed(tmp_path) as it:
        assert await it.call("run", text="cat note") == "kept\n", "its folder stays"


async def test_a_server_reaches_the_hosts_that_are_named_and_no_others(tmp_path: Path, bwrap: None) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    async def look_up(*_: object) -> Sequence[tuple[Any, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", port))]

    proxy = ForwardProxy(clock=SystemClock(), allows=lambda _: True, look_up=look_up)
    get = "/folders/python/bin/python3 -I -c 'import urllib.request as u; print(u.urlopen(\"http://{}/\").read())' 2>&1"
    async with server, boxed(tmp_path, proxy=proxy, hosts=("api.example",)) as it:
        assert await it.call("run", text=get.format("api.example")) == "b'hello'\n"
        assert "403" in await it.call("run", text=get.format("evil.example"))
        straight = f'import socket; socket.create_connection(("127.0.0.1", {port}), 5)'
        assert "refused" in await it.call("run", text=f"/folders/python/bin/python3 -I -c '{straight}' 2>&1")
    async with boxed(tmp_path) as it:
        assert "Error" in await it.call("run", text=get.format("api.example"))


async def test_a_server_ends_with_all_that_it_started(tmp_path: Path, bwrap: None) -> None:
    async with boxed(tmp_path) as it:
        long = f"sleep 1000.{os.getpid()}"  # a number that only this test waits for
        await it.call("run", text=f"setsid {long} >/dev/null 2>&1 & setsid nohup {long} >/dev/null 2>&1 &")
        mine = await eventually(lambda: _both(long))
    assert alive(mine) == []


async def test_a_server_that_takes_too_much_is_ended(
    tmp_path: Path, bwrap: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_LIMITS", Limits(folder=1_000_000))
    async with boxed(tmp_path) as it:
        await it.call("run", text="head -c 3000000 /dev/urandom > much")
        await eventually(lambda: it.server.failure)
        assert it.server.failure.startswith("it was ended, because the workspace may not grow beyond 1 MB")


async def test_where_there_is_no_sandbox_the_server_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "why_not", lambda: "bwrap is missing")
    settings = McpServerSettings(command=("true",), sandbox=True)
    async with running(settings, connect=Connector(clock=SystemClock(), redact=str, folder=tmp_path)) as it:
        assert it.server.failure == "it is to run in a sandbox, and there is none: bwrap is missing"


def _both(command: str) -> list[int]:
    """The two processes that run this, once both do."""
    found = [pid for pid in _processes() if command.replace(" ", "\0").encode() in _command(pid)]
    return found if len(found) == 2 else []


def _processes() -> list[int]:
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
