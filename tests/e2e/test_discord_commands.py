"""Slash commands on Discord: offered once, acknowledged at once, answered where and to whom they were given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adapters.discord.codec import Interaction
from gateway.domain.chat import SessionKey
from gateway.domain.turn import TurnSettings
from gateway.people.pairing import ASK_THEM, STRANGER, WRITE_TO_ME
from gateway.turns.admission import FULL
from tests.emulators.discord import Channel, DiscordServer, LoseAnswer, Refuse, User
from tests.support.discord_live import Bot, on_discord
from tests.support.model import FakeModel, Gate, Say, in_turn
from tests.support.waiting import eventually

EPHEMERAL = 1 << 6


async def gives(bot: Bot, name: str, chat: Channel | None = None, **options: Any) -> Any:
    """Anna gives a command, once it is offered."""
    where = chat or bot.chat
    await bot.until(lambda: name in bot.discord.people.commands(where))
    return bot.discord.people.command(where, bot.anna, name, **options)


def reads(discord: DiscordServer) -> int:
    return sum(call.method.startswith("GET /applications") for call in discord.journal.calls)


def writes(discord: DiscordServer) -> int:
    return sum(call.method.startswith("PUT /applications") for call in discord.journal.calls)


async def test_commands_are_written_once(tmp_path: Path, discord: DiscordServer, anna: User) -> None:
    for starts in (1, 2):
        async with on_discord(tmp_path, discord, anna) as bot:
            await bot.until(lambda: "compress" in discord.people.commands(bot.chat))
            await bot.until(lambda starts=starts: reads(discord) == starts)
            options = discord.people.commands(bot.chat)["compress"]["options"]
            assert [option["name"] for option in options] == ["preview", "keep", "topic", "undo"]
            told = discord.people.commands(bot.chat)["reset"]["description_localizations"]
            assert (told["de"], told["zh-CN"]) == ("ein neues Gespräch beginnen", "开始新的对话")
    assert writes(discord) == 1


async def test_a_command_is_answered_in_the_place_of_wait(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    async with on_discord(tmp_path, discord, anna) as bot:
        given = await gives(bot, "new", place)
        await bot.until(lambda: given.original and given.original.content)
        await bot.quiet()
        assert "fresh" in given.original.content or "start" in given.original.content.lower()
        assert not given.ephemeral
        assert given.followups == []


async def test_another_name_of_a_command_is_a_command_too(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    async with on_discord(tmp_path, discord, anna) as bot:
        given = await gives(bot, "reset", place)
        await bot.until(lambda: given.original and given.original.content)
        assert "fresh" in given.original.content or "start" in given.original.content.lower()


async def test_sessions_and_models_are_proposed_while_somebody_types(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    eve = discord.people.person("Eve")
    assert place.guild is not None
    discord.people.join(place.guild, eve)
    async with on_discord(tmp_path, discord, anna, rules={"quoted": 0}) as bot:

        async def proposed(user: User, name: str, option: str, typed: str) -> list[dict[str, Any]]:
            asked = discord.people.complete(place, user, name, option, typed)
            await bot.until(lambda: asked.answer)
            return asked.choices

        bot.says("@Legato Plan the garden party", place)
        await bot.until_shown("echo: Plan the garden party", chat=place)
        bot.says("@Legato /new", place)
        await bot.until(lambda: len(bot.shown(place)) == 2)
        await bot.until(lambda: "resume" in discord.people.commands(place))
        there = [{"name": "1. Plan the garden party", "value": "1"}]
        assert await proposed(anna, "resume", "n", "GARDEN") == there
        assert await proposed(anna, "resume", "n", "") == there
        assert await proposed(anna, "resume", "n", "chairs") == []
        assert await proposed(anna, "model", "name", "fak") == [{"name": "fake", "value": "fake"}]
        assert await proposed(eve, "resume", "n", "garden") == []
        assert await proposed(eve, "model", "name", "") == []


async def test_slash_and_text_give_the_same_answer(tmp_path: Path, discord: DiscordServer, anna: User) -> None:
    async with on_discord(tmp_path, discord, anna) as bot:
        bot.says("Hello")
        await bot.until_shown("echo: Hello")
        given = await gives(bot, "compress", preview=True, keep=3, topic="the budget")
        await bot.until(lambda: given.original and given.original.content)
        bot.says("/compress --preview --keep 3 the budget")
        await bot.until(lambda: len(bot.shown()) == 3)
        assert bot.shown()[2] == given.original.content


async def test_only_who_asks_sees_what_concerns_only_them(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    async with on_discord(tmp_path, discord, anna) as bot:
        given = await gives(bot, "whoami", place)
        await bot.until(lambda: given.original and given.original.content)
        assert given.ephemeral
        assert str(anna.id) in given.original.content


@pytest.mark.parametrize(("name", "options"), [("new", {}), ("queue", {"text": "and then this"}), ("whoami", {})])
@pytest.mark.parametrize("pairing", [True, False])
async def test_a_stranger_alone_is_told_the_way_in(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel, name: str, options: Any, pairing: bool
) -> None:
    eve = discord.people.person("Eve")
    assert place.guild is not None
    discord.people.join(place.guild, eve)
    async with on_discord(tmp_path, discord, anna, pairing=pairing) as bot:
        await bot.until(lambda: name in discord.people.commands(place))
        given = discord.people.command(place, eve, name, **options)
        await bot.until(lambda: given.original and given.original.content)
        assert given.original.content == f"{STRANGER} {WRITE_TO_ME if pairing else ASK_THEM}"
        assert given.ephemeral
        await bot.quiet()
        assert discord.shown(place) == []


async def test_where_no_more_fits_a_command_is_told_so(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    gate = Gate()
    model = FakeModel(in_turn(Say(text="first", gate=gate)))
    turns = TurnSettings(lane_cap=1)
    async with on_discord(tmp_path, discord, anna, model=model, rules={"quoted": 0}, turns=turns) as bot:
        bot.says("@Legato Begin", place)
        await gate.until_waiting()
        given = await gives(bot, "new", place)
        await bot.until(lambda: given.original and given.original.content == FULL)
        gate.open()


async def test_an_answer_whose_place_is_gone_is_shown_behind_it(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    gate = Gate()
    model = FakeModel(in_turn(Say(text="said", gate=gate)))
    async with on_discord(tmp_path, discord, anna, model=model, rules={"quoted": 0}) as bot:
        bot.says("@Legato say it", place)
        await gate.until_waiting()
        given = await gives(bot, "new", place)
        await bot.until(lambda: given.original)
        discord.people.delete(given.original)
        gate.open()
        await bot.until(lambda: given.followups and given.followups[0].content)
        await bot.quiet()
        assert len(given.followups) == 1
        assert not given.ephemeral


async def test_words_for_a_running_turn_are_passed_on(tmp_path: Path, discord: DiscordServer, anna: User) -> None:
    gate = Gate()
    model = FakeModel(in_turn(Say(text="first", gate=gate)))
    async with on_discord(tmp_path, discord, anna, model=model) as bot:
        bot.says("Begin")
        await gate.until_waiting()
        given = await gives(bot, "queue", text="and then this")
        await bot.until(lambda: given.original and given.original.content == "Noted.")
        gate.open()
        await bot.until(lambda: "echo: and then this" in bot.shown())


async def test_a_command_that_was_not_acknowledged_is_answered_by_a_message(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    async with on_discord(tmp_path, discord, anna) as bot:
        await bot.until(lambda: "new" in discord.people.commands(place))
        discord.faults.add(Refuse(status=503), method="POST /interactions/{interaction}/{token}/callback", times=9)
        discord.people.command(place, anna, "new")
        await bot.until(lambda: discord.shown(place))
        assert discord.shown(place)[0].answered is None


@pytest.mark.parametrize("lost", [LoseAnswer(), LoseAnswer(seconds=9.0)])
async def test_a_command_whose_first_word_is_in_doubt_is_answered_in_its_place(
    tmp_path: Path,
    discord: DiscordServer,
    anna: User,
    place: Channel,
    lost: LoseAnswer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "adapters.discord.interactions._FIRST_WORD", 1.0
    )  # in which the emulator does it, and its answer is missed
    async with on_discord(tmp_path, discord, anna) as bot:
        await bot.until(lambda: "new" in discord.people.commands(place))
        discord.faults.add(lost, method="POST /interactions/{interaction}/{token}/callback")
        given = discord.people.command(place, anna, "new")
        await bot.until(lambda: any(each.content for each in discord.shown(place)))
        await bot.quiet()
        assert discord.shown(place) == [given.original]


async def test_an_answer_after_a_restart_finds_its_command(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    gate = Gate()
    model = FakeModel(in_turn(Say(text="never", gate=gate), then=lambda *_: Say(text="again")))
    async with on_discord(tmp_path, discord, anna, model=model, rules={"quoted": 0}) as bot:
        bot.says("@Legato say it", place)
        await gate.until_waiting()
        given = await gives(bot, "new", place)
        key = SessionKey(platform="discord", chat=str(place.id), user=str(anna.id))
        await eventually(lambda: bot.gateway.store.waiting(key, 9))
        bot.gateway.stop(grace=0)
    async with on_discord(tmp_path, discord, anna, model=model):
        await bot.until(lambda: given.original and given.original.content)
        assert bot.shown(place) == [given.original.content, "again"]


async def test_an_answer_that_another_process_gave_is_left_alone(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    async with on_discord(tmp_path, discord, anna) as bot:
        given = await gives(bot, "new", place)
        await bot.until(lambda: given.original and given.original.content)
        answer = given.original.content
        interactions = bot.adapter._interactions
        interactions._waiting.add(str(given.id))  # as in the process that asked to wait, if another one answered
        await interactions.conclude({"id": str(given.id), "token": given.token, "type": 2}, None)
        again = {"content": "more", "components": [], "allowed_mentions": {"parse": []}}
        interactions._waiting.add(str(given.id))
        each = Interaction(id=str(given.id), token=given.token, private=False)
        assert await interactions.show(each, again, may_be_public=True) is None
        assert given.original.content == answer
