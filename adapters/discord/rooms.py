"""The bot in voice channels, where it says its answers aloud, and listens if it is asked to.

None of it is stored: after a restart it is not there. https://discord.com/developers/docs/topics/voice-connections. The
library speaks with Discord's voice servers, from a thread of its own, and needs the extra `voice` for that. The sound
is already Opus, so its packets go out unchanged.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Final

import structlog
from discord import AudioSource, Guild, VoiceChannel, VoiceClient

from adapters.discord import codec, failures
from adapters.discord.connection import CLOSING_SECONDS, DiscordClient
from adapters.discord.voice import packets_of
from gateway.domain.chat import ChatAddress, Outbound
from gateway.domain.reading import WITH
from gateway.domain.speech import recorded_seconds
from gateway.runtime.clock import Clock
from gateway.runtime.errors import FileRefused, UserError
from gateway.runtime.tasks import Background

if TYPE_CHECKING:
    from adapters.discord.hearing import Ears

log = structlog.get_logger(__name__)

NO_SERVER: Final = "Send this command on the server where I should join a voice channel."
NOWHERE: Final = "Join a voice channel first, then send /voice join again."
ELSEWHERE: Final = (
    "Send this command in the text chat of {name}, so that everybody in the voice channel sees that I am listening."
)
NO_RIGHT: Final = "I need the permissions View Channel, Connect and Speak in the voice channel {name}."
UNREACHED: Final = "I could not join {name}: Discord's voice server did not let me in. Try again in a minute."
HEARD: Final = "heard/"  # begins the name of a recording
ALONE_SECONDS: Final = 180.0
_JOIN_SECONDS: Final = 15.0
_MOST: Final = 30_000  # packets that wait, ten minutes
_PACKET_SECONDS: Final = 0.02  # the library sends one each time
_INEXACT: Final = 0.1  # seconds by which a file's length may differ from its packets'
_MOST_HEARD: Final = 16 * 1024 * 1024  # bytes of recordings that wait to be written down
LOST: Final = "I no longer have the recording, so please say it again"
_HEADS: Final = 2  # packets of an Ogg file with Opus that are no sound


class _Room(AudioSource):
    """A voice channel that the bot is in. `to`: the chat whose answers it says there; `waiting`: the packets that are
    still to be heard, which the library's thread takes away; `said`: the event that the newest of them answers;
    `hushed`: the one that nobody wants to hear any more about; `alone`: leaves in a while; `ears`: listen there."""

    def __init__(self, to: ChatAddress, voice: VoiceClient, ears: Ears | None) -> None:
        self.to, self.voice, self.ears = to, voice, ears
        self._number = voice.guild.id
        self.waiting = deque[bytes]()
        self.said: str | None = None
        self.hushed: str | None = None
        self.alone: asyncio.Task[None] | None = None

    def read(self) -> bytes:
        with suppress(IndexError):
            return self.waiting.popleft()
        return b""

    def is_opus(self) -> bool:
        return True

    @property
    def guild(self) -> Guild:
        """Its server as it is now: a new session makes another object of it, and the voice keeps the old one."""
        return self.voice.client.get_guild(self._number) or self.voice.guild

    @property
    def is_held(self) -> bool:
        """Whether the bot is still there: Discord or a moderator may have thrown it out."""
        return self.guild.voice_client is self.voice

    @property
    def is_elsewhere(self) -> bool:
        """Whether it is in another channel than the one whose chat this is: somebody has moved it."""
        voice = self.guild.me.voice
        return voice is not None and voice.channel is not None and str(voice.channel.id) != self.to.chat

    @property
    def is_empty(self) -> bool:
        """Whether nobody else is there."""
        me = self.guild.me
        channel = me.voice.channel if me.voice is not None else None
        return channel is None or not channel.voice_states.keys() - {me.id}

    def go_on(self) -> None:
        """Say what waits, if nothing is being said."""
        if self.waiting and self.voice.is_connected() and not self.voice.is_playing():
            loop = asyncio.get_running_loop()
            self.voice.play(self, after=lambda _: loop.call_soon_threadsafe(self.go_on))


class Rooms:
    """At most one of each server, as Discord has it. `lets_in`: what Discord says of a person, if they may talk to the
    bot in this channel; `heard`: takes what somebody said in it, the recording's name, and its size in bytes."""

    def __init__(
        self,
        client: DiscordClient,
        clock: Clock,
        lets_in: Callable[[str, str], Awaitable[codec.Json | None]],
        heard: Callable[[str, codec.Json, str, int], None],
    ) -> None:
        self._client = client
        self._clock = clock
        self._lets_in, self._heard = lets_in, heard
        self._recordings: dict[str, bytes] = {}
        self._rooms: dict[int, _Room] = {}  # by server
        self._changing = asyncio.Lock()
        self._leaving = Background()
        client.follow_voices(self._look, self.aclose)

    async def join(self, to: ChatAddress, person: str, *, listens: bool) -> str:
        chat = None if to.chat.startswith(WITH) else self._client.get_channel(int(to.chat))
        guild = getattr(chat, "guild", None)
        if not isinstance(guild, Guild):
            raise UserError(NO_SERVER)
        there = next((each for each in guild.voice_channels if int(person) in each.voice_states), None)
        if there is None:
            raise UserError(NOWHERE)
        rights = there.permissions_for(guild.me)
        if not (rights.view_channel and rights.connect and rights.speak):
            raise UserError(NO_RIGHT.format(name=there.name))
        if listens and to.chat != str(there.id):
            raise UserError(ELSEWHERE.format(name=there.name))
        async with self._changing:
            room = self._rooms.get(guild.id)
            fits = room is not None and room.voice.channel == there and (room.ears is not None) == listens
            if room is not None and not (room.is_held and fits):
                await self._leave(guild.id, goes_on=True)
                room = None
            if room is None:
                room = self._rooms[guild.id] = await self._entered(to, there, listens=listens)
            room.to = to
        self._look(guild.id)
        return there.name

    async def _entered(self, to: ChatAddress, there: VoiceChannel, *, listens: bool) -> _Room:
        how: Callable[..., VoiceClient] = VoiceClient
        ears: Ears | None = None
        if listens:  # by name: its libraries are an extra
            hearing, channel = import_module("adapters.discord.hearing"), to.chat
            ears = hearing.Ears(self._clock, partial(self._lets_in, channel), partial(self._said, channel))
            how = partial(hearing.HearingClient, ears=ears)
        try:
            return _Room(to, await there.connect(timeout=_JOIN_SECONDS, self_deaf=not listens, cls=how), ears)
        except failures.Foreign as error:
            if ears is not None:
                await ears.aclose()
            log.warning("voice_channel_unreached", channel=str(there.id), error=repr(error))
            raise UserError(UNREACHED.format(name=there.name)) from error

    def _said(self, channel: str, member: codec.Json, recording: bytes) -> None:
        name = f"{HEARD}{codec.snowflake(self._clock.now())}-{member['user']['id']}"
        self._recordings[name] = recording
        while sum(map(len, self._recordings.values())) > _MOST_HEARD:
            self._recordings.pop(next(iter(self._recordings)))
        self._heard(channel, member, name, len(recording))

    def recording(self, name: str) -> bytes:
        """What somebody said. Raises FileRefused if too much was said since, or in another process."""
        if name not in self._recordings:
            raise FileRefused(LOST)
        return self._recordings[name]

    async def leave(self, to: ChatAddress) -> bool:
        async with self._changing:
            room = self._room(to)
            return room is not None and await self._leave(room.guild.id)

    async def _leave(self, guild: int, *, goes_on: bool = False) -> bool:
        room = self._rooms.pop(guild, None)
        if room is not None and room.ears is not None:
            await room.ears.aclose()
        if room is None or not room.is_held:
            return False
        room.waiting.clear()
        room.voice.stop()
        with suppress(*failures.Foreign):
            async with self._clock.limit(CLOSING_SECONDS):
                # Discord's yes would end the next connection, so whoever goes on elsewhere waits for it.
                await room.voice._connection.disconnect(force=True, wait=goes_on)
        return True

    def speaks(self, to: ChatAddress) -> bool:
        return self._room(to) is not None

    def _room(self, to: ChatAddress) -> _Room | None:
        return next((each for each in self._rooms.values() if each.to == to and each.is_held), None)

    def say(self, outbound: Outbound, content: bytes) -> bool:
        """Say an answer's sound after what is being said; False if it cannot be said aloud."""
        room = self._room(outbound.to)
        if room is None:
            return False
        packets = [*packets_of(content)][_HEADS:]
        wrong = abs(len(packets) * _PACKET_SECONDS - (recorded_seconds(content, "ogg") or 0.0)) > _INEXACT
        if wrong or len(room.waiting) + len(packets) > _MOST:
            log.warning("voice_channel_cannot", outbound=outbound.id, packets=len(packets), waiting=len(room.waiting))
            return False
        if room.hushed is None or outbound.answers != room.hushed:
            room.said = outbound.answers
            room.waiting.extend(packets)
            room.go_on()
        return True

    def hush(self, to: ChatAddress) -> bool:
        room = self._room(to)
        if room is None or not (room.waiting or room.voice.is_playing()):
            return False
        room.waiting.clear()
        room.voice.stop()
        room.hushed = room.said
        return True

    def _look(self, guild: int) -> None:
        """Somebody came or went: the bot leaves once it has been alone for a while, and where it listens but nobody was
        told so, at once."""
        room = self._rooms.get(guild)
        if room is not None and room.ears is not None and room.is_elsewhere:
            self._leaving.start_once(self._leave_at_once(guild, room), name=f"moved {guild}")
        if room is None or room.is_empty == (room.alone is not None):
            return
        if room.alone is None:
            room.alone = self._leaving.start(self._leave_later(guild, room), name=f"alone {guild}")
        else:
            room.alone.cancel()
            room.alone = None

    async def _leave_at_once(self, guild: int, room: _Room) -> None:
        if room.ears is not None:
            await room.ears.aclose()
        async with self._changing:
            if self._rooms.get(guild) is room:
                log.info("voice_channel_left_moved", guild=str(guild))
                await self._leave(guild)

    async def _leave_later(self, guild: int, room: _Room) -> None:
        await self._clock.sleep(ALONE_SECONDS)
        async with self._changing:
            if self._rooms.get(guild) is room and room.is_empty:
                log.info("voice_channel_left_alone", guild=str(guild))
                await self._leave(guild)

    async def aclose(self) -> None:
        """Leave all of them. Idempotent."""
        await self._leaving.aclose()
        for guild in list(self._rooms):
            await self._leave(guild)
