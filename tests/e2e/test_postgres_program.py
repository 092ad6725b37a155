"""The program on a PostgreSQL server, as people run it: killed in the midst of a turn, and two processes at once."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Reply
from tests.support.program import KEY, chatting, legato, started, write_config
from tests.support.waiting import eventually

if TYPE_CHECKING:  # at run time it is a plugin, which nobody may import first
    from tests.support.postgres_server import PostgresServer

pytest_plugins = ["tests.support.postgres_server"]

pytestmark = pytest.mark.slow

SECRET = {"POSTGRES_PASSWORD": "hunter2/#hunter2"}


@pytest.fixture
async def model() -> AsyncIterator[LlmServer]:
    async with LlmServer(api_key=KEY) as made:
        yield made


@pytest.fixture
def server(postgres_server: PostgresServer) -> PostgresServer:
    postgres_server.empty()
    return postgres_server


def _address(server: PostgresServer) -> str:
    return server.url.replace("legato@", "legato:${POSTGRES_PASSWORD}@")


async def test_a_program_that_was_killed_goes_on_and_answers_once(
    tmp_path: Path, server: PostgresServer, model: LlmServer
) -> None:
    write_config(tmp_path, model.url, store={"url": _address(server)})
    gate = asyncio.Event()
    model.reply = lambda _: Reply(text="It is done.", hold=gate)
    async with chatting(tmp_path, **SECRET) as terminal:
        terminal.send({"id": "one", "text": "do it"})
        await eventually(lambda: model.in_flight)
        terminal.process.kill()
        await terminal.process.wait()
    server.let_die()  # which takes ten seconds
    gate.set()
    async with chatting(tmp_path, **SECRET) as terminal:
        (row,) = await terminal.until_answered("one")
        assert row["text"] == "It is done."
        status, errors = await terminal.finish()
    assert status == 0, errors
    assert len(terminal.lines) == 1
    assert model.calls == 2
    assert not model.violations
    status, _, errors = await legato(tmp_path, "check", **SECRET)
    assert status == 0, errors
    status, _, errors = await legato(tmp_path, "backup", "there.tar", **SECRET)
    assert (status, "Back it up with pg_dump" in errors) == (1, True)
    assert "hunter2" not in errors


async def test_two_processes_answer_each_message_once_and_in_order(
    tmp_path: Path, server: PostgresServer, model: LlmServer
) -> None:
    write_config(tmp_path, model.url, store={"url": _address(server)})
    async with AsyncExitStack() as stack:
        workers = [await started(tmp_path, "run", **SECRET) for _ in range(2)]
        terminal = await stack.enter_async_context(chatting(tmp_path, **SECRET))
        ids = [f"e{number}" for number in range(40)]
        terminal.send(*({"id": each, "text": each, "chat": f"c{int(each[1:]) % 4}"} for each in ids))
        status, errors = await terminal.finish()
        assert status == 0, errors
        for each in workers:
            each.send_signal(signal.SIGTERM)
            _, said = await each.communicate()
            assert each.returncode == 0, said.decode()
    replies = [row for row in terminal.lines if row["kind"] == "reply"]
    assert sorted(row["answers"] for row in replies) == sorted(ids)
    for chat in range(4):
        answered = [row["answers"] for row in replies if row["chat"] == f"c{chat}"]
        assert answered == [each for each in ids if int(each[1:]) % 4 == chat]
    assert not model.violations
