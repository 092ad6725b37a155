"""The folder of a skill, read and written. No link is followed below it, and everything is bounded: what lies there
may be a stranger's, or may change while it is read."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from gateway.agent.skills.skill import FILE, GROUP, MOST_BYTES, Skill, read
from gateway.agent.workspace import tree
from gateway.agent.workspace.names import names_in
from gateway.domain.wording import reason_of
from gateway.runtime.errors import ConfigError, ToolError, UserError
from gateway.runtime.plugins import installed, load, origin
from gateway.runtime.structs import replace

MOST_FILES: Final = 500
MOST_TOGETHER: Final = 20_000_000  # bytes of a skill's files

Contents = Mapping[str, tuple[bytes, bool]]
"""Files by their paths in a skill's folder, each with its bytes, and whether it may be run."""


class Folder(Struct, frozen=True):
    """A folder `below` another one, which is the operator's or the gateway's."""

    root: Path
    below: tuple[str, ...] = ()

    def content(self, path: str, most: int = MOST_TOGETHER) -> bytes:
        """The bytes of a file in it. Raises UserError, also for a file that is larger."""
        with _told():
            return tree.read(self.root, (*self.below, *names_in(path)), most)

    def skill(self, name: str) -> Skill:
        """What its SKILL.md says; it must go by the folder's name. Raises UserError."""
        skill = read(self.content(FILE, MOST_BYTES))
        if skill.name != name:
            raise UserError(f"{FILE} is named {skill.name}, and its folder {name}: give both the same name")
        return skill

    def folders(self) -> list[str]:
        """The names of the folders in it that may hold skills. The operator's may be links."""
        try:
            with _told(), tree.entered(self.root, self.below) as at, os.scandir(at) as there:
                names = sorted(each.name for each in there if each.is_dir(follow_symlinks=not self.below))
        except UserError:
            return []
        return [each for each in names if not each.startswith(".")]

    def files(self) -> list[str]:
        """The paths of the files in it. Raises UserError where there are too many, or one is a link or a device."""
        found, above = list[str](), "".join(f"{name}/" for name in self.below)
        with _told():
            for each in tree.walk(self.root, self.below, lambda at, _: at.name not in tree.UNSEEN):
                path = each.path.removeprefix(above)
                if not each.is_folder:
                    found.append(path)
                if not each.is_folder and not each.is_file:
                    raise UserError(f"{path} is a link or a device: put a file in its place")
                if len(found) > MOST_FILES:
                    raise UserError(f"there are more than {MOST_FILES} files in the folder")
        return sorted(found)

    def contents(self) -> Contents:
        """All of its files. Raises UserError."""
        found: dict[str, tuple[bytes, bool]] = {}
        room = MOST_TOGETHER
        for path in self.files():
            content = self.content(path, room)
            room -= len(content)
            found[path] = (content, os.access(self.root.joinpath(*self.below, path), os.X_OK))
        return found


class Known(Struct, frozen=True, kw_only=True):
    """A skill on the disk, without its body. `source`: where it is from, in a few words."""

    skill: Skill
    folder: Folder
    source: str


def found(folder: Path) -> tuple[dict[str, Known], list[tuple[str, str]]]:
    """The skills of the operator's folder, then those that packages bring; and the places of broken ones, with the
    reasons."""
    known: dict[str, Known] = {}
    broken: list[tuple[str, str]] = []
    for root, source in [(folder.resolve(), "your folder"), *_brought(broken)]:
        for name in Folder(root).folders():
            try:
                at = Folder((root / name).resolve())
                skill = replace(at.skill(name), body="")  # it is read when it is loaded
                known.setdefault(name, Known(skill=skill, folder=at, source=source))
            except UserError as error:
                broken.append((str(root / name), str(error)))
    return dict(sorted(known.items())), broken


def _brought(broken: list[tuple[str, str]]) -> Iterator[tuple[Path, str]]:
    for point in installed(GROUP).values():
        try:
            brought = load(point)
        except ConfigError as error:
            broken.append((origin(point), error.problems[0]))
            continue
        if isinstance(brought, Path):
            yield brought.resolve(), f"the package {point.dist.name}" if point.dist else "a package"
        else:
            broken.append((origin(point), "it must name a Path, the folder with the folders of skills"))


def write(root: Path, name: str, contents: Contents, *, anew: bool = False) -> Path:
    """Make the folder of a skill below the operator's, whole or not at all. `anew`: replace one that may be there.
    Raises UserError."""
    target, aside = root / name, root / f".{name}.new"
    if target.exists() and not anew:
        raise UserError(f"{target} exists already: `legato skills remove {name}` first")
    try:
        root.mkdir(mode=0o700, exist_ok=True)
        shutil.rmtree(aside, ignore_errors=True)
        for path, (content, runs) in contents.items():
            file = aside.joinpath(*names_in(path))
            for above in reversed(file.relative_to(root).parents[:-1]):
                (root / above).mkdir(mode=0o700, exist_ok=True)
            file.write_bytes(content)
            file.chmod(0o700 if runs else 0o600)
        shutil.rmtree(target, ignore_errors=True)
        aside.rename(target)
    except OSError as error:
        shutil.rmtree(aside, ignore_errors=True)
        raise UserError(f"{target} cannot be written: {reason_of(error)}") from None
    return target


@contextmanager
def _told() -> Iterator[None]:
    """The errors of files as sentences for a person. Raises UserError."""
    try:
        yield
    except ToolError as error:
        raise UserError(str(error).removesuffix(".")) from None
    except OSError as error:
        raise UserError(f"it cannot be read: {reason_of(error)}") from None
