"""Reactions: the bot's signs on what people write, and theirs on what it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.domain.chat import Source
from gateway.domain.turn import SessionSettings, TurnRules, TurnSettings
from gateway.runtime.structs import replace
from tests.emulators.discord import Channel, DiscordServer
from tests.emulators.discord import User as Member
from tests.emulators.telegram import TelegramServer
from tests.support.discord_live import on_discord
from tests.support.fast_clock import FastClock
from tests.support.model import FakeModel, Gate, Say, in_turn
from tests.support.telegram_live import on_telegram

SHOWN = SessionSettings(reactions=True)


def heard(model: FakeModel) -> str:
    """What the model was told last."""
    return model.spoken()[-1][1] if model.requests else ""


def test_a_group_where_the_bot_listens_quietly_has_signs_only_if_that_is_said() -> None:
    group = Source(platform="fake", chat="g", chat_type="group", user="u")
    rules = TurnRules(sessions=SHOWN, turns=TurnSettings(), joins={"fake:g": 2})
    assert not rules.shows_signs(group)
    assert replace(rules, reactions={"fake:g": True}).shows_signs(group)
    assert rules.shows_signs(replace(group, chat="h"))


async def test_on_telegram_they_come_with_the_next_words_and_begin_no_turn(tmp_path: Path) -> None:
    async with TelegramServer(limits=None, clock=FastClock()) as telegram:
        anna, ben = telegram.people.person("Anna"), telegram.people.person("Ben")
        group = telegram.people.group("Choir", anna, ben, bot="administrator")
        gate = Gate()
        model = FakeModel(in_turn(Say(text="Tuesday [at 8]", gate=gate)))
        async with on_telegram(tmp_path, telegram, anna, model=model, sessions=SHOWN) as bot:
            asked = bot.says("When?")
            await bot.until(lambda: asked.reactions == ["👀"])
            gate.open()
            await bot.until(lambda: asked.reactions == ["👌"])
            await bot.quiet()
            (answer,) = telegram.shown(bot.chat)
            telegram.people.react(answer, anna, "👍")
            telegram.people.react(answer, anna, "👎")
            telegram.people.react(asked, anna, "🔥")  # no message of the bot's
            bot.says("Sure?")
            await bot.until(lambda: len(model.requests) == 2)
            assert heard(model) == '[Anna reacted 👎 to: "Tuesday (at 8)"]\nSure?'
            await bot.quiet()
            telegram.people.react(answer, anna)
            telegram.people.react(answer, anna, "🤔")
            telegram.people.react(answer, anna)
            bot.says("Well")
            await bot.until(lambda: len(model.requests) == 3)
            assert heard(model) == "Well"
            # a stranger's is ignored, and one that nobody has told of yet is forgotten with the rest
            bot.says("@" + telegram.cloud.world.bot.username + " hello", group)
            await bot.until(lambda: telegram.shown(group))
            await bot.quiet()
            telegram.people.react(telegram.shown(group)[0], ben, "👎")
            gone = telegram.shown(bot.chat)[-1]
            telegram.people.react(gone, anna, "👎")
            bot.says("/forget everything")
            await bot.until(lambda: telegram.shown(bot.chat)[-1].buttons and not bot.gateway.outbox.in_flight)
            telegram.people.press(telegram.shown(bot.chat)[-1], anna, "Forget")
            await bot.until(lambda: "gone" in bot.shown()[-1] or "Forgot" in bot.shown()[-1])
            telegram.people.react(gone, anna, "🔥")  # what it was put on is forgotten
            bot.says("New")
            await bot.until(lambda: len(model.requests) == 5)
            assert heard(model) == "New"
            assert telegram.violations == []


@pytest.mark.parametrize("shown", [True, False])
async def test_on_discord(tmp_path: Path, discord: DiscordServer, anna: Member, place: Channel, shown: bool) -> None:
    model = FakeModel(in_turn(Say(text="Tuesday"), Say(error=RuntimeError("broken"))))
    sessions = SessionSettings(reactions=shown)
    async with on_discord(tmp_path, discord, anna, model=model, rules={"quoted": 0}, sessions=sessions) as bot:
        ben = discord.people.person("Ben")
        asked = bot.says("@Legato when?", place)
        await bot.until_shown("Tuesday", chat=place)
        await bot.quiet()
        bot_id = bot.discord.cloud.bot.id
        await bot.until(lambda: asked.reactions == ({"✅": [bot_id]} if shown else {}))
        (answer,) = discord.shown(place)
        discord.people.react(answer, anna, "👍")
        discord.people.react(answer, anna, "👎")
        discord.people.react(answer, anna, "👍", gone=True)
        discord.people.join(place.guild, ben)
        discord.people.react(answer, ben, "💩")
        again = bot.says("@Legato sure?", place)
        await bot.until(lambda: len(model.requests) == 2)
        assert heard(model) == '[Anna reacted 👎 to: "Tuesday"]\nsure?'
        await bot.until(lambda: again.reactions == ({"⚠️": [bot_id]} if shown else {}))
