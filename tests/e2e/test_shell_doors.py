"""Commands in a real sandbox, through a whole gateway: the hosts they reach, and what goes on in the background."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.agent.background import RESTARTED
from gateway.agent.tools.shell import SandboxedShell, ShellSettings
from gateway.agent.workspace.folders import name_of
from gateway.app.config import Config
from gateway.app.config.models import ToolSettings
from gateway.domain.message import text_of
from gateway.providers.base import ModelRequest, ModelSpec
from gateway.runtime.clock import SystemClock
from gateway.runtime.proxy import ForwardProxy
from gateway.store.port import Store
from gateway.turns.delegated import PROMPT
from tests.support.gateway import FakeModel, Live, Say, config_in, echo, in_turn, running
from tests.support.mcp_running import ANYBODY
from tests.support.waiting import eventually

pytest_plugins = ["tests.support.redis_server"]
pytestmark = pytest.mark.usefixtures("bwrap", "curl")

Opened = Callable[[], Store]


def call(command: str, **more: Any) -> Say:
    return Say(calls=[("shell", json.dumps({"command": command, **more}))])


def told(model: FakeModel) -> str:
    """The newest result of a call."""
    texts = [text_of(each) for request in model.requests for each in request.messages if each["role"] == "tool"]
    return texts[-1]


def configured(folder: Path, **shell: Any) -> Config:
    return config_in(folder, tools=ToolSettings(shell=ShellSettings(**shell)))


@asynccontextmanager
async def internet(live: Live) -> AsyncIterator[list[str]]:
    """A host for every name, which says hello; and the names that were looked up."""
    looked_up: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)

    async def look_up(host: str, *_: object) -> Sequence[tuple[Any, ...]]:
        looked_up.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", server.sockets[0].getsockname())]

    tool = live.gateway.agents.sessions.toolbox.offer((), ANYBODY, 10**6).get("shell")
    assert isinstance(tool, SandboxedShell)
    tool.reach.proxy = ForwardProxy(clock=SystemClock(), allows=lambda _: True, look_up=look_up)
    async with server:
        yield looked_up


CURL = "curl -sS http://{}/ 2>&1"


async def test_without_a_yes_a_command_reaches_what_is_listed_and_is_told_what_it_does_not(tmp_path: Path) -> None:
    config = configured(tmp_path, network="listed", hosts=("api.example",))
    model = FakeModel(in_turn(call(f"{CURL}; {CURL}".format("api.example", "evil.example")), Say(text="done")))
    async with running(tmp_path, config=config, model=model) as live, internet(live) as looked_up:
        assert await live.ask("go") == "done"
        assert told(model) == (
            "exit code 0\nhello\n"
            "evil.example is not among the hosts that may be reached from here (tools.shell.hosts)\n"
            "[Not reached: evil.example. Name what is needed in `hosts`, and the person is asked. Hosts that the "
            "operator lists in tools.shell.hosts need no yes.]"
        )
        assert looked_up == ["api.example"]


@pytest.mark.parametrize("answer", ["/approve", "/deny"])
async def test_a_host_beyond_those_is_reached_after_a_yes_alone(tmp_path: Path, reopened: Opened, answer: str) -> None:
    command = CURL.format("api.example:8080")
    asks = call(command, hosts=["API.example:8080"])
    model = FakeModel(in_turn(asks, Say(text="done"), call(command), Say(text="again")))
    config = configured(tmp_path)
    async with running(tmp_path, config=config, model=model, store=reopened()) as live, internet(live) as looked_up:
        event = await live.tell("go")
        await live.adapter.until(lambda: any(row.kind == "question" for row in live.adapter.sent))
        asked = next(row.text for row in live.adapter.sent if row.kind == "question")
        assert asked.startswith(f"Run this command, which may reach api.example:8080? {command}")
        await live.tell(answer)
        assert (await live.answer(event)).text == "done"
        assert told(model).startswith("exit code 0\nhello" if answer == "/approve" else "Denied: The person said no")
        assert looked_up == (["api.example"] if answer == "/approve" else [])
        assert await live.ask("go on") == "again"
        assert "Could not resolve" in told(model) or "Couldn't" in told(model), "the yes was for one command"


async def test_what_names_no_host_is_told_without_a_question(tmp_path: Path) -> None:
    model = FakeModel(in_turn(call("true", hosts=["http://a.example/"]), call("true", hosts=["*"]), Say(text="done")))
    async with running(tmp_path, config=configured(tmp_path), model=model) as live:
        assert await live.ask("go") == "done"
        assert told(model) == "Error: Name the hosts one by one, 20 at most."


async def test_a_command_in_the_background_wakes_the_conversation_once_it_has_ended(
    tmp_path: Path, reopened: Opened
) -> None:
    command = "echo begun; until [ -e go ]; do sleep 0.05; done; echo over; exit 3"
    scripted = in_turn(
        call(command, background=True),
        call("read", job=1),
        Say(text="it runs"),
        then=lambda *_: Say(text="it failed"),
    )
    model, config = FakeModel(scripted), configured(tmp_path)
    async with running(tmp_path, config=config, model=model, store=reopened()) as live:
        assert await live.ask("build it") == "it runs"
        assert "command 1 (echo begun; until [ -e go ];" in told(model)
        assert "runs since" in told(model)
        assert "command 1 (" in await live.ask("/status")
        tip = await live.tip()
        assert tip is not None
        (config.home / "workspaces" / name_of(tip.key) / "go").touch()
        await eventually(lambda: live.adapter.shown()[-1] == "it failed")
        await live.quiet()
        request = text_of(model.requests[-1].messages[-1])
        assert "exit code 3, " in request
        assert "11 bytes in /folders/background/1.txt, ends:\nbegun\nover" in request
        assert await live.ask("/status") != ""
        assert [row.text for row in live.adapter.sent].count("it failed") == 1


async def test_a_command_in_the_background_is_read_and_ended(tmp_path: Path) -> None:
    scripted = in_turn(
        call("echo begun; sleep 1000", background=True),
        call("cat /folders/background/1.txt; echo no > /folders/background/1.txt"),
        call("end", job=1),
        call("end", job=7),
        call("ls", job=1),
        Say(text="done"),
    )
    model = FakeModel(scripted)
    async with running(tmp_path, config=configured(tmp_path), model=model) as live:
        assert await live.ask("go") == "done"
        texts = [text_of(each) for each in model.requests[-1].messages if each["role"] == "tool"]
        assert "runs in the background. You are woken once it has ended" in texts[0]
        assert "Read-only file system" in texts[1]
        assert "ended, as was asked" in texts[2]
        assert texts[3] == "Error: There is no background command 7 here; there are: 1."
        assert texts[4] == "Error: With `job`, `command` is read or end; without it, a command is run."
        await live.quiet()
        assert live.adapter.shown() == ["done"], "nobody is woken for what was asked"


async def test_stop_names_what_goes_on_and_stop_all_ends_it(tmp_path: Path) -> None:
    model = FakeModel(in_turn(call("sleep 1000", background=True), Say(text="it runs"), then=echo))
    async with running(tmp_path, config=configured(tmp_path), model=model) as live:
        assert await live.ask("go") == "it runs"
        named = "command 1 (sleep 1000)"
        assert await live.ask("/stop") == (
            f"I am not writing an answer. This runs in the background: {named}. /stop all ends it, too."
        )
        assert f"Running in the background: {named}, for " in await live.ask("/status")
        assert await live.ask("/stop all") == f"I ended what ran in the background: {named}."
        assert await live.ask("/stop all") == "Nothing is running."
        assert "background" not in await live.ask("/status")


async def test_after_a_restart_the_conversation_is_told_once(tmp_path: Path, reopened: Opened) -> None:
    scripted = in_turn(call("sleep 1000", background=True), Say(text="it runs"), then=lambda *_: Say(text="pity"))
    model, config = FakeModel(scripted), configured(tmp_path)
    async with running(tmp_path, config=config, model=model, store=reopened()) as live:
        assert await live.ask("go") == "it runs"
    for _ in range(2):
        async with running(tmp_path, config=config, model=model, store=reopened()) as live:
            await eventually(lambda: RESTARTED in text_of(model.requests[-1].messages[-1]))
            await live.quiet()
    assert sum(RESTARTED in text_of(each.messages[-1]) for each in model.requests) == 1


async def test_what_a_helper_begins_wakes_the_conversation_that_it_works_for(tmp_path: Path) -> None:
    def answer(spec: ModelSpec, request: ModelRequest) -> Say:
        last, helps = request.messages[-1], text_of(request.messages[0]) == PROMPT
        if last["role"] == "tool":
            return Say(text="it is begun")
        if text_of(last).startswith("[In the background"):
            return Say(text="woken")
        return call("sleep 0.2", background=True) if helps else Say(calls=[("delegate", '{"task": "begin it"}')])

    async with running(tmp_path, config=configured(tmp_path), model=FakeModel(answer)) as live:
        assert await live.ask("go") == "it is begun"
        await eventually(lambda: live.adapter.shown()[-1] == "woken")
        await live.quiet()


async def test_everything_is_forgotten_while_a_command_writes(tmp_path: Path, reopened: Opened) -> None:
    command = "while :; do mkdir -p a b; echo x > a/f; echo x > f; rm -rf a b f; done"
    model = FakeModel(in_turn(call(command, background=True), Say(text="begun"), then=echo))
    async with running(tmp_path, model=model, store=reopened()) as live:
        assert await live.ask("go") == "begun"
        workspaces = live.gateway.agents.workspaces
        tip = await live.tip()
        assert tip is not None
        await live.tell("/forget everything")
        await eventually(lambda: live.adapter.shown("c", "question"))
        await live.tell("y")
        await eventually(lambda: live.adapter.shown()[-1].startswith("Forgot "))
        assert not workspaces.has(tip.key)
        assert (
            await live.ask("/status")
            == "Nothing is running.\nThere is no session yet. Your next message starts a session."
        )


async def test_forgetting_some_words_takes_what_commands_printed(tmp_path: Path) -> None:
    model = FakeModel(in_turn(call("echo dear NAME", background=True), Say(text="begun"), Say(text="ended"), then=echo))
    async with running(tmp_path, model=model) as live:
        assert await live.ask("go") == "begun"
        await eventually(lambda: live.adapter.shown()[-1] == "ended")
        await live.tell("/forget NAME")
        await eventually(lambda: "The words are also in 1 file." in live.adapter.shown()[-1])
        await live.tell("/forget all")
        await eventually(lambda: live.adapter.shown("c", "question"))
        await live.tell("y")
        await eventually(lambda: live.adapter.shown()[-1].startswith("Forgot "))
        kept = live.gateway.running_turns.background.root
        assert [path for path in kept.rglob("*") if path.is_file()] == []


async def test_a_command_with_the_job_nothing_is_a_command_and_is_asked_about(tmp_path: Path) -> None:
    asks = call("echo hello", hosts=["api.example"], background=False, job=0)
    model = FakeModel(in_turn(call("echo hello", hosts=[], background=False, job=0), Say(text="done"), asks, then=echo))
    async with running(tmp_path, model=model) as live:
        assert await live.ask("go") == "done"
        assert told(model) == "exit code 0\nhello"
        await live.tell("go on")
        await eventually(lambda: live.adapter.shown("c", "question"))
