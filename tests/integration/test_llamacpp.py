"""Legato and llama.cpp's own server with a real, tiny model: from two lines of YAML to answers, tools and a full
window, alone and behind a proxy. `make slow` installs both."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.model_servers import PROXY_KEY, litellm, llamacpp, tiny_model
from tests.support.program import chatting, legato
from tests.support.redis_server import free_port

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the model."""
    return tiny_model(tmp_path_factory.mktemp("model"))


def two_lines(folder: Path, url: str) -> None:
    """The configuration of a newcomer, and where this test's server is."""
    text = f'model:\n  provider: llamacpp\n  name: any\n  base_url: "{url}"\n'
    (folder / "config.yaml").write_text(text, encoding="utf-8")


@asynccontextmanager
async def asked(folder: Path, *questions: str, day: int = 1) -> AsyncIterator[tuple[list[str], list[str]]]:
    """The answers and the notices of one day of a conversation."""
    async with chatting(folder) as program:
        answers = []
        for number, question in enumerate(questions):
            name = f"day {day}, {number}"
            program.send({"id": name, "text": question})
            (row,) = await program.until_answered(name)
            answers.append(row["text"])
        yield answers, [row["text"] for row in program.lines if row["kind"] == "notice"]


async def test_from_two_lines_to_an_answer_a_tool_and_a_known_window(tmp_path: Path, model: Path) -> None:
    with llamacpp(model, 65_536, free_port()) as url:
        two_lines(tmp_path, url)
        status, out, err = await legato(tmp_path, "check")
        assert (status, err) == (0, "")
        assert "window 65,536 tokens (as its server says), answers" in out
        status, out, _ = await legato(tmp_path, "models", "--json")
        (row,) = json.loads(out)
        assert (row["window"], row["read_usd"]) == (65_536, 0)
        async with asked(tmp_path, "hello", "what time is it?") as (answers, _):
            assert answers == ["Hello there.", "It is noted."]
        status, out, _ = await legato(tmp_path, "usage", "--json")
        (used,) = json.loads(out)
        assert used["cost_usd"] == 0
        assert used["calls"] == 3


@pytest.mark.parametrize("provider", ["litellm", "openai-responses", "anthropic"])
async def test_a_proxy_in_front_of_it_is_understood_in_all_three_formats(
    tmp_path: Path, model: Path, provider: str
) -> None:
    with llamacpp(model, 65_536, free_port()) as url, litellm(url, tmp_path, free_port()) as proxy:
        text = f'model: {{provider: {provider}, name: tiny, base_url: "{proxy}", api_key: "${{TEST_PROXY_KEY}}"}}\n'
        (tmp_path / "config.yaml").write_text(text, encoding="utf-8")
        for question, answer in (("hello", "Hello there."), ("what time is it?", "It is noted.")):
            status, out, err = await legato(tmp_path, "ask", question, TEST_PROXY_KEY=PROXY_KEY)
            assert (status, out.strip(), err) == (0, answer, "")


async def test_a_conversation_outlives_a_small_window_and_a_server_with_a_smaller_one(
    tmp_path: Path, model: Path
) -> None:
    """Each character is a token here, four times what anybody would guess."""
    port = free_port()
    long = ["Remember that the harbour master's number is 4711. " + "All is well on this side. " * 120] * 10
    with llamacpp(model, 32_768, port) as url:
        two_lines(tmp_path, url)
        async with asked(tmp_path, *long) as (answers, _):
            assert answers == ["Hello there."] * 10
    with llamacpp(model, 24_576, port):
        async with asked(tmp_path, *long[:5], day=2) as (answers, _):
            assert answers == ["Hello there."] * 5
    status, out, _ = await legato(tmp_path, "sessions", "list", "--json")
    assert status == 0
    sessions = json.loads(out)
    assert {each["end_reason"] for each in sessions if each["ended_at"]} == {"compression"}
    assert len(sessions) > 1
    status, out, _ = await legato(tmp_path, "sessions", "search", "4711", "--json")
    assert status == 0
    assert "4711" in out
