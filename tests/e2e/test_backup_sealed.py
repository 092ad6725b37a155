"""Backups that are encrypted by age: the program itself where it is installed, else one that takes the same calls."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner, Result

from gateway.cli.main import app
from tests.support.empty_store import put_empty_store

STAND_IN: Final = f"""#!{sys.executable} -S
import sys
verb, _, who = sys.argv[1:]
mark = b"age-encryption.org/v1\\n"
data = sys.stdin.buffer.read()
if verb == "--encrypt":
    if not who.startswith("age1"):
        sys.exit("age: error: unknown recipient type")
    sys.stdout.buffer.write(mark + who.encode() + b"\\n" + bytes(each ^ 255 for each in data))
else:
    owner, _, sealed = data.removeprefix(mark).partition(b"\\n")
    if open(who, "rb").read() != owner:
        sys.exit("age: error: no identity matched any of the recipients")
    sys.stdout.buffer.write(bytes(each ^ 255 for each in sealed))
"""


def legato(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    put_empty_store(tmp_path / "legato.db")
    (tmp_path / "legato-home").mkdir()
    (tmp_path / "legato-home" / "history").write_text("what I typed " * 9_999)
    return tmp_path


def configure(folder: Path, **backup: Any) -> None:
    settings = {"store": {"url": "sqlite:///legato.db"}, "backup": backup}
    (folder / "config.yaml").write_text(json.dumps(settings), encoding="utf-8")


@pytest.fixture(params=["installed", "stand-in"])
def keys(request: pytest.FixtureRequest, home: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Path]]:
    """Two public keys, each with the file of its private one."""
    if request.param == "installed" and shutil.which("age-keygen"):
        found = []
        for name in ("one", "two"):
            subprocess.run(["age-keygen", "-o", name], check=True, stderr=subprocess.DEVNULL)
            public = subprocess.run(["age-keygen", "-y", name], check=True, capture_output=True, text=True).stdout
            found.append((public.strip(), home / name))
        return found
    (home / "bin").mkdir()
    (home / "bin" / "age").write_text(STAND_IN)
    (home / "bin" / "age").chmod(0o755)
    monkeypatch.setenv("PATH", str(home / "bin"), prepend=":")
    for name in ("one", "two"):
        (home / name).write_text(f"age1{name}")
    return [(f"age1{name}", home / name) for name in ("one", "two")]


def test_only_the_key_opens_it(home: Path, keys: list[tuple[str, Path]]) -> None:
    (recipient, identity), (_, other) = keys
    configure(home, recipient=recipient, to=".")
    row = json.loads(legato("backup", "--json").stdout)
    assert row["file"].endswith(".tar.age")
    content = (home / row["file"]).read_bytes()
    assert content.startswith(b"age-encryption.org/v1")
    assert b"what I typed" not in content
    assert "is encrypted. Name the file with the key: --identity FILE" in legato("restore", row["file"]).stderr
    wrong = legato("restore", row["file"], "--identity", str(other))
    assert (wrong.exit_code, len(wrong.stderr.splitlines())) == (1, 1)
    assert "age failed: no identity matched any of the recipients." in wrong.stderr
    assert legato("backup", "--verify", row["file"], "--identity", str(identity)).exit_code == 0
    (home / "legato-home" / "history").unlink()
    done = legato("restore", row["file"], "--identity", str(identity))
    assert done.exit_code == 0, done.stderr
    assert (home / "legato-home" / "history").read_text().startswith("what I typed")


def test_an_encrypted_one_that_was_cut_is_refused(home: Path, keys: list[tuple[str, Path]]) -> None:
    (recipient, identity), _ = keys
    configure(home, recipient=recipient)
    assert legato("backup", "one.tar.age").exit_code == 0
    content = (home / "one.tar.age").read_bytes()
    (home / "cut.age").write_bytes(content[: len(content) // 2])
    failed = legato("restore", "cut.age", "--identity", str(identity))
    assert (failed.exit_code, len(failed.stderr.splitlines())) == (1, 1), failed.stderr
    assert "age failed" in failed.stderr or "cut.age is" in failed.stderr


def test_a_key_that_is_none_leaves_nothing(home: Path, keys: list[tuple[str, Path]]) -> None:
    configure(home, recipient="nobody")
    failed = legato("backup", "one.tar.age")
    assert (failed.exit_code, len(failed.stderr.splitlines())) == (1, 1), failed.stderr
    assert "age failed: " in failed.stderr
    assert not (home / "one.tar.age").exists()
    assert not list(home.glob("*.partial*"))
    plain = legato("backup", "one.db")
    assert "a .db file is not encrypted" in plain.stderr


def test_without_the_program_it_says_what_to_install(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(home))
    configure(home, recipient="age1x")
    failed = legato("backup", "one.tar.age")
    assert "backup.recipient needs the program `age`. Install the package `age`" in failed.stderr
    (home / "some.age").write_bytes(b"age-encryption.org/v1\n")
    failed = legato("restore", "some.age", "--identity", "key")
    assert "an encrypted backup needs the program `age`" in failed.stderr
    assert not (home / "one.tar.age").exists()
