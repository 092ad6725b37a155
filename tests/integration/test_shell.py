"""The shell tool with a real shell: what runs unasked, what is shown, what ends it, what it may see."""

from __future__ import annotations

import asyncio
import os
import select
from pathlib import Path
from typing import Any, cast

import pytest

from gateway.agent.tools.base import ToolContext
from gateway.agent.tools.shell import ShellTool
from gateway.domain.chat import SessionKey
from gateway.domain.session import Session
from gateway.runtime.clock import Clock, SystemClock
from gateway.runtime.errors import ToolError
from tests.support.fakes import ManualClock
from tests.support.tools import called, fitting
from tests.support.waiting import eventually, written


def tool(folder: Path, *allow: str, secret: str = "", clock: Clock | None = None) -> ShellTool:
    def redact(text: str) -> str:
        return text.replace(secret, "[REDACTED]") if secret else text

    time = clock or SystemClock()
    return ShellTool(folder=folder, allow=allow, admins_only=True, seconds=60.0, clock=time, redact=redact)


def context(chat: str = "c") -> ToolContext:
    async def recall(words: str, limit: int) -> Any:
        return ()

    key = SessionKey(platform="test", chat=chat)
    session = Session(id="s", key=key, chat_type="direct", parent_id=None, started_at=0.0, model="m", system_prompt="")
    parts = dict.fromkeys(("around", "unindexed", "files", "memory", "reminders"), cast(Any, None))
    return ToolContext(session=session, clock=SystemClock(), recall=recall, **parts)


async def run(folder: Path, command: str, **how: Any) -> str:
    return await tool(folder, **how).run({"command": command}, context())


def test_every_command_is_shown_whole_before_it_runs(tmp_path: Path) -> None:
    assert tool(tmp_path).question({"command": "  ls -la /  "}) == ("Run this command?", "ls -la /")


@pytest.mark.parametrize(
    ("command", "seen"),
    [
        ("echo a\nrm -rf b", "echo a‹new line›rm -rf b"),
        (r"echo a\nrm -rf b", r"echo a\nrm -rf b"),
        ("echo a‹new line›rm", "echo a‹U+2039›new line›rm"),
        ("echo \u202egnp.exe", "echo ‹U+202E›gnp.exe"),
        ("echo a\u200bb\u00a0c\rd\te", "echo a‹U+200B›b‹U+00A0›c‹U+000D›d‹tab›e"),
        ("echo \x1b[8mhidden", "echo ‹U+001B›[8mhidden"),
        ("rm a\u3164b\ufe0f\u2800\u115f\U000e0101", "rm a‹U+3164›b‹U+FE0F›‹U+2800›‹U+115F›‹U+E0101›"),
        ("mv א/ב ג", "mv \u2068א\u2069/\u2068ב\u2069 \u2068ג\u2069"),
        ("echo grüße 列", "echo grüße 列"),
    ],
)
def test_nothing_of_a_command_can_hide(tmp_path: Path, command: str, seen: str) -> None:
    assert tool(tmp_path).question({"command": command}) == ("Run this command?", seen)


@pytest.mark.parametrize("arguments", [{}, {"command": ""}, {"command": " \n"}, {"command": 5}, {"command": "a\0b"}])
async def test_what_is_no_command_is_refused(tmp_path: Path, arguments: dict[str, Any]) -> None:
    with pytest.raises(ToolError):
        tool(tmp_path).question(fitting(tool(tmp_path), arguments))
    with pytest.raises(ToolError):
        await called(tool(tmp_path), context(), arguments)


def test_what_is_too_long_to_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="at most 1,500 characters"):
        tool(tmp_path).question({"command": "echo " + "\u202e" * 300})


@pytest.mark.parametrize("command", ["git status", "git status -s", "git  status", " git status ./a-b.c,d:e=f@g%h+i"])
def test_a_listed_beginning_needs_no_yes(tmp_path: Path, command: str) -> None:
    assert tool(tmp_path, "git status", "ls").question({"command": command}) is None


@pytest.mark.parametrize(
    "command",
    [
        "git statusx",
        "git",
        "git push",
        "/usr/bin/git status",
        "git status; rm -rf /",
        "git status & rm x",
        "git status | sh",
        "git status > /etc/passwd",
        "git status < x",
        "git status $(rm x)",
        "git status `rm x`",
        "git status\nrm x",
        "git status\rrm x",
        "git status\trm",
        "git status $HOME",
        "git status *",
        "git status ~",
        "git status 'a'",
        'git status "a"',
        "git status \\x",
        "git status !x",
        "git status {a,b}",
        "git status [a]",
        "git status ?",
        "git status #x",
        "A=b git status",
        "git\u00a0status",
        "git status (x)",
    ],
)
def test_a_listed_beginning_lets_no_other_command_through(tmp_path: Path, command: str) -> None:
    assert tool(tmp_path, "git status").question({"command": command}) is not None


@pytest.mark.parametrize(
    "command",
    [
        "sort -o .legato/config.yaml x",
        "sort -o.legato/config.yaml x",
        "sort x -uo y",
        "sort --output=y x",
        "sort --outp y x",
        "sort --o=y x",
        "sort --compress-program=./x y",
        "find . -exec ./x +",
        "find . -execdir ./x +",
        "find . -okdir ./x",
        "find . -delete",
        "find . -fprint y",
        "find . -fls y",
        "sed -i s/a/b/ y",
        "sed -i.old s/a/b/ y",
        "sed -ni p y",
        "sed --in-place=.old s/a/b/ y",
        "sed --in-p p y",
        "curl -O http://x",
        "git log --output=y",
        "git log -w",
    ],
)
def test_an_option_that_may_write_needs_a_yes_whatever_is_listed(tmp_path: Path, command: str) -> None:
    assert tool(tmp_path, "sort", "find", "sed", "curl", "git log").question({"command": command}) is not None


@pytest.mark.parametrize(
    "command",
    [
        "sort -u x",
        "find . -name x -type f",
        "git log --oneline -n5 -- a-o b",
        "git log --word-diff",
        "grep -in x y",
        "sort -",
    ],
)
def test_an_option_that_reads_needs_none_nor_one_that_is_listed_itself(tmp_path: Path, command: str) -> None:
    assert tool(tmp_path, "sort", "find", "git log", "grep -in").question({"command": command}) is None


async def test_the_exit_code_and_both_streams_are_told(tmp_path: Path) -> None:
    assert await run(tmp_path, "echo out; echo err >&2; exit 3") == "exit code 3\nout\nerr"
    assert await run(tmp_path, "true") == "exit code 0, and it printed nothing"
    assert await run(tmp_path, "kill -9 $$") == "ended by signal 9, and it printed nothing"


async def test_a_conversation_has_a_folder_of_its_own(tmp_path: Path) -> None:
    await run(tmp_path, "echo kept > note")
    assert await run(tmp_path, "cat note") == "exit code 0\nkept"
    for chat in ("other", "../../x", "x" * 3_000):
        said = await tool(tmp_path).run({"command": "pwd; cat note"}, context(chat))
        folder = Path(said.splitlines()[1])
        assert folder.parent == tmp_path
        assert said.startswith("exit code 1")
    assert await run(tmp_path, "stat -c %a ..  .") == "exit code 0\n700\n700"


async def test_it_sees_nothing_of_the_gateways_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("LEGATO__MODEL__NAME", "x")
    said = await run(tmp_path, "env")
    names = {line.partition("=")[0] for line in said.splitlines()[1:]}
    assert names <= {"PATH", "LANG", "LC_ALL", "TZ", "HOME", "PWD", "OLDPWD", "TERM", "LEGATO_CHILD", "SHLVL", "_"}
    assert {"PATH", "LEGATO_CHILD"} <= names


async def test_secrets_are_taken_out_of_what_it_prints(tmp_path: Path) -> None:
    assert await run(tmp_path, "echo token-123", secret="token-123") == "exit code 0\n[REDACTED]"


async def test_of_long_output_the_beginning_and_the_end_are_told(tmp_path: Path) -> None:
    said = await run(tmp_path, "echo begins; seq 200000; echo ends")
    size = len("begins\n") + sum(len(str(number)) + 1 for number in range(1, 200_001)) + len("ends\n")
    assert said.startswith("exit code 0\nbegins\n1\n2\n")
    assert said.endswith("199999\n200000\nends")
    kept, _, rest = said.partition("\n[… ")
    left_out, _, ended = rest.partition(f" of {size:,} bytes left out …]\n")
    assert int(left_out.replace(",", "")) == size - len(f"{kept}\n{ended}\n") + len("exit code 0\n")
    assert int(kept.splitlines()[-1]) + 1 == len(kept.splitlines()) - 1  # whole lines, none in between left out
    assert 23_900 < len(said) < 25_000


async def test_half_a_secret_is_not_left_where_it_is_cut(tmp_path: Path) -> None:
    line = "key=" + "s3cret" * 100
    said = await run(tmp_path, f"i=0; while [ $i -lt 90 ]; do echo {line}; i=$((i+1)); done", secret=line)
    assert "bytes left out" in said
    assert "s3cret" not in said


async def test_bytes_that_are_no_text_do_no_harm(tmp_path: Path) -> None:
    assert await run(tmp_path, r"printf '\377\000\342\202'") == "exit code 0\n\ufffd\x00\ufffd"


def alive(pid: int) -> bool:
    """Say whether a process runs; one that has ended and is not yet buried does not."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


async def test_what_takes_too_long_is_ended_with_all_it_started(tmp_path: Path) -> None:
    clock = ManualClock()
    shell = tool(tmp_path, clock=clock)
    command = f"sleep 300 & echo $!; echo early; mkdir '{tmp_path}/said'; sleep 300"
    running = asyncio.create_task(shell.run({"command": command}, context()))
    await eventually((tmp_path / "said").exists)
    await clock.advance(60)
    said = await running
    first, pid, *_ = said.splitlines()
    assert first == "ended after 60 seconds, because it took longer"
    assert said.endswith("early")
    assert not alive(int(pid))


async def test_what_it_leaves_behind_is_ended_and_not_waited_for(tmp_path: Path) -> None:
    async with asyncio.timeout(60):
        said = await run(tmp_path, "sleep 300 & echo $!")
    assert not alive(int(said.splitlines()[1]))


async def test_what_runs_in_a_group_of_its_own_is_ended_too(tmp_path: Path) -> None:
    watched = f'echo $$ > new; mv new "{tmp_path}/pid"; sleep 300'
    running = asyncio.create_task(run(tmp_path, f"true && timeout 300 sh -c '{watched}'; true"))
    number = int(await written(tmp_path / "pid"))
    assert os.getpgid(number) != os.getsid(number)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not alive(number)


async def test_a_turn_that_ends_while_the_command_starts_ends_all_of_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pid")
    pipe = os.open(tmp_path / "pid", os.O_RDONLY | os.O_NONBLOCK)
    running = asyncio.create_task(run(tmp_path, f"sleep 300 & echo $! > '{tmp_path}/pid'; wait"))
    for _ in range(2):
        await asyncio.sleep(0)
    started, _, _ = select.select([pipe], [], [], 60.0)  # the loop stands still, so nobody knows of the shell yet
    child = int(os.read(pipe, 100)) if started else 0
    os.close(pipe)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert child
    assert not alive(child)


async def test_the_end_of_its_turn_ends_it(tmp_path: Path) -> None:
    running = asyncio.create_task(run(tmp_path, f"echo $$ > new; mv new '{tmp_path}/pid'; sleep 300"))
    number = int(await written(tmp_path / "pid"))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not alive(number)
