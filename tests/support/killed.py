"""The real program, which is killed in the middle of things: the store that it leaves behind, and its next life."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.program import Program, chatting

if TYPE_CHECKING:  # at run time it is a plugin, which nobody may import first
    from tests.support.redis_server import RedisServer


def store_of(kind: str, folder: Path, request: pytest.FixtureRequest) -> tuple[str, Callable[[], None]]:
    """The address of an empty store, and what makes it know at once that the processes of Redis are dead."""
    if kind == "sqlite":
        return f"sqlite:///{folder / 'legato.db'}", lambda: None
    redis: RedisServer = request.getfixturevalue("redis_server")
    redis.empty()
    return redis.url, redis.let_all_die


async def one_life(folder: Path, text: str, begins: Callable[[Program], None]) -> list[dict[str, Any]]:
    """Say one thing to the program and nothing more, until it has ended or was killed; returns what it showed."""
    async with chatting(folder) as program:
        begins(program)
        program.send({"id": "e", "text": text})
        assert program.process.stdin is not None
        program.process.stdin.close()
        while await program.read_line():
            pass
        await program.process.wait()
    return program.lines
