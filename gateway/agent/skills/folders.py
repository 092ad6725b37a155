"""The folder of a skill, read and written. No link is followed below it, and everything is bounded: what lies there
may be a stranger's, or may change while it is read."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from gateway.agent.skills.skill import FILE, MOST_BYTES, Skill, read
from gateway.runtime.errors import UserError

MOST_FILES: Final = 500
MOST_TOGETHER: Final = 20_000_000  # bytes of a skill's files
_DEEPEST: Final = 8
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

Contents = Mapping[str, tuple[bytes, bool]]
"""Files by their paths in a skill's folder, each with its bytes, and whether it may be run."""


class Folder(Struct, frozen=True):
    """A folder `below` another one, which is the operator's or the gateway's."""

    root: Path
    below: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """Return where it lies."""
        return self.root.joinpath(*self.below)

    def content(self, path: str, most: int = MOST_TOGETHER) -> bytes:
        """The bytes of a file in it. Raises UserError, also for a file that is larger."""
        *folders, name = path_in(path)
        try:
            with self._opened(*folders) as at, os.fdopen(os.open(name, _READ, dir_fd=at), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise UserError(f"{path} is no plain file")
                content = file.read(most + 1)
        except OSError as error:
            raise UserError(f"{path} cannot be read: {(error.strerror or 'unknown reason').lower()}") from None
        if len(content) > most:
            raise UserError(f"{path} is larger than {most:,} bytes")
        return content

    def skill(self, name: str) -> Skill:
        """What its SKILL.md says; it must go by the folder's name. Raises UserError."""
        try:
            skill = read(self.content(FILE, MOST_BYTES))
        except UserError as error:
            reason = str(error)
            raise UserError(reason if reason.startswith(FILE) else f"{FILE} {reason}") from None
        if skill.name != name:
            raise UserError(f"{FILE} is named {skill.name}, and its folder {name}: give both the same name")
        return skill

    def folders(self) -> list[str]:
        """The names of the folders in it that may hold skills."""
        try:
            with self._opened() as at:
                names = sorted(each.name for each in os.scandir(at) if each.is_dir(follow_symlinks=not self.below))
        except OSError:
            return []
        return [each for each in names if not each.startswith(".")]

    def files(self) -> list[str]:
        """The paths of the files in it. Raises UserError where there are too many, or what lies there is no file."""
        found: list[str] = []
        try:
            with self._opened() as at:
                for where, folders, names, here in os.fwalk(".", dir_fd=at, follow_symlinks=False):
                    parts = where.split("/")[1:]
                    for name in (*folders, *names):
                        mode = os.lstat(name, dir_fd=here).st_mode
                        if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
                            raise UserError(
                                f"{'/'.join([*parts, name])} is a link or a device: put a file in its place"
                            )
                    found += ["/".join([*parts, name]) for name in names]
                    folders[:] = sorted(each for each in folders if not each.startswith("."))
                    if len(found) > MOST_FILES or len(parts) > _DEEPEST:
                        raise UserError(f"there are more than {MOST_FILES} files, or folders deeper than {_DEEPEST}")
        except OSError as error:
            raise UserError(f"it cannot be read: {(error.strerror or 'unknown reason').lower()}") from None
        return sorted(found)

    def contents(self) -> Contents:
        """All of its files. Raises UserError."""
        found: dict[str, tuple[bytes, bool]] = {}
        room = MOST_TOGETHER
        for path in self.files():
            content = self.content(path, room)
            room -= len(content)
            found[path] = (content, os.access(self.path / path, os.X_OK))
        return found

    @contextmanager
    def _opened(self, *more: str) -> Iterator[int]:
        """A descriptor of a folder in it. Raises OSError, also where a link stands in the way."""
        at = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for name in (*self.below, *more):
                inner = os.open(name, _FOLDER, dir_fd=at)
                os.close(at)
                at = inner
            yield at
        finally:
            os.close(at)


def path_in(path: str) -> list[str]:
    """The parts of a path in a skill's folder. Raises UserError for one that may lead out of it."""
    parts = path.split("/")
    if "\\" in path or "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise UserError(f"{path[:200]!r} may lead out of the skill's folder: a path is such as references/more.md")
    if len(parts) > _DEEPEST:
        raise UserError(f"{path[:200]!r} lies deeper than {_DEEPEST} folders")
    return parts


def write(root: Path, name: str, contents: Contents, *, anew: bool = False) -> Path:
    """Make the folder of a skill, whole or not at all. `anew`: in the place of one that may be there. Raises
    UserError."""
    target, aside = root / name, root / f".{name}.new"
    if target.exists() and not anew:
        raise UserError(f"{target} exists already: `legato skills remove {name}` first")
    try:
        shutil.rmtree(aside, ignore_errors=True)
        for path, (content, runs) in contents.items():
            file = aside.joinpath(*path_in(path))
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file.write_bytes(content)
            file.chmod(0o700 if runs else 0o600)
        shutil.rmtree(target, ignore_errors=True)
        aside.rename(target)
    except OSError as error:
        shutil.rmtree(aside, ignore_errors=True)
        raise UserError(f"{target} cannot be written: {(error.strerror or 'unknown reason').lower()}") from None
    return target
