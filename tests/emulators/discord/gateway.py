"""The gateway: one websocket of a bot, from HELLO to its close.

Source: https://discord.com/developers/docs/events/gateway and
https://discord.com/developers/docs/topics/opcodes-and-status-codes#gateway-gateway-close-event-codes.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import deque
from typing import Any, Final

from aiohttp import WSCloseCode, WSMessage, WSMsgType, web

from tests.emulators.discord.cloud import Cloud
from tests.emulators.discord.disturbing import Drop, InvalidSession, Mishap, Reconnect, Silence
from tests.emulators.discord.intents import KNOWN, PRIVILEGED, Intent
from tests.emulators.discord.sessions import Frame, Op, Packer, Session
from tests.emulators.faults import LoseAnswer, Slow

SENDS_A_MINUTE: Final = 120
LARGEST_PAYLOAD: Final = 4096  # bytes
CLOSES: Final = {
    4001: "Unknown opcode.",
    4002: "Error while decoding payload.",
    4003: "Not authenticated.",
    4004: "Authentication failed.",
    4005: "Already authenticated.",
    4007: "Invalid seq.",
    4008: "Rate limited.",
    4009: "Session timed out.",
    4010: "Invalid shard.",
    4011: "Sharding required.",
    4012: "Invalid API version.",
    4013: "Invalid intent(s).",
    4014: "Disallowed intent(s).",
}


class Closed(Exception):
    """The server ends a connection. `code` 0: without a word."""

    def __init__(self, code: int) -> None:
        super().__init__(CLOSES.get(code, ""))
        self.code = code


class Connection:
    """One websocket. Payloads to the bot go through a queue, so that whoever tells the bot something never waits."""

    def __init__(self, cloud: Cloud, request: web.Request) -> None:
        self._cloud, self._request = cloud, request
        self._socket = web.WebSocketResponse(autoping=True, compress=False, max_msg_size=1 << 20)
        self._packer = Packer(request.query.get("compress", ""))
        self._queue: asyncio.Queue[Frame | Closed] = asyncio.Queue()
        self._sends: deque[float] = deque()
        self._beat = asyncio.get_running_loop().time()
        self._silent = False
        self.session: Session | None = None

    async def serve(self) -> web.WebSocketResponse:
        """Until either side ends it."""
        await self._socket.prepare(self._request)
        tasks = [asyncio.ensure_future(step()) for step in (self._listen, self._speak, self._watch)]
        self._queue.put_nowait(Frame(op=Op.HELLO, data={"heartbeat_interval": int(self._heartbeat * 1000)}))
        if self._request.query.get("v") not in ("9", "10"):
            self.close(4012)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._leave()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in tasks:
            if not task.cancelled() and task.exception() is not None:
                await self._end(task.exception())
        return self._socket

    def close(self, code: int) -> None:
        """End the connection behind what is already on its way."""
        self._queue.put_nowait(Closed(code))

    def silence(self) -> None:
        """Say nothing any more, and stay open."""
        self._silent = True

    def send(self, op: Op, data: Any = None) -> None:
        """Put a payload on its way."""
        self._queue.put_nowait(Frame(op=op, data=data))

    @property
    def _heartbeat(self) -> float:
        return self._cloud.settings.heartbeat

    # -- to the bot --------------------------------------------------------------------------------

    async def _speak(self) -> None:
        while True:
            item = await self._queue.get()
            if isinstance(item, Closed):
                raise item
            fault = self._fault("send", item.name, item.data)
            if isinstance(fault, Drop) and not fault.after:
                raise Closed(fault.code)
            if isinstance(fault, Slow):
                await self._cloud.clock.sleep(fault.seconds)
            self._mishap(fault)
            if isinstance(fault, Reconnect | InvalidSession):
                item = _instead(fault)
            if not self._silent:
                await self._write(self._packer.pack(item.text()))
            if isinstance(fault, Drop):
                raise Closed(fault.code)
            if item.op is Op.INVALID_SESSION:
                self._forget(resumable=bool(item.data))

    async def _write(self, packed: str | bytes) -> None:
        if isinstance(packed, str):
            await self._socket.send_str(packed)
        else:
            await self._socket.send_bytes(packed)

    def _fault(self, way: str, name: str, data: Any) -> Mishap | None:
        call = self._cloud.journal.open(f"{way} {name}", "", {"d": data})
        fault = self._cloud.frames.befalling(call)
        call.done = call.answered = not call.fault
        return fault

    def _mishap(self, fault: Mishap | None) -> None:
        if isinstance(fault, Silence | LoseAnswer):
            self._silent = True

    def _forget(self, *, resumable: bool) -> None:
        if self.session is not None and not resumable:
            self._cloud.sessions.pop(self.session.id, None)

    async def _end(self, reason: BaseException | None) -> None:
        """Say goodbye, or do not."""
        if not isinstance(reason, Closed):
            if not isinstance(reason, ConnectionError):
                self._cloud.journal.violation("gateway", "", f"The emulator itself failed: {reason!r}")
            return
        if reason.code and not self._silent:
            await self._socket.close(code=reason.code, message=str(reason).encode())
        elif self._request.transport is not None:
            self._request.transport.abort()

    # -- from the bot ------------------------------------------------------------------------------

    async def _listen(self) -> None:
        async for message in self._socket:
            payload = self._decoded(message)
            op = payload.get("op")
            name = Op(op).name if op in list(Op) else str(op)
            fault = self._fault("receive", name, payload.get("d"))
            if isinstance(fault, Drop):
                if fault.after:
                    self._received(op, payload.get("d"))
                raise Closed(fault.code)
            if isinstance(fault, Slow):
                await self._cloud.clock.sleep(fault.seconds)
            self._mishap(fault)
            if isinstance(fault, Reconnect | InvalidSession):
                self._queue.put_nowait(_instead(fault))
            elif not self._silent:
                self._received(op, payload.get("d"))
        if self._socket.close_code in (WSCloseCode.OK, WSCloseCode.GOING_AWAY):
            self._forget(resumable=False)  # a bot that says goodbye ends its session

    def _decoded(self, message: WSMessage) -> dict[str, Any]:
        if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY) or len(message.data) > LARGEST_PAYLOAD:
            raise Closed(4002)
        try:
            payload = json.loads(message.data)
        except ValueError:
            raise Closed(4002) from None
        if not isinstance(payload, dict):
            raise Closed(4002)
        self._count_send()
        return payload

    def _count_send(self) -> None:
        now = self._cloud.clock.monotonic()
        while self._sends and self._sends[0] <= now - 60:
            self._sends.popleft()
        self._sends.append(now)
        if len(self._sends) > SENDS_A_MINUTE:
            raise Closed(4008)

    def _received(self, op: Any, data: Any) -> None:
        if op == Op.HEARTBEAT:
            self._beat = asyncio.get_running_loop().time()
            self.send(Op.HEARTBEAT_ACK)
        elif op in (Op.IDENTIFY, Op.RESUME):
            if self.session is not None:
                raise Closed(4005)
            self._identify(data) if op == Op.IDENTIFY else self._resume(data)
        elif self.session is None:
            raise Closed(4003)
        elif op == Op.REQUEST_MEMBERS:
            self._members(data)
        elif op == Op.PRESENCE:
            self.session.presence = data
            self._cloud.journal.changed()
        elif op == Op.VOICE_STATE:
            if self._cloud.voice is not None:
                self._cloud.voice.asked(data)
        else:
            raise Closed(4001)

    # -- sessions ----------------------------------------------------------------------------------

    def _identify(self, data: dict[str, Any]) -> None:
        self._check_token(data)
        intents = data.get("intents")
        if not isinstance(intents, int) or intents & ~KNOWN:
            raise Closed(4013)
        if intents & PRIVILEGED & ~self._cloud.settings.allowed_intents:
            raise Closed(4014)
        shard = data.get("shard", [0, 1])
        if not 0 <= shard[0] < shard[1]:
            raise Closed(4010)
        if shard[1] < self._cloud.settings.shards:
            raise Closed(4011)
        if not self._cloud.starts.take():
            self._cloud.journal.violation("IDENTIFY", "", "Sessions begin too fast.")
            self.send(Op.INVALID_SESSION, False)
            return
        session = Session(id=secrets.token_hex(16), intents=intents, buffer=deque(maxlen=self._cloud.settings.buffer))
        session.shard = (shard[0], shard[1])
        self._take(session)
        cloud = self._cloud
        guilds = [each for each in cloud.guilds_of(cloud.bot) if session in cloud.sessions_for(each)]
        ready = {
            "v": 10,
            "user": {**cloud.bot.as_json(), "verified": True, "mfa_enabled": True, "email": None, "flags": 0},
            "guilds": [{"id": str(guild.id), "unavailable": True} for guild in guilds],
            "session_id": session.id,
            "session_type": "normal",
            "resume_gateway_url": cloud.gateway_url,
            "shard": shard,
            "application": {"id": str(cloud.application), "flags": cloud.application_flags},
            "private_channels": [],
            "relationships": [],
            "presences": [],
            "geo_ordered_rtc_regions": [],
            "_trace": ["emulated"],
        }
        session.tell("READY", ready, in_guild=False)
        for guild in guilds:
            if guild.available:
                told = guild.as_json(cloud.bot)
                if not intents & Intent.GUILD_VOICE_STATES:
                    told["voice_states"] = []
                session.tell("GUILD_CREATE", told, in_guild=True)
        cloud.journal.changed()

    def _resume(self, data: dict[str, Any]) -> None:
        self._check_token(data)
        session = self._cloud.sessions.get(str(data.get("session_id")))
        sequence = data.get("seq")
        if session is None or self._too_old(session):
            self.send(Op.INVALID_SESSION, False)
            return
        if not isinstance(sequence, int) or sequence > session.sequence:
            raise Closed(4007)
        missed = session.missed(sequence)
        if missed is None:
            self.send(Op.INVALID_SESSION, False)
            return
        self._take(session)
        for frame in missed:
            self._queue.put_nowait(frame)
        session.tell("RESUMED", {"_trace": ["emulated"]}, in_guild=False)
        self._cloud.journal.changed()

    def _too_old(self, session: Session) -> bool:
        now = self._cloud.clock.monotonic()
        return session.send is None and now - session.left > self._cloud.settings.kept

    def _check_token(self, data: Any) -> None:
        if not isinstance(data, dict) or str(data.get("token", "")).removeprefix("Bot ") != self._cloud.settings.token:
            raise Closed(4004)

    def _take(self, session: Session) -> None:
        self.session = session
        session.send = self._queue.put_nowait
        self._cloud.sessions[session.id] = session
        self._cloud.connections.add(self)

    def _leave(self) -> None:
        self._cloud.connections.discard(self)
        if self.session is not None and self.session.send == self._queue.put_nowait:
            self.session.send = None
            self.session.left = self._cloud.clock.monotonic()
        self._cloud.journal.changed()

    def _members(self, data: dict[str, Any]) -> None:
        """Members in one chunk: those asked for by id, or whose name begins as asked."""
        guild = self._cloud.guilds.get(int(data.get("guild_id", 0)))
        if guild is None or self.session is None:
            return
        wanted = data.get("user_ids")
        found = [
            member.as_json(with_user=True)
            for member in guild.members.values()
            if (str(member.user.id) in [str(identity) for identity in wanted or ()])
            or (wanted is None and member.user.name.startswith(data.get("query", "")))
        ]
        chunk = {"guild_id": str(guild.id), "members": found, "chunk_index": 0, "chunk_count": 1, "not_found": []}
        self.session.tell("GUILD_MEMBERS_CHUNK", {**chunk, "nonce": data.get("nonce")}, in_guild=True)

    async def _watch(self) -> None:
        """A bot whose heartbeats stop is taken for gone. Their time is the machine's, as it is for discord.py."""
        while True:
            await asyncio.sleep(self._heartbeat)
            if asyncio.get_running_loop().time() - self._beat > self._heartbeat * 1.5:
                raise Closed(4009)


def _instead(fault: Reconnect | InvalidSession) -> Frame:
    if isinstance(fault, Reconnect):
        return Frame(op=Op.RECONNECT)
    return Frame(op=Op.INVALID_SESSION, data=fault.resumable)
