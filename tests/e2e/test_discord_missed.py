"""Messages from the bot's absence: fetched once, in order, within bounds, with a word about the pause."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.domain.turn import TurnSettings
from gateway.store.sqlite.backend import SqliteStore
from tests.emulators.discord import Channel, DiscordServer, Kind, Refuse, Slow, User
from tests.support.discord_live import Bot, on_discord
from tests.support.model import FakeModel, Gate, Say, in_turn

AWAY = "I was away for {}. Now I answer the messages from that time."


async def notes(bot: Bot) -> dict[str, str]:
    return await bot.gateway.store.notes("discord:424242424242424242")


async def set_notes(folder: Path, **changes: str) -> None:
    """As if the last run had left these."""
    from gateway.runtime.clock import SystemClock

    store = SqliteStore(folder / "legato.db", clock=SystemClock())
    await store.open()
    await store.set_notes("discord:424242424242424242", changes)
    await store.aclose()


async def once(folder: Path, discord: DiscordServer, anna: User, *chats: Channel, **options: object) -> None:
    """A first run, in which something was said in these chats."""
    async with on_discord(folder, discord, anna, **options) as bot:  # type: ignore[arg-type]
        for chat in chats:
            bot.says("@Legato first" if chat.guild else "first", chat)
            await bot.until_shown("echo: [Anna] first" if chat.is_thread else "echo: first", chat=chat)
        await bot.quiet()


async def test_what_was_missed_is_answered_in_its_order(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    private = discord.people.direct(anna)
    await once(tmp_path, discord, anna, place, private)
    for number in range(3):
        discord.people.say(place, anna, f"@Legato {number}")
        discord.people.say(place, anna, "not for you")
        discord.people.say(private, anna, f"psst {number}")
    async with on_discord(tmp_path, discord, anna, rules={"quoted": 0}) as bot:
        bot.says("@Legato live", place)
        await bot.until_shown(*(f"echo: {each}" for each in ("first", 0, 1, 2, "live")), chat=place)
        await bot.until_shown(*(f"echo: {each}" for each in ("first", "psst 0", "psst 1", "psst 2")))


async def test_a_first_run_that_dies_at_once_loses_nothing(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = discord.people.direct(anna)
    with monkeypatch.context() as dying:
        dying.setattr("gateway.domain.reading._SAVE_EVERY", 3600.0)
        async with on_discord(tmp_path, discord, anna, rules={"quoted": 0}) as bot:
            for chat in (place, private):
                bot.says("@Legato first", chat)
                await bot.until_shown("echo: first", chat=chat)

            async def dead(*_: object) -> None:
                """A process that is killed saves nothing."""

            dying.setattr("gateway.domain.reading.Reader.save", dead)
    for chat in (place, private):
        discord.people.say(chat, anna, "@Legato second")
    async with on_discord(tmp_path, discord, anna, rules={"quoted": 0}) as bot:
        for chat in (place, private):
            await bot.until_shown("echo: first", "echo: second", chat=chat)


async def test_a_thread_that_was_put_away_meanwhile_is_looked_at(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    thread = discord.people.thread(place, anna, "Sunday")
    quiet = discord.people.thread(place, anna, "Monday")
    await once(tmp_path, discord, anna, thread, quiet, rules={"quoted": 0})
    discord.people.say(thread, anna, "@Legato missed")
    discord.people.archive(thread)
    discord.people.archive(quiet)
    read = len(list(discord.journal.of("GET /channels/{channel}/messages")))
    async with on_discord(tmp_path, discord, anna, rules={"quoted": 0}) as bot:
        await bot.until_shown("echo: [Anna] first", "echo: [Anna] missed", chat=thread)
        await bot.quiet()
        assert bot.shown(quiet) == ["echo: [Anna] first"]
        assert len(list(discord.journal.of("GET /channels/{channel}/messages"))) == read + 1


async def test_what_was_opened_and_put_away_meanwhile_is_found(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    assert place.guild is not None
    forum = discord.people.channel(place.guild, "questions", kind=Kind.FORUM)
    await once(tmp_path, discord, anna, place)
    under = discord.people.thread_from(discord.people.say(place, anna, "Who knows?"), anna, "Under")
    alone = discord.people.thread(place, anna, "Alone")
    post = discord.people.post(forum, anna, "Post", "@Legato missed")
    old = discord.people.post(forum, anna, "Old", "not for you")
    for thread in (under, alone):
        discord.people.say(thread, anna, "@Legato missed")
    for thread in (under, alone, post, old):
        discord.people.archive(thread)
    for _ in range(2):  # once
        async with on_discord(tmp_path, discord, anna, rules={"quoted": 0}) as bot:
            for thread in (under, alone, post):
                await bot.until_shown("echo: [Anna] missed", chat=thread)
            await bot.quiet()
            assert bot.shown(old) == []


async def test_nothing_is_answered_twice(tmp_path: Path, discord: DiscordServer, anna: User, place: Channel) -> None:
    await once(tmp_path, discord, anna, place)
    discord.people.say(place, anna, "@Legato missed")
    for _ in range(2):
        async with on_discord(tmp_path, discord, anna, rules={"quoted": 0}) as bot:
            await bot.until_shown("echo: first", "echo: missed", chat=place)
            await bot.quiet()


async def test_a_long_pause_is_told_once_in_each_chat(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    await once(tmp_path, discord, anna, place)
    hours_ago = discord.cloud.clock.now() - 3 * 3600
    await set_notes(tmp_path, alive=f"{hours_ago:.0f}")
    for number in range(2):
        discord.people.say(place, anna, f"@Legato {number}")
    async with on_discord(tmp_path, discord, anna, rules={"quoted": 0}) as bot:
        shown = {"echo: first", AWAY.format("3 h"), "echo: 0", "echo: 1"}
        await bot.until(lambda: len(bot.shown(place)) == 4)
        assert set(bot.shown(place)) == shown


async def test_too_much_is_cut_and_that_is_said(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    await once(tmp_path, discord, anna, place)
    await set_notes(tmp_path, alive=f"{discord.cloud.clock.now() - 600:.0f}")
    for number in range(130):
        discord.people.say(place, anna, f"@Legato {number}")
    rules = {"quoted": 0, "catch_up": {"hours": 1, "messages": 2}}
    async with on_discord(tmp_path, discord, anna, rules=rules) as bot:
        await bot.until(lambda: {"echo: 128", "echo: 129"} <= set(bot.shown(place)))
        await bot.quiet()
        told = AWAY.format("10 minutes") + " There were many messages, so I looked only at the last 2 messages."
        assert set(bot.shown(place)) == {"echo: first", told, "echo: 128", "echo: 129"}


async def test_what_was_missed_waits_for_room_in_its_conversation(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    await once(tmp_path, discord, anna, place)
    for number in range(12):
        discord.people.say(place, anna, f"@Legato {number}")
    gate = Gate()
    model = FakeModel(in_turn(Say(text="echo: 0", gate=gate)))
    rules, turns = {"quoted": 0}, TurnSettings(lane_cap=3)
    async with on_discord(tmp_path, discord, anna, model=model, rules=rules, turns=turns) as bot:
        await gate.until_waiting()
        bot.says("@Legato live", place)
        gate.open()
        await bot.until_shown(*(f"echo: {each}" for each in ("first", *range(12), "live")), chat=place)


async def test_what_comes_meanwhile_waits_behind_what_was_missed(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    await once(tmp_path, discord, anna, place)
    discord.people.say(place, anna, "@Legato missed")
    discord.faults.add(Slow(seconds=0.2), method="GET /channels/{channel}/messages")
    async with on_discord(tmp_path, discord, anna, rules={"quoted": 0}) as bot:
        bot.says("@Legato live", place)
        await bot.until_shown("echo: first", "echo: missed", "echo: live", chat=place)


async def test_a_channel_that_cannot_be_read_is_tried_again(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    await once(tmp_path, discord, anna, place)
    discord.people.say(place, anna, "@Legato missed")
    discord.faults.add(Refuse(status=503), method="GET /channels/{channel}/messages", times=1)
    async with on_discord(tmp_path, discord, anna, rules={"quoted": 0}) as bot:
        await bot.until_shown("echo: first", "echo: missed", chat=place)


async def test_a_session_that_cannot_be_resumed_loses_nothing(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    async with on_discord(tmp_path, discord, anna, rules={"quoted": 0}) as bot:
        bot.says("@Legato first", place)
        await bot.until_shown("echo: first", chat=place)
        discord.invalidate()
        bot.says("@Legato second", place)
        await bot.until_shown("echo: first", "echo: second", chat=place)


async def test_of_many_channels_only_those_with_news_are_fetched(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel
) -> None:
    assert place.guild is not None
    channels = [discord.people.channel(place.guild, f"c{number}") for number in range(200)]
    for channel in channels:
        discord.people.say(channel, anna, "old talk")

    def fetched() -> list[str]:
        return [call.chat_id for call in discord.journal.of("GET /channels/{channel}/messages")]

    await once(tmp_path, discord, anna, place, rules={"quoted": 0})
    assert set(fetched()) <= {str(place.id)}
    discord.people.say(channels[7], anna, "@Legato missed")
    async with on_discord(tmp_path, discord, anna, rules={"quoted": 0}) as bot:
        await bot.until_shown("echo: missed", chat=channels[7])
        await bot.quiet()
    assert set(fetched()) <= {str(channels[7].id), str(place.id)}
