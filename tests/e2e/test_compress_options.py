"""/compress --preview, --keep and undo: what a person sees, and what becomes of the conversation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.commands.compress import CompressArguments, arguments_in
from gateway.context.policy import CompressionSettings
from gateway.domain.message import is_summary, text_of
from gateway.domain.session import Session
from gateway.providers.plugin import ModelSettings as ModelEntry
from gateway.runtime.errors import UserError
from tests.support.gateway import KillAt, Live, config_in, running
from tests.support.model import FakeModel, Say, in_turn, newest

WORDS = "the quick brown fox jumps over the lazy dog " * 60


def model() -> FakeModel:
    return FakeModel(lambda _, request: Say(text=f"heard {newest(request)[:3]}", prompt=None))


async def talk(live: Live, count: int = 12) -> Session:
    for number in range(count):
        await live.ask(f"{number:03} {WORDS}")
    return await present(live)


async def present(live: Live) -> Session:
    session = await live.tip()
    assert session is not None
    return session


async def said(live: Live) -> list[str]:
    """Return the beginning of each message of the present transcript."""
    messages = await live.store.transcript(await present(live))
    return ["summary" if is_summary(message) else text_of(message)[:9] for message in messages]


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("", CompressArguments()),
        ("the budget --keep", CompressArguments(focus="the budget --keep")),
        ("undo", CompressArguments(undo=True)),
        ("undo the budget", CompressArguments(focus="undo the budget")),
        ("--preview", CompressArguments(preview=True)),
        ("--keep 5 the budget", CompressArguments(keep=5, focus="the budget")),
        ("--preview --keep 2", CompressArguments(keep=2, preview=True)),
    ],
)
def test_what_is_asked_for(argument: str, expected: CompressArguments) -> None:
    assert arguments_in(argument) == expected


@pytest.mark.parametrize("argument", ["--keep", "--keep x", "--keep 0", "--keep -1", "--keep 99999", "--all", "--"])
def test_what_cannot_be_meant_is_said(argument: str) -> None:
    with pytest.raises(UserError, match="For example"):
        arguments_in(argument)


async def test_a_preview_asks_no_model_and_changes_nothing(tmp_path: Path) -> None:
    talker = model()
    async with running(tmp_path, model=talker) as live:
        before = await talk(live)
        shown = await live.ask("/compress --preview")
        assert shown.startswith("/compress would turn 24 messages into ")
        assert "I have not changed anything yet." in shown
        after = await present(live)
        assert (after.id, after.message_count, talker.summaries) == (before.id, 24, 0)
        promised = int(shown.split()[6].rstrip(":"))
        await live.ask("/compress")
        assert (await present(live)).message_count == promised


async def test_the_last_exchanges_are_kept_word_for_word(tmp_path: Path) -> None:
    async with running(tmp_path, model=model()) as live:
        await talk(live)
        assert (await live.ask("/compress --keep 7")).startswith("Compressed: 24 → ")
        kept = await said(live)
        expected = [part for n in range(5, 12) for part in (f"{n:03} the q", f"heard {n:03}")]
        assert kept[-14:] == expected
        assert "summary" in kept[:-14]
        assert await live.ask("/compress --keep 99") == "There is nothing to compress yet."


async def test_a_compaction_is_taken_back_with_what_was_said_since(tmp_path: Path) -> None:
    async with running(tmp_path, model=model()) as live:
        before = await talk(live)
        everything = await said(live)
        await live.ask("/compress")
        await live.ask("yes and no")
        assert (await live.ask("/compress undo")).startswith("I undid the compression, and this conversation has 26")
        assert await said(live) == [*everything, "yes and n", "heard yes"]
        session = await present(live)
        assert session.parent_id == before.id
        assert (await live.store.session(before.id)).end_reason == "compression"
        assert "There is nothing to undo" in await live.ask("/compress undo")


async def test_an_undo_that_a_crash_repeats_is_done_once(tmp_path: Path) -> None:
    kill = KillAt("session.hook_called", 0)
    async with running(tmp_path, model=model(), points=kill) as live:
        await talk(live)
        await live.ask("/compress")
        kill.arm()
        event = await live.tell("/compress undo")
        await kill.passed.wait()
    async with running(tmp_path, model=model()) as live:
        answer = await live.answer(event)
        assert answer.text.startswith("I undid the compression, and this conversation has 24")
        sessions = await live.store.sessions(None, 9)
        assert sum(session.end_reason == "undone" for session in sessions) == 1


async def test_there_is_nothing_to_take_back_in_a_fresh_conversation(tmp_path: Path) -> None:
    config = config_in(tmp_path, model=ModelEntry(provider="offline", name="fake"), compression=CompressionSettings())
    async with running(tmp_path, config=config, model=model()) as live:
        assert (await live.ask("/compress undo")).startswith(
            "There is nothing to undo, because this conversation was not compressed."
        )
        await live.ask("hello")
        assert "There is nothing to undo" in await live.ask("/compress undo")
        assert "For example" in await live.ask("/compress --everything")


async def test_what_is_to_be_done_is_in_view_after_a_compaction_and_what_is_begun_is_marked(tmp_path: Path) -> None:
    items = [{"text": "pack", "status": "done"}, {"text": "call Ines", "status": "in_progress"}, {"text": "pay"}]
    talker = model()
    async with running(tmp_path, model=talker) as live:
        usual, live.model.script = live.model.script, in_turn(Say(calls=[("todo", json.dumps({"items": items}))]))
        await live.ask("note what is to be done")
        assert text_of(talker.requests[-1].messages[-1]) == "[x] pack\n[>] call Ines\n[ ] pay"
        live.model.script = usual
        await talk(live)
        await live.ask("/compress")
        await live.ask("and now?")
    assert text_of(talker.requests[-1].messages[0]).endswith("\n- call Ines (in progress)\n- pay")
