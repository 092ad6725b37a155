"""Buttons: how they are shown, and the answer to a press.

Telegram shows a press as under way until the bot answers it (https://core.telegram.org/bots/api#callbackquery), so
each is answered, also one that means nothing here, and as soon as its update is stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

import structlog
from telegram import Bot, InlineKeyboardButton, InlineKeyboardMarkup
from telegram.error import TelegramError

from adapters.telegram.codec import press_id
from adapters.telegram.updates import Update
from gateway.domain.adapter import Accepted
from gateway.domain.chat import Button

log = structlog.get_logger(__name__)

LONGEST_TOKEN: Final = 64  # bytes of `callback_data`: https://core.telegram.org/bots/api#inlinekeyboardbutton
_LONGEST_ANSWER: Final = 200  # characters: https://core.telegram.org/bots/api#answercallbackquery


def keyboard(rows: Sequence[Sequence[Button]]) -> InlineKeyboardMarkup | None:
    """Return the buttons under a message; None: an edit takes the present ones away."""
    if not rows:
        return None
    return InlineKeyboardMarkup(
        [[InlineKeyboardButton(button.label, callback_data=button.token) for button in row] for row in rows]
    )


class ButtonAnswers:
    """Answers presses. Reading updates waits for none of these answers."""

    def __init__(self) -> None:
        self._answering: set[asyncio.Task[None]] = set()

    def answer(self, bot: Bot, updates: Iterable[Update], accepted: Sequence[Accepted]) -> None:
        """Answer the presses of these updates, which are stored now."""
        for update in updates:
            if (query := update.callback_query) is not None:
                event = press_id(bot.id, query.id)
                text = next((each.told for each in accepted if each.event_id == event), "")
                task = asyncio.get_running_loop().create_task(self._answer(bot, query.id, text))
                self._answering.add(task)
                task.add_done_callback(self._answering.discard)

    async def _answer(self, bot: Bot, query: str, text: str) -> None:
        try:
            await bot.answer_callback_query(query, text[:_LONGEST_ANSWER] or None)
        except TelegramError as error:  # too late, or answered before; the decision stands under the question
            log.info("press_not_answered", error=error.message)

    async def aclose(self) -> None:
        for task in self._answering:
            task.cancel()
        await asyncio.gather(*self._answering, return_exceptions=True)
