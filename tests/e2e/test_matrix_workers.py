"""Two gateways with one bot on Matrix: one of them reads, both answer, and one takes over, in encrypted rooms, too."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gateway.runtime.clock import SystemClock
from gateway.store.redis import RedisStore
from tests.e2e.test_matrix_sealed import ON, opened
from tests.support.matrix_live import Bot, on_matrix
from tests.support.matrix_stranger import stranger
from tests.support.model import PATIENCE
from tests.support.synapse import Synapse

if TYPE_CHECKING:  # at run time it is a plugin, which nobody may import first
    from tests.support.redis_server import RedisServer

pytest_plugins = ["tests.support.redis_server", "tests.support.synapse"]


@pytest.mark.slow
@pytest.mark.parametrize("apart", [False, True])
async def test_one_reads_and_the_other_takes_over(
    redis_server: RedisServer, synapse: Synapse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, apart: bool
) -> None:
    monkeypatch.setattr("gateway.app.accounts._LOOK_SECONDS", 0.05)
    redis_server.empty()
    account = synapse.person("Legato")
    async with stranger(synapse, tmp_path / "anna") as anna, AsyncExitStack() as stack:

        async def gateway(number: int, within: AsyncExitStack) -> Bot:
            folder, home = tmp_path / str(number), tmp_path / f"home{number if apart else ''}"
            folder.mkdir()
            store = RedisStore(redis_server.url, clock=SystemClock())
            how = {"account": account, "anna": anna.person, "rules": ON, "store": store, "home": home}
            return await within.enter_async_context(on_matrix(folder, synapse, **how))  # type: ignore[arg-type]

        async with AsyncExitStack() as first:
            reader = await gateway(1, first)
            await reader.until(lambda: reader.adapter.alive_at)  # else the other one may be quicker
            await gateway(2, stack)
            room = await opened(anna, account)
            for number in range(4):
                await anna.says(room, str(number))
            answers = [f"echo: {number}" for number in range(4)]
            await anna.until(lambda: anna.shown(account.id) == answers)
        if apart:  # the new device is there before somebody writes to it
            async with asyncio.timeout(PATIENCE):
                while len(await anna.does("devices", user=account.id)) < 2:
                    anna.seen += await anna.does("look", seconds=0.5)
        await anna.says(room, "still there?")
        await anna.until(lambda: anna.shown(account.id) == [*answers, "echo: still there?"])
