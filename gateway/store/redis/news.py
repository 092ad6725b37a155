"""News of other processes: a lane waits, a signal was left, a process died.

News are heard at once or not at all: a connection that broke has missed some. So nothing depends on
news alone; after each (re)connection `caught_up` is called, which looks for the facts themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from math import inf
from typing import Final

import structlog
from redis.asyncio.connection import AbstractConnection

from gateway.runtime.clock import Clock
from gateway.store.redis.endpoint import UNREACHABLE, Endpoint

log = structlog.get_logger(__name__)

_SILENCE: Final = 5.0  # seconds of silence after which the server is asked whether it is there
_RETRY: Final = 0.5


class News:
    """Listens on a channel and hands each message to `heard`."""

    def __init__(
        self,
        endpoint: Endpoint,
        channel: str,
        *,
        clock: Clock,
        heard: Callable[[str], None],
        caught_up: Callable[[], None],
    ) -> None:
        self._endpoint = endpoint
        self._channel = channel
        self._clock = clock
        self._heard = heard
        self._caught_up = caught_up
        self.listening = asyncio.Event()

    async def serve(self) -> None:
        """Listen until cancelled."""
        told = False  # logged once in an outage, which may be long
        while True:
            try:
                connection = await self._endpoint.connect_any()
                try:
                    await connection.send_command("SUBSCRIBE", self._channel, check_health=False)
                    await self._listen(connection)
                finally:
                    told = told and not self.listening.is_set()
                    self.listening.clear()
                    with contextlib.suppress(*UNREACHABLE):
                        await connection.disconnect(nowait=True)
            except UNREACHABLE as error:
                if not told:
                    told = True
                    log.info("store_news_lost", error=str(error) or type(error).__name__)
            await self._clock.sleep(_RETRY)

    async def _listen(self, connection: AbstractConnection) -> None:
        asked = False
        while True:
            try:
                async with asyncio.timeout(_SILENCE):
                    kind, *_, text = await connection.read_response(timeout=inf, disconnect_on_error=False)
            except TimeoutError:
                if asked:
                    raise
                asked = True
                await connection.send_command("PING", check_health=False)
                continue
            asked = False
            if kind == "message":
                try:
                    self._heard(text)
                except ValueError:  # another release may say other things; a beat finds the facts
                    log.warning("store_news_not_understood", news=text)
            elif kind == "subscribe":
                self.listening.set()
                self._caught_up()
