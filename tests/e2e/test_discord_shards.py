"""A bot in so many servers that Discord wants several connections; and the line below its name."""

from __future__ import annotations

from pathlib import Path

from tests.emulators.discord import DiscordServer, Settings
from tests.support.discord_live import on_discord
from tests.support.fast_clock import FastClock
from tests.support.model import FakeModel, Gate, Say, in_turn


async def test_it_connects_as_often_as_discord_advises_and_each_connection_mends_itself(tmp_path: Path) -> None:
    clock = FastClock()
    async with DiscordServer(Settings(shards=2, heartbeat=2.0), limits=None, clock=clock) as discord:
        anna = discord.people.person("Anna")
        guilds = [discord.people.guild(f"Team {number}", anna) for number in range(8)]
        halves = [[each for each in guilds if (each.id >> 22) % 2 == number] for number in (0, 1)]
        assert all(halves), "each connection has guilds"
        places = [discord.people.general(half[0]) for half in halves]
        async with on_discord(tmp_path, discord, anna, clock=clock, rules={"status": "Ask me"}) as bot:
            await bot.until(lambda: bot.adapter._connection.connected_at is not None)
            sessions = {each.shard: each for each in discord.cloud.sessions.values()}
            assert sorted(sessions) == [(0, 2), (1, 2)]
            bot.says("alone")
            await bot.until_shown("echo: alone")
            for place in places:
                bot.says("@Legato first", place)
                await bot.until_shown("echo: first", chat=place)
            second = next(each for each in discord.cloud.connections if each.session is sessions[1, 2])
            second.close(4009)  # this session is over: what comes meanwhile is fetched
            bot.says("@Legato second", places[1])
            await bot.until_shown("echo: first", "echo: second", chat=places[1])
            bot.says("@Legato second", places[0])
            await bot.until_shown("echo: first", "echo: second", chat=places[0])
            shown = [each.presence["activities"][0]["state"] for each in discord.cloud.sessions.values() if each.send]
            assert shown == ["Ask me"] * 2


async def test_while_it_works_everybody_sees_in_how_many_chats(tmp_path: Path) -> None:
    clock, gate = FastClock(50.0), Gate()
    async with DiscordServer(limits=None, clock=clock) as discord:
        anna = discord.people.person("Anna")
        rules = {"status": "Ask me", "shows_work": True}
        model = FakeModel(in_turn(Say(text="There.", gate=gate)))

        def line() -> str:
            (session,) = discord.cloud.sessions.values()
            return str(session.presence["activities"][0]["state"]) if session.presence else ""

        async with on_discord(tmp_path, discord, anna, clock=clock, rules=rules, model=model) as bot:
            bot.says("Where?")
            await bot.until(lambda: line() == "Working in 1 chat")
            gate.open()
            await bot.until_shown("There.")
            await bot.until(lambda: line() == "Ask me")


async def test_too_few_are_told_of(tmp_path: Path) -> None:
    async with DiscordServer(Settings(shards=2), limits=None, clock=FastClock()) as discord:
        anna = discord.people.person("Anna")
        async with on_discord(tmp_path, discord, anna, connected=False, rules={"shards": 1}) as bot:
            await bot.until_ended()
            assert "Set adapters.discord.shards to auto" in (bot.gateway.readers.failure or "")
