"""A content filter's refusal is no dead end: what it refused is not sent again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from gateway.agent.loop import DECLINED, DECLINED_LATER, NOT_SENT
from gateway.providers.http import http_client
from gateway.providers.openai.chat_completions import ChatCompletions
from gateway.providers.plugin import ModelSettings
from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Answer, Refuse, Reply, last_user_text
from tests.support.gateway import config_in, running

# The form of Azure's refusals, in words of the documentation "Content filtering".
AZURE = {
    "error": {
        "message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. "
        "Please modify your prompt and retry.",
        "type": None,
        "param": "prompt",
        "code": "content_filter",
        "status": 400,
        "innererror": {
            "code": "ResponsibleAIPolicyViolation",
            "content_filter_result": {"violence": {"filtered": True, "severity": "medium"}},
        },
    }
}
MODERATED = {"error": {"code": 403, "message": "Your chosen model requires moderation and your input was flagged."}}
REFUSALS = {
    "azure": Refuse(status=400, body=json.dumps(AZURE)),
    "moderation": Refuse(status=403, body=json.dumps(MODERATED)),
    "finish": Reply(finish="content_filter"),
}


def filtering(refusal: Answer) -> Any:
    """Refuses each request in which somebody says "swordfish"."""

    def reply(body: Mapping[str, Any]) -> Answer:
        if "swordfish" in json.dumps(body["messages"]):
            return refusal
        return Reply(text="fine")

    return reply


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
async def test_a_message_that_a_filter_refused_is_not_sent_again(tmp_path: Path, refusal: Answer) -> None:
    async with LlmServer(filtering(refusal)) as server:
        model = ModelSettings(provider="openai", name="gpt", base_url=server.url, context_length=100_000)
        provider = ChatCompletions(http_client(), str)
        config = config_in(tmp_path, model=model)
        async with aclosing(provider), running(tmp_path, config=config, model=provider) as live:
            assert await live.ask("hello") == "fine"
            assert await live.ask("Tell me of the swordfish.") == DECLINED
            assert await live.ask("And the weather?") == "fine"
            sent = json.dumps(server.requests[-1]["messages"])
            assert NOT_SENT in sent
            assert "swordfish" not in sent
            # The words are kept: a search finds the place, and /retry asks them again.
            assert NOT_SENT in await live.ask("/recall swordfish")
            await live.ask("/undo")
            server.reply = lambda body: Reply(text=f"heard: {last_user_text(body)}")
            assert await live.ask("/retry") == "heard: Tell me of the swordfish."
        assert not server.violations


async def test_what_is_refused_behind_a_tool_is_taken_back_by_undo(tmp_path: Path) -> None:
    """The message is stored by then, and a stored message does not change."""

    def reply(body: Mapping[str, Any]) -> Answer:
        if any(each["role"] == "tool" for each in body["messages"]):
            return REFUSALS["azure"]
        if "look" in last_user_text(body):
            return Reply(tool_calls=[("clock", {"timezone": "UTC"})])
        return Reply(text="fine")

    async with LlmServer(reply) as server:
        model = ModelSettings(provider="openai", name="gpt", base_url=server.url, context_length=100_000)
        provider = ChatCompletions(http_client(), str)
        config = config_in(tmp_path, model=model)
        async with aclosing(provider), running(tmp_path, config=config, model=provider) as live:
            assert await live.ask("look") == DECLINED_LATER
            await live.ask("/undo")
            assert await live.ask("hello") == "fine"
        assert not server.violations
