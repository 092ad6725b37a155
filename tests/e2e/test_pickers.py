"""Pickers: what a command lists, as buttons below it, a page at a time."""

from __future__ import annotations

from pathlib import Path

from gateway.people.approvals import GONE, NOT_YOURS
from tests.emulators.discord import DiscordServer
from tests.emulators.discord import User as Member
from tests.emulators.telegram import TelegramServer
from tests.support.discord_live import on_discord
from tests.support.fast_clock import FastClock
from tests.support.telegram_live import on_telegram


async def test_on_telegram_sessions_memory_and_the_persona_are_picked(tmp_path: Path) -> None:
    async with TelegramServer(limits=None, clock=FastClock()) as telegram:
        anna, ben = telegram.people.person("Anna"), telegram.people.person("Ben")
        group = telegram.people.group("Choir", anna, ben)
        async with on_telegram(tmp_path, telegram, anna, allow=(f"telegram:{ben.id}",)) as bot:

            async def says(text: str) -> list[str]:
                before = len(bot.shown())
                bot.says(text)
                await bot.until(lambda: len(bot.shown()) > before)
                await bot.quiet()
                return [each["text"] for each in telegram.shown(bot.chat)[-1].buttons]

            for number in range(10):
                await says(f"topic {number}")
                await says("/new")
            labels = await says("/resume")
            assert labels == [*(f"topic {number}" for number in range(9, 1, -1)), "▸"]
            picker = telegram.shown(bot.chat)[-1]
            stale = picker.buttons[0]["callback_data"]
            telegram.people.press(picker, anna, "▸")
            await bot.until(lambda: [each["text"] for each in picker.buttons] == ["topic 1", "topic 0", "◂"])
            telegram.people.press(picker, anna, "topic 0")
            await bot.until(lambda: bot.shown()[-1].startswith("I went back to “topic 0”"))
            await bot.quiet()
            telegram.people.forge_press(picker, anna, stale)  # the numbers are others by now; what was shown is meant
            await bot.until(lambda: bot.shown()[-1].startswith("I went back to “topic 9”"))
            assert (await says("/persona You are a pirate."))[:1] == []
            assert await says("/persona") == ["Back to the usual persona"]
            telegram.people.press(telegram.shown(bot.chat)[-1], anna, "Back to the usual persona")
            await bot.until(lambda: "persona from config.yaml again" in bot.shown()[-1])
            # in a group each has a list of their own
            name = telegram.cloud.world.bot.username
            for number in range(10):
                bot.says(f"@{name} song {number}", group)
                bot.says("/new", group)
                await bot.until(lambda number=number: len(bot.shown(group)) == 2 * number + 2)
            bot.says("/sessions", group)
            await bot.until(lambda: telegram.shown(group)[-1].buttons)
            await bot.quiet()
            hers = telegram.shown(group)[-1]
            press = telegram.people.press(hers, ben, "▸")
            await bot.until(lambda: press.answer is not None)
            assert press.answer is not None
            assert press.answer["text"] == NOT_YOURS
            forged = telegram.people.forge_press(hers, anna, "page 1 o_x /sessions")
            await bot.until(lambda: forged.answer is not None)
            assert forged.answer is not None
            assert forged.answer["text"] == GONE
            assert len(hers.buttons) == 9
            assert telegram.violations == []


async def test_on_discord_a_page_of_them_fits_and_is_turned(
    tmp_path: Path, discord: DiscordServer, anna: Member
) -> None:
    async with on_discord(tmp_path, discord, anna) as bot:
        for number in range(10):
            bot.says(f"topic {number}")
            bot.says("/new")
            await bot.until(lambda number=number: len(bot.shown()) == 2 * number + 2)
        bot.says("/sessions")
        await bot.until(lambda: discord.shown(bot.chat)[-1].buttons)
        await bot.quiet()
        picker = discord.shown(bot.chat)[-1]
        assert [each["label"] for each in picker.buttons] == [*(f"topic {number}" for number in range(9, 1, -1)), "▸"]
        discord.people.press(picker, anna, "▸")
        await bot.until(lambda: [each["label"] for each in picker.buttons] == ["topic 1", "topic 0", "◂"])
        discord.people.press(picker, anna, "topic 1")
        await bot.until(lambda: bot.shown()[-1].startswith("I went back to “topic 1”"))
