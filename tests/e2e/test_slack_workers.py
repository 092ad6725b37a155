"""Two gateways with one bot on Slack: one of them is connected, both answer, and one takes over."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gateway.runtime.clock import SystemClock
from gateway.store.redis import RedisStore
from tests.emulators.slack import SlackServer
from tests.support.slack_live import Bot, on_slack

if TYPE_CHECKING:  # at run time it is a plugin, which nobody may import first
    from tests.support.redis_server import RedisServer

pytest_plugins = ["tests.support.redis_server"]


async def test_one_is_connected_and_the_other_takes_over(
    redis_server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.app.accounts._LOOK_SECONDS", 0.05)
    redis_server.empty()
    async with SlackServer(limited=False) as slack:
        anna = slack.people.person("Anna")

        def gateway(number: int) -> AbstractAsyncContextManager[Bot]:
            folder = tmp_path / str(number)
            folder.mkdir()
            store = RedisStore(redis_server.url, clock=SystemClock())
            return on_slack(folder, slack, anna, store=store, connected=number == 1)

        async with AsyncExitStack() as stack:
            owner = gateway(1)
            one = await owner.__aenter__()
            two = await stack.enter_async_context(gateway(2))
            for number in range(4):
                one.says(str(number))
            answers = [f"echo: {number}" for number in range(4)]
            await one.until_shown(*answers)
            assert len(list(slack.journal.of("apps.connections.open"))) == 1
            await owner.__aexit__(None, None, None)
            two.says("still there?")
            await two.until_shown(*answers, "echo: still there?")
        assert not slack.violations
