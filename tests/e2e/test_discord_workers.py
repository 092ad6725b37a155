"""Two gateways with one bot on Discord: one of them is connected, both answer, and one takes over."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gateway.runtime.clock import SystemClock
from gateway.store.redis import RedisStore
from tests.emulators.discord import DiscordServer, Settings
from tests.support.discord_live import Bot, on_discord

if TYPE_CHECKING:  # at run time it is a plugin, which nobody may import first
    from tests.support.redis_server import RedisServer

pytest_plugins = ["tests.support.redis_server"]


async def test_one_is_connected_and_the_other_takes_over(
    redis_server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.app.accounts._LOOK_SECONDS", 0.05)
    redis_server.empty()
    async with DiscordServer(Settings(identify_every=0), limits=None) as discord:
        anna = discord.people.person("Anna")
        place = discord.people.general(discord.people.guild("Choir", anna))

        def gateway(number: int) -> AbstractAsyncContextManager[Bot]:
            folder = tmp_path / str(number)
            folder.mkdir()
            store = RedisStore(redis_server.url, clock=SystemClock())
            connected, rules = number == 1, {"quoted": 0}
            return on_discord(folder, discord, anna, store=store, connected=connected, rules=rules)

        async with AsyncExitStack() as stack:
            owner = gateway(1)
            one = await owner.__aenter__()
            two = await stack.enter_async_context(gateway(2))
            for number in range(4):
                one.says(f"@Legato {number}", place)
            answers = [f"echo: {number}" for number in range(4)]
            await one.until_shown(*answers, chat=place)
            assert identified(discord) == 1
            await owner.__aexit__(None, None, None)
            two.says("@Legato still there?", place)
            await two.until_shown(*answers, "echo: still there?", chat=place)
            assert identified(discord) == 2
        assert not discord.violations


def identified(discord: DiscordServer) -> int:
    return sum(call.method == "receive IDENTIFY" for call in discord.journal.calls)
