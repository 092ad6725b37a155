"""Fifty times kill -9 of the whole program, while people say 500 things to it on a real Synapse."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.message import text_of
from tests.emulators.llm import LlmServer
from tests.emulators.llm_replies import Reply
from tests.support.program import KEY, PATIENCE, legato_run, write_config
from tests.support.synapse import Person, Synapse

pytest_plugins = ["tests.support.synapse"]

ROOMS, PARTS, KILLS = 10, 5, 10  # kills of each part, whose gateway and people are its own


def parrot(body: dict[str, Any]) -> Reply:
    return Reply(text=f"echo: {text_of(body['messages'][-1])}")


def answered(anna: Person, room: str, bot: Person) -> list[str]:
    """The answers in a room, in their order, with the last words of each."""
    return [text for text in anna.shown(room, bot.id) if text.startswith("echo: ")]


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
async def test_every_message_is_answered_once_and_in_order(part: int, tmp_path: Path, synapse: Synapse) -> None:
    bot, anna, chance = synapse.person("Legato"), synapse.person("Anna"), random.Random(part)
    matrix = {"enabled": True, "user": bot.id, "password": "${MATRIX_PASSWORD}", "homeserver": synapse.url}
    access = {"allow": [f"matrix:{anna.id}"]}
    async with LlmServer(parrot, api_key=KEY) as model, asyncio.timeout(PATIENCE):
        write_config(tmp_path, model.url, adapters={"matrix": matrix}, access=access)
        async with legato_run(tmp_path, MATRIX_PASSWORD="secret"):
            rooms = await asyncio.gather(*(anna.opens(bot.id, direct=True) for _ in range(ROOMS)))
            await _until(anna, lambda: all(anna.events(room, bot.id, "m.room.member") for room in rooms))
        for number in range(KILLS):
            async with legato_run(tmp_path, MATRIX_PASSWORD="secret") as program:
                before = sum(len(answered(anna, room, bot)) for room in rooms)
                await asyncio.gather(*(anna.says(room, str(number)) for room in rooms))
                more = before + chance.randrange(ROOMS)
                await _until(anna, lambda more=more: sum(len(answered(anna, room, bot)) for room in rooms) >= more)
                program.kill()
        async with legato_run(tmp_path, MATRIX_PASSWORD="secret"):
            await _until(anna, lambda: all(len(answered(anna, room, bot)) >= KILLS for room in rooms))
    expected = [f"echo: {number}" for number in range(KILLS)]
    assert {room: found for room in rooms if (found := answered(anna, room, bot)) != expected} == {}


async def _until(anna: Person, condition: Any) -> None:
    while not condition():
        await anna.looks()
