"""Commands of people who installed the bot for themselves, in places where the bot is not: only they see the answer
there, and what comes later comes to their own chat with the bot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adapters.discord.interactions import NOT_KNOWN
from gateway.domain.reading import WITH
from tests.emulators.discord import Channel, DiscordServer, Refuse, Settings, User
from tests.support.asking import results
from tests.support.discord_live import Bot, on_discord
from tests.support.fast_clock import FastClock
from tests.support.model import FakeModel, Gate, Say, in_turn

ON = {"user_install": True}


@pytest.fixture
def bert(discord: DiscordServer, anna: User) -> User:
    """Somebody whom the bot does not know. He and Anna installed it."""
    bert = discord.people.person("Bert")
    anna.installed = bert.installed = True
    return bert


@pytest.fixture(params=["among people", "in a server"])
def elsewhere(request: pytest.FixtureRequest, discord: DiscordServer, anna: User, bert: User) -> Channel:
    """A place without the bot."""
    if request.param == "among people":
        return discord.people.among(anna, bert)
    return discord.people.general(discord.people.guild("Theirs", bert, anna, with_bot=False))


async def asks(bot: Bot, where: Channel, text: str, user: User | None = None) -> Any:
    """Ask it there, once that is offered."""
    user = user or bot.anna
    await bot.until(lambda: "ask" in bot.discord.people.commands(where, user))
    return bot.discord.people.command(where, user, "ask", text=text)


async def test_one_person_sees_the_answer_there_and_its_conversation_is_their_own_chat(
    tmp_path: Path, discord: DiscordServer, anna: User, elsewhere: Channel
) -> None:
    async with on_discord(tmp_path, discord, anna, rules=ON) as bot:
        bot.says("First")
        await bot.until_shown("echo: First")
        given = await asks(bot, elsewhere, "Which birds?")
        await bot.until(lambda: given.original and given.original.content == "echo: Which birds?")
        assert given.ephemeral
        assert elsewhere.visible == []
        assert bot.shown() == ["echo: First"]
        listed = bot.discord.people.command(elsewhere, anna, "sessions")
        await bot.until(lambda: listed.original and listed.original.content)
        assert "First" in listed.original.content  # the same conversation
        said = [each["content"] for each in bot.model.requests[-1].messages if each["role"] == "user"]
        assert ["First" in each for each in said] == [True, False]
        assert discord.journal.violations == []


async def test_a_long_answer_stays_in_one_place(tmp_path: Path, discord: DiscordServer, anna: User, bert: User) -> None:
    words = "All birds are there already. " * 120
    place = discord.people.among(anna, bert)
    async with on_discord(tmp_path, discord, anna, rules=ON, model=FakeModel(in_turn(Say(text=words)))) as bot:
        given = await asks(bot, place, "Sing")
        await bot.until(lambda: sum(len(each.content) for each in given.shown) >= len(words.strip()) - 5)
        assert all(each.only_for is anna for each in given.shown)
        assert bot.shown() == []


async def test_what_is_more_than_discord_takes_there_comes_to_their_own_chat(
    tmp_path: Path, discord: DiscordServer, anna: User, elsewhere: Channel
) -> None:
    words = [f"Bird {number} is there already." for number in range(600)]
    model = FakeModel(in_turn(Say(text="\n".join(words))))
    async with on_discord(tmp_path, discord, anna, rules=ON, model=model) as bot:
        given = await asks(bot, elsewhere, "Sing")
        await bot.until(lambda: words[-1] in "".join(bot.shown()))
        assert len(given.shown) == 6
        said = "\n".join([*(each.content for each in given.shown), *bot.shown()])
        assert said.splitlines() == words
        assert len(bot.shown()) > 1
        (refused,) = discord.violations  # Discord is asked once, not for each part
        assert "40094" in refused.text
        discord.journal.violations.clear()


async def test_after_a_restart_the_answer_still_goes_there(
    tmp_path: Path, discord: DiscordServer, anna: User, elsewhere: Channel
) -> None:
    gate = Gate()
    async with on_discord(tmp_path, discord, anna, rules=ON, model=FakeModel(in_turn(Say(text="x", gate=gate)))) as bot:
        given = await asks(bot, elsewhere, "Which birds?")
        await gate.until_waiting()
        bot.gateway.stop(grace=0)
    async with on_discord(tmp_path, discord, anna, rules=ON) as bot:
        await bot.until(lambda: given.original and given.original.content == "echo: Which birds?")
        assert bot.shown() == []


async def test_what_comes_when_discord_takes_it_no_more_comes_to_their_own_chat(tmp_path: Path) -> None:
    clock, gate = FastClock(), Gate()
    async with DiscordServer(Settings(token_life=2.0), limits=None, clock=clock) as discord:
        anna, bert = discord.people.person("Anna"), discord.people.person("Bert")
        anna.installed = True
        place = discord.people.among(anna, bert)
        model = FakeModel(in_turn(Say(text="There.", gate=gate)))
        async with on_discord(tmp_path, discord, anna, rules=ON, model=model, clock=clock) as bot:
            given = await asks(bot, place, "Where?")
            await gate.until_waiting()
            await clock.sleep(3.0)
            gate.open()
            await bot.until_shown("There.")
            assert not given.original.content


async def test_a_stranger_is_told_so_and_discord_is_asked_for_nothing(
    tmp_path: Path, discord: DiscordServer, anna: User, bert: User, elsewhere: Channel
) -> None:
    async with on_discord(tmp_path, discord, anna, rules=ON) as bot:
        given = await asks(bot, elsewhere, "Which birds?", bert)
        await bot.until(lambda: given.original and given.original.content)
        assert given.original.content == NOT_KNOWN
        assert given.ephemeral
        await bot.quiet()
        assert not any("/users/@me/channels" in call.method for call in discord.journal.calls)
        assert bot.model.requests == []


async def test_as_long_as_it_is_off_nothing_is_offered_or_answered(
    tmp_path: Path, discord: DiscordServer, anna: User, elsewhere: Channel
) -> None:
    async with on_discord(tmp_path, discord, anna) as bot:
        await bot.until(lambda: "new" in discord.people.commands(bot.chat, anna))
        assert discord.people.commands(elsewhere, anna) == {}
        assert "ask" not in discord.people.commands(bot.chat, anna)
        bot.says("Hello")
        await bot.until_shown("echo: Hello")


async def test_a_question_there_is_answered_by_a_press_there(
    tmp_path: Path, discord: DiscordServer, anna: User, elsewhere: Channel
) -> None:
    asking = Say(calls=[("ask_person", '{"question": "Which?", "options": ["red", "blue"]}')])
    model = FakeModel(in_turn(asking, Say(text="ordered")))
    async with on_discord(tmp_path, discord, anna, rules=ON, model=model) as bot:
        given = await asks(bot, elsewhere, "Order a shirt")
        await bot.until(lambda: given.original and given.original.buttons)
        await bot.until(lambda: not bot.gateway.outbox.in_flight)
        discord.people.press(given.original, anna, "blue")
        await bot.until(lambda: any(each.content == "ordered" for each in [*given.shown, *discord.shown(bot.chat)]))
        assert "ordered" in [each.content for each in given.shown]
        assert elsewhere.visible == []
        assert results(model) == ["The person answered: blue"]


async def test_what_is_picked_there_is_answered_there(
    tmp_path: Path, discord: DiscordServer, anna: User, elsewhere: Channel
) -> None:
    async with on_discord(tmp_path, discord, anna, rules=ON) as bot:
        for text, answer in (("First", "echo: First"), ("/new", "Started"), ("Second", "echo: Second")):
            bot.says(text)
            await bot.until(lambda answer=answer: any(each.startswith(answer) for each in bot.shown()))
        before = bot.shown()
        await bot.until(lambda: "sessions" in discord.people.commands(elsewhere, anna))
        listed = discord.people.command(elsewhere, anna, "sessions")
        await bot.until(lambda: listed.original and listed.original.buttons)
        pressed = discord.people.press(listed.original, anna, "First")
        await bot.until(lambda: len(pressed.shown) == 2)
        assert pressed.shown[-1].content.startswith("I went back to “First”")
        assert all(each.only_for is anna for each in pressed.shown)
        assert bot.shown() == before
        assert elsewhere.visible == []


async def test_where_discord_opens_no_chat_of_two_the_conversation_is_still_one(
    tmp_path: Path, discord: DiscordServer, anna: User, elsewhere: Channel
) -> None:
    discord.faults.add(
        Refuse(status=403, body='{"message": "Missing Access", "code": 50001}'),
        method="POST /users/@me/channels",
        times=99,
    )
    async with on_discord(tmp_path, discord, anna, rules=ON) as bot:
        for text in ("Which birds?", "And which trees?"):
            given = await asks(bot, elsewhere, text)
            await bot.until(lambda given=given: given.original and given.original.content)
            assert given.original.content == f"echo: {text}"
            assert given.ephemeral
        said = [each["content"] for each in bot.model.requests[-1].messages if each["role"] == "user"]
        assert said == ["Which birds?", "And which trees?"]
        (session,) = await bot.gateway.store.sessions(None, 9)
        assert session.key.chat == f"{WITH}{anna.id}"
