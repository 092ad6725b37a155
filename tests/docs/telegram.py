"""A chat of the real bot on the emulated Telegram, as a picture: what a person sees of it on their telephone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from gateway.runtime.clock import SystemClock
from tests.docs.bubbles import draw, on_telegram
from tests.emulators.telegram import Message, TelegramServer
from tests.support.program import legato_run

BEGINS: Final = 1_767_261_600.0  # seconds since the epoch: 10:00 UTC on a day without meaning
SAID: Final = (  # what Anna does, and how the newest message of the bot ends then; None: she presses "Approve"
    ("Add buy milk to my to-do list", "[ ] buy milk"),
    ("Write a file shopping.txt: milk, eggs, bread", "Here is shopping.txt."),
    ("run echo $((6 * 7))", ", I do nothing."),
    (None, "exit code 0\n42"),
    ("run rm -r drafts", ", I do nothing."),
)


class Wall(SystemClock):
    """Time on the wall of the emulated Telegram: minutes pass when the picture says so."""

    def __init__(self) -> None:
        self.moment = BEGINS

    def now(self) -> float:
        return self.moment


async def drawn(folder: Path) -> str:
    """Start `legato run` for a bot on the emulator, talk to it as `SAID` says, and draw the chat."""
    clock = Wall()
    async with TelegramServer(clock=clock, limits=None) as telegram:
        anna = telegram.people.person("Anna")
        chat = telegram.people.private(anna)
        (folder / "config.yaml").write_text(json.dumps(_configuration(telegram, anna.id)), encoding="utf-8")
        async with legato_run(folder, TELEGRAM_BOT_TOKEN=telegram.token):
            for line, end in SAID:
                clock.moment += 60
                if line is None:
                    asked = telegram.shown(chat)[-1]
                    telegram.people.press(asked, anna, "Approve")
                else:
                    telegram.people.say(chat, anna, line)
                await telegram.until(lambda end=end: _newest(telegram.shown(chat)).endswith(end))
        return draw(on_telegram(telegram, chat.visible, me=anna.id))


def _newest(shown: Sequence[Message]) -> str:
    return shown[-1].text if shown else ""


def _configuration(telegram: TelegramServer, admin: int) -> dict[str, Any]:
    bot = {"enabled": True, "token": "${TELEGRAM_BOT_TOKEN}", "base_url": telegram.base_url}
    return {
        "adapters": {"telegram": bot},
        "access": {"admins": [f"telegram:{admin}"]},
        "tools": {"shell": {"enabled": True, "sandbox": "never"}},
    }
