"""A model call that fails: a line for the operator, a sentence for the person, the cause for who may know it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from gateway.agent.fallback import NO_FALLBACK
from gateway.commands.runner import UNREACHABLE
from gateway.context.budgeted import NOTHING
from gateway.context.feedback import NO_SUMMARISER
from gateway.domain.adapter import Limits
from gateway.domain.message import text_of
from gateway.people.access import AccessSettings
from gateway.providers.errors import classify
from gateway.providers.http import http_client
from gateway.providers.openai.chat_completions import ChatCompletions
from gateway.providers.plugin import ModelSettings
from gateway.runtime.errors import ProviderError, ProviderUnavailable
from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Refuse, error_body
from tests.support.gateway import FakeAdapter, FakeModel, Say, config_in, in_turn, running

QUOTED = (
    '{"error": {"message": "Incorrect API key provided: sk-abcd********wxyz. Find your API key at https://x.test"}}'
)
CAUSE = "The provider refused the API key"


def failing(*errors: ProviderError) -> FakeModel:
    return FakeModel(in_turn(*errors))


def public(tmp_path: Path) -> dict[str, Any]:
    """A platform where anybody may talk, and one person is an admin."""
    config = config_in(tmp_path, access=AccessSettings(allow=("fake:*",), admins=("fake:boss",)))
    return {"config": config, "adapter": FakeAdapter(limits=Limits())}


async def test_the_operator_reads_one_line_with_provider_status_cause_and_turn(tmp_path: Path) -> None:
    with capture_logs(processors=[merge_contextvars]) as logs:
        async with running(tmp_path, model=failing(classify(401, QUOTED, {})), **public(tmp_path)) as live:
            event = await live.tell("hello")
            assert (await live.answer(event)).kind == "error"
    (line,) = [each for each in logs if each["log_level"] == "warning"]
    assert (line["event"], line["provider"], line["model"], line["status"]) == (
        "model_call_failed",
        "offline",
        "fake",
        401,
    )
    assert line["cause"].startswith(CAUSE)
    assert line["turn"]
    assert "sk-" not in str(logs)


async def test_a_person_reads_no_cause_and_an_admin_does(tmp_path: Path) -> None:
    refusals = [classify(401, QUOTED, {}) for _ in range(3)]
    async with running(tmp_path, model=failing(*refusals), **public(tmp_path)) as live:
        assert await live.ask("hello") == UNREACHABLE
        assert await live.ask("/retry", user="u") == UNREACHABLE
        told = await live.ask("hello", chat="boss", user="boss")
        assert told.startswith(CAUSE)
        assert "sk-" not in told
        assert await live.ask("/retry") == "echo: hello"


async def test_in_a_group_nobody_reads_the_cause(tmp_path: Path) -> None:
    model = failing(ProviderUnavailable("<TransferEncodingError …>"))
    async with running(tmp_path, model=model, **public(tmp_path)) as live:
        assert await live.ask("hello", user="boss", chat_type="group") == UNREACHABLE


async def test_the_terminal_of_the_operator_shows_the_cause(tmp_path: Path) -> None:
    async with running(tmp_path, model=failing(classify(500, "", {}))) as live:
        assert await live.ask("hello") == f"The provider has a problem (500). Try again later. {NO_FALLBACK}"


@pytest.mark.parametrize("user", ["u", "boss"])
async def test_the_cause_of_a_failed_summary_is_for_admins(tmp_path: Path, user: str) -> None:
    model = FakeModel(summary=lambda *_: Say(error=classify(401, QUOTED, {})))
    async with running(tmp_path, model=model, **public(tmp_path)) as live:
        for number in range(6):
            await live.ask(f"{number} " + "many words that mean nothing " * 100, user=user)
        told = await live.ask("/compress", user=user)
        assert (CAUSE in told) == (user == "boss")
        assert (NO_SUMMARISER in told) == (user != "boss")


@pytest.mark.parametrize(
    "quoted", ["sk-ab****cd", "sk-abcd…", "sk-proj-1…xyz", "gsk-1234…", "key-12345...", "********abcd", "sk-abc"]
)
def test_a_key_that_is_quoted_in_part_is_not_passed_on(quoted: str) -> None:
    error = classify(
        401, f'{{"error": {{"message": "Incorrect API key provided: {quoted} Go to your account..."}}}}', {}
    )
    assert quoted[:4] not in str(error)
    assert "Go to your account" in str(error)
    assert error.status == 401


async def test_a_question_whose_turn_failed_stays_and_is_sent_with_the_next_one(tmp_path: Path) -> None:
    async with LlmServer() as server:
        usual, server.reply = server.reply, lambda _: Refuse(status=400, body=error_body("That is wrong."))
        entry = ModelSettings(provider="openai", name="test-model", base_url=server.url)
        provider = ChatCompletions(http_client(), str)
        async with running(tmp_path, config=config_in(tmp_path, model=entry), provider=provider) as live:
            await live.ask("what is the highest mountain?")
            server.reply = usual
            assert (await live.answer(await live.tell("and the second one?"))).kind == "reply"
            tip = await live.tip()
            assert tip is not None
            said = [text_of(each) for each in await live.store.transcript(tip) if each["role"] == "user"]
        assert said == ["what is the highest mountain?", "and the second one?"]
        assert server.requests[-1]["messages"][1:] == [{"role": "user", "content": "\n\n".join(said)}]
        assert not server.violations
        await provider.aclose()


async def test_everybody_reads_that_only_the_newest_messages_fill_the_window(tmp_path: Path) -> None:
    wide = ModelSettings(provider="offline", name="fake", context_length=32_000)
    model = FakeModel(lambda _, request: Say(text=" ".join(f"word{number}" for number in range(1_000))))
    allowed = AccessSettings(allow=("fake:*",))
    config = config_in(tmp_path, access=allowed, model=wide)
    async with running(tmp_path, config=config, model=model, adapter=FakeAdapter(limits=Limits())) as live:
        await live.ask("hello")
        await live.ask("and more")
    narrow = wide.model_copy(update={"context_length": 4_000})
    config = config_in(tmp_path, access=allowed, model=narrow)
    async with running(tmp_path, config=config, model=FakeModel(), adapter=FakeAdapter(limits=Limits())) as live:
        await live.ask("hello again")
        told = " ".join(live.adapter.shown("c", "notice"))
        assert NOTHING.rstrip(".") in told
        assert NO_SUMMARISER not in told
