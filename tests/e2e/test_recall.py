"""The search for earlier words, and for words that nobody ever said."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.agent.tools.base import ToolContext
from gateway.domain.message import note_of
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
        assert "**" not in shown  # a command's answer is no Markdown
        assert "sk-proj" not in shown


async def test_a_find_is_read_on_by_the_number_that_stands_before_it(tmp_path: Path) -> None:
    model = FakeModel()
    async with running(tmp_path, model=model) as live:
        await live.ask("mine is the heliotrope", chat="other", user="v")
        for text in ("the train leaves at nine", "from platform four", "my seat is by the window", "thank you"):
            await live.ask(text)
        model.script = in_turn(Say(calls=[("search_history", '{"words": "platform"}')]), Say(text="found"))
        await live.ask("which platform?")
        (number,) = re.findall(r"(#\w+) user: from platform four", model.spoken()[-1][1])
        model.script = in_turn(
            Say(calls=[("history_read", json.dumps({"message": number, "before": 2, "after": 3}))]), Say(text="read")
        )
        await live.ask("and around it?")
        lines = model.spoken()[-1][1].splitlines()
        assert len(lines) == 6
        assert lines[0].endswith("user: the train leaves at nine")
        assert lines[2].startswith(number)
        assert lines[4].endswith("user: my seat is by the window")
        other = await live.store.search("heliotrope", None, 1)
        theirs = note_of(other[0].hit.message)["id"]
        for unknown in (f"#{theirs}", "#0", "nonsense", "#" + "9" * 40):
            model.script = in_turn(Say(calls=[("history_read", json.dumps({"message": unknown}))]), Say(text="no"))
            await live.ask("and that?")
            assert "There is no message" in model.spoken()[-1][1]


async def test_recall_shows_nothing_from_the_other_side_of_new(tmp_path: Path) -> None:
    async with running(tmp_path, model=FakeModel()) as live:
        await live.ask("the heliotrope blooms in June")
        await live.ask("/new")
        await live.ask("my flight leaves at nine")
        shown = await live.ask("/recall heliotrope")
        assert "blooms in June" in shown
        assert "flight" not in shown
        shown = await live.ask("/recall flight")
        assert "leaves at nine" in shown
        assert "heliotrope" not in shown.replace("/recall heliotrope", "")
