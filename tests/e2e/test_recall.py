"""What is found again of what was never said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.agent.tools.base import ToolContext
from tests.support.gateway import FakeModel, Say, in_turn, running


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """A tool whose result names something that nobody ever says."""

    name: str = "read_ledger"
    description: str = "Reads the ledger."
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    read_only: bool = True
    idempotent: bool = True
    timeout: float = 5.0

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """The ledger's newest entry, and a credential."""
        return f"{'old row ' * 200}heliotrope = INV-4711, api_key=sk-proj-{'0a' * 20}{' old row' * 200}"


async def test_what_only_a_tool_returned_is_found_once_and_without_its_credentials(tmp_path: Path) -> None:
    model = FakeModel()
    search = Say(calls=[("search_history", '{"words": "heliotrope"}')])
    async with running(tmp_path, model=model, tools=[Ledger()]) as live:
        model.script = in_turn(Say(calls=[("read_ledger", "{}")]), Say(text="read"))
        await live.ask("read the ledger")
        for _ in range(2):
            model.script = in_turn(search, Say(text="done"))
            await live.ask("find it")
            found = model.spoken()[-1][1]
            assert "heliotrope = INV-4711" in found
            assert found.count("heliotrope") == 1  # not in what an earlier search returned
            assert "sk-proj" not in found
        shown = await live.ask("/recall heliotrope")
        assert "heliotrope = INV-4711" in shown
        assert "sk-proj" not in shown
