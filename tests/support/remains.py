"""The places where a word still lies in a store's files, letter for letter."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.redis_server import RedisServer
from tests.support.store_kit import Bench
from tests.support.stores import MemoryBench, PostgresBench, RedisBench, SqliteBench

_PATIENCE = 60.0  # seconds for what is written beside the store's work


async def remains(bench: Bench, *words: str) -> list[str]:
    """The files of the store that hold one of the words."""
    if isinstance(bench, SqliteBench):
        return in_files([bench.path, bench.path.with_name(f"{bench.path.name}-wal")], *words)
    if isinstance(bench, MemoryBench):
        return [word for word in words for document in bench.space.documents if word.encode() in document]
    if isinstance(bench, PostgresBench):
        return bench.server.rows_with(*words)
    assert isinstance(bench, RedisBench)
    servers = bench.servers
    return await left_in_the_end(lambda: [each for server in servers for each in in_server(server, *words)])


async def left_in_the_end(look: Callable[[], list[str]]) -> list[str]:
    """Return the findings of a look, once there are none or a while has passed."""

    def again_and_again() -> list[str]:
        deadline = time.monotonic() + _PATIENCE
        while (found := look()) and time.monotonic() < deadline:
            time.sleep(0.02)
        return found

    return await asyncio.to_thread(again_and_again)


def in_server(server: RedisServer, *words: str) -> list[str]:
    """The files of a Redis server that hold one of the words, once it has saved what it has. Its values are saved
    as they are: compressed ones could not be read."""
    with server.client() as client:
        client.config_set("rdbcompression", "no")
        state = client.info("persistence")
        if state["aof_rewrite_in_progress"] or state["aof_rewrite_scheduled"]:
            return ["the server still writes its file"]
        client.execute_command("SAVE")
    return in_files([each for each in server.folder.rglob("*") if each.name != "server.log"], *words)


def in_keys(server: RedisServer, *words: str) -> list[str]:
    """The keys of a Redis server that hold one of the words, in their names or their values."""
    with server.client(decode_responses=False) as client:
        held = [(key, repr([key, _value(client, key)])) for key in client.scan_iter(count=1_000)]
    return [f"{word} in {key!r}" for key, value in held for word in words if word in value]


def _value(client: Any, key: bytes) -> Any:
    read = {
        b"string": client.get,
        b"hash": client.hgetall,
        b"list": lambda key: client.lrange(key, 0, -1),
        b"set": client.smembers,
        b"zset": lambda key: client.zrange(key, 0, -1),
        b"stream": client.xrange,
        b"none": lambda key: None,  # it ended meanwhile
    }
    return read[client.type(key)](key)


def in_files(paths: list[Path], *words: str) -> list[str]:
    """The files that hold one of the words."""
    return [
        f"{word} in {path.name}"
        for path in paths
        if path.is_file()
        for word in words
        if word.encode() in path.read_bytes()
    ]
