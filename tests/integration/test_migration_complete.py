"""Nothing is forgotten: what comes back from a migration there and back is compared with what the backends hold
themselves, field by field and key by key.

A kind, a field or a kind of key that is added later fails here until `legato migrate` moves it, or until it
stands among what is left behind with a reason.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import asdict

import gateway.store.redis
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


# -- keys ---------------------------------------------------------------------------------------

KEYS_LEFT: Final = {
    # of processes
    *("answers", "members", "lease", "sending", "bypass", "suspect_of", "hook_owners", "due_claims"),
    *("lane", "ready", "platforms"),  # who runs what; what waits is compared by what a gateway is given
    "bypass_left",  # what was in `bypass` of a process that is gone
    "out_due",  # when a chat is looked at: at the latest when its first row is due
    "reserved",  # calls that nobody settles any more: what they reserved counts as spent
    "unindexed",  # everything is in the index
    *("embedded", "signs", "vectors"),  # made anew
    *("rate", "silent"),  # for seconds
    *("commits", "gone"),  # of the store that runs steps, which has no databases of its own yet
}
ONLY_ORDER: Final = {"sessions", "hooks", "rows", "out", "suspects"}  # sorted by numbers of the store's own
FIELDS_LEFT: Final = {"place", "claim", "heard", "confirmed"}  # of rows, as above
NAMED: Final = {"message", "transcript", "facts", "stem"}  # that name messages, which have ids of each store's own


def kind_of(name: str) -> str:
    """Return the kind of a key: the word behind its partition."""
    return name.split(":")[1]


def keys(server: RedisServer, database: int) -> dict[str, Any]:
    """Return the content of a store's keys, in their order where they have one."""
    with server.client(db=database) as client, server.client(db=database, decode_responses=False) as plain:
        found: dict[str, Any] = {}
        for name in client.keys("{p??}:*"):
            kind = kind_of(name)
            match client.type(name):
                case _ if kind in KEYS_LEFT:
                    continue
                case "zset" if kind in ONLY_ORDER:
                    found[name] = client.zrange(name, 0, -1)
                case "zset":
                    members = client.zrange(name, 0, -1, withscores=True)
                    found[name] = [(member.partition("|")[2] or member, score) for member, score in members]
                case "hash":
                    fields = client.hgetall(name)
                    found[name] = {
                        # A script of Redis writes 17 digits of a time, Python as many as are needed.
                        field: float(fields[field])
                        if field.endswith("_at") and field != "model_chosen_at"
                        else fields[field]
                        for field in fields.keys() - FIELDS_LEFT
                        if fields[field] != "0"
                    }
                case "list":
                    found[name] = client.lrange(name, 0, -1)
                case "set":
                    found[name] = client.smembers(name)
                case "string" if kind != "seq":
                    found[name] = (plain.get(name), client.pexpiretime(name))
        return {name: held for name, held in found.items() if held}


async def test_every_key_comes_back(places: Places, redis_server: RedisServer) -> None:
    await places.filled(places.redis[0])
    before = keys(redis_server, 0)
    await move(places.redis[0], places.sqlite("a.db"))
    await move(places.sqlite("a.db"), places.redis[1])
    after = keys(redis_server, 1)
    assert Counter(map(kind_of, after)) == Counter(map(kind_of, before))
    assert {name: held for name, held in after.items() if kind_of(name) not in NAMED} == {
        name: held for name, held in before.items() if kind_of(name) not in NAMED
    }
    scripts = files(gateway.store.redis)
    lua = [part.read_text("utf-8") for folder in ("parts", "scripts") for part in scripts.joinpath(folder).iterdir()]
    written = {kind for text in lua for kind in re.findall(r"P \.\. '([a-z_]+)", text)}
    assert written == {kind_of(name) for name in before} | KEYS_LEFT
