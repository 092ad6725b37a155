"""What monitors are answered, by a gateway in this process and by the program as people run it."""

from __future__ import annotations

import asyncio
import json
import lzma
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from prometheus_client.parser import text_string_to_metric_families

from gateway import __version__
from gateway.app.build import Parts, build
from gateway.app.config.models import MonitorSettings
from gateway.app.monitor import answering
from gateway.runtime.errors import UserError
from gateway.runtime.supervisor import Supervisor
from gateway.store.sqlite import database
from gateway.store.sqlite.migrations import VERSION, migrate
from tests.emulators.llm import LlmServer
from tests.emulators.telegram import TelegramServer
from tests.support.gateway import FakeAdapter, FakeModel, config_in, running
from tests.support.model import PATIENCE
from tests.support.program import KEY, legato, legato_run, write_config
from tests.support.redis_server import free_port
from tests.support.source_tree import ROOT
from tests.support.waiting import eventually


def listening_at(port: int) -> MonitorSettings:
    return MonitorSettings(address=f"127.0.0.1:{port}")


async def test_the_four_pages(tmp_path: Path) -> None:
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    async with (
        running(tmp_path) as live,
        answering(listening_at(port), 0, live.gateway),
        ClientSession() as http,
    ):

        async def ask(path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
            async with http.request(method, base + path, headers=headers) as answer:
                return answer.status, await answer.text()

        await live.ask("a secret word")
        await live.quiet()
        assert await ask("/healthz") == (200, "ok\n")
        assert await ask("/readyz") == (200, "ok\n")
        status, text = await ask("/statusz")
        assert (status, json.loads(text)["version"], json.loads(text)["state"]) == (200, __version__, "serving")
        status, page = await ask("/metrics")
        found = {sample.name: sample for family in text_string_to_metric_families(page) for sample in family.samples}
        assert found["legato_build_info"].labels == {"version": __version__}
        assert found["legato_platform_up"].value == 1
        assert found["legato_platform_last_update_timestamp_seconds"].value > 1_700_000_000
        assert "secret" not in text + page
        assert (await ask("/healthz", "POST"))[0] == 405
        assert (await ask("/healthz", "HEAD")) == (200, "")
        assert (await ask("/admin"))[0] == 404
        assert (await ask("/statusz", Host="evil.example"))[0] == 403
        assert (await ask("/statusz", Host=f"localhost:{port}"))[0] == 200
        live.gateway.stop()
        assert await ask("/readyz") == (503, "The gateway is draining.\n")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port)).close()


async def test_a_store_is_brought_forward_before_the_gateway_is_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, goes_on = threading.Event(), threading.Event()

    def slow(*arguments: Any) -> None:
        begun.set()
        goes_on.wait(PATIENCE)
        migrate(*arguments)

    monkeypatch.setattr(database, "migrate", slow)
    path = config_in(tmp_path).store.sqlite_path
    assert path is not None
    earlier = ROOT / "tests" / "fixtures" / "stores" / "11-0ba38a90.db.xz"
    path.write_bytes(lzma.decompress(earlier.read_bytes()))
    gateway = build(config_in(tmp_path), [FakeAdapter()], Parts(providers={"offline": FakeModel()}))
    serving = asyncio.get_running_loop().create_task(gateway.run())
    await asyncio.to_thread(begun.wait, PATIENCE)
    assert await gateway.watchdog.health.is_ready() == "The gateway is starting."
    goes_on.set()

    async def ready() -> bool:
        return await gateway.watchdog.health.is_ready() is None

    await eventually(ready)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
    gateway.stop()
    await serving


async def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        async with running(tmp_path) as live:
            with pytest.raises(UserError, match=rf"cannot listen at 127.0.0.1:{port} \(Address already in use\)"):
                async with answering(listening_at(port - 1), 1, live.gateway):  # of the second worker
                    raise AssertionError


async def test_the_program_tells_systemd_and_whoever_asks(tmp_path: Path) -> None:
    told = tmp_path / "notify"
    port = free_port()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(told))
        systemd.setblocking(False)
        async with asyncio.timeout(PATIENCE), TelegramServer(limits=None) as telegram, LlmServer(api_key=KEY) as model:
            anna = telegram.people.person("Anna")
            bot = {"enabled": True, "token": "${TOKEN}", "base_url": telegram.base_url}
            more: dict[str, Any] = {"monitor": {"address": f"127.0.0.1:{port}"}}
            write_config(
                tmp_path,
                model.url,
                adapters={"telegram": bot},
                access={"allow": [f"telegram:{anna.id}"]},
                **more,
            )
            given = {"TOKEN": telegram.token}
            status, _, errors = await legato(tmp_path, "status", **given)
            assert (status, "No gateway answers" in errors) == (1, True)
            async with legato_run(tmp_path, NOTIFY_SOCKET=str(told), **given) as program:
                said = b""
                while b"READY=1" not in said or b"WATCHDOG=1" not in said:
                    said += await asyncio.get_running_loop().sock_recv(systemd, 4_096) + b"\n"
                chat = telegram.people.private(anna)
                telegram.people.say(chat, anna, "hello")
                await telegram.until(lambda: telegram.shown(chat))
                status, text, _ = await legato(tmp_path, "status", "--json", **given)
                (report,) = json.loads(text)
                assert (status, report["platforms"]["telegram"]["reader"]) == (0, "reads")
                status, text, _ = await legato(tmp_path, "status", **given)
                assert (status, "telegram     reads; heard 2" in text) == (0, True)
                program.send_signal(signal.SIGTERM)
                assert await program.wait() == 0
            assert b"STOPPING=1" in await asyncio.get_running_loop().sock_recv(systemd, 4_096)


def test_a_supervisor_that_is_not_there_costs_nothing(tmp_path: Path) -> None:
    for address in (None, str(tmp_path / "nobody"), "@nobody-listens"):
        supervisor = Supervisor(address=address)
        supervisor.ready()
        supervisor.alive("serving")
        supervisor.stopping()
        supervisor.end("and goes on")


def test_a_process_whose_loop_hangs_ends_with_a_traceback() -> None:
    hangs = "import time; from gateway.runtime.supervisor import Supervisor; "
    hangs += "Supervisor(ends=True, patience=0.2).alive('serving'); time.sleep(60)"
    done = subprocess.run(
        [sys.executable, "-c", hangs], cwd=ROOT, capture_output=True, text=True, timeout=50, check=False
    )
    assert (done.returncode, "most recent call first" in done.stderr) == (1, True)
