"""Answers that end otherwise than by their last word: cut off, declined, broken, without room."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gateway.agent.asking import ENDED_EARLY, REPEATED
from gateway.agent.fallback import NO_FALLBACK
from gateway.agent.fitting import NO_ROOM
from gateway.agent.loop import DECLINED
from gateway.agent.tools.base import ToolContext
from gateway.commands.turn import GO_ON
from gateway.domain.message import text_of
from gateway.providers.plugin import ModelSettings
from gateway.runtime.errors import ProviderUnavailable
from tests.support.gateway import config_in, running
from tests.support.model import FakeModel, Say, echo, in_turn


class Write:
    """Writes nothing, and says how much."""

    name = "write"
    description = "write a text"
    parameters: Mapping[str, Any] = {"type": "object", "properties": {"text": {"type": "string"}}}
    read_only = True
    idempotent = True
    timeout = 5.0

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """The size."""
        return f"{len(arguments['text'])} written"


async def test_an_answer_that_reached_its_limit_is_shown_and_goes_on(tmp_path: Path) -> None:
    model = FakeModel(in_turn(Say(text="One, two,", stop="length"), Say(text="three.")))
    async with running(tmp_path, model=model) as live:
        assert await live.ask("Count to three.") == "One, two,"
        await live.quiet()
        assert live.adapter.shown("c", "notice") == [ENDED_EARLY["length"]]
        assert await live.ask("/continue") == "three."
        await live.quiet()
        assert live.adapter.shown("c", "notice") == [ENDED_EARLY["length"]]
    assert model.spoken() == [("user", "Count to three."), ("assistant", "One, two,"), ("user", GO_ON)]


async def test_what_is_said_again_and_again_is_cut_at_the_limit_alone(tmp_path: Path) -> None:
    line = "I will not talk in class.\n"
    model = FakeModel(in_turn(Say(text=line * 200), Say(text="Well: " + line * 900, stop="length")))
    async with running(tmp_path, model=model) as live:
        assert (await live.ask("Write it 200 times.")).strip() == (line * 200).strip()
        assert (await live.ask("How was that?")).strip() == f"Well: {line}".strip()
        await live.quiet()
        assert live.adapter.shown("c", "notice") == [REPEATED]


async def test_there_must_be_an_answer_to_go_on_with(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        assert (await live.ask("/continue")).startswith("There is no answer to continue yet")


async def test_a_tool_call_that_was_cut_off_is_asked_again_with_more_room(tmp_path: Path) -> None:
    settings = ModelSettings(provider="offline", name="fake", max_output_tokens=1_000)
    cut = Say(text="I write it.", stop="length", cut_call=True)
    whole = Say(text="I write it.", calls=[("write", json.dumps({"text": "x" * 9}))])
    model = FakeModel(in_turn(cut, cut, whole, Say(text="It is written.")))
    async with running(tmp_path, config=config_in(tmp_path, model=settings), model=model, tools=[Write()]) as live:
        assert await live.ask("Write.") == "It is written."
        tip = await live.tip()
        assert tip is not None
        said = [text_of(message) for message in await live.store.transcript(tip)]
        assert [total.calls for total in await live.store.usage(0.0, "model")] == [4]
    assert [request.max_tokens for request in model.requests] == [1_000, 4_000, 16_000, 1_000]
    assert said == ["Write.", "I write it.", "9 written", "It is written."]


async def test_a_model_that_thinks_until_its_limit_gets_more_room_but_not_for_ever(tmp_path: Path) -> None:
    model = FakeModel(lambda spec, request: Say(stop="length"))
    async with running(tmp_path, model=model) as live:
        assert await live.ask("Think.") == NO_ROOM
        model.script = echo
        assert await live.ask("hello") == "echo: hello"
    assert len(model.requests) == 3 + 1


async def test_an_answer_that_was_declined_is_said_once(tmp_path: Path) -> None:
    half, nothing = Say(text="First you", stop="refused"), Say(stop="refused")
    model = FakeModel(in_turn(half, nothing))
    async with running(tmp_path, model=model) as live:
        assert await live.ask("How?") == "First you"
        assert await live.ask("And then?") == DECLINED
        assert await live.ask("hello") == "echo: hello"
        assert live.adapter.shown("c", "notice", "error") == [ENDED_EARLY["refused"], DECLINED]
    assert len(model.requests) == 3


async def test_words_of_an_attempt_that_broke_off_are_no_part_of_the_answer(tmp_path: Path) -> None:
    model = FakeModel(in_turn(Say(broken="Onceee", text="One.")))
    async with running(tmp_path, model=model) as live:
        assert await live.ask("Count.") == "One."
        assert await live.ask("again") == "echo: again"
    assert ("assistant", "One.") in model.spoken()


async def test_the_words_before_a_failure_stay_in_sight(tmp_path: Path) -> None:
    broken = Say(broken="First, second", error=ProviderUnavailable("The provider is away."))
    async with running(tmp_path, model=FakeModel(in_turn(broken))) as live:
        event = await live.tell("Count.")
        await live.adapter.until(lambda: len(live.adapter.shown("c", "reply", "error")) == 2)
        assert live.adapter.shown("c", "reply", "error") == [
            "First, second",
            f"The provider is away. {NO_FALLBACK}",
        ]
        assert live.adapter.answer_to(event) is not None
