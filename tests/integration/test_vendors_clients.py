"""The vendors' own clients read what the emulator sends, so the emulator speaks as documented, and so may we.

They are imported by the tests that use them: both together take seconds, and every process collects this file.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Refuse, Reply, Script, error_body

TOOL: Any = {"type": "object", "properties": {"zone": {"type": "string"}}}
REPLY = Reply(reasoning="Hm, let me think.", text="Let me see.", tool_calls=[("clock", {"zone": "UTC"}), ("clock", {})])
BUSY = Refuse(status=429, body=error_body("Slow down, please: rate limit."), headers={"Retry-After": "7"})
OVERLOADED = Refuse(status=529, body=error_body("Overloaded"))


pytestmark = pytest.mark.slow


@pytest.fixture
async def server() -> AsyncIterator[LlmServer]:
    async with LlmServer(count=lambda text: len(text.split()), api_key="k") as running:
        running.reply = Script(REPLY, REPLY, BUSY)
        yield running
    assert not running.violations


async def test_messages(server: LlmServer) -> None:
    import anthropic

    async with anthropic.AsyncAnthropic(api_key="k", base_url=server.url.removesuffix("/v1"), max_retries=0) as client:
        asked: Any = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "time?"}],
                      "tools": [{"name": "clock", "input_schema": TOOL}]}  # fmt: skip
        whole = await client.messages.create(**asked)
        async with client.messages.stream(**asked) as stream:
            streamed = await stream.get_final_message()
        for message in (whole, streamed):
            assert [block.type for block in message.content] == ["thinking", "text", "tool_use", "tool_use"]
            assert [block.input for block in message.content if block.type == "tool_use"] == [{"zone": "UTC"}, {}]
            assert (message.stop_reason, message.usage.output_tokens > 0) == ("tool_use", True)
        with pytest.raises(anthropic.RateLimitError) as caught:
            await client.messages.create(**asked)
        assert caught.value.response.headers["retry-after"] == "7"
        server.reply = Script(OVERLOADED)
        with pytest.raises(anthropic.APIStatusError, match="overloaded_error"):
            await client.messages.create(**asked)
        listed = [model.id async for model in client.models.list()]
        assert listed == ["test-model"]
        assert (await client.models.retrieve("test-model")).max_input_tokens == 128_000


async def test_responses(server: LlmServer) -> None:
    import openai

    async with openai.AsyncOpenAI(api_key="k", base_url=server.url, max_retries=0) as client:
        asked: Any = {"model": "m", "input": [{"role": "user", "content": "time?"}], "store": False,
                      "include": ["reasoning.encrypted_content"],
                      "tools": [{"type": "function", "name": "clock", "parameters": TOOL, "strict": False}],
                      }  # fmt: skip
        whole = await client.responses.create(**asked)
        async with client.responses.stream(**asked) as stream:
            kinds = [event.type async for event in stream]
            streamed = await stream.get_final_response()
        for response in (whole, streamed):
            assert [item.type for item in response.output] == ["reasoning", "message", "function_call", "function_call"]
            assert response.output_text == "Let me see."
            assert response.usage is not None
            assert response.usage.output_tokens_details.reasoning_tokens == 4
        assert {"response.output_text.delta", "response.function_call_arguments.delta"} <= set(kinds)
        with pytest.raises(openai.RateLimitError):
            await client.responses.create(**asked)


async def test_chat_completions(server: LlmServer) -> None:
    import openai

    async with openai.AsyncOpenAI(api_key="k", base_url=server.url, max_retries=0) as client:
        asked: Any = {"model": "m", "messages": [{"role": "user", "content": "time?"}],
                      "tools": [{"type": "function", "function": {"name": "clock", "parameters": TOOL}}]}  # fmt: skip
        whole = (await client.chat.completions.create(**asked)).choices[0]
        text, names = "", []
        async for chunk in await client.chat.completions.create(
            **asked, stream=True, stream_options={"include_usage": True}
        ):
            for choice in chunk.choices:
                text += choice.delta.content or ""
                names += [call.function.name for call in choice.delta.tool_calls or () if call.function.name]
            usage = chunk.usage
        assert (whole.message.content, len(whole.message.tool_calls or ())) == ("Let me see.", 2)
        assert (text, names) == ("Let me see.", ["clock", "clock"])
        assert usage is not None
        assert usage.completion_tokens > 0
        with pytest.raises(openai.RateLimitError):
            await client.chat.completions.create(**asked)
        assert [model.id async for model in client.models.list()] == ["test-model"]
