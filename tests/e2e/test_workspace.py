"""The workspace of a conversation through a whole gateway: what a model writes, what people send, and what is taken
back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gateway.agent.workspace.folders import name_of
from gateway.app.config import Config
from gateway.domain.chat import Attachment
from gateway.domain.message import text_of
from gateway.runtime.structs import replace
from gateway.store.port import Store
from tests.support.gateway import FakeModel, Fetching, Live, Say, config_in, in_turn, running

pytest_plugins = ["tests.support.redis_server"]

Opened = Callable[[], Store]


def calls(*made: tuple[str, dict[str, Any]]) -> Say:
    return Say(calls=[(name, json.dumps(arguments)) for name, arguments in made])


def told(model: FakeModel) -> list[str]:
    """The results of the calls in the last request."""
    return [text_of(message) for message in model.requests[-1].messages if message["role"] == "tool"]


async def folder(live: Live, config: Config, **where: Any) -> Path:
    tip = await live.tip(**where)
    assert tip is not None
    return config.home / "workspaces" / name_of(tip.key)


async def test_a_model_writes_finds_changes_and_sends_a_file(tmp_path: Path, reopened: Opened) -> None:
    model = FakeModel(
        in_turn(
            calls(("write_file", {"path": "src/app.py", "content": "def add(a, b):\n    return a - b\n"})),
            calls(
                ("list_files", {}), ("search_files", {"words": "RETURN a"}), ("search_files", {"pattern": r"def \w+"})
            ),
            calls(("patch", {"path": "src/app.py", "edits": [{"old": "a - b", "new": "a + b"}]})),
            calls(("read_file", {"file": "src/app.py"}), ("send_file", {"file": "src/app.py", "caption": "Mended."})),
            Say(text="done"),
        )
    )
    config, adapter = config_in(tmp_path), Fetching(b"")
    async with running(tmp_path, config=config, model=model, adapter=adapter, store=reopened()) as live:
        assert await live.ask("write it") == "done"
        written, listed, by_words, by_pattern, patched, read, sent = told(model)
        assert written == "Wrote src/app.py (32 bytes)."
        assert listed == "src/\nsrc/app.py (32 bytes)"
        assert by_words == "src/app.py:2:     return a - b"
        assert by_pattern == "src/app.py:1: def add(a, b):"
        assert patched == (
            "--- src/app.py\n+++ src/app.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b"
        )
        assert read.startswith('["src/app.py", characters 0 to 32 of 32; this is its end]\ndef add(a, b):\n')
        assert sent.startswith("The file app.py (32 bytes) is on its way")
        assert (await folder(live, config) / "src/app.py").read_text() == "def add(a, b):\n    return a + b\n"
        await live.quiet()
        assert [row.file.name for row in adapter.sent if row.file] == ["app.py"]


async def test_files_that_were_sent_are_in_it_and_no_change_is_lost(tmp_path: Path, reopened: Opened) -> None:
    model = FakeModel(
        in_turn(
            calls(("list_files", {})),
            Say(text="one"),
            calls(("patch", {"path": "notes.txt", "edits": [{"old": "hello", "new": "goodbye"}]})),
            Say(text="two"),
            calls(("list_files", {}), ("read_file", {"file": "notes.txt"})),
            Say(text="three"),
            calls(("write_file", {"path": "notes.txt", "remove": True})),
            calls(("list_files", {})),
            Say(text="four"),
        )
    )
    adapter = Fetching(b"hello, world\n")
    config = config_in(tmp_path)
    async with running(tmp_path, config=config, model=model, adapter=adapter, store=reopened()) as live:

        async def send(ref: str, text: str) -> str:
            file = Attachment(kind="document", ref=ref, name="notes.txt", mime="text/plain", size=13)
            inbound = replace(adapter.inbound(text), attachments=(file,))
            await adapter.receive(inbound)
            return (await live.answer(inbound.event_id)).text

        assert await send("r1", "look") == "one"
        assert told(model)[-1] == "notes.txt (13 bytes)"
        assert await live.ask("change it") == "two"
        adapter.content = b"hello again!\n"
        assert await send("r2", "a new one") == "three"
        listed, read = told(model)[-2:]
        assert listed == "notes-2.txt (13 bytes)\nnotes.txt (15 bytes)"
        assert read.endswith("hello again!\n")  # the name that was just sent
        assert (await folder(live, config) / "notes.txt").read_text() == "goodbye, world\n"
        assert await live.ask("remove it") == "four"
        assert told(model)[-1] == "notes-2.txt (13 bytes)"
