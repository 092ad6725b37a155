"""A conversation gets a title from a model: once, in one small call beside the answers, counted to its person."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gateway.agent.caps import Caps
from gateway.app.config import Config
from gateway.app.config.models import Auxiliary
from gateway.domain.message import text_of
from gateway.domain.turn import SessionSettings
from gateway.providers.plugin import ModelPrices, ModelSettings
from tests.support.gateway import Live, config_in, running
from tests.support.model import FakeModel, Gate, Say
from tests.support.waiting import eventually

MAIN = ModelSettings(provider="openai", name="main", context_length=32_000, prices=ModelPrices(input=100, output=100))
SMALL = MAIN.model_copy(update={"name": "small", "prices": ModelPrices(input=1, output=1)})


def settings(folder: Path, *, titles: bool = True, **sections: Any) -> Config:
    given = {"model": MAIN, "sessions": SessionSettings(titles=titles), **sections}
    return config_in(folder, **given)


def naming(*answers: Say) -> FakeModel:
    left = list(answers)
    return FakeModel(title=lambda spec, request: left.pop(0))


async def calls_for(live: Live, purpose: str) -> int:
    return sum(each.calls for each in await live.store.usage(0.0, "purpose") if each.label == purpose)


async def test_a_conversation_is_named_once_beside_its_answers(tmp_path: Path) -> None:
    gate = Gate()
    model = naming(Say(text="**Titel: “Umzug nach\u202e Köln”**\nIch helfe gern!", gate=gate))
    config = settings(tmp_path, auxiliary=Auxiliary(mode="custom", title=SMALL))
    secret = "sk-" + "a1B2" * 10
    async with running(tmp_path, config=config, model=model) as live:
        await live.ask(f"Ich ziehe nach Köln um. Mein Schlüssel ist {secret}. <conversation>" + " Kisten" * 5_000)
        assert not model.titles
        await live.ask("Was muss ich zuerst kündigen?")
        await gate.until_waiting()
        assert "echo" in await live.ask("und dann?")  # no answer waits for it
        [asked] = model.titles
        text = "\n".join(map(text_of, asked.messages))
        assert "zuerst kündigen" in text
        assert secret not in text
        assert len(text) < 3_000
        assert "und dann" not in text
        assert model.titled_by == ["small"]
        assert text.count("<conversation>") == 1
        gate.open()
        assert await eventually(lambda: calls_for(live, "title")) == 1
        assert (await live.ask("/title")).startswith("This session is “Umzug nach Köln”.")
        await live.ask("noch etwas")
        await live.ask("/new")
        assert "1. Umzug nach Köln (" in await live.ask("/sessions")
        assert "“Umzug nach Köln”" in await live.ask("/resume 1")
        await live.ask("weiter")
        await live.ask("und weiter")
        assert len(model.titles) == 1
        assert await calls_for(live, "title") == 1


async def test_no_title_is_asked_for_twice_after_a_kill_or_where_none_is_wanted(tmp_path: Path) -> None:
    killed, gate = naming(Say(text="Too late", gate=Gate())), Gate()
    async with running(tmp_path, config=settings(tmp_path), model=killed) as live:
        await live.ask("hello there, my friend")
        await live.ask("how are you?")
        await killed.until(lambda: killed.titles)
        assert await live.ask("/title") == "This session is “hello there, my friend”. /title <name> changes its name."
    silent = naming()
    async with running(tmp_path, config=settings(tmp_path), model=silent) as live:
        await live.ask("and now?")
        await live.ask("/new")
        await live.ask("/title My \u202eown\n name")
        await live.ask("one")
        await live.ask("two")
        assert (await live.ask("/title")).startswith("This session is “My own name”.")
    dear = MAIN.model_copy(update={"prices": ModelPrices(input=1_000, output=1_000), "max_output_tokens": 10})
    for folder, more in (("off", {"titles": False}), ("spent", {"budgets": Caps(per_user_daily_usd=200.5)})):
        path = tmp_path / folder
        path.mkdir()
        model = FakeModel(lambda spec, request: Say(text="yes", prompt=100_000), title=lambda *_: Say(text="No"))
        async with running(path, config=settings(path, model=dear, **more), model=model) as live:
            await live.ask("one")
            await live.ask("two")
            await live.ask("/title")
            assert not model.titles
            assert not await calls_for(live, "title")
    assert not silent.titles
    assert len(killed.titles) == 1
    assert not gate.waiting


async def test_a_persons_name_wins_over_a_title_that_comes_late(tmp_path: Path) -> None:
    gate = Gate()
    async with running(tmp_path, config=settings(tmp_path), model=naming(Say(text="The model's", gate=gate))) as live:
        await live.ask("first words of all")
        await live.ask("the second")
        await gate.until_waiting()
        await live.ask("/title Mine")
        gate.open()
        assert await eventually(lambda: calls_for(live, "title")) == 1
        assert "“Mine”" in await live.ask("/title")
