"""Reads and writes files below a folder in which a stranger's program may run, without ever leaving it.

Each name of a path is opened relative to the descriptor of the folder before it, and no link is followed. So it makes
no difference what a program puts in the place of a folder meanwhile. Only regular files are read, and nothing here
waits for one: pipes, sockets and devices are left alone. A file is written beside the folder and renamed into its
place: a crash leaves the old one or the new one.
"""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from gateway.agent.workspace.names import composed, shown
from gateway.runtime import posix
from gateway.runtime.errors import ToolError
from gateway.runtime.inside import marked

_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | posix.NO_LINK | posix.OWN
_FILE: Final = os.O_RDONLY | posix.NO_LINK | posix.OWN | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_DEEPEST: Final = 60  # folders in one another that are walked; a descriptor is open for each
_PIECE: Final = 1_000_000  # bytes read at once
_BINARY: Final = 8_192  # bytes at the beginning of a file: a NUL there is of no text
UNSEEN: Final = (".git", ".venv", "__MACOSX", "__pycache__", "node_modules")  # folders in which nobody looks for a file
_BUILT: Final = (".mypy_cache", ".next", ".ruff_cache", ".tox", "build", "dist", "target", "venv")  # by programs
_UNSEARCHED: Final = (*UNSEEN, *_BUILT)
_KINDS: Final[Mapping[int, str]] = {
    stat.S_IFLNK: "a link, and links are not followed here",
    stat.S_IFDIR: "a folder, not a file",
    stat.S_IFREG: "a file, not a folder",
}
_OTHER: Final = "no file that can be read, but a pipe, a socket or a device"


class Found(NamedTuple):
    """Something below the folder. `at` is the descriptor of the folder that holds it, while the walk is there."""

    path: str
    at: int
    name: str
    facts: os.stat_result

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder, and no link to one."""
        return stat.S_ISDIR(self.facts.st_mode)

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return stat.S_ISREG(self.facts.st_mode)


@contextmanager
def entered(root: Path, names: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """The descriptor of a folder; `make`: folders that are missing are made. Raises ToolError."""
    at = os.open(root, _FOLDER)
    try:
        for number, name in enumerate(names, 1):
            with _told(at, name, names[:number]):
                name = actual(at, name)
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(name, 0o700, dir_fd=at)
                below = os.open(name, _FOLDER, dir_fd=at)
            os.close(at)
            at = below
        yield at
    finally:
        os.close(at)


@contextmanager
def _holding(root: Path, names: Sequence[str], *, make: bool = False) -> Iterator[tuple[int, str]]:
    """The descriptor of the folder that holds a file, and the file's name in it. Raises ToolError."""
    if not names:
        raise ToolError("Say which file: that is the workspace itself. list_files shows what is in it.")
    with entered(root, names[:-1], make=make) as at:
        name = actual(at, names[-1])
        with _told(at, name, names):
            yield at, name


def actual(at: int, name: str) -> str:
    """The name that a folder has for this one: the same, or one that only spells its letters in another way."""
    if name.isascii() or facts_of(at, name) is not None:
        return name
    with os.scandir(at) as there:
        return next((each.name for each in there if composed(each.name) == composed(name)), composed(name))


def facts_of(at: int, name: str) -> os.stat_result | None:
    """What a folder has under a name, a link itself and not what it leads to; None: nothing."""
    try:
        return os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        return None


def read(root: Path, names: Sequence[str], most: int) -> bytes:
    """The content of a file, if it has at most so many bytes. Raises ToolError."""
    with _holding(root, names) as (at, name), open_file(at, name) as (file, facts):
        if facts.st_size > most:
            raise ToolError(f"{shown('/'.join(names))} has {facts.st_size:,} bytes, and {most:,} can be read.")
        return content(file, most)


@contextmanager
def open_file(at: int, name: str) -> Iterator[tuple[int, os.stat_result]]:
    """The descriptor of a regular file, to be read, and its facts. Raises OSError, for anything else as well."""
    if not stat.S_ISREG(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode):
        raise OSError(errno.EINVAL, "no regular file")  # to open a device may do something
    file = os.open(name, _FILE, dir_fd=at)
    try:
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, "no regular file")
        yield file, facts
    finally:
        os.close(file)


def content(file: int, most: int) -> bytes:
    """What a file holds, but no more than so many bytes, however it grows meanwhile."""
    pieces = list[bytes]()
    while most > 0 and (piece := os.read(file, min(_PIECE, most))):
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)


def put(root: Path, names: Sequence[str], content: bytes, aside: Path, mode: int | None = None) -> None:
    """Write a file, in one step for whoever looks at it. It is made in the folder `aside`, of the same file system. A
    file that was there keeps its `mode` unless one is given. Raises ToolError, with nothing changed."""
    with _holding(root, names, make=True) as (at, name):
        there = facts_of(at, name)
        if there is not None and not stat.S_ISREG(there.st_mode):
            raise OSError(errno.EINVAL, "no regular file")
        if mode is None and there is not None:
            mode = there.st_mode & 0o777
        elif mode is None:
            mode = 0o700 if content.startswith(b"#!") else 0o600  # a script is there to be run
        file, made = tempfile.mkstemp(dir=aside)
        try:
            with os.fdopen(file, "wb") as target:
                target.write(content)
                target.flush()
                os.fchmod(target.fileno(), mode)
                os.fsync(target.fileno())
            os.rename(made, name, dst_dir_fd=at)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(made)
            raise
        os.fsync(at)


def remove(root: Path, names: Sequence[str]) -> None:
    """Remove a file, a link or an empty folder. Raises ToolError."""
    with _holding(root, names) as (at, name):
        there = facts_of(at, name)
        try:
            if there is not None and stat.S_ISDIR(there.st_mode):
                os.rmdir(name, dir_fd=at)
            else:
                os.unlink(name, dir_fd=at)
        except OSError as error:
            if there is None:
                raise
            raise ToolError(f"{shown('/'.join(names))} cannot be removed ({error.strerror}).") from None


def walk(
    root: Path, names: Sequence[str] = (), enters: Callable[[Found, int], bool] = lambda *_: True
) -> Iterator[Found]:
    """Everything below a folder of the root, each folder before what is in it. A folder that cannot be entered, or lies
    too deep, or that `enters` takes out, is passed over; it is given the folder, and the descriptor of its inside.
    Raises ToolError."""
    with entered(root, names) as at:
        yield from _below(at, "".join(f"{name}/" for name in names), 1, enters)


def _below(at: int, above: str, depth: int, enters: Callable[[Found, int], bool]) -> Iterator[Found]:
    for name in sorted(os.listdir(at)):
        if (facts := facts_of(at, name)) is None:
            continue
        found = Found(above + name, at, name, facts)
        yield found
        if not found.is_folder or depth >= _DEEPEST:
            continue
        try:
            inside = os.open(name, _FOLDER, dir_fd=at)
        except OSError:
            continue
        try:
            if enters(found, inside):
                yield from _below(inside, f"{found.path}/", depth + 1, enters)
        finally:
            os.close(inside)


def visible(root: Path, names: Sequence[str]) -> Iterator[tuple[Found, bool]]:
    """What is in a folder of the root, and whether it is left out: of a folder that is, nothing inside comes. Who names
    a folder wants to see it. Raises ToolError if there is no such folder."""
    for found in walk(root, names, lambda each, _: each.name not in _UNSEARCHED):
        yield found, found.is_folder and found.name in _UNSEARCHED


def text_in(found: Found, most: int) -> str:
    """The text of a file; "" if it is none, or longer than so many bytes."""
    with suppress(OSError), open_file(found.at, found.name) as (file, facts):
        return text_of(content(file, most)) if facts.st_size <= most else ""
    return ""


def text_of(content: bytes) -> str:
    """The text of a content, whatever its encoding; "" if it is none."""
    return "" if b"\0" in content[:_BINARY] else content.decode(errors="replace")


def wipe(folder: Path) -> None:
    """Remove a folder with everything in it, whatever its modes and however deep it is (Python's own way would run out
    of descriptors). No link is followed. Raises OSError."""
    for command in (("chmod", "-R", "u+rwx"), ("rm", "-rf")):
        done = subprocess.run(
            [*command, "--", folder], env=marked({"PATH": os.defpath}), capture_output=True, check=False
        )
    if done.returncode:
        raise OSError(errno.EIO, done.stderr.decode("utf-8", "replace").strip())


@contextmanager
def _told(at: int, name: str, names: Sequence[str]) -> Iterator[None]:
    """The system's errors as sentences for the model, about what these names lead to. Raises ToolError."""
    try:
        yield
    except OSError as error:
        path = shown("/".join(names))
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise ToolError(f"The disk of this machine is full, so {path} stays as it was.") from None
        if error.errno in (errno.ENOTDIR, errno.ELOOP, errno.EINVAL) and (there := facts_of(at, name)) is not None:
            raise ToolError(f"{path} is {_KINDS.get(stat.S_IFMT(there.st_mode), _OTHER)}.") from None
        if error.errno == errno.ENOENT:
            alike = next((each for each in os.listdir(at) if each.casefold() == name.casefold()), "")
            hint = f"; there is {shown(alike)}" if alike else ""
            raise ToolError(f"The workspace has no {path}{hint}.") from None
        raise ToolError(f"{path} cannot be opened ({error.strerror}).") from None
