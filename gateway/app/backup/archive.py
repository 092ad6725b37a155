"""The form of a backup: a tar file that any program opens.

    legato.db        the store, as a file of SQLite, whatever kind of store it was made from
    home/…           the folder beside the store
    config.yaml      the settings, and .env with the secrets where they were asked for
    manifest.json    what the store held, and the size and SHA-256 of every file before it

The manifest comes last: an archive without one is not whole.
"""

from __future__ import annotations

import io
import json
import os
import stat
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, Final

from msgspec import Struct, field
from msgspec.structs import asdict

from gateway.runtime.errors import UserError

STORE: Final = "legato.db"
HOME: Final = "home"
_MANIFEST: Final = "manifest.json"
_FORMAT: Final = 1
_COMMANDS: Final = f"{HOME}/workspaces/"  # begins the names of what commands may have made
_DEEPEST: Final = 100  # folders in one another
_LONGEST_PATH: Final = 3_000  # bytes: a system takes 4,096, and an archive is unpacked elsewhere
_PIECE: Final = 1024 * 1024  # bytes
_LONGEST: Final = 64 * 1024 * 1024  # bytes of a manifest


class Manifest(Struct, frozen=True, kw_only=True):
    """What an archive says of itself. `made_at`: UTC; `origin`: the store's address without credentials; `schema`: the
    version of the store's file; `counts`: rows by table; `files`: size and SHA-256 by name."""

    made_at: str
    legato: str
    origin: str
    schema: int
    counts: Mapping[str, int]
    files: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    format: int = _FORMAT


def write(out: IO[bytes], manifest: Manifest, store: Path, home: Path, others: Sequence[Path]) -> None:
    """Write the archive. `manifest` knows no files yet; `others`, files and folders, are put at the top, under their
    own names: of two with one name the later one has it, and the other gets `~` behind it. Raises OSError."""
    files: dict[str, Sequence[Any]] = {}
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT, bufsize=_PIECE) as tar:
        files[STORE] = _add(tar, store, STORE)
        for path, name in [*_below(home, HOME), *_named(others)]:
            # The gateway works meanwhile; and what commands make in a workspace may be anything.
            with suppress(FileNotFoundError, *((UserError,) if name.startswith(_COMMANDS) else ())):
                files[name] = _add(tar, path, name)
        document = json.dumps({**asdict(manifest), "files": files}, indent=1).encode()
        entry = tarfile.TarInfo(_MANIFEST)
        entry.size, entry.mode, entry.mtime = len(document), 0o600, int(store.stat().st_mtime)
        tar.addfile(entry, io.BytesIO(document))


def unpack(source: IO[bytes], folder: Path, name: str) -> Manifest:
    """Write what the archive holds into an empty folder, and check it. A link that leads out of `home` is left out.
    Raises UserError, in a sentence about `name`, for what is no whole archive; OSError."""
    found: dict[str, list[Any]] = {}
    links: list[tuple[Path, str]] = []
    manifest: Manifest | None = None
    try:
        with tarfile.open(fileobj=source, mode="r|", bufsize=_PIECE) as tar:
            for entry in tar:
                path = folder / _safe(entry.name, name)
                content = tar.extractfile(entry) if entry.isreg() else None
                if entry.isdir():
                    path.mkdir(mode=0o700, parents=True, exist_ok=True)
                    found[entry.name] = _linked("")
                elif entry.issym():
                    links.append((path, entry.linkname))
                    found[entry.name] = _linked(entry.linkname)
                elif content is not None and entry.name == _MANIFEST:
                    manifest = _manifest_in(content.read(_LONGEST), name)
                elif content is not None:
                    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    found[entry.name] = _extract(content, path, entry.mode)
    except tarfile.TarError as error:
        raise UserError(f"The file {name} is damaged, or is not a Legato backup ({error}).") from error
    if manifest is None:
        raise UserError(f"The backup {name} is incomplete, because its end is missing. Use another backup.")
    for known, facts in manifest.files.items():
        if found.get(known) != list(facts):
            raise UserError(f"The backup {name} is damaged: its file {known} differs from the original.")
    if STORE not in manifest.files:
        raise UserError(f"The backup {name} contains no store.")
    for path, target in links:  # last, so that nothing was written through them
        if Path(os.path.normpath(path.parent / target)).is_relative_to(folder / HOME):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.symlink_to(target)
    return manifest


def _below(home: Path, name: str) -> Iterator[tuple[Path, str]]:
    """The files, links and empty folders below a folder, which has this name in the archive, with their names there."""
    for root, folders, names in os.walk(home):
        if len(Path(root).parts) - len(home.parts) >= _DEEPEST or len(root) > _LONGEST_PATH:
            folders.clear()  # a command made them: they could not be put back
            continue
        folders.sort()
        links = [each for each in folders if os.path.islink(os.path.join(root, each))]
        for each in [*links, *sorted(names)]:
            path = Path(root, each)
            yield path, str(PurePosixPath(name, path.relative_to(home).as_posix()))
        if not folders and not names:
            yield Path(root), str(PurePosixPath(name, Path(root).relative_to(home).as_posix()))


def _named(others: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    taken: set[str] = set()
    for path in reversed(others):
        name = path.name
        while name in taken:
            name += "~"
        taken.add(name)
        yield from _below(path, name) if path.is_dir() else [(path, name)]


def _add(tar: tarfile.TarFile, path: Path, name: str) -> list[Any]:
    """Add a file, a link or an empty folder; returns its size and digest. Raises FileNotFoundError for what is none of
    these, or has gone, and UserError for what cannot be read."""
    entry = tarfile.TarInfo(name)
    facts = path.lstat()
    entry.mtime, entry.mode = int(facts.st_mtime), stat.S_IMODE(facts.st_mode)
    if stat.S_ISREG(facts.st_mode):
        return _add_file(tar, path, entry)
    if stat.S_ISLNK(facts.st_mode):
        entry.type, entry.linkname = tarfile.SYMTYPE, os.readlink(path)
    elif stat.S_ISDIR(facts.st_mode):
        entry.type = tarfile.DIRTYPE
    else:
        raise FileNotFoundError(path)
    tar.addfile(entry)
    return _linked(entry.linkname)


def _add_file(tar: tarfile.TarFile, path: Path, entry: tarfile.TarInfo) -> list[Any]:
    # Another one may stand under its name by now: a link is not followed, and a pipe is not waited for.
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except PermissionError as error:
        raise UserError(
            f"Legato cannot read {path} ({error.strerror}). Make the backup as the user who owns that file."
        ) from error
    with open(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise FileNotFoundError(path)
        entry.size = facts.st_size
        reading = _Digesting(file, facts.st_size)
        tar.addfile(entry, reading)  # type: ignore[arg-type]  # it only reads
        return [facts.st_size, reading.digest.hexdigest()]


class _Digesting:
    """A file as it had so many bytes: what it has lost since is filled with zeros, what it has gained is left out."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self.digest = sha256()
        self._file = file
        self._left = size

    def read(self, size: int) -> bytes:
        """The next bytes."""
        wanted = min(size, self._left)
        piece = self._file.read(wanted).ljust(wanted, b"\0")
        self._left -= wanted
        self.digest.update(piece)
        return piece


def _extract(content: IO[bytes], path: Path, mode: int) -> list[Any]:
    digest, size = sha256(), 0
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "wb") as file:
        while piece := content.read(_PIECE):
            file.write(piece)
            digest.update(piece)
            size += len(piece)
        os.fchmod(descriptor, mode & 0o700)
    return [size, digest.hexdigest()]


def _linked(target: str) -> list[Any]:
    """What the manifest says of a link, or of an empty folder, which leads nowhere."""
    return [0, target]


def _safe(name: str, archive: str) -> str:
    """The name, if it leads nowhere but into the folder. Raises UserError."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise UserError(f"{archive} is not a Legato backup, because it contains a file named {name!r}.")
    return str(path)


def _manifest_in(document: bytes, name: str) -> Manifest:
    try:
        found = json.loads(document)
        if found["format"] > _FORMAT:
            raise UserError(f"A newer Legato ({found['legato']}) made the backup {name}. Upgrade Legato.")
        return Manifest(**found)
    except (ValueError, TypeError, KeyError) as error:
        raise UserError(f"The backup {name} is damaged: its {_MANIFEST} cannot be read.") from error
