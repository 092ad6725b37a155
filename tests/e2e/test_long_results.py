"""Long results of tools, through a whole gateway."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gateway.agent.tools.base import ToolContext
from gateway.context.persisted import persisted
from gateway.domain.message import text_of
from gateway.providers.base import ModelRequest, ModelSpec
from tests.support.gateway import FakeModel, Say, in_turn, running

LONG = "".join(f"{n:07} 一行 \x00 ½ \r\n" for n in range(130_000))


class Printer:
    """Prints what it was given."""

    name = "print.it"
    description = "Prints a long text."
    parameters: Mapping[str, Any] = {"type": "object"}
    read_only = True
    idempotent = True
    timeout = 5.0

    def __init__(self, text: str) -> None:
        self.text = text

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        return self.text


def results(request: ModelRequest) -> list[str]:
    return [text_of(message) for message in request.messages if message["role"] == "tool"]


async def test_a_result_of_megabytes_is_read_back_exactly_in_pieces(tmp_path: Path) -> None:
    pieces: list[str] = []

    def script(spec: ModelSpec, request: ModelRequest) -> Say:
        found = results(request)
        if not found:
            return Say(calls=[("print.it", "{}")])
        if len(found) > 1:
            pieces.append(found[-1].partition("]\n")[2])
        name, size = persisted(found[0]) or ("", 0)
        if len(pieces) == 3:
            return Say(text=name)
        offset = sum(map(len, pieces)) if len(pieces) < 2 else size - 10  # a hundred pages would take long
        return Say(calls=[("read_file", json.dumps({"file": name, "offset": offset, "limit": 20_000}))])

    model = FakeModel(script)
    async with running(tmp_path, model=model, tools=[Printer(LONG)]) as live:
        name = await live.ask("print it")
        assert name.startswith("print_it-")
        assert "".join(pieces[:2]) == LONG[:40_000]
        assert pieces[2] == LONG[-10:]
        assert len(results(model.requests[1])[0]) < 2_500
        tip = await live.tip()
        assert tip is not None
        [file] = await live.store.kept_files(tip.key, 10)
        assert await live.store.file_content(tip.key, file.digest) == LONG.encode()


async def test_many_results_of_one_step_together_are_too_long(tmp_path: Path) -> None:
    calls = Say(calls=[("print.it", "{}"), ("clock", "{}"), ("print.it", "{}"), ("print.it", "{}")])
    model = FakeModel(in_turn(calls, Say(text="done")))
    async with running(tmp_path, model=model, tools=[Printer("word " * 15_000)]) as live:
        assert await live.ask("print it thrice") == "done"
        shown = results(model.requests[1])
        assert sum(map(len, shown)) < 200_000
        assert any(persisted(text) for text in shown)
        assert not persisted(shown[1])
