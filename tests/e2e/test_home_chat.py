"""The home chat: an admin chooses it, and what has no chat of its own is told there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.app.config.models import HeartbeatSettings
from gateway.cli.send import home_of
from gateway.domain.adapter import Limits
from gateway.domain.chat import ChatAddress
from gateway.people.access import AccessSettings
from gateway.runtime.errors import UserError
from gateway.store.port import Store
from tests.e2e.test_events import Hearing, event, told
from tests.e2e.test_watchdog import looked
from tests.support.fakes import ManualClock
from tests.support.gateway import FakeModel, Live, Say, config_in, in_turn, running

pytest_plugins = ["tests.support.redis_server"]


def shown(live: Live, chat: str, thread: str | None = None) -> list[str]:
    return [row.text for row in live.adapter.sent if (row.to.chat, row.to.thread) == (chat, thread)]


async def test_what_has_no_chat_is_told_where_an_admin_said_also_after_a_restart(
    tmp_path: Path, reopened: Callable[[], Store]
) -> None:
    access = AccessSettings(allow=("fake:*",), admins=("fake:anna",))
    config = config_in(tmp_path, access=access)
    push = event("a push", "1", task=None, to=None)
    async with running(tmp_path, config=config, adapter=Hearing(limits=Limits()), store=reopened()) as live:
        with pytest.raises(UserError, match="There is no home chat yet"):
            await told(live, push)
        assert "Only an admin" in await live.ask("/home", user="bob", chat="bobs")
        assert "This chat is now the home chat." in await live.ask("/home", user="anna", chat="office")
        assert "This chat is still the home chat." in await live.ask("/home", user="anna", chat="office")
        assert await told(live, push) == ["new"]
        await live.quiet()
    async with running(tmp_path, config=config, adapter=Hearing(limits=Limits()), store=reopened()) as live:
        assert await told(live, push, event("another", "2", task=None, to=None)) == ["duplicate", "new"]
        await live.quiet()
        assert shown(live, "office") == ["another"]
        assert "will not arrive" in await live.ask("/home off", user="anna", chat="office")
        with pytest.raises(UserError):
            await home_of(live.store, None)


async def test_config_yaml_names_one_until_then_for_alerts_events_and_looks(tmp_path: Path) -> None:
    clock = ManualClock()
    (tmp_path / "HEARTBEAT.md").write_text("Tell me when the milk is out.")
    config = config_in(tmp_path, home_chat="fake:c", heartbeat=HeartbeatSettings(chat="home")).within(tmp_path)
    model = FakeModel(in_turn(Say(text="hello"), Say(text="somebody paid"), Say(text="NOTHING"), Say(text="hi")))
    async with running(tmp_path, config=config, adapter=Hearing(), clock=clock, model=model) as live:
        assert await home_of(live.store, config.home_chat) == ChatAddress(platform="fake", chat="c")
        await live.ask("hi")
        await told(live, event("paid: 5", to=None))
        await live.adapter.until(lambda: "somebody paid" in live.adapter.shown())
        await looked(live, clock)
        await looked(live, clock, 15.0)
        await live.adapter.until(lambda: "Legato — everything stopped for 5 seconds" in live.adapter.shown())
        assert live.gateway.upkeep.heartbeat is not None
        await live.gateway.upkeep.heartbeat()
        await live.quiet()
        assert any("Tell me when the milk is out." in str(each.messages) for each in model.requests)
