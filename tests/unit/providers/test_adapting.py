"""The values that a model takes in place of configured ones, and what it does without."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

import pytest

from gateway.domain.message import user
from gateway.providers.adapting import Adapting
from gateway.providers.anthropic import AnthropicModel
from gateway.providers.anthropic.codec import encode_request as messages_body
from gateway.providers.base import Completed, ModelEvent, ModelRequest, ModelSpec
from gateway.providers.errors import classify
from gateway.providers.features import nearest_effort
from gateway.providers.openai import OpenAIModel
from gateway.providers.openai.codec import encode_request as chat_body
from gateway.providers.openai_responses.codec import encode_request as responses_body
from gateway.providers.plugin import ModelSettings
from gateway.runtime.errors import ProviderRejected
from tests.unit.providers.test_refusals import anthropic as anthropic_error
from tests.unit.providers.test_refusals import openai as openai_error

Encode = Callable[[ModelSpec, ModelRequest], Mapping[str, Any]]
Refuse = Callable[[Mapping[str, Any]], str | None]
MARK = {"type": "ephemeral"}


class Server:
    """Refuses bodies with a text, or answers."""

    name = "server"

    def __init__(self, encode: Encode, refuse: Refuse) -> None:
        self.encode, self.refuse = encode, refuse
        self.bodies: list[Mapping[str, Any]] = []

    async def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        body = self.encode(spec, request)
        self.bodies.append(body)
        if text := self.refuse(body):
            raise classify(400, text, {})
        yield Completed(text="ready")

    async def aclose(self) -> None: ...


async def asked(encode: Encode, refuse: Refuse, settings: ModelSettings, times: int = 2, **spec: Any) -> Server:
    """The server after some calls."""
    server = Server(encode, refuse)
    provider = Adapting(server)
    model = ModelSpec(provider="x", name="m", settings=settings, **spec)
    request = ModelRequest(
        messages=[{"role": "system", "content": [{"type": "text", "text": "Be kind.", "cache_control": MARK}]},
                  {**user("Hello."), "cache_control": MARK}],  # type: ignore[typeddict-unknown-key]
    )  # fmt: skip
    for _ in range(times):
        events = [event async for event in provider.stream(model, request)]
        assert isinstance(events[-1], Completed)
    return server


@pytest.mark.parametrize(
    ("wanted", "allowed", "nearest"),
    [
        ("minimal", ["low", "medium", "high"], "low"),
        ("minimal", ["none", "low", "medium"], "low"),  # rather more than less
        ("xhigh", ["none", "minimal", "low", "medium", "high"], "high"),
        ("high", ["none", "default"], "none"),
        ("high", ["default"], None),
        ("much", ["low"], None),
    ],
)
def test_the_nearest_effort_is_taken(wanted: str, allowed: list[str], nearest: str | None) -> None:
    assert nearest_effort(wanted, allowed) == nearest


@pytest.mark.parametrize(
    ("encode", "effort_in"),
    [
        (chat_body, lambda body: body.get("reasoning_effort")),
        (responses_body, lambda body: body.get("reasoning", {}).get("effort")),
    ],
)
async def test_an_effort_that_a_model_does_not_have_becomes_the_nearest(encode: Encode, effort_in: Any) -> None:
    text = (
        "Unsupported value: 'minimal' is not supported with this model. Supported values are: 'none', 'low' and 'high'."
    )

    def refuse(body: Mapping[str, Any]) -> str | None:
        return openai_error(text, param="reasoning.effort") if effort_in(body) == "minimal" else None

    server = await asked(encode, refuse, OpenAIModel(name="m", reasoning_effort="minimal"))
    assert [effort_in(body) for body in server.bodies] == ["minimal", "low", "low"]


async def test_an_effort_that_a_model_knows_nothing_of_is_left_out() -> None:
    def refuse(body: Mapping[str, Any]) -> str | None:
        known = "reasoning_effort" not in body
        return None if known else openai_error("Unrecognized request argument supplied: reasoning_effort")

    server = await asked(chat_body, refuse, OpenAIModel(name="m", reasoning_effort="low"))
    assert ["reasoning_effort" in body for body in server.bodies] == [True, False, False]


async def test_an_effort_of_claudes_is_adapted_too() -> None:
    def refuse(body: Mapping[str, Any]) -> str | None:
        if "output_config" in body:
            return anthropic_error("This model does not support the effort parameter.")
        return None

    server = await asked(messages_body, refuse, AnthropicModel(name="m", reasoning_effort="high"))
    assert ["output_config" in body for body in server.bodies] == [True, False, False]


async def test_a_model_that_only_thinks_as_it_likes_is_given_no_budget() -> None:
    def refuse(body: Mapping[str, Any]) -> str | None:
        if body.get("thinking", {}).get("type") == "enabled":
            return anthropic_error('"thinking.type.enabled" is not supported. Use "thinking.type.adaptive".')
        return None

    server = await asked(messages_body, refuse, AnthropicModel(name="m", thinking_tokens=2_000))
    assert [body["thinking"]["type"] for body in server.bodies] == ["enabled", "adaptive", "adaptive"]


async def test_an_older_model_does_without_adaptive_thinking() -> None:
    def refuse(body: Mapping[str, Any]) -> str | None:
        return anthropic_error("adaptive thinking is not supported on this model") if "thinking" in body else None

    server = await asked(messages_body, refuse, AnthropicModel(name="m", thinking="adaptive"))
    assert ["thinking" in body for body in server.bodies] == [True, False, False]


async def test_an_imitator_is_sent_no_marks_for_a_cache() -> None:
    def refuse(body: Mapping[str, Any]) -> str | None:
        if "cache_control" in str(body):
            return anthropic_error("system.0.cache_control: Extra inputs are not permitted")
        return None

    server = await asked(messages_body, refuse, AnthropicModel(name="m"), cache_marks=True)
    assert ["cache_control" in str(body) for body in server.bodies] == [True, False, False]
    assert server.bodies[-1]["system"] == [{"type": "text", "text": "Be kind."}]


async def test_what_nobody_asked_for_is_told() -> None:
    with pytest.raises(ProviderRejected):
        await asked(
            messages_body, lambda _: anthropic_error("thinking: Extra inputs are not permitted"), AnthropicModel()
        )
