"""Albums, polls and forms of a program that is killed at any step: a person sees each once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from gateway.agent.tools.base import ToolContext, schema
from gateway.domain.adapter import Limits
from gateway.domain.chat import ChatAddress, KeptFile, Outbound
from gateway.domain.message import text_of
from gateway.providers.base import ModelRequest, ModelSpec
from gateway.runtime.points import Point
from tests.emulators.telegram.people import PIXEL
from tests.support.gateway import FakeModel, Fetching, KillAt, Killed, Live, Say, config_in, in_turn, running
from tests.support.model import PATIENCE

_STEPS: tuple[Point, ...] = (
    "turn.model_called",
    "turn.tools_begun",
    "outbox.before_send",
    "outbox.after_send",
    "outbox.marked",
    "turn.tools_ran",
    "turn.step_recorded",
    "turn.finished",
)
_ANSWERED: tuple[Point, ...] = ("turn.tools_ran", "turn.step_recorded", "turn.finished")
FILES = {"file": "a.txt", "caption": "one"}, {"file": "b.txt", "caption": "two"}
POLL = {"question": "Where to?", "answers": ["Lake", "Hill"]}
FORM = {"question": "Which sizes?", "options": ["S", "M", "L"], "multiple": True}


class Shows(Fetching):
    """A platform with albums, polls and forms."""

    longest_token = 64

    def __init__(self) -> None:
        super().__init__(b"text of a file")
        self.name = "telegram"  # whose model is told of polls
        self.limits = Limits(trusted=True, file_bytes=1_000_000, album=10)

    async def send_album(self, outbound: Outbound, contents: Sequence[bytes]) -> str:
        return await self.send(outbound)

    async def close_poll(self, to: ChatAddress, platform_message_id: str) -> str:
        return "[closed poll]"


def calling(tool: str, *arguments: dict[str, Any]) -> FakeModel:
    """A model that calls a tool, and the last call once more where nobody knows what became of it."""

    def script(_: ModelSpec, request: ModelRequest) -> Say:
        last = request.messages[-1]
        if last["role"] == "tool" and "outcome is unknown" not in text_of(last):
            return Say(text=f"told: {text_of(last)}")
        again = arguments[-1:] if last["role"] == "tool" else arguments
        return Say(calls=[(tool, json.dumps(each)) for each in again])

    return FakeModel(script)


async def answering(live: Live, *shown: Shows) -> None:
    """Answer the question once it is there, always by the same message."""
    await live.adapter.until(lambda: any(row.kind == "question" for each in shown for row in each.sent))
    await live.tell("1 and 3", event="a1")


async def lives(folder: Path, point: Point, tool: str, *arguments: dict[str, Any]) -> tuple[list[Outbound], str]:
    """What people saw, over a life that is killed at the point and the next one; and the answer."""
    kill, config = KillAt(point, 0), config_in(folder)
    first, second = Shows(), Shows()
    async with running(folder, config=config, adapter=first, points=kill, model=calling(tool, *arguments)) as live:
        key = live.gateway.readers.reception.arrival(first.inbound("x")).key
        for name in ("a.txt", "b.txt"):
            digest = sha256(name.encode()).hexdigest()
            file = KeptFile(ref=f"sent:{name}", digest=digest, name=name, mime="text/plain", size=5, at=0.0)
            await live.store.keep_file(key, file, name.encode())
        kill.arm()
        answers = asyncio.create_task(answering(live, *([first] if point in _ANSWERED else [])))
        with suppress(Killed):
            await live.tell("go on", event="e1")
        async with asyncio.timeout(PATIENCE):
            await kill.passed.wait()
        answers.cancel()
        await asyncio.gather(answers, return_exceptions=True)
    async with running(folder, config=config, adapter=second, model=calling(tool, *arguments)) as live:
        answers = asyncio.create_task(answering(live, first, second))
        await live.adapter.until(lambda: any(each.answer_to("e1") for each in (first, second)))
        answers.cancel()
        await asyncio.gather(answers, return_exceptions=True)
        await live.quiet()
    seen = list({row.id: row for row in (*first.sent, *second.sent)}.values())
    return seen, next(row.text for row in seen if row.answers == "e1" and row.kind == "reply").lstrip("\u21bb \n")


@pytest.mark.parametrize("point", [*_STEPS[1:5:2], *(pytest.param(each, marks=pytest.mark.slow) for each in _STEPS)])
async def test_an_album_a_poll_and_a_form_are_seen_once_whatever_is_killed(tmp_path: Path, point: Point) -> None:
    seen, told = await lives(tmp_path, point, "send_file", *FILES)
    names = ["b.txt"] if point == "turn.tools_begun" else ["a.txt", "b.txt"]  # the model repeats the last call alone
    assert [[each.name for each in row.files] for row in seen if row.file] == [names]
    assert "on its way" in told
    if point == "turn.tools_begun":  # no intent is stored of calls that may be made twice
        return
    (tmp_path / "poll").mkdir()
    seen, told = await lives(tmp_path / "poll", point, "make_poll", POLL)
    assert [row.text.lstrip("\u21bb \n") for row in seen if row.kind == "poll"] == ["Where to?\n1. Lake\n2. Hill"]
    assert "on its way" in told
    (tmp_path / "form").mkdir()
    seen, told = await lives(tmp_path / "form", point, "ask_person", FORM)
    assert len([row for row in seen if row.kind == "question" and not row.edits]) == 1
    assert told == "told: The person answered: S; L"


class Dies:
    """A tool of pictures that has kept one when its process is killed, before anything of its step was shown."""

    name = "paint"
    description = "Paints."
    parameters = schema()
    read_only = False
    idempotent = False
    shows = True
    timeout = 5.0

    def __init__(self, kill: KillAt) -> None:
        self.kill = kill

    async def run(self, _: Mapping[str, Any], context: ToolContext) -> str:
        await context.files.send("cat.png", "image/png", PIXEL, kind="picture")
        self.kill("turn.tools_ran")
        return "painted"


async def test_what_was_made_before_a_kill_is_shown_after_it(tmp_path: Path) -> None:
    kill, config, first, second = KillAt("turn.tools_ran"), config_in(tmp_path), Shows(), Shows()
    model = FakeModel(
        in_turn(Say(calls=[("send_file", json.dumps({"name": "a.txt", "content": "a"})), ("paint", "{}")]))
    )
    async with running(tmp_path, config=config, adapter=first, points=kill, model=model, tools=[Dies(kill)]) as live:
        with suppress(Killed):
            await live.tell("go on", event="e1")
        async with asyncio.timeout(PATIENCE):
            await kill.passed.wait()
    async with running(tmp_path, config=config, adapter=second, model=FakeModel(in_turn(Say(text="done")))) as live:
        assert (await live.answer("e1")).text == "done"
    assert [[file.name for file in row.files] for row in (*first.sent, *second.sent)] == [["a.txt"], ["cat.png"], []]
