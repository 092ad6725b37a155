"""Nothing is forgotten: what comes back from a migration there and back is compared with what the backends hold
themselves, field by field.

A kind or a field that is added later fails here until `legato migrate` moves it, or until it stands among what is left
behind with a reason.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import asdict

from gateway.store.kinds import KINDS
from gateway.store.sqlite.connection import connect_reader
from tests.support.migration_kit import move

if TYPE_CHECKING:  # at run time they are plugins, which nobody may import first
    from tests.support.migration_places import Places
    from tests.support.redis_server import RedisServer

pytest_plugins = ["tests.support.migration_places"]

# -- kinds and fields ---------------------------------------------------------------------------

KINDS_LEFT: Final = {"member", "reserved", "rest", "bucket", "ticket", "hold"}  # of processes, or for seconds
FIELDS_LEFT_BEHIND: Final = {
    # numbers that only give an order, in which the records are compared
    *[("session", "seq"), ("session", "owed"), ("compaction", "number"), ("call", "number"), ("row", "seq")],
    *[("row", "place"), ("lane", "since")],
    # of the process that was running, sending or ending something
    *[("lane", "owner"), ("lane", "fence"), ("item", "owner"), ("row", "claim"), ("row", "heard")],
    *[("row", "confirmed"), ("session", "offered_to"), ("session", "offered_until"), ("chat", "look_at")],
    ("session", "owed_by"),  # a process that is gone owes nothing
    ("row", "put_off_for"),  # not known is safe: the row is sent when it is due
}
ORDER: Final = {"session": "sessions_at", "compaction": "key", "call": "key", "row": "rows_at"}


def records(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the records of a file by kind."""
    found = {}
    with closing(connect_reader(path)) as connection:
        for kind in KINDS:
            if kind.name in KINDS_LEFT:
                continue
            read = connection.execute(f'SELECT doc FROM "{kind.name}" ORDER BY {ORDER.get(kind.name, "key")}')
            left = {field for of, field in FIELDS_LEFT_BEHIND if of == kind.name}
            held = [asdict(kind.record(document)) for (document,) in read]
            found[kind.name] = [
                {name: value for name, value in each.items() if name not in left}
                for each in held
                if kind.name != "chat" or each["closed"] is not None
            ]
    return found


async def test_every_field_of_every_kind_comes_back(places: Places) -> None:
    await places.filled(places.sqlite("a.db"))
    before = records(places.folder / "a.db")
    await move(places.sqlite("a.db"), places.redis[0])
    await move(places.redis[0], places.sqlite("b.db"))
    assert records(places.folder / "b.db") == before
    # Only what the kit fills can be missed.
    empty = [
        f"{kind}.{name}"
        for kind, held in before.items()
        for name in (held[0] if held else ["all"])
        if not any(each[name] not in (None, 0, "", (), {}) for each in held)
    ]
    assert not empty, f"fill them in tests/support/migration_kit.py, and let the migration move them: {empty}"


async def test_as_many_of_each_kind_come_back(places: Places, redis_server: RedisServer) -> None:
    await places.filled(places.redis[0])
    await move(places.redis[0], places.sqlite("a.db"))
    await move(places.sqlite("a.db"), places.redis[1])
    assert keys(redis_server, 1) == keys(redis_server, 0)


def keys(server: RedisServer, database: int) -> Counter[str]:
    """How many keys there are of each kind of record, and of the search index."""
    with server.client(db=database) as client:
        found = Counter(name.split(":")[1] for name in client.keys("{p??}:*"))
    kept = {*(kind.name for kind in KINDS), "s"} - {"chat", *KINDS_LEFT}  # a chat may only be looked at
    return Counter({kind: number for kind, number in found.items() if kind in kept})
