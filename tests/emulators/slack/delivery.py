"""How Slack tells an app what happens: envelopes over websockets, or signed requests.

Source: https://docs.slack.dev/apis/events-api and https://docs.slack.dev/apis/events-api/using-socket-mode. An event is
sent again until it is acknowledged, three times; a command and a press are sent once.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import aiohttp
from aiohttp import web

from tests.emulators.faults import Disconnect, Faults, LoseAnswer, Slow
from tests.emulators.journal import Journal
from tests.emulators.slack.world import Json, World

Mishap = LoseAnswer | Slow | Disconnect


@dataclass(eq=False)
class Envelope:
    """Something that the app is told. `answer`: what its acknowledgement said; `acknowledged`: whether it came."""

    kind: str
    payload: Json
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    attempts: int = 0
    answer: Json | None = None
    acknowledged: asyncio.Event = field(default_factory=asyncio.Event)
    given_up: bool = False


class Connection:
    """One websocket of Socket Mode."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self.socket = socket
        self.leaving = False

    async def say(self, said: Json) -> None:
        with suppress(ConnectionError, RuntimeError):
            await self.socket.send_str(json.dumps(said))


class Delivery:
    """All envelopes of an app. `frames`: faults of "send TYPE" and "acknowledge TYPE"."""

    def __init__(self, world: World, journal: Journal) -> None:
        self.world, self.journal = world, journal
        self.frames: Faults[Mishap] = Faults()
        self.connections: list[Connection] = []
        self.waiting: dict[str, Envelope] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._arrived = asyncio.Event()

    def tell(self, kind: str, payload: Json) -> Envelope:
        """Put something on its way."""
        envelope = Envelope(kind, payload)
        self.waiting[envelope.id] = envelope
        task = asyncio.get_running_loop().create_task(self._deliver(envelope))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return envelope

    async def _deliver(self, envelope: Envelope) -> None:
        settings, clock = self.world.settings, self.world.clock
        pauses = settings.retries if envelope.kind == "events_api" else ()
        for pause in (None, *pauses):
            if pause is not None:
                await clock.sleep(pause)
            await self._send(envelope)
            with suppress(TimeoutError):
                async with clock.limit(settings.acknowledged_within):
                    await envelope.acknowledged.wait()
            if envelope.acknowledged.is_set():
                break
            envelope.attempts += 1
        else:
            envelope.given_up = True
        self.waiting.pop(envelope.id, None)
        self.journal.changed()

    async def _send(self, envelope: Envelope) -> None:
        call = self.journal.open(f"send {envelope.kind}", "", envelope.payload)
        fault = self.frames.befalling(call)
        if isinstance(fault, Slow):
            await self.world.clock.sleep(fault.seconds)
        call.status = 200  # it is on its way no longer
        if self.world.settings.request_url is not None:
            await self._post(envelope, self.world.settings.request_url)
            return
        able = [each for each in self.connections if not each.leaving] or self.connections
        if not able:
            return
        connection = able[-1]
        if isinstance(fault, Disconnect) and not fault.done:
            await self._cut(connection)
            return
        told: Json = {"envelope_id": envelope.id, "type": envelope.kind, "payload": envelope.payload}
        told["accepts_response_payload"] = envelope.kind != "events_api"
        if envelope.kind == "events_api":
            told |= {"retry_attempt": envelope.attempts, "retry_reason": "timeout" if envelope.attempts else ""}
        await connection.say(told)
        call.done = call.answered = True
        if isinstance(fault, Disconnect):
            await self._cut(connection)

    async def _cut(self, connection: Connection) -> None:
        connection.leaving = True
        if connection in self.connections:
            self.connections.remove(connection)
        transport = connection.socket._req.transport if connection.socket._req is not None else None
        if transport is not None:
            transport.abort()

    async def _post(self, envelope: Envelope, url: str) -> None:
        settings = self.world.settings
        if envelope.kind == "events_api":
            body, kind = json.dumps(envelope.payload), "application/json"
        else:
            interactive = envelope.kind == "interactive"
            form = {"payload": json.dumps(envelope.payload)} if interactive else envelope.payload
            body, kind = urlencode(form), "application/x-www-form-urlencoded"
        headers = {"Content-Type": kind, **signed(settings.signing_secret, body, self.world.clock.now())}
        if envelope.attempts:
            headers |= {"X-Slack-Retry-Num": str(envelope.attempts), "X-Slack-Retry-Reason": "http_timeout"}
        with suppress(aiohttp.ClientError, OSError):
            timeout = aiohttp.ClientTimeout(total=settings.acknowledged_within)
            async with (
                aiohttp.ClientSession(timeout=timeout) as http,
                http.post(url, data=body.encode(), headers=headers) as got,
            ):
                if got.status == 200:
                    said = await got.text()
                    envelope.answer = json.loads(said) if said.startswith("{") else None
                    envelope.acknowledged.set()

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        """One connection, from hello to its end."""
        socket = web.WebSocketResponse(autoping=True, compress=False)
        await socket.prepare(request)
        connection = Connection(socket)
        await connection.say({"type": "hello", "num_connections": len(self.connections) + 1})
        self.connections.append(connection)
        self.journal.changed()
        try:
            async for message in socket:
                if message.type is aiohttp.WSMsgType.TEXT:
                    self._acknowledged(json.loads(message.data))
        finally:
            if connection in self.connections:
                self.connections.remove(connection)
        return socket

    def _acknowledged(self, said: dict[str, Any]) -> None:
        envelope = self.waiting.get(said.get("envelope_id", ""))
        if envelope is None:
            return
        call = self.journal.open(f"acknowledge {envelope.kind}", "", said)
        fault = self.frames.befalling(call)
        if fault is not None:
            call.fault, call.status = type(fault).__name__, 200
            return  # it was lost on its way
        call.done = call.answered = True
        envelope.answer = said.get("payload")
        envelope.acknowledged.set()

    async def goodbye(self, reason: str = "warning") -> None:
        """Ask all connections to come again."""
        for connection in self.connections:
            connection.leaving = True
            await connection.say({"type": "disconnect", "reason": reason, "debug_info": {"host": "emulated"}})

    async def cut(self) -> None:
        """Break all connections without a word."""
        for connection in [*self.connections]:
            await self._cut(connection)

    async def aclose(self) -> None:
        """Tell nothing any more."""
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.cut()


def signed(secret: str, body: str, now: float) -> dict[str, str]:
    """The headers of a request that Slack signed."""
    stamp = str(int(now))
    digest = hmac.new(secret.encode(), f"v0:{stamp}:{body}".encode(), hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={digest}"}
