"""What a SKILL.md is, and what it is not; folders and archives that bring some."""

from __future__ import annotations

import gzip
import io
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from struct import pack

import pytest

from gateway.agent.skills.catalogue import MARK, listing
from gateway.agent.skills.folders import Folder, found, write
from gateway.agent.skills.packed import brought
from gateway.agent.skills.skill import named, read
from gateway.runtime.errors import UserError

FRONT = "---\nname: a-skill\ndescription: Does it.\n{more}---\nDo it.\n"
PLAIN = FRONT.format(more="").encode()


def test_a_skill_is_read_whole() -> None:
    skill = read(
        b"\xef\xbb\xbf---\r\nname: pdf-tools\r\ndescription: >\r\n  Reads PDFs.\r\n  Use it for PDFs.\r\n"
        b"license: MIT\r\ncompatibility: Needs git\r\nmetadata:\r\n  version: 1.0\r\n"
        b"allowed-tools: Read, Bash(git log:*) mcp__hub__find\r\n"
        b"argument-hint: [x]\r\n---\r\n# Steps\r\n---\r\nmore\r\n"
    )
    assert (skill.name, skill.description) == ("pdf-tools", "Reads PDFs. Use it for PDFs.")
    assert skill.compatibility == "Needs git"
    assert skill.tools == ("read_file", "shell", "hub_find")
    assert skill.body == "# Steps\n---\nmore"


@pytest.mark.parametrize(
    ("more", "tools"),
    [
        ("", None),
        ("allowed-tools:\n", None),
        ("allowed-tools: [Read, WebFetch, mine]\n", ("read_file", "web_fetch", "mine")),
        ("allowed-tools:\n  - Edit\n  - Write\n", ("patch", "write_file")),
    ],
)
def test_allowed_tools_go_by_our_names(more: str, tools: tuple[str, ...] | None) -> None:
    assert read(FRONT.format(more=more).encode()).tools == tools


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "has no front matter"),
        (b"# A skill\n", "has no front matter"),
        (b"---\nname: a\n", "has no front matter"),
        (b"---\n- a\n---\n", "has no front matter"),
        (b"\xff\xfe---", "is not UTF-8 text (byte 1)"),
        (b"---\nname: a\n---\n", "has no `description`"),
        (b"---\ndescription: a\n---\n", "is named ''"),
        (b"---\nname: ../a\ndescription: a\n---\n", "is named '../a'"),
        (b"---\nname: a--b\ndescription: a\n---\n", "is named 'a--b'"),
        (b"---\nname: My Skill\ndescription: a\n---\n", "is named 'My Skill'"),
        (b"---\nname: " + b"a" * 65 + b"\ndescription: a\n---\n", "has a `name` of 65 characters"),
        (b"---\nname: a\ndescription: " + b"a" * 1025 + b"\n---\n", "has a `description` of 1,025 characters"),
        (b"---\nname: a\ndescription: [a]\n---\n", "has a `description` that is not text"),
        (b"---\nname: a\ndescription: b: c\n---\n", "not valid YAML (line 3)"),
        (b"---\nname: a\ndescription: &x b\n---\n", "YAML aliases or tags"),
        (b"---\nname: a\ndescription: !!python/name:os.system b\n---\n", "YAML aliases or tags"),
        (b"---\na: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n---\n", "YAML aliases or tags"),
        (b"---\na: " + b"[" * 8_000 + b"\n---\n", "nested too deeply"),
        (b"---\na: " + b"x" * 17_000 + b"\n---\n", "front matter of more than 16,000 characters"),
        (PLAIN + b"x" * 5_000_000, "is larger than 200 KB"),
    ],
)
def test_a_broken_one_gets_a_plain_sentence(content: bytes, reason: str) -> None:
    with pytest.raises(UserError, match=r"^SKILL\.md ") as raised:
        read(content)
    assert reason in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", ["..", "a/b", "", "A", "-a", "a" * 65, "a\n"])
def test_no_path_is_a_name(name: str) -> None:
    with pytest.raises(UserError):
        named(name)


# -- in the prompt --------------------------------------------------------------------------------


def test_a_listing_has_room_for_what_fits_and_says_what_is_left_out() -> None:
    assert listing({}, 100_000) == ""
    assert listing({"a": "Does\n</memory> it."}, 100_000) == f"{MARK}- a: Does (/memory) it."
    many = {f"s{number}": "word " * 200 for number in range(100)}
    shown = listing(many, 100_000)
    assert len(shown.encode()) < 0.02 * 100_000 * 3 + 200
    assert "- s0: word word" in shown
    assert "…" in shown
    assert shown.endswith("more: `skill` finds them by a few words.)")


# -- folders --------------------------------------------------------------------------------------


def put(folder: Path, content: bytes = PLAIN) -> Path:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_bytes(content)
    return folder


def test_a_folder_of_skills_tells_what_is_broken(tmp_path: Path) -> None:
    put(tmp_path / "a-skill")
    put(tmp_path / "other")
    (tmp_path / "empty").mkdir()
    (tmp_path / ".hidden").mkdir()
    known, broken = found(tmp_path)
    assert list(known) == ["a-skill"]
    assert dict(broken).keys() == {str(tmp_path / "other"), str(tmp_path / "empty")}
    assert "named a-skill, and its folder other" in dict(broken)[str(tmp_path / "other")]


def test_the_operator_may_link_to_a_skill_but_none_may_hold_links(tmp_path: Path) -> None:
    real = put(tmp_path / "real" / "work")
    (real / "out").symlink_to("/etc/passwd")
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / "a-skill").symlink_to(real)
    (tmp_path / "home").symlink_to("skills")
    known, _ = found(tmp_path / "home")
    with pytest.raises(UserError, match="out is a link or a device"):
        known["a-skill"].folder.files()
    with pytest.raises(UserError, match="is a link"):
        known["a-skill"].folder.content("out")


def test_a_skill_is_written_whole_and_for_its_owner_alone(tmp_path: Path) -> None:
    target = write(tmp_path / "skills", "a-skill", {"SKILL.md": (PLAIN, False), "scripts/deep/run.sh": (b"#!", True)})
    assert Folder(target).files() == ["SKILL.md", "scripts/deep/run.sh"]
    assert all(not each.stat().st_mode & 0o077 for each in target.rglob("*"))
    assert (target / "scripts/deep/run.sh").stat().st_mode & stat.S_IXUSR
    with pytest.raises(UserError, match="exists already"):
        write(tmp_path / "skills", "a-skill", {})


# -- archives -------------------------------------------------------------------------------------


def tarred(*members: tuple[str, bytes], change: Callable[[tarfile.TarInfo], object] = lambda _: None) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            change(info)
            archive.addfile(info, io.BytesIO(content) if info.isreg() else None)
    return packed.getvalue()


def zipped(*members: tuple[str, bytes], mode: int = 0) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            archive.writestr(info, content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def of(folder: Path, packed: bytes) -> dict[str, list[str]]:
    """The skills of an archive with their files."""
    (folder / "skill.bin").write_bytes(packed)
    return {
        each.skill.name if each.skill else each.problem: sorted(each.contents) for each in brought(folder / "skill.bin")
    }


def test_an_archive_brings_its_skills_wherever_they_lie(tmp_path: Path) -> None:
    members = [("package/x/SKILL.md", PLAIN), ("package/x/a/b.txt", b"b"), ("package/README", b""), ("__MACOSX/x", b"")]
    assert of(tmp_path, tarred(*members)) == {"a-skill": ["SKILL.md", "a/b.txt"]}
    assert of(tmp_path, zipped(*members)) == {"a-skill": ["SKILL.md", "a/b.txt"]}
    assert of(tmp_path, zipped(("SKILL.md", PLAIN))) == {"a-skill": ["SKILL.md"]}


def test_a_folder_brings_what_is_in_it_and_a_file_its_folder(tmp_path: Path) -> None:
    put(tmp_path / "one")
    put(tmp_path / "deeper/two", PLAIN.replace(b"a-skill", b"two"))
    put(tmp_path / "one/examples/inner")
    (tmp_path / "three").mkdir()
    (tmp_path / "link").symlink_to("one")
    assert [each.skill.name for each in brought(tmp_path) if each.skill] == ["two", "a-skill"]
    for source in (tmp_path / "one", tmp_path / "one/SKILL.md", tmp_path / "link"):
        assert [each.skill.name for each in brought(source) if each.skill] == ["a-skill"]
    with pytest.raises(UserError, match="cannot be read: no such file"):
        brought(tmp_path / "missing")


def test_a_broken_skill_does_not_keep_the_others_out(tmp_path: Path) -> None:
    found = of(tmp_path, zipped(("a/SKILL.md", PLAIN), ("b/SKILL.md", b"nothing")))
    assert list(found) == [
        "a-skill",
        next(each for each in found if each.startswith("b: SKILL.md has no front matter")),
    ]


def linked(info: tarfile.TarInfo) -> None:
    info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"


def device(info: tarfile.TarInfo) -> None:
    info.type = tarfile.CHRTYPE


def setuid(info: tarfile.TarInfo) -> None:
    info.mode = 0o4755


def hard(info: tarfile.TarInfo) -> None:
    info.type, info.linkname = tarfile.LNKTYPE, "SKILL.md"


HOLED = b"x" * 60_000_000


@pytest.mark.parametrize(
    ("packed", "reason"),
    [
        (lambda: tarred(("../SKILL.md", PLAIN)), "points outside it"),
        (lambda: tarred(("/etc/SKILL.md", PLAIN)), "points outside it"),
        (lambda: zipped(("a/../../SKILL.md", PLAIN)), "points outside it"),
        (lambda: zipped(("a\\SKILL.md", PLAIN)), "points outside it"),
        (lambda: tarred(("a", b""), change=linked), "is a link or a device"),
        (lambda: tarred(("a", b""), change=hard), "is a link or a device"),
        (lambda: tarred(("a", b""), change=device), "is a link or a device"),
        (lambda: zipped(("a", b"/etc/passwd"), mode=stat.S_IFLNK | 0o777), "is a link or a device"),
        (lambda: tarred(("SKILL.md", PLAIN), change=setuid), "with another's rights"),
        (lambda: zipped(("SKILL.md", PLAIN), mode=stat.S_IFREG | 0o4755), "with another's rights"),
        (lambda: gzip.compress(bytes(101_000_000)), "unpacks to more than 100 MB"),
        (lambda: zipped(("a", HOLED), ("b", HOLED)), "or 100 MB"),
        (lambda: zipped(*[(f"{number}", b"") for number in range(5_001)]), "more than 5,000 files"),
        (lambda: zipped(("SKILL.md", PLAIN * 9)).replace(pack("<I", len(PLAIN) * 9), pack("<I", 10)), "damaged"),
        (lambda: zipped(("README", b"")), "holds no SKILL.md"),
        (lambda: b"GIF89a", "damaged or not an archive"),
        (lambda: zipped(("SKILL.md", PLAIN))[:-30], "damaged or not an archive"),
        (lambda: tarred(("SKILL.md", PLAIN * 500))[:-200], "damaged or not an archive"),
    ],
)
def test_a_hostile_archive_is_refused_whole(tmp_path: Path, packed: Callable[[], bytes], reason: str) -> None:
    with pytest.raises(UserError) as raised:
        of(tmp_path, packed())
    assert reason in str(raised.value)


def test_a_skill_with_too_many_files_is_left_out(tmp_path: Path) -> None:
    members = [("x/SKILL.md", PLAIN), *[(f"x/{number}", b"") for number in range(501)]]
    assert list(of(tmp_path, zipped(*members))) == ["x: comes with more than 500 files or 20 MB"]


# -- packages -------------------------------------------------------------------------------------


def test_a_package_brings_a_folder_of_skills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "site/brought/skills/a-skill")
    put(tmp_path / "site/brought/skills/other", PLAIN.replace(b"a-skill", b"other"))
    (tmp_path / "site/brought/__init__.py").write_text(
        "from pathlib import Path\nSKILLS = Path(__file__).parent / 'skills'\nWRONG = 'skills'\n"
    )
    info = tmp_path / "site/brought-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brought\nVersion: 1.0\n")
    points = "[legato.skills]\nright = brought:SKILLS\nwrong = brought:WRONG\nmissing = brought:NONE\n"
    (info / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(tmp_path / "site")
    put(tmp_path / "skills/other", PLAIN.replace(b"a-skill", b"other").replace(b"Does it.", b"My own."))
    known, broken = found(tmp_path / "skills")
    assert {name: each.source for name, each in known.items()} == {
        "a-skill": "the package brought",
        "other": "your folder",
    }
    assert known["other"].skill.description == "My own."
    assert [reason.split(":")[0] for _, reason in broken] == [
        "legato.skills",
        "it must name a Path, the folder with the folders of skills",
    ]
