"""A chat that is gone and comes back while an old refusal is still on its way."""

from __future__ import annotations

from pathlib import Path

from gateway.domain.chat import Outbound
from gateway.runtime.errors import ChatGone
from tests.support.gateway import FakeAdapter, running
from tests.support.model import Gate


class Crossing(FakeAdapter):
    """A platform on which the first send is refused, but only when the gate opens."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = Gate()
        self.refused = False

    async def send(self, outbound: Outbound) -> str:
        if not self.refused:
            self.refused = True
            await self.gate.pass_through()
            raise ChatGone("the person has blocked the bot")
        return await super().send(outbound)


async def test_a_message_that_crosses_an_old_refusal_is_answered(tmp_path: Path) -> None:
    adapter = Crossing()
    async with running(tmp_path, adapter=adapter) as live:
        await live.tell("hello")
        await adapter.gate.until_waiting()
        back = await live.tell("I am back")
        adapter.gate.open()
        assert (await live.answer(back)).text == "echo: I am back"
        assert await live.store.closed(adapter.inbound("x").source.address) is None
