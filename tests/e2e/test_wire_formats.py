"""A conversation with thoughts and tools over each API: stored, read again by a new process, continued elsewhere."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.providers.anthropic.messages import Messages
from gateway.providers.http import http_client
from gateway.providers.openai.chat_completions import ChatCompletions
from gateway.providers.openai_responses.responses import Responses
from gateway.providers.plugin import ModelSettings
from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Answer, Reply, last_user_text, server_error, summarising
from tests.support.gateway import Live, config_in, running

KINDS = [ChatCompletions, Messages, Responses]


def thinking(body: dict[str, Any]) -> Answer:
    """A model that thinks before it calls a tool, and before it answers."""
    if body["messages"][-1]["role"] == "tool":
        return Reply(reasoning="The clock spoke.", text=f"At {last_user_text(body)} it was late.")
    return Reply(reasoning="I need a clock.", text="I look.", tool_calls=[("clock", {"timezone": "UTC"})])


@asynccontextmanager
async def talking(folder: Path, server: LlmServer, kind: Any) -> AsyncIterator[Live]:
    """A gateway whose model is on the server, with a store that stays."""
    name = "claude" if kind is Messages else "gpt"
    model = ModelSettings(provider=kind.name, name=name, base_url=server.url, context_length=100_000)
    async with AsyncExitStack() as stack:
        provider = kind(http_client(), str)
        stack.push_async_callback(provider.aclose)
        yield await stack.enter_async_context(running(folder, config=config_in(folder, model=model), provider=provider))


def sent(body: dict[str, Any]) -> list[Any]:
    """Return the messages of a request, without the marks for the cache, which move on."""
    said = json.dumps(body.get("messages") or body["input"])
    return json.loads(said, object_hook=lambda each: {key: each[key] for key in each if key != "cache_control"})  # type: ignore[no-any-return]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
async def test_a_stored_conversation_goes_back_to_the_letter(tmp_path: Path, kind: Any) -> None:
    async with LlmServer(thinking, context_length=100_000) as server:
        async with talking(tmp_path, server, kind) as live:
            assert "it was late" in await live.ask("noon")
        async with talking(tmp_path, server, kind) as live:  # a new process knows what the store knows
            assert "it was late" in await live.ask("midnight")
        assert not server.violations
        requests = [sent(body) for body in server.requests]
        assert len(requests) == 4
        for before, after in itertools.pairwise(requests):
            if kind is Messages:  # what people say next to results shares a message with them
                assert after[: len(before) - 1] == before[:-1]
                assert after[len(before) - 1]["content"][: len(before[-1]["content"])] == before[-1]["content"]
            else:
                assert after[: len(before)] == before
        secrets = json.dumps(requests[-1]).count("sig-of-") + json.dumps(requests[-1]).count("gAAAA")
        assert secrets == (0 if kind is ChatCompletions else 3)


async def test_a_conversation_whose_provider_is_changed_goes_on(tmp_path: Path) -> None:
    async with LlmServer(thinking, context_length=100_000) as server:
        for number, kind in enumerate((*KINDS, ChatCompletions)):
            async with talking(tmp_path, server, kind) as live:
                assert f"At time {number} it was late." in await live.ask(f"time {number}")
        assert not server.violations
        assert json.dumps(server.requests[-1]).count("it was late") == 3


def steps_since(messages: list[Any]) -> int:
    """Return the steps with tools since a person spoke, in a request of any of the formats."""
    steps = 0
    for message in reversed(messages):
        content = message.get("content")
        if isinstance(content, list):  # results of Anthropic's are a person's message
            steps += any(block["type"] == "tool_use" for block in content)
            if message["role"] == "user" and any(block["type"] == "text" for block in content):
                break
        elif message.get("role") == "user":
            break
        else:
            steps += bool(message.get("tool_calls")) or message.get("type") == "reasoning"
    return steps


def working(body: dict[str, Any]) -> Answer:
    """A model that takes five steps with two calls each before it answers."""
    results = 0
    for message in reversed(body["messages"]):
        if message["role"] == "user":
            break
        results += message["role"] == "tool"
    steps = results // 2
    if steps < 5:
        call = ("clock", {"timezone": "UTC"})
        return Reply(reasoning=f"Step {steps} needs a clock.", text=f"Step {steps}.", tool_calls=[call, call])
    return Reply(reasoning="All clocks spoke.", text=f"Answer to {last_user_text(body)}.")


@pytest.mark.parametrize(
    ("kind", "name", "mark"),
    [
        (ChatCompletions, "gemini-3-pro", "sig-of-"),
        (ChatCompletions, "router/claude", "sig-of-"),
        (ChatCompletions, "kimi-k2-thinking", "needs a clock"),
        (Messages, "claude", "sig-of-"),
        (Responses, "gpt", "gAAAA"),
    ],
)
async def test_what_a_model_attaches_comes_back_to_it_alone(tmp_path: Path, kind: Any, name: str, mark: str) -> None:
    """Forty steps with tools, a restart, a fallback amid a turn, and a compaction."""

    def answering(body: dict[str, Any]) -> Answer:
        away = last_user_text(body) == "question 3" and body["messages"][-1]["role"] == "tool"  # amid the turn
        return server_error(503) if away and body["model"] == name else working(body)

    async with LlmServer(summarising(answering), context_length=100_000) as server:

        @asynccontextmanager
        async def started() -> AsyncIterator[Live]:
            model = ModelSettings(provider=kind.name, name=name, base_url=server.url, context_length=100_000)
            config = config_in(tmp_path, model=model)
            spare = model.model_copy(update={"name": "spare"})
            config = config.model_copy(update={"fallback_models": (spare,)})
            async with AsyncExitStack() as stack:
                provider = kind(http_client(), str)
                stack.push_async_callback(provider.aclose)
                yield await stack.enter_async_context(running(tmp_path, config=config, provider=provider))

        async with started() as live:
            for number in range(2):
                assert await live.ask(f"question {number}") == f"Answer to question {number}."
        async with started() as live:  # a restart
            assert await live.ask("question 2") == "Answer to question 2."
            assert "Answer to question 3." in await live.ask("question 3")  # by another model
        async with started() as live:
            assert await live.ask("question 4") == "Answer to question 4."
            assert "Compressed" in await live.ask("/compress --keep 2")
            for number in range(5, 8):
                assert f"Answer to question {number}." in await live.ask(f"question {number}")
        assert server.violations == []
        asked = [sent(body) for body in server.requests if body["model"] == name]
        asked = [messages for messages in asked if steps_since(messages)]
        assert len(asked) >= 35
        assert all(json.dumps(messages).count(mark) >= steps_since(messages) for messages in asked)
