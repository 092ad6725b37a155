"""Spend caps through the whole gateway: no call is made that could overrun one, and the person is told."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.agent.caps import Caps
from gateway.app import build as bootstrap
from gateway.app.config import Config
from gateway.cli.check import of_models
from gateway.context.policy import CompressionSettings
from gateway.providers.base import ModelRequest, ModelSpec
from gateway.providers.plugin import ModelPrices
from gateway.providers.plugin import ModelSettings as ModelEntry
from gateway.providers.retry import Retrying
from gateway.runtime.errors import ConfigError
from gateway.store.records import Reservation
from gateway.store.sqlite.backend import SqliteStore
from tests.support.fakes import ManualClock
from tests.support.gateway import FEW_TOOLS, FakeAdapter, FakeModel, Gate, Say, config_in, running
from tests.support.waiting import eventually
from tests.unit.agent.test_billing import APIS, Ending, Hasty, Till

# A token in or out is a cent's hundredth; every answer has at most 100.
MODEL = ModelEntry(
    provider="openai",
    name="priced",
    base_url="http://127.0.0.1:9/v1",
    context_length=20_000,
    max_output_tokens=100,
    prices=ModelPrices(input=100, output=100),
)


def capped(folder: Path, model: ModelEntry = MODEL, **caps: Any) -> Config:
    """A configuration with a priced model and these caps."""
    more = {"compression": caps.pop("compression")} if "compression" in caps else {}
    return config_in(folder, model=model, budgets=Caps(**caps), tools=FEW_TOOLS, **more)


def costs(prompt: int) -> Any:
    """A script whose every answer reports so many prompt tokens."""

    def script(spec: ModelSpec, request: ModelRequest) -> Say:
        return Say(text="yes", prompt=prompt)

    return script


async def test_a_turn_that_cannot_be_paid_ends_with_a_sentence_and_without_a_call(tmp_path: Path) -> None:
    model = FakeModel(costs(2_000))
    config = capped(tmp_path, per_session_usd=0.5)
    async with running(tmp_path, config=config, model=model) as live:
        assert [await live.ask("one"), await live.ask("two")] == ["yes", "yes"]
        told = await live.ask("three")
        assert told.startswith("This conversation's spend cap of $0.50 does not allow another answer: $0.4006 is")
        assert told.endswith("or the operator can raise budgets.per_session_usd.")
        assert len(model.requests) == 2
        # Commands still work, a fresh conversation has a cap of its own, and what was said is kept.
        assert "The cap for this conversation leaves $0.0994 of $0.50" in await live.ask("/usage")
        await live.ask("/new")
        assert await live.ask("four") == "yes"
        assert await live.ask("hello", chat="another") == "yes"


async def test_a_persons_day_spans_their_conversations_and_ends(tmp_path: Path) -> None:
    model, clock = FakeModel(costs(8_000)), ManualClock(1_700_049_600.0)  # noon
    config = capped(tmp_path, per_user_daily_usd=1, daily_usd=100)
    async with running(tmp_path, config=config, model=model, clock=clock) as live:
        assert await live.ask("one") == "yes"
        await live.ask("/new")
        told = await live.ask("two")
        assert told.startswith("Your daily spend cap of $1.00")
        assert "The cap resets in 12 h" in told
        usage = (await live.ask("/usage")).splitlines()
        assert usage[-2:] == [
            "The cap for everybody today leaves $99.20 of $100.00 for the next 12 h",
            "The cap for you today leaves $0.1997 of $1.00 for the next 12 h",
        ]
        elsewhere = await live.ask("hello", chat="another")
        assert elsewhere.startswith("Your daily spend cap of $1.00")
        assert await live.ask("hello", chat="another", user="someone else") == "yes"
        await clock.advance(12 * 3_600)
        assert await live.ask("three") == "yes"


async def test_many_chats_at_once_never_overrun_the_whole_bots_day(tmp_path: Path) -> None:
    gate = Gate()
    model = FakeModel(lambda spec, request: Say(text="yes", gate=gate, prompt=100))
    config = capped(tmp_path, daily_usd=1.25)
    async with running(tmp_path, config=config, model=model) as live:
        events = [await live.tell("hi", chat=f"c{number}") for number in range(30)]
        await gate.until_waiting()
        await eventually(lambda: len(live.gateway.agents.metering._waiting) + gate.waiting == 30)
        assert 0 < gate.waiting < 30
        gate.open()
        answers = [(await live.answer(event)).text for event in events]
        assert answers.count("yes") == len(model.requests)
        assert all(answer == "yes" or answer.startswith("This bot's daily spend cap") for answer in answers)
        (total,) = await live.store.usage(0.0, "model")
        assert total.cost_usd <= 1.25


async def test_a_compaction_that_cannot_be_paid_is_made_by_rule(tmp_path: Path) -> None:
    """A summary has room for more words than an answer: here the cap allows one and not the other."""
    model = FakeModel(costs(0))
    dear = {"context_length": 4_000, "max_output_tokens": 50, "prices": ModelPrices(input=1, output=10_000)}
    shape = CompressionSettings(min_threshold_tokens=0, protect_last_n=2, protect_first_n=0)
    config = capped(tmp_path, MODEL.model_copy(update=dear), per_session_usd=2, compression=shape)
    async with running(tmp_path, config=config, model=model) as live:
        asked = 0
        while not (session := await live.tip()) or not session.compaction_count:
            asked += 1
            assert asked < 40
            assert await live.ask(f"message {asked}: " + "words " * 60) == "yes"
        (compaction,) = await live.store.compactions(session.id)
        assert compaction.fallback
        assert "spend cap of $2.00" in (compaction.error or "")
        assert model.summaries == 0
        # The continuation goes on spending from the same cap.
        (standing,) = await live.gateway.agents.metering.standings(session.key, session)
        assert standing.spent == sum(round(t.cost_usd * 1e6) for t in await live.store.usage(0.0, "model"))


async def test_what_was_broken_off_stays_counted_at_its_worst_case(tmp_path: Path) -> None:
    gate = Gate()
    config = capped(tmp_path, daily_usd=10)
    model = FakeModel(lambda spec, request: Say(text="yes", first="y", gate=gate, prompt=100))
    async with running(tmp_path, config=config, model=model) as live:
        await live.tell("hi")
        await gate.until_waiting()
        (standing,) = await live.gateway.agents.metering.standings((await _tip(live)).key, None)
        reserved = standing.spent
        await live.ask("/stop")
        await live.quiet()
    assert reserved > 10_000
    async with running(tmp_path, config=config, model=FakeModel(costs(100))) as live:
        (standing,) = await live.gateway.agents.metering.standings((await _tip(live)).key, None)
        assert standing.spent == reserved


async def _tip(live: Any) -> Any:
    session = await live.tip()
    assert session is not None
    return session


class Counting(SqliteStore):
    """A store that counts what metering asks of it."""

    asked = 0

    async def reserve(self, reservation: Reservation) -> Any:
        self.asked += 1
        return await super().reserve(reservation)

    async def settle(self, reservation: Reservation, cost: int) -> None:
        self.asked += 1
        await super().settle(reservation, cost)

    async def spent(self, accounts: Any) -> list[int]:
        self.asked += 1
        return await super().spent(accounts)


@pytest.mark.parametrize(("caps", "asked", "commits"), [({}, 0, 3), ({"daily_usd": 1}, 2, 5)])
async def test_what_a_plain_message_asks_of_the_store(
    tmp_path: Path, caps: dict[str, float], asked: int, commits: int
) -> None:
    config = capped(tmp_path, **caps)
    clock = ManualClock()
    assert config.store.sqlite_path is not None
    store = Counting(config.store.sqlite_path, clock=clock)
    async with running(tmp_path, config=config, model=FakeModel(costs(100)), store=store, clock=clock) as live:
        await live.ask("one")
        await live.quiet()
        store.asked, before = 0, store.commits
        await live.ask("two")
        await live.quiet()
        assert (store.asked, store.commits - before) == (asked, commits)


async def test_the_offline_model_is_free_and_asks_nothing(tmp_path: Path) -> None:
    config = config_in(tmp_path, budgets=Caps(daily_usd=0.01))
    clock = ManualClock()
    assert config.store.sqlite_path is not None
    store = Counting(config.store.sqlite_path, clock=clock)
    async with running(tmp_path, config=config, store=store, clock=clock) as live:
        assert await live.ask("one") == "echo: one"
        assert store.asked == 0


async def test_a_model_without_a_price_is_refused_before_anything_starts(tmp_path: Path) -> None:
    far = {"base_url": "https://models.example/v1"}
    nameless = MODEL.model_copy(update={"name": "nobody-knows-this-model", "prices": None, **far})
    with pytest.raises(ConfigError, match=r"model\.prices: no price is known for nobody-knows-this-model"):
        bootstrap.build(capped(tmp_path, nameless, daily_usd=1), [FakeAdapter()])
    gateway = bootstrap.build(capped(tmp_path, nameless), [FakeAdapter()])
    await gateway.settings.aclose()


async def test_a_switch_to_a_model_without_a_price_is_told(tmp_path: Path) -> None:
    async with running(tmp_path, config=capped(tmp_path, daily_usd=1), model=FakeModel(costs(10))) as live:
        await live.ask("one")
        await live.ask("/model nobody-knows-this-model")
        assert (await live.ask("two")).startswith("I do not know what the model nobody-knows-this-model costs")
        await live.ask("/model priced")
        assert await live.ask("three") == "yes"


async def test_check_says_which_caps_there_are(tmp_path: Path) -> None:
    providers = {"openai": FakeModel(costs(10))}
    gateway = bootstrap.build(capped(tmp_path, daily_usd=2), [], bootstrap.Parts(providers=providers))
    found = of_models(gateway.agents.metering, 0.5)
    (line,) = [finding async for finding in found if finding.what == "spend caps"]
    assert line.detail.startswith("$2.00 a day in all; days begin at 00:00 UTC")


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("kind", ["nothing", "answer"])
async def test_answers_without_a_word_count_as_the_server_bills_them(tmp_path: Path, api: str, kind: str) -> None:
    """Four attempts a message, and none says anything."""
    empty = Ending(kind=kind, usage=(1_000, 20), stream=kind == "answer")
    till = Till(api, [empty] * 100)
    clock = Hasty()
    served = APIS[api](httpx.AsyncClient(transport=till), str, clock=clock)
    provider = Retrying(served, clock=clock, rng=random.Random(1))
    config = capped(tmp_path, daily_usd=1.0)
    async with running(tmp_path, config=config, provider=provider, clock=clock) as live:
        assert re.search("Try again|empty answer", await live.ask("one"))
        while "spend cap" not in (told := await live.ask("more")):
            assert len(till.bills) < 50, told
        billed = 0.102 * len(till.bills)
        (total,) = await live.store.usage(0.0, "model")
        assert (total.calls, round(total.cost_usd, 3)) == (len(till.bills), round(billed, 3))
        tip = await live.tip()
        assert tip is not None
        (standing,) = await live.gateway.agents.metering.standings(tip.key, tip)
        assert standing.spent == round(1e6 * billed) <= standing.cap.limit
