"""People on WhatsApp, as they see the bot."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.emulators.whatsapp import Person, WhatsAppServer
from tests.support.model import FakeModel, Gate, Say, in_turn
from tests.support.whatsapp_live import on_whatsapp


@pytest.fixture
async def whatsapp() -> AsyncIterator[WhatsAppServer]:
    """Without its rate limits; who breaks one of its rules fails the test."""
    async with WhatsAppServer(limited=False) as running:
        yield running
        assert [str(each) for each in running.violations] == []


@pytest.fixture
def anna(whatsapp: WhatsAppServer) -> Person:
    """Somebody who may talk to the bot."""
    return whatsapp.person("Anna")


async def test_a_story_of_one_day(tmp_path: Path, whatsapp: WhatsAppServer, anna: Person) -> None:
    gate = Gate()
    model = FakeModel(in_turn(Say(first="**Look**", gate=gate, text=" `here`.")))
    whatsapp.say(anna, "Hello")  # nobody listens yet
    async with on_whatsapp(tmp_path, whatsapp, anna, model=model) as bot:
        await gate.until_waiting()
        gate.open()
        await bot.until_shown("Look here.")
        assert whatsapp.of_bot(anna)[0].text == "*Look* `here`."
