"""What a prompt holds before anybody has said a word: with every tool on it fits the smallest windows."""

from __future__ import annotations

from pathlib import Path

from gateway.agent.memory.snapshot import MemorySettings
from gateway.agent.search.plugin import WebSearchSettings
from gateway.app.config.models import ToolSettings
from gateway.domain.message import text_of
from gateway.runtime.tokens import TokenCounter
from tests.support.gateway import config_in, running

MOST = 2_600  # tokens of the system prompt and all schemas
SKILL = "---\nname: weekly-report\ndescription: Writes the weekly report of the team.\n---\nBegin with the numbers.\n"


async def test_every_tool_and_the_system_prompt_have_room_beside_a_talk(tmp_path: Path, bwrap: None) -> None:
    (tmp_path / "skills/weekly-report").mkdir(parents=True)
    (tmp_path / "skills/weekly-report/SKILL.md").write_text(SKILL)
    search = WebSearchSettings(provider="searxng", base_url="http://127.0.0.1:9")
    config = config_in(tmp_path, tools=ToolSettings(search=search), memory=MemorySettings()).within(tmp_path)
    async with running(tmp_path, config=config) as live:
        await live.ask("hi")
        (request, *_) = live.model.requests
    names = {each["function"]["name"] for each in request.tools}
    assert {"delegate", "memory", "patch", "reminders", "shell", "skill", "web_fetch", "web_search"} <= names
    counter = TokenCounter()
    tokens = counter.text(text_of(request.messages[0])) + counter.schemas(request.tools)
    print(f"{len(names)} tools and the system prompt: {tokens:,} tokens")
    assert tokens <= MOST
