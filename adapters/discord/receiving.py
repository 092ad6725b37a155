"""Receipt of messages: each is stored before the next one of its channel.

The socket puts events into the queue of their channel at once. A worker for each channel that has any stores them in
order. After a new session, nobody sends what was missed, so a channel's worker fetches that first, and what comes
meanwhile waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, Final

import structlog
from discord import Guild, StageChannel, TextChannel, Thread, VoiceChannel
from discord.abc import GuildChannel
from discord.errors import DiscordException
from discord.http import Route
from msgspec import Struct

from adapters.discord import codec, failures
from adapters.discord.commands import SlashCommands
from adapters.discord.components import form_for
from adapters.discord.connection import DiscordClient
from adapters.discord.history import ChannelHistory
from adapters.discord.interactions import PRESSES, Interactions
from adapters.discord.listening import Listening
from adapters.discord.platform import DiscordSettings
from adapters.discord.reactions import reaction_inbound
from gateway.domain.adapter import Accept, Accepted, Admits, Notebook, Propose
from gateway.domain.chat import Inbound, Said, Source
from gateway.domain.command import Proposal
from gateway.domain.reading import (
    WITH,
    Channels,
    DirectChats,
    OddEvents,
    Reader,
    Recent,
    Written,
    absence,
    insist,
    is_admitted,
    written,
)
from gateway.runtime.clock import Clock
from gateway.runtime.errors import StoreUnavailable
from gateway.runtime.structs import replace

log = structlog.get_logger(__name__)

_THREAD_SECONDS: Final = 5.0
_OWN_CHAT_SECONDS: Final = 5.0
_COMMAND, _TYPES = 2, 4  # kinds of interactions; in the last a person types a command
_DOOR_SECONDS: Final = 1.0  # for the question who may talk, while Discord waits three seconds for a first word
_MOST_PUT_AWAY: Final = 100  # threads out of use that are looked at
_THREAD_MINUTES: Final = 1_440  # without a message, after which Discord puts a thread away

DELETED: Final = "the channel was deleted, or the bot was removed from it"


class _Event(Struct, frozen=True):
    kind: str
    data: Any
    acknowledged: asyncio.Task[None] | None = None


class Receiver:
    """Hands what Discord sends to `accept`. `direct` opens the chats of two."""

    def __init__(
        self,
        settings: DiscordSettings,
        clock: Clock,
        commands: SlashCommands,
        listening: Listening,
        direct: DirectChats,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._commands = commands
        self._listening = listening
        self._direct = direct
        self._reader: Reader[_Event] = Reader(clock, codec.snowflake, lambda: self._connection.connected_at)
        self._cursors = self._reader.cursors
        self._said: Recent[str, Written] = Recent()  # by the message's id
        self._alone: set[str] = set()  # channels where two talk
        self._since = 0.0  # when this session began (seconds since the epoch)
        self._odd = OddEvents(DiscordException)
        self._accept: Accept | None = None
        self.admits: Admits | None = None
        self.propose: Propose | None = None

    # -- lifetime ---------------------------------------------------------------------------

    async def run(
        self, accept: Accept, connection: DiscordClient, interactions: Interactions, notebook: Notebook, me: codec.Me
    ) -> None:
        """Read until cancelled. Raises AdapterError."""
        self._connection, self._interactions, self._me = connection, interactions, me
        self._history = ChannelHistory(self._settings, self._clock, connection)
        catch_up, given = self._settings.catch_up, (self._missed, self._meaning, self._concluded)
        try:
            await self._reader.run(accept, notebook, catch_up.hours, self._kept(accept), *given)
        finally:
            self._accept = None

    @property
    def _channels(self) -> Channels[_Event]:
        return self._reader.channels

    async def _kept(self, accept: Accept) -> None:
        self._accept = accept
        await self._connection.keep()

    # -- events -----------------------------------------------------------------------------

    def heard(self, kind: str, data: Any) -> None:
        """Something happened; this waits for nothing. Raises `failures.Unreadable` for what is of another shape."""
        if self._accept is None:
            return
        match kind:
            case "connected":
                self._begin_session()
            case "guild":
                self._look_at(data)
            case "ready":
                self._reader.crew.start(self._look_at_threads())
            case "gone":
                self._put(str(data), _Event(kind, data), alone=False)
            case "interaction" if codec.is_elsewhere(data) and not self._settings.user_install:
                pass  # the setting was on once; Discord tells the person that there is no answer
            case "interaction" if data.get("type") in (_COMMAND, *PRESSES):
                channel = _asked_in(data)
                acknowledged = self._reader.crew.start(self._contained(kind, self._acknowledge(data, channel)))
                if form_for(data["data"]) is None:  # one that opens a form says nothing yet
                    self._put(channel, _Event(kind, data, acknowledged), alone="guild_id" not in data)
            case "interaction" if data.get("type") == _TYPES:
                self._reader.crew.start(self._contained(kind, self._propose(data, _asked_in(data))))
            case "delete":
                channel = _numbers(data["channel_id"], data["id"])
                if channel in self._channels.waiting or data["id"] in self._said:
                    self._put(channel, _Event(kind, data), alone="guild_id" not in data)
            case "reaction" if self._is_on_own(data):
                channel = _numbers(data["channel_id"], data["message_id"])
                self._put(channel, _Event(kind, data), alone="guild_id" not in data)
            case "message" if self._is_own(data):
                self._cursors.advance(data["channel_id"], int(data["id"]), alone="guild_id" not in data)
            case "message" | "edit":
                self._put(_numbers(data["channel_id"], data["id"]), _Event(kind, data), alone="guild_id" not in data)

    async def lets_in(self, channel: str, person: str) -> codec.Json | None:
        """What Discord says of a member, if they may talk to the bot in this channel."""
        place = self._place(channel, None)
        member = await self._history.member(place, person)
        if member is None or member["user"].get("bot"):
            return None
        writer = codec.source(place, member["user"], member)
        return member if await is_admitted(self._clock, self.admits, writer) else None

    def listened(self, channel: str, member: codec.Json, recording: str, size: int) -> None:
        """Somebody said something in a voice channel."""
        if self._accept is not None:
            self._put(channel, _Event("said", {"member": member, "recording": recording, "size": size}), alone=False)

    def _is_own(self, data: Mapping[str, Any]) -> bool:
        """Whether the bot wrote a message, in a channel in which nothing waits before it: nothing is to do."""
        channel = _numbers(data["channel_id"], data["id"])
        return data["author"]["id"] == self._me.id and self._channels.is_idle(channel)

    def _is_on_own(self, data: Mapping[str, Any]) -> bool:
        """Whether a person's reaction may be on a message of the bot's, which Discord says of new ones alone. What
        somebody takes away in a channel that nobody reads begins no reading."""
        author: str = data.get("message_author_id", self._me.id if data["channel_id"] in self._channels.current else "")
        return author == self._me.id and self._me.id != str(data["user_id"])

    async def _contained(self, kind: str, work: Coroutine[Any, Any, None]) -> None:
        """Do what an event asks for; one that cannot be read ends nothing else."""
        with self._odd.contained(kind):
            await work

    async def _acknowledge(self, data: Mapping[str, Any], channel: str) -> None:
        """Say the first word. Nobody else learns of a stranger's command."""
        refused = False
        if data["type"] == _COMMAND and self.admits is not None:
            place = self._place(channel, data.get("guild_id"), alone="guild_id" not in data)
            said = codec.command_inbound(data, place, self._me, "", private=True, waited_for=False)
            with suppress(StoreUnavailable, TimeoutError):
                async with self._clock.limit(_DOOR_SECONDS):
                    refused = not await self.admits(said.source)
        await self._interactions.acknowledge(data, private=self._is_private(data), refused=refused)

    async def _propose(self, data: Mapping[str, Any], channel: str) -> None:
        place = self._place(channel, data.get("guild_id"), alone="guild_id" not in data)
        text = self._commands.typed(data["data"])
        proposals: Sequence[Proposal] = ()
        if self.propose is not None:
            with suppress(StoreUnavailable):
                proposals = await self.propose(
                    codec.command_inbound(data, place, self._me, text, private=True, waited_for=False)
                )
        await self._interactions.propose(data, proposals)

    def _put(self, channel: str, event: _Event, *, alone: bool) -> None:
        if alone:
            self._alone.add(channel)
        self._channels.put(channel, event)

    def _begin_session(self) -> None:
        self._since = self._clock.now()
        self._history.forget_members()
        self._reader.begin_session()
        for channel in self._cursors.alone():
            self._alone.add(channel)
            self._channels.put(channel)

    def _look_at(self, guild: Guild) -> None:
        """Look for messages in a guild's channels that nobody has read yet."""
        places: list[TextChannel | VoiceChannel | StageChannel | Thread] = [*guild.text_channels, *guild.threads]
        places += [*guild.voice_channels, *guild.stage_channels]
        for place in places:
            channel = str(place.id)
            if self._channels.is_known(channel):
                continue
            if (place.last_message_id or 0) > self._cursors.of(channel):
                self._channels.put(channel)
            else:
                self._channels.current.add(channel)

    async def _look_at_threads(self) -> None:
        """Look for such messages in threads that were put away since somebody read them: Discord lists only others."""
        for channel in self._cursors.put_away(self._channels.current | self._channels.waiting.keys())[:_MOST_PUT_AWAY]:
            await self._contained("thread", self._look_at_thread(channel, await self._history.channel(channel)))
        for forum in self._connection.forums():
            if (forum.last_message_id or 0) > self._cursors.of(str(forum.id)):
                await self._contained("thread", self._look_at_posts(str(forum.id)))

    async def _look_at_posts(self, forum: str) -> None:
        """Posts of a forum that were written and archived while nobody read them."""
        for post in await self._history.posts_put_away(forum):
            await self._look_at_thread(post["id"], post)

    async def _look_at_opened(self, message: Mapping[str, Any]) -> None:
        """A thread that was opened by a missed message, and may be put away by now."""
        if opened := message.get("thread"):
            await self._look_at_thread(opened["id"], opened)

    async def _look_at_thread(self, channel: str, data: Mapping[str, Any]) -> None:
        if self._channels.is_known(channel):
            return
        if int(data.get("last_message_id") or 0) > self._cursors.of(channel) and self._connection.knows_thread(data):
            self._channels.put(channel)

    # -- one channel ------------------------------------------------------------------------

    async def _missed(self, channel: str) -> tuple[Sequence[_Event], str]:
        """What was written in a channel while nobody read it, oldest first; and what the channel is told about that."""
        if channel.startswith(WITH):  # commands from elsewhere: Discord keeps none that were missed
            return [], ""
        if channel in self._alone and self._cursors.meet(channel):
            await insist(self._clock, "cursors_wait", self._reader.save)
        found: list[Mapping[str, Any]] = []
        is_cut = False
        oldest = partial(self._oldest_waiting, channel)
        with self._odd.contained("history"):
            found, is_cut = await self._history.missed(channel, self._cursors.of(channel), oldest)
        for each in found:
            await self._contained("thread", self._look_at_opened(each))
        notice = absence(self._reader.away, self._settings.catch_up.messages if is_cut else None)
        return [_Event("message", each) for each in found], notice

    def _oldest_waiting(self, channel: str) -> int | None:
        waiting = self._channels.waiting[channel]
        return min((int(each.data["id"]) for each in waiting if each.kind == "message"), default=None)

    def _concluded(self, channel: str, event: _Event, inbound: Inbound | None, fate: Accepted | None) -> None:
        if event.kind == "interaction":
            self._reader.crew.start(self._interactions.conclude(event.data, fate))
        elif event.kind == "message":
            self._cursors.advance(channel, int(event.data["id"]), alone=channel in self._alone)

    # -- one event --------------------------------------------------------------------------

    async def _meaning(self, channel: str, event: _Event) -> Inbound | None:
        with self._odd.contained(event.kind):
            return await self._inbound(channel, event)
        return None

    async def _inbound(self, channel: str, event: _Event) -> Inbound | None:
        data, alone = event.data, channel in self._alone
        if event.kind == "gone":
            return self._of_gone(str(data))
        if event.kind == "reaction":
            return reaction_inbound(data, self._place(channel, data.get("guild_id"), alone=alone), self._me)
        if event.kind == "said":
            return codec.said_inbound(data, self._place(channel, None), self._me, self._clock.now())
        said = self._said.get(data["id"])
        if event.kind == "delete":
            return said.withdrawn if said is not None else None
        place = self._place(channel, data.get("guild_id"), alone=alone)
        if event.kind == "interaction":
            if event.acknowledged is not None:
                await event.acknowledged
            return self._of_interaction(data, await self._own_chat(data, place))
        if event.kind == "edit" and not self._is_new(data, said):
            return None
        if event.kind == "edit" and said is not None:
            place = said.place
        self._history.see(data)
        is_meant = self._listening.hears(data, self._with_role(place, data), self._me)
        if not is_meant and not self._listening.overhears(data, place, self._me):
            return None
        me = replace(self._me, called=partial(self._called, place.guild)) if place.guild else self._me
        data = await self._history.with_member(data, place)
        opens = is_meant and event.kind == "message" and self._listening.opens_thread(place)
        before: tuple[Said, ...] = ()
        if is_meant and (opens or self._looks_back(data, place)) and await self._is_admitted(data, place):
            if not opens:
                before = await self._history.before(data, place, me)
            elif await self._opened_thread(data, place, me):
                within = (place.channel, *place.within)
                place = replace(place, channel=data["id"], within=within, is_thread=True, own=True)
        earlier: tuple[str, ...] = ()
        if event.kind == "edit":
            first = codec.event_id(self._me, place, data["id"], data["author"]["id"])
            earlier = said.events if said is not None else (first,)
        inbound = codec.message_inbound(data, place, me, before=before, amends=earlier)
        if inbound is not None and not is_meant:
            return replace(inbound, kind="overheard")
        if inbound is not None:
            self._said[data["id"]] = written(inbound, hash(data.get("content")), place)
        return inbound

    def _is_new(self, data: Mapping[str, Any], said: Written | None) -> bool:
        """Whether a change of a message is its writer's. Discord tells of a link's preview and of a pin in the same
        way, with the time of an earlier edit. A session is told of the edits since it began."""
        if not ("author" in data and data.get("edited_timestamp") and "content" in data):
            return False
        if said is not None:
            return said.words != hash(data["content"])
        return datetime.fromisoformat(data["edited_timestamp"]).timestamp() >= self._since

    async def _is_admitted(self, message: Mapping[str, Any], place: codec.Place) -> bool:
        writer = codec.source(place, message["author"], message.get("member") or {})
        return await is_admitted(self._clock, self.admits, writer)

    def _of_gone(self, channel: str) -> Inbound:
        source = Source(platform=codec.PLATFORM, chat=channel, chat_type="group", user="")
        return Inbound(event_id=f"gone:{channel}", source=source, kind="left", text=DELETED)

    def _of_interaction(self, data: Mapping[str, Any], place: codec.Place) -> Inbound:
        if data["type"] in PRESSES:
            return codec.press_inbound(data, place, self._me)
        text, name = self._commands.typed(data["data"]), data["data"]["name"]
        waited_for = self._is_private(data) or not self._commands.passes_on(name)
        return codec.command_inbound(data, place, self._me, text, private=self._is_private(data), waited_for=waited_for)

    async def _own_chat(self, data: Mapping[str, Any], place: codec.Place) -> codec.Place:
        """The place of an interaction; of one from elsewhere the person's own chat by the number that it has for their
        messages, too. Discord is asked for that only for people who may talk."""
        if not place.channel.startswith(WITH):
            return place
        writer = codec.source(place, {"id": codec.person_of(data)}, {})
        if await is_admitted(self._clock, self.admits, writer):
            with suppress(*failures.Foreign):
                async with self._clock.limit(_OWN_CHAT_SECONDS):
                    return replace(place, channel=await self._direct.id_of(place.channel))
        return place

    def _is_private(self, data: Mapping[str, Any]) -> bool:
        """Whether only the person who asked may see the answer. Elsewhere that is any: it comes from their own chat."""
        if codec.is_elsewhere(data):
            return True
        return "guild_id" in data and self._commands.is_private((data.get("data") or {}).get("name", ""))

    def _place(self, channel: str, guild: str | None, *, alone: bool = False) -> codec.Place:
        if channel.startswith(WITH):
            return codec.Place(channel=channel)
        found = None if alone else self._connection.get_channel(int(channel))
        if isinstance(found, Thread):
            parent = found.parent
            within = [str(found.parent_id), *([str(parent.category_id)] if parent and parent.category_id else [])]
            return codec.Place(
                channel=channel,
                guild=str(found.guild.id),
                within=tuple(within),
                is_thread=True,
                own=str(found.owner_id) == self._me.id,
                name=found.name,
            )
        if isinstance(found, GuildChannel):
            within = [str(found.category_id)] if found.category_id else []
            return codec.Place(channel=channel, guild=str(found.guild.id), within=tuple(within), name=found.name)
        if guild is None and not alone:
            raise LookupError(f"channel {channel} is not known")  # nobody may take it for a chat of two
        return codec.Place(channel=channel, guild=guild)

    def _called(self, guild: str, number: str) -> str:
        """What people call a channel or a role of a guild; empty if the bot does not know."""
        there = self._connection.get_guild(int(guild))
        found = there and (there.get_channel_or_thread(int(number)) or there.get_role(int(number)))
        return found.name if found else ""

    def _with_role(self, place: codec.Place, message: Mapping[str, Any]) -> codec.Place:
        guild = self._connection.get_guild(int(place.guild)) if place.guild and message.get("mention_roles") else None
        role = guild.self_role if guild is not None else None
        return place if role is None else replace(place, my_role=str(role.id))

    async def _opened_thread(self, message: Mapping[str, Any], place: codec.Place, me: codec.Me) -> bool:
        """Whether the message has a thread, which has the message's own id."""
        name = " ".join(codec.words(message, me).split())[:80] or "Conversation"
        route = Route(
            "POST",
            "/channels/{channel_id}/messages/{message_id}/threads",
            channel_id=place.channel,
            message_id=message["id"],
        )
        try:
            async with self._clock.limit(_THREAD_SECONDS):
                asked = {"name": name, "auto_archive_duration": _THREAD_MINUTES}
                await self._connection.calls.request(route, json=asked)
        except failures.Foreign as error:
            if getattr(error, "code", None) == failures.THREAD_EXISTS:
                return True
            log.warning("thread_not_opened", channel=place.channel, error=str(failures.mapped(error)))
            return False
        return True

    def _looks_back(self, message: Mapping[str, Any], place: codec.Place) -> bool:
        """Whether the model sees what was said before a message: not if the bot hears that anyway."""
        heard_anyway = place.guild is None or place.own or self._listening.mode(place) != "mention"
        return not heard_anyway and self._settings.quoted > 0 and not codec.words(message, self._me).startswith("/")


def _asked_in(data: Mapping[str, Any]) -> str:
    """The channel of an interaction; of one from where the bot is not, its person's own chat with the bot."""
    channel = _numbers(data.get("channel_id") or data["channel"]["id"], data["id"])
    return f"{WITH}{int(codec.person_of(data))}" if codec.is_elsewhere(data) else channel


def _numbers(channel: Any, number: Any) -> str:
    """A channel's id, if both are ids. Raises TypeError or ValueError."""
    int(number)
    return str(int(channel))
