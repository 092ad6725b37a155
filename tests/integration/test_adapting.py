"""Models that refuse a part of a request are usable all the same."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from gateway.agent.models import Models
from gateway.app.models import NoTable
from gateway.cli.check import of_model
from gateway.domain.message import user
from gateway.providers.adapting import Adapting
from gateway.providers.base import Completed, ModelRequest, ModelSpec, TextDelta
from gateway.providers.http import http_client
from gateway.providers.openai import PLUGIN
from gateway.providers.openai.chat_completions import ChatCompletions
from gateway.providers.plugin import ModelSettings
from gateway.runtime.errors import FeatureRefused, ProviderRejected
from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Answer, Refuse, Reply, error_body

TOOL = {
    "type": "function",
    "function": {"name": "look", "description": "d", "parameters": {"type": "object", "properties": {}}},
}
REQUEST = ModelRequest(messages=[{"role": "system", "content": "Be kind."}, user("Hello.")], tools=[TOOL])


@pytest.fixture
async def provider() -> AsyncIterator[Adapting]:
    made = Adapting(ChatCompletions(http_client(), str))
    yield made
    await made.aclose()


async def ask(provider: Adapting, spec: ModelSpec, request: ModelRequest = REQUEST) -> tuple[Completed, int]:
    """The answer, and in how many pieces it came."""
    events = [event async for event in provider.stream(spec, request)]
    assert isinstance(events[-1], Completed)
    return events[-1], sum(isinstance(event, TextDelta) for event in events)


def picky(body: Mapping[str, Any]) -> Answer:
    """A model of the simplest kind."""
    refusals = {
        "tools": "registry.ollama.ai/library/tiny does not support tools",
        "stream": "Your organization must be verified to stream this model.",
        "temperature": "Unsupported value: 'temperature' does not support 0.5 with this model.",
    }
    for key, text in refusals.items():
        if body.get(key):
            return Refuse(status=400, body=error_body(text))
    if body["messages"][0]["role"] == "system":
        return Refuse(status=400, body=error_body("System role not supported"))
    return Reply(text="One two three four five six.")


async def test_each_refusal_is_learned_once(provider: Adapting) -> None:
    settings = ModelSettings(temperature=0.5)
    async with LlmServer(picky) as server:
        spec = ModelSpec(provider="openai", name="test", base_url=server.url, settings=settings)
        completed, pieces = await ask(provider, spec)
        assert (completed.text, pieces) == ("One two three four five six.", 1)
        assert completed.omitted == {"tools", "stream", "temperature", "system_role"}
        assert len(server.requests) == 5
        await ask(provider, spec)
        assert len(server.requests) == 6
        assert server.requests[-1]["messages"] == [{"role": "user", "content": "Be kind.\n\nHello."}]
        # Another model at the same address takes what it takes.
        await ask(provider, ModelSpec(provider="openai", name="other", base_url=server.url))
        assert "tools" in server.requests[6]
    assert not server.violations


async def test_a_setting_says_so_beforehand(provider: Adapting) -> None:
    settings = ModelSettings(
        tools=False, stream=False, system_role=False, extra_body={"top_p": 0.5}, headers={"X-Title": "t"}
    )
    async with LlmServer(picky) as server:
        await ask(provider, ModelSpec(provider="openai", name="test", base_url=server.url, settings=settings))
        (request,) = server.requests
    assert request["top_p"] == 0.5
    assert not {"tools", "stream", "stream_options"} & request.keys()


async def test_a_model_of_the_newer_api_alone_is_told_by_name(provider: Adapting) -> None:
    text = "This model is only supported in v1/responses and not in v1/chat/completions."
    async with LlmServer(lambda _: Refuse(status=404, body=error_body(text))) as server:
        with pytest.raises(ProviderRejected, match=r"Set model\.provider to openai-responses") as caught:
            await ask(provider, ModelSpec(provider="openai", name="test", base_url=server.url))
    assert caught.value.away


async def test_a_header_that_cannot_be_sent_is_named(provider: Adapting) -> None:
    settings = ModelSettings(headers={"X-Title": "line\nbreak"})
    with pytest.raises(ProviderRejected, match="X-Title"):
        await ask(provider, ModelSpec(provider="openai", name="t", base_url="http://127.0.0.1:1", settings=settings))


async def test_a_setting_may_insist(provider: Adapting) -> None:
    async with LlmServer(picky) as server:
        spec = ModelSpec(provider="openai", name="t", base_url=server.url, settings=ModelSettings(tools=True))
        with pytest.raises(FeatureRefused, match="does not support tools"):
            await ask(provider, spec)
        assert len(server.requests) == 1


async def test_what_does_not_help_is_not_remembered(provider: Adapting) -> None:
    answers: list[Answer] = [
        Refuse(status=400, body=error_body("System role not supported")),
        Refuse(status=400, body=error_body("System role not supported")),
        Reply(text="yes"),
    ]
    async with LlmServer(lambda body: answers.pop(0)) as server:
        spec = ModelSpec(provider="openai", name="test", base_url=server.url)
        with pytest.raises(FeatureRefused):
            await ask(provider, spec)
        assert (await ask(provider, spec))[0].omitted == frozenset()
        assert server.requests[-1]["messages"][0]["role"] == "system"


async def test_a_check_says_what_a_model_does_without(provider: Adapting) -> None:
    async with LlmServer(picky) as server:
        main = ModelSpec(provider="openai", name="tiny", base_url=server.url, context_length=8_000)
        dead = ModelSpec(provider="openai", name="dead", base_url="http://127.0.0.1:1", context_length=8_000)
        models = Models(
            main=main,
            providers={"openai": provider},
            plugins={"openai": PLUGIN},
            windows=NoTable(),
            prices=NoTable(),
        )
        first, second = [await of_model("model", models, each) for each in (main, dead)]
    assert first.ok
    told = "; it does not support streaming (answers come whole), system messages, tools (it can only talk)"
    assert first.detail.endswith(f"answers{told}")
    assert second.ok is False
    assert "dead (openai)" in second.detail
