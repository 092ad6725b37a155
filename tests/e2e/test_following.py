"""A session follows the configuration, unless a person chose its model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.agent.prompt import PromptSettings
from gateway.domain.message import text_of
from gateway.providers.base import ModelSpec, OfferedModel
from gateway.providers.plugin import ModelPrices, ModelSettings
from gateway.runtime.errors import ProviderUnavailable
from gateway.store.port import Store
from tests.support.asking import Buttoned, settings
from tests.support.gateway import FakeModel, Live, config_in, running

pytest_plugins = ["tests.support.redis_server"]

WORDS = "the quick brown fox jumps over the lazy dog " * 60
Start = Callable[..., AbstractAsyncContextManager[Live]]


@pytest.fixture
def start(reopened: Callable[[], Store], tmp_path: Path) -> Start:
    """Starts the program anew on the same store, with `model` as its model's section."""

    def started(*, persona: str | None = None, **model: Any) -> AbstractAsyncContextManager[Live]:
        entry = ModelSettings(**{"provider": "openai", "base_url": "http://127.0.0.1:1/v1", **model})
        config = config_in(tmp_path, model=entry, prompt=PromptSettings(persona=persona))
        return running(tmp_path, config=config, model=FakeModel(), store=reopened())

    return started


def called(live: Live) -> list[str]:
    """The models that were asked for answers."""
    return [spec.name for spec in live.model.specs]


async def test_a_session_goes_on_with_the_model_that_is_configured_now(start: Start) -> None:
    async with start(provider="offline", base_url=None, name="offline") as live:
        await live.ask("hello")
    for name in ("x", "y"):
        async with start(name=name) as live:
            assert await live.ask("hello again") == "echo: hello again"
            assert f"the model {name}." in await live.ask("/status")
            await live.ask("/new")
            await live.ask("a fresh one")
            await live.ask("/branch")
            await live.ask("in a branch")
            await live.ask("/resume 2")
            await live.ask("in an earlier one")
            assert called(live) == [name] * 4
            assert "chosen" not in await live.ask("/context")
            assert (tip := await live.tip()) is not None
            assert (tip.model, tip.model_chosen_at) == (name, None)


async def test_a_chosen_model_stays_and_the_context_says_so(start: Start) -> None:
    async with start(name="x") as live:
        await live.ask("hello")
        await live.ask("/model mine")
        await live.ask("hello")
    async with start(name="y") as live:
        await live.ask("hello")
        assert (await live.ask("/context")).endswith(
            "chose the model mine for this chat with /model, although config.yaml names y."
        )
        await live.ask("/branch")
        await live.ask("in a branch")
        await live.ask("/new")
        await live.ask("in the next session")
        assert called(live) == ["mine"] * 3
        await live.ask("/model y")
        await live.ask("hello")
    async with start(name="z") as live:
        await live.ask("hello")
        assert called(live) == ["z"]


async def test_a_choice_waits_for_its_provider(start: Start) -> None:
    async with start(name="x") as live:
        await live.ask("hello")
        await live.ask("/model mine")
    async with start(provider="offline", base_url=None, name="offline") as live:
        await live.ask("hello")
        assert called(live) == ["offline"]
    async with start(name="y") as live:
        await live.ask("hello")
        assert called(live) == ["mine"]


async def test_a_smaller_window_is_met_by_a_compaction_before_the_call(start: Start) -> None:
    async with start(name="x", context_length=32_000) as live:
        for number in range(10):
            await live.ask(f"message {number} {WORDS}")
    async with start(name="x", context_length=8_000) as live:
        assert await live.ask("hello") == "echo: hello"
        assert live.model.specs[-1].context_length == 8_000
        assert (tip := await live.tip()) is not None
        assert tip.compaction_count == 1
        sent = sum(live.gateway.agents.sessions.counter.message(each) for each in live.model.requests[0].messages)
        assert sent < 8_000


LISTED = (
    OfferedModel(name="fake"),
    OfferedModel(name="small-2", window=9_000),
    OfferedModel(name="gpt-big", window=64_000),
)


class Listing:
    """A server that lists these models; None: it is down."""

    def __init__(self, offered: Sequence[OfferedModel] | None = LISTED) -> None:
        self.offered = offered
        self.asked: list[str] = []

    async def models(self, spec: ModelSpec) -> Sequence[OfferedModel]:
        self.asked.append(spec.name)
        if self.offered is None:
            raise ProviderUnavailable("down")
        return self.offered


@asynccontextmanager
async def listing(folder: Path) -> AsyncIterator[Live]:
    """A gateway whose provider lists its models."""
    async with running(folder) as live:
        live.gateway.agents.metering.models.servers = {"offline": Listing()}
        yield live


async def test_a_model_is_picked_with_a_button_by_who_may_choose_it(tmp_path: Path) -> None:
    long = OfferedModel(name="n" * 80)
    adapter = Buttoned()
    async with running(tmp_path, config=settings(tmp_path), adapter=adapter) as live:
        live.gateway.agents.metering.models.servers = {"offline": Listing((*LISTED, long))}
        await live.ask("/model")
        (shown,) = [row for row in adapter.sent if row.text.startswith("Your first session")]
        tokens = [button.token for line in shown.buttons for button in line]
        assert sorted(tokens) == ["/model gpt-big", "/model small-2"]  # a longer name than a button carries has none
        event = await live.tell("/model gpt-big", kind="press")
        assert (await live.answer(event)).text == "This chat will use gpt-big (a window of 64,000 tokens)."
        # In a group a member sees no buttons, and a press that was made up has the member's rights.
        room: dict[str, Any] = {"chat": "room", "chat_type": "group", "user": "u"}
        await live.ask("/model", **room)
        assert adapter.sent[-1].buttons == ()
        event = await live.tell("/model small-2", kind="press", **room)
        assert (await live.answer(event)).text.startswith("In a group, only an admin")


async def test_a_model_is_checked_against_the_providers_list(tmp_path: Path) -> None:
    async with listing(tmp_path) as live:
        first = await live.ask("/model")
        assert first.startswith("Your first session will use fake (a window of 32,000 tokens).")
        await live.ask("hello")
        assert await live.ask("/model nonexist-9") == "The provider has no model nonexist-9. /model lists the models."
        assert "Did you mean small-2?" in await live.ask("/model small2")
        assert (await live.ask("/model")).splitlines() == [
            "This session uses fake (a window of 32,000 tokens).",
            "You can also choose small-2, gpt-big. /model <name> switches to another model.",
        ]
        assert await live.ask("/model GPT-big") == "This session now uses gpt-big (a window of 64,000 tokens)."
        await live.ask("hello")
        assert called(live)[-1] == "gpt-big"


async def test_a_smaller_model_is_met_by_a_compaction_before_its_first_call(tmp_path: Path) -> None:
    async with listing(tmp_path) as live:
        for number in range(16):
            await live.ask(f"message {number} {WORDS}")
        told = await live.ask("/model small-2")
        assert told.startswith("This session now uses small-2 (a window of 9,000 tokens). Our conversation (~")
        assert told.endswith(" tokens) is too long for the new model, so I will compress it before my next answer.")
        assert await live.ask("hello") == "echo: hello"
        assert called(live)[-1] == "small-2"
        assert (tip := await live.tip()) is not None
        assert (tip.model, tip.compaction_count) == ("small-2", 1)


async def test_a_chosen_model_keeps_its_window_after_a_restart(tmp_path: Path) -> None:
    async with listing(tmp_path) as live:
        await live.ask("hello")
        await live.ask("/model small-2")
    async with listing(tmp_path) as live:
        assert "9,000" in await live.ask("/context")
        await live.ask("hello")
        assert live.model.specs[-1].context_length == 9_000
    async with listing(tmp_path) as live:
        for number in range(16):
            await live.ask(f"message {number} {WORDS}")
        assert {spec.context_length for spec in live.model.specs} == {9_000}
        assert (tip := await live.tip()) is not None
        assert tip.compaction_count


async def test_a_silent_list_is_not_asked_at_every_message(tmp_path: Path) -> None:
    async with listing(tmp_path) as live:
        await live.ask("/model small-2")
    down = Listing(None)
    async with listing(tmp_path) as live:
        live.gateway.agents.metering.models.servers = {"offline": down}
        assert await live.ask("hello") == "echo: hello"
        assert await live.ask("hello") == "echo: hello"
        assert down.asked == ["fake"]


async def test_a_silent_list_refuses_no_model(tmp_path: Path) -> None:
    async with listing(tmp_path) as live:
        await live.ask("hello")
        live.gateway.agents.metering.models.servers = {"offline": Listing(None)}
        silence = "The provider cannot list its models at the moment. Try again later."
        window = "a window of 32,000 tokens; the size is my guess, because the provider does not state it"
        assert (await live.ask("/model other")).endswith(f"now uses other ({window}). {silence}")
        assert (await live.ask("/model")).endswith(silence)


async def test_the_prompt_and_the_prices_are_those_that_are_configured_now(start: Start) -> None:
    async with start(name="x") as live:
        await live.ask("hello")
        await live.ask("/pin be brief")
    prices = ModelPrices(input=1_000.0, output=1_000.0)
    async with start(name="x", persona="You are a pirate. " * 100, prices=prices) as live:
        await live.ask("hello")
        system = text_of(live.model.requests[0].messages[0])
        assert system.startswith("You are a pirate.")
        assert "1. be brief" in system
        assert (tip := await live.tip()) is not None
        assert tip.cost_usd > 0
        assert tip.epoch == 3  # a pin, and the new prompt
        await live.ask("hello")
        assert text_of(live.model.requests[1].messages[0]) == system
        assert (tip := await live.tip()) is not None
        assert tip.epoch == 3
