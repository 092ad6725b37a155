"""What Discord is asked about messages: those before a mention, those that were missed, and who wrote them. Nothing is
asked because of somebody who may not talk, except, for missed messages, whether a role lets them in."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar, cast

from discord import ForumChannel
from discord.http import Route

from adapters.discord import codec, failures
from adapters.discord.connection import DiscordClient
from adapters.discord.platform import DiscordSettings
from gateway.domain.chat import Said
from gateway.domain.reading import Recent, answer_of
from gateway.runtime.clock import Clock
from gateway.runtime.errors import DeliveryRefused

T = TypeVar("T")

_PAGE: Final = 100  # https://discord.com/developers/docs/resources/message#get-channel-messages
_LOOK_BACK_SECONDS: Final = 3.0  # for what was said before a mention: the mention itself must not wait long
_MOST_SEEN: Final = 10_000  # people whose roles are remembered
_AT_ONCE: Final = 8  # channels whose missed messages are fetched at once

Json = Mapping[str, Any]


class ChannelHistory:
    """The past of the channels, as far as it is asked for. Two fields change: `_members`, of those who wrote while
    nobody read, by guild and person; and `_seen`, of those who wrote since."""

    def __init__(self, settings: DiscordSettings, clock: Clock, connection: DiscordClient) -> None:
        self._settings = settings
        self._clock = clock
        self._connection = connection
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._members: dict[tuple[str, str], Json] = {}
        self._seen: Recent[tuple[str, str], Json] = Recent(_MOST_SEEN)

    # -- before a mention -------------------------------------------------------------------

    def see(self, message: Json) -> None:
        """Remember the roles of a message's writer: one that is looked up later does not tell them."""
        if "member" in message and "author" in message:
            self._seen[message.get("guild_id", ""), message["author"]["id"]] = message["member"]

    async def before(self, message: Json, place: codec.Place, me: codec.Me) -> tuple[Said, ...]:
        """Return what people wrote before a mention; in a thread with the message that it began from."""
        limit = min(self._settings.quoted, _PAGE)
        with suppress(*failures.Foreign):
            async with self._clock.limit(_LOOK_BACK_SECONDS):
                found = await self._connection.calls.logs_from(int(place.channel), limit, before=int(message["id"]))
            newer: list[Json] = []
            for each in found:
                if each["type"] == codec.STARTER:
                    newer.append(cast(Any, each.get("referenced_message") or each))
                elif each["author"]["id"] != me.id:
                    newer.append(each)
            if place.is_thread and len(found) == limit:
                newer += await self._first_of(place)
            known = [
                {"member": self._seen.get((place.guild or "", each["author"]["id"]), {}), **each} for each in newer
            ]
            return codec.quoted(known[::-1], place, me)
        return ()

    async def _first_of(self, thread: codec.Place) -> list[Json]:
        """The message that a thread began from, which has the thread's id; a forum's stands in the thread itself."""
        parent, *_ = thread.within
        where = thread.channel if isinstance(self._connection.get_channel(int(parent)), ForumChannel) else parent
        with suppress(*failures.Foreign):
            async with self._clock.limit(_LOOK_BACK_SECONDS):
                return [cast(Any, await self._connection.calls.get_message(int(where), int(thread.channel)))]
        return []

    # -- what was missed --------------------------------------------------------------------

    async def missed(self, channel: str, since: int, oldest: Callable[[], int | None]) -> tuple[list[Json], bool]:
        """The messages of a channel after `since`, oldest first, and whether there were more than are looked at.
        `oldest`: the id of the first one that was read meanwhile. Raises one of `failures.Unreadable`."""
        return await self._asked(channel, partial(self._missed, channel, since, oldest)) or ([], False)

    async def _missed(self, channel: str, since: int, oldest: Callable[[], int | None]) -> tuple[list[Json], bool]:
        most, hours = self._settings.catch_up.messages, self._settings.catch_up.hours
        since = max(since, codec.snowflake(self._clock.now() - hours * 3600.0))
        before = oldest()
        found: list[Json] = []
        while len(found) <= most:
            page = await self._connection.calls.logs_from(int(channel), _PAGE, before=before)
            newer = [each for each in page if int(each["id"]) > since]
            found += newer
            if len(newer) < len(page) or len(page) < _PAGE:
                break
            before = int(page[-1]["id"])
        return found[:most][::-1], len(found) > most

    async def channel(self, channel: str) -> Json:
        """What a channel is now; empty where the bot may not look."""
        route = Route("GET", "/channels/{channel_id}", channel_id=channel)
        return await self._asked(channel, partial(self._connection.calls.request, route)) or {}

    async def posts_put_away(self, forum: str) -> list[Json]:
        """The posts of a forum that were put away last; none where the bot may not look."""
        route = Route("GET", "/channels/{channel_id}/threads/archived/public", channel_id=forum)
        found = await self._asked(forum, partial(self._connection.calls.request, route)) or {}
        return list(found.get("threads", ()))

    async def with_member(self, message: Json, place: codec.Place) -> Json:
        """A fetched message with its writer's roles, by which they may be allowed."""
        if place.guild is None or "member" in message:
            return message
        who = place.guild, message["author"]["id"]
        if who not in self._members:
            self._members[who] = await self.member(place, who[1]) or {}  # who has left has no roles
        return {**message, "member": self._members[who]}

    async def member(self, place: codec.Place, person: str) -> Json | None:
        """A member of a place's guild, as they are now; None: they have left."""
        route = Route("GET", "/guilds/{guild_id}/members/{user_id}", guild_id=place.guild, user_id=person)
        return await self._asked(place.channel, partial(self._connection.calls.request, route))

    def forget_members(self) -> None:
        """Their roles may be others by now."""
        self._members.clear()

    async def _asked(self, channel: str, call: Callable[[], Awaitable[T]]) -> T | None:
        async def mapped() -> T:
            try:
                return await call()
            except failures.Foreign as error:
                found = failures.mapped(error)
                is_final = getattr(error, "status", 0) in (400, 401, 403, 404)
                raise (DeliveryRefused(str(found)) if is_final else found) from error

        return await answer_of(self._clock, self._room, channel, mapped)
