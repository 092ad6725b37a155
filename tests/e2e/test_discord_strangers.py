"""Nothing is asked of Discord, opened there or logged because of somebody who may not talk."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.emulators.discord import Channel, DiscordServer, User
from tests.support.discord_live import on_discord
from tests.support.live_bot import talk_in
from tests.support.waiting import eventually


@pytest.fixture
def eve(discord: DiscordServer, place: Channel) -> User:
    """Somebody in Anna's server who may not talk to the bot."""
    eve = discord.people.person("Eve")
    assert place.guild is not None
    discord.people.join(place.guild, eve)
    return eve


def asked_of(discord: DiscordServer, method: str) -> int:
    return len(list(discord.journal.of(method)))


@pytest.mark.parametrize("pairing", [True, False])
@pytest.mark.parametrize("listen", ["mention", "thread", "free"])
async def test_a_stranger_costs_no_request_no_thread_and_no_line(
    tmp_path: Path,
    discord: DiscordServer,
    anna: User,
    eve: User,
    place: Channel,
    listen: str,
    pairing: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rules = {"listen": listen}
    async with on_discord(tmp_path, discord, anna, rules=rules, pairing=pairing) as bot:
        await bot.until(lambda: "new" in discord.people.commands(place))
        for count, chat in enumerate((place, bot.chat), 1):  # whose missed messages have been looked for then
            bot.says("@Legato One", chat)
            await eventually(lambda most=count: len(bot.model.requests) == most)
        await bot.quiet()
        before = len(discord.journal.calls)
        capsys.readouterr()
        for number in range(100):
            discord.people.edit(discord.people.say(place, eve, f"@Legato {number}"), f"@Legato {number}, please")
        bot.says("Two")
        await bot.until(lambda: bot.shown()[-1:] == ["echo: Two"])
        told = capsys.readouterr().out
        made = [
            call.method
            for call in list(discord.journal.calls)[before:]
            if not call.method.startswith(("send", "receive"))
        ]
        assert set(made) <= {
            "POST /channels/{channel}/messages",
            "POST /channels/{channel}/typing",
            "PATCH /channels/{channel}/messages/{message}",
        }
        assert all(message.thread is None for message in place.visible if message.author is eve)
        assert told.count(str(eve.id)) <= 1
        assert len(told.splitlines()) < 50


async def test_whoever_a_role_lets_in_is_shown_what_was_said(
    tmp_path: Path, discord: DiscordServer, anna: User, eve: User, place: Channel
) -> None:
    assert place.guild is not None
    role = discord.people.role(place.guild, "singers", eve)
    async with on_discord(tmp_path, discord, anna, allow=(f"discord:role-{role.id}",)) as bot:
        bot.says("I sing alto", place)
        discord.people.say(place, eve, "@Legato who sings?")
        await bot.until(lambda: discord.shown(place))
        ((_, heard),) = bot.model.spoken(0)
        assert talk_in(heard) == ["Anna: “I sing alto”"]


async def test_the_member_of_missed_messages_is_asked_for_once(
    tmp_path: Path, discord: DiscordServer, anna: User, eve: User, place: Channel
) -> None:
    assert place.guild is not None
    role = discord.people.role(place.guild, "singers", eve)
    allow = (f"discord:role-{role.id}",)
    async with on_discord(tmp_path, discord, anna, allow=allow, rules={"quoted": 0}) as bot:
        bot.says("@Legato first", place)
        await bot.until_shown("echo: first", chat=place)
        await bot.quiet()
    stranger = discord.people.person("Stan")
    discord.people.join(place.guild, stranger)
    for number in range(20):
        discord.people.say(place, eve, f"@Legato {number}")
        discord.people.say(place, stranger, f"@Legato {number}")
    async with on_discord(tmp_path, discord, anna, allow=allow, rules={"quoted": 0}) as bot:
        await bot.until_shown("echo: first", *(f"echo: {number}" for number in range(20)), chat=place)
    assert asked_of(discord, "GET /guilds/{guild}/members/{user}") == 2
