"""`legato backup` and `legato restore`, as an operator types them."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
import sqlite3
import tarfile
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from gateway.agent.workspace.folders import Turn, Workspaces
from gateway.app.backup.archive import Manifest, unpack, write
from gateway.cli.main import app
from gateway.domain.chat import SessionKey
from gateway.runtime.clock import SystemClock
from gateway.store.port import Store
from gateway.store.sqlite import SqliteStore
from gateway.store.sqlite.lock import LockFile
from tests.support.gateway import config_in, running
from tests.support.migration_kit import AT_ONCE, fill, shown


def legato(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def on_store(path: Path, work: Callable[[Store], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        store = SqliteStore(path, clock=SystemClock(), attempt_pauses=AT_ONCE)
        await store.open()
        try:
            return await work(store)
        finally:
            await store.aclose()

    return asyncio.run(main())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a configuration, a folder for backups, and no store yet."""
    monkeypatch.chdir(tmp_path)
    configure(tmp_path)
    (tmp_path / "backups").mkdir()
    return tmp_path


def configure(folder: Path, **sections: Any) -> None:
    settings = {"store": {"url": "sqlite:///legato.db"}, **sections}
    (folder / "config.yaml").write_text(json.dumps(settings), encoding="utf-8")


@pytest.fixture(scope="session")
def with_everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that holds something of everything. To fill one takes ten times as long as to copy it."""
    path = tmp_path_factory.mktemp("filled") / "legato.db"
    on_store(path, fill)
    return path


@pytest.fixture
def filled(home: Path, with_everything: Path) -> Path:
    """The same with something of everything in the store, and files beside it."""
    shutil.copy(with_everything, home)
    beside = home / "legato-home"
    (beside / "files" / "empty").mkdir(parents=True)
    (beside / "history").write_text("what I typed\n", encoding="utf-8")
    (beside / "link").symlink_to("history")
    (beside / "away").symlink_to("/etc/hostname")
    os.mkfifo(beside / "pipe")
    return home


def made(*arguments: str) -> Any:
    """The row of a backup that went well."""
    done = legato("backup", *arguments, "--json")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir() if not each.name.startswith("."))


def everything(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = on_store(path, shown)
    return found


def lose_all(folder: Path) -> None:
    for each in folder.glob("legato.db*"):
        shutil.rmtree(each) if each.is_dir() else each.unlink()
    shutil.rmtree(folder / "legato-home")


# -- making -------------------------------------------------------------------------------------


async def test_a_backup_beside_a_running_gateway_is_a_store_with_every_word(home: Path) -> None:
    async with running(home, config=config_in(home)) as live:
        await live.ask("my code is quizzaciously")
        assert await live.store.search("quizzaciously", None, 1)  # so it is in the index
        row = await asyncio.to_thread(made, "backups")
    (copy,) = names(home / "backups")
    there = (home / "backups" / copy).stat()
    assert row == {"file": f"backups/{copy}", "bytes": there.st_size, "deleted": []}
    assert there.st_mode & 0o077 == 0
    with tarfile.open(row["file"]) as tar:
        tar.extract("legato.db", home / "away", filter="data")
    configure(home, store={"url": "sqlite:///away/legato.db"})
    found = await asyncio.to_thread(legato, "sessions", "search", "quizzaciously")
    assert "my code is quizzaciously" in found.stdout


def test_the_archive_holds_the_folder_and_the_settings_and_secrets_only_if_asked(filled: Path) -> None:
    (filled / ".env").write_text("TOKEN=geheim\n", encoding="utf-8")
    with tarfile.open(made("backups")["file"]) as tar:
        assert sorted(tar.getnames()) == [
            "config.yaml",
            "home/away",
            "home/files/empty",
            "home/history",
            "home/link",
            "legato.db",
            "manifest.json",
        ]
        manifest = json.load(tar.extractfile("manifest.json"))  # type: ignore[arg-type]
        assert manifest["counts"]["session"] == 8
    with tarfile.open(made("all.tar", "--secrets")["file"]) as tar:
        assert tar.extractfile(".env").read() == b"TOKEN=geheim\n"  # type: ignore[union-attr]
    assert (filled / "all.tar").stat().st_mode & 0o077 == 0


def test_skills_and_what_people_wrote_for_agents_are_in_it(filled: Path) -> None:
    (filled / "skills/minutes").mkdir(parents=True)
    (filled / "skills/minutes/SKILL.md").write_text("as it was")
    (filled / "AGENTS.md").write_text("as it was")
    row = made("backups")
    with tarfile.open(row["file"]) as tar:
        assert tar.extractfile("skills/minutes/SKILL.md").read() == b"as it was"  # type: ignore[union-attr]
        assert "AGENTS.md" in tar.getnames()
    (filled / "skills/minutes/SKILL.md").write_text("changed since")
    assert legato("restore", row["file"]).exit_code == 0
    assert (filled / "skills/minutes/SKILL.md").read_text() == "changed since"


def test_two_files_of_settings_are_both_in_it_and_it_can_be_unpacked(filled: Path) -> None:
    for folder in ("below", "own"):
        (filled / folder).mkdir()
        (filled / folder / "config.yaml").write_text(folder, encoding="utf-8")
    known = Manifest(made_at="", legato="1", origin="", schema=1, counts={})
    with open("two.tar", "wb") as out:
        files = [filled / folder / "config.yaml" for folder in ("below", "own")]
        write(out, known, filled / "legato.db", filled / "legato-home", files)
    (filled / "unpacked").mkdir()
    with open("two.tar", "rb") as source:
        unpack(source, filled / "unpacked", "two.tar")
    assert [(filled / "unpacked" / f"config.yaml{end}").read_text() for end in ("", "~")] == ["own", "below"]


def test_a_backup_replaces_no_file(filled: Path) -> None:
    assert legato("backup", "copy.db").stdout.startswith("The backup copy.db holds the whole store (")
    for name in ("copy.db", "copy.tar"):
        (filled / "copy.tar").touch()
        before = (filled / name).read_bytes()
        again = legato("backup", name)
        assert again.exit_code == 1
        assert f"{name} exists already: name a new file, or a folder" in again.stderr
        assert (filled / name).read_bytes() == before


@pytest.mark.parametrize("target", ["copy.db", "copy.tar", "nowhere/copy.db"])
def test_without_a_store_there_is_no_backup(home: Path, target: str) -> None:
    failed = legato("backup", target)
    assert failed.exit_code == 1
    assert "There is no store at legato.db" in failed.stderr or "nowhere" in failed.stderr
    assert not (home / target).exists()


@pytest.mark.parametrize("name", ["copy.db", "copy.tar"])
def test_a_folder_that_is_not_there_is_named(filled: Path, name: str) -> None:
    failed = legato("backup", f"nowhere/{name}")
    assert failed.exit_code == 1
    said = f"nowhere/{name} cannot be written (No such file or directory). Check that its folder exists"
    assert said in failed.stderr


def test_a_full_target_is_one_line_and_leaves_nothing(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tarfile._Stream._Stream__write", full)
    failed = legato("backup", "backups")
    assert (failed.exit_code, len(failed.stderr.splitlines())) == (1, 1)
    assert "The disk that holds backups/legato-" in failed.stderr
    assert list((filled / "backups").iterdir()) == []
    assert not list(filled.glob("*.partial*"))


def test_the_store_of_an_earlier_version_is_backed_up_as_it_is(filled: Path) -> None:
    with closing(sqlite3.connect("legato.db")) as connection:
        connection.execute("PRAGMA user_version = 24")
    with tarfile.open(made("backups")["file"]) as tar:
        assert json.load(tar.extractfile("manifest.json"))["schema"] == 24  # type: ignore[arg-type]


# -- where it goes ------------------------------------------------------------------------------


def test_a_command_gets_the_archive_and_its_failure_is_told(filled: Path) -> None:
    configure(filled, backup={"command": 'cat > "got-$LEGATO_BACKUP" && test -s "got-$LEGATO_BACKUP"'})
    row = made()
    (got,) = filled.glob("got-legato-*.tar")
    assert (row["file"], row["bytes"]) == (f"backup.command ({got.name[4:]})", got.stat().st_size)
    assert legato("backup", "--verify", str(got)).exit_code == 0
    configure(filled, backup={"command": "cat > /dev/null; echo the host is away >&2; exit 7"})
    failed = legato("backup")
    assert failed.stderr == "legato: backup.command ended with exit status 7: the host is away\n"
    configure(filled)
    assert "say where: `legato backup TARGET`" in legato("backup").stderr


def test_only_what_it_made_itself_is_deleted(filled: Path) -> None:
    folder = filled / "backups"
    configure(filled, backup={"to": "backups", "keep": "1d"})
    strangers = ["legato-20200101T040000Z.tar", "legato-20200102T040000Z.tar.age", "notes.txt"]
    for name in strangers:
        (folder / name).write_text("not ours", encoding="utf-8")
    ours = "legato-20200103T040000Z.tar"
    (folder / ours).touch()
    (folder / ".legato-backups").write_text(
        f"sqlite:///{filled / 'legato.db'}\t{ours}\nsqlite:///other.db\t{strangers[0]}\n", encoding="utf-8"
    )
    row = made()
    assert row["deleted"] == [ours]
    assert names(folder) == sorted([*strangers, Path(row["file"]).name])


def test_to_keep_some_there_must_be_a_folder(filled: Path) -> None:
    assert "need a folder" in legato("backup", "copy.tar", "--keep", "7d").stderr
    wrong = legato("backup", "backups", "--keep", "7days")
    assert (wrong.exit_code, "--keep must be days, weeks and months" in wrong.stderr) == (2, True)
    configure(filled, backup={"to": "nowhere"})
    assert "nowhere (backup.to) is not a folder: make it first" in legato("backup").stderr


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"at": "04:00"}, "backup.at needs backup.to or backup.command"),
        ({"at": "4 am", "to": "b"}, "backup.at must be a time of day"),
        ({"to": "b", "command": "cat"}, "backup.command cannot be used with backup.to"),
        ({"command": "cat", "keep": "7d"}, "backup.keep needs backup.to"),
        ({"to": "b", "keep": "0d"}, "backup.keep must be days, weeks and months"),
    ],
)
def test_settings_that_cannot_work_are_told(home: Path, settings: dict[str, str], said: str) -> None:
    configure(home, backup=settings)
    failed = legato("backup")
    assert failed.exit_code == 2
    assert said in failed.stderr


# -- restoring ----------------------------------------------------------------------------------


def test_what_was_lost_is_back_after_a_restore(filled: Path) -> None:
    before, file = everything(filled / "legato.db"), made("backups")["file"]
    lose_all(filled)
    done = legato("restore", file)
    assert done.exit_code == 0, done.stderr
    assert "8 sessions and 21 messages" in done.stdout
    assert everything(filled / "legato.db") == before
    beside = filled / "legato-home"
    assert names(beside) == ["files", "history", "link"], "a link that leads out, and a pipe, are not taken"
    assert (beside / "link").read_text() == "what I typed\n"
    assert names(beside / "files") == ["empty"]
    assert not list(filled.glob("legato.db.*e*d")), "nothing is left of the way"


def test_the_workspaces_are_in_it_whatever_commands_have_made_there(filled: Path) -> None:
    workspaces = Workspaces(filled / "legato-home" / "workspaces")
    workspace = workspaces.of(SessionKey(platform="fake", chat="c"))
    for text in ("one", "two"):
        workspace.write(Turn(id=text, session="s", at=0.0), ("a.txt",), text.encode())
    os.mkfifo(workspace.folder / "pipe")
    (workspace.folder / "out").symlink_to("/etc/passwd")
    (workspace.folder / "new\nline \udcff").write_text("odd")
    for _ in range(40):  # deeper than any path can say
        (workspace.folder / "next").mkdir()
        (workspace.folder / "next" / ("f" * 255)).touch()
        if (workspace.folder / "deep").exists():
            (workspace.folder / "deep").rename(workspace.folder / "next" / ("d" * 200))
        (workspace.folder / "next").rename(workspace.folder / "deep")
    file = made(str(filled / "backups"))["file"]
    workspaces.remove(SessionKey(platform="fake", chat="c"))
    lose_all(filled)
    assert legato("restore", file).exit_code == 0
    there = {path.name: path for path in workspace.folder.iterdir()}
    assert there["a.txt"].read_text() == "two"
    assert there["new\nline \udcff"].read_text() == "odd"
    assert not {"pipe", "out"} & there.keys()
    undone = workspace.undo("deed")
    assert undone is not None
    assert (workspace.folder / "a.txt").read_text() == "one"


def test_what_was_there_is_kept_aside(filled: Path) -> None:
    file = made("backups")["file"]
    on_store(filled / "legato.db", lambda store: store.set_notes("x:1", {"later": "1"}))
    newer = everything(filled / "legato.db")
    (filled / "legato-home" / "history").write_text("newer\n", encoding="utf-8")
    row = json.loads(legato("restore", file, "--json").stdout)
    assert everything(filled / "legato.db") != newer
    aside = Path(row["aside"])
    assert everything(aside / "legato.db") == newer
    assert (aside / "legato-home" / "history").read_text() == "newer\n"
    again = json.loads(legato("restore", str(aside / "legato.db"), "--json").stdout)
    assert everything(filled / "legato.db") == newer
    assert again["made_at"] is None
    assert (filled / "legato-home" / "history").read_text() == "what I typed\n", "a store alone changes no folder"


def test_a_store_in_use_is_not_replaced(filled: Path) -> None:
    file, before = made("backups")["file"], (filled / "legato.db").read_bytes()
    lock = LockFile(filled / "legato.db")
    lock.acquire()
    failed = legato("restore", file)
    lock.release()
    assert failed.exit_code == 1
    assert "is using" in failed.stderr
    assert (filled / "legato.db").read_bytes() == before


def spoilt(file: Path, way: str) -> Path:
    content = file.read_bytes()
    bad = file.with_name(f"{way}.tar")
    if way == "cut":
        bad.write_bytes(content[: len(content) // 2])
    elif way == "cut at its end":
        bad.write_bytes(content[: content.rindex(b"manifest.json")])
    elif way == "changed":
        bad.write_bytes(content.replace(b"what I typed", b"what I tyqed"))
    elif way == "foreign":
        bad.write_bytes(b"dear diary, " * 999)
    elif way == "empty":
        bad.touch()
    elif way == "climbing":
        with tarfile.open(bad, "w") as tar:
            tar.add(file, "../../evil")
    else:
        with tarfile.open(bad, "w") as tar:
            tar.add(file, "home/other")
    return bad


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("cut", "is damaged|is incomplete"),
        ("cut at its end", "is incomplete, because its end is missing"),
        ("changed", "home/history differs from the original"),
        ("foreign", "is damaged, or is not a Legato backup"),
        ("empty", "is damaged, or is not a Legato backup|is incomplete"),
        ("climbing", "is not a Legato backup, because it contains a file named"),
        ("other", "is incomplete, because its end is missing"),
    ],
)
@pytest.mark.parametrize("command", [("restore",), ("backup", "--verify")])
def test_a_bad_file_is_refused_and_changes_nothing(filled: Path, way: str, said: str, command: tuple[str, ...]) -> None:
    bad = spoilt(Path(made("backups")["file"]), way)
    before, there = (filled / "legato.db").read_bytes(), names(filled)
    failed = legato(*command, str(bad))
    assert (failed.exit_code, len(failed.stderr.splitlines())) == (1, 1), failed.stderr
    assert any(each in failed.stderr for each in said.split("|")), failed.stderr
    assert (filled / "legato.db").read_bytes() == before
    assert names(filled) in (there, sorted([*there, "legato.db.lock"]))


@pytest.mark.parametrize("command", [("restore",), ("backup", "--verify")])
def test_a_newer_store_and_a_missing_file_are_refused(filled: Path, command: tuple[str, ...]) -> None:
    legato("backup", "newer.db")
    with closing(sqlite3.connect("newer.db")) as connection:
        connection.execute("PRAGMA user_version = 999")
    failed = legato(*command, "newer.db")
    assert failed.exit_code == 1
    assert "newer.db was written by a newer Legato" in failed.stderr
    assert "nowhere.tar cannot be read (No such file or directory)" in legato(*command, "nowhere.tar").stderr


@pytest.mark.parametrize("command", [("restore",), ("backup", "--verify")])
def test_a_disk_without_room_to_unpack_is_one_line(
    filled: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    file, there = made("backups")["file"], names(filled)
    monkeypatch.setattr("gateway.app.backup.restoring.unpack", full)
    failed = legato(*command, file)
    assert (failed.exit_code, len(failed.stderr.splitlines())) == (1, 1)
    assert "Legato cannot unpack" in failed.stderr
    assert "(No space left on device). Nothing has changed" in failed.stderr
    assert names(filled) in (there, sorted([*there, "legato.db.lock"]))


def test_check_says_where_backups_cannot_be_made_and_what_is_left(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = made("backups")["file"]
    legato("restore", file)
    configure(filled, backup={"to": "nowhere", "recipient": "age1x"})
    monkeypatch.setenv("PATH", str(filled))
    said = legato("check").stdout
    assert "nowhere is not a folder: make it, or change backup.to" in said
    assert "backup.recipient needs the program `age`" in said
    assert "is from before an upgrade or a restore" in said
    configure(filled, backup={"to": "backups"})
    assert [line.split()[1] for line in legato("check").stdout.splitlines() if "backups" in line] == ["ok"]


def test_a_damaged_copy_is_not_put_in_place(filled: Path) -> None:
    legato("backup", "bad.db")
    content = bytearray((filled / "bad.db").read_bytes())
    content[8192:40_000] = bytes(40_000 - 8192)
    (filled / "bad.db").write_bytes(content)
    failed = legato("restore", "bad.db")
    assert (failed.exit_code, "bad.db is damaged" in failed.stderr) == (1, True)


@pytest.mark.parametrize(
    ("made_by", "named"),
    [
        ("CREATE TRIGGER t AFTER INSERT ON message BEGIN DELETE FROM series; END", "the trigger 't'"),
        ("CREATE VIEW v AS SELECT * FROM messages", "the view 'v'"),
        ("CREATE TABLE theirs (x)", "the table 'theirs'"),
        ("CREATE UNIQUE INDEX i ON message(messages_at)", "the index 'i'"),
        ("ALTER TABLE lane ADD COLUMN more TEXT", "the table 'lane'"),
    ],
)
@pytest.mark.parametrize("command", [("restore",), ("backup", "--verify")])
def test_a_store_that_somebody_else_changed_is_not_put_in_place(
    filled: Path, made_by: str, named: str, command: tuple[str, ...]
) -> None:
    legato("backup", "copy.db")
    with closing(sqlite3.connect("copy.db")) as connection:
        connection.execute(made_by)
    before = (filled / "legato.db").read_bytes()
    failed = legato(*command, "copy.db")
    assert (failed.exit_code, f"copy.db: it holds {named}, which Legato never made." in failed.stderr) == (1, True)
    assert (filled / "legato.db").read_bytes() == before


# -- trying -------------------------------------------------------------------------------------


def test_verifying_compares_with_the_store_as_it_is(filled: Path) -> None:
    file = made("backups")["file"]
    there = names(filled)
    row = json.loads(legato("backup", "--verify", file, "--json").stdout)
    assert (row["same"], row["changed"], row["gone"], row["not_compared"]) == (8, 0, 0, None)
    with closing(sqlite3.connect("legato.db")) as connection, connection:
        connection.execute("UPDATE message SET doc = replace(doc, 'a late', 'an early')")
        connection.execute("DELETE FROM session WHERE key = 's4'")
    row = json.loads(legato("backup", "--verify", file, "--json").stdout)
    assert row["rows"]["session"] == 8
    assert (row["changed"], row["gone"]) == (2, 1)
    lose_all(filled)
    without = legato("backup", "--verify", file)
    assert without.exit_code == 0, without.stderr
    assert "No session was compared: There is no store at" in without.stdout
    assert set(names(filled)) <= set(there)
