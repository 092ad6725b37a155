"""The model that just answered writes the notes behind the very prompt its provider still has in its cache."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.app.config import Config
from gateway.context.policy import CompressionSettings
from gateway.domain.message import is_summary, text_of
from gateway.domain.session import Session
from gateway.domain.usage import UsageTotal
from gateway.providers.http import http_client
from gateway.providers.offline.model import is_summary_request
from gateway.providers.openai.chat_completions import ChatCompletions
from gateway.providers.plugin import ModelSettings as ModelEntry
from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Answer, Hook, Reply, last_user_text
from tests.support.gateway import Live, config_in, running

WINDOW = 20_000
SOFT_MARK, THRESHOLD = 9_000, 10_000
MANY = 40  # messages, in a window of which a dozen are enough
WORDS = "the quick brown fox jumps over the lazy dog " * 80  # about 720 tokens
NOTES = "## Active Task\nNone\n## Goal\nHear about foxes and dogs."

Body = dict[str, Any]


def answering(body: Body) -> Answer:
    """Notes for whoever asks for notes, a few words for everybody else."""
    return Reply(text=NOTES if is_summary_request(body["messages"]) else f"heard {last_user_text(body)[:3]}")


@asynccontextmanager
async def talking(
    folder: Path, server: LlmServer, *, background: bool = True, summary_model: str | None = None
) -> AsyncIterator[Live]:
    """A gateway whose model is on the server, over the real HTTP stack."""
    model = ModelEntry(provider="openai", name="main", base_url=server.url, context_length=WINDOW)
    compression = CompressionSettings(min_threshold_tokens=0, background=background, summary_model=summary_model)
    config: Config = config_in(folder, model=model, compression=compression)
    async with AsyncExitStack() as stack:
        provider = ChatCompletions(http_client(), str)
        stack.push_async_callback(provider.aclose)
        yield await stack.enter_async_context(running(folder, config=config, provider=provider))


async def present(live: Live) -> Session:
    session = await live.tip()
    assert session is not None
    return session


async def say_until(live: Live, tokens: int) -> None:
    """Talk until a prompt took that many tokens."""
    for number in range(MANY):
        await live.ask(f"{number:03} {WORDS}")
        if (await present(live)).last_prompt_tokens >= tokens:
            return
    raise AssertionError("the conversation was condensed before")


async def say_until_condensed(live: Live, times: int = 1) -> Session:
    """Talk until the conversation was condensed that often; the session it is in then."""
    for number in range(MANY):
        session = await present(live)
        if session.compaction_count >= times:
            return session
        await live.ask(f"{number:03} {WORDS}")
        await until_prepared(live)  # a person reads the answer first
    raise AssertionError("the conversation was never condensed")


async def until_prepared(live: Live) -> None:
    await live.gateway.background.ended(f"preparation {(await present(live)).id}")


async def notes_cost(live: Live) -> UsageTotal:
    """Return the use of all requests for notes."""
    [total] = [each for each in await live.store.usage(0.0, "purpose") if each.label == "compression"]
    return total


def split(server: LlmServer) -> tuple[list[Body], list[Body]]:
    """(the requests of turns, those for notes)."""
    asked: list[Body] = [body for body in server.requests if is_summary_request(body["messages"])]
    return [body for body in server.requests if body not in asked], asked


def begins_like(body: Body, other: Body) -> bool:
    """Say whether a request repeats another one's messages and tools, letter for letter and in their order."""
    repeated = json.dumps(body["messages"])[: len(json.dumps(other["messages"])) - 1]
    return repeated == json.dumps(other["messages"])[:-1] and json.dumps(body["tools"]) == json.dumps(other["tools"])


async def test_a_preparation_repeats_the_turn_before_it_to_the_letter_and_pays_for_the_cache_only(
    tmp_path: Path,
) -> None:
    async with LlmServer(answering, context_length=WINDOW, caches=True) as server, talking(tmp_path, server) as live:
        await say_until(live, SOFT_MARK)
        await until_prepared(live)
        turns, [asked] = split(server)
        assert begins_like(asked, turns[-1])
        assert asked["tool_choice"] == "none"
        assert "tool_choice" not in turns[-1]
        added = asked["messages"][len(turns[-1]["messages"]) :]
        assert [message["role"] for message in added] == ["assistant", "user"]
        assert text_of(added[0]) == "heard " + last_user_text(turns[-1])[:3]
        notes = (await notes_cost(live)).usage
        assert notes.cache_read_tokens > 0.8 * notes.prompt_tokens
        after = await say_until_condensed(live)
        assert len(split(server)[1]) == 1
        messages = await live.store.transcript(after)
        [summary] = filter(is_summary, messages)
        assert NOTES in text_of(summary)
        assert not (await live.store.compactions(after.id))[0].fallback
        assert server.violations == []


async def test_so_does_a_compaction_that_a_turn_waits_for(tmp_path: Path) -> None:
    async with (
        LlmServer(answering, context_length=WINDOW, caches=True) as server,
        talking(tmp_path, server, background=False) as live,
    ):
        await say_until(live, THRESHOLD - 900)
        await say_until_condensed(live)
        _, [asked] = split(server)
        last = server.requests[server.requests.index(asked) - 1]
        assert begins_like(asked, last)
        roles = [message["role"] for message in asked["messages"][len(last["messages"]) :]]
        assert roles == ["assistant", "user"], "the answer, and the message that waits with the instruction behind it"
        assert text_of(asked["messages"][-1]).count(WORDS) == 1
        assert not server.violations
        assert (await notes_cost(live)).usage.cache_read_tokens > 0


async def test_the_second_compaction_finds_the_notes_of_the_first_in_the_prefix(tmp_path: Path) -> None:
    async with LlmServer(answering, context_length=WINDOW, caches=True) as server, talking(tmp_path, server) as live:
        await live.ask("hello")
        await say_until_condensed(live, times=2)
        _, asked = split(server)
        assert len(asked) >= 2
        assert all(body.get("tool_choice") == "none" for body in asked)
        assert sum(NOTES in text_of(message) for message in asked[-1]["messages"]) == 1


def stands_alone(body: Body) -> bool:
    return len(body["messages"]) == 2 and "tools" not in body


@pytest.mark.parametrize("why", ["no cache is reported", "a model of its own", "after a restart", "another model"])
async def test_without_a_warm_cache_the_request_stands_alone(tmp_path: Path, why: str) -> None:
    own = "small" if why == "a model of its own" else None
    caches = why != "no cache is reported"
    async with LlmServer(answering, context_length=WINDOW, caches=caches) as server:
        async with talking(tmp_path, server, background=False, summary_model=own) as live:
            await say_until(live, SOFT_MARK)
            if why == "another model":
                await live.ask("/model other")
            if why != "after a restart":
                assert (await live.ask("/compress")).startswith("Compressed: ")
        if why == "after a restart":
            async with talking(tmp_path, server, background=False) as live:
                assert (await live.ask("/compress")).startswith("Compressed: ")
        _, [asked] = split(server)
        assert stands_alone(asked)
        assert asked["model"] == {"a model of its own": "small", "another model": "other"}.get(why, "main")


def first_time(odd: Reply) -> Hook:
    """The first request for notes gets an odd answer."""
    left = [odd]

    def hook(body: Body) -> Answer:
        return left.pop() if left and is_summary_request(body["messages"]) else answering(body)

    return hook


@pytest.mark.parametrize(
    "odd", [Reply(text="Foxes again! Do tell."), Reply(tool_calls=[("clock", {})])], ids=["goes on", "calls a tool"]
)
async def test_a_model_that_takes_no_notes_is_asked_once_more_alone(tmp_path: Path, odd: Reply) -> None:
    async with (
        LlmServer(first_time(odd), context_length=WINDOW, caches=True) as server,
        talking(tmp_path, server, background=False) as live,
    ):
        await say_until(live, SOFT_MARK)
        answer = await live.ask("/compress")
        assert answer.startswith("Compressed: ")
        assert "could not be used" not in answer
        _, [in_place, alone] = split(server)
        assert in_place["tool_choice"] == "none"
        assert stands_alone(alone)
        assert "An earlier attempt could not be used because" in text_of(alone["messages"][1])
        assert (await notes_cost(live)).calls == 2
