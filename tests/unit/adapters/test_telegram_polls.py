"""Polls on Telegram: what is asked of it, and what is done where it will not have one."""

from __future__ import annotations

from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest
from telegram.error import BadRequest, TelegramError

from adapters.telegram.polls import close, show
from gateway.domain.chat import SEVERAL, Button
from gateway.runtime.errors import AdapterError
from tests.support.store_kit import outbound


def poll(several: bool) -> Any:
    token = SEVERAL if several else ""
    return outbound(
        "o",
        text="What?\n1. Tea\n2. Milk",
        buttons=tuple((Button(label=each, token=token),) for each in ("Tea", "Milk")),
    )


@pytest.mark.parametrize("several", [True, False])
async def test_a_poll_has_its_question_and_its_answers(several: bool) -> None:
    bot = Mock(do_api_request=AsyncMock(return_value={"chat": {"id": 5}, "message_id": 7}))
    assert await show(bot, poll(several), {"chat_id": 5}) == (5, 7)
    method, given = bot.do_api_request.await_args.args
    assert method == "sendPoll"
    assert given == {
        "chat_id": 5,
        "question": "What?",
        "options": [{"text": "Tea"}, {"text": "Milk"}],
        "allows_multiple_answers": several,
    }


async def test_one_that_telegram_will_not_have_becomes_words_but_in_a_chat_that_is_gone() -> None:
    bot = Mock(do_api_request=AsyncMock(side_effect=BadRequest("Polls can't be sent here")))
    assert await show(bot, poll(False), {}) is None
    bot.do_api_request.side_effect = BadRequest("Chat not found")
    with pytest.raises(BadRequest):
        await show(bot, poll(False), {})


async def test_a_poll_that_ends_is_told_with_its_counts() -> None:
    ended = {"question": "What?", "options": [{"text": "Tea", "voter_count": 2}], "total_voter_count": 2, "id": "1",
             "is_closed": True, "is_anonymous": True, "type": "regular", "allows_multiple_answers": False}  # fmt: skip
    bot = Mock(do_api_request=AsyncMock(return_value=ended))
    told = await close(bot, 5, 7)
    assert "What?" in told
    assert "Tea" in told
    assert bot.do_api_request.await_args.args == ("stopPoll", {"chat_id": 5, "message_id": 7})
    bot.do_api_request.side_effect = TelegramError("no")
    with pytest.raises(AdapterError):
        await close(bot, 5, 7)
