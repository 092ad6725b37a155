"""A gateway that is killed while commands run in sandboxes: no process of theirs is left, and the next one tells."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from gateway.agent.background import RESTARTED, BackgroundCommands
from gateway.domain.chat import SessionKey, Source
from gateway.runtime import sandbox
from gateway.runtime.clock import SystemClock
from gateway.runtime.tasks import Background
from tests.support.source_tree import ROOT
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("bwrap")

KEY = SessionKey(platform="test", chat="c")
VICTIM = """
import asyncio, sys
from pathlib import Path
from gateway.agent.background import BackgroundCommands
from gateway.domain.chat import SessionKey, Source
from gateway.runtime import sandbox
from gateway.runtime.clock import SystemClock
from gateway.runtime.proxy import ForwardProxy, led_out
from gateway.runtime.sandbox import Reach
from gateway.runtime.tasks import Background

home, clock = Path(sys.argv[1]), SystemClock()
command = ("/bin/sh", "-c", f"echo begun; setsid sleep {sys.argv[2]} & exec sleep {sys.argv[2]}")

async def main():
    async def never(*_): raise AssertionError

    async def work(output):
        async with ForwardProxy(clock=clock).open(Reach(everywhere=True)) as door:
            box, led = led_out(sandbox.Sandbox(folder=home), command, door)
            ended = await sandbox.run(box, led, seconds=1000, clock=clock, hear=output.add)
        return f"{ended.code}"

    kept = BackgroundCommands(root=home / "b", jobs=Background(), clock=clock, redact=str, wake=never)
    source = Source(platform="test", chat="c", chat_type="direct", user="u")
    await kept.begin(SessionKey(platform="test", chat="c"), source, "sleep", work)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def left(mark: str) -> list[int]:
    """The processes that name the mark as an argument of theirs."""
    found = []
    for each in Path("/proc").iterdir():
        try:
            if each.name.isdigit() and mark.encode() in (each / "cmdline").read_bytes():
                found.append(int(each.name))
        except OSError:
            pass  # it has ended meanwhile
    return found


@pytest.mark.parametrize("runs", [False, True])
async def test_nothing_is_left_of_a_gateway_that_is_killed(tmp_path: Path, runs: bool) -> None:
    """Killed while the sandbox is being set up, and while the command runs."""
    mark = f"{100_000 + os.getpid()}.{runs:d}"
    victim = await asyncio.create_subprocess_exec(sys.executable, "-c", VICTIM, str(tmp_path), mark, cwd=ROOT)
    folder = tmp_path / "b"
    await eventually(lambda: list(folder.glob("*/1.txt")))
    if runs:
        await eventually(lambda: len([pid for pid in left(mark) if b"sleep" in _first(pid)]) == 2)
    victim.send_signal(signal.SIGKILL)
    await victim.wait()
    await eventually(lambda: left(mark) == [], within=20.0)
    told: list[str] = []

    async def wake(key: SessionKey, source: Source, cause: str, what: str, text: str) -> None:
        told.append(text)

    after = BackgroundCommands(root=folder, jobs=Background(), clock=SystemClock(), redact=str, wake=wake)
    await after.recover()
    await after.recover()
    (text,) = told
    assert RESTARTED in text


@pytest.mark.parametrize("answers", [False, True])
async def test_a_command_waits_until_its_gateway_answers(tmp_path: Path, answers: bool) -> None:
    """The sandbox of a gateway that is just being killed can still write, but nobody answers it."""
    command = sandbox.argv(sandbox.Sandbox(folder=tmp_path), ["/bin/sh", "-c", "cat; touch ran"], answered=True)
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stderr=pipe, env={"PATH": os.defpath})
    assert process.stdin is not None
    assert process.stderr is not None
    assert await process.stderr.readline() == sandbox.STANDS.encode()
    if answers:
        process.stdin.write(b"\n")
        await process.wait()
    process.stdin.close()
    await process.wait()
    assert (tmp_path / "ran").exists() is answers


def _first(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]
    except OSError:
        return b""
