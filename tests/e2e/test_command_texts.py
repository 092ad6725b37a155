"""The texts of commands, to the letter where it matters."""

from __future__ import annotations

import re
from pathlib import Path

from gateway.domain.adapter import Limits
from gateway.people.access import AccessSettings
from gateway.providers.offline.model import Offline
from gateway.providers.plugin import ModelSettings as ModelEntry
from tests.support.gateway import FakeAdapter, config_in, running


async def test_help_fits_a_terminal_says_it_in_plain_words_and_keeps_admins_commands_for_admins(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        listed = await live.ask("/help all")
        assert [line for line in listed.splitlines() if len(line) > 80] == []
        assert not re.search(r"\b(?:turns?|lanes?|gateway|compaction|hygiene)\b", listed)
        assert "(also --preview, --keep n, undo)" in listed
    config = config_in(tmp_path, access=AccessSettings(allow=("fake:*",)))
    async with running(tmp_path, config=config, adapter=FakeAdapter(limits=Limits())) as live:
        guest = await live.ask("/help all")
        assert "/pair" in listed
        assert "/pair" not in guest


async def test_help_fits_a_telephone_and_names_the_way_to_the_rest(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        listed = (await live.ask("/help")).splitlines()
    assert sum(1 + len(line) // 40 for line in listed) <= 20, "rows of a narrow screen"
    assert sum(line.startswith("/") for line in listed) == 11
    assert listed[-1] == "/help all lists the other commands."


async def test_a_help_that_is_longer_than_a_message_comes_in_several_of_whole_lines(tmp_path: Path) -> None:
    """Plugins add commands, and a message of Discord holds 2,000 characters."""
    async with running(tmp_path) as live:
        whole = await live.ask("/help all")
    async with running(tmp_path, adapter=FakeAdapter(limits=Limits(trusted=True, text_units=700))) as live:
        adapter = live.adapter
        await live.ask("/help all")
        await adapter.until(lambda: "".join(row.text for row in adapter.sent) == whole)
    assert max(len(row.text) for row in adapter.sent) <= 700
    assert all(row.text.endswith("\n") for row in adapter.sent[:-1])


async def test_the_offline_model_is_no_other_by_another_name(tmp_path: Path) -> None:
    entry = ModelEntry(provider="openai", name="offline", base_url="http://127.0.0.1:9/v1", context_length=32_000)
    async with running(tmp_path, provider=Offline(len), config=config_in(tmp_path, model=entry)) as live:
        await live.ask("hello")
        refused = await live.ask("/model gpt-5-mini")
        assert refused.startswith("There is no model gpt-5-mini here, only offline")
        assert await live.ask("/model") == "This session uses offline (a window of 32,000 tokens)."
