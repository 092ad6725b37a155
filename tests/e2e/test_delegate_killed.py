"""SIGKILL of the real program while helpers work: none is begun twice, none is lost, and each answer comes once."""

from __future__ import annotations

import random
import signal
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gateway.runtime.clock import SystemClock
from gateway.store.port import Store
from gateway.store.redis import RedisStore
from gateway.store.sqlite import SqliteStore
from gateway.turns.delegated import PROMPT
from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Hang, Reply
from tests.support.killed import one_life, store_of
from tests.support.program import KEY, Program, write_config

pytest_plugins = ["tests.support.redis_server"]

TASKS = ("one", "two", "three")
KILLS = 3
WOKEN = "I was woken"
TOOLS = {"offered": {"*": ["clock", "delegate"]}}


class World:
    """The model of all, which kills the program at the call that it is told to."""

    def __init__(self, *, background: bool) -> None:
        self.background = background
        self.program: Program | None = None
        self.left = 0

    def __call__(self, body: Mapping[str, Any]) -> Reply | Hang:
        self.left -= 1
        if self.left == 0 and self.program is not None:
            self.program.process.send_signal(signal.SIGKILL)
            return Hang()
        first, *messages = body["messages"]
        last = messages[-1]
        if first["content"] == PROMPT:
            task = messages[0]["content"]
            return Reply(tool_calls=[("clock", {})]) if last["role"] == "user" else Reply(text=f"found {task}")
        if last["role"] == "tool":
            return Reply(text="; ".join(each["content"].splitlines()[0] for each in messages[-len(TASKS) :]))
        if last["content"].startswith("[In the background"):
            return Reply(text=WOKEN)
        more = {"background": True} if self.background else {}
        return Reply(tool_calls=[("delegate", {"task": each, **more}) for each in TASKS])


async def sessions_in(store: Store) -> list[tuple[str, str | None, int]]:
    """Of each helper's session: its key, why it ended, and how many messages it has."""
    await store.open()
    try:
        found = [each for each in await store.sessions(None, 50) if each.key.helper]
        return [(each.key.text, each.end_reason, each.message_count) for each in found]
    finally:
        await store.aclose()


@pytest.mark.parametrize("background", [False, True], ids=["waited for", "in the background"])
@pytest.mark.parametrize("kind", ["sqlite", "redis"])
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 10))])
async def test_whatever_is_killed_each_helper_works_once(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str, seed: int, background: bool
) -> None:
    url, let_die = store_of(kind, tmp_path, request)
    rng, world, shown = random.Random(seed), World(background=background), list[tuple[str, str]]()
    async with LlmServer(world, api_key=KEY) as server:
        write_config(tmp_path, server.url, store={"url": url}, tools=TOOLS)
        for life in range(KILLS + 1):
            world.left = rng.randrange(1, 8) if life < KILLS else 0
            rows = await one_life(tmp_path, "look it up", partial(setattr, world, "program"))
            shown += [(row["id"], row["text"]) for row in rows]
            let_die()
        assert not server.violations
    texts = list(dict(shown).values())  # a row may be shown again after a kill, under its id
    replies = [text for text in texts if not text.startswith("I go on by myself")]
    assert replies[1:] == ([WOKEN] * len(TASKS) if background else [])
    if not background:
        assert replies == ["; ".join(f"found {each}" for each in TASKS)]
    store = (
        SqliteStore(tmp_path / "legato.db", clock=SystemClock())
        if kind == "sqlite"
        else RedisStore(url, clock=SystemClock())
    )
    found = await sessions_in(store)
    assert len({key for key, *_ in found}) == len(found) == len(TASKS)
    assert {(why, count) for _, why, count in found} == {("done", 4)}
