"""A person's own conversation as a file, with everything that was said in it."""

from __future__ import annotations

import json
from pathlib import Path

from gateway.domain.adapter import Limits
from gateway.domain.chat import Outbound
from tests.support.gateway import FakeAdapter, FakeModel, Gate, RecordingEngine, Say, in_turn, running


class Filing(FakeAdapter):
    """A platform that shows files; `files` is their text by name."""

    def __init__(self, size: int = 1_000_000) -> None:
        super().__init__(limits=Limits(trusted=True, file_bytes=size))
        self.files: dict[str, str] = {}

    async def send_file(self, outbound: Outbound, content: bytes) -> str:
        assert outbound.file is not None
        self.files[outbound.file.name] = content.decode()
        return await self.send(outbound)


async def test_a_conversation_is_exported_as_markdown_with_what_was_compressed(tmp_path: Path) -> None:
    adapter = Filing()
    async with running(tmp_path, adapter=adapter, engine=lambda: RecordingEngine([])) as live:
        assert await live.ask("/export") == "There is nothing to export yet. Send a message first."
        await live.ask("Plan a trip to the coast")
        await live.ask("/compress")
        await live.ask("and by train?")
        said = await live.ask("/export")
        assert said.startswith("The file holds 4 messages of “")
        assert "4 messages" in said
        await live.quiet()
    (text,) = adapter.files.values()
    words = ["Plan a trip to the coast", "echo: Plan a trip to the coast", "and by train?", "echo: and by train?"]
    assert text.strip().split("\n\n")[2::2] == words
    assert "notes on what was said" not in text


async def test_it_does_not_wait_for_a_turn_and_holds_redacted_results_of_tools(tmp_path: Path) -> None:
    adapter, gate = Filing(), Gate()
    model = FakeModel(in_turn(Say(calls=[("clock", "{}")]), Say(text="done"), Say(text="never", gate=gate)))
    async with running(tmp_path, adapter=adapter, model=model) as live:
        await live.ask("what time is it?")
        await live.tell("and now?")
        await gate.until_waiting()
        await live.ask("/export jsonl")
        roles = [json.loads(line)["role"] for line in adapter.files["what-time-is-it.jsonl"].splitlines()]
        assert roles == ["user", "assistant", "tool", "assistant"]
        gate.open()
