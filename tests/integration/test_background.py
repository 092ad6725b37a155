"""Commands that go on after their turn: how they end, and what their conversation hears of that, once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from gateway.agent import background as module
from gateway.agent.background import BackgroundCommands, KeptOutput, Work
from gateway.agent.workspace.folders import BACKGROUND, Workspaces
from gateway.domain.chat import SessionKey, Source
from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import ToolError
from gateway.runtime.tasks import Background
from tests.support.waiting import eventually

KEY = SessionKey(platform="test", chat="c")
SOURCE = Source(platform="test", chat="c", chat_type="direct", user="u")


class Woken:
    """What conversations were told."""

    def __init__(self) -> None:
        self.causes: list[str] = []
        self.texts: list[str] = []

    async def __call__(self, key: SessionKey, source: Source, cause: str, what: str, text: str) -> None:
        assert (key, source) == (KEY, SOURCE)
        self.causes.append(cause)
        self.texts.append(f"{what}. {text}")


def commands(home: Path, woken: Woken) -> BackgroundCommands:
    def redact(text: str) -> str:
        return text.replace("hunter2", "[REDACTED]")

    return BackgroundCommands(root=home, jobs=Background(), clock=SystemClock(), redact=redact, wake=woken)


def prints(*pieces: bytes, outcome: str = "exit code 0") -> Work:
    async def work(output: KeptOutput) -> str:
        for piece in pieces:
            output.add(piece)
        return outcome

    return work


def runs(until: Callable[[], Awaitable[object]], ended: list[str]) -> Work:
    async def work(output: KeptOutput) -> str:
        output.add(b"begun\n")
        try:
            await until()
        finally:
            ended.append("ended")
        return "exit code 0"

    return work


async def test_a_command_that_ends_wakes_its_conversation_with_the_end_of_its_output(tmp_path: Path) -> None:
    woken = Woken()
    kept = commands(tmp_path, woken)
    begun = await kept.begin(KEY, SOURCE, "make test", prints(b"key hunter2\n", b"2 failed\n", outcome="exit code 1"))
    assert begun.name == "command 1 (make test)"
    await kept.jobs.idle()
    (text,) = woken.texts
    assert text.startswith("command 1 (make test) has ended. command 1 (make test): exit code 1, 0 seconds after")
    assert text.endswith("its output, 21 bytes in /folders/background/1.txt, ends:\nkey [REDACTED]\n2 failed\n")
    assert kept.folder(KEY).joinpath("1.txt").read_bytes() == b"key hunter2\n2 failed\n"
    assert await kept.told(KEY, 1) in text
    assert await kept.running(KEY) == []
    await kept.recover()
    assert len(woken.texts) == 1


async def test_a_command_is_read_while_it_runs_and_ended_without_a_word(tmp_path: Path) -> None:
    woken, ended = Woken(), list[str]()
    kept = commands(tmp_path, woken)
    await kept.begin(KEY, SOURCE, "sleep", runs(asyncio.Event().wait, ended))
    await eventually(lambda: kept.folder(KEY).joinpath("1.txt").exists())
    assert (await kept.told(KEY, 1)).endswith("6 bytes in /folders/background/1.txt, ends:\nbegun\n")
    assert " runs since " in await kept.told(KEY, 1)
    # Any process may ask it to end: all of it stands in files.
    other = commands(tmp_path, woken)
    assert [each.number for each in await other.running(KEY)] == [1]
    assert "ended, as was asked" in await other.end(KEY, 1)
    assert ended == ["ended"]
    await kept.jobs.idle()
    assert woken.texts == []
    assert "ended, as was asked" in await other.end(KEY, 1), "it may be asked twice"


async def test_a_conversation_has_three_at_once_and_others_have_their_own(tmp_path: Path) -> None:
    kept, ended = commands(tmp_path, Woken()), list[str]()
    for _ in range(3):
        await kept.begin(KEY, SOURCE, "sleep", runs(asyncio.Event().wait, ended))
    with pytest.raises(ToolError, match="3 commands already run in the background"):
        await kept.begin(KEY, SOURCE, "sleep", prints())
    await kept.begin(SessionKey(platform="test", chat="d"), SOURCE, "sleep", runs(asyncio.Event().wait, ended))
    with pytest.raises(ToolError, match="no background command 9 here; there are: 1, 2, 3"):
        await kept.told(KEY, 9)
    assert await kept.end_all(KEY) == 3
    assert (await kept.begin(KEY, SOURCE, "true", prints())).number == 4
    await kept.jobs.aclose()


async def test_all_conversations_have_so_many_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_IN_ALL", 2)
    kept, ended = commands(tmp_path, Woken()), list[str]()
    for chat in ("a", "b"):
        await kept.begin(SessionKey(platform="test", chat=chat), SOURCE, "x", runs(asyncio.Event().wait, ended))
    with pytest.raises(
        ToolError, match="2 commands of all conversations already run in the background: try again later"
    ):
        await kept.begin(KEY, SOURCE, "x", prints())
    await kept.end_all(SessionKey(platform="test", chat="a"))
    assert (await kept.begin(KEY, SOURCE, "x", prints())).number == 1
    await kept.jobs.aclose()


async def test_one_that_a_crash_kept_from_being_written_down_takes_nobodys_place(tmp_path: Path) -> None:
    kept = commands(tmp_path, Woken())
    kept.folder(KEY).mkdir(parents=True)
    (kept.folder(KEY) / "1.json").touch()
    assert (await kept.begin(KEY, SOURCE, "true", prints())).number == 2
    await kept.jobs.idle()


async def test_after_a_restart_the_conversation_hears_once_that_its_command_ended(tmp_path: Path) -> None:
    woken, ended = Woken(), list[str]()
    before = commands(tmp_path, woken)
    await before.begin(KEY, SOURCE, "sleep", runs(asyncio.Event().wait, ended))
    await eventually(lambda: before.folder(KEY).joinpath("1.txt").exists())
    beside = commands(tmp_path, woken)
    await beside.recover()
    assert woken.texts == [], "it runs in another process"
    await before.jobs.aclose()  # as a gateway does that stops; what is killed leaves the same files
    assert (ended, woken.texts) == (["ended"], [])
    after = commands(tmp_path, woken)
    assert "ended by a restart" in await after.told(KEY, 1)
    await after.recover()
    await after.recover()
    assert len(woken.texts) == 1
    assert "ended by a restart" in woken.texts[0]
    assert woken.texts[0].endswith("\nbegun\n")


async def test_a_crash_before_the_note_wakes_again_under_the_same_name(tmp_path: Path) -> None:
    woken = Woken()
    kept = commands(tmp_path, woken)
    await kept.begin(KEY, SOURCE, "true", prints())
    await kept.jobs.idle()
    kept.folder(KEY).joinpath("1.done").unlink()
    await kept.recover()
    assert len(woken.causes) == 2
    assert len(set(woken.causes)) == 1, "the store takes an event once"


async def test_outputs_are_bounded_and_so_is_their_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LARGEST", 1_000)
    kept = commands(tmp_path, Woken())
    for _ in range(12):
        await kept.begin(KEY, SOURCE, "yes", prints(b"y\n" * 5_000, b"the end\n"))
        await kept.jobs.idle()
    assert [each.number for each in kept.known(KEY)] == list(range(3, 13))
    output = kept.folder(KEY).joinpath("12.txt").read_bytes()
    assert len(output) < 5_000
    assert b"bytes left out" in output
    assert output.endswith(b"the end\n")


async def test_what_is_forgotten_ends_and_leaves_nothing(tmp_path: Path) -> None:
    woken, ended = Woken(), list[str]()
    workspaces = Workspaces(tmp_path)
    kept = commands(tmp_path / BACKGROUND, woken)
    await kept.begin(KEY, SOURCE, "sleep", runs(asyncio.Event().wait, ended))
    await eventually(lambda: kept.folder(KEY).joinpath("1.txt").exists())
    assert workspaces.remove(KEY)
    await kept.jobs.idle()
    assert not kept.folder(KEY).exists()
    assert (ended, woken.texts, kept.known(KEY)) == (["ended"], [], [])


async def test_commands_that_hold_what_is_forgotten_end_and_leave_nothing(tmp_path: Path) -> None:
    woken, ended = Woken(), list[str]()
    kept = commands(tmp_path, woken)
    await kept.begin(KEY, SOURCE, "pay NAME", runs(asyncio.Event().wait, ended))
    await kept.begin(KEY, SOURCE, "make", runs(asyncio.Event().wait, ended))
    await kept.begin(KEY, SOURCE, "cat", prints(b"dear NAME\n"))
    await eventually(lambda: woken.texts and kept.folder(KEY).joinpath("2.txt").exists())
    assert [ref for ref, text in kept.texts(KEY) if "NAME" in text] == ["background:1", "background:3"]
    await kept.forget(KEY, ["background:1", "background:3", "kept:4"])
    assert [each.number for each in kept.known(KEY)] == [2]
    assert {path.name for path in kept.folder(KEY).iterdir()} == {"2.json", "2.txt"}
    assert (ended, len(woken.texts)) == (["ended"], 1)
    await kept.end_all(KEY)


async def test_one_that_ends_by_itself_while_it_is_forgotten_wakes_nobody(tmp_path: Path) -> None:
    woken = Woken()
    kept = commands(tmp_path, woken)

    async def work(_: KeptOutput) -> str:
        kept.folder(KEY).joinpath("1.json").unlink()
        return "exit code 0"

    await kept.begin(KEY, SOURCE, "true", work)
    await kept.jobs.idle()
    assert woken.texts == []
    assert not kept.folder(KEY).joinpath("1.done").exists()


async def test_a_command_that_cannot_be_started_says_so(tmp_path: Path) -> None:
    async def work(_: KeptOutput) -> str:
        raise FileNotFoundError("no bwrap")

    woken = Woken()
    kept = commands(tmp_path, woken)
    await kept.begin(KEY, SOURCE, "true", work)
    await kept.jobs.idle()
    assert "failed: no bwrap, 0 seconds after it was begun; it printed nothing" in woken.texts[0]
