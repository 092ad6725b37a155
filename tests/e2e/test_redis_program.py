"""The program on a Redis server, as people run it: `legato chat`, and workers beside it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import StoreUnavailable
from gateway.store.redis import RedisStore
from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Reply
from tests.support.forks import Process
from tests.support.gateway import FakeAdapter
from tests.support.gateway import running as gateway_running
from tests.support.model import FakeModel, Gate, Say, echo, in_turn
from tests.support.program import KEY, chatting, legato, started, write_config
from tests.support.redis_server import RedisServer, free_port, running
from tests.support.waiting import eventually


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    folder = tmp_path / "redis"
    folder.mkdir()
    with running(folder, appendonly="yes", appendfsync="always") as made:
        yield made


@pytest.fixture
async def model() -> AsyncIterator[LlmServer]:
    async with LlmServer(api_key=KEY) as made:
        yield made


@asynccontextmanager
async def worker(folder: Path) -> AsyncIterator[Process]:
    """`legato run` in `folder`; asked to end at the end, which it must do well."""
    process = await started(folder, "run")
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = await process.communicate()
        assert process.returncode == 0, errors.decode()
        assert (folder / "legato-home").stat().st_mode & 0o777 == 0o700


async def test_a_worker_goes_on_with_the_turn_of_a_terminal_that_died(
    tmp_path: Path, server: RedisServer, model: LlmServer
) -> None:
    write_config(tmp_path, model.url, store={"url": server.url})
    gate = asyncio.Event()
    model.reply = lambda _: Reply(text="It is done.", hold=gate)
    async with chatting(tmp_path) as terminal:
        terminal.send({"id": "one", "text": "do it"})
        await eventually(lambda: model.in_flight)
        terminal.process.kill()
        await terminal.process.wait()
    server.let_all_die()  # which takes ten seconds
    gate.set()
    async with worker(tmp_path):
        await eventually(lambda: model.calls == 2 and not model.in_flight)
        async with chatting(tmp_path) as terminal:  # nothing is said; it only shows what waits
            (row,) = await terminal.until_answered("one")
            assert row["text"] == "It is done."
            status, errors = await terminal.finish()
    assert status == 0, errors
    assert len(terminal.lines) == 1
    assert not model.violations


async def test_a_terminal_beside_workers_answers_each_message_once_and_in_order(
    tmp_path: Path, server: RedisServer, model: LlmServer
) -> None:
    write_config(tmp_path, model.url, store={"url": server.url})
    async with worker(tmp_path), worker(tmp_path), chatting(tmp_path) as terminal:
        ids = [f"e{number}" for number in range(60)]
        terminal.send(*({"id": each, "text": each, "chat": f"c{int(each[1:]) % 4}"} for each in ids))
        status, errors = await terminal.finish()
    assert status == 0, errors
    replies = [row for row in terminal.lines if row["kind"] == "reply"]
    assert sorted(row["answers"] for row in replies) == sorted(ids)
    for chat in range(4):
        answered = [row["answers"] for row in replies if row["chat"] == f"c{chat}"]
        assert answered == [each for each in ids if int(each[1:]) % 4 == chat]
    assert not model.violations


async def test_a_server_that_is_away_is_waited_for_and_the_wait_can_be_ended(tmp_path: Path) -> None:
    write_config(tmp_path, "http://127.0.0.1:9", store={"url": f"redis://127.0.0.1:{free_port()}/0"})
    async with chatting(tmp_path) as terminal:
        assert terminal.process.stderr is not None
        said = await terminal.process.stderr.readline()
        assert b"store_waits_for_server" in said
        terminal.process.send_signal(signal.SIGTERM)
        assert await terminal.process.wait() == 0


async def test_what_only_looks_waits_for_no_server(tmp_path: Path) -> None:
    port = free_port()
    write_config(tmp_path, "http://127.0.0.1:9", store={"url": f"redis://:${{REDIS_PASSWORD}}@127.0.0.1:{port}/0"})
    advice = "Start it, or correct store.url."
    secret = {"REDIS_PASSWORD": "hunter2-hunter2"}
    status, _, errors = await legato(tmp_path, "sessions", "list", **secret)
    assert (status, f"Redis at 127.0.0.1:{port} cannot be reached (connection refused). {advice}" in errors) == (
        1,
        True,
    )
    status, report, errors = await legato(tmp_path, "check", **secret)
    (line,) = [line for line in report.splitlines() if line.startswith("store ")]
    assert status == 1
    assert "FAIL" in line
    assert advice in line
    assert "hunter2" not in report + errors


async def test_a_turn_is_put_off_while_the_store_is_away_and_answered_when_it_is_back(
    tmp_path: Path, server: RedisServer
) -> None:
    gate = Gate()
    model = FakeModel(in_turn(Say(calls=[("clock", "{}")], gate=gate), then=echo))
    store = RedisStore(server.url, clock=SystemClock(), timeout=3.0, patience=1.0)
    async with gateway_running(tmp_path, model=model, adapter=FakeAdapter(), store=store) as live:
        await live.tell("what time is it?")
        await gate.until_waiting()
        server.kill()
        gate.open()
        with pytest.raises(StoreUnavailable):  # its platform must know that it was not taken
            await live.tell("and now?")
        server.start()
        await live.adapter.until(lambda: "echo: what time is it?" in live.adapter.shown("c", "reply"))
        assert await live.ask("and then?") == "echo: and then?"
        assert all("cannot store" in text for text in live.adapter.shown("c", "error"))
