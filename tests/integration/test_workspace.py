"""The workspace against what a command in its folder may do: links, races, hostile names and kinds of files, a full
quota, a full disk, death in the middle."""

from __future__ import annotations

import errno
import os
import random
import signal
import socket
import stat
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from gateway.agent.tools.base import Tool, ToolContext, ToolHost
from gateway.agent.tools.workspace import list_files, search_files
from gateway.agent.workspace import tree
from gateway.agent.workspace.edits import Edit
from gateway.agent.workspace.folders import Turn, Workspaces, WorkspaceSettings, name_of
from gateway.agent.workspace.names import names_in
from gateway.agent.workspace.report import report
from gateway.agent.workspace.workspace import Workspace
from gateway.domain.chat import KeptFile, SessionKey
from gateway.domain.session import Session
from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import ToolError
from tests.support.tools import called

KEY = SessionKey(platform="fake", chat="c")
DAY = 86_400.0


def turn(number: int = 1, at: float = 0.0) -> Turn:
    return Turn(id=f"t{number}", session="s1", at=at)


@pytest.fixture
def workspaces(tmp_path: Path) -> Workspaces:
    return Workspaces(tmp_path / "workspaces")


@pytest.fixture
def workspace(workspaces: Workspaces) -> Workspace:
    return workspaces.of(KEY)


def write(workspace: Workspace, path: str, text: str, number: int = 1, at: float = 0.0) -> None:
    workspace.write(turn(number, at), names_in(path), text.encode())


def files(workspace: Workspace) -> dict[str, str]:
    found = [path for path in workspace.folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return {str(path.relative_to(workspace.folder)): path.read_text() for path in found}


# -- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/etc/passwd",
            "../x",
            "a/../../x",
            "a/..",
            "..",
            "a\0b",
            "a\\b",
            "x\u202etxt.exe",
            "\u200b",
            "a\nb",
            "\ud800",
        ),
        *("a" * 256, "é" * 128, "/".join("a" * 41), "/workspacex", "//etc"),
    ],
)
def test_a_name_that_leads_out_or_misleads_is_refused(workspace: Workspace, path: str) -> None:
    with pytest.raises(ToolError):
        workspace.write(turn(), names_in(path), b"x")
    assert files(workspace) == {}


@pytest.mark.parametrize("path", ["a.txt", "./a.txt", "/workspace/a.txt", " a.txt ", ".//a.txt", "/workspace//./a.txt"])
def test_one_file_is_named_in_several_ways(workspace: Workspace, path: str) -> None:
    write(workspace, path, "x")
    assert files(workspace) == {"a.txt": "x"}


def test_letters_that_are_spelled_in_two_ways_name_one_file(workspace: Workspace) -> None:
    decomposed = unicodedata.normalize("NFD", "é.txt")
    (workspace.folder / decomposed).write_text("old")
    write(workspace, "é.txt", "new")
    assert files(workspace) == {decomposed: "new"}
    write(workspace, unicodedata.normalize("NFD", "ö.txt"), "x")
    assert "ö.txt" in files(workspace)


def test_another_case_is_another_file_and_is_pointed_out(workspace: Workspace) -> None:
    write(workspace, "README.md", "x")
    with pytest.raises(ToolError, match=r"The workspace has no readme.md; there is README.md"):
        workspace.read(["readme.md"])


def test_two_conversations_share_no_folder_whatever_the_file_system_makes_of_letters() -> None:
    chats = ("ab", "aB", "AB", "a/b", "a%2fb", "a%2Fb", "ä", "Ä", "x" * 200, "x" * 199 + "X", "..", ".", "")
    names = [name_of(SessionKey(platform="p", chat=chat, user=user)) for chat in chats for user in (None, "u", "U")]
    assert len({name.lower() for name in names}) == len(names)
    assert not any("/" in name or len(name) > 120 or name.startswith(".") for name in names)
    assert name_of(SessionKey(platform="telegram", chat="-1001")) == "telegram%2Fchat=-1001"


# -- links, and what is no file -------------------------------------------------------------------


def secret(tmp_path: Path) -> Path:
    place = tmp_path / "outside"
    place.mkdir()
    (place / "secret.txt").write_text("classified")
    return place


def test_no_link_is_followed(workspace: Workspace, tmp_path: Path) -> None:
    outside = secret(tmp_path)
    (workspace.folder / "folder").symlink_to(outside)
    (workspace.folder / "file.txt").symlink_to(outside / "secret.txt")
    (workspace.folder / "lost").symlink_to(outside / "new.txt")
    tries: list[Callable[[], object]] = [
        lambda: workspace.read(["folder", "secret.txt"]),
        lambda: workspace.read(["file.txt"]),
        lambda: write(workspace, "folder/secret.txt", "x"),
        lambda: write(workspace, "folder/deeper/new.txt", "x"),
        lambda: write(workspace, "file.txt", "x"),
        lambda: write(workspace, "lost", "x"),
        lambda: workspace.patch(turn(), ["file.txt"], [Edit("classified", "x")]),
        lambda: workspace.remove(turn(), ["folder", "secret.txt"]),
    ]
    for each in tries:
        with pytest.raises(ToolError, match="is a link"):
            each()
    assert workspace.content("folder/secret.txt", 0.0) is None
    assert sorted(path.name for path in outside.iterdir()) == ["secret.txt"]
    assert (outside / "secret.txt").read_text() == "classified"
    assert b"classified" not in b"".join(
        path.read_bytes() for path in workspace.versions.folder.rglob("*") if path.is_file()
    )
    workspace.remove(turn(), ["folder"])  # the link itself
    assert (outside / "secret.txt").exists()


def test_pipes_sockets_and_devices_are_neither_read_nor_waited_for(workspace: Workspace) -> None:
    os.mkfifo(workspace.folder / "pipe")
    with socket.socket(socket.AF_UNIX) as door:
        os.chdir(workspace.folder)
        door.bind("door")
        os.chdir("/")
    for name in ("pipe", "door"):
        with pytest.raises(ToolError, match="no file that can be read"):
            workspace.read([name])
        with pytest.raises(ToolError, match="no file that can be read"):
            write(workspace, name, "x")
    write(workspace, "a.txt", "x")  # the look at the workspace passes by them, too
    assert report(workspace, ["s1"], 10).count == 1


def test_a_folder_that_nobody_may_read_hides_what_is_in_it_and_can_be_removed(
    workspaces: Workspaces, workspace: Workspace
) -> None:
    write(workspace, "closed/a.txt", "x")
    deep = workspace.folder / "closed"
    for _ in range(150):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (workspace.folder / "closed").chmod(0)
    report(workspace, ["s1"], 10)
    assert workspaces.remove(KEY)
    assert not workspace.folder.exists()
    assert not workspace.versions.folder.exists()


def test_whoever_puts_a_link_in_the_place_of_a_folder_gains_nothing(workspace: Workspace, tmp_path: Path) -> None:
    outside = secret(tmp_path)
    (workspace.folder / "real").mkdir()
    os.symlink(outside, workspace.folder / "link")
    over = threading.Event()

    def swap() -> None:
        names = [workspace.folder / name for name in ("a", "real", "link")]
        while not over.is_set():
            for name in names[1:]:
                try:
                    os.rename(name, names[0])
                    os.rename(names[0], name)
                except OSError:
                    pass

    attacker = threading.Thread(target=swap)
    attacker.start()
    try:
        for number in range(300):
            try:
                tree.put(workspace.folder, ["a", f"{number}.txt"], b"x", workspace.folder)
                tree.read(workspace.folder, ["a", "secret.txt"], 100)
                raise AssertionError("the file outside was read")
            except (ToolError, OSError):
                pass
            with suppress(ToolError, OSError):
                tree.remove(workspace.folder, ["a", "secret.txt"])
            with suppress(ToolError, OSError):
                assert "secret.txt" not in [each.name for each, _ in tree.visible(workspace.folder, ["a"])]
    finally:
        over.set()
        attacker.join()
    assert [path.name for path in outside.iterdir()] == ["secret.txt"]


# -- searching ------------------------------------------------------------------------------------


class NoFiles:
    """Nothing was sent."""

    async def listed(self, limit: int) -> list[KeptFile]:
        return []

    async def output(self, name: str) -> None:
        return None


async def answer(make: Callable[[ToolHost], Tool | None], workspaces: Workspaces, **arguments: Any) -> str:
    nothing: Any = None
    files: Any = NoFiles()
    session = Session(
        id="s1", key=KEY, chat_type="direct", parent_id=None, started_at=0.0, model="m", system_prompt="", epoch=1
    )
    context = ToolContext(
        session=session,
        clock=SystemClock(),
        recall=nothing,
        around=nothing,
        unindexed=nothing,
        files=files,
        memory=nothing,
        reminders=nothing,
        turn="t1",
    )
    tool = make(ToolHost(clock=SystemClock(), redact=str, home=workspaces.root.parent))
    assert tool is not None
    said = await called(tool, context, arguments)
    assert isinstance(said, str)
    return said


async def test_a_search_finds_names_and_lines_and_leaves_out_what_nobody_looks_for(
    workspaces: Workspaces, workspace: Workspace
) -> None:
    for path in ("a.py", "lib/needle.txt", "node_modules/a.py", ".git/config", "out/keep.py", "target/a.py"):
        write(workspace, path, "first\nthe NEEDLE in a haystack\n")
    (workspace.folder / "picture.bin").write_bytes(b"\0needle haystack")
    os.mkfifo(workspace.folder / "pipe")
    (workspace.folder / "link").symlink_to("/etc")
    assert (await answer(search_files, workspaces, words="haystack needle")).splitlines() == [
        "a.py:2: the NEEDLE in a haystack",
        "lib/needle.txt:2: the NEEDLE in a haystack",
        "out/keep.py:2: the NEEDLE in a haystack",
    ]
    assert (await answer(search_files, workspaces, words="needle", path="lib")).splitlines() == [
        "lib/needle.txt",
        "lib/needle.txt:2: the NEEDLE in a haystack",
    ]
    assert (await answer(search_files, workspaces, pattern="^f", path="node_modules")) == "node_modules/a.py:1: first"
    assert await answer(search_files, workspaces, words="nowhere") == "[nothing matches]"
    listed = (await answer(list_files, workspaces)).splitlines()
    assert {
        "node_modules/ (left out)",
        "target/ (left out)",
        "link (a link)",
        "pipe (no file)",
        "lib/needle.txt (31 bytes)",
    } <= set(listed)
    assert not any(line.startswith((".git/c", "node_modules/a")) for line in listed)
    with pytest.raises(ToolError, match="The workspace has no nowhere"):
        await answer(list_files, workspaces, path="nowhere")
    with pytest.raises(ToolError, match="is a link"):
        await answer(search_files, workspaces, path="link", words="root")


async def test_pages_of_results_hold_each_once(workspaces: Workspaces, workspace: Workspace) -> None:
    for number in range(130):
        (workspace.folder / f"f{number:03}").write_text("x\n")
    found: list[str] = []
    while more := (await answer(search_files, workspaces, words="f", offset=len(found))).splitlines():
        found += [line for line in more if not line.startswith("[")]
        if not more[-1].startswith("[go on"):
            break
    assert found == [f"f{number:03}" for number in range(130)]
    (workspace.folder / "long").write_text("y\n" * 100)
    assert (await answer(search_files, workspaces, pattern="^y$")).count("\n") == 19, "20 of one file"
    assert "go on with offset 200" not in await answer(list_files, workspaces)
    assert await answer(list_files, workspaces, offset=500) == "[nothing more]"


async def test_a_pattern_that_never_ends_is_ended(
    workspaces: Workspaces, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.agent.workspace.calls._SECONDS", 0.2)
    write(workspace, "a.txt", "a" * 100_000)
    assert "took too long" in await answer(search_files, workspaces, pattern="(a|aa)+$b")
    with pytest.raises(ToolError, match="repeats too much"):
        await answer(search_files, workspaces, pattern="(?:(?:a{500}){500}){500}")


# -- room -----------------------------------------------------------------------------------------


def test_a_full_workspace_says_so_and_takes_no_more(tmp_path: Path) -> None:
    small = Workspaces(tmp_path / "w", WorkspaceSettings(most_mb=1, most_files=4)).of(KEY)
    write(small, "a.txt", "x" * 900_000)
    with pytest.raises(ToolError, match="The workspace is full: it has 0 of 1 MB in 1 of 4 files"):
        write(small, "b.txt", "x" * 200_000)
    write(small, "a.txt", "x" * 1_000_000)  # in its own place
    with pytest.raises(ToolError, match="is full"):
        small.patch(turn(), ["a.txt"], [Edit("x" * 1_000_000, "y" * 1_000_001)])
    write(small, "a.txt", "x")
    write(small, "d/b.txt", "x")
    write(small, "c.txt", "x")
    with pytest.raises(ToolError, match="in 4 of 4 files"):
        write(small, "e.txt", "x")
    (small.folder / "big").write_bytes(bytes(3_000_000))
    assert small.look(turn()).startswith("The workspace is full: it has 3 of 1 MB")
    with pytest.raises(ToolError, match="is full"):
        write(small, "a.txt", "longer")
    small.remove(turn(), ["big"])
    write(small, "a.txt", "longer")


def test_a_full_disk_leaves_the_old_file(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    write(workspace, "a.txt", "old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ToolError, match=r"The disk of this machine is full, so a.txt stays as it was"):
        write(workspace, "a.txt", "new")
    assert files(workspace) == {"a.txt": "old"}
    assert list(workspace.versions.aside.iterdir()) == []


def test_a_disk_that_fails_before_a_change_is_told(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    write(workspace, "a.txt", "old")

    def full(**_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("gateway.agent.workspace.versions.tempfile.mkstemp", full)
    with pytest.raises(ToolError, match=r"cannot be used, so nothing was changed: No space left on device"):
        write(workspace, "a.txt", "new", 2)
    assert files(workspace) == {"a.txt": "old"}


def test_far_too_many_files_are_counted_and_nothing_is_lost(tmp_path: Path) -> None:
    small = Workspaces(tmp_path / "w", WorkspaceSettings(most_mb=1, most_files=5)).of(KEY)
    write(small, "a.txt", "old")
    for number in range(30):
        (small.folder / f"f{number:02}").touch()
    assert "is full" in small.look(turn())
    (small.folder / "a.txt").write_text("new")
    for path in small.folder.glob("f*"):
        path.unlink()
    assert small.look(turn()) == ""


# -- what was there before --------------------------------------------------------------------------


def random_change(folder: Path, rng: random.Random) -> None:
    """What a command may do."""
    names = ["a", "b", "c", "d/a", "d/b", "d/e/f", "x y", "\udcff", "new\nline"]
    place = folder / rng.choice(names)
    kind = rng.randrange(7)
    if kind == 0:
        if place.is_dir() and not place.is_symlink():
            subprocess.run(["rm", "-rf", place], check=True)
        else:
            place.unlink(missing_ok=True)
        return
    for each in reversed(place.relative_to(folder).parents[:-1]):
        if (folder / each).is_symlink() or (folder / each).is_file():
            (folder / each).unlink()
        (folder / each).mkdir(exist_ok=True)
    if place.is_dir() and not place.is_symlink():
        return
    if kind == 1:
        place.unlink(missing_ok=True)
        place.mkdir()
    elif kind == 2:
        place.unlink(missing_ok=True)
        place.symlink_to(rng.choice(["/etc", "a", "../.."]))
    elif kind == 3 and place.is_file() and not place.is_symlink():
        place.chmod(rng.choice([0o600, 0o755]))
    else:
        if place.is_symlink():
            place.unlink()
        place.write_text(f"{rng.random()}"[: rng.randrange(1, 9)])


def picture(folder: Path) -> dict[str, tuple[str, int, str]]:
    """All that a person would miss."""
    found = {}
    for path in folder.rglob("*"):
        facts = path.lstat()
        if path.is_symlink():
            found[str(path.relative_to(folder))] = ("link", 0, os.readlink(path))
        elif path.is_dir():
            found[str(path.relative_to(folder))] = ("folder", 0, "")
        else:
            found[str(path.relative_to(folder))] = ("file", stat.S_IMODE(facts.st_mode), path.read_text())
    return found


@pytest.mark.parametrize("seed", range(20))
def test_each_turn_is_taken_back_whatever_changed(workspace: Workspace, seed: int) -> None:
    rng = random.Random(seed)
    pictures = []
    for number in range(6):
        pictures.append(picture(workspace.folder))
        workspace.begin(turn(number))
        for _ in range(rng.randrange(1, 12)):
            random_change(workspace.folder, rng)
        workspace.look(turn(number))
    now = picture(workspace.folder)
    while pictures:
        expected = pictures.pop()
        if expected == now:
            continue  # the turn changed nothing in the end
        undone = workspace.undo(f"deed {len(pictures)}")
        assert undone is not None
        assert undone.left == []
        now = picture(workspace.folder)
        assert now == expected
    assert workspace.undo("one more") is None


def test_a_deed_that_is_tried_again_takes_back_one_turn(workspace: Workspace) -> None:
    for number in (1, 2):
        write(workspace, "a.txt", f"{number}", number)
    first = workspace.undo("deed")
    again = workspace.undo("deed")
    assert first is not None
    assert again is not None
    assert first.record.turn == again.record.turn == turn(2)
    assert files(workspace) == {"a.txt": "1"}


def test_versions_end_after_their_time_and_within_their_room(tmp_path: Path) -> None:
    small = Workspaces(tmp_path / "w", WorkspaceSettings(most_mb=1, keep_days=30)).of(KEY)
    for number in range(5):
        write(small, "a.txt", f"{number}" * 600_000, number, at=number * DAY)
    contents = small.versions.folder / "contents"
    assert sum(path.stat().st_size for path in contents.iterdir()) <= 2_400_000
    assert [each.turn.id for each in small.records()] == ["t2", "t3", "t4"]
    write(small, "a.txt", "end", 9, at=40 * DAY)
    assert [each.turn.id for each in small.records()] == ["t9"]
    assert sorted(path.read_bytes()[:3] for path in contents.iterdir()) == [b"444", b"end"]


def test_versions_end_where_nobody_writes_any_more(workspaces: Workspaces, workspace: Workspace) -> None:
    for number in (1, 2):
        write(workspace, "a.txt", f"{number}", number, at=number * DAY)
    workspaces.shed(31.5 * DAY)
    assert [each.turn.id for each in workspace.records()] == ["t2"]
    workspaces.shed(40 * DAY)
    assert workspace.records() == []
    assert [path.read_bytes() for path in (workspace.versions.folder / "contents").iterdir()] == [b"2"]
    assert files(workspace) == {"a.txt": "2"}


def test_a_change_within_one_tick_of_the_clock_is_seen(workspace: Workspace) -> None:
    """Same size, same time: only the content tells."""
    write(workspace, "a.txt", "one")
    place = workspace.folder / "a.txt"
    facts = place.stat()
    workspace.begin(turn(2))
    with place.open("r+") as file:
        file.write("two")
    os.utime(place, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    workspace.look(turn(2))
    assert workspace.undo("deed") is not None
    assert files(workspace) == {"a.txt": "one"}


def test_what_a_command_changes_while_another_chat_writes_is_the_commands_doing(workspace: Workspace) -> None:
    mine, theirs = turn(1), Turn(id="t2", session="s2", at=0.0)
    workspace.begin(mine)
    (workspace.folder / "built first").write_text("1")
    workspace.write(theirs, ["b.txt"], b"theirs")  # no command keeps others from writing
    (workspace.folder / "built last").write_text("2")
    assert workspace.look(mine) == ""
    assert [(each.turn.session, list(each.changes)) for each in workspace.records()] == [
        ("s1", [b"built first"]),
        ("s2", [b"b.txt"]),
        ("s1", [b"built last"]),
    ]
    assert workspace.undo("deed", others=["s1"]) is not None
    assert sorted(files(workspace)) == ["built first", "built last"]


def test_versions_that_were_damaged_restore_nothing_wrong(workspace: Workspace) -> None:
    write(workspace, "a.txt", "one")
    write(workspace, "a.txt", "two", 2)
    for path in (workspace.versions.folder / "contents").iterdir():
        path.write_bytes(b"damaged")
    undone = workspace.undo("deed")
    assert undone is not None
    assert undone.left == ["a.txt"]
    assert files(workspace) == {"a.txt": "two"}
    (workspace.versions.folder / "index").write_bytes(b"\xff damaged")
    write(workspace, "a.txt", "three", 3)
    assert files(workspace) == {"a.txt": "three"}


# -- several at once, and death in the middle -----------------------------------------------------------


def test_two_turns_at_once_lose_nothing(workspaces: Workspaces) -> None:
    def work(number: int) -> None:
        own = workspaces.of(KEY)
        for each in range(10):
            write(own, f"{number}/{each}.txt", f"{number} {each}", number)
            own.patch(turn(number), [f"{number}", f"{each}.txt"], [Edit(f"{number} ", "now ")])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    workspace = workspaces.of(KEY)
    assert files(workspace) == {f"{number}/{each}.txt": f"now {each}" for number in range(3) for each in range(10)}
    while workspace.undo(f"deed {len(files(workspace))} {len(workspace.records())}") is not None:
        pass
    assert files(workspace) == {}


KILLED = """
import sys
from pathlib import Path
from gateway.agent.workspace.folders import Turn, Workspaces
from gateway.domain.chat import SessionKey
workspace = Workspaces(Path(sys.argv[1])).of(SessionKey(platform="fake", chat="c"))
print("ready", flush=True)
for number in range(1, 10_000):
    content = (f"{number} " * 60_000).encode()
    workspace.write(Turn(id=f"t{number}", session="s1", at=0.0), ["a.txt"], content)
"""


def test_kill_9_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    rng = random.Random(5)
    workspaces = Workspaces(tmp_path / "workspaces")
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", KILLED, workspaces.root], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        try:
            process.wait(timeout=rng.uniform(0.01, 0.3))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        workspace = workspaces.of(KEY)
        found = files(workspace)
        assert list(found) in ([], ["a.txt"])
        if found:
            words = found["a.txt"].split()
            assert len(words) == 60_000
            assert len(set(words)) == 1
        write(workspace, "b.txt", "after")
        assert list(workspace.versions.aside.iterdir()) == []
        assert workspace.undo("deed") is not None
        assert "b.txt" not in files(workspace)
        workspaces.remove(KEY)
