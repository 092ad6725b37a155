"""SIGKILL of the real program while a command runs in the background: it is not run again, its conversation hears of it
once, and no process is left."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gateway.agent.background import RESTARTED
from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Hang, Reply
from tests.support.killed import one_life, store_of
from tests.support.program import KEY, Program, write_config
from tests.support.waiting import eventually

pytest_plugins = ["tests.support.redis_server"]
pytestmark = pytest.mark.usefixtures("bwrap")

RUNS, WOKEN = "it runs", "I was woken"
BEGUN = "echo begun >> begun; sleep {mark}"


class World:
    """The model, which kills the program at the call that it is told to, or instead of its end."""

    def __init__(self, command: str) -> None:
        self.command = command
        self.program: Program | None = None
        self.left = 0
        self.heard: list[str] = []

    def __call__(self, body: Mapping[str, Any]) -> Reply | Hang:
        self.left -= 1
        last = body["messages"][-1]
        if self.left == 0 and self.program is not None:
            self.program.process.send_signal(signal.SIGKILL)
            return Hang()
        if last["role"] == "tool" and last["content"].startswith("command 1 "):
            return Reply(tool_calls=[("shell", {"command": "until [ -s begun ]; do sleep 0.01; done"})])
        if last["role"] == "tool":
            return Reply(text=RUNS)
        if last["content"].startswith("[In the background"):
            self.heard.append(last["content"])
            return Reply(text=WOKEN)
        return Reply(tool_calls=[("shell", {"command": self.command, "background": True})])


def running(mark: str) -> list[str]:
    """The processes of the command."""
    found = []
    for each in Path("/proc").iterdir():
        try:
            if each.name.isdigit() and mark.encode() in (each / "cmdline").read_bytes():
                found.append(each.name)
        except OSError:
            pass  # it has ended meanwhile
    return found


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
@pytest.mark.parametrize("at", [1, 3, 4], ids=["before it", "while it runs", "while the conversation is told"])
async def test_whenever_it_is_killed_the_command_runs_once_and_is_told_once(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str, at: int
) -> None:
    url, let_die = store_of(kind, tmp_path, request)
    mark = f"{200_000 + os.getpid()}.{at}"
    world, shown = World(BEGUN.format(mark=mark)), dict[str, str]()
    async with LlmServer(world, api_key=KEY) as server:
        write_config(tmp_path, server.url, store={"url": url}, tools={"offered": {"*": ["shell"]}})
        for life in range(4):
            world.left = at if life == 0 or (at == 4 and life == 1) else 0
            rows = await one_life(tmp_path, "begin it", partial(setattr, world, "program"))
            await eventually(lambda: running(mark) == [])
            shown |= {row["id"]: row["text"] for row in rows}
            let_die()
    replies = [text for text in shown.values() if not text.startswith("I go on by myself")]
    assert replies == [RUNS, WOKEN]
    assert all(RESTARTED in text for text in world.heard)
    (folder,) = [each for each in (tmp_path / "legato-home" / "workspaces").iterdir() if not each.name.startswith(".")]
    assert (folder / "begun").read_text() == "begun\n"
