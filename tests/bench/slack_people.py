"""Slack and a person in its channels, as a process of their own: as `discord_people`."""

from __future__ import annotations

import asyncio
import json
import sys
import time

from tests.bench.telegram_people import MOST
from tests.bench.world import REPLY, said
from tests.emulators.slack import Channel, SlackServer, User


async def _talk(slack: SlackServer, person: User, channels: list[Channel], each: int) -> float:
    """The seconds that it took."""
    start = time.perf_counter()
    for channel in channels:
        channel.messages.clear()
    for number in range(each):
        for channel in channels:
            slack.people.say(channel, person, said(number))
        wanted = number + 1
        await slack.until(lambda wanted=wanted: all(_answers(channel) >= wanted for channel in channels))
    return time.perf_counter() - start


def _answers(channel: Channel) -> int:
    return sum(message.visible == REPLY for message in channel.messages)


async def _serve() -> None:
    async with SlackServer(limited=False, keep=2_000) as slack:
        person = slack.people.person("Anna")
        channels = [slack.people.channel(f"c{number}", person) for number in range(MOST)]
        print(json.dumps({"base_url": slack.api_url, "token": slack.settings.token}), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            count, each = map(int, line.split())
            await slack.until(lambda: slack.connected)
            seconds = await _talk(slack, person, channels[:count], each)
            print(json.dumps({"seconds": seconds, "refused": 0}), flush=True)


if __name__ == "__main__":
    asyncio.run(_serve())
