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
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from gateway.agent.workspace.names import composed, shown
from gateway.runtime.errors import ToolError

FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_DEEPEST: Final = 60  # folders in one another that are walked; a descriptor is open for each
_PIECE: Final = 1_000_000  # bytes read at once
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


class Found(NamedTuple):
    """Something below the folder. `at` is the descriptor of the folder that holds it, while the walk stands there."""

    path: str
    at: int
    name: str
    facts: os.stat_result


@contextmanager
def entered(root: Path, names: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """The descriptor of a folder; `make`: folders that are missing are made. Raises ToolError."""
    at = os.open(root, FOLDER)
    try:
        for number, name in enumerate(names, 1):
            try:
                behind = _enter(at, actual(at, name), make=make)
            except OSError as error:
                raise _refusal(error, at, name, "/".join(names[:number])) from None
            os.close(at)
            at = behind
        yield at
    finally:
        os.close(at)


def _enter(at: int, name: str, *, make: bool) -> int:
    try:
        return os.open(name, FOLDER, dir_fd=at)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=at)
    return os.open(name, FOLDER, dir_fd=at)


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
    """The content of a file of at most so many bytes. Raises ToolError."""
    path = "/".join(names)
    if not names:
        raise ToolError("That is the workspace itself; list_files shows what is in it.")
    with entered(root, names[:-1]) as at:
        name = actual(at, names[-1])
        try:
            with open_file(at, name) as (file, facts):
                if facts.st_size > most:
                    raise ToolError(f"{shown(path)} has {facts.st_size:,} bytes, and {most:,} can be read.")
                return b"".join(pieces(file, most))
        except OSError as error:
            raise _refusal(error, at, name, path) from None


@contextmanager
def open_file(at: int, name: str) -> Iterator[tuple[int, os.stat_result]]:
    """The descriptor of a regular file, to be read, and its facts. Raises OSError, for anything else as well."""
    there = facts_of(at, name)
    if there is None or not stat.S_ISREG(there.st_mode):  # of a device, to open it may do something
        raise OSError(errno.ENOENT if there is None else errno.EINVAL, "no regular file")
    file = os.open(name, _FILE, dir_fd=at)
    try:
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, "no regular file")
        yield file, facts
    finally:
        os.close(file)


def pieces(file: int, most: int) -> Iterator[bytes]:
    """What a file holds, but no more than so many bytes, however it grows meanwhile."""
    while most > 0 and (piece := os.read(file, min(_PIECE, most))):
        most -= len(piece)
        yield piece


def put(root: Path, names: Sequence[str], content: bytes, aside: Path, mode: int | None = None) -> None:
    """Write a file, in one step for whoever looks at it. It is made in the folder `aside`, of the same file system. A
    file that was there keeps its `mode` unless one is given. Raises ToolError, with nothing changed."""
    path = "/".join(names)
    if not names:
        raise ToolError("Say which file: that is the workspace itself.")
    try:
        with entered(root, names[:-1], make=True) as at:
            name = actual(at, names[-1])
            there = facts_of(at, name)
            if there is not None and not stat.S_ISREG(there.st_mode):
                raise _refusal(OSError(errno.EINVAL, ""), at, name, path)
            if mode is None:
                mode = 0o700 if content.startswith(b"#!") else 0o600  # a script is there to be run
                mode = mode if there is None else stat.S_IMODE(there.st_mode) & 0o777
            _put(at, name, content, aside, mode)
    except OSError as error:
        raise _not_written(error, path) from None


def _put(at: int, name: str, content: bytes, aside: Path, mode: int) -> None:
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
    path = "/".join(names)
    if not names:
        raise ToolError("Say which file: that is the workspace itself.")
    with entered(root, names[:-1]) as at:
        name = actual(at, names[-1])
        there = facts_of(at, name)
        try:
            if there is not None and stat.S_ISDIR(there.st_mode):
                os.rmdir(name, dir_fd=at)
            else:
                os.unlink(name, dir_fd=at)
        except FileNotFoundError as error:
            raise _refusal(error, at, name, path) from None
        except OSError as error:
            raise ToolError(f"{shown(path)} cannot be removed ({error.strerror}).") from None


def walk(root: Path, enters: Callable[[Found], bool] = lambda _: True) -> Iterator[Found]:
    """Everything below a folder, each folder before what is in it. A folder that cannot be entered, or lies too deep,
    or that `enters` takes out, is passed over."""
    at = os.open(root, FOLDER)
    try:
        yield from _below(at, "", 1, enters)
    finally:
        os.close(at)


def _below(at: int, above: str, depth: int, enters: Callable[[Found], bool]) -> Iterator[Found]:
    with os.scandir(at) as there:
        entries = sorted(there, key=lambda each: each.name)
    for each in entries:
        try:
            facts = each.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
        found = Found(above + each.name, at, each.name, facts)
        yield found
        if stat.S_ISDIR(facts.st_mode) and depth < _DEEPEST and enters(found):
            try:
                inside = os.open(each.name, FOLDER, dir_fd=at)
            except OSError:
                continue
            try:
                yield from _below(inside, f"{found.path}/", depth + 1, enters)
            finally:
                os.close(inside)


def wipe(folder: Path) -> None:
    """Remove a folder with all that is in it, whatever its modes and however deep. Raises OSError."""
    at, moved = os.open(folder, FOLDER), 0
    try:
        while names := os.listdir(at):
            for name in names:
                if not _is_folder(at, name):
                    os.unlink(name, dir_fd=at)
                    continue
                with _unlocked(at, name) as inside:
                    for each in os.listdir(inside):
                        if _is_folder(inside, each):  # to be emptied later
                            moved += 1
                            with _unlocked(inside, each):
                                os.rename(each, f".moved-{moved}-{os.getpid()}", src_dir_fd=inside, dst_dir_fd=at)
                        else:
                            os.unlink(each, dir_fd=inside)
                os.rmdir(name, dir_fd=at)
    finally:
        os.close(at)
    folder.rmdir()


def _is_folder(at: int, name: str) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode)


@contextmanager
def _unlocked(at: int, name: str) -> Iterator[int]:
    """Enter a folder of ours, which a command may have closed to us."""
    try:
        inside = os.open(name, FOLDER, dir_fd=at)
    except PermissionError:
        if sys.platform != "linux":
            raise
        held = os.open(name, os.O_PATH | FOLDER, dir_fd=at)  # this very folder, whatever takes its name meanwhile
        try:
            os.chmod(f"/proc/self/fd/{held}", 0o700)
        finally:
            os.close(held)
        inside = os.open(name, FOLDER, dir_fd=at)
    try:
        os.fchmod(inside, 0o700)
        yield inside
    finally:
        os.close(inside)


def _refusal(error: OSError, at: int, name: str, path: str) -> ToolError:
    """The reason why something cannot be opened, for the model."""
    there = facts_of(at, name) if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EINVAL) else None
    if there is not None:
        kinds = {stat.S_IFLNK: "a link, and links are not followed here", stat.S_IFDIR: "a folder, not a file"}
        kinds[stat.S_IFREG] = "a file, not a folder"
        other = "no file that can be read, but a pipe, a socket or a device"
        return ToolError(f"{shown(path)} is {kinds.get(stat.S_IFMT(there.st_mode), other)}.")
    if error.errno == errno.ENOENT:
        with os.scandir(at) as entries:
            alike = next((each.name for each in entries if each.name.casefold() == name.casefold()), "")
        hint = f"; there is {shown(alike)}" if alike else ""
        return ToolError(f"There is no {shown(path)} in the workspace{hint}.")
    return ToolError(f"{shown(path)} cannot be opened ({error.strerror}).")


def _not_written(error: OSError, path: str) -> ToolError:
    if error.errno in _FULL:
        return ToolError(f"The disk of this machine is full, so {shown(path)} stays as it was.")
    return ToolError(f"{shown(path)} cannot be written ({error.strerror}).")
