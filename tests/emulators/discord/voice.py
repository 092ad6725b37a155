"""A voice server: its websocket, and the UDP port that hears the bot, and lets it hear people.

    async with VoiceServer(discord) as voice:
        voice.enter(anna, channel)
        ...
        assert voice.heard == [...]  # packets of Opus, as they came
    await voice.introduce(anna)
    voice.says(anna, [...])

Source: https://discord.com/developers/docs/topics/voice-connections. It speaks version 8; with `sealed` the sound is
encrypted from end to end, for those who are in the channel when the bot comes. What the bot does wrong is a violation
in the journal of `discord`.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import struct
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, Self

from aiohttp import web
from nacl.exceptions import CryptoError
from nacl.secret import Aead

from tests.emulators.discord.cloud import Cloud
from tests.emulators.discord.sealed import VERSION, People
from tests.emulators.discord.server import DiscordServer
from tests.emulators.discord.world import Channel, Guild, User, voice_state

MODE: Final = "aead_xchacha20_poly1305_rtpsize"
SILENCE: Final = b"\xf8\xff\xfe"
_SSRC: Final = 4711
_HEADER: Final = 12  # bytes of RTP
_CAME, _WENT = 11, 13
_EXTENSION: Final = b"\xbe\xde\0\1"  # one word, which holds how loud somebody is
_IDENTIFY, _SELECT, _READY, _HEARTBEAT, _DESCRIPTION, _SPEAKING, _ACK, _HELLO = 0, 1, 2, 3, 4, 5, 6, 8


class VoiceServer:
    """For one bot. `heard`: the packets of the bot's that are no silence; `speaking`: what it last said of itself;
    `deaf`: no packet of its comes back, as behind a firewall."""

    def __init__(self, discord: DiscordServer, *, sealed: bool = False) -> None:
        self._cloud: Cloud = discord.cloud
        self._sealed = sealed
        self._people: People | None = None
        self.heard: list[bytes] = []
        self.speaking = 0
        self.deaf = False
        self.sockets = 0
        self._socket: web.WebSocketResponse | None = None
        self._sources: dict[int, int] = {}  # by person: the number in their packets
        self._numbers: Counter[int] = Counter()  # by person: of their packets
        self._token, self._key = secrets.token_hex(8), secrets.token_bytes(32)
        self._sequence: int | None = None
        self._found: tuple[str, int] | None = None
        self._port = self._udp_port = 0
        self._runner: web.AppRunner | None = None
        self._udp: asyncio.DatagramTransport | None = None

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/", self._connected)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self._port = self._runner.addresses[0][1]
        made = await asyncio.get_running_loop().create_datagram_endpoint(
            lambda: _Ear(self), local_addr=("127.0.0.1", 0)
        )
        self._udp, self._udp_port = made[0], made[0].get_extra_info("sockname")[1]
        self._cloud.voice = self
        return self

    async def __aexit__(self, *_: object) -> None:
        self._cloud.voice = None
        assert self._runner is not None
        assert self._udp is not None
        self._udp.close()
        await self._runner.cleanup()

    # -- who is where ------------------------------------------------------------------------------

    def enter(self, user: User, channel: Channel) -> None:
        """Somebody goes into a voice channel."""
        assert channel.guild is not None
        self._moves(channel.guild, user, channel)

    async def tell(self, op: int, data: Any) -> None:
        """Say something to the bot."""
        assert self._socket is not None
        await _say(self._socket, op, data)

    def leave(self, user: User, guild: Guild) -> None:
        """Somebody goes out, or is thrown out."""
        self._moves(guild, user, None)

    def where(self, user: User) -> Channel | None:
        """Return the voice channel that somebody is in."""
        found = (guild.talking.get(user.id) for guild in self._cloud.guilds.values())
        return next((each for each in found if each is not None), None)

    def _moves(self, guild: Guild, user: User, channel: Channel | None) -> None:
        if channel is None:
            guild.talking.pop(user.id, None)
        else:
            guild.talking[user.id] = channel
        body = {**voice_state(user.id, channel), "guild_id": str(guild.id)}
        member = guild.members[user.id].as_json(with_user=True)
        self._cloud.tell("VOICE_STATE_UPDATE", {**body, "member": member}, guild=guild)

    def asked(self, data: dict[str, Any]) -> None:
        """The bot wants to go somewhere, or away: opcode 4 of the gateway."""
        guild = self._cloud.guilds[int(data["guild_id"])]
        channel = None if data["channel_id"] is None else guild.channels[int(data["channel_id"])]
        if channel is None and self._cloud.bot.id not in guild.talking:
            return
        self._moves(guild, self._cloud.bot, channel)
        if channel is not None:
            others = [each for each, place in guild.talking.items() if place is channel and each != self._cloud.bot.id]
            self._people = People(others, channel.id) if self._sealed else None
            server = {"token": self._token, "guild_id": str(guild.id), "endpoint": f"127.0.0.1:{self._port}"}
            self._cloud.tell("VOICE_SERVER_UPDATE", server, guild=guild)

    # -- the websocket -----------------------------------------------------------------------------

    async def _connected(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        if request.query.get("v") != "8":
            self._wrong(f"version {request.query.get('v')}")
        self.sockets += 1
        self._cloud.journal.changed()
        await _say(socket, _HELLO, {"heartbeat_interval": 13_750, "v": 8})
        try:
            async for message in socket:
                if message.type is web.WSMsgType.BINARY:
                    await self._agreed(socket, message.data)
                    continue
                payload = json.loads(message.data)
                await self._received(socket, payload["op"], payload["d"])
        finally:
            self.sockets -= 1
            self._cloud.journal.changed()
        return socket

    async def _received(self, socket: web.WebSocketResponse, op: int, data: Any) -> None:
        if op == _IDENTIFY:
            if data["token"] != self._token or data["session_id"] != f"voice-{self._cloud.bot.id}":
                await socket.close(code=4004)
                return
            self._sequence = self._found = None
            where = {"ssrc": _SSRC, "ip": "127.0.0.1", "port": self._udp_port}
            await _say(socket, _READY, {**where, "modes": ["aead_aes256_gcm_rtpsize", MODE]})
        elif op == _SELECT:
            chosen = data["data"]
            if (chosen["address"], chosen["port"]) != self._found or chosen["mode"] != MODE:
                self._wrong(f"it selected {chosen}, and was found at {self._found}")
            version = VERSION if self._people is not None else 0
            described = {"mode": MODE, "secret_key": list(self._key), "dave_protocol_version": version}
            await _say(socket, _DESCRIPTION, described)
            self._socket = socket
            await self.tell(_CAME, {"user_ids": [str(each) for each in self._others()]})
        elif op == _HEARTBEAT:
            await _say(socket, _ACK, {"t": data["t"]} if isinstance(data, dict) else data)
        elif op == _SPEAKING:
            if data["ssrc"] != _SSRC:
                self._wrong(f"it speaks as {data['ssrc']}")
            self.speaking = data["speaking"]
            self._cloud.journal.changed()
        else:
            await socket.close(code=4001)

    async def _agreed(self, socket: web.WebSocketResponse, data: bytes) -> None:
        """A message about the keys, of which the server has none."""
        assert self._people is not None
        for number, (op, content) in enumerate(self._people.answers(data[0], data[1:]), 1):
            await socket.send_bytes(struct.pack(">HB", number, op) + content)
        self._cloud.journal.changed()

    @property
    def agreed(self) -> bool:
        """Say whether somebody has the bot's key, and so hears it."""
        return self._people is not None and self._people.hear

    def _others(self) -> list[int]:
        """Who is in the bot's channel."""
        here = self.where(self._cloud.bot)
        assert here is not None
        assert here.guild is not None
        talking = here.guild.talking.items()
        return [each for each, place in talking if place is here and each != self._cloud.bot.id]

    # -- the sound ---------------------------------------------------------------------------------

    async def hang_up(self, code: int) -> None:
        """The server ends the connection, and lets the bot come again."""
        assert self._socket is not None
        await self._socket.close(code=code)

    async def introduce(self, user: User) -> None:
        """Somebody in the bot's channel opens their mouth."""
        await self.tell(_SPEAKING, {"user_id": str(user.id), "ssrc": self.source(user), "speaking": 1})

    def says(self, user: User, sounds: Sequence[bytes]) -> None:
        """They say this, in packets."""
        for sound in sounds:
            self.send(self.packet(user, sound))

    def source(self, user: User) -> int:
        """The number in somebody's packets."""
        return self._sources.setdefault(user.id, 5000 + len(self._sources))

    def packet(self, user: User, sound: bytes, *, by: User | None = None, source: int | None = None) -> bytes:
        """What the bot gets of a sound. `by`: who seals it, if that is not `user`; `source`: another number."""
        number = self._numbers[user.id] = self._numbers[user.id] + 1
        source = self.source(user) if source is None else source
        head = struct.pack(">HHII", 0x9078, number & 0xFFFF, 960 * number, source) + _EXTENSION
        if self._people is not None:
            sound = self._people.sealed((by or user).id, sound)
        nonce = struct.pack(">I", number)
        return head + Aead(self._key).encrypt(bytes(4) + sound, head, nonce + bytes(20)).ciphertext + nonce

    def send(self, packet: bytes) -> None:
        """The bot gets this."""
        assert self._udp is not None
        self._udp.sendto(packet, self._found)

    def received(self, packet: bytes, sender: tuple[str, int]) -> None:
        """One packet came: the question where the bot is, or sound."""
        if self.deaf:
            return
        if len(packet) == 74 and packet[:2] == b"\0\1":
            assert self._udp is not None
            self._found = sender
            found = struct.pack(">HHI64sH", 2, 70, _SSRC, sender[0].encode(), sender[1])
            self._udp.sendto(found, sender)
            return
        kind, sequence, _, ssrc = struct.unpack(">HHII", packet[:_HEADER])
        if kind != 0x8078 or ssrc != _SSRC or sender != self._found:
            self._wrong(f"a packet of {sender} begins with {packet[:_HEADER].hex()}")
        if self._sequence is not None and sequence != (self._sequence + 1) & 0xFFFF:
            self._wrong(f"packet {sequence} follows {self._sequence}")
        self._sequence = sequence
        nonce = packet[-4:] + bytes(20)
        try:
            sound = Aead(self._key).decrypt(packet[_HEADER:-4], packet[:_HEADER], nonce)
        except CryptoError:
            self._wrong("a packet cannot be decrypted")
            return
        if self._people is not None and sound != SILENCE:
            if not self._people.hear:
                self._wrong("it spoke before anybody could hear it")
                return
            sealed, sound = sound, self._people.opened(self._cloud.bot.id, sound)
            if sound in sealed:
                self._wrong("a packet is not sealed")
        if sound != SILENCE:
            self.heard.append(sound)
            self._cloud.journal.changed()

    def _wrong(self, what: str) -> None:
        self._cloud.journal.violation("voice", "", what)


class _Ear(asyncio.DatagramProtocol):
    def __init__(self, server: VoiceServer) -> None:
        self._server = server

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._server.received(data, addr)


async def _say(socket: web.WebSocketResponse, op: int, data: Any) -> None:
    await socket.send_json({"op": op, "d": data})
