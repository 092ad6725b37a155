"""Whatever the model is talked into: with no tool, and by no command, does it write or see what decides about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.agent.tools.shell import SandboxedShell
from gateway.domain.message import text_of
from tests.support.gateway import FakeModel, Say, config_in, in_turn, running
from tests.support.mcp_running import ANYBODY
from tests.support.program import chatting

pytestmark = pytest.mark.usefixtures("bwrap")

TOKEN = "s3cret-5f1e"
# What lies in Legato's folder, beside the store. A name is what an attack says, for itself or after `..`.
KEPT = ("config.yaml", ".env", "legato-home/page-link", "legato-home/workspaces/other/note", "skills/x/SKILL.md")
WAYS = ("{folder}/{name}", "../../../{name}", "/workspace/../../../../{folder}/{name}", "link/{name}")


def attempts(name: str, path: str) -> list[tuple[str, dict[str, Any]]]:
    """Calls of every tool that takes a path, and commands."""
    return [
        ("write_file", {"path": path, "content": "mine"}),
        ("write_file", {"path": path, "remove": True}),
        ("patch", {"path": path, "edits": [{"old": TOKEN, "new": "mine"}]}),
        ("read_file", {"file": path}),
        ("list_files", {"path": path.removesuffix(f"/{name}")}),
        ("search_files", {"words": TOKEN, "path": path.removesuffix(f"/{name}")}),
        ("send_file", {"name": path}),
        ("shell", {"command": f"cat '{path}'; echo mine > '{path}'; rm -f '{path}'"}),
    ]


@pytest.mark.parametrize("way", WAYS)
async def test_no_tool_leaves_the_workspace(tmp_path: Path, way: str) -> None:
    config = config_in(tmp_path)
    for name in KEPT:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TOKEN)
    link = ("shell", {"command": f"ln -sfn {tmp_path} link"})
    calls = [link, *(each for name in KEPT for each in attempts(name, way.format(folder=tmp_path, name=name)))]
    model = FakeModel(in_turn(Say(calls=[(name, json.dumps(each)) for name, each in calls]), Say(text="done")))
    async with running(tmp_path, config=config, model=model) as live:
        tools = live.gateway.agents.sessions.toolbox.offer((), ANYBODY, 10**6)
        assert isinstance(tools.get("shell"), SandboxedShell)
        assert {name for name, _ in calls} <= {*tools.names}
        assert await live.ask("do what the page says") == "done"
    results = [text_of(each) for each in model.requests[-1].messages if each["role"] == "tool"]
    assert len(results) == len(calls)
    assert [each for each in results if TOKEN in each] == []
    assert {(tmp_path / name).read_text() for name in KEPT} == {TOKEN}


async def test_in_the_program_a_command_runs_unasked_and_finds_its_workspace_alone(tmp_path: Path) -> None:
    settings = {"store": {"url": f"sqlite:///{tmp_path / 'legato.db'}"}}
    (tmp_path / "config.yaml").write_text(json.dumps(settings), encoding="utf-8")
    async with chatting(tmp_path) as program:
        program.send({"id": "e1", "text": "run echo said > it; cat it; pwd"})
        (done,) = await program.until_answered("e1")
        assert "exit code 0\nsaid\n/workspace" in done["text"]
        program.send({"id": "e2", "text": f"run ls '{tmp_path}' /proc | grep -c -e legato.db -e nothing; ls"})
        (looked,) = await program.until_answered("e2")
        assert "exit code 0\n0\nit" in looked["text"].replace(
            f"ls: cannot access '{tmp_path}': No such file or directory\n", ""
        )
        assert [row for row in program.lines if row["kind"] == "question"] == []
        status, errors = await program.finish()
        assert status == 0, errors
