"""Recovery over HTTP: a stream that breaks begins anew, a server that is gone is replaced until it is back, and a
redirect is not followed."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from gateway.domain.message import user
from gateway.providers.adapting import Adapting
from gateway.providers.base import Completed, ModelRequest, ModelSpec, Restarted, TextDelta
from gateway.providers.http import http_client
from gateway.providers.openai.chat_completions import ChatCompletions
from gateway.providers.plugin import ModelSettings
from gateway.providers.retry import Retrying
from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Answer, Cut, Refuse, Reply, error_body
from tests.support.fakes import ManualClock
from tests.support.gateway import config_in, running
from tests.support.redis_server import free_port


class Hasty(ManualClock):
    """A clock on which nobody has to wait for a sleep."""

    async def sleep(self, seconds: float) -> None:
        self._elapsed += seconds


@pytest.fixture
async def provider() -> AsyncIterator[Retrying]:
    made = Retrying(Adapting(ChatCompletions(http_client(), str)), clock=Hasty(), rng=random.Random(1))
    yield made
    await made.aclose()


async def test_a_stream_that_breaks_begins_anew(provider: Retrying) -> None:
    answers: list[Answer] = [Cut(text="This will never come to its end.", after=2), Reply(text="One two three four.")]
    async with LlmServer(lambda body: answers.pop(0)) as server:
        spec = ModelSpec(provider="openai", name="test", base_url=server.url)
        events = [event async for event in provider.stream(spec, ModelRequest(messages=[user("Hello.")]))]
    restarted = events.index(Restarted(broke_off=True))
    assert any(isinstance(event, TextDelta) for event in events[:restarted])
    assert "".join(each.text for each in events[restarted:] if isinstance(each, TextDelta)) == "One two three four."
    assert isinstance(events[-1], Completed)


async def test_a_server_that_says_when_to_come_back_is_waited_for(provider: Retrying) -> None:
    overloaded = Refuse(status=529, body=error_body("Overloaded"), headers={"Retry-After": "40"})
    answers: list[Answer] = [overloaded, Reply(text="yes")]
    clock = provider._clock
    async with LlmServer(lambda body: answers.pop(0)) as server:
        spec = ModelSpec(provider="openai", name="test", base_url=server.url)
        events = [event async for event in provider.stream(spec, ModelRequest(messages=[user("Hello.")]))]
    assert isinstance(events[-1], Completed)
    assert 40 <= clock.monotonic() <= 42


async def test_a_dead_server_is_replaced_and_comes_back(tmp_path: Path, provider: Retrying) -> None:
    port, clock = free_port(), ManualClock()
    async with LlmServer(lambda body: Reply(text=f"{body['model']} here")) as spare:
        main = ModelSettings(provider="openai", name="main", base_url=f"http://127.0.0.1:{port}/v1")
        fallback = ModelSettings(provider="openai", name="spare", base_url=spare.url)
        config = config_in(tmp_path, model=main).model_copy(update={"fallback_models": (fallback,)})
        async with running(tmp_path, config=config, provider=provider, clock=clock) as live:
            assert await live.ask("one") == "spare here"
            assert await live.ask("two") == "spare here"
            await live.quiet()
            away = "spare answers for now, because main cannot be reached or has a problem."
            away += " I ask main again in 60 seconds."
            assert live.adapter.shown("c", "notice") == [away]
            async with LlmServer(lambda body: Reply(text=f"{body['model']} here"), port=port) as back:
                await clock.advance(61)
                assert await live.ask("three") == "main here"
                assert back.calls == 1
                await live.quiet()
                assert live.adapter.shown("c", "notice") == [away, "main answers again."]
            assert spare.calls == 2


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_told_and_not_followed(tmp_path: Path, status: int) -> None:
    async with LlmServer(api_key="k-test") as main, LlmServer() as stranger:
        elsewhere = [f"{each.url}/chat/completions" for each in (stranger, main)]
        answers: list[Answer] = [Refuse(status=status, headers={"Location": each}) for each in elsewhere]
        main.reply = lambda body: answers.pop(0) if answers else Reply(text="here")
        model = ModelSettings(
            provider="openai", name="main", base_url=main.url, api_key="k-test", context_length=32_000
        )
        async with (
            aclosing(Retrying(ChatCompletions(http_client(), str), clock=Hasty(), rng=random.Random(1))) as calls,
            running(tmp_path, config=config_in(tmp_path, model=model), provider=calls) as live,
        ):
            for call, word in enumerate(("one", "two"), 1):
                assert "redirects to another one" in await live.ask(word)
                assert (main.calls, stranger.calls) == (call, 0)
            assert await live.ask("three") == "here"
            said = [message["content"] for message in main.requests[-1]["messages"] if message["role"] == "user"]
            assert [word for word in ("one", "two", "three") if any(word in each for each in said)][-1] == "three"
    assert not main.violations
