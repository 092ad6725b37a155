"""A question whose answer another process hears: two gateways on one Redis."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gateway.domain.adapter import Limits
from gateway.domain.chat import Outbound
from gateway.runtime.clock import SystemClock
from gateway.store.redis import RedisStore
from tests.support.gateway import FakeAdapter, FakeModel, Live, Say, config_in, in_turn, running
from tests.support.tools import Payment, payments
from tests.support.waiting import eventually

if TYPE_CHECKING:  # at run time it is a plugin, which nobody may import first
    from tests.support.redis_server import RedisServer

pytest_plugins = ["tests.support.redis_server"]


class Buttoned(FakeAdapter):
    """A platform with buttons, which does not edit."""

    longest_token = 64

    def __init__(self) -> None:
        super().__init__(limits=Limits(trusted=True))


def question(*lives: Live) -> Outbound | None:
    return next((row for live in lives for row in live.adapter.sent if row.kind == "question"), None)


@pytest.mark.parametrize("how", ["press", "command"])
@pytest.mark.parametrize("verdict", ["approve", "deny"])
async def test_the_answer_reaches_the_turn_in_the_other_process(
    redis_server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, verdict: str
) -> None:
    monkeypatch.setattr("gateway.people.approvals._LOOK_AGAIN", 600.0)  # the news are heard, not looked for
    redis_server.empty()
    tool, model = Payment(), FakeModel(in_turn(payments(50), Say(text="done")))

    def gateway() -> object:
        store = RedisStore(redis_server.url, clock=SystemClock())
        return running(tmp_path, config=config_in(tmp_path), model=model, adapter=Buttoned(), store=store, tools=[tool])

    async with gateway() as one, gateway() as two:  # type: ignore[attr-defined]
        event = await one.tell("pay")
        row = await eventually(lambda: question(one, two))
        other = two if one.gateway.running_turns.count() else one
        assert "1. Pay 50 €?" in await said(other, (one, two), "/status")
        if how == "press":
            (token,) = [each.token for line in row.buttons for each in line if each.label.lower() == verdict]
            (accepted,) = await other.adapter.receive(other.adapter.inbound(token, kind="press"))
            assert accepted.told == ("Approved." if verdict == "approve" else "Denied.")
        else:
            await other.tell(f"/{verdict}")
        await eventually(lambda: one.adapter.answer_to(event) or two.adapter.answer_to(event))
        assert tool.paid == ([50] if verdict == "approve" else [])
        await one.quiet()
        await two.quiet()


async def said(live: Live, lives: tuple[Live, Live], text: str) -> str:
    """Say something to one; the answer, whoever shows it."""
    event = await live.tell(text)
    row: Outbound = await eventually(
        lambda: next(filter(None, (each.adapter.answer_to(event) for each in lives)), None)
    )
    return row.text
