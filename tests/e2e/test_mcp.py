"""MCP servers as a person meets them: through the whole gateway, with real server processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.app.config import Config
from gateway.app.config.models import ToolSettings
from gateway.domain.adapter import Limits
from gateway.domain.message import text_of
from gateway.people.access import AccessSettings
from gateway.providers.plugin import ModelSettings as ModelEntry
from tests.support.gateway import FakeAdapter, FakeModel, KillAt, Live, Say, config_in, in_turn, running
from tests.support.mcp_running import pids_in, raw
from tests.support.waiting import eventually


def config(folder: Path, **servers: Any) -> Config:
    """The defaults with these servers."""
    return config_in(
        folder, tools=ToolSettings(mcp=servers), access=AccessSettings(allow=("fake:*",), admins=("fake:u",))
    )


def wants(tool: str, **arguments: Any) -> Say:
    """The model calls a tool."""
    return Say(calls=[(tool, json.dumps(arguments))])


async def ready(live: Live) -> None:
    """Return when all servers can be used."""
    await eventually(lambda: all(server.ready for server in live.gateway.agents.mcp.servers))


def results(model: FakeModel) -> list[str]:
    """The results of tools in the model's last prompt."""
    return [text_of(message) for message in model.requests[-1].messages if message["role"] == "tool"]


async def test_the_model_calls_a_tool_of_a_server(tmp_path: Path) -> None:
    model = FakeModel(in_turn(wants("demo_echo", text="from afar"), Say(text="done")))
    async with running(tmp_path, config=config(tmp_path, demo=raw()), model=model) as live:
        await ready(live)
        assert await live.ask("hello") == "done"
        assert results(model) == ["from afar"]


async def test_a_picture_is_kept_and_shown_to_a_model_that_sees(tmp_path: Path) -> None:
    model = FakeModel(in_turn(wants("demo_picture"), wants("read_file"), Say(text="done")))
    seeing = config(tmp_path, demo=raw("tool:picture")).replace(
        model=ModelEntry(provider="offline", name="fake", pictures=True, context_length=100_000)
    )
    async with running(tmp_path, config=seeing, model=model) as live:
        await ready(live)
        assert await live.ask("draw a dot") == "done"
        (result,) = (message for message in model.requests[1].messages if message["role"] == "tool")
        text, picture = result["content"]
        assert text["text"].startswith("a dot\n\n[picture image.png, 70 bytes: kept in this conversation")
        assert picture["image_url"]["url"].startswith("data:image/png;base64,iVBOR")
        assert '"image.png"' in results(model)[1]


async def test_the_tools_of_the_last_start_are_on_offer_at_once(tmp_path: Path) -> None:
    settings = config(tmp_path, demo=raw())
    async with running(tmp_path, config=settings) as live:
        await ready(live)
    model = FakeModel(in_turn(wants("demo_echo", text="no waiting"), Say(text="done")))
    async with running(tmp_path, config=settings, model=model) as live:
        assert await live.ask("hello") == "done"
        assert results(model) == ["no waiting"]


async def test_the_first_turn_after_the_very_first_start_has_the_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.agent.mcp.servers._PATIENCE", 60.0)
    model = FakeModel(in_turn(wants("demo_echo", text="at once"), Say(text="done")))
    async with running(tmp_path, config=config(tmp_path, demo=raw(), gone=raw("exits")), model=model) as live:
        assert await live.ask("hello") == "done"
        assert results(model) == ["at once"]


async def test_a_server_that_never_starts_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.agent.mcp.servers._PATIENCE", 0.05)
    noted = tmp_path / "pids"
    servers = {"mute": raw("mute", env={"RAW_PIDS": str(noted)}), "gone": raw("exits")}
    adapter = FakeAdapter(limits=Limits())
    async with running(tmp_path, config=config(tmp_path, **servers), adapter=adapter) as live:
        assert await live.ask("hello") == "echo: hello"
        await eventually(lambda: pids_in(noted))
        await live.gateway.agents.mcp.servers[1].settled.wait()
        status = await live.ask("/status")
        assert "MCP server mute is being started." in status
        assert "MCP server gone is not usable: it ended with exit code 9" in status
        assert "MCP server" not in await live.ask("/status", user="somebody")


async def test_a_call_that_a_crash_interrupts_is_not_run_again(tmp_path: Path) -> None:
    settings = config(tmp_path, demo=raw("tool:heard"))
    model = FakeModel(in_turn(wants("demo_echo", text="once"), wants("demo_heard"), Say(text="done")))
    adapter = FakeAdapter()
    kill = KillAt("turn.tools_ran", 0)
    async with running(tmp_path, config=settings, model=model, adapter=adapter, points=kill) as live:
        await ready(live)
        kill.arm()
        event = await live.tell("go")
        await kill.passed.wait()
    model = FakeModel(in_turn(wants("demo_heard"), Say(text="done")))
    async with running(tmp_path, config=settings, model=model) as live:
        await live.adapter.until(lambda: live.adapter.answer_to(event) is not None)
        await ready(live)
        unknown = results(model)[0]
        assert "its outcome is unknown" in unknown


async def test_a_question_that_nobody_can_answer_names_the_setting_of_its_server(tmp_path: Path) -> None:
    model = FakeModel(in_turn(wants("demo_echo", text="from afar"), Say(text="I needed a yes.")))
    async with running(tmp_path, config=config(tmp_path, demo=raw(ask=["*"])), model=model) as live:
        await ready(live)
        live.gateway.readers.reception.approvals.nobody_is_left()
        said = await live.ask("hello")
    assert said.startswith("I needed a yes.\n\nNobody was there to say yes")
    assert "`tools.mcp.demo.ask`" in said
    assert "tools.shell" not in said
