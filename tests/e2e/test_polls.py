"""Polls that the agent makes and ends, on Telegram and on Discord, and as words elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.emulators.discord import DiscordServer, Refuse
from tests.emulators.discord import User as Member
from tests.emulators.llm_replies import Reply
from tests.emulators.telegram import Disconnect
from tests.emulators.telegram import Refuse as TelegramRefuses
from tests.support.discord_live import on_discord
from tests.support.gateway import config_in, running
from tests.support.model import FakeModel, Say, in_turn
from tests.support.telegram_files import World

pytest_plugins = ["tests.support.telegram_files"]

ASKED = {"question": "Where\nto?", "answers": ["Lake", "Hill", "Lake", "家 <b>"], "several": True}
TEXT = "Where to?\n1. Lake\n2. Hill\n3. 家 <b>"
COUNTED = "[closed poll: Where to? — Lake (1) / Hill (2) / 家 <b> (0)]"


def calling(**arguments: Any) -> Any:
    """A model that makes one call, and repeats its result."""

    def reply(body: dict[str, Any]) -> Reply:
        if body["messages"][-1]["role"] == "tool":
            return Reply(text=body["messages"][-1]["content"])
        return Reply(tool_calls=[("make_poll", arguments)])

    return reply


async def test_a_poll_on_telegram_is_made_read_and_ended(world: World) -> None:
    world.model.reply = calling(**ASKED)
    async with world.bot() as bot:
        bot.says("ask them")
        await bot.until(lambda: any("on its way" in text for text in bot.shown()))
        poll, said = bot.telegram.shown(bot.chat)
        assert [each["text"] for each in poll.content["poll"]["options"]] == ["Lake", "Hill", "家 <b>"]
        assert poll.content["poll"]["allows_multiple_answers"]
        assert "press" not in said.text
        world.telegram.people.vote(poll, 0, 1)
        world.telegram.people.vote(poll, 1)
        world.model.reply = lambda _: Reply(text="seen")
        bot.says("and?", reply_to=poll)
        await bot.until(lambda: bot.shown()[-1] == "seen")
        assert world.heard() == '[in reply to you: "(poll: Where to? — Lake (1) / Hill (2) / 家 <b> (0))"]\nand?'
        for question, told in (
            ("Where to?", COUNTED),
            ("Where to?", "already been closed"),
            ("Why?", "There is no poll with this question"),
        ):
            world.model.reply = calling(question=question, close=True)
            bot.says("end it")
            await bot.until(lambda told=told: told in bot.shown()[-1])
    assert world.model.violations == []


@pytest.mark.parametrize(("fault", "polls"), [(Disconnect(), 1), (TelegramRefuses(status=502), 1)], ids=repr)
async def test_a_poll_is_shown_once(world: World, fault: Any, polls: int) -> None:
    world.telegram.faults.add(fault, method="sendPoll")
    world.model.reply = calling(**ASKED)
    async with world.bot() as bot:
        bot.says("ask them")
        await bot.until(lambda: any("on its way" in text for text in bot.shown()))
        await bot.quiet()
        assert len([each for each in bot.telegram.shown(bot.chat) if "poll" in each.content]) == polls


async def test_what_telegram_will_not_have_as_a_poll_is_words(world: World) -> None:
    body = '{"ok":false,"error_code":400,"description":"Bad Request: not enough rights to send polls to the chat"}'
    world.telegram.faults.add(TelegramRefuses(status=400, body=body), method="sendPoll")
    world.model.reply = calling(**ASKED)
    async with world.bot() as bot:
        bot.says("ask them")
        await bot.until(lambda: any("on its way" in text for text in bot.shown()))
        assert bot.shown()[0] == TEXT
        assert bot.telegram.shown(bot.chat)[0].buttons == []
        world.model.reply = calling(question="Where to?", close=True)
        bot.says("end it")
        await bot.until(lambda: "I could not end the poll" in bot.shown()[-1])


@pytest.mark.parametrize("answers", [[], ["one"], ["a", "a"], [" ", "b"], [str(each) for each in range(11)]])
async def test_a_poll_of_too_few_or_too_many_answers_is_a_sentence(world: World, answers: list[str]) -> None:
    world.model.reply = calling(question="Where?", answers=answers)
    async with world.bot() as bot:
        bot.says("ask them")
        await bot.until(lambda: any("2 to 10 different answers" in text for text in bot.shown()))


def wants(**arguments: Any) -> Say:
    return Say(calls=[("make_poll", json.dumps(arguments))])


async def test_a_poll_on_discord_is_made_read_and_ended(tmp_path: Path, discord: DiscordServer, anna: Member) -> None:
    script = in_turn(wants(**ASKED), Say(text="Made."), wants(question="Where to?", close=True), Say(text="Ended."))
    async with on_discord(tmp_path, discord, anna, model=FakeModel(script)) as bot:
        bot.says("ask them")
        await bot.until(lambda: bot.shown() == ["", "Made."])
        poll = discord.shown(bot.chat)[0]
        assert poll.poll is not None
        assert [each["poll_media"]["text"] for each in poll.poll["answers"]] == ["Lake", "Hill", "家 <b>"]
        discord.people.vote(poll, 1, 2)
        discord.people.vote(poll, 2)
        bot.says("end it", reply_to=poll)
        await bot.until(lambda: bot.shown()[-1] == "Ended.")
        heard = [str(each["content"]) for each in bot.model.requests[-1].messages]
        assert '[in reply to you: "(poll: Where to? — Lake (1) / Hill (2) / 家 <b> (0))"]\nend it' in heard
        assert COUNTED in heard


async def test_what_discord_will_not_have_as_a_poll_is_words(
    tmp_path: Path, discord: DiscordServer, anna: Member
) -> None:
    long = {"question": "Where?", "answers": ["x" * 56, "Hill"]}
    script = in_turn(wants(**long), Say(text="Made."), wants(**ASKED), Say(text="Made."))
    async with on_discord(tmp_path, discord, anna, model=FakeModel(script)) as bot:
        bot.says("ask them")
        await bot.until_shown(f"Where?\n1\\. {'x' * 56}\n2\\. Hill", "Made.")
        body = '{"code": 50013, "message": "Missing Permissions"}'
        discord.faults.add(Refuse(status=403, body=body), method="POST /channels/{channel}/messages")
        bot.says("again")
        await bot.until(lambda: len(bot.shown()) == 4)
        assert bot.shown()[2] == "Where to?\n1\\. Lake\n2\\. Hill\n3\\. 家 <b>"


async def test_where_there_are_no_polls_the_tool_is_not_on_offer(tmp_path: Path) -> None:
    async with running(tmp_path, config=config_in(tmp_path)) as live:
        await live.ask("hi")
        assert "make_poll" not in {each["function"]["name"] for each in live.model.requests[0].tools}
