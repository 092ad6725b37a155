"""Windows that fill up in unusual ways, through the real loop: one request that takes three hundred tool results,
and a conversation in Chinese."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gateway.agent.prompt import PromptSettings
from gateway.agent.tools.base import ToolContext
from gateway.app.config import Config
from gateway.app.config.models import Context
from gateway.context.policy import CompressionSettings
from gateway.domain.message import is_request, is_summary, text_of
from gateway.domain.turn import TurnSettings
from gateway.providers.base import ModelRequest, ModelSpec
from gateway.providers.plugin import ModelSettings as ModelEntry
from gateway.runtime.errors import ContextOverflow, ProviderUnavailable
from tests.support.gateway import config_in, running
from tests.support.model import FakeModel, Say, Script, summary_text
from tests.support.transcripts import COUNTER, flaws

WINDOW = 12_000
RESULTS = 300
REQUEST = "Do the whole long task, all of it, and stay out of /srv/keep."


class Look:
    """Says a lot about whatever it is asked to look at."""

    name = "look"
    description = "look at a file"
    parameters: Mapping[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}}
    read_only = True
    idempotent = True
    timeout = 5.0

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """About 300 tokens."""
        return f"{arguments['path']} is done\n" * 40


def working(parallel: int) -> Script:
    """A model that looks at one file after the other, `parallel` at a time, and counts them itself."""
    looked = 0

    def script(spec: ModelSpec, request: ModelRequest) -> Say:
        nonlocal looked
        if looked >= RESULTS:
            return Say(text="All of it is done.", prompt=None)
        names = range(looked, looked + parallel)
        looked += parallel
        return Say(calls=[("look", f'{{"path": "dir/{name}.py"}}') for name in names], prompt=None)

    return script


def refusing(spec: ModelSpec, request: ModelRequest) -> Say:
    """No summaries today."""
    return Say(error=ProviderUnavailable("The summariser is away."))


def settings(folder: Path, engine: str) -> Config:
    """A small window, half of which may be filled."""
    return config_in(
        folder,
        model=ModelEntry(provider="offline", name="fake", context_length=WINDOW),
        compression=CompressionSettings(min_threshold_tokens=0),
        context=Context(engine=engine),
        turns=TurnSettings(max_steps=RESULTS + 1),
    )


def taken(request: ModelRequest) -> int:
    """Tokens of a request."""
    return sum(map(COUNTER.message, request.messages)) + COUNTER.schemas(request.tools)


@pytest.mark.parametrize(
    ("engine", "summary", "parallel"),
    [("compressor", summary_text, 1), ("compressor", refusing, 10), ("window", refusing, 10)],
    ids=["compressor", "compressor by rule", "window"],
)
async def test_three_hundred_results_in_one_turn_converge(
    tmp_path: Path, engine: str, summary: Script, parallel: int
) -> None:
    config = settings(tmp_path, engine)
    model = FakeModel(working(parallel), summary=summary)
    async with running(tmp_path, config=config, model=model, tools=[Look()]) as live:
        assert await live.ask(REQUEST) == "All of it is done."
        tip = await live.tip()
        assert tip is not None
        stored = await live.store.transcript(tip)
    assert len(model.requests) == RESULTS // parallel + 1
    for request in model.requests:
        assert taken(request) + (request.max_tokens or 0) <= WINDOW
        assert flaws(request.messages) == []
        assert any(text_of(message).endswith(REQUEST) for message in request.messages if is_request(message))
    assert tip.compaction_count >= 5
    assert sum(map(is_summary, stored)) == 1


@pytest.mark.parametrize("engine", ["compressor", "window"])
async def test_chinese_is_counted_by_the_tokenizer(tmp_path: Path, engine: str) -> None:
    """A quarter of its characters, as is often taken for tokens, would see half of a prompt and less."""
    model = FakeModel(lambda spec, request: Say(text="收到，我会按照这个顺序处理所有的订单。" * 20, prompt=None))
    asked = [f"第{number}天：" + "请检查仓库里的每一件货物，然后告诉我哪些还没有发出。" * 20 for number in range(30)]
    async with running(tmp_path, config=settings(tmp_path, engine), model=model) as live:
        for text in asked:
            await live.ask(text)
        tip = await live.tip()
        assert tip is not None
        entries = [entry for one in await live.store.lineage(tip.id) for entry in await live.store.compactions(one.id)]
    assert len(entries) >= 3
    assert all(taken(request) <= WINDOW for request in model.requests)
    fullest = max(model.requests, key=taken)
    characters = sum(len(text_of(message)) for message in fullest.messages)
    assert taken(fullest) > 2 * (characters // 4)


async def test_that_compressing_does_not_help_is_said_once_in_a_small_window(tmp_path: Path) -> None:
    config = config_in(
        tmp_path,
        model=ModelEntry(provider="offline", name="fake", context_length=8_000),
        prompt=PromptSettings(persona="The archive keeps shelf 7 tidy and calm. " * 150),
        compression=CompressionSettings(min_threshold_tokens=0),
    )
    model = FakeModel(lambda spec, request: Say(text="Yes " * 100, prompt=None), summary=summary_text)
    async with running(tmp_path, config=config, model=model) as live:
        for number in range(60):
            await live.ask(f"Note {number}: " + f"word{number} " * 100)
        texts = [sent.text for sent in live.adapter.sent]
    assert sum("I compress the earlier conversation" in text for text in texts) > 3
    assert sum("I have stopped trying" in text for text in texts) == 1


@pytest.mark.parametrize("known", [4_000, 32_000])
async def test_a_system_prompt_that_fills_the_window_is_no_fault_of_the_message(tmp_path: Path, known: int) -> None:
    config = config_in(
        tmp_path,
        model=ModelEntry(provider="offline", name="fake", context_length=known),
        prompt=PromptSettings(persona="The archive keeps shelf 7 tidy and calm. " * 480),
    )
    model = FakeModel(lambda *_: Say(error=ContextOverflow("Too long.", limit=4_000)))
    async with running(tmp_path, config=config, model=model) as live:
        said = await live.ask("hello")
    assert said.startswith("The system prompt and the tools alone take about ")
    assert "the model's window has 4,000. Choose a model with a larger window (/model)" in said


@pytest.mark.parametrize("steps", [1, 3])
async def test_the_last_step_of_a_turn_is_for_words_alone(tmp_path: Path, steps: int) -> None:
    def restless(spec: ModelSpec, request: ModelRequest) -> Say:
        if request.tool_choice == "none":
            return Say(text="That is all I have.", prompt=None)
        return Say(calls=[("look", '{"path": "a"}')], prompt=None)

    config, model = config_in(tmp_path, turns=TurnSettings(max_steps=steps)), FakeModel(restless)
    async with running(tmp_path, config=config, model=model, tools=[Look()]) as live:
        assert await live.ask("Look.") == "That is all I have."
    assert [request.tool_choice for request in model.requests] == ["auto"] * (steps - 1) + ["none"]
