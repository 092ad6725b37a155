"""Delivery of updates by HTTP POST, the other way to get them.

Source: https://core.telegram.org/bots/api#setwebhook and the public source of the Bot API server: updates of one chat
go one after the other, those of different chats at once; a failed one is tried again at once, then after 2, 4, 8, …
seconds up to a minute, or when `Retry-After` says.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import aiohttp

from gateway.runtime.clock import Clock
from tests.emulators.telegram.updates import Update, UpdateQueue

LONGEST_DELAY: Final = 60.0
LONGEST_RETRY_AFTER: Final = 3600.0
ANSWER_WITHIN: Final = 60.0
_KEPT: Final = 20_000
SECRET_HEADER: Final = "X-Telegram-Bot-Api-Secret-Token"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The destination of updates."""

    url: str
    secret: str = ""
    max_connections: int = 40
    certificate: bool = False


class Webhook:
    """Sends what waits in the queue to the target, while there is one."""

    def __init__(self, queue: UpdateQueue, clock: Clock) -> None:
        self.target: Target | None = None
        self.last_error = ""
        self.last_error_date = 0
        self.took: deque[tuple[float, float]] = deque(maxlen=_KEPT)  # of the last calls: seconds, and the bot's work
        self.work: Callable[[], float] = float  # of the bot so far, as whoever measures it counts it
        self._queue, self._clock = queue, clock
        self._http: aiohttp.ClientSession | None = None
        self._sending: dict[int, asyncio.Task[None]] = {}  # lane → who sends its updates
        queue.on_new = self.wake

    async def __aenter__(self) -> Webhook:
        timeout = aiohttp.ClientTimeout(total=ANSWER_WITHIN)
        self._http = aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0))
        return self

    async def __aexit__(self, *_: object) -> None:
        sending = tuple(self._sending.values())
        self.remove()
        await asyncio.gather(*sending, return_exceptions=True)
        if self._http is not None:
            await self._http.close()

    def set(self, target: Target) -> None:
        """Send to this target from now on."""
        self.remove()
        self.target = target
        self.last_error, self.last_error_date = "", 0
        self.wake()

    def remove(self) -> None:
        """Send nothing any more."""
        self.target = None
        for task in self._sending.values():
            task.cancel()
        self._sending.clear()

    def info(self) -> dict[str, Any]:
        """`WebhookInfo`."""
        info: dict[str, Any] = {"url": "", "has_custom_certificate": False, "pending_update_count": len(self._queue)}
        if self.target is None:
            return info
        info |= {"url": self.target.url, "has_custom_certificate": self.target.certificate}
        info |= {"max_connections": self.target.max_connections, "ip_address": "127.0.0.1"}
        if self.last_error:
            info |= {"last_error_date": self.last_error_date, "last_error_message": self.last_error}
        return info

    def wake(self) -> None:
        """Look for lanes that nobody sends."""
        if self.target is None:
            return
        for update in self._queue.waiting():
            if len(self._sending) >= self.target.max_connections:
                return
            if update.lane not in self._sending:
                task = asyncio.get_running_loop().create_task(self._send_lane(update.lane, self.target))
                self._sending[update.lane] = task

    async def _send_lane(self, lane: int, target: Target) -> None:
        while update := next((update for update in self._queue.waiting() if update.lane == lane), None):
            await self._insist(update, target)
        self._sending.pop(lane, None)
        self.wake()

    async def _insist(self, update: Update, target: Target) -> None:
        """Send one update until it is taken or has expired."""
        delays = retry_delays()
        delay = 0.0
        while self._clock.monotonic() + delay <= update.expires:
            await self._clock.sleep(delay)
            error, retry_after = await self._send(update, target)
            if not error:
                break
            self.last_error, self.last_error_date = error, int(self._clock.now())
            delay = retry_after or next(delays)
        self._queue.confirm(update.id)

    async def _send(self, update: Update, target: Target) -> tuple[str, float]:
        """Return the fault of a send, and the time when the receiver wants it again."""
        assert self._http is not None
        headers = {SECRET_HEADER: target.secret} if target.secret else {}
        begun, work = self._clock.monotonic(), self.work()
        try:
            async with self._http.post(target.url, json=update.as_json(), headers=headers) as response:
                self.took.append((self._clock.monotonic() - begun, self.work() - work))
                if 200 <= response.status <= 299:
                    return "", 0.0
                wanted = response.headers.get("Retry-After", "")
                retry_after = min(float(wanted), LONGEST_RETRY_AFTER) if wanted.isdigit() else 0.0
                return f"Wrong response from the webhook: {response.status} {response.reason}", retry_after
        except aiohttp.ClientConnectorError:
            return "Connection refused", 0.0
        except TimeoutError:
            return "Read timeout expired", 0.0
        except aiohttp.ClientError:
            return "Connection closed", 0.0


def retry_delays() -> Iterator[float]:
    """Yield the waits after the first failure, the second, and so on: seconds."""
    yield 0.0
    delay = 2.0
    while True:
        yield delay
        delay = min(LONGEST_DELAY, delay * 2)
