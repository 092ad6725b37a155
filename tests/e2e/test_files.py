"""Files through a whole gateway on a platform made of lists: crashes, platforms without the ability, compaction."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.config.models import Model as ModelEntry
from gateway.domain.chat import Attachment
from gateway.errors import AdapterError, Disconnected, FileRefused
from gateway.files.references import digest_in
from tests.emulators.telegram.people import PIXEL
from tests.fakes_gateway import FakeAdapter, KillAt, Live, config_in, running
from tests.fakes_model import FakeModel, Gate, Say, in_turn

SEEING = ModelEntry(provider="offline", name="fake", pictures=True, context_length=100_000)
PICTURE = Attachment(kind="image", ref="r1", name="a.png", mime="image/png")


class FilingAdapter(FakeAdapter):
    """Hands over `files` by their ref, or raises what stands there."""

    def __init__(self, files: Mapping[str, bytes | AdapterError]) -> None:
        super().__init__()
        self.files = files
        self.fetched: list[str] = []

    async def fetch(self, file: Attachment) -> bytes:
        self.fetched.append(file.ref)
        found = self.files[file.ref]
        if isinstance(found, bytes):
            return found
        raise found


def shown(model: FakeModel, index: int = -1) -> list[str]:
    """The pictures of a request, as data URLs."""
    contents = [message.get("content") for message in model.requests[index].messages]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    return [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]


URL = "data:image/png;base64," + base64.b64encode(PIXEL).decode()


async def sent(live: Live, text: str, *files: Attachment, **how: Any) -> str:
    inbound = replace(live.adapter.inbound(text, **how), attachments=files)
    await live.adapter.receive(inbound)
    return inbound.event_id


async def test_a_crash_after_a_file_was_fetched_does_not_fetch_it_again(tmp_path: Path) -> None:
    config = config_in(tmp_path, model=SEEING)
    adapter = FilingAdapter({"r1": PIXEL})
    kill = KillAt("turn.model_called")
    async with running(tmp_path, config=config, adapter=adapter, points=kill) as live:
        event = await sent(live, "look", PICTURE)
        await kill.passed.wait()
    again = FilingAdapter({})
    async with running(tmp_path, config=config, adapter=again) as live:
        await live.answer(event)
        assert shown(live.model) == [URL]
    assert adapter.fetched == ["r1"]
    assert again.fetched == []


async def test_the_process_without_the_ability_answers_all_the_same(tmp_path: Path) -> None:
    async with running(tmp_path, config=config_in(tmp_path, model=SEEING)) as live:
        await live.answer(await sent(live, "look", PICTURE))
        assert "this gateway cannot fetch files from Fake" in live.model.spoken()[-1][1]


@pytest.mark.parametrize(("error", "times"), [(Disconnected("no line"), 3), (FileRefused("it is secret"), 1)])
async def test_what_cannot_be_had_is_tried_as_often_as_makes_sense(
    tmp_path: Path, error: AdapterError, times: int
) -> None:
    adapter = FilingAdapter({"r1": error, "r2": PIXEL})
    async with running(tmp_path, config=config_in(tmp_path, model=SEEING), adapter=adapter) as live:
        await live.answer(await sent(live, "look", PICTURE, replace(PICTURE, ref="r2")))
        assert f"could not be fetched: {error}" in live.model.spoken()[-1][1]
        assert shown(live.model) == [URL]
    assert adapter.fetched == ["r1"] * times + ["r2"]


async def test_one_conversations_files_are_not_those_of_another(tmp_path: Path) -> None:
    adapter = FilingAdapter({"r1": PIXEL})
    async with running(tmp_path, config=config_in(tmp_path, model=SEEING), adapter=adapter) as live:
        await live.answer(await sent(live, "look", PICTURE))
        await live.answer(await sent(live, "look", PICTURE, chat="d"))
    assert adapter.fetched == ["r1", "r1"]


async def test_a_steered_picture_joins_the_running_turn(tmp_path: Path) -> None:
    gate = Gate()
    model = FakeModel(in_turn(Say(calls=[("clock", "{}")], gate=gate), Say(text="done")))
    adapter = FilingAdapter({"r1": PIXEL})
    async with running(tmp_path, config=config_in(tmp_path, model=SEEING), adapter=adapter, model=model) as live:
        event = await live.tell("work")
        await gate.until_waiting()
        await sent(live, "/steer this one", PICTURE)
        gate.open()
        await live.answer(event)
        assert shown(model) == [URL]


async def test_names_of_speakers_stand_before_captions_where_a_session_is_shared(tmp_path: Path) -> None:
    adapter = FilingAdapter({"r1": PIXEL})
    async with running(tmp_path, config=config_in(tmp_path, model=SEEING), adapter=adapter) as live:
        where = {"chat_type": "thread", "thread": "t", "user_name": "Ann"}
        await live.answer(await sent(live, "look", PICTURE, **where))
        assert live.model.spoken()[-1][1].startswith("[Ann] look\n[sent with this message: a picture")
        assert await live.ask("/retry", **where)
        assert live.model.spoken(-1) == live.model.spoken(-2)
        assert shown(live.model) == [URL]


async def test_compaction_keeps_references_and_puts_old_pictures_aside(tmp_path: Path) -> None:
    adapter = FilingAdapter({f"r{number}": PIXEL + bytes([number]) for number in range(3)})
    async with running(tmp_path, config=config_in(tmp_path, model=SEEING), adapter=adapter) as live:
        for number in range(3):
            await live.answer(await sent(live, f"picture {number}", replace(PICTURE, ref=f"r{number}")))
            await live.ask("words " * 50)
        assert len(shown(live.model)) == 3
        assert "Compressed" in await live.ask("/compress")
        await live.ask("go on")
        assert len(shown(live.model)) == 1
        session = await live.tip()
        assert session is not None
        lineage = await live.store.lineage(session.id)
        originals = (await live.store.transcript(lineage[0])).messages
        contents = [message["content"] for message in originals if isinstance(message.get("content"), list)]
        assert len([part for content in contents for part in content or () if digest_in(part)]) == 3  # nothing is lost
