"""Discord and a person in its channels, as a process of their own: each line "CHANNELS EACH" is a round, told by one
line of JSON.

In a round the person says EACH things in each of CHANNELS channels, one after the answers to the last; its seconds are
from the first message to the last answer.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from functools import partial

from tests.bench.telegram_people import MOST
from tests.bench.world import REPLY, said
from tests.emulators.discord import Channel, DiscordServer, Settings, User


def _answers(channel: Channel) -> int:
    return sum(message.content == REPLY for message in channel.messages.values())


async def _talk(discord: DiscordServer, person: User, channels: list[Channel], each: int) -> float:
    """The seconds that it took."""
    start = time.perf_counter()
    for number in range(each):
        wanted = {channel.id: _answers(channel) + 1 for channel in channels}
        for channel in channels:
            discord.people.say(channel, person, said(number))
        await discord.until(partial(_are_answered, channels, wanted))
    return time.perf_counter() - start


def _are_answered(channels: list[Channel], wanted: dict[int, int]) -> bool:
    return all(_answers(channel) >= wanted[channel.id] for channel in channels)


async def _serve() -> None:
    async with DiscordServer(Settings(identify_every=0), limits=None, keep=2_000) as discord:
        person = discord.people.person("Anna")
        guild = discord.people.guild("Choir", person)
        channels = [discord.people.channel(guild, f"c{number}") for number in range(MOST)]
        print(json.dumps({"base_url": discord.api_url, "token": discord.token}), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            count, each = map(int, line.split())
            await discord.until(lambda: discord.connected)
            seconds = await _talk(discord, person, channels[:count], each)
            print(json.dumps({"seconds": seconds, "refused": 0}), flush=True)


if __name__ == "__main__":
    asyncio.run(_serve())
