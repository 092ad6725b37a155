"""What people say in a voice channel, as recordings: https://discord.com/developers/docs/topics/voice-connections

The library opens the connection, keeps its keys, and hands on each packet that comes, in a thread of its own. Here a
packet is thrown away unless its sender is let in. The others are decrypted twice, for the way and from end to end, and
put to what their sender is saying, until a pause ends that. The sound stays Opus, as it came.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from struct import unpack_from
from typing import Any, Final

import structlog
from davey import MediaType
from discord import Client, VoiceClient
from discord.abc import Connectable
from discord.voice_state import VoiceConnectionState
from nacl.exceptions import CryptoError
from nacl.secret import Aead

from adapters.discord import failures
from adapters.discord.voice import ogg_of, samples_of
from gateway.runtime.clock import Clock
from gateway.runtime.tasks import Background

log = structlog.get_logger(__name__)

Json = Mapping[str, Any]
LetsIn = Callable[[str], Awaitable[Json | None]]
"""What Discord says of a person who may talk to the bot; None: they may not."""

PAUSE_SECONDS: Final = 1.2  # that end what somebody says
LONGEST_SECONDS: Final = 120.0  # of one recording; what is said then begins another
SHORTEST: Final = 15  # packets: what is shorter is a click or a cough
_MOST_PEOPLE: Final = 100  # in a voice channel there are 99
_MOST_BYTES: Final = 16 * 1024 * 1024  # of what is being said, by all together
_PACE: Final = 100  # packets of one person in a second: a client sends 50
_ASK_EVERY: Final = 30.0  # seconds between two questions whether somebody is let in

# Messages of a voice server: https://docs.discord.food/topics/voice-connections#voice-opcodes
_SPEAKING, _CAME, _SHOWS, _WENT = 5, 11, 12, 13
_HEADER: Final = 12  # bytes of RTP: https://www.rfc-editor.org/rfc/rfc3550#section-5.1
_OPUS: Final = 0x78
_SEALED: Final = 20  # bytes of a packet's seal and of its number
_SILENCE: Final = b"\xf8\xff\xfe"
_QUIET: Final = 3  # bytes of a packet in which nobody speaks
_LARGEST: Final = 1_275  # bytes of a frame of Opus


class _WakingSocket(socket.socket):
    """The library's thread waits for packets of a socket that was closed, for half a minute, and hears nothing of the
    next one. A socket that is shut down wakes it. Then it looks once more at the number of that socket, which may be
    the next one's by then: the thread would wait on. So the number is not free yet."""

    def close(self) -> None:
        with suppress(OSError):
            self.shutdown(socket.SHUT_RDWR)

    def free(self) -> None:
        super().close()


class _State(VoiceConnectionState):
    _sockets: tuple[_WakingSocket, ...] = ()  # the present one, after the one before

    def _create_socket(self) -> None:
        self.socket = _WakingSocket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setblocking(False)
        self._keep(*self._sockets[-1:], self.socket)
        self._socket_reader.resume()

    async def disconnect(self, *, force: bool = True, cleanup: bool = True, wait: bool = False) -> None:
        await super().disconnect(force=force, cleanup=cleanup, wait=wait)
        if cleanup:
            self._keep()

    def _keep(self, *sockets: _WakingSocket) -> None:
        for each in self._sockets:
            if each not in sockets:
                each.free()
        self._sockets = sockets


class HearingClient(VoiceClient):
    """The library's connection, of which these ears hear everything."""

    def __init__(self, client: Client, channel: Connectable, ears: Ears) -> None:
        self._ears = ears
        super().__init__(client, channel)

    def create_connection_state(self) -> VoiceConnectionState:
        state = self._ears.state = _State(self, hook=self._ears.told)
        state.add_socket_listener(self._ears.packet)
        return state


class _Speaker:
    """Somebody in the channel. `known`: what Discord says of them, if they are let in; `packets`: of what they are
    saying, by their place behind the first one, which came as number `first` (`began`, `last`: monotonic)."""

    def __init__(self, person: str) -> None:
        self.person = person
        self.known: Json | None = None
        self.asked = -_ASK_EVERY
        self.packets: dict[int, bytes] = {}
        self.size = self.first = 0
        self.began = self.last = 0.0
        self._second, self._count = 0.0, 0

    def keeps_pace(self, now: float) -> bool:
        """Whether they send no more than a client does."""
        if now - self._second >= 1.0:
            self._second, self._count = now, 0
        self._count += 1
        return self._count <= _PACE


class Ears:
    """Hear one voice channel, until closed. `said` is told who said something, what Discord says of them, and the
    recording, an Ogg file. Counted are packets: `taken`; `dropped`, of those who are not let in, or send too many; and
    `odd`, which cannot be read."""

    state: VoiceConnectionState

    def __init__(self, clock: Clock, lets_in: LetsIn, said: Callable[[Json, bytes], None]) -> None:
        self._clock, self._lets_in, self._said = clock, lets_in, said
        self._loop = asyncio.get_running_loop()
        self._tasks = Background()
        self._speakers: dict[str, _Speaker] = {}  # by person
        self._sources: dict[int, _Speaker] = {}  # by the number in their packets
        self._lock = threading.Lock()  # of what is being said
        self._size = 0
        self._open = True
        self.taken = self.dropped = self.odd = 0

    # -- who is there -----------------------------------------------------------------------

    async def told(self, _: Any, message: Any) -> None:
        """The voice server says something."""
        try:
            data = message["d"]
            if message["op"] == _CAME:
                for person in data["user_ids"]:
                    self._ask(self._speaker(str(int(person))))
            elif message["op"] in (_SPEAKING, _SHOWS):
                self._speaks(str(int(data["user_id"])), int(data.get("ssrc") or data["audio_ssrc"]))
            elif message["op"] == _WENT:
                self._forget(self._speakers.pop(str(data["user_id"]), None))
        except failures.Unreadable:
            self.odd += 1

    def _speaker(self, person: str) -> _Speaker | None:
        if person not in self._speakers and len(self._speakers) < _MOST_PEOPLE:
            self._speakers[person] = _Speaker(person)
        return self._speakers.get(person)

    def _speaks(self, person: str, source: int) -> None:
        if (speaker := self._speaker(person)) is not None and self._sources.get(source) is not speaker:
            self._forget(speaker)
            self._sources[source] = speaker
        self._ask(speaker)

    def _forget(self, speaker: _Speaker | None) -> None:
        self._sources = {source: each for source, each in self._sources.items() if each is not speaker}

    def _ask(self, speaker: _Speaker | None) -> None:
        """Ask whether somebody is let in, unless that was asked just now."""
        now = self._clock.monotonic()
        if self._open and speaker is not None and now - speaker.asked >= _ASK_EVERY:
            speaker.asked = now
            self._tasks.start(self._learn(speaker), name=f"let in {speaker.person}")

    async def _learn(self, speaker: _Speaker) -> None:
        speaker.known = await self._lets_in(speaker.person)

    # -- packets, in the library's thread ---------------------------------------------------

    def packet(self, data: bytes) -> None:
        """A packet came."""
        try:
            self._take(data)
        except (CryptoError, *failures.Unreadable):
            self.odd += 1

    def _take(self, data: bytes) -> None:
        if len(data) < _HEADER + _SEALED or data[0] >> 6 != 2 or data[1] & 0x7F != _OPUS:
            return
        number, _, source = unpack_from(">HII", data, 2)
        speaker, now = self._sources.get(source), self._clock.monotonic()
        if speaker is None or speaker.known is None or not speaker.keeps_pace(now):
            self.dropped += 1
            if speaker is not None and speaker.known is None and now - speaker.asked >= _ASK_EVERY:
                self._loop.call_soon_threadsafe(self._ask, speaker)
            return
        sound = self._opened(data, speaker.person)
        if len(sound) <= _QUIET:
            return
        if len(sound) > _LARGEST or not samples_of(sound):
            raise ValueError("this is not Opus")
        self._add(speaker, number, sound, now)

    def _opened(self, data: bytes, person: str) -> bytes:
        """The sound in a packet. Its header is not encrypted, but what is in an extension of it."""
        head = _HEADER + 4 * (data[0] & 0x0F) + (4 if data[0] & 0x10 else 0)
        sound = Aead(bytes(self.state.secret_key)).decrypt(data[head:-4], data[:head], data[-4:] + bytes(20))
        if data[0] & 0x10:
            sound = sound[4 * unpack_from(">H", data, head - 2)[0] :]
        if data[0] & 0x20:
            sound = sound[: -sound[-1]]
        session = self.state.dave_session
        if self.state.dave_protocol_version and session is not None and sound != _SILENCE:
            return bytes(session.decrypt(int(person), MediaType.audio, sound))
        return bytes(sound)

    def _add(self, speaker: _Speaker, number: int, sound: bytes, now: float) -> None:
        with self._lock:
            if not self._open or self._size + len(sound) > _MOST_BYTES:
                self.dropped += 1
                return
            if not speaker.packets:
                speaker.first, speaker.began, speaker.size = number, now, 0
                self._loop.call_soon_threadsafe(self._follow, speaker)
            place = ((number - speaker.first + 0x8000) & 0xFFFF) - 0x8000  # their order is not that in which they came
            if place not in speaker.packets:
                speaker.packets[place], speaker.last = sound, now
                speaker.size += len(sound)
                self._size += len(sound)
                self.taken += 1

    # -- what was said ----------------------------------------------------------------------

    def _follow(self, speaker: _Speaker) -> None:
        if self._open:
            self._ask(speaker)
            self._tasks.start(self._until_pause(speaker), name=f"hear {speaker.person}")

    async def _until_pause(self, speaker: _Speaker) -> None:
        while (left := self._left(speaker)) > 0.0:
            await self._clock.sleep(left)
        with self._lock:
            packets, speaker.packets = speaker.packets, {}
            self._size -= speaker.size
        if speaker.known is not None and len(packets) >= SHORTEST:
            self._said(speaker.known, ogg_of([packets[place] for place in sorted(packets)]))

    def _left(self, speaker: _Speaker) -> float:
        """The seconds after which what somebody says may be over."""
        return min(speaker.last + PAUSE_SECONDS, speaker.began + LONGEST_SECONDS) - self._clock.monotonic()

    async def aclose(self) -> None:
        """Hear no more, and throw away what is being said. Idempotent."""
        if self._open:
            self._open = False
            self.state.remove_socket_listener(self.packet)
            log.info("voice_channel_heard", taken=self.taken, dropped=self.dropped, odd=self.odd)
        await self._tasks.aclose()
