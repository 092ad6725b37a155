"""Threads and posts that the bot opens, names and closes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest
from discord import ForumChannel, TextChannel, Thread

from adapters.discord.codec import NO_PINGS
from adapters.discord.connection import ApiClient, DiscordClient
from adapters.discord.topics import change_topic, open_topic
from gateway.domain.reading import WITH
from gateway.runtime.errors import DeliveryRefused


def connection(*, thread_in: type = TextChannel) -> DiscordClient:
    """Knows a channel (1), a forum (2), and a thread (3)."""
    channel, forum = Mock(TextChannel, id=1), Mock(ForumChannel, id=2)
    thread = Mock(Thread, id=3)
    thread.parent = channel if thread_in is TextChannel else forum
    return cast(DiscordClient, SimpleNamespace(get_channel={1: channel, 2: forum, 3: thread}.get))


class Calls:
    def __init__(self) -> None:
        self.asked: list[tuple[str, str, dict[str, Any]]] = []

    async def request(self, route: Any, *, json: dict[str, Any]) -> None:
        self.asked.append((route.method, route.url.partition("/channels/")[2], json))


THREAD = {"name": "Trip", "auto_archive_duration": 1_440, "type": 11}
POST = {"name": "Trip", "auto_archive_duration": 1_440}


@pytest.mark.parametrize(
    ("chat", "within", "text", "asked"),
    [
        ("1", TextChannel, "", ("1/threads", THREAD)),
        ("3", TextChannel, "Hello", ("1/threads", THREAD)),
        (
            "2",
            TextChannel,
            "Hello",
            ("2/threads", POST | {"message": {"content": "Hello", "allowed_mentions": NO_PINGS}}),
        ),
        ("3", ForumChannel, "", ("2/threads", POST | {"message": {"content": "Trip", "allowed_mentions": NO_PINGS}})),
    ],
)
async def test_a_topic_is_a_thread_or_a_post_of_the_forum(
    chat: str, within: type, text: str, asked: tuple[str, dict[str, Any]]
) -> None:
    calls = Calls()
    await open_topic(cast(ApiClient, calls), connection(thread_in=within), chat, "Trip", text)
    assert calls.asked == [("POST", *asked)]


@pytest.mark.parametrize(("closed", "changed"), [(False, {"name": "Trip"}), (True, {"archived": True, "locked": True})])
async def test_a_thread_is_named_or_closed(closed: bool, changed: dict[str, Any]) -> None:
    calls = Calls()
    await change_topic(cast(ApiClient, calls), connection(), "3", "Trip", closed=closed)
    assert calls.asked == [("PATCH", "3", changed)]


@pytest.mark.parametrize("chat", [f"{WITH}5", "9"])
async def test_where_there_are_no_threads_nothing_is_asked(chat: str) -> None:
    calls = Calls()
    with pytest.raises(DeliveryRefused):
        await open_topic(cast(ApiClient, calls), connection(), chat, "Trip", "")
    with pytest.raises(DeliveryRefused):
        await change_topic(cast(ApiClient, calls), connection(), "1" if chat == "9" else chat, "Trip", closed=True)
    assert calls.asked == []
