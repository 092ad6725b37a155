"""Threads and posts of forums that the bot opens, names and closes."""

from __future__ import annotations

from typing import Any, Final

from discord import ForumChannel, Thread
from discord.http import Route

from adapters.discord.codec import NO_PINGS
from adapters.discord.connection import ApiClient, DiscordClient
from gateway.domain.reading import WITH
from gateway.runtime.errors import DeliveryRefused

_PUBLIC: Final = 11  # https://discord.com/developers/docs/resources/channel#channel-object-channel-types
_MINUTES: Final = 1_440  # without a message, after which Discord puts a thread away


async def open_topic(calls: ApiClient, connection: DiscordClient, chat: str, name: str, text: str) -> None:
    """Open a thread in a channel, or next to this thread or post. Raises what the library raises."""
    found = None if chat.startswith(WITH) else connection.get_channel(int(chat))
    place = found.parent if isinstance(found, Thread) else found
    if place is None:
        raise DeliveryRefused("there are no threads in this chat")
    asked: dict[str, Any] = {"name": name, "auto_archive_duration": _MINUTES}
    if isinstance(place, ForumChannel):
        asked["message"] = {"content": text or name, "allowed_mentions": NO_PINGS}
    else:
        asked["type"] = _PUBLIC
    await calls.request(Route("POST", "/channels/{channel_id}/threads", channel_id=place.id), json=asked)


async def change_topic(calls: ApiClient, connection: DiscordClient, chat: str, name: str, *, closed: bool) -> None:
    """Name a thread, or close it: the bot's next message there opens it again, so it is locked, too. Raises what the
    library raises."""
    if chat.startswith(WITH) or not isinstance(connection.get_channel(int(chat)), Thread):
        raise DeliveryRefused("this is not a thread")
    changed: dict[str, Any] = {"archived": True, "locked": True} if closed else {"name": name}
    await calls.request(Route("PATCH", "/channels/{channel_id}", channel_id=chat), json=changed)
