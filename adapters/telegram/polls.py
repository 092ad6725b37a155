"""Polls: https://core.telegram.org/bots/api#sendpoll. One that a group does not allow is shown as text."""

from __future__ import annotations

from typing import Any

import structlog
from telegram import Bot
from telegram.error import BadRequest, TelegramError

from adapters.telegram import failures
from adapters.telegram.codec import asked
from gateway.domain.chat import SEVERAL, Outbound

log = structlog.get_logger(__name__)


async def show(bot: Bot, outbound: Outbound, where: dict[str, Any]) -> tuple[int, int] | None:
    """Show a poll. Gives the numbers of the chat and the message; None: Telegram will not have it. Raises
    TelegramError."""
    answers = [button for row in outbound.buttons for button in row]
    given = {
        **where,
        "question": outbound.text.partition("\n")[0],
        "options": [{"text": each.label} for each in answers],
        "allows_multiple_answers": any(each.token == SEVERAL for each in answers),
    }
    try:
        sent: Any = await bot.do_api_request("sendPoll", given)
    except BadRequest as error:
        if failures.is_chat_gone(error):
            raise
        log.warning("poll_refused", outbound=outbound.id, error=error.message)
        return None
    return sent["chat"]["id"], sent["message_id"]


async def close(bot: Bot, chat: int, message: int) -> str:
    """End a poll; returns it with its counts. Raises AdapterError."""
    try:
        return asked(await bot.do_api_request("stopPoll", {"chat_id": chat, "message_id": message}))
    except TelegramError as error:
        raise failures.mapped_edit(error) from error
