"""What Slack is asked about: people's names, the messages before a mention, and those that were missed.

Nothing is asked because of somebody who may not talk.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

import structlog

from adapters.slack import codec
from adapters.slack.calls import SlackCalls
from gateway.domain.reading import Recent, answer_of
from gateway.domain.settings import CatchUp
from gateway.runtime.clock import Clock
from gateway.runtime.errors import AdapterError, DeliveryRefused

log = structlog.get_logger(__name__)

T = TypeVar("T")

_PAGE: Final = 200  # Slack recommends no more
_AT_ONCE: Final = 4  # channels whose missed messages are fetched at once
_LOOK_SECONDS: Final = 3.0  # for what the model is shown beside a message, which must not wait long
_MOST_THREADS: Final = 50  # of one channel that were written in meanwhile

Json = Mapping[str, Any]


class SlackHistory:
    """The past of the channels, as far as it is asked for, and the names of people and channels."""

    def __init__(self, calls: SlackCalls, clock: Clock) -> None:
        self._calls = calls
        self._clock = clock
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._known: Recent[str, str] = Recent()  # names by id
        self._own: Recent[str, bool] = Recent()  # whether a thread is the bot's, by its cursor
        self._places: Recent[tuple[str, str], codec.Place] = Recent()  # of messages with reactions

    # -- names ------------------------------------------------------------------------------

    async def names(self, people: Iterable[str]) -> Mapping[str, str]:
        """The names of these people; those that Slack does not tell are left out."""
        return {person: name for person in people if (name := await self._named(person, "users.info", user=person))}

    async def channel_name(self, place: codec.Place) -> str:
        """What people call a channel."""
        return "" if place.alone else await self._named(place.channel, "conversations.info", channel=place.channel)

    async def _named(self, thing: str, method: str, **asked: str) -> str:
        if thing not in self._known:
            try:
                async with self._clock.limit(_LOOK_SECONDS):
                    found = await self._calls(method, **asked)
            except DeliveryRefused as error:
                log.info("name_unknown", of=thing, error=str(error))
                found = {}
            except (AdapterError, TimeoutError):
                return ""
            user = found.get("user") or {}
            profile = user.get("profile") or {}
            told = profile.get("display_name") or user.get("real_name") or user.get("name")
            self._known[thing] = str(told or (found.get("channel") or {}).get("name") or "")
        return self._known[thing]

    # -- beside a message -------------------------------------------------------------------

    async def is_own(self, place: codec.Place, me: codec.Me) -> bool:
        """Whether a thread is the bot's: it wrote the first message, or is named in that. Waits until Slack
        says so: else a message to the bot would be lost."""
        if place.cursor not in self._own:
            asked: dict[str, Any] = {"channel": place.channel, "ts": place.thread, "limit": 1}
            page = await self._asked(place.channel, partial(self._calls, "conversations.replies", **asked))
            found: list[Json] = [*(page or {}).get("messages", ())]
            if not found:
                return False
            own = codec.is_named(found[0], me) or codec.author_of(found[0]) in (me.id, me.bot)
            self.note_thread(place, own=own)
        return self._own[place.cursor]

    async def place_of(self, channel: str, message: str) -> codec.Place:
        """Where a message is whose thread is unknown."""
        if (channel, message) not in self._places:
            with suppress(AdapterError, TimeoutError):
                async with self._clock.limit(_LOOK_SECONDS):
                    answer = await self._calls("conversations.replies", channel=channel, ts=message, limit=1)
                self._places[channel, message] = codec.place_of(answer["messages"][0], channel)
        return self._places.get((channel, message)) or codec.Place(channel=channel)

    def note_thread(self, place: codec.Place, *, own: bool) -> None:
        """Whose a thread is, is known."""
        self._own[place.cursor] = own

    async def before(self, message: Json, place: codec.Place, me: codec.Me, most: int) -> list[Json]:
        """The messages before a mention, since the bot's own last words, oldest first."""
        inside = place.thread not in (None, message["ts"])
        method = "conversations.replies" if inside else "conversations.history"
        how: dict[str, Any] = {"ts": place.thread} if inside else {}
        with suppress(AdapterError, TimeoutError):
            async with self._clock.limit(_LOOK_SECONDS):
                answer = await self._calls(
                    method, channel=place.channel, latest=message["ts"], limit=min(most, _PAGE), **how
                )
            found = sorted(answer.get("messages", ()), key=lambda each: codec.number(each["ts"]))
            found = [each for each in found if codec.number(each["ts"]) < codec.number(message["ts"])]
            mine = [at for at, each in enumerate(found) if codec.author_of(each) in (me.id, me.bot)]
            return found[mine[-1] + 1 if mine else 0 :]
        return []

    # -- what was missed --------------------------------------------------------------------

    async def channels(self, known: Iterable[str]) -> AsyncIterator[str]:
        """The channels and direct chats in which the bot is, after those that are known."""
        for channel in known:
            yield channel
        cursor = ""
        while True:
            wanted: dict[str, Any] = {"types": "im,mpim,public_channel,private_channel", "exclude_archived": True}
            page = await self._asked(
                "channels", partial(self._calls, "users.conversations", limit=_PAGE, cursor=cursor, **wanted)
            )
            for each in (page or {}).get("channels", ()):
                yield each["id"]
            cursor = ((page or {}).get("response_metadata") or {}).get("next_cursor", "")
            if not cursor:
                return

    async def missed(
        self, channel: str, since: Callable[[str], int], threads: Iterable[str], within: CatchUp
    ) -> tuple[list[Json], bool]:
        """The messages of a channel and of its threads, oldest first, and whether there were more than are looked at.
        `since`: up to which message a place is read, by its cursor; `threads`: those that are known."""
        oldest = codec.id_at(self._clock.now() - within.hours * 3600.0)
        found, cut = await self._read("conversations.history", channel, max(since(channel), oldest), within.messages)
        wanted = dict.fromkeys(threads)
        for each in found:
            if codec.number(each.get("latest_reply") or each["ts"]) > codec.number(each["ts"]):
                wanted[each["ts"]] = None
        for thread in [*wanted][:_MOST_THREADS]:
            after = max(since(codec.Place(channel=channel, thread=thread).cursor), oldest)
            replies, more = await self._read("conversations.replies", channel, after, within.messages, ts=thread)
            found += [each for each in replies if each["ts"] != thread]
            cut = cut or more
        return sorted(found, key=lambda each: codec.number(each["ts"])), cut

    async def _read(self, method: str, channel: str, since: int, most: int, **where: str) -> tuple[list[Json], bool]:
        found: list[Json] = []
        cursor = ""
        while True:
            asked: dict[str, Any] = {
                "channel": channel,
                "oldest": codec.ts(since),
                "limit": _PAGE,
                "cursor": cursor,
                **where,
            }
            page = await self._asked(channel, partial(self._calls, method, **asked))
            found += [each for each in (page or {}).get("messages", ()) if codec.number(each["ts"]) > since]
            cursor = ((page or {}).get("response_metadata") or {}).get("next_cursor", "")
            enough = len(found) > most and method == "conversations.history"  # newest first; replies come oldest first
            if not cursor or enough:
                found.sort(key=lambda each: codec.number(each["ts"]))
                return found[-most:] if most else [], len(found) > most

    async def _asked(self, channel: str, call: Callable[[], Awaitable[T]]) -> T | None:
        return await answer_of(self._clock, self._room, channel, call)
