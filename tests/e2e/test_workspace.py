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
from gateway.domain.turn import SessionSettings
from gateway.runtime import sandbox
from gateway.runtime.structs import replace
from gateway.store.port import Store
from tests.support.gateway import FakeModel, Fetching, Live, Say, config_in, echo, in_turn, running

pytest_plugins = ["tests.support.redis_server"]

Opened = Callable[[], Store]


def calls(*made: tuple[str, dict[str, Any]]) -> Say:
    return Say(calls=[(name, json.dumps(arguments)) for name, arguments in made])


def told(model: FakeModel) -> list[str]:
    """The results of the calls in the last request."""
    return [text_of(message) for message in model.requests[-1].messages if message["role"] == "tool"]


async def forget(live: Live, what: str, **where: Any) -> str:
    """/forget, and what it says once its question is answered."""
    asked = [row for row in live.adapter.sent if "cannot be undone" in row.text]
    event = await live.tell(f"/forget {what}", **where)
    await live.adapter.until(
        lambda: len([row for row in live.adapter.sent if "cannot be undone" in row.text]) > len(asked)
    )
    await live.tell("y", **where)
    return (await live.answer(event)).text


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
        assert "notes.txt (13 bytes)" in await live.ask("/files")
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


async def test_what_changed_is_shown_and_the_last_turn_is_taken_back(tmp_path: Path, reopened: Opened) -> None:
    config = config_in(tmp_path)
    one = (
        ("write_file", {"path": "a.txt", "content": "one\ntwo\n"}),
        ("write_file", {"path": "b/c.txt", "content": "x"}),
    )
    two = (
        ("patch", {"path": "a.txt", "edits": [{"old": "two", "new": "2"}, {"old": "one", "new": "1"}]}),
        ("write_file", {"path": "b/c.txt", "remove": True}),
        ("write_file", {"path": "d.sh", "content": "#!/bin/sh\n"}),
    )
    model = FakeModel(in_turn(calls(*one), Say(text="one"), calls(*two), Say(text="two"), then=echo))
    async with running(tmp_path, config=config, model=model, store=reopened()) as live:
        assert await live.ask("/files") == "There are no files here yet. Send me a file, or ask me to write one."
        assert await live.ask("begin") == "one"
        assert await live.ask("go on") == "two"
        place = await folder(live, config)
        (place / "left.txt").write_text("a command that still runs made this\n")
        shown = await live.ask("/files")
        assert shown.splitlines() == [
            "I work on 3 files here, with 50 bytes in all:",
            "  a.txt (4 bytes)",
            "  d.sh (10 bytes)",
            "  left.txt (36 bytes)",
            "I changed these files in this session:",
            "  + a.txt (+2 −0 lines)",
            "  + d.sh (+1 −0 lines)",
            "  + left.txt (+1 −0 lines)",
            "/files undo reverts my last changes.",
        ]
        assert (place / "d.sh").stat().st_mode & 0o777 == 0o700
        assert await live.ask("nothing with files") == "echo: nothing with files"
        told = await live.ask("/files undo")
        assert told.endswith(" in a.txt, b/c.txt, d.sh, left.txt.")
        assert {path.name: path.read_text() for path in place.rglob("*.*")} == {"a.txt": "one\ntwo\n", "c.txt": "x"}
        assert (await live.ask("/files undo")).endswith(" in a.txt, b, b/c.txt.")
        assert list(place.iterdir()) == []
        assert await live.ask("/files undo") == "There is nothing to undo, because I have not changed any files here."
        await live.ask("/new")
        assert await live.ask("/files") == "There are no files here yet. Send me a file, or ask me to write one."


async def test_what_is_forgotten_is_in_no_file_and_no_earlier_version(tmp_path: Path, reopened: Opened) -> None:
    config = config_in(tmp_path)
    canary = "kazimierz"
    script = in_turn(
        calls(
            ("write_file", {"path": "a.txt", "content": f"the word is {canary}\n"}),
            ("write_file", {"path": "b.txt", "content": "fine\n"}),
        ),
        Say(text="one"),
        calls(
            ("write_file", {"path": "a.txt", "content": "nothing here\n"}),
            ("write_file", {"path": f"{canary}.md", "content": "x"}),
        ),
        Say(text="two"),
    )
    async with running(tmp_path, config=config, model=FakeModel(script), store=reopened()) as live:
        assert await live.ask("keep it") == "one"
        assert await live.ask("change it") == "two"
        place = await folder(live, config)
        everything = place.parent
        assert holders(everything, canary)
        assert "file" in await live.ask(f"/forget {canary}")
        assert "file" in await forget(live, "all")
        assert holders(everything, canary) == []
        assert sorted(path.name for path in place.iterdir()) == ["a.txt", "b.txt"]
        assert (await live.ask("/files undo")).startswith("I undid")
        assert holders(everything, canary) == []
        unboxed = config.home / "shell" / place.name  # of commands, when there was no sandbox
        unboxed.mkdir(parents=True)
        (unboxed / "notes").write_text(canary)
        await forget(live, "everything")
        assert [path for path in everything.rglob("*") if path.is_file()] == []
        assert not unboxed.exists()


async def test_of_a_shared_workspace_what_a_person_sent_goes_with_them(tmp_path: Path, reopened: Opened) -> None:
    config = config_in(tmp_path, sessions=SessionSettings(groups="shared"))
    group: dict[str, Any] = {"chat": "g", "chat_type": "group"}
    model = FakeModel(in_turn(Say(text="one"), calls(("list_files", {})), Say(text="two"), then=echo))
    adapter = Fetching(b"ann's secret\n")
    async with running(tmp_path, config=config, model=model, adapter=adapter, store=reopened()) as live:
        for user, name, content in (("ann", "secret.txt", b"ann's secret\n"), ("ben", "b.txt", b"of ben\n")):
            adapter.content = content
            file = Attachment(kind="document", ref=name, name=name, mime="text/plain", size=len(content))
            inbound = replace(adapter.inbound("look", user=user, **group), attachments=(file,))
            await adapter.receive(inbound)
            await live.answer(inbound.event_id)
        place = await folder(live, config, user="ann", **group)
        assert sorted(path.name for path in place.iterdir()) == ["b.txt", "secret.txt"]
        await forget(live, "everything", user="ann", **group)
        assert sorted(path.name for path in place.iterdir()) == ["b.txt"]
        assert holders(place.parent, "secret") == []


def holders(place: Path, word: str) -> list[str]:
    """The files below a folder that hold a word, in their names or their contents."""
    found = [path for path in place.rglob("*") if path.is_file()]
    return [str(path) for path in found if word in str(path) or word.encode() in path.read_bytes()]


async def test_what_a_command_changes_is_taken_back(tmp_path: Path) -> None:
    if sandbox.why_not():
        return
    config, adapter = config_in(tmp_path), Fetching(b"sent\n")
    commands = "cat sent.txt; echo two > a.txt; rm b.txt; mkdir n; ln -s /etc n/l; mkfifo p; chmod 0 n; ls -a ../.kept"
    script = in_turn(
        calls(
            ("write_file", {"path": "a.txt", "content": "one\n"}), ("write_file", {"path": "b.txt", "content": "b\n"})
        ),
        Say(text="one"),
        calls(("shell", {"command": commands})),
        Say(text="two"),
    )
    model = FakeModel(script)
    async with running(tmp_path, config=config, model=model, adapter=adapter) as live:
        assert await live.ask("begin") == "one"
        file = Attachment(kind="document", ref="r", name="sent.txt", mime="text/plain", size=5)
        inbound = replace(adapter.inbound("look"), attachments=(file,))
        await adapter.receive(inbound)
        assert (await live.answer(inbound.event_id)).text == "two"
        assert told(model)[-1].startswith("exit code 2\nsent\nls: cannot access '../.kept'")
        place = await folder(live, config)
        assert (place / "a.txt").read_text() == "two\n"
        assert "a.txt, b.txt, n, n/l, p." in await live.ask("/files undo")
        assert {path.name: path.read_text() for path in place.iterdir()} == {
            "a.txt": "one\n",
            "b.txt": "b\n",
            "sent.txt": "sent\n",
        }


async def test_a_file_is_removed_also_by_a_model_that_fills_in_everything(tmp_path: Path) -> None:
    wrote = calls(("write_file", {"path": "a.txt", "content": "words"}))
    model = FakeModel(
        in_turn(wrote, calls(("write_file", {"path": "a.txt", "content": "", "remove": True})), then=echo)
    )
    async with running(tmp_path, model=model) as live:
        await live.ask("go")
        assert told(model)[-1] == "Removed a.txt."
