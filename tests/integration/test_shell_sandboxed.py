"""The shell tool in a sandbox: what needs a yes, where it works, which limits end it, and that all ends with it."""

from __future__ import annotations

import asyncio
import os
import sys
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from gateway.agent.background import BackgroundCommands
from gateway.agent.tools.base import ToolContext, ToolHost
from gateway.agent.tools.shell import TOOLS, FolderSettings, SandboxedShell, ShellSettings, ShellTool, WayOut
from gateway.agent.workspace.folders import Workspaces, WorkspaceSettings
from gateway.domain.chat import SessionKey
from gateway.domain.session import Session
from gateway.runtime import sandbox
from gateway.runtime.clock import Clock, SystemClock
from gateway.runtime.errors import ConfigError, ToolError
from gateway.runtime.sandbox import Lent, Limits, Sandbox
from tests.support.fakes import ManualClock
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("bwrap")


class NoFiles:
    """The files of a conversation in which nothing was sent."""

    async def listed(self, limit: int) -> list[Any]:
        return []


def context(chat: str = "c") -> ToolContext:
    key = SessionKey(platform="test", chat=chat)
    session = Session(id="s", key=key, chat_type="direct", parent_id=None, started_at=0.0, model="m", system_prompt="")
    none: Any = None
    files: Any = NoFiles()
    parts = dict.fromkeys(("recall", "around", "unindexed", "memory", "reminders"), none)
    return ToolContext(session=session, clock=SystemClock(), files=files, **parts)


def commands(home: Path) -> BackgroundCommands:
    none: Any = None
    return BackgroundCommands(root=home / "background", jobs=none, clock=SystemClock(), redact=str, wake=none)


def tool(home: Path, *lent: Lent, skills: Sequence[tuple[str, Path]] = (), **settings: Any) -> SandboxedShell:
    return SandboxedShell(
        workspaces=Workspaces(home / "workspaces", WorkspaceSettings(**settings)),
        folders=lent,
        skills=lambda: skills,
        reach=WayOut(clock=SystemClock()),
        background=commands(home),
        admins_only=True,
        seconds=60.0,
        clock=SystemClock(),
        redact=lambda text: text.replace("s3cret", "[REDACTED]"),
    )


async def run(home: Path, command: str, *lent: Lent, chat: str = "c", **settings: Any) -> str:
    return await tool(home, *lent, **settings).run({"command": command}, context(chat))


async def in_it(folder: Path, command: str, limits: Limits, clock: Clock | None = None) -> tuple[int, str, str]:
    box = Sandbox(folder=folder, limits=limits)
    ended = await sandbox.run(box, ["/bin/sh", "-c", command], seconds=60.0, clock=clock or SystemClock())
    return ended.code, ended.excess, ended.output


# -- what it does -------------------------------------------------------------------------------


async def test_it_needs_no_yes_and_tells_the_end_and_both_streams(tmp_path: Path) -> None:
    command = {"command": "echo out; echo err >&2; exit 3"}
    assert tool(tmp_path).question(command) is None
    assert not tool(tmp_path).admins_only
    assert await tool(tmp_path).run(command, context()) == "exit code 3\nout\nerr"
    assert await run(tmp_path, "true") == "exit code 0, and it printed nothing"
    assert await run(tmp_path, "printf '\\n\\n.\\nx'") == "exit code 0\n\n\n.\nx"
    assert await run(tmp_path, "kill -9 $$") == "ended by signal 9, and it printed nothing"
    assert await run(tmp_path, "echo s3cret") == "exit code 0\n[REDACTED]"


async def test_it_works_in_the_workspace_of_its_conversation(tmp_path: Path) -> None:
    assert await run(tmp_path, "pwd; echo $HOME; echo kept > note") == "exit code 0\n/workspace\n/workspace"
    assert await run(tmp_path, "cat note") == "exit code 0\nkept"
    assert (await run(tmp_path, "cat note", chat="other")).startswith("exit code 1")
    folder = Workspaces(tmp_path / "workspaces").folder(SessionKey(platform="test", chat="c"))
    assert [each.name for each in folder.iterdir()] == ["note"]


async def test_what_a_command_changed_can_be_taken_back(tmp_path: Path) -> None:
    await run(tmp_path, "echo one > a; echo two > b")
    workspace = tool(tmp_path).workspaces.of(SessionKey(platform="test", chat="c"))
    assert workspace.undo("u") is not None
    assert await run(tmp_path, "ls") == "exit code 0, and it printed nothing"


async def test_it_has_the_variables_of_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    said = await run(tmp_path, "env; cat /proc/1/environ")
    assert {line.partition("=")[0] for line in said.splitlines()[1:-1]} == {"PATH", "LANG", "HOME", "TZ", "PWD"}
    assert "sk-secret" not in said


@pytest.mark.parametrize(
    "command",
    [
        "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one && git log --format=%s",
        "python3 -c 'import json, ssl, sqlite3, subprocess; print(\"one\")'",
        "printf '#include <stdio.h>\\nint main(){puts(\"one\");}' > a.c && cc a.c -o a && ./a",
        "(sleep 0.1; echo one) & wait",
        "bash -c 'cat <(echo one)'",
        "whoami | sed s/user/one/",
        "mktemp >/dev/null && echo one | sort",
    ],
)
async def test_programs_work_in_it(tmp_path: Path, command: str) -> None:
    assert await run(tmp_path, command) == "exit code 0\none"


async def test_skills_are_shown_and_stay_as_they_are(tmp_path: Path) -> None:
    skill = tmp_path / "skills/tea"
    skill.mkdir(parents=True)
    (skill / "brew.sh").write_text("echo brewed")
    shell = tool(tmp_path, skills=[("tea", skill), ("gone", tmp_path / "gone")])
    command = "sh /skills/tea/brew.sh; echo x > /skills/tea/brew.sh; ls /skills"
    said = await shell.run({"command": command}, context())
    assert said.splitlines()[1] == "brewed"
    assert said.splitlines()[-1] == "tea"
    assert (skill / "brew.sh").read_text() == "echo brewed"


# -- folders of the machine ---------------------------------------------------------------------


async def test_a_lent_folder_is_written_after_a_yes_by_a_command_that_names_it(tmp_path: Path) -> None:
    site, notes = tmp_path / "site", tmp_path / "notes"
    site.mkdir()
    notes.mkdir()
    (notes / "n").write_text("noted")
    lent = Lent(name="site", path=site, write=True), Lent(name="notes", path=notes)
    shell = tool(tmp_path, *lent)
    assert shell.admins_only
    assert "/folders/site (writing is asked for), /folders/notes" in shell.description
    assert shell.question({"command": "cat /folders/notes/n"}) is None
    assert shell.question({"command": "ls /folders/sites"}) is None
    named = "echo <p> > /folders/site/index.html".replace("<p>", "p")
    assert shell.question({"command": named}) == ("Run this command, which may write in site?", named)
    assert await run(tmp_path, "cat /folders/notes/n", *lent) == "exit code 0\nnoted"
    assert await run(tmp_path, named, *lent) == "exit code 0, and it printed nothing"
    assert (site / "index.html").read_text() == "p\n"
    for around in ("cd /folders/s*; echo x > y", "cd /folders; echo x > site/y", "echo x > /folders//site/y"):
        assert shell.question({"command": around}) is None
        assert "Read-only file system" in await run(tmp_path, around, *lent)
    assert "Read-only file system" in await run(tmp_path, "echo x > /folders/notes/n", *lent)
    assert [each.name for each in site.iterdir()] == ["index.html"]


async def test_a_command_that_is_shown_must_be_readable(tmp_path: Path) -> None:
    long = "true #" + "x" * 2_000
    assert tool(tmp_path).question({"command": long}) is None
    assert await run(tmp_path, long) == "exit code 0, and it printed nothing"
    shell = tool(tmp_path, Lent(name="site", path=tmp_path, write=True))
    with pytest.raises(ToolError, match="at most 1,500 characters"):
        shell.question({"command": f"ls /folders/site {long}"})
    with pytest.raises(ToolError, match="at most 100,000 bytes"):
        shell.question({"command": "x" * 100_001})


def made(home: Path, **settings: Any) -> SandboxedShell | ShellTool | None:
    host = ToolHost(
        sections=[ShellSettings(**settings)],
        clock=SystemClock(),
        redact=str,
        home=home / "h",
        own=[home / "h"],
        background=commands(home),
    )
    return TOOLS[0](host)


@pytest.mark.parametrize(
    ("path", "write"),
    [
        ("{home}", False),
        ("{home}/h", False),
        ("{home}/h/skills", False),
        ("{home}/to", False),
        ("/", False),
        ("{code}", True),
        ("{code}/gateway/agent", True),
        ("/run", False),
        ("/proc/self", False),
        ("/dev", True),
    ],
)
def test_what_is_legatos_or_the_kernels_is_not_lent(tmp_path: Path, path: str, write: bool) -> None:
    (tmp_path / "h").mkdir()
    (tmp_path / "to").symlink_to("h")
    path = path.format(home=tmp_path, code=Path(sandbox.__file__).parents[2])
    with pytest.raises(ConfigError, match=r"tools\.shell\.folders\.x\.path .*: lend another folder"):
        made(tmp_path, folders={"x": FolderSettings(path=path, write=write)})


def test_a_folder_in_one_that_is_written_is_not_lent(tmp_path: Path) -> None:
    """A command could put a link in its place, which the next sandbox would follow."""
    a, b = FolderSettings(path="/srv/a", write=True), FolderSettings(path="/srv/a/b")
    with pytest.raises(ConfigError, match="lent for writing"):
        made(tmp_path, folders={"a": a, "b": b})


def test_there_is_none_where_it_would_see_legatos_own(tmp_path: Path) -> None:
    host = ToolHost(
        clock=SystemClock(), redact=str, home=tmp_path, own=[Path("/usr/local/legato")], background=commands(tmp_path)
    )
    with pytest.raises(ConfigError, match=r"sees /usr, and so /usr/local/legato: move it, or switch off tools\.shell$"):
        TOOLS[0](host)


def test_it_is_on_where_a_sandbox_holds_and_asked_for_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(made(tmp_path), SandboxedShell)
    assert isinstance(made(tmp_path, enabled=True), SandboxedShell)
    assert made(tmp_path, enabled=False) is None
    assert made(tmp_path, sandbox="never") is None
    assert isinstance(made(tmp_path, enabled=True, sandbox="never"), ShellTool)
    monkeypatch.setattr(sandbox, "why_not", lambda: "it is not there")
    assert made(tmp_path) is None
    assert isinstance(made(tmp_path, enabled=True), ShellTool)


# -- limits -------------------------------------------------------------------------------------


async def test_a_workspace_that_grows_too_large_ends_its_command(tmp_path: Path) -> None:
    said = await run(tmp_path, "head -c 3000000 /dev/zero > big; sleep 60", most_mb=1)
    assert said.startswith("ended, because the workspace may not grow beyond 1 MB or 20,000 files: remove some")
    assert "The workspace is full" in said
    assert await run(tmp_path, "sleep 1; rm big; sleep 1; echo room", most_mb=1) == "exit code 0\nroom"


async def test_too_many_files_end_their_command(tmp_path: Path) -> None:
    said = await run(tmp_path, "i=0; while :; do : > f$((i+=1)); done", most_files=50)
    assert said.startswith("ended, because the workspace may not grow beyond 500 MB or 50 files")


ENDED = {
    "many processes": (
        Limits(processes=12),
        "for i in $(seq 30); do sleep 60 & done; sleep 60",
        "more than 12 processes",
    ),
    "many threads": (
        Limits(processes=12),
        "python3 -c 'import threading as t, time\nfor i in range(30): t.Thread(target=time.sleep, args=(60,)).start()'",
        "more than 12 processes and threads",
    ),
    "memory of several": (
        Limits(memory=100_000_000),
        "for i in 1 2 3; do python3 -c 'import time; x = b\"a\" * 60_000_000; time.sleep(60)' & done; wait",
        "took more than 0.1 GB of memory",
    ),
    "shared memory": (
        Limits(memory=100_000_000),
        'python3 -c \'import mmap, time; x = mmap.mmap(-1, 200_000_000); x.write(b"a" * 60_000_000); '
        'x.write(b"a" * 60_000_000); time.sleep(60)\'',
        "took more than 0.1 GB of memory",
    ),
    "hidden files": (
        Limits(),
        'python3 -c \'import os\nfor i in range(30): os.mkdir("d" * 200); os.chdir("d" * 200)\'; sleep 60',
        "could not be counted",
    ),
    "files in hidden folders": (
        Limits(files=20),
        "mkdir -p .a/.b; for i in $(seq 30); do : > .a/.b/$i; done; sleep 60",
        "20 files",
    ),
}


@pytest.mark.parametrize("name", ENDED)
async def test_all_together_are_kept_to_a_limit(tmp_path: Path, name: str) -> None:
    limits, command, why = ENDED[name]
    _, excess, _ = await in_it(tmp_path, command, limits)
    assert why in excess


HELD = {
    "processes": (
        Limits(processes=300),
        "python3 -c 'import os, time\nfor i in range(2000):\n    if os.fork() == 0: time.sleep(60); os._exit(0)'",
        "Resource temporarily unavailable",
    ),
    "memory of one": (Limits(memory=300_000_000), "python3 -c 'bytearray(400_000_000)'", "MemoryError"),
    "a file": (Limits(file=1_000_000), "head -c 2000000 /dev/zero > f", ""),
    "a file that is removed": (Limits(file=1_000_000), "exec 3>f; rm f; head -c 2000000 /dev/zero >&3; exit $?", ""),
    "open files": (
        Limits(open_files=30),
        "python3 -c 'x = [open(\"/dev/null\") for i in range(40)]'",
        "Too many open files",
    ),
    "/tmp": (Limits(scratch=1_000_000), "head -c 2000000 /dev/zero > /tmp/f", "No space left on device"),
    "/dev/shm": (Limits(shared=1_000_000), "head -c 2000000 /dev/zero > /dev/shm/f", "No space left on device"),
    "processor time": (Limits(cpu=1), "while :; do :; done", ""),
    "locked memory": (
        Limits(),
        "python3 -c 'import ctypes, mmap\nx = mmap.mmap(-1, 100_000_000)\n"
        "assert ctypes.CDLL(None).mlock(ctypes.byref(ctypes.c_char.from_buffer(x)), 100_000_000) == 0'",
        "AssertionError",
    ),
}


@pytest.mark.parametrize("name", HELD)
async def test_the_kernel_keeps_each_to_a_limit(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    limits, command, said = HELD[name]
    monkeypatch.setattr(sandbox, "excess", lambda *_: "")
    if name == "processes":
        monkeypatch.setattr(sandbox, "_MOST_OF_ROOT", 300)
        sandbox._group.cache_clear()
    code, _, output = await in_it(tmp_path, command, limits)
    sandbox._group.cache_clear()
    assert code != 0
    assert said in output
    assert sum(each.stat().st_size for each in os.scandir(tmp_path)) <= limits.file


async def test_a_flood_of_output_takes_no_memory(tmp_path: Path) -> None:
    said = await run(tmp_path, "yes flood | head -c 100000000")
    assert "bytes left out …]" in said
    assert len(said) < 30_000


async def test_those_that_nobody_waits_for_are_buried(tmp_path: Path) -> None:
    left = "for i in $(seq 20); do (sh -c 'exit 0' & ); done; sleep 1"
    assert await run(tmp_path, f"{left}; grep -l '^State:.Z' /proc/[0-9]*/status | wc -l") == "exit code 0\n0"


# -- the end ------------------------------------------------------------------------------------

# Lives on, in a session of its own, deaf to signals.
DEAF = "setsid sh -c 'trap \"\" TERM HUP INT; while :; do sleep 1; done; : {mark}' >/dev/null 2>&1 </dev/null & "


def living(mark: str) -> list[int]:
    """The processes that have this mark among their arguments."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if mark.encode() in each.read_bytes():
                found.append(int(each.parent.name))
    return found


@pytest.fixture
def mark() -> str:
    """A mark that nobody else has."""
    return f"mark-{uuid.uuid4().hex}"


async def gone(mark: str) -> None:
    await eventually(lambda: not living(mark))


async def test_what_it_leaves_behind_ends_with_it(tmp_path: Path, mark: str) -> None:
    await in_it(tmp_path, f"{DEAF.format(mark=mark)} sleep 0.1", Limits())
    await gone(mark)


async def test_it_ends_with_its_time(tmp_path: Path, mark: str) -> None:
    clock = ManualClock()
    command = f"echo early; {DEAF.format(mark=mark)} kill -STOP 1; touch begun; sleep 300"
    running = asyncio.create_task(in_it(tmp_path, command, Limits(), clock))
    await eventually((tmp_path / "begun").exists)
    await clock.advance(60)
    assert (await running)[2] == "early"
    await gone(mark)


async def test_it_ends_with_its_turn(tmp_path: Path, mark: str) -> None:
    running = asyncio.create_task(in_it(tmp_path, f"{DEAF.format(mark=mark)} touch begun; sleep 300", Limits()))
    await eventually((tmp_path / "begun").exists)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await gone(mark)


STARTER = """
import asyncio, sys
from pathlib import Path
from gateway.runtime import sandbox
from gateway.runtime.clock import SystemClock
box = sandbox.Sandbox(folder=Path(sys.argv[1]))
asyncio.run(sandbox.run(box, ["/bin/sh", "-c", sys.argv[2]], seconds=300, clock=SystemClock()))
"""


@pytest.mark.parametrize("processes", [1, 2, 3, 4])
async def test_a_gateway_that_is_killed_leaves_no_process(tmp_path: Path, mark: str, processes: int) -> None:
    """Whatever the sandbox was doing then: also while it is set up, and the kernel ends nothing of it by itself."""
    command = f": {mark}; sleep 300 & sleep 300; :"
    gateway = await asyncio.create_subprocess_exec(sys.executable, "-c", STARTER, str(tmp_path), command)
    await eventually(lambda: len(living(mark)) >= processes)
    gateway.kill()
    await gateway.wait()
    await gone(mark)


async def test_nothing_of_the_host_is_run_for_it(tmp_path: Path) -> None:
    """Programs that a command left in the workspace under the names of those that make the sandbox stay unused."""
    trap = "printf '#!/bin/sh\\ntouch trapped; exit 9\\n'"
    await run(tmp_path, f"for each in sh bwrap prlimit env git python3 echo; do {trap} > $each; chmod +x $each; done")
    await run(tmp_path, "mkdir -p .git/hooks && printf '[core]\\n\\tfsmonitor = ./git\\n' > .git/config")
    await run(tmp_path, "echo 'int x;' > x.c && cc -shared -o x.so x.c; echo 'export LD_PRELOAD=$HOME/x.so' > .profile")
    assert await run(tmp_path, "echo 'raise SystemExit(9)' > sitecustomize.py; env | grep -c LD_") == "exit code 1\n0"
    assert await run(tmp_path, "test -e trapped || /bin/echo fine") == "exit code 0\nfine"
