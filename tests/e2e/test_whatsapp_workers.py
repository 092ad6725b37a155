"""Two gateways with one bot on WhatsApp, at one port: Meta calls either, both answer, and one stays."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.runtime.clock import SystemClock
from gateway.store.redis import RedisStore
from tests.emulators.whatsapp import WhatsAppServer
from tests.support.redis_server import free_port
from tests.support.whatsapp_live import Bot, on_whatsapp

if TYPE_CHECKING:  # at run time it is a plugin, which nobody may import first
    from tests.support.redis_server import RedisServer

pytest_plugins = ["tests.support.redis_server"]


async def test_either_hears_and_one_is_enough(redis_server: RedisServer, tmp_path: Path) -> None:
    redis_server.empty()
    async with WhatsAppServer(limited=False) as whatsapp:
        anna, port = whatsapp.person("Anna"), free_port()

        def gateway(number: int) -> AbstractAsyncContextManager[Bot]:
            folder = tmp_path / str(number)
            folder.mkdir()
            store = RedisStore(redis_server.url, clock=SystemClock())
            return on_whatsapp(folder, whatsapp, anna, store=store, port=port)

        async with AsyncExitStack() as stack:
            first = gateway(1)
            one = await first.__aenter__()
            two = await stack.enter_async_context(gateway(2))
            answers: list[str] = []
            for number in range(6):
                one.says(str(number))
                answers.append(f"echo: {number}")
                await one.until_shown(*answers)
                await whatsapp.delivery.hang_up()  # the next call may come to the other
            await first.__aexit__(None, None, None)
            two.says("still there?")
            await two.until_shown(*answers, "echo: still there?")
        assert not whatsapp.violations
