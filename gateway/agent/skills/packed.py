"""What somebody brings: a folder or an archive with one skill or several. An archive is never unpacked to the disk
before all of it was looked at, and of anything that is no plain file in its folder nothing is taken."""

from __future__ import annotations

import gzip
import io
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Final

from msgspec import Struct, field

from gateway.agent.skills.folders import MOST_FILES, MOST_TOGETHER, Contents, Folder
from gateway.agent.skills.skill import FILE, Skill, read
from gateway.agent.workspace.names import names_in
from gateway.agent.workspace.tree import UNSEEN, walk
from gateway.domain.wording import reason_of
from gateway.runtime.errors import ToolError, UserError

_MOST_ENTRIES: Final = 5_000  # of an archive, which may hold more than skills
_MOST_UNPACKED: Final = 100_000_000  # bytes
_SETUID: Final = stat.S_ISUID | stat.S_ISGID

Member = tuple[str, int, int, Callable[[], IO[bytes] | None]]
"""Name, mode and size of what is in an archive, as it says, and what opens it."""


class Brought(Struct, frozen=True, kw_only=True):
    """A skill with its files; or, if `skill` is None, why there is none in this place."""

    where: str
    skill: Skill | None = None
    contents: Contents = field(default_factory=dict)
    problem: str = ""


def brought(source: Path) -> list[Brought]:
    """The skills in a folder or an archive, by their own names, whatever their folders are called. Raises UserError."""
    source = (source.parent if source.name == FILE else source).resolve()
    try:
        if source.is_file() and source.stat().st_size > _MOST_UNPACKED:
            raise UserError(f"{source} is larger than {_MOST_UNPACKED // 1_000_000} MB: give the folder of the skill")
        contents = _of_folder(source) if source.is_dir() else _unpacked(source.read_bytes())
    except OSError as error:
        raise UserError(f"{source} cannot be read: {reason_of(error)}") from None
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError):
        raise UserError(f"{source} is damaged or not an archive: give a folder, .zip, .tar or .tar.gz file") from None
    roots = _outermost(PurePosixPath(path).parent for path in contents if PurePosixPath(path).name == FILE)
    if not roots:
        raise UserError(f"{source} holds no {FILE}")
    return [_one(root, contents) for root in roots]


def _one(root: PurePosixPath, contents: Contents) -> Brought:
    files = {
        str(PurePosixPath(path).relative_to(root)): content
        for path, content in contents.items()
        if PurePosixPath(path).is_relative_to(root)
    }
    try:
        skill = read(files[FILE][0])
        for path in files:
            names_in(path)
        if len(files) > MOST_FILES or sum(len(content) for content, _ in files.values()) > MOST_TOGETHER:
            raise UserError(f"comes with more than {MOST_FILES} files or {MOST_TOGETHER // 1_000_000} MB")
    except (UserError, ToolError) as error:
        return Brought(where=str(root), problem=f"{root}: {error}")
    return Brought(where=str(root), skill=skill, contents=files)


def _of_folder(source: Path) -> Contents:
    """The files of the skills that lie in a folder, however deep."""
    found: dict[str, tuple[bytes, bool]] = {}
    files = (each for each in walk(source, (), lambda at, _: at.name not in UNSEEN) if each.name == FILE)
    for root in _outermost(PurePosixPath(each.path).parent for each in files):
        for path, content in Folder(source, root.parts).contents().items():
            found[str(root / path)] = content
    return found


def _outermost(roots: Iterable[PurePosixPath]) -> list[PurePosixPath]:
    """The folders of skills without those that lie in others, which are files of these."""
    every = sorted(roots)
    return [root for root in every if not any(other in root.parents for other in every)]


def _unpacked(packed: bytes) -> Contents:
    """The files of an archive. Raises UserError for what could lead out of it, or grow without end."""
    found: dict[str, tuple[bytes, bool]] = {}
    room = _MOST_UNPACKED
    members = _zipped(packed) if zipfile.is_zipfile(io.BytesIO(packed)) else _tarred(packed)
    for count, (name, mode, size, opened) in enumerate(members, 1):
        path = name.removeprefix("./").rstrip("/")
        room -= size
        if room < 0 or count > _MOST_ENTRIES:
            raise UserError(f"the archive holds more than {_MOST_ENTRIES:,} files or {_MOST_UNPACKED // 1_000_000} MB")
        if path.startswith("/") or "\\" in path or "\0" in path or ".." in path.split("/"):
            raise UserError(f"the archive holds {name[:200]!r}, which points outside it")
        if mode & _SETUID:
            raise UserError(f"the archive holds {name[:200]!r}, which would run with another's rights")
        if stat.S_IFMT(mode) not in (stat.S_IFREG, stat.S_IFDIR):
            raise UserError(f"the archive holds {name[:200]!r}, which is a link or a device")
        if stat.S_ISREG(mode) and not any(part in UNSEEN for part in path.split("/")):
            file = opened()
            found[path] = (file.read(size) if file else b"", bool(mode & stat.S_IXUSR))
    return found


def _zipped(packed: bytes) -> Iterator[Member]:
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        for each in archive.infolist():
            mode = each.external_attr >> 16
            kind = stat.S_IFMT(mode) or (stat.S_IFDIR if each.is_dir() else stat.S_IFREG)
            yield each.filename, stat.S_IMODE(mode) | kind, each.file_size, partial(archive.open, each)


def _tarred(packed: bytes) -> Iterator[Member]:
    """All of it is unpacked first, because a header may say any size."""
    if packed.startswith(b"\x1f\x8b"):
        with gzip.open(io.BytesIO(packed)) as unpacked:
            packed = unpacked.read(_MOST_UNPACKED + 1)
        if len(packed) > _MOST_UNPACKED:
            raise UserError(f"the archive unpacks to more than {_MOST_UNPACKED // 1_000_000} MB")
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:") as archive:
        for each in archive:
            kind = stat.S_IFREG if each.isreg() else stat.S_IFDIR if each.isdir() else stat.S_IFLNK
            yield each.name, stat.S_IMODE(each.mode) | kind, each.size, partial(archive.extractfile, each)
