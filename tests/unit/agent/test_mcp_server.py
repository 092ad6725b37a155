"""The owner of a server: one task that connects, serves calls, and tries again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.agent.mcp.server import McpServer, ServerFailed
from gateway.agent.mcp.servers import McpServers, known_list
from gateway.agent.mcp.settings import McpServerSettings
from gateway.agent.mcp.tools import AskedMcpTool, McpTool
from gateway.agent.tools.offer import Caller, Toolbox
from gateway.app.config import Config
from gateway.app.config.models import ToolSettings
from gateway.app.config.shown import shown
from gateway.cli.settings import value_of
from gateway.domain.chat import Source
from gateway.runtime.errors import ToolError
from tests.support.fakes import ManualClock
from tests.support.mcp_links import FakeServer
from tests.support.waiting import eventually

NOWHERE = Path("/dev/null/none")  # where no list can be kept
ANYBODY = Caller(source=Source(platform="fake", chat="c", chat_type="direct", user="u"))


def stuck(*others: str) -> FakeServer:
    """A server whose tool `slow` never answers."""
    fake = FakeServer("slow", *others)
    fake.waits = {"slow"}
    return fake


class Served:
    """A server `demo` with its owner, on a clock of the test's."""

    def __init__(self, fake: FakeServer, settings: Mapping[str, Any] | None = None, folder: Path = NOWHERE) -> None:
        self.fake, self.clock, self.toolbox = fake, ManualClock(), Toolbox()
        self.servers = McpServers(
            settings={"demo": McpServerSettings(**{"command": ("x",), **(settings or {})})},
            toolbox=self.toolbox,
            folder=folder,
            clock=self.clock,
            redact=lambda text: text.replace("sk-secret", "[hidden]"),
            connect=fake.connect,
        )
        self.server: McpServer = self.servers.servers[0]

    @property
    def names(self) -> list[str]:
        return self.toolbox.offer((), ANYBODY, 10**6).names

    async def call(self, tool: str, **arguments: Any) -> str:
        result = await self.server.ask("tools/call", {"name": tool, "arguments": arguments})
        return str(result["content"][0]["text"])

    async def refused(self, tool: str) -> str:
        with pytest.raises(ToolError) as refusal:
            await self.call(tool)
        return str(refusal.value)


@asynccontextmanager
async def served(fake: FakeServer, folder: Path = NOWHERE, **settings: Any) -> AsyncIterator[Served]:
    made = Served(fake, settings, folder)
    task = asyncio.create_task(made.servers.serve())
    try:
        await made.clock.settle()
        yield made
    finally:
        task.cancel()
        await asyncio.wait([task])
        assert fake.closed == fake.opened
        assert not fake.running


async def test_the_tools_come_to_be_on_offer_and_answer() -> None:
    async with served(FakeServer("echo", "look up")) as it:
        assert it.names[0] == "demo_echo"
        assert it.names[1].startswith("demo_look_up_")
        assert await it.call("echo", a=1) == "echo {'a': 1}"


async def test_calls_run_side_by_side_and_in_one_task_with_the_connection() -> None:
    fake = stuck("fast")
    async with served(fake) as it:
        slow = [asyncio.create_task(it.call("slow")) for _ in range(3)]
        await fake.until(lambda: len(fake.running) == 3)
        assert await it.call("fast") == "fast {}"
        for task in slow:
            task.cancel()
        await asyncio.wait(slow)
    assert len(fake.owners) == 1, "whoever opens the connection closes it"


async def test_at_most_sixteen_calls_run_at_once_and_the_others_wait() -> None:
    fake = stuck()
    async with served(fake) as it:
        calls = [asyncio.create_task(it.call("slow")) for _ in range(40)]
        await it.clock.settle()
        assert len(fake.running) == 16
        for call in calls[:16]:
            call.cancel()
        await it.clock.settle()
        assert len(fake.running) == 16, "a call that is given up frees its place"
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)


async def test_a_call_that_is_given_up_is_told_to_the_server() -> None:
    fake = stuck()
    async with served(fake) as it:
        call = asyncio.create_task(it.call("slow"))
        await fake.until(lambda: fake.running == ["slow"])
        call.cancel()
        await fake.until(lambda: fake.cancelled == ["slow"])


async def test_a_server_that_leaves_a_call_unanswered_must_show_that_it_lives() -> None:
    fake = stuck()
    async with served(fake) as it:
        for mute, opened in ((False, 1), (True, 2)):
            fake.mute = mute
            call = asyncio.create_task(it.call("slow"))
            await fake.until(lambda: fake.running == ["slow"])
            call.cancel()
            await fake.until(lambda: not fake.running)
            await it.clock.advance(10.0)
            fake.mute = False
            await it.clock.advance(1.0)
            assert fake.opened == opened


async def test_a_dead_server_refuses_at_once_and_comes_back_by_itself() -> None:
    fake = FakeServer("echo")
    async with served(fake) as it:
        fake.failures = [ServerFailed("it has no licence")]
        fake.hear("lost", "it ended with exit code 3")
        await it.clock.settle()
        assert "the next attempt is in 1 second" in await it.refused("echo")
        assert list(it.servers.troubled()) == [
            ("demo", "not usable: it ended with exit code 3; the next attempt is in 1 s")
        ]
        await it.clock.advance(1.0)
        assert "the next attempt is in 2 seconds" in await it.refused("echo")
        await it.clock.advance(2.0)
        assert await it.call("echo") == "echo {}"
        assert list(it.servers.troubled()) == []
        assert it.names == ["demo_echo"], "its tools stay where they stand in the prompt"


async def test_the_pauses_grow_and_begin_anew_after_a_steady_connection() -> None:
    fake = FakeServer("echo")
    fake.failures = [OSError("away") for _ in range(12)]
    async with served(fake) as it:
        pauses = []
        while fake.failures:
            pauses.append(it.server.pause)
            await it.clock.advance(it.server.pause)
        assert pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
        await it.clock.advance(300.0 + 60.0)
        fake.hear("lost", "it ended")
        await it.clock.settle()
        assert it.server.pause == 1


async def test_who_calls_while_the_server_starts_waits_for_it() -> None:
    made = Served(FakeServer("echo"))
    call = asyncio.create_task(made.call("echo"))
    await asyncio.sleep(0)
    task = asyncio.create_task(made.servers.serve())
    assert await call == "echo {}"
    task.cancel()
    await asyncio.wait([task])


async def test_a_call_that_runs_when_the_server_ends_has_an_unknown_outcome() -> None:
    fake = stuck()
    async with served(fake) as it:
        call = asyncio.create_task(it.refused("slow"))
        await fake.until(lambda: fake.running == ["slow"])
        fake.hear("lost", "it ended")
        assert "the outcome is unknown" in await call


async def test_a_server_that_is_never_ready_is_given_up() -> None:
    fake = FakeServer("echo")
    fake.mute = True
    async with served(fake, start_timeout=5) as it:
        await it.clock.advance(5.0)
        assert it.server.failure == "it was not ready within 5 seconds"


async def test_what_breaks_costs_its_own_call() -> None:
    async with served(FakeServer("breaks", "refuses", "echo")) as it:
        assert "LookupError" in await it.refused("breaks")
        assert await it.refused("refuses") == "no"
        assert await it.call("echo") == "echo {}"


async def test_a_list_that_changes_is_fetched_again_but_not_all_the_time() -> None:
    fake = FakeServer("echo")
    async with served(fake) as it:
        fake.tools = FakeServer("other", "echo").tools
        for _ in range(1_000):
            fake.hear("changed", "")
        assert it.server._queue.qsize() == 1
        await it.clock.settle()
        assert it.toolbox.offer(["demo_echo"], ANYBODY, 10**6).names == ["demo_echo", "demo_other"]
        assert fake.lists == 2
        await it.clock.advance(10.0)
        assert fake.lists <= 3
        fake.tools = FakeServer("echo").tools
        fake.hear("changed", "")
        await it.clock.settle()
        offer = it.toolbox.offer(["demo_echo", "demo_other"], ANYBODY, 10**6)
        assert (offer.names, len(offer.schemas)) == (["demo_echo"], 2)


async def test_news_of_an_earlier_connection_are_not_heard() -> None:
    fake = FakeServer("echo")
    async with served(fake) as it:
        earlier: Callable[[Any, str], None] = fake.hear
        fake.hear("lost", "it ended")
        await it.clock.advance(1.0)
        earlier("lost", "it ended")
        await it.clock.settle()
        assert it.server.ready


async def test_a_reason_holds_no_secret_and_is_bounded() -> None:
    fake = FakeServer("echo")
    fake.failures = [ExceptionGroup("many", [OSError("sk-secret " + "x" * 10_000)])]
    async with served(fake) as it:
        assert it.server.failure.startswith("OSError: [hidden] xxx")
        assert len(it.server.failure) == 300


async def test_hints_are_believed_where_the_operator_says_so() -> None:
    for trust in (True, False):
        async with served(FakeServer("echo"), trust=trust) as it:
            tool = it.toolbox.offer((), ANYBODY, 10**6).get("demo_echo")
            assert isinstance(tool, McpTool)
            assert (tool.read_only, tool.idempotent) == (trust, trust)


async def test_only_the_named_tools_are_used() -> None:
    async with served(FakeServer("a", "b", "c"), only=["b", "gone"], ask=["b"]) as it:
        assert it.names == ["demo_b"]


async def test_a_person_is_asked_with_everything_in_sight() -> None:
    async with served(FakeServer("delete", "look"), ask=["delete"]) as it:
        offer = it.toolbox.offer((), ANYBODY, 10**6)
        delete = offer.get("demo_delete")
        assert isinstance(delete, AskedMcpTool)
        assert not isinstance(offer.get("demo_look"), AskedMcpTool)
        assert delete.question({"path": "/tmp/\u202ex"}) == ("Let demo do delete?", '{"path": "/tmp/‹U+202E›x"}')
        with pytest.raises(ToolError):
            delete.question({"path": "x" * 2_000})


async def test_tools_for_admins_alone_ask_nobody() -> None:
    async with served(FakeServer("look"), admins_only=True) as it:
        look = it.toolbox.offer((), ANYBODY, 10**6).get("demo_look")
        assert isinstance(look, AskedMcpTool)
        assert look.admins_only
        assert look.question({}) is None


async def test_too_many_calls_are_refused() -> None:
    fake = stuck()
    async with served(fake) as it:
        calls = [asyncio.create_task(it.call("slow")) for _ in range(200)]
        await it.clock.settle()
        assert "is too busy" in await it.refused("slow")
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)


def test_of_an_address_only_scheme_host_and_port_are_shown() -> None:
    settings = McpServerSettings(url="https://me:pw@mcp.example.com:8443/s/key/mcp?k=1")
    assert settings.place == "https://mcp.example.com:8443"
    told = "from 'HTTP://MCP.example.com/s/key/mcp' to https://me:pw@www.example.com/s/key/?k=1 it moved"
    assert settings.hidden(told) == "from 'HTTP://MCP.example.com' to https://www.example.com it moved"
    assert McpServerSettings(command=("x",)).hidden(told) == told


@pytest.mark.parametrize(
    ("command", "args", "shown"),
    [
        (["npx", "-y", "@acme/server-git"], [], "npx -y @acme/server-git"),
        (["npx", "-y", "@acme/server-git", "--token", "s3cr3t-value"], [], "npx -y @acme/server-git …"),
        (["/opt/srv1/run.py", "-v"], ["postgres://me:pw@db/x"], "/opt/srv1/run.py -v …"),
        (["server"], ["API_KEY=abc"], "server …"),
        (["server"], ["Zx81kq02mmP"], "server …"),
    ],
)
def test_of_a_program_arguments_are_shown_up_to_the_first_that_may_hold_a_value(
    command: list[str], args: list[str], shown: str
) -> None:
    assert McpServerSettings(command=command, args=args).place == shown


def test_the_settings_of_a_server_show_what_check_shows() -> None:
    servers = {
        "a": McpServerSettings(command=("srv", "--key", "s3cr3t-a"), args=("s3cr3t-b",), env={"K": "s3cr3t-c"}),
        "b": McpServerSettings(url="https://mcp.example.com/s3cr3t-d/mcp?k=s3cr3t-e", headers={"A": "s3cr3t-f"}),
    }
    told = dict(shown(Config(tools=ToolSettings(mcp=servers)), str))
    assert told["tools.mcp.a.command"] == servers["a"].place == "srv …"
    assert told["tools.mcp.b.url"] == servers["b"].place == "https://mcp.example.com"
    assert "s3cr3t" not in str(told)
    setup = SimpleNamespace(config=Config(tools=ToolSettings(mcp=servers)))
    assert "s3cr3t" not in str(value_of(setup, "tools.mcp"))  # type: ignore[arg-type]


# Lists that are kept


async def test_a_start_offers_what_the_last_one_did(tmp_path: Path) -> None:
    async with served(FakeServer("echo", "look"), tmp_path / "mcp", only=["echo"]) as first:
        await first.fake.until(lambda: first.names == ["demo_echo"])
        await eventually(lambda: known_list(tmp_path / "mcp", "demo", "x").tools)
    second = Served(FakeServer("other"), {}, tmp_path / "mcp")
    assert second.names == ["demo_echo", "demo_look"]
    elsewhere = Served(FakeServer("other"), {"args": ("-v",), "command": ("y",)}, tmp_path / "mcp")
    assert elsewhere.names == []


@pytest.mark.parametrize("text", ["", "null", "[]", "{", '{"place": "x"}', '{"place": "x", "tools": [{"name": 1}]}'])
def test_a_list_that_is_damaged_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "demo.json").write_text(text)
    assert known_list(tmp_path, "demo", "x").tools == []
