"""The tools that read and send files."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, cast
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from gateway.agent.tools.base import ToolContext
from gateway.agent.tools.read_file import ReadFileTool
from gateway.agent.tools.send_file import SendFileTool, safe_name
from gateway.domain.chat import KeptFile
from gateway.runtime.errors import ToolError
from tests.emulators.telegram.people import PIXEL
from tests.support.fakes import ManualClock
from tests.support.tools import called


class Files:
    """A conversation's, made of a dict; what is sent goes into it."""

    def __init__(self, **contents: bytes) -> None:
        self.contents = contents
        self.sent: list[tuple[str, str, bytes]] = []
        self.captions: list[str] = []

    async def listed(self, limit: int) -> Sequence[KeptFile]:
        return [
            KeptFile(ref=name, digest=sha256(content).hexdigest(), name=name, mime="", size=len(content), at=0.0)
            for name, content in [*self.contents.items()][:limit]
        ]

    async def content(self, file: KeptFile) -> bytes | None:
        return self.contents.get(file.ref)

    async def output(self, name: str) -> KeptFile | None:
        return None

    async def add(self, name: str, mime: str, content: bytes) -> KeptFile:
        self.contents[name] = content
        return KeptFile(ref=name, digest=sha256(content).hexdigest(), name=name, mime=mime, size=len(content), at=0.0)

    async def send(self, name: str, mime: str, content: bytes, caption: str = "", *, kind: str = "sent") -> None:
        await self.send_together([(name, mime, content)], caption)

    async def send_together(self, files: Sequence[tuple[str, str, bytes]], caption: str = "") -> None:
        self.sent += files
        self.captions.append(caption)


def context(files: Files) -> ToolContext:
    parts = ("session", "recall", "around", "unindexed", "memory", "reminders")
    return ToolContext(clock=ManualClock(), files=files, **dict.fromkeys(parts, cast(Any, None)))


async def read(files: Files, **arguments: Any) -> str:
    return await called(ReadFileTool(), context(files), arguments)


async def test_pages_join_to_the_whole_text() -> None:
    text, files = "0123456789" * 3, Files(a=b"0123456789" * 3)
    pages = [await read(files, file="a", offset=offset, limit=7) for offset in range(0, 30, 7)]
    assert "".join(page.partition("]\n")[2] for page in pages) == text
    assert "characters 0 to 7 of 30; go on with offset 7" in pages[0]
    assert "this is its end" in pages[-1]


async def test_a_file_is_named_by_its_name_or_its_id() -> None:
    files = Files(a=b"one", b=b"two")
    assert (await read(files, file=sha256(b"two").hexdigest()[:12])).endswith("two")
    with pytest.raises(ToolError, match="There is no file"):
        await read(files, file="c")


async def test_no_name_leads_to_a_file_of_the_machine(tmp_path: Path) -> None:
    outside, link = tmp_path / "secret", tmp_path / "a"
    outside.write_text("secret")
    link.symlink_to(outside)
    files = Files(a=b"one")
    for name in (outside, link, f"file://{outside}", "../../../etc/passwd", "/etc/passwd", "./a", "a/../a", "a\0"):
        with pytest.raises(ToolError, match="There is no file"):
            await read(files, file=str(name))
    assert (await read(files, file="a")).endswith("one")


async def test_nothing_sent_is_said() -> None:
    assert await read(Files()) == "No file was sent in this conversation."


def zipped(name: str) -> bytes:
    """Return a small file that is large once it is unpacked."""
    packed = BytesIO()
    with ZipFile(packed, "w", ZIP_DEFLATED) as archive:
        archive.writestr(name, b"x" * 1_000_000)
    return packed.getvalue()


@pytest.mark.parametrize(
    "content", [b"\x00\x01", zipped("xl/workbook.xml"), zipped("word/document.xml"), gzip.compress(b"x" * 1_000_000)]
)
async def test_what_is_no_text_is_neither_read_nor_unpacked(content: bytes) -> None:
    with pytest.raises(ToolError, match="cannot be read here: it is "):
        await read(Files(a=content), file="a")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"limit": True}, "`limit`"),
        ({"offset": "1"}, "`offset`"),
        ({"offset": 4}, "has only"),
        *(({"pattern": pattern}, "`pattern`") for pattern in ("(", "x" * 201, 7)),
        ({"pattern": "(?:(?:(?:a{500}){500}){500}){500}"}, "smaller ones"),
        ({"pattern": "(?:(?:a?){1000}){1000}"}, "smaller ones"),
        ({"pattern": "(?#[)(?:(?:a?){,1000}){1000,}(?#])"}, "smaller ones"),
    ],
)
async def test_what_is_no_number_and_what_is_no_pattern_are_refused(arguments: dict[str, Any], why: str) -> None:
    with pytest.raises(ToolError, match=why):
        await read(Files(a=b"one"), file="a", **arguments)


async def test_a_number_out_of_range_is_the_nearest_one_in_it() -> None:
    assert (await read(Files(a=b"one"), file="a", offset=-1, limit=0)).endswith("go on with offset 1]\no")
    assert len(await read(Files(a=b"x" * 50_000), file="a", limit=10**9)) < 20_100


async def test_lines_that_match_come_once_with_their_offset() -> None:
    found = await read(Files(a=b"ab ab\nc\nab\n"), file="a", pattern="ab")
    assert found.splitlines()[1:] == ["0: ab ab", "8: ab"]
    assert await read(Files(a=b"x"), file="a", pattern="y") == '["a": nothing matches]'


async def test_many_matches_are_paged() -> None:
    files = Files(a=b"x\n" * 100)
    first = await read(files, file="a", pattern="x")
    assert "go on with offset 80" in first
    assert len(first.splitlines()) == 41
    assert (await read(files, file="a", pattern="x", offset=80)).splitlines()[1] == "80: x"


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*a){12}b"])
async def test_a_pattern_that_takes_for_ever_is_ended(pattern: str) -> None:
    files = Files(a=b"a" * 5_000 + b"!")
    with pytest.raises(ToolError, match="make it simpler"):
        await ReadFileTool(seconds=0.05).run({"file": "a", "pattern": pattern}, context(files))


async def test_a_long_line_is_shown_around_each_match_and_gone_on_with() -> None:
    line = (b"-" * 999 + b"x") * 3_000
    first = await read(Files(a=line), file="a", pattern="x")
    assert [found.partition(":")[0] for found in first.splitlines()[1:3]] == ["799", "1799"]
    assert "go on with offset 40199" in first
    last = await read(Files(a=line), file="a", pattern="x", offset=2_999_000)
    assert last.splitlines()[1:] == ["2999799: " + "-" * 200 + "x"]


@pytest.mark.parametrize("pattern", ["^last$", "(?<=\n)last", "last\\Z"])
async def test_edges_of_pieces_are_line_ends_and_no_others(pattern: str) -> None:
    text = b"first\n" * 20_000 + b"last"
    assert (await read(Files(a=text), file="a", pattern=pattern)).endswith("\n120000: last")
    assert (await read(Files(a=text), file="a", pattern="^irst$", offset=1)).endswith("nothing matches]")


@pytest.mark.parametrize(
    ("given", "safe"),
    [
        ("notes.md", "notes.md"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Windows\\x.txt", "x.txt"),
        ("a\x00b\nc.txt", "a_b_c.txt"),
        ("evil\u202egpj.txt", "evil_gpj.txt"),
        ("...", "file.txt"),
        ("", "file.txt"),
        ("/", "file.txt"),
        (".hidden", "hidden"),
        ("отчёт 2026.md", "отчёт 2026.md"),
        ("x" * 200 + ".csv", "x" * 48 + ".csv"),
        ("y" * 200, "y" * 60),
        ("\U0001f600" * 99, "\U0001f600" * 60),
        ("half\ud800.md", "half_.md"),
        ("CON", "_CON"),
        ("aux.tar.gz", "_aux.tar.gz"),
        ("console.md", "console.md"),
    ],
)
def test_a_name_is_safe_on_every_system(given: str, safe: str) -> None:
    assert safe_name(given) == safe


async def test_a_file_is_sent_as_what_its_name_says() -> None:
    files = Files()
    told = await SendFileTool().run({"name": "a.csv", "content": "ü,1\n"}, context(files))
    assert files.sent == [("a.csv", "text/csv", "ü,1\n".encode("utf-8-sig"))]
    assert told.startswith("The file a.csv (8 bytes) is on its way")


@pytest.mark.parametrize(
    ("name", "mime"), [("a.png", "text/plain"), ("a.svg", "image/svg+xml"), ("a.mp3", "text/plain")]
)
async def test_a_text_is_never_sent_as_a_picture_or_a_sound(name: str, mime: str) -> None:
    files = Files()
    await SendFileTool().run({"name": name, "content": "x"}, context(files))
    assert files.sent == [(name, mime, b"x")]


async def test_a_file_of_the_conversation_is_sent_again_as_what_it_is() -> None:
    files = Files(**{"cat.txt": PIXEL, "b.png": b"no picture"})
    await SendFileTool().run({"file": "cat.txt", "caption": " Your **cat** "}, context(files))
    await SendFileTool().run({"file": "b.png", "name": "c/d.bin"}, context(files))
    assert files.sent == [("cat.txt", "image/png", PIXEL), ("d.bin", "application/octet-stream", b"no picture")]
    assert files.captions == ["Your **cat**", ""]


@pytest.mark.parametrize("nothing", [None, ""])
async def test_what_a_model_fills_in_with_nothing_is_left_out(nothing: str | None) -> None:
    files = Files(**{"": b"a voice", "cat.txt": PIXEL})
    for given in ({"file": "cat.txt"}, {"name": "a.txt", "content": "x"}):
        left_out = dict.fromkeys(("file", "name", "content", "caption"), nothing)
        await called(SendFileTool(), context(files), left_out | given)
    assert [(name, content) for name, _, content in files.sent] == [("cat.txt", PIXEL), ("a.txt", b"x")]
    with pytest.raises(ToolError):
        await called(SendFileTool(), context(files), {"file": nothing})


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"name": "a"},
        {"name": 1, "content": "x"},
        {"name": "a", "content": ""},
        {"name": "a", "content": "x", "caption": 1},
        {"name": "a", "content": "x", "caption": "x" * 4_001},
        {"file": "nobody's"},
        {"file": 7},
        {"file": "empty"},
    ],
)
async def test_a_file_without_name_or_content_is_refused(arguments: dict[str, Any]) -> None:
    files = Files(empty=b"")
    with pytest.raises(ToolError):
        await called(SendFileTool(), context(files), arguments)
    assert files.sent == []


@pytest.mark.parametrize(
    "pattern", ["a(?R)?b", "(a(?1)?b)", "(?<x>a(?&x)?b)", "(?P<x>a(?P>x)?b)", "(?:a(?0))", "(a)(?-1)"]
)
async def test_a_pattern_that_calls_itself_is_refused(pattern: str) -> None:
    with pytest.raises(ToolError, match="calls itself"):
        await read(Files(a=b"one"), file="a", pattern=pattern)
    assert "1 " not in await read(Files(a=b"a1"), file="a", pattern=r"(?:a)(?=\d)(?i:1)(?P<n>x?)")
