"""/forget on Telegram: the answered message is the one that goes, and a button is the yes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.domain.message import text_of
from tests.emulators.telegram import Message, TelegramServer
from tests.support.fast_clock import FastClock
from tests.support.model import FakeModel, Say, in_turn
from tests.support.remains import in_files
from tests.support.telegram_live import Bot, on_telegram

WORD = "quizzaciously"


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    """Telegram without its limits."""
    async with TelegramServer(limits=None, clock=FastClock()) as server:
        yield server


async def asked(bot: Bot, number: int) -> Message:
    """The chat's `number`th question, which has buttons until it is answered."""

    def found() -> list[Message]:
        return [each for each in bot.telegram.shown(bot.chat) if "This cannot be undone." in each.text]

    await bot.until(lambda: len(found()) >= number)
    return found()[number - 1]


async def says_yes(bot: Bot, number: int) -> Message:
    """Press the button of the `number`th question; the question."""
    question = await asked(bot, number)
    await bot.until(lambda: question.buttons)
    assert [button["text"] for button in question.buttons] == ["Forget", "Keep"]
    token = next(button["callback_data"] for button in question.buttons if button["text"] == "Forget")
    bot.telegram.people.forge_press(question, bot.anna, token)
    await bot.until(lambda: sum("Forgot 2 messages." in text for text in bot.shown()) == number)
    return question


async def test_the_answered_message_goes_whosever_it_is(tmp_path: Path, telegram: TelegramServer) -> None:
    anna, model = telegram.people.person("Anna"), FakeModel(in_turn(*map(_says, ("one", f"two {WORD}", "three"))))
    async with on_telegram(tmp_path, telegram, anna, model=model) as bot:
        first = bot.says(f"my code is {WORD}")
        await bot.until_shown("one")
        bot.says(f"and {WORD} again")
        await bot.until_shown("one", f"two {WORD}")
        bot.says("what about tea?")
        await bot.until_shown("one", f"two {WORD}", "three")
        bot.says("/forget", reply_to=first)
        question = await says_yes(bot, 1)
        assert WORD not in question.text
        assert question.text.endswith("Forget was chosen.")
        answer = next(each for each in telegram.shown(bot.chat) if each.text == f"two {WORD}")
        bot.says("/forget", reply_to=answer)
        await says_yes(bot, 2)
        await bot.quiet()
        (session,) = await bot.gateway.store.sessions(None, 9)
        left = await bot.gateway.store.transcript(session)
        assert [text_of(each) for each in left] == ["what about tea?", "three"]
    assert in_files([tmp_path / "legato.db", tmp_path / "legato.db-wal"], WORD) == []
    assert telegram.violations == []


def _says(text: str) -> Say:
    return Say(text=text)


async def test_nothing_is_kept_of_a_temporary_chat(tmp_path: Path, telegram: TelegramServer) -> None:
    anna, model = telegram.people.person("Anna"), FakeModel(in_turn(*map(_says, ("one", "two"))))
    async with on_telegram(tmp_path, telegram, anna, model=model) as bot:
        bot.says("/temporary")
        await bot.until(lambda: any(text.startswith("This chat is temporary now.") for text in bot.shown()))
        bot.says(f"my code is {WORD}")
        await bot.until(lambda: "one" in bot.shown())
        bot.says("/temporary end")
        await bot.until(lambda: any(text.startswith("I deleted the temporary chat.") for text in bot.shown()))
        bot.says("what about tea?")
        await bot.until(lambda: "two" in bot.shown())
        assert WORD not in "".join(text_of(each) for each in model.requests[-1].messages)
    assert in_files([tmp_path / "legato.db", tmp_path / "legato.db-wal"], WORD) == []
