"""One suite for every provider: found by looking, so that a new one is held to it unasked.

A provider is a public class in `gateway.providers` that has `name`, `stream` and `aclose`. How to
build one for a test stands in `HARNESSES`; a provider without an entry fails the first test.
"""

import asyncio
import importlib
import inspect
import pkgutil
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass

import pytest

import gateway.providers
from gateway.domain.message import Message, assistant, tool_result, user
from gateway.providers.adapting import Adapting
from gateway.providers.anthropic.messages import Messages
from gateway.providers.base import Completed, ModelEvent, ModelRequest, ModelSpec, Provider, ReasoningDelta, TextDelta
from gateway.providers.http import http_client
from gateway.providers.keyring import Keyring
from gateway.providers.offline.model import Offline
from gateway.providers.openai.chat_completions import ChatCompletions
from gateway.providers.openai_responses.responses import Responses
from gateway.providers.plugin import ServedModel
from gateway.providers.retry import Retrying
from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import ContextOverflow
from gateway.runtime.structs import replace
from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Answer, Reply, last_user_text

SYSTEM: Message = {"role": "system", "content": "You are a test."}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "clock",
            "description": "Tells the time.",
            "parameters": {"type": "object", "properties": {"timezone": {"type": "string"}}},
        },
    }
]
WINDOW = 2_000  # tokens, here words


def words(text: str) -> int:
    return len(text.split())


@dataclass(frozen=True)
class Bench:
    """A provider ready to be called, and a check that what it sent was valid."""

    provider: Provider
    spec: ModelSpec
    valid: Callable[[], bool]


def model(body: dict) -> Answer:  # type: ignore[type-arg]
    """The emulator as a model that understands "call clock" as the offline one does."""
    last = body["messages"][-1]
    if last["role"] == "tool":
        return Reply(text=f"It is {last['content']}.")
    asked = last_user_text(body)
    if asked.startswith("call clock") and "tools" in body and body.get("tool_choice") != "none":
        return Reply(tool_calls=[("clock", {"timezone": "UTC"})])
    return Reply(text=f"You said “{asked}”, and that is all I know about it.")


@asynccontextmanager
async def offline() -> AsyncIterator[Bench]:
    spec = ModelSpec(provider="offline", name="offline", context_length=WINDOW)
    yield Bench(Offline(words), spec, lambda: True)


def served(
    kind: type[ChatCompletions | Messages | Responses], *, count: Callable[[str], int] = words
) -> Callable[[], AbstractAsyncContextManager[Bench]]:
    """Return a function that builds a provider of a server: the emulator speaks all APIs. `count`: the server's
    tokens of a text."""

    @asynccontextmanager
    async def serving() -> AsyncIterator[Bench]:
        async with LlmServer(model, count=count, context_length=WINDOW) as server:
            provider = kind(http_client(), str)
            spec = ModelSpec(provider=provider.name, name="test", base_url=server.url, context_length=WINDOW)
            yield Bench(provider, spec, lambda: not server.violations)
            await provider.aclose()

    return serving


@asynccontextmanager
async def retrying() -> AsyncIterator[Bench]:
    async with offline() as bench:
        wrapped = Retrying(bench.provider, clock=SystemClock(), rng=random.Random(0))
        yield Bench(wrapped, bench.spec, bench.valid)


@asynccontextmanager
async def adapting() -> AsyncIterator[Bench]:
    async with offline() as bench:
        yield Bench(Adapting(bench.provider), bench.spec, bench.valid)


@asynccontextmanager
async def with_keys() -> AsyncIterator[Bench]:
    async with offline() as bench:
        settings = ServedModel.model_validate({"provider": "offline", "name": "offline", "api_keys": ["a", "b"]})
        yield Bench(Keyring(bench.provider, SystemClock()), replace(bench.spec, settings=settings), bench.valid)


HARNESSES = {
    Adapting: adapting,
    Keyring: with_keys,
    Offline: offline,
    ChatCompletions: served(ChatCompletions),
    Messages: served(Messages),
    # No smaller cap than 16 tokens can be asked for: three words, here.
    Responses: served(Responses, count=lambda text: 5 * words(text)),
    Retrying: retrying,
}


def discovered() -> list[type]:
    found = set()
    for module in pkgutil.walk_packages(gateway.providers.__path__, "gateway.providers."):
        for kind in vars(importlib.import_module(module.name)).values():
            if not inspect.isclass(kind) or kind is Provider or kind.__name__.startswith("_"):
                continue
            if kind.__module__.startswith("gateway.providers") and hasattr(kind, "stream") and hasattr(kind, "aclose"):
                found.add(kind)
    return sorted(found, key=lambda kind: kind.__name__)


@pytest.fixture(params=discovered(), ids=lambda kind: kind.__name__)
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    assert request.param in HARNESSES, f"say in HARNESSES how to build {request.param.__name__}"
    async with HARNESSES[request.param]() as built:
        yield built


async def events_of(bench: Bench, *messages: Message, **more: object) -> list[ModelEvent]:
    request = ModelRequest(messages=[SYSTEM, *messages], **more)  # type: ignore[arg-type]
    async with aclosing(bench.provider.stream(bench.spec, request)) as events:
        return [event async for event in events]


async def complete(bench: Bench, *messages: Message, **more: object) -> Completed:
    last = (await events_of(bench, *messages, **more))[-1]
    assert isinstance(last, Completed)
    return last


async def test_completed_comes_once_and_last_and_holds_every_delta(bench: Bench) -> None:
    events = await events_of(bench, user("Tell me something about streams, please."))
    assert [type(event) for event in events].count(Completed) == 1
    completed = events[-1]
    assert isinstance(completed, Completed)
    assert completed.text == "".join(event.text for event in events if isinstance(event, TextDelta))
    assert completed.reasoning == "".join(event.text for event in events if isinstance(event, ReasoningDelta))
    assert sum(isinstance(event, TextDelta) for event in events) > 1
    assert completed.stop == "stop"
    assert bench.valid()


async def test_usage_covers_prompt_and_answer(bench: Bench) -> None:
    short = (await complete(bench, user("hi there"))).usage
    long = (await complete(bench, user("hi there " * 100))).usage
    assert short is not None
    assert long is not None
    assert 0 < short.prompt_tokens < long.prompt_tokens
    assert short.output_tokens > 0


async def test_a_tool_call_and_its_answer(bench: Bench) -> None:
    ask = user('call clock {"timezone": "UTC"}', id="m1")
    first = await complete(bench, ask, tools=TOOLS)
    assert first.stop == "tool_calls"
    (call,) = first.tool_calls
    assert call["function"] == {"name": "clock", "arguments": '{"timezone": "UTC"}'}
    assert call["id"]
    second = await complete(
        bench, ask, assistant(first.text or None, first.tool_calls), tool_result(call["id"], "noon"), tools=TOOLS
    )
    assert second.text == "It is noon."
    assert second.stop == "stop"
    assert bench.valid()


async def test_no_tool_is_called_when_none_is_offered_or_allowed(bench: Bench) -> None:
    ask = user("call clock")
    assert (await complete(bench, ask)).tool_calls == ()
    assert (await complete(bench, ask, tools=TOOLS, tool_choice="none")).tool_calls == ()
    assert bench.valid()


async def test_the_output_cap_is_kept_and_admitted(bench: Bench) -> None:
    completed = await complete(bench, user("Tell me something about streams, please."), max_tokens=3)
    assert completed.stop == "length"
    assert words(completed.text) <= 3


async def test_a_prompt_beyond_the_window_is_named_with_its_limit(bench: Bench) -> None:
    with pytest.raises(ContextOverflow) as caught:
        await complete(bench, user("word " * (WINDOW + 1)))
    assert caught.value.limit == WINDOW


async def test_nothing_that_was_passed_in_is_changed(bench: Bench) -> None:
    messages = [SYSTEM, user("hello", id="m1", tokens=3), assistant("hi", id="m2"), user("call clock", id="m3")]
    tools = deepcopy(TOOLS)
    before = deepcopy(messages)
    async with aclosing(bench.provider.stream(bench.spec, ModelRequest(messages=messages, tools=tools))) as events:
        async for _ in events:
            pass
    assert messages == before
    assert tools == TOOLS
    assert bench.valid()


async def test_stopping_early_leaves_the_provider_usable(bench: Bench) -> None:
    request = ModelRequest(messages=[SYSTEM, user("Tell me something about streams, please.")])
    async with aclosing(bench.provider.stream(bench.spec, request)) as events:
        await anext(events)
    assert (await complete(bench, user("And now?"))).text


async def test_calls_at_the_same_time_do_not_mix(bench: Bench) -> None:
    answers = await asyncio.gather(*(complete(bench, user(f"say number{n} of many")) for n in range(20)))
    assert all(f"number{n} " in completed.text for n, completed in enumerate(answers))


async def test_closing_twice_is_harmless(bench: Bench) -> None:
    await bench.provider.aclose()
    await bench.provider.aclose()
