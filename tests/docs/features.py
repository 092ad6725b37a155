"""A question with ticks, a poll and an answer said aloud, by the real bot on the emulated Telegram, as a picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gateway.agent.files.speech import SpeechSettings
from gateway.providers.base import ModelRequest, ModelSpec
from tests.docs.bubbles import draw
from tests.docs.telegram import Wall
from tests.emulators.media import MediaServer
from tests.emulators.telegram import Message, TelegramServer
from tests.support.model import FakeModel, Say, newest
from tests.support.telegram_live import on_telegram

_QUESTION = {"question": "Which sizes?", "options": ["S", "M", "L"], "multiple": True, "free_text": False}
_CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "Let us vote on the trip": ("make_poll", {"question": "Where to?", "answers": ["The lake", "The hill"]}),
    "Order shirts for us": ("ask_person", _QUESTION),
}


def _script(_: ModelSpec, request: ModelRequest) -> Say:
    if request.messages[-1]["role"] == "tool":
        return Say(text="The poll is open.")
    if (call := _CALLS.get(newest(request))) is not None:
        return Say(calls=[(call[0], json.dumps(call[1]))])
    return Say(text="Good night, and sleep well.")


async def drawn(folder: Path) -> str:
    """Talk to the bot, and draw the chat."""
    clock = Wall()
    async with MediaServer() as speaker, TelegramServer(clock=clock, limits=None) as telegram:
        anna = telegram.people.person("Anna")
        speech = SpeechSettings(model="tts-1", base_url=speaker.url, when="always")
        async with on_telegram(folder, telegram, anna, model=FakeModel(_script), speech=speech) as bot:

            async def said(text: str, count: int) -> Message:
                """The last message once there are so many of the bot's."""
                clock.moment += 60
                bot.says(text)
                await bot.until(lambda: len(telegram.shown(bot.chat)) == count)
                return telegram.shown(bot.chat)[-1]

            await said("Say good night", 2)
            await said("Let us vote on the trip", 5)
            question = await said("Order shirts for us", 6)
            for label in ("S", "L"):
                telegram.people.press(question, anna, label)
                await bot.until(lambda label=label: f"✓ {label}" in [each["text"] for each in question.buttons])
            picture = draw(bot.chat.visible, me=anna.id)
            telegram.people.press(question, anna, "Refuse")
            await bot.quiet()
        return picture
