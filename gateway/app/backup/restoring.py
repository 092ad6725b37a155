"""Puts an archive in place of the store and the folder beside it, or examines it to see that this would work. The file
may also be a copy of only a SQLite store, from an upgrade or from `legato backup NAME.db`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import aclosing, closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, Final

import apsw
from msgspec import Struct

from gateway.app.backup.archive import HOME, STORE, Manifest, unpack
from gateway.app.backup.sealing import MARK_BYTES, is_sealed, unsealed
from gateway.app.config import Config
from gateway.app.store import configured_store
from gateway.domain.session import Session
from gateway.runtime.clock import Clock
from gateway.runtime.errors import SessionNotFound, StoreError, StoreLocked, StoreUnavailable, UserError
from gateway.runtime.owners import leave_to_owner
from gateway.runtime.redaction import Redactor
from gateway.store.port import SessionStore, Store
from gateway.store.sqlite import SqliteStore
from gateway.store.sqlite.connection import check_undamaged, connect_writer, unavailable
from gateway.store.sqlite.copying import written
from gateway.store.sqlite.lock import LockFile
from gateway.store.sqlite.mark import check_whole
from gateway.store.sqlite.migrations import check_known, check_unaltered, counts, migrate
from gateway.store.sqlite.swapping import Swap, swap
from gateway.store.transfer import migrate as migrate_store
from gateway.store.transfer import source_at, target_at

_SQLITE: Final = b"SQLite format 3\0"
_SAMPLE: Final = 50  # sessions that are compared, if there are so many
_LOOKED_THROUGH: Final = 5_000  # newest sessions from which they are taken


class Restored(Struct, frozen=True, kw_only=True):
    """`store` is where it lies, `made_at` when the backup was made, if it says so, and `aside` the folder that keeps
    what was there (None: nothing was)."""

    store: str
    made_at: str | None
    aside: str | None
    sessions: int
    messages: int


class Verified(Struct, frozen=True, kw_only=True):
    """`rows` by table. Of the sessions that were compared with the store as it is, `same` are in both, `changed` have
    other words by now, and `gone` are not there any more."""

    made_at: str | None
    legato: str | None
    rows: Mapping[str, int]
    same: int
    changed: int
    gone: int
    not_compared: str | None  # the reason why no session was


async def restore(config: Config, file: Path, clock: Clock, identity: Path | None) -> Restored:
    """Put a backup in place of the store. `identity` is the file with the key of an encrypted one. A Redis store must
    be empty. Raises UserError, StoreError: then everything is as it was."""
    place = config.database or config.at(STORE)
    if place.is_symlink():
        raise UserError(f"{place} is a link. Set store.url to the file that the link points to, then restore again.")
    lock = LockFile(place)
    try:
        lock.acquire()
    except StoreLocked as error:
        raise StoreLocked(f"Process {lock.owner()} is using {place}. Stop that process, then restore again.") from error
    folder = place.with_name(f"{place.name}.unpacked")
    try:
        shutil.rmtree(folder, ignore_errors=True)  # what a restore left that was killed: nobody else has the lock
        folder.mkdir(mode=0o700)
        manifest = _unpacked(file, identity, folder)
        _, rows = _brought_forward(folder / STORE, file)
        if config.database is None:
            await migrate_store(
                source_at(f"sqlite:///{folder / STORE}", clock), target_at(config.store.url, clock), clock=clock
            )
        aside = _put_in_place(config, place, folder, clock.now(), has_home=manifest is not None)
    except OSError as error:
        raise _not_unpacked(file, place.parent, error) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if place.exists() and not place.stat().st_size:
            place.unlink()  # which the lock has made
        lock.release()
    return Restored(
        store=Redactor(config.secrets())(config.store.url),
        made_at=None if manifest is None else manifest.made_at,
        aside=None if aside is None else str(aside),
        sessions=rows["session"],
        messages=rows["message"],
    )


async def verify(config: Config, file: Path, clock: Clock, identity: Path | None) -> Verified:
    """Restore a backup aside, look whether it is whole, and compare it with the store as it is. Raises UserError,
    StoreError for a backup that would not do."""
    with written(config.at("")):
        temporary = TemporaryDirectory(prefix="legato-", dir=config.at(""), ignore_cleanup_errors=True)
    with temporary as name:
        folder = Path(name)
        try:
            manifest = _unpacked(file, identity, folder)
        except OSError as error:
            raise _not_unpacked(file, folder.parent, error) from error
        held, rows = _brought_forward(folder / STORE, file)
        if manifest is not None and (missing := _missing(manifest.counts, held)):
            raise UserError(f"The backup {file} is incomplete: {missing}.")
        async with aclosing(SqliteStore(folder / STORE, clock=clock, read_only=True)) as copy:
            await copy.open()
            same, changed, gone, reason = await _compared(copy, config)
    return Verified(
        made_at=None if manifest is None else manifest.made_at,
        legato=None if manifest is None else manifest.legato,
        rows=rows,
        same=same,
        changed=changed,
        gone=gone,
        not_compared=reason,
    )


def _not_unpacked(file: Path, folder: Path, error: OSError) -> StoreUnavailable:
    return StoreUnavailable(
        f"Legato cannot unpack {file} in {folder} ({error.strerror or error}). Nothing has changed. Check the disk "
        "and the permissions of the folder."
    )


# -- from the archive ---------------------------------------------------------------------------


def _unpacked(file: Path, identity: Path | None, folder: Path) -> Manifest | None:
    """Unpack what the file holds into a folder; the manifest, if it has one. Raises UserError, StoreError, OSError."""
    with _opened(file, identity) as (content, is_store):
        if is_store:
            for part in ("", "-wal"):
                with suppress(FileNotFoundError):
                    shutil.copyfile(f"{file}{part}", folder / f"{STORE}{part}")
            return None
        return unpack(content, folder, str(file))


@contextmanager
def _opened(file: Path, identity: Path | None) -> Iterator[tuple[IO[bytes], bool]]:
    """The content of a backup, and whether it is only a store."""
    try:
        source = file.open("rb", buffering=0)  # else age would begin behind what was looked at
    except OSError as error:
        raise UserError(f"{file} cannot be read ({error.strerror}).") from error
    with source:
        beginning = source.read(MARK_BYTES)
        source.seek(0)
        if not is_sealed(beginning):
            yield source, beginning.startswith(_SQLITE)
            return
        if identity is None:
            raise UserError(f"{file} is encrypted. Name the file with the key: --identity FILE.")
        with unsealed(source, identity) as content:
            yield content, False


def _brought_forward(store: Path, file: Path) -> tuple[dict[str, int], dict[str, int]]:
    """Look whether the unpacked store is whole, and bring it to this version; its rows by table, before and after.
    Raises StoreUnavailable, in a sentence about the backup."""
    try:
        with closing(connect_writer(store)) as connection:
            check_known(connection, file)
            check_undamaged(connection, file)
            check_unaltered(connection, file)
            check_whole(connection, store)
            held = counts(connection)
            migrate(connection, file)
            return held, counts(connection)
    except apsw.Error as error:
        raise unavailable(error, file) from error


def _missing(counted: Mapping[str, int], rows: Mapping[str, int]) -> str:
    return ", ".join(
        f"{count:,} rows of {table} instead of {known:,}"
        for table, known in counted.items()
        if (count := rows.get(table, 0)) != known
    )


# -- into its place -----------------------------------------------------------------------------


def _put_in_place(config: Config, place: Path, folder: Path, now: float, *, has_home: bool) -> Path | None:
    """Swap, and return the folder that keeps what was there."""
    aside = f"{place.name}.before-{datetime.fromtimestamp(now, UTC):%Y%m%dT%H%M%SZ}"
    moves = []
    if config.database is not None:
        moves.append((STORE, place.name))
    if has_home:
        (folder / HOME).mkdir(mode=0o700, exist_ok=True)
        moves.append((HOME, config.home.name))
    for each in folder.iterdir():
        if each.name not in (inside for inside, _ in moves):
            if each.is_dir():
                shutil.rmtree(each)  # skills, which are the operator's, as the settings are
            else:
                each.unlink()
    leave_to_owner(place if place.exists() else place.parent, *folder.rglob("*"), folder)
    swap(place, folder, Swap(moves=moves, aside=aside))
    kept = place.with_name(aside)
    return kept if kept.exists() else None


# -- compared with the store --------------------------------------------------------------------


async def _compared(copy: Store, config: Config) -> tuple[int, int, int, str | None]:
    async with aclosing(configured_store(config, read_only=True)) as store:
        try:
            await store.open()
        except StoreError as error:
            return 0, 0, 0, str(error)
        sessions = await copy.sessions(None, _LOOKED_THROUGH)
        chosen = sessions[:: max(1, len(sessions) // _SAMPLE)]
        found = [await _fate(each, copy, store) for each in chosen]
    return found.count("same"), found.count("changed"), found.count("gone"), None


async def _fate(session: Session, copy: SessionStore, store: SessionStore) -> str:
    try:
        now = await store.transcript(await store.session(session.id))
    except SessionNotFound:
        return "gone"
    before = await copy.transcript(session)
    return "same" if _words(now[: len(before)]) == _words(before) else "changed"


def _words(transcript: Any) -> list[Any]:
    """What was said, without the numbers that each store gives to its messages."""
    return [(each["role"], each.get("content"), each.get("tool_calls")) for each in transcript]
