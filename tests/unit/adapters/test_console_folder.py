"""Files that are sent to a terminal."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from pathlib import Path

import pytest

from adapters.console.adapter import JsonConsole
from adapters.console.folder import filed
from gateway.domain.chat import ChatAddress, KeptFile, Outbound, SessionKey
from gateway.runtime.errors import AdapterError
from gateway.runtime.structs import replace
from tests.support.hosts import host

FILE = KeptFile(ref="r", digest="d", name="a.md", mime="text/markdown", size=1, at=0.0)
ROW = Outbound(
    id="o_1",
    key=SessionKey(platform="console", chat="main"),
    to=ChatAddress(platform="console", chat="main"),
    kind="notice",
    text="",
    file=FILE,
)


def kept(files: Path, row: Outbound, content: bytes) -> Path:
    return Path(filed(files, row, content).text.removeprefix("File: "))


def test_a_file_is_written_for_its_owner_only_and_a_repeat_writes_it_again(tmp_path: Path) -> None:
    for content in (b"x", b"x"):
        place = kept(tmp_path / "home" / "files", ROW, content)
        assert place.read_bytes() == content
    assert place.name == "a.md"
    assert all(each.stat().st_mode & 0o077 == 0 for each in (place, *place.parents[:3]))
    assert [each.name for each in place.parent.iterdir()] == ["a.md"]
    told = filed(tmp_path / "home" / "files", replace(ROW, text="Here."), b"x").text
    assert told == f"Here.\nFile: {place}"


def test_two_files_of_one_name_lie_apart(tmp_path: Path) -> None:
    first, second = kept(tmp_path, ROW, b"1"), kept(tmp_path, replace(ROW, id="o_2"), b"2")
    assert (first.read_bytes(), second.read_bytes()) == (b"1", b"2")


@pytest.mark.parametrize("name", ["../../up.txt", "/etc/up.txt", ".."])
def test_no_name_leaves_the_folder(tmp_path: Path, name: str) -> None:
    place = kept(tmp_path / "files", replace(ROW, file=replace(FILE, name=name)), b"x")
    assert place.is_relative_to((tmp_path / "files" / "o_1").absolute())
    assert place.read_bytes() == b"x"


def test_a_folder_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / "files").write_text("in the way")
    with pytest.raises(AdapterError, match="cannot be written"):
        filed(tmp_path / "files", ROW, b"x")


async def test_the_terminal_says_where_the_file_is(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    nothing, unused = os.pipe()
    console = JsonConsole(nothing, writing, host(home=tmp_path))
    await console.send_file(ROW, b"x")
    line = json.loads(await asyncio.to_thread(os.read, reading, 65_536))
    assert line["kind"] == "notice"
    assert line["text"] == f"File: {tmp_path / 'files' / 'o_1' / 'a.md'}"
    await console.aclose()
    for descriptor in (reading, writing, nothing, unused):
        os.close(descriptor)


def test_a_file_that_cannot_be_written_whole_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def is_full(self: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", is_full)
    with pytest.raises(AdapterError, match=r"a\.md cannot be written: No space left"):
        filed(tmp_path, ROW, b"x")
    assert [*(tmp_path / "o_1").iterdir()] == []
