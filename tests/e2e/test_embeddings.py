"""Searches by meaning, through the whole gateway and a loopback server with OpenAI's /embeddings."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from typer.testing import CliRunner

from gateway.agent.caps import Caps
from gateway.app.config.models import SearchSettings
from gateway.cli.main import app
from gateway.providers.openai import OpenAIModel
from gateway.providers.plugin import ModelPrices
from tests.emulators.embeddings import EmbeddingServer
from tests.support.gateway import Live, config_in, running
from tests.support.remains import in_files

CANARY = "quizzaciously"


def searching(server: EmbeddingServer, **more: Any) -> SearchSettings:
    model = OpenAIModel(provider="ollama", name="tiny", base_url=server.url, **more)
    return SearchSettings(embeddings=model)


async def embedded(live: Live) -> None:
    """Every message has its vector."""
    assert live.gateway.agents.embeddings is not None
    await live.gateway.agents.embeddings.look()


def _files(folder: Path) -> list[Path]:
    return [each for each in folder.rglob("*") if each.is_file()]


async def test_recall_finds_other_words_for_the_same(tmp_path: Path) -> None:
    async with EmbeddingServer() as server:
        config = config_in(tmp_path, search=searching(server))
        async with running(tmp_path, config=config) as live:
            await live.ask("My Corsa is red.")
            await live.ask("The weather was grey.")
            await embedded(live)
            assert "My Corsa is red." in await live.ask("/recall which vehicle")
            totals = await live.gateway.store.usage(0, "purpose")
            assert "embedding" in {each.label for each in totals}
            before = len(server.asked)
            await embedded(live)
            assert len(server.asked) == before


async def test_a_server_that_is_away_changes_nothing_but_the_ranking(tmp_path: Path) -> None:
    async with EmbeddingServer() as server:
        server.refusal = 503
        config = config_in(tmp_path, search=searching(server))
        with capture_logs() as logs:
            async with running(tmp_path, config=config) as live:
                await live.ask("My Corsa is red.")
                await embedded(live)
                assert "My Corsa is red." in await live.ask("/recall Corsa")
                assert "I found nothing about" in await live.ask("/recall vehicle")
        assert len([line for line in logs if line["event"] == "searches_by_words_alone"]) == 1


async def test_a_text_that_the_server_refuses_holds_up_no_other(tmp_path: Path) -> None:
    async with (
        EmbeddingServer() as server,
        running(tmp_path, config=config_in(tmp_path, search=searching(server))) as live,
    ):
        await live.ask("My Corsa is red.")
        await live.ask("This is unreadable.")
        await embedded(live)
        assert "My Corsa is red." in await live.ask("/recall which vehicle")
        assert await live.gateway.store.unembedded("tiny", 0, 9) == []


async def test_what_is_forgotten_is_nowhere(tmp_path: Path) -> None:
    async with (
        EmbeddingServer() as server,
        running(tmp_path, config=config_in(tmp_path, search=searching(server))) as live,
    ):
        await live.ask(f"My Corsa is {CANARY}.")
        await embedded(live)
        event = await live.tell("/forget last")
        await live.adapter.until(lambda: bool(live.adapter.shown("c", "question")))
        await live.tell("y")
        await live.answer(event)
        assert CANARY not in await live.ask("/recall which vehicle")
    assert in_files(_files(tmp_path), CANARY) == []


async def test_check_probes_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with EmbeddingServer(api_key="sk-right") as server:
        config = config_in(tmp_path, search=searching(server, api_key="sk-right"))
        async with running(tmp_path, config=config) as live:
            await live.ask("My Corsa is red.")
            await embedded(live)
        for key, found in (("sk-right", True), ("sk-wrong", False)):
            written = (
                f"store: {{url: '{config.store.url}'}}\n"
                f"search: {{embeddings: {{provider: openai, name: tiny, base_url: '{server.url}', "
                "api_key: '${EMBEDDING_KEY}'}}\n"
            )
            monkeypatch.setenv("EMBEDDING_KEY", key)
            (tmp_path / "config.yaml").write_text(written, encoding="utf-8")
            checked = await asyncio.to_thread(CliRunner().invoke, app, ["check"])
            assert "search.embeddings" in checked.output
            assert ("64 numbers for each text" in checked.output) is found
            assert "sk-wrong" not in checked.output


async def test_a_spend_cap_that_is_met_costs_the_second_ranking_alone(tmp_path: Path) -> None:
    async with EmbeddingServer() as server:
        priced = searching(server, prices=ModelPrices(input=1_000_000.0, output=0.0))
        config = config_in(tmp_path, search=priced, budgets=Caps(daily_usd=3.0))
        with capture_logs() as logs:
            async with running(tmp_path, config=config) as live:
                await live.ask("My Corsa is red.")
                await embedded(live)
                assert server.asked == [], "five tokens at a dollar each are more than the cap"
                assert "My Corsa is red." in await live.ask("/recall Corsa")
                assert await live.ask("And you?") == "echo: And you?"
        assert [line for line in logs if line["event"] == "searches_by_words_alone"]


async def test_what_an_operator_purges_is_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with EmbeddingServer() as server:
        config = config_in(tmp_path, search=searching(server))
        async with running(tmp_path, config=config) as live:
            await live.ask(f"My Corsa is {CANARY}.")
            await embedded(live)
        (tmp_path / "config.yaml").write_text(f"store: {{url: '{config.store.url}'}}\n", encoding="utf-8")
        purge = ["purge", "--key", "fake/chat=c", "--yes"]
        told = await asyncio.to_thread(CliRunner().invoke, app, purge)
        assert told.exit_code == 0, told.output
        assert in_files(_files(tmp_path), CANARY) == []
        async with running(tmp_path, config=config) as live:
            assert await live.gateway.store.unembedded("tiny", 0, 9) == []
            assert CANARY not in await live.ask("/recall which vehicle")
