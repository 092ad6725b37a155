"""Another model answers while the main one cannot."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from gateway.agent.caps import Caps
from gateway.agent.fallback import NO_FALLBACK
from gateway.agent.tools.base import ToolContext
from gateway.app.config import Config
from gateway.context.policy import CompressionSettings
from gateway.providers.base import ModelRequest, ModelSpec
from gateway.providers.http import http_client
from gateway.providers.openai.chat_completions import ChatCompletions
from gateway.providers.plugin import ModelPrices, ModelSettings
from gateway.providers.retry import Retrying
from gateway.runtime.errors import (
    ContextOverflow,
    ProviderError,
    ProviderRateLimited,
    ProviderRejected,
    ProviderUnavailable,
    QuotaExceeded,
)
from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Cut, Hang, server_error
from tests.emulators.llm_replies import Script as Answers
from tests.support.fakes import ManualClock
from tests.support.gateway import config_in, running
from tests.support.model import FakeModel, Say, Script, newest

AWAY = ProviderUnavailable("The model cannot be reached.")
MAIN = ModelSettings(provider="offline", name="main", context_length=32_000)


def spare(name: str, **more: Any) -> ModelSettings:
    """A fallback model."""
    return ModelSettings(provider="offline", name=name, **{"context_length": 32_000, **more})


def by_name(**failures: ProviderError | None) -> Script:
    """Models that fail, and others that say who they are."""

    def script(spec: ModelSpec, request: ModelRequest) -> Say:
        error = failures.get(spec.name)
        return Say(error=error) if error else Say(text=f"{spec.name}: {newest(request)}")

    return script


def settings(folder: Path, *fallbacks: ModelSettings | str, **sections: Any) -> Config:
    """A main model, and others that stand in for it."""
    chain = fallbacks or (spare("first"), spare("second"))
    return config_in(folder, **{"model": MAIN, **sections}).model_copy(update={"fallback_models": chain})


LATER = "I ask main again in 5 minutes"


def asked(model: FakeModel) -> list[str]:
    """The names of the models that were asked, in order."""
    return [spec.name for spec in model.specs]


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (AWAY, "cannot be reached or has a problem. I ask main again in 60 seconds"),
        (ProviderUnavailable("No JSON.", malformed=True), "gave no usable answer"),
        (ProviderRejected("The key is refused.", status=401), f"is refused by its provider. {LATER}"),
        (ProviderRejected("The model is gone.", status=404), f"is refused by its provider. {LATER}"),
        (ProviderRejected("It was decommissioned.", status=400, away=True), f"is refused by its provider. {LATER}"),
        (QuotaExceeded("No credit.", status=402), f"has no credit left. {LATER}"),
        (ProviderRateLimited("Too often.", retry_after=9), "is asked too often. I ask main again in 60 seconds"),
    ],
)
async def test_the_next_model_answers_and_one_line_says_so(tmp_path: Path, error: ProviderError, why: str) -> None:
    model = FakeModel(by_name(main=error))
    async with running(tmp_path, config=settings(tmp_path), model=model) as live:
        assert await live.ask("hello") == "first: hello"
        await live.quiet()
        assert live.adapter.shown("c", "notice") == [f"first answers for now, because main {why}."]
        shown = [sent.text for sent in live.adapter.sent]
        assert shown.index(f"first answers for now, because main {why}.") < shown.index("first: hello")
        tip = await live.tip()
        assert tip is not None
        assert tip.model == "main"
        assert [total.label for total in await live.store.usage(0.0, "model")] == ["first"]


async def test_a_model_that_is_away_is_not_waited_for_and_comes_back_by_itself(tmp_path: Path) -> None:
    clock, model = ManualClock(), FakeModel(by_name(main=AWAY))
    async with running(tmp_path, config=settings(tmp_path), model=model, clock=clock) as live:
        assert await live.ask("one") == "first: one"
        assert await live.ask("two", chat="another") == "first: two"
        assert asked(model) == ["main", "first", "first"]
        await clock.advance(61)
        assert await live.ask("three") == "first: three"
        model.script = by_name()
        await clock.advance(61)
        assert await live.ask("four") == "main: four"
        assert asked(model) == ["main", "first", "first", "main", "first", "main"]
        assert [spec.context_length for spec in model.specs] == [32_000] * 6


async def test_a_change_of_the_model_that_answers_is_told_once(tmp_path: Path) -> None:
    clock, model = ManualClock(), FakeModel(by_name(main=AWAY))
    away = "{} answers for now, because main cannot be reached or has a problem. I ask main again in 60 seconds."
    async with running(tmp_path, config=settings(tmp_path), model=model, clock=clock) as live:
        for failing in ({"main": AWAY}, {"main": AWAY}, {"main": AWAY, "first": AWAY}, {}, {}):
            model.script = by_name(**failing)
            await live.ask("hello")
            await live.ask("/compress")
            await clock.advance(61)
        await live.quiet()
        told = [away.format("first"), away.format("second"), "main answers again."]
        assert live.adapter.shown("c", "notice") == told


async def test_a_chosen_model_is_not_taken_for_the_one_that_was_away(tmp_path: Path) -> None:
    model = FakeModel(by_name(main=AWAY, other=AWAY))
    away = "first answers for now, because {0} cannot be reached or has a problem. I ask {0} again in 60 seconds."
    async with running(tmp_path, config=settings(tmp_path), model=model) as live:
        for chosen in ("main", "other", "another"):
            await live.ask(f"/model {chosen}")
            await live.ask("hello")
        await live.quiet()
        assert live.adapter.shown("c", "notice") == [away.format("main"), away.format("other")]


class AtOnce(random.Random):
    """Pauses of no length."""

    def uniform(self, a: float, b: float) -> float:
        return 0.0


async def test_a_server_that_breaks_down_is_replaced_and_comes_back(tmp_path: Path) -> None:
    """Over HTTP: an error, half an answer, the end of the attempts; another server answers; the first is back later."""
    clock, broken = ManualClock(), Answers(server_error(503), Cut())
    calls = Retrying(ChatCompletions(http_client(), str), clock=clock, rng=AtOnce(), attempts=2)
    async with LlmServer(broken) as main, LlmServer() as other, aclosing(calls):
        model = ModelSettings(provider="openai", name="main", base_url=main.url, context_length=32_000)
        stand_in = model.model_copy(update={"base_url": other.url})
        config = settings(tmp_path, stand_in, model=model)
        async with running(tmp_path, config=config, provider=calls, clock=clock) as live:
            assert await live.ask("hello") == "echo: hello"
            assert (main.calls, other.calls) == (2, 1)
            await live.quiet()
            assert live.adapter.shown("c", "notice")[0].startswith("Another main answers for now, because main cannot")
            assert await live.ask("and now?") == "echo: and now?"
            assert (main.calls, other.calls) == (2, 2), "nobody waits for it a second time"
            await clock.advance(61)
            assert await live.ask("and later?") == "echo: and later?"
            assert (main.calls, other.calls) == (3, 2)


async def test_a_server_that_accepts_and_says_nothing_is_replaced_and_comes_back(tmp_path: Path) -> None:
    clock, silent = ManualClock(), Answers(Hang())
    calls = Retrying(ChatCompletions(http_client(), str, clock=clock), clock=clock, rng=AtOnce(), deadline=30)
    async with LlmServer(silent) as main, LlmServer() as other, aclosing(calls):
        model = ModelSettings(provider="openai", name="main", base_url=main.url, context_length=32_000)
        stand_in = model.model_copy(update={"name": "spare", "base_url": other.url})
        config = settings(tmp_path, stand_in, model=model)
        async with running(tmp_path, config=config, provider=calls, clock=clock) as live:
            answering = asyncio.create_task(live.ask("hello"))
            await main.until(lambda: bool(main.requests))
            await clock.advance(89)
            assert not other.requests
            await clock.advance(2)
            assert await answering == "echo: hello"
            assert (main.calls, other.calls) == (1, 1), "a silent model is not asked again"
            await live.quiet()
            assert live.adapter.shown("c", "notice") == [
                f"spare answers for now, because main did not answer in time. {LATER}."
            ]
            assert await live.ask("and now?") == "echo: and now?"
            assert main.calls == 1, "nobody waits for it a second time"
            await clock.advance(301)
            assert await live.ask("and later?") == "echo: and later?"
            assert (main.calls, other.calls) == (2, 2)


async def test_a_fallback_that_refuses_is_followed_by_the_next(tmp_path: Path) -> None:
    refusal = ProviderRejected("I know no tools.", status=400)
    model = FakeModel(by_name(main=AWAY, first=refusal))
    async with running(tmp_path, config=settings(tmp_path), model=model) as live:
        assert await live.ask("hello") == "second: hello"


async def test_a_request_that_the_main_model_refuses_is_no_case_for_another(tmp_path: Path) -> None:
    refusal = ProviderRejected("I do not like that.", status=400)
    model = FakeModel(by_name(main=refusal))
    async with running(tmp_path, config=settings(tmp_path), model=model) as live:
        assert await live.ask("hello") == "I do not like that."
    assert asked(model) == ["main"]


async def test_a_prompt_that_is_too_long_is_no_case_for_another(tmp_path: Path) -> None:
    model = FakeModel(by_name(main=ContextOverflow("Too long.")))
    async with running(tmp_path, config=settings(tmp_path), model=model) as live:
        await live.ask("hello")
    assert set(asked(model)) == {"main"}


async def test_when_all_are_away_the_main_models_error_is_told(tmp_path: Path) -> None:
    model = FakeModel(by_name(main=AWAY, first=AWAY, second=AWAY))
    async with running(tmp_path, config=settings(tmp_path), model=model) as live:
        told = "The model cannot be reached. The fallback models (first, second) could not answer either."
        assert await live.ask("hello") == told
        assert await live.ask("again") == told
        model.script = by_name()
        assert await live.ask("and now?") == "main: and now?"


async def test_without_any_the_error_names_the_setting(tmp_path: Path) -> None:
    async with running(tmp_path, model=FakeModel(by_name(fake=AWAY))) as live:
        assert await live.ask("hello") == f"{AWAY} {NO_FALLBACK}"


@pytest.mark.parametrize(("wait", "hint"), [(2.0, ""), (4_000.0, f" {NO_FALLBACK}")])
async def test_a_long_wait_for_the_models_rate_names_the_setting(tmp_path: Path, wait: float, hint: str) -> None:
    busy = ProviderRateLimited("Try again later.", retry_after=wait)
    async with running(tmp_path, model=FakeModel(by_name(fake=busy))) as live:
        assert await live.ask("hello") == f"Try again later.{hint}"


async def test_a_smaller_window_is_compacted_for_first_and_is_not_kept(tmp_path: Path) -> None:
    clock, model = ManualClock(), FakeModel(by_name())
    compression = CompressionSettings(min_threshold_tokens=0, protect_first_n=0, protect_last_n=2)
    config = settings(tmp_path, spare("small", context_length=8_000), compression=compression)
    async with running(tmp_path, config=config, model=model, clock=clock) as live:
        for number in range(12):
            await live.ask(f"{number} " + "words of some length " * 100)
        model.script = by_name(main=AWAY)
        assert await live.ask("and now?") == "small: and now?"
        tip = await live.tip()
        assert tip is not None
        assert tip.compaction_count == 1
        assert sum(len(str(message)) for message in model.requests[-1].messages) < 4 * 8_000
        assert "of 32,000 tokens" in await live.ask("/context")
        assert (await live.gateway.agents.sessions.engines.of(tip)).engine.threshold_tokens == 16_000
        assert await live.ask("and then?") == "small: and then?"
        model.script = by_name()
        await clock.advance(61)
        assert await live.ask("and later?") == "main: and later?"


class Look:
    """Sees something."""

    name = "look"
    description = "look around"
    parameters: Mapping[str, Any] = {"type": "object", "properties": {}}
    read_only = True
    idempotent = True
    timeout = 5.0

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """Return the words of a look."""
        return "a tree"


async def test_who_stood_in_finishes_the_turn(tmp_path: Path) -> None:
    clock, steps = ManualClock(), 0

    def script(spec: ModelSpec, request: ModelRequest) -> Say:
        nonlocal steps
        if spec.name == "main":
            return Say(error=AWAY)
        steps += 1
        return Say(calls=[("look", "{}")]) if steps < 3 else Say(text=f"{spec.name} saw it")

    model = FakeModel(script)
    async with running(tmp_path, config=settings(tmp_path), model=model, clock=clock, tools=[Look()]) as live:
        assert await live.ask("What is there?") == "first saw it"
        await live.quiet()
        assert len(live.adapter.shown("c", "notice")) == 1
    assert asked(model) == ["main", "first", "first", "first"]


async def test_the_price_is_that_of_the_model_that_answered(tmp_path: Path) -> None:
    main = MAIN.model_copy(update={"provider": "openai", "prices": ModelPrices(input=1_000, output=0)})
    cheap = spare("cheap").model_copy(update={"provider": "openai", "prices": ModelPrices(input=1, output=0)})
    config = settings(tmp_path, cheap, model=main, budgets=Caps(daily_usd=1_000))
    model = FakeModel(lambda spec, request: Say(error=AWAY) if spec.name == "main" else Say(text="yes", prompt=1_000))
    async with running(tmp_path, config=config, model=model) as live:
        assert await live.ask("hello") == "yes"
        (total,) = await live.store.usage(0.0, "model")
        assert (total.label, total.cost_usd) == ("cheap", 0.001)
        tip = await live.tip()
        assert tip is not None
        (standing,) = await live.gateway.agents.metering.standings(tip.key, tip)
        assert standing.spent == 1_000
