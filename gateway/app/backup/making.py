"""Makes an archive of the store and of the folder beside it, and takes it to its target: whole, or not at all."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import apsw
from msgspec import Struct

from gateway import __version__
from gateway.app.backup.archive import STORE, Manifest, write
from gateway.app.backup.generations import Keep, file_name, note_made, thin_out
from gateway.app.backup.sealing import sealing
from gateway.app.config import Config
from gateway.domain.wording import utc
from gateway.runtime.clock import Clock
from gateway.runtime.errors import UserError
from gateway.runtime.inside import marked
from gateway.store.sqlite.copying import check_there, copy_store, fill, made_whole, scratch, written
from gateway.store.sqlite.migrations import counts
from gateway.store.transfer import export

_HALF: Final = "legato-backup"  # the beginning of the name of one that is not whole yet
_BARE: Final = ".db"  # the end of the name of a store's copy alone


class Made(Struct, frozen=True, kw_only=True):
    """A backup: where it is, its size, and the names of older ones that were deleted after it."""

    file: str
    bytes: int
    deleted: Sequence[str] = ()


async def make(config: Config, clock: Clock, *, target: Path | None, keep: Keep | None, others: Sequence[Path]) -> Made:
    """Make a backup at `target`, a new file or a folder; None: where the settings say. `others` are files that go into
    it, too. Raises UserError, StoreError."""
    name = file_name(clock.now(), sealed=config.backup.recipient is not None)
    file = _file(config, target, name)
    if file is None:
        with scratch(config.at(name), _HALF) as archive:
            with written(archive):
                await _fill(config, clock, archive, others)
            size = _hand_over(config, archive, name)
            return Made(file=f"backup.command ({name})", bytes=size)
    in_folder = file != target
    if keep is not None and not in_folder:
        raise UserError(f"backups of several days need a folder, and {target} is not one: make it first")
    if file.suffix == _BARE:
        _copy_alone(config, file)
    else:
        with made_whole(file, _HALF) as archive:
            await _fill(config, clock, archive, others)
            if in_folder:
                note_made(file.parent, _origin(config), name)
    deleted = _thin_out(file, _origin(config), keep)
    return Made(file=str(file), bytes=file.stat().st_size, deleted=deleted)


def _file(config: Config, target: Path | None, name: str) -> Path | None:
    """The file to be made; None: it goes to the command. Raises UserError."""
    if target is None and config.backup.to is not None:
        target = config.at(Path(config.backup.to).expanduser())
        if not target.is_dir():
            raise UserError(f"{target} (backup.to) is not a folder: make it first")
    if target is None:
        if config.backup.command is None:
            raise UserError("say where: `legato backup TARGET`, or backup.to or backup.command in config.yaml")
        return None
    file = target / name if target.is_dir() else target
    if os.path.lexists(file):  # it may be the only good copy
        raise UserError(f"{file} exists already: name a new file, or a folder")
    return file


def _thin_out(file: Path, origin: str, keep: Keep | None) -> list[str]:
    try:
        return [] if keep is None else thin_out(file.parent, origin, keep)
    except OSError as error:
        raise UserError(
            f"Legato made {file}, but cannot delete older backups ({error.strerror}). Check the folder's permissions."
        ) from error


def _copy_alone(config: Config, target: Path) -> None:
    if config.database is None:
        raise UserError("the copy of a store alone (.db) needs a SQLite store: name a .tar file, or a folder")
    if config.backup.recipient is not None:
        raise UserError("backup.recipient is set, and a .db file is not encrypted: name a .tar.age file, or a folder")
    copy_store(config.database, target)


async def _fill(config: Config, clock: Clock, archive: Path, others: Sequence[Path]) -> None:
    with _copied(config) as copy:
        if config.database is None:
            await export(config.store.url, copy, clock)
        else:
            fill(config.database, copy, config.database)
        manifest = _manifest(copy, _origin(config), clock.now())
        with archive.open("wb") as out:
            if config.backup.recipient is None:
                write(out, manifest, copy, config.home, others)
            else:
                with sealing(config.backup.recipient, out) as sealed:
                    write(sealed, manifest, copy, config.home, others)


@contextmanager
def _copied(config: Config) -> Iterator[Path]:
    """A place for the store's copy: where its words lie already, and nowhere else."""
    if config.database is not None:
        check_there(config.database)
        with scratch(config.database) as copy:
            yield copy
    else:
        with TemporaryDirectory(prefix="legato-") as folder:
            yield Path(folder, STORE)


def _manifest(store: Path, origin: str, now: float) -> Manifest:
    with closing(apsw.Connection(str(store))) as connection:  # one that only reads would leave files beside it
        return Manifest(
            made_at=utc(now),
            legato=__version__,
            origin=origin,
            schema=int(connection.pragma("user_version")),
            counts=counts(connection),
        )


def _origin(config: Config) -> str:
    """The store's address, without credentials."""
    if config.database is not None:
        return f"sqlite:///{config.database.absolute()}"
    scheme, _, rest = config.store.url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"


def _hand_over(config: Config, archive: Path, name: str) -> int:
    """Give the archive to the command's input; returns its size. Raises UserError if the command fails."""
    size = archive.stat().st_size
    known = {"LEGATO_BACKUP": name, "LEGATO_BACKUP_BYTES": str(size)}
    with archive.open("rb") as content:
        ended = subprocess.run(
            ["/bin/sh", "-c", config.backup.command or "false"],
            stdin=content,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=marked({**os.environ, **known}),
            check=False,
        )
    if ended.returncode:
        said = ended.stderr.decode(errors="replace").strip().splitlines()
        raise UserError(f"backup.command ended with exit status {ended.returncode}{f': {said[-1]}' if said else ''}")
    return size
