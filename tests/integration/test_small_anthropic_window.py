"""Anthropic's API wants a cap for each answer, and refuses one that does not fit behind the prompt."""

from __future__ import annotations

from pathlib import Path

from gateway.app.plugins import providers
from gateway.providers.anthropic.messages import Messages
from gateway.providers.http import http_client
from gateway.providers.plugin import ModelSettings
from tests.emulators.llm import LlmServer
from tests.emulators.llm_messages import MessagesWire
from tests.support.gateway import config_in, running

WINDOW = 8_000


async def test_a_prompt_of_more_than_half_a_small_window_is_answered_at_once(tmp_path: Path) -> None:
    own = providers()["anthropic"].settings
    async with LlmServer(context_length=WINDOW) as server:
        model = own(provider="anthropic", name="m", api_key="k", base_url=server.url, context_length=WINDOW)
        assert isinstance(model, ModelSettings)
        provider = Messages(http_client(), str)
        async with running(tmp_path, config=config_in(tmp_path, model=model), others={"anthropic": provider}) as live:
            for number in range(24):
                await live.ask(f"Message {number}: {'The boat needs a new fence. ' * 40}")
                await live.quiet()
        await provider.aclose()
    prompts = [server.prompt_tokens(MessagesWire().plain(body)) for body in server.requests]
    assert max(prompts) > 0.6 * WINDOW
    assert server.overflows == 0
    assert not server.violations
