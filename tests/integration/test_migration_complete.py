"""Nothing is forgotten: what comes back from a migration there and back is compared with what the backends hold
themselves, column by column and key by key.

A table, a column or a kind of key that is added later fails here until `legato migrate` moves it, or until it
stands among what is left behind with a reason.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import gateway.store.redis
from gateway.store.sqlite.holdings import OWN
from tests.support.migration_kit import move

if TYPE_CHECKING:  # at run time they are plugins, which nobody may import first
    from tests.support.migration_places import Places
    from tests.support.redis_server import RedisServer

pytest_plugins = ["tests.support.migration_places"]

# -- tables and columns -------------------------------------------------------------------------

TABLES_LEFT: Final = {
    *OWN,
    "reservations",  # calls that nobody settles any more: what they reserved counts as spent
    "sqlite_sequence",
    "message_vectors",  # made anew
}
# Numbers that only give an order, which the rows are compared in.
ORDER: Final = {"sessions": "seq", "owed_hooks": "seq", "compactions": "id", "ledger": "id", "outbox": "seq"}
COLUMNS_LEFT: Final = {
    ("outbox", "place"),  # a number that only gives an order; that is compared elsewhere
    ("outbox", "claim"),  # of the process that was sending
    ("outbox", "heard"),  # since that process began to send
    ("outbox", "put_off_for"),  # not known is safe: see 0003_put_off.sql
}


def tables(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the content of a gateway's tables, in their order."""
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        found = {}
        for table in names:
            if table in TABLES_LEFT or table.startswith(("message_search", "search_words")):
                continue
            left = {column for of, column in COLUMNS_LEFT if of == table} | {ORDER.get(table)}
            rows = connection.execute(f"SELECT * FROM {table} ORDER BY {ORDER.get(table, 1)}").fetchall()
            held = [{name: row[name] for name in row.keys() if name not in left} for row in rows]  # noqa: SIM118
            found[table] = held if table in ORDER else sorted(held, key=repr)
        return found


async def test_every_column_of_every_table_comes_back(places: Places) -> None:
    await places.filled(places.sqlite("a.db"))
    before = tables(places.folder / "a.db")
    await move(places.sqlite("a.db"), places.redis[0])
    await move(places.redis[0], places.sqlite("b.db"))
    assert tables(places.folder / "b.db") == before
    # Only what the kit fills can be missed.
    empty = [
        f"{table}.{name}"
        for table, rows in before.items()
        for name in (rows[0] if rows else ["all"])
        if not any(row[name] not in (None, 0, "", "[]", "{}") for row in rows)
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
}
ONLY_ORDER: Final = {"sessions", "hooks", "rows", "out", "suspects"}  # sorted by numbers of the store's own
FIELDS_LEFT: Final = {"place", "claim", "heard", "confirmed"}  # of rows, as above


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
    assert keys(redis_server, 1) == before
    scripts = files(gateway.store.redis)
    lua = [part.read_text("utf-8") for folder in ("parts", "scripts") for part in scripts.joinpath(folder).iterdir()]
    written = {kind for text in lua for kind in re.findall(r"P \.\. '([a-z_]+)", text)}
    assert written == {kind_of(name) for name in before} | KEYS_LEFT
