"""A look now and then: it costs nothing where nothing changed, and says nothing where there is nothing to say."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from gateway.agent.delegation import Order
from gateway.app.config.models import HeartbeatSettings
from gateway.domain.expiry import ExpiryPolicy
from gateway.domain.message import text_of
from gateway.domain.turn import SessionSettings
from gateway.providers.base import ModelRequest
from gateway.providers.plugin import ModelPrices
from gateway.providers.plugin import ModelSettings as ModelEntry
from gateway.runtime.clock import SystemClock
from gateway.store.port import Store
from tests.support.gateway import FakeAdapter, FakeModel, Live, Say, config_in, running
from tests.support.tools import Payment, payments
from tests.support.waiting import eventually

pytest_plugins = ["tests.support.redis_server"]

NOON = 1_700_049_600.0  # 2023-11-15 12:00 UTC
GOES_ON = "I am continuing on my own: a look at what you wrote down found something."


class Calendar(SystemClock):
    """Days that the test turns; seconds pass by themselves."""

    def __init__(self) -> None:
        self.ahead = NOON - super().now()

    def now(self) -> float:
        return super().now() + self.ahead


class Model(FakeModel):
    """Answers looks by `finds`, one after the other, then with nothing; and everything else with an echo."""

    def __init__(self, *finds: Say) -> None:
        self.finds = list(finds)
        self.looks: list[ModelRequest] = []
        super().__init__(self._said)

    def _said(self, spec: Any, request: ModelRequest) -> Say:
        if not any("one of the looks" in text_of(each) for each in request.messages):
            woke = "[In the background" in text_of(request.messages[-1])
            return Say(text="You asked me to tell you: milk!" if woke else "hello")
        self.looks.append(request)
        return self.finds.pop(0) if self.finds else Say(text="NOTHING")


@asynccontextmanager
async def looking(folder: Path, model: Model, **settings: Any) -> AsyncIterator[Live]:
    how = {name: settings.pop(name) for name in ("store", "tools") if name in settings}
    heartbeat = HeartbeatSettings(**{"chat": "fake:c", **settings})
    sessions = SessionSettings(expiry=ExpiryPolicy(timezone="UTC"))
    priced = ModelEntry(provider="offline", name="fake", prices=ModelPrices(input=1, output=1))
    config = config_in(folder, heartbeat=heartbeat, sessions=sessions, model=priced).within(folder)
    adapter, clock = FakeAdapter(), Calendar()
    async with running(folder, config=config, model=model, adapter=adapter, clock=clock, **how) as live:
        yield live


async def look(live: Live, minutes: float = 31) -> None:
    """Let it look after so many minutes, and wait for what comes of it."""
    assert isinstance(live.clock, Calendar)
    live.clock.ahead += 60 * minutes
    assert live.gateway.upkeep.heartbeat is not None
    await live.gateway.upkeep.heartbeat()
    await live.quiet()


async def test_it_looks_where_something_changed_and_speaks_where_it_found_something(
    tmp_path: Path, reopened: Callable[[], Store]
) -> None:
    model = Model(Say(text="NOTHING."), Say(text="The milk is out."))
    file = tmp_path / "HEARTBEAT.md"
    async with looking(tmp_path, model, store=reopened()) as live:
        await look(live)
        file.write_text("Tell me when the milk is out.")
        await look(live)  # nobody has talked there yet
        assert model.looks == []
        assert await live.ask("hi") == "hello"
        await look(live)
        assert len(model.looks) == 1
        asked = text_of(model.looks[0].messages[-1])
        assert "Tell me when the milk is out." in asked
        assert "Due within a day:\n(nothing)" in asked
        for _ in range(5):
            await look(live)
        assert len(model.looks) == 1
        assert live.adapter.shown() == ["hello"]
        await live.ask("/remind in 20 hours buy milk")
        await look(live, 10)  # it is not time yet
        assert len(model.looks) == 1
        await look(live)
        assert len(model.looks) == 2
        assert ": buy milk" in text_of(model.looks[1].messages[-1])
        await eventually(lambda: live.adapter.shown()[-1] == "You asked me to tell you: milk!")
        await live.quiet()
        assert live.adapter.shown()[-2] == GOES_ON
        await look(live)  # what it said itself is no news
        file.write_text("Tell me when the eggs are out.")
        assert len(model.looks) == 2
        await look(live)
        assert len(model.looks) == 3
        tip = await live.tip()
        assert tip is not None
        assert tip.message_count == 4  # hello twice, and the milk
    async with looking(tmp_path, model, store=reopened()) as live:
        await look(live, 25 * 60)
        await live.gateway.people.firing.fire_due()
        await look(live)
        assert len(model.looks) == 4  # the reminder is over


async def test_looks_are_counted_and_can_change_nothing(tmp_path: Path) -> None:
    pay, model = Payment(), Model(payments(3), Say(text="NOTHING"))
    file = tmp_path / "HEARTBEAT.md"
    async with looking(tmp_path, model, daily=2, hours="8-22", tools=[pay]) as live:
        await live.ask("hi")
        for number in range(5):
            file.write_text(f"Pay {number}.")
            await look(live)
        assert len(model.looks) == 3  # of two looks, the first of which called a tool
        assert pay.paid == []
        assert live.adapter.shown() == ["hello"]
        await look(live, 8 * 60)
        assert len(model.looks) == 3  # it is 22:35
        await look(live, 10 * 60)
        assert len(model.looks) == 4  # the next day


async def test_a_day_of_looks_has_a_budget_and_nobody_hears_that_it_is_spent(tmp_path: Path) -> None:
    model = Model(Say(text="The milk is out."))
    async with looking(tmp_path, model, daily_usd=0.000001) as live:
        (tmp_path / "HEARTBEAT.md").write_text("Tell me when the milk is out.")
        assert await live.ask("hi") == "hello"
        await look(live)
        assert model.looks == []
        assert live.adapter.shown() == ["hello"]
        assert await live.ask("are you there?") == "hello"  # which is no look


@pytest.mark.parametrize(
    ("hour", "since", "looks", "hours", "may"),
    [
        (12, 1_800, 0, None, True),
        (12, 1_799, 0, None, False),
        (12, 1_800, 24, None, False),
        (7, 9_000, 0, "8-22", False),
        (8, 9_000, 0, "8-22", True),
        (22, 9_000, 0, "8-22", False),
        (23, 9_000, 0, "22-6", True),
        (5, 9_000, 0, "22-6", True),
        (6, 9_000, 0, "22-6", False),
    ],
)
def test_when_it_may_look(hour: int, since: float, looks: int, hours: str | None, may: bool) -> None:
    assert HeartbeatSettings(chat="fake:c", hours=hours).may_look(hour, since, looks) is may


@pytest.mark.parametrize("wrong", [{"every": "4m"}, {"every": "1d"}, {"every": "h"}, {"hours": "8"}, {"hours": "8-25"}])
def test_settings_that_mean_nothing_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="must be"):
        HeartbeatSettings(**wrong)


@pytest.mark.parametrize("said", ["NOTHING", "NOTHING to say.", "[The helper did not finish.] It broke.", ""])
def test_an_answer_that_is_none_wakes_nobody(said: str) -> None:
    assert not Order(task="look", woke="found").is_news(said)
    assert Order(task="look", woke="found").is_news("The milk is out.")
    assert Order(task="do it").is_news(said)
