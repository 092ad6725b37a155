"""The bot in voice channels, where it says its answers aloud. Nothing of that is stored: after a restart it is not there.

https://discord.com/developers/docs/topics/voice-connections. The library speaks with Discord's voice servers, from a
thread of its own, and needs the extra `voice` for that. The sound is Opus already, so its packets go out as they are.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import Final

import structlog
from discord import AudioSource, Guild, VoiceChannel, VoiceClient
from discord.errors import ClientException

from adapters.discord import failures
from adapters.discord.connection import CLOSING_SECONDS, DiscordClient
from adapters.discord.limits import WITH
from adapters.discord.voice import packets_of
from gateway.domain.chat import ChatAddress, Outbound
from gateway.runtime.clock import Clock
from gateway.runtime.errors import UserError
from gateway.runtime.tasks import Background

log = structlog.get_logger(__name__)

NO_SERVER: Final = "Say that in a channel of the server whose voice channel I should join."
NOWHERE: Final = "Join a voice channel first, then say /voice join again."
NO_RIGHT: Final = "I need the permissions View Channel, Connect and Speak in {name}."
UNREACHED: Final = "I could not get into {name}: Discord's voice server did not let me in. Try again in a minute."
ALONE_SECONDS: Final = 180.0
_JOIN_SECONDS: Final = 15.0
_MOST: Final = 30_000  # packets that wait, ten minutes
_PACKET_MS: Final = 20  # the library sends one each 20 ms
_HEADS: Final = 2  # packets of an Ogg file with Opus that are no sound
_FRAMES: Final = {**dict.fromkeys(range(12), (10, 20, 40, 60)), **dict.fromkeys(range(12, 16), (10, 20, 10, 20))}
_CELT: Final = (2.5, 5, 10, 20)


class _Sound(AudioSource):
    """The packets that are still to be heard. The library's thread takes them away."""

    def __init__(self) -> None:
        self.waiting: deque[bytes] = deque()

    def read(self) -> bytes:
        """The next one; b"" where there is none."""
        with suppress(IndexError):
            return self.waiting.popleft()
        return b""

    def is_opus(self) -> bool:
        return True


class _Room:
    """A voice channel that the bot is in. `to`: the chat whose answers it says there; `said`: the event that the newest
    sound answers; `hushed`: the one that nobody wants to hear any more about."""

    def __init__(self, to: ChatAddress, voice: VoiceClient) -> None:
        self.to, self.voice = to, voice
        self.sound = _Sound()
        self.said: str | None = None
        self.hushed: str | None = None
        self.alone: asyncio.Task[None] | None = None  # which leaves in a while


class Rooms:
    """At most one of each server, as Discord has it."""

    def __init__(self, client: DiscordClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._rooms: dict[int, _Room] = {}  # by server
        self._changing = asyncio.Lock()
        self._leaving = Background()

    async def join(self, to: ChatAddress, person: str) -> str:
        """Go where this person is, and say the chat's answers there; returns the channel's name. Raises UserError."""
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
        async with self._changing:
            room = self._rooms.get(guild.id)
            if room is None or not self._holds(room) or room.voice.channel != there:
                await self._leave(guild.id)
                room = _Room(to, await self._connected(there))
            room.to = to
            self._rooms[guild.id] = room
        self.look(guild.id)
        return there.name

    async def _connected(self, there: VoiceChannel) -> VoiceClient:
        try:
            return await there.connect(timeout=_JOIN_SECONDS, self_deaf=True)
        except (TimeoutError, ClientException, *failures.Foreign) as error:
            log.warning("voice_channel_unreached", channel=str(there.id), error=repr(error))
            raise UserError(UNREACHED.format(name=there.name)) from error

    async def leave(self, to: ChatAddress) -> bool:
        """Leave the voice channel of this chat, if the bot is in one."""
        async with self._changing:
            room = self._room(to)
            return room is not None and await self._leave(room.voice.guild.id)

    async def _leave(self, guild: int) -> bool:
        room = self._rooms.pop(guild, None)
        if room is not None:
            room.sound.waiting.clear()
            with suppress(TimeoutError, *failures.Foreign):
                async with self._clock.limit(CLOSING_SECONDS):
                    await room.voice.disconnect(force=True)
        return room is not None

    def speaks(self, to: ChatAddress) -> bool:
        """Say whether this chat's answers are said in a voice channel."""
        return self._room(to) is not None

    def _room(self, to: ChatAddress) -> _Room | None:
        return next((each for each in self._rooms.values() if each.to == to and self._holds(each)), None)

    def _holds(self, room: _Room) -> bool:
        """Say whether the bot is still there: Discord or a moderator may have thrown it out."""
        return room.voice.guild.voice_client is room.voice

    def say(self, outbound: Outbound, content: bytes) -> bool:
        """Say an answer's sound behind what is being said; False where it cannot be said aloud."""
        room = self._room(outbound.to)
        if room is None:
            return False
        packets = [*packets_of(content)][_HEADS:]
        if any(_milliseconds(each) != _PACKET_MS for each in packets):
            log.warning("voice_channel_packets", outbound=outbound.id, needed_ms=_PACKET_MS)
            return False
        if len(room.sound.waiting) + len(packets) > _MOST:
            return False
        if room.hushed is None or outbound.answers != room.hushed:
            room.said = outbound.answers
            room.sound.waiting.extend(packets)
            self._go_on(room)
        return True

    def _go_on(self, room: _Room) -> None:
        if room.sound.waiting and room.voice.is_connected() and not room.voice.is_playing():
            loop = asyncio.get_running_loop()
            room.voice.play(room.sound, after=lambda _: loop.call_soon_threadsafe(self._go_on, room) and None)

    def hush(self, to: ChatAddress) -> bool:
        """Say no more of the present answer; whether anything was being said."""
        room = self._room(to)
        if room is None or not (room.sound.waiting or room.voice.is_playing()):
            return False
        room.sound.waiting.clear()
        room.voice.stop()
        room.hushed = room.said
        return True

    def look(self, guild: int) -> None:
        """Somebody came or went: the bot leaves once it has been alone for a while."""
        room = self._rooms.get(guild)
        if room is None or self._is_alone(room) == (room.alone is not None):
            return
        if room.alone is None:
            room.alone = self._leaving.start(self._leave_later(guild, room), name=f"alone {guild}")
        else:
            room.alone.cancel()
            room.alone = None

    def _is_alone(self, room: _Room) -> bool:
        me = room.voice.guild.me
        channel = me.voice.channel if me.voice is not None else None
        return channel is None or not channel.voice_states.keys() - {me.id}

    async def _leave_later(self, guild: int, room: _Room) -> None:
        await self._clock.sleep(ALONE_SECONDS)
        async with self._changing:
            if self._rooms.get(guild) is room and self._is_alone(room):
                log.info("voice_channel_left_alone", guild=str(guild))
                await self._leave(guild)

    async def aclose(self) -> None:
        """Leave all of them. Idempotent."""
        await self._leaving.aclose()
        for guild in list(self._rooms):
            await self._leave(guild)


def _milliseconds(packet: bytes) -> float:
    """How long a packet of Opus lasts: https://www.rfc-editor.org/rfc/rfc6716#section-3.1"""
    if len(packet) < 2:
        return _PACKET_MS if packet else 0
    form, count = packet[0] >> 3, packet[0] & 3
    frames = (1, 2, 2, packet[1] & 63)[count]
    return _FRAMES.get(form, _CELT)[form & 3] * frames
