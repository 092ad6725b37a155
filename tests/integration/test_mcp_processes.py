"""Servers that are processes, good ones and bad ones."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.agent.mcp import keeper
from gateway.agent.mcp.connection import Connector
from gateway.agent.mcp.server import told
from gateway.agent.mcp.settings import McpServerSettings
from gateway.runtime.clock import SystemClock
from tests.support.fakes import ManualClock
from tests.support.mcp_running import Running, alive, heard, pids_in, raw, running
from tests.support.waiting import eventually


async def test_a_server_answers_and_sees_no_variable_but_those_that_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", "secret")
    async with running(raw("tool:environment", env={"OWN": "1"})) as it:
        assert await it.call("echo", text="天气") == "天气"
        seen = json.loads(await it.call("environment"))
        assert seen.keys() - {"LC_CTYPE"} <= {"PATH", "HOME", "LANG", "OWN", "LEGATO_CHILD"}
        assert seen["OWN"] == "1"


async def test_what_is_printed_beside_messages_is_passed_over() -> None:
    async with running(raw("prints", "complains")) as it:
        assert await it.call("echo", text="hi") == "hi"


async def test_a_server_that_prints_without_end_is_ended() -> None:
    async with running(raw("floods")) as it:
        assert it.server.failure == "it prints something that is not a message"


async def test_a_server_that_exits_at_once_is_told_with_its_last_words() -> None:
    async with running(raw("exits")) as it:
        assert it.server.failure == "it ended with exit code 9; its last words: no licence, with the key [hidden]"


async def test_a_server_that_reads_no_more_and_ends_is_told_with_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A greeting may come when a server has just closed its input and has not ended yet."""
    noted, loop, clock, lost = tmp_path / "pids", asyncio.get_running_loop(), ManualClock(), []
    real_start = loop.subprocess_exec

    async def late(*arguments: Any, **how: Any) -> Any:
        started = await real_start(*arguments, **how)
        await eventually(lambda: len(pids_in(noted)) == 2)
        return started

    async def connect() -> None:
        settings = raw("deaf", env={"RAW_PIDS": str(noted)})
        async with Connector(clock=clock, redact=str)("demo", settings, lambda _, why: lost.append(why)):
            raise AssertionError("it cannot be greeted")

    monkeypatch.setattr(loop, "subprocess_exec", late)
    connecting = asyncio.create_task(connect())
    await eventually(lambda: clock.pending or lost)
    os.kill(pids_in(noted)[0], signal.SIGKILL)
    with pytest.raises(ExceptionGroup) as failure:
        await connecting
    assert told(failure.value) == "it ended with exit code 137"
    assert lost[0] == "it ended with exit code 137"


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"command": ("no-such-program",)}, "no-such-program cannot be started: no such file or directory"),
        ({"command": ("true",), "cwd": "/no/such/folder"}, "No such file or directory: '/no/such/folder'"),
        ({"command": ("cat",), "start_timeout": 0.2}, "it"),
        ({"command": ("sleep", "1000"), "start_timeout": 0.2}, "it was not ready within 0.2 seconds"),
    ],
)
async def test_what_is_no_server_is_told(settings: dict[str, object], reason: str) -> None:
    async with running(McpServerSettings(**settings)) as it:
        assert reason in it.server.failure
        assert "127" not in it.server.failure


async def test_a_server_whose_answer_is_beyond_the_limit_is_ended() -> None:
    async with running(raw("tool:much")) as it:
        assert "the outcome is unknown" in await it.refused("much", mb=9)
        assert it.server.failure == "the answer has more than 8 MB, and is not read"


async def test_what_a_server_asks_of_us_is_refused() -> None:
    async with running(raw("tool:asks", "tool:heard")) as it:
        await it.call("asks")
        said = heard(await it.call("heard"))
        assert said[-5:-1] == [
            "Sampling not supported",
            "List roots not supported",
            "It is not clear whom to ask.",
            "Method not found",
        ]


async def test_a_flood_of_news_and_of_nothing_is_passed_over() -> None:
    async with running(raw("tool:news")) as it:
        assert await it.call("news") == "done"


async def test_a_server_that_asks_us_without_an_end_is_ended() -> None:
    async with running(raw("tool:asks_on")) as it:
        assert "the outcome is unknown" in await it.refused("asks_on")
        assert it.server.failure == "it keeps asking without end"


async def test_a_call_that_is_given_up_is_told_to_the_server() -> None:
    async with running(raw("tool:never", "tool:heard")) as it:
        call = asyncio.create_task(it.call("never"))
        await eventually(lambda: it.server._open and all(each.job for each in it.server._open))
        while "tools/call" not in heard(await it.call("heard"))[:-1]:
            pass
        call.cancel()
        await asyncio.wait([call])
        while "notifications/cancelled" not in heard(await it.call("heard")):
            pass


async def test_a_list_that_grows_is_seen() -> None:
    async with running(raw("tool:more")) as it:
        assert await it.call("more") == "done"
        await eventually(lambda: it.offer.names == ["demo_echo", "demo_more", "demo_late"])


async def test_a_list_without_end_is_cut() -> None:
    async with running(raw("endless")) as it:
        assert it.server.ready
        assert len(it.offer.names) == 50


async def test_a_lie_is_made_safe_and_a_list_that_is_none_is_told() -> None:
    async with running(raw("lies")) as it:
        assert len(it.offer.names) == 2
        assert it.offer.schemas[1]["function"]["parameters"] == {"type": "object", "properties": {}}
    async with running(raw("breaks")) as it:
        assert "its list of tools cannot be read: tools is not what MCP wants" in it.server.failure


@pytest.mark.parametrize(("pages", "tools"), [(25, 75), (120, 360), (400, 1000)])
async def test_a_list_of_many_pages_is_read_to_its_end_or_to_enough_tools(pages: int, tools: int) -> None:
    async with running(raw("pages", str(pages))) as it:
        assert len(it.server.known) == tools
        assert it.server.lacks == ("whatever comes behind (1,000 tools are enough)" if tools == 1_000 else "")


GOOD = {"type": "object"}


NO_TOOLS: list[Any] = [
    {"inputSchema": {}},
    {},
    {"inputSchema": None},
    {"inputSchema": "none"},
    {"inputSchema": []},
    {"inputSchema": True},
    {"inputSchema": {"type": "string"}},
    {"inputSchema": {"type": ["object", "null"]}},
    {"inputSchema": {"type": "object", "properties": []}},
    {"inputSchema": {"type": "object", "properties": {"required": ["a"]}}},
    {"inputSchema": {"type": "object", "properties": {"a": "string"}}},
    {"inputSchema": {"type": "object", "required": "a"}},
    {"inputSchema": {"type": "object", "required": {"a": True}}},
    {"inputSchema": GOOD, "description": {"en": "x"}},
    {"inputSchema": GOOD, "annotations": []},
    {"inputSchema": GOOD, "annotations": {"readOnlyHint": "perhaps"}},
]
NAMELESS: list[Any] = [
    {"name": 7, "inputSchema": GOOD},
    {"name": None, "inputSchema": GOOD},
    {"inputSchema": GOOD},
    {},
    None,
    "bad",
    [],
    7,
]


async def test_tools_that_are_none_are_left_out_by_their_names() -> None:
    bad = [{"name": f"bad{number}", **tool} for number, tool in enumerate(NO_TOOLS)]
    bad += [{"name": "b\n[a]d" + "d" * 100, "inputSchema": {}}, *NAMELESS]
    names = [f"bad{number}" for number in range(len(NO_TOOLS))] + ["b (a)" + "d" * 59]
    names += [f"number {number}" for number in range(len(names) + 1, len(bad) + 1)]
    habits = ["bad:" + json.dumps(tool) for tool in reversed(bad)]  # the last is put before the others
    async with running(raw(*habits)) as it:
        assert it.offer.names == ["demo_echo"]
        assert await it.call("echo", text="hi") == "hi"
        left_out = zip(it.server.left_out, names, strict=True)
        assert all(told.startswith(f"{name} (") for told, name in left_out)
        ((_, note),) = it.servers.troubled()
        assert note.startswith("used without the tools that cannot be read: bad0 (")
    only = Running(raw(*habits, only=["echo"]))
    (finding,) = [each async for each in only.servers.probe()]
    assert "demo: 1 tool: demo_echo; left out, because they cannot be read: bad0 (" in finding.detail
    assert finding.ok is None


@pytest.mark.parametrize(
    "more",
    [
        {"title": None, "description": None, "annotations": None, "outputSchema": None, "icons": None, "_meta": None},
        {"outputSchema": {"type": "array"}, "icons": "none", "execution": 5, "_meta": []},
        {"annotations": {"title": "A tool", "x": 1}, "inputSchema": {"type": "object", "properties": {"a": {}}}},
    ],
    ids=json.dumps,
)
async def test_a_tool_is_used_whatever_it_says_that_nobody_reads(more: dict[str, Any]) -> None:
    async with running(raw("bad:" + json.dumps({"name": "odd", "inputSchema": GOOD, **more}))) as it:
        assert it.offer.names == ["demo_odd", "demo_echo"]
        assert not it.server.left_out


class Paused(SystemClock):
    """A clock whose sleepers sleep until the test wakes them; what is limited is limited in real time."""

    def __init__(self) -> None:
        self.over = asyncio.Event()

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        await self.over.wait()


async def test_a_server_that_ends_comes_back_without_what_it_had_started(tmp_path: Path) -> None:
    noted, clock = tmp_path / "pids", Paused()
    async with running(raw("forks", "tool:exit", env={"RAW_PIDS": str(noted)}), clock) as it:
        first = pids_in(noted)
        assert len(alive(first)) == 3
        assert "the outcome is unknown" in await it.refused("exit")
        assert it.server.failure == "it ended with exit code 3; its last words: out of memory"
        assert alive(first) == []
        assert "the next attempt is in 1 second" in await it.refused("echo")
        clock.over.set()
        await it.ready()
        assert await it.call("echo", text="again") == "again"
    assert alive(pids_in(noted)) == []


async def test_a_server_that_will_not_end_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    noted = tmp_path / "pids"
    async with running(raw("forks", "stays", env={"RAW_PIDS": str(noted)})):
        assert len(alive(pids_in(noted))) == 3
    assert alive(pids_in(noted)) == []


async def test_nothing_stays_when_the_gateway_is_killed(tmp_path: Path) -> None:
    noted = tmp_path / "pids"
    command = [sys.executable, "-I", "-S", str(raw().command[-1]), "forks", "stays"]
    parent = (
        "import os, subprocess, sys\n"
        "theirs, life = os.pipe()\n"
        f"p = subprocess.Popen([sys.executable, '-I', '-S', {keeper.__file__!r}, str(theirs), *{command!r}],\n"
        "    stdin=subprocess.PIPE, pass_fds=(theirs,), start_new_session=True)\n"
        "os.close(theirs); print(p.pid, flush=True); sys.stdin.read()\n"
    )
    gateway = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", "-c", parent),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "RAW_PIDS": str(noted)},
    )
    assert gateway.stdout is not None
    of_keeper = int(await gateway.stdout.readline())
    await eventually(lambda: len(pids_in(noted)) == 3)
    gateway.kill()
    await gateway.wait()
    await eventually(lambda: not alive([of_keeper, *pids_in(noted)]))


async def test_a_start_that_is_cancelled_late_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted, loop = tmp_path / "pids", asyncio.get_running_loop()
    late, goes_on, real_start = asyncio.Event(), asyncio.Event(), loop.subprocess_exec

    async def slow(*arguments: Any, **how: Any) -> Any:
        """A start on a busy machine: the server runs long before its start returns."""
        transport, protocol = await real_start(*arguments, **how)
        await eventually(lambda: len(pids_in(noted)) == 3)
        late.set()
        try:
            await goes_on.wait()
        except asyncio.CancelledError:
            transport.close()  # as the library does
            raise
        return transport, protocol

    monkeypatch.setattr(loop, "subprocess_exec", slow)
    owner = asyncio.create_task(Running(raw("forks", env={"RAW_PIDS": str(noted)})).servers.serve())
    await late.wait()
    owner.cancel()
    await asyncio.sleep(0)
    goes_on.set()
    await asyncio.wait([owner])
    assert alive(pids_in(noted)) == []


async def _starts_and_kills(times: int, noted: Path, seed: int) -> None:
    """Start a server again and again, and end it at any moment."""
    chance = random.Random(seed)
    settings = raw("forks", "tool:exit", env={"RAW_PIDS": str(noted)})
    async with running(raw()):
        pass  # the library is loaded, and the threads and descriptors that stay are there
    tasks, descriptors = len(asyncio.all_tasks()), len(os.listdir("/proc/self/fd"))
    for _ in range(times):
        it = Running(settings)
        owner = asyncio.create_task(it.servers.serve())
        if chance.random() < 0.5:
            await asyncio.wait([owner], timeout=chance.random() * 0.2)
        else:
            await it.server.settled.wait()
            if chance.random() < 0.5:
                await it.refused("exit")
            elif (pids := alive(pids_in(noted))) and chance.random() < 0.5:
                os.kill(pids[0], signal.SIGKILL)
        owner.cancel()
        await asyncio.wait([owner])
        assert alive(pids_in(noted)) == []
    assert len(asyncio.all_tasks()) == tasks
    assert len(os.listdir("/proc/self/fd")) == descriptors


async def test_starts_and_kills_leave_nothing_behind(tmp_path: Path) -> None:
    await _starts_and_kills(20, tmp_path / "pids", 7)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
async def test_a_thousand_starts_and_kills_leave_nothing_behind(seed: int, tmp_path: Path) -> None:
    await _starts_and_kills(100, tmp_path / "pids", seed)
