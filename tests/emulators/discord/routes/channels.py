"""Channels: what they are, and that the bot types in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.emulators.discord.access import channel_of, need_writing
from tests.emulators.discord.asked import Asked
from tests.emulators.discord.cloud import Cloud

TYPING: Final = 10.0  # seconds for which a person sees it, unless a message comes first


def channel(cloud: Cloud, asked: Asked) -> Any:
    """`GET /channels/{channel}`."""
    return channel_of(cloud, asked.identity("channel")).as_json(cloud.bot)


def typing(cloud: Cloud, asked: Asked) -> Any:
    """`POST /channels/{channel}/typing`."""
    where = channel_of(cloud, asked.identity("channel"))
    need_writing(cloud, where)
    where.typing[cloud.bot.id] = cloud.clock.monotonic() + TYPING
    return None


ROUTES: Final[Mapping[str, Callable[[Cloud, Asked], Any]]] = {
    "GET /channels/{channel}": channel,
    "POST /channels/{channel}/typing": typing,
}
