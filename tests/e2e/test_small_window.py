"""A window of 4,096 tokens, as small local models have: it is compacted seldom, nobody hears of it, and what matters
stays in view."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from random import Random

import pytest

from gateway.domain.message import text_of
from gateway.providers.base import ModelRequest, ModelSpec
from gateway.providers.plugin import ModelSettings
from tests.support.gateway import FakeModel, Live, Say, config_in, running
from tests.support.model import newest
from tests.support.transcripts import COUNTER

WINDOW = 4_096
MESSAGES = 60
WORDS = "boat garden needs new fence before winter comes sister paints doors while rain falls green hills near market"
TOLD = {
    "My cat is called Oslo, she is a tabby.": "Oslo",
    "From now on, never mention the weather.": "never mention the weather",
    "The code of the gate is 4711-B.": "4711-B",
    "I am allergic to shellfish.": "shellfish",
    "My invoice has the number INV-20931.": "INV-20931",
}


def said(number: int, words: int) -> str:
    """Return the person's words; the first ones tell what is needed for ever."""
    told = [*TOLD][number] if number < len(TOLD) else ""
    return f"{told} Number {number}: {prose(number, words)}"


def prose(seed: int, words: int) -> str:
    """Return words of nothing, about a token each."""
    drawn = Random(seed)
    return " ".join(drawn.choice(WORDS.split()) for _ in range(words)) + "."


def answer(words: int, spec: ModelSpec, request: ModelRequest) -> Say:
    """So many words, and every sixth time a look at the clock first. The prompt is counted as a server would."""
    number = int(newest(request).split("Number ")[-1].split(":")[0])
    prompt = sum(map(COUNTER.message, request.messages)) + COUNTER.schemas(request.tools)
    if number % 6 == 5 and request.messages[-1]["role"] == "user":
        return Say(calls=[("clock", json.dumps({"timezone": "Asia/Shanghai"}))], prompt=prompt)
    return Say(text=prose(1_000 + number, words), prompt=prompt)


async def prepared(live: Live) -> None:
    """Wait until what is made behind a reply is made, as it is long before most people write again."""
    await live.quiet()
    for name, task in [*live.gateway.background._named.items()]:
        if name.startswith("preparation "):
            await asyncio.wait([task])


@pytest.mark.parametrize(("words", "notes"), [(110, 12), (110, 150), (150, 12), (150, 150)])
async def test_sixty_messages_are_compacted_twelve_times_at_most_and_two_notices_tell_of_it(
    tmp_path: Path, words: int, notes: int
) -> None:
    summary = f"## Active Task\nNone\n## Goal\nTalk.\n## Critical Context\n{prose(7, notes)}"
    model = FakeModel(partial(answer, words), summary=lambda *_: Say(text=summary))
    settings = ModelSettings(provider="offline", name="fake", context_length=WINDOW)
    async with running(tmp_path, config=config_in(tmp_path, model=settings), model=model) as live:
        for number in range(MESSAGES):
            await live.ask(said(number, words))
            await prepared(live)
        tip = await live.tip()
        assert tip is not None
        assert 5 <= tip.compaction_count <= 12
        assert len(live.adapter.shown("c", "notice", "remark")) <= 2
    last = "\n".join(map(text_of, model.requests[-1].messages))
    assert [value for value in TOLD.values() if value not in last] == []
