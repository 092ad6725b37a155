"""Webhooks: signed, repeated until they are taken. Those of one person come one after the other.

https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/overview
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import io
import json
from contextlib import suppress
from dataclasses import dataclass, field

import aiohttp

from gateway.runtime.clock import Clock
from tests.emulators.faults import Disconnect, Fault, Faults, LoseAnswer, Refuse, Slow
from tests.emulators.journal import Journal
from tests.emulators.whatsapp.world import Json, World

PATIENCE = 10.0  # seconds for an answer
_NOBODY = 502  # the status of a call that no app took: it is over, too


@dataclass(eq=False)
class Webhook:
    """Something that is told. `taken`: the app answered 200, for the first time as the `place`th of all."""

    kind: str
    payload: Json
    chat: str
    attempts: int = 0
    place: int = 0
    taken: asyncio.Event = field(default_factory=asyncio.Event)


class Delivery:
    """Brings webhooks. `faults`: of the methods "webhook messages" and "webhook statuses"."""

    def __init__(self, world: World, journal: Journal, clock: Clock) -> None:
        self.world, self.journal, self.clock = world, journal, clock
        self.faults: Faults[Fault] = Faults()
        self.told: list[Webhook] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._chats: dict[str, asyncio.Lock] = {}
        self._taken = 0
        self._http: aiohttp.ClientSession | None = None

    def tell(self, kind: str, chat: str, number: str, **value: object) -> Webhook:
        """Put something on its way."""
        metadata = {"display_phone_number": "15550001111", "phone_number_id": number}
        change = {"field": "messages", "value": {"messaging_product": "whatsapp", "metadata": metadata, **value}}
        entry = {"id": self.world.settings.business, "changes": [change]}
        webhook = Webhook(kind, {"object": "whatsapp_business_account", "entry": [entry]}, chat)
        self.told.append(webhook)
        task = asyncio.get_running_loop().create_task(self._bring(webhook))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return webhook

    async def _bring(self, webhook: Webhook) -> None:
        settings = self.world.settings
        async with self._chats.setdefault(f"{webhook.kind} {webhook.chat}", asyncio.Lock()):
            while not webhook.taken.is_set():
                if webhook.attempts:
                    await self.clock.sleep(settings.retries[min(webhook.attempts, len(settings.retries)) - 1])
                await self._once(webhook)
                webhook.attempts += 1
        self.journal.changed()

    async def _once(self, webhook: Webhook) -> None:
        settings = self.world.settings
        called = settings.callback_url and "messages" in settings.fields and settings.app in settings.subscribed
        if not called:
            return
        call = self.journal.open(f"webhook {webhook.kind}", webhook.chat, webhook.payload)
        fault = self.faults.befalling(call)
        if isinstance(fault, Refuse) or (isinstance(fault, Disconnect) and not fault.done):
            return
        if isinstance(fault, Slow):
            await self.clock.sleep(fault.seconds)
        call.status = await self.post(json.dumps(webhook.payload).encode()) or _NOBODY
        call.done = call.answered = call.status == 200
        if call.status == 200 and not webhook.place:
            self._taken += 1
            webhook.place = self._taken
        if call.status == 200 and not isinstance(fault, LoseAnswer | Disconnect):
            webhook.taken.set()
        self.journal.changed()

    async def post(self, body: bytes, **headers: str) -> int:
        """One call of the app; the status, or 0."""
        if self._http is None:
            self._http = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=PATIENCE))
        signed = {"X-Hub-Signature-256": signature(self.world.settings.secret, body), **headers}
        head = {"Content-Type": "application/json", **signed}
        with suppress(aiohttp.ClientError, OSError):
            async with self._http.post(self.world.settings.callback_url, data=io.BytesIO(body), headers=head) as answer:
                return answer.status
        return 0

    async def hang_up(self) -> None:
        """End all connections with the app."""
        http, self._http = self._http, None
        if http is not None:
            await http.close()

    async def aclose(self) -> None:
        """Tell nothing any more."""
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.hang_up()


def signature(secret: str, body: bytes) -> str:
    """The header of a call that Meta signed."""
    return f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"
