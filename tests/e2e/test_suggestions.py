"""Suggestions: next things to say, as buttons under an answer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from gateway.domain.message import text_of
from gateway.domain.turn import SessionSettings
from gateway.people.approvals import GONE
from tests.emulators.discord import DiscordServer
from tests.emulators.discord import User as Member
from tests.emulators.telegram import TelegramServer
from tests.support.discord_live import on_discord
from tests.support.fast_clock import FastClock
from tests.support.gateway import config_in
from tests.support.model import FakeModel, Say, newest
from tests.support.page import page
from tests.support.telegram_live import on_telegram

SHOWN = SessionSettings(suggestions=True, titles=False)


def suggesting() -> FakeModel:
    def script(_: Any, request: Any) -> Say:
        if "may want to say next" in text_of(request.messages[0]):
            return Say(text="/forget everything\nYes\n- Tell me more\nWhen is that?\n\n* Thanks\nBye")
        return Say(text=f"**echo**: {newest(request)}")

    return FakeModel(script)


async def test_on_telegram_one_is_said_once_and_by_who_shares_the_conversation(tmp_path: Path) -> None:
    async with TelegramServer(limits=None, clock=FastClock()) as telegram:
        anna, ben = telegram.people.person("Anna"), telegram.people.person("Ben")
        allow = (f"telegram:{ben.id}",)
        async with on_telegram(tmp_path, telegram, anna, model=suggesting(), sessions=SHOWN, allow=allow) as bot:
            bot.says("hello")
            await bot.until(lambda: telegram.shown(bot.chat) and telegram.shown(bot.chat)[0].buttons)
            message = telegram.shown(bot.chat)[0]
            assert message.text == "echo: hello"
            assert message.entities  # the formatting stays
            assert [each["text"] for each in message.buttons] == ["Tell me more", "When is that?", "Thanks"]
            first = message.buttons[0]["callback_data"].removesuffix(" 0")
            for number in ("012", "9", "99999", "x", "", "٣", "-1"):  # forged
                forged = telegram.people.forge_press(message, anna, f"{first} {number}")
                await bot.until(lambda forged=forged: forged.answer is not None)
                assert forged.answer["text"] == GONE
            telegram.people.press(message, anna, "When is that?")
            await bot.until(lambda: bot.shown()[-1] == "echo: When is that?")
            assert bot.shown()[1] == "“When is that?”"
            again = telegram.people.press(message, anna, "Thanks")
            await bot.until(lambda: again.answer is not None)
            assert again.answer is not None
            assert again.answer["text"] == GONE
            group = telegram.people.group("Choir", anna, ben)
            bot.says(f"@{telegram.cloud.world.bot.username} hi", group)
            await bot.until(lambda: telegram.shown(group) and telegram.shown(group)[0].buttons)
            his = telegram.people.press(telegram.shown(group)[0], ben, "Thanks")
            await bot.until(lambda: his.answer is not None)
            assert his.answer is not None
            assert his.answer["text"] == GONE
            usage = await bot.gateway.store.usage(0.0, "purpose")
            assert {each.label: each.calls for each in usage}["title"] == 3
            assert telegram.violations == []


async def test_on_the_page_they_stand_below_the_answer(tmp_path: Path) -> None:
    config = config_in(tmp_path, sessions=SHOWN)
    async with page(tmp_path, config=config, model=suggesting()) as live:
        await live.me.say("hello")
        await live.me.until("You could say:")
        async with live.me.http.get(live.adapter.at) as answer:
            tokens = re.findall(r'name="token" value="([^"]+)"[^>]*>(?:Tell me more|Thanks)<', await answer.text())
        assert len(tokens) == 2
        await live.me.post("/press", {"token": tokens[0]})
        await live.me.until(": Tell me more")
        await live.me.post("/press", {"token": tokens[1]})  # it is over
        await live.me.say("bye")
        await live.me.until(": bye")
        said = [text_of(each.messages[-1]) for each in live.model.requests]
        assert [each for each in said if each in ("Tell me more", "Thanks", "bye")] == ["Tell me more", "bye"]


async def test_on_discord(tmp_path: Path, discord: DiscordServer, anna: Member) -> None:
    async with on_discord(tmp_path, discord, anna, model=suggesting(), sessions=SHOWN) as bot:
        bot.says("hello")
        await bot.until(lambda: discord.shown(bot.chat) and discord.shown(bot.chat)[0].buttons)
        discord.people.press(discord.shown(bot.chat)[0], anna, "Tell me more")
        await bot.until(lambda: bot.shown()[-1] == "**echo**: Tell me more")
