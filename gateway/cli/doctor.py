"""`legato doctor`: what `legato check` says, and the health of the store, the machine and the versions.

It looks, and changes nothing: no file, no row, no setting. Its report for an issue is made of facts that name nobody;
what a finding says in words stays here, because it may hold anything.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

import apsw
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from gateway import __version__
from gateway.app.config import Config, Setup
from gateway.app.plugins import platforms, providers
from gateway.app.problems import LEAST_FREE
from gateway.app.store import configured_store
from gateway.cli.check import MARKS, probed
from gateway.domain.adapter import Finding
from gateway.domain.wording import counted
from gateway.runtime import posix
from gateway.runtime.clock import Clock
from gateway.runtime.errors import GatewayError
from gateway.store.port import Store
from gateway.store.redis.endpoint import UNREACHABLE, Endpoint, ask, used
from gateway.store.sqlite import SqliteStore

_SINCE: Final = 2025  # a machine that was never told the time is in an earlier year
_PACKAGE: Final = re.compile(r"[A-Za-z0-9._-]+")
_PLAIN: Final = re.compile(r"[^A-Za-z' -]")
_SECONDS: Final = 5.0  # that a server may take to answer
_OPEN: Final = 0o077  # rights of others, in a file's mode


async def examined(setup: Setup, clock: Clock) -> AsyncGenerator[Finding, None]:
    """What there is to say, one finding after the other."""
    settings = setup.config
    async with aclosing(probed(setup)) as found:
        async for finding in found:
            yield finding
    async for fact in _of_store(settings):
        yield fact
    for fact in (*of_rights(settings), *of_disk(settings), of_clock(clock.now()), *of_versions()):
        yield fact


def of_clock(now: float) -> Finding:
    """The machine's time (seconds since the epoch) and its zone."""
    here = datetime.fromtimestamp(now, UTC).astimezone()
    zone = f"{here.tzname()}, UTC{here:%z}"
    if here.year < _SINCE:
        return _fact(
            "clock", ok=False, detail=f"the year {here.year} ({zone}): set it, or reminders come at wrong times"
        )
    return _fact("clock", ok=True, detail=f"{here:%Y-%m-%d %H:%M} ({zone})")


def of_disk(settings: Config) -> Iterator[Finding]:
    """The room where the store lies: for what is to come, and for the copy that an upgrade or a backup makes."""
    database = settings.database
    folder = _nearest(settings.home if database is None else database)
    disk = shutil.disk_usage(folder)
    size = database.stat().st_size if database is not None and database.is_file() else 0
    room = f"{disk.free / 1e9:.1f} of {disk.total / 1e9:.1f} GB are free"
    if disk.free < LEAST_FREE:
        yield _fact("disk", ok=False, detail=f"{room}: make room")
    elif disk.free < 2 * size:
        yield _fact("disk", ok=None, detail=f"{room}, and the store has {size / 1e9:.1f} GB: a copy may not fit")
    else:
        yield _fact("disk", ok=True, detail=room)


def of_rights(settings: Config) -> Iterator[Finding]:
    """Legato's private files that others can reach, or that belong to someone else. (`legato check` looks at the
    store's file, and at the folder around it all.)"""
    database, home = settings.database, settings.home
    beside = [] if database is None else sorted(database.parent.glob(f"{database.name}[-.]*"))
    inside = sorted(home.iterdir()) if os.access(home, os.R_OK | os.X_OK) else []
    files = [] if database is None else [database]
    for path in filter(Path.exists, [*files, *beside, home, *inside]):
        known = path.stat()
        if posix.user() not in (known.st_uid, -1):
            detail = f"{path} belongs to another user; run Legato as that user, or chown the file"
            yield Finding(what="owner", ok=None, detail=detail)
        elif path in beside and known.st_mode & _OPEN:
            yield Finding(what="rights", ok=None, detail=f"other users can open {path}: chmod go= {path}")


def of_versions() -> Iterator[Finding]:
    """The versions of everything that runs here. A library that is missing is a failure."""
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    detail = f"Legato {__version__}, Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}, {system}"
    yield _fact("versions", ok=True, detail=detail)
    there: list[str] = []
    missing: list[str] = []
    for name in _libraries():
        try:
            there.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        yield _fact("libraries", ok=False, detail=f"{', '.join(missing)}: not installed; install Legato again")
    yield _fact("libraries", ok=True, detail=", ".join(there))


def _libraries() -> list[str]:
    try:
        wanted = requires("legato") or []
    except PackageNotFoundError:  # it runs from its source
        return []
    return sorted(found[0] for each in wanted if "extra ==" not in each and (found := _PACKAGE.match(each)))


async def _of_store(settings: Config) -> AsyncGenerator[Finding, None]:
    """The store's content, and its server. `legato check` has read the pages of a file already."""
    database = settings.database
    if database is not None and not database.exists():
        return
    async with aclosing(configured_store(settings, waits=False, read_only=True)) as store:
        try:
            await store.open()
            for fact in await _of_content(store):
                yield fact
        except GatewayError as error:
            yield Finding(what="store's content", ok=False, detail=str(error))
    if database is None and not settings.store.is_postgres:
        yield await _of_server(settings.store.url)


async def _of_content(store: Store) -> list[Finding]:
    known = await store.status()
    detail = (
        f"{counted(known.sessions, 'session')}, {known.waiting:,} waiting, {known.unsent:,} not shown, "
        f"{known.dead:,} given up, {known.unindexed:,} to be indexed"
    )
    facts = [_fact("store's content", ok=True, detail=detail)]
    if isinstance(store, SqliteStore):
        lost = await store.dangling()
        told = ", ".join(f"{count:,} {what}" for what, count in lost.items() if count)
        detail = f"{told}: restore the last backup" if told else "no record is missing"
        facts.append(_fact("references", ok=not told, detail=detail))
    return facts


async def _of_server(url: str) -> Finding:
    endpoint = Endpoint(url, timeout=_SECONDS)
    try:
        async with used(endpoint.connect_any()) as connection:
            told = str(await ask(connection, "INFO", seconds=_SECONDS))
    except UNREACHABLE:
        return _fact("store's server", ok=False, detail="it does not answer")
    facts = dict(line.partition(":")[::2] for line in told.splitlines())
    detail = f"{facts.get('server_name', 'redis')} {facts.get('redis_version', 'of an unknown version')}"
    if facts.get("aof_enabled") != "1":
        return _fact("store's server", ok=None, detail=f"{detail}: appendonly is off, so a crash loses messages")
    if facts.get("aof_last_write_status", "ok") != "ok":
        return _fact("store's server", ok=False, detail=f"{detail}: it cannot write its files, so look at its disk")
    return _fact("store's server", ok=True, detail=f"{detail}, appendonly is on")


# -- the report ------------------------------------------------------------------------------


def report(facts: Sequence[Finding], settings: Config) -> str:
    """A report for an issue, in Markdown: no names, ids, addresses, secrets or words of anybody."""
    lines = ["### Legato report", "", "| What | Says | |", "|---|---|---|"]
    lines += [
        f"| {_PLAIN.sub('', each.what)[:30]} | {MARKS[each.ok]} | "
        f"{each.detail.replace('|', '/') if each.public else ''} |"
        for each in facts
    ]
    kind = "a server" if settings.database is None else "a file"
    set_ = [f"- `{key}`: {value}" for key, value in _set(settings, Config())]
    lines += ["", f"The store is {kind}. These settings are not at their default:", "", *(set_ or ["- none"])]
    return "\n".join(lines)


def _set(section: BaseModel, default: BaseModel | None) -> Iterator[tuple[str, str]]:
    """The keys whose values are not the default. Only values that cannot be somebody's own are named."""
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        usual = getattr(default, name, None)
        if value == usual:
            continue
        if isinstance(value, BaseModel):
            below = usual if type(usual) is type(value) else None
            yield from ((f"{name}.{key}", told) for key, told in _set(value, below))
        elif name == "adapters":
            for each in sorted(value.keys() & platforms().keys()):
                yield from ((f"adapters.{each}.{key}", told) for key, told in _set(value[each], type(value[each])()))
        else:
            yield name, _told(name, field, value)


def _told(name: str, field: FieldInfo, value: Any) -> str:
    if isinstance(value, Mapping | tuple | list):
        return f"{len(value):,} of them"
    ours = [*_choices(field.annotation), *(providers() if name == "provider" else ())]
    return str(value) if value is None or isinstance(value, bool | int | float) or value in ours else "set"


def _choices(annotation: Any) -> list[Any]:
    """The words of ours that a value may be."""
    of_it = get_args(annotation)
    return list(of_it) if get_origin(annotation) is Literal else [word for each in of_it for word in _choices(each)]


def _fact(what: str, *, ok: bool | None, detail: str) -> Finding:
    return Finding(what=what, ok=ok, detail=detail, public=True)


def _nearest(path: Path) -> Path:
    """The folder that is there and holds the path, or will."""
    return next(each for each in (path, *path.absolute().parents) if each.is_dir())
