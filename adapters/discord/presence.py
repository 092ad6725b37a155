"""The line below the bot's name while it works: in how many chats.

It is one for all servers, and the work is that of this process alone. Discord takes five changes in twenty seconds from
a connection: https://discord.com/developers/docs/events/gateway-events#update-presence"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from gateway.domain.chat import ChatAddress
from gateway.runtime.clock import Clock
from gateway.runtime.tasks import Background

EVERY: Final = 5.0  # seconds: short work is not shown, and each change leaves room for a new connection's line


class Presence:
    """`idle`: the line while nobody waits; `show` is given the line whenever it is another one."""

    def __init__(self, clock: Clock, idle: str, show: Callable[[str], Awaitable[None]]) -> None:
        self._clock, self._idle, self._show = clock, idle, show
        self._chats: set[ChatAddress] = set()
        self._shown = idle
        self._changes = False  # a job sees to the line
        self._jobs = Background()

    def switch(self, to: ChatAddress, *, active: bool) -> None:
        """The bot begins or ends its work in a chat."""
        (self._chats.add if active else self._chats.discard)(to)
        if self._line != self._shown and not self._changes:
            self._changes = True
            self._jobs.start(self._change(), name="presence")

    @property
    def _line(self) -> str:
        if not self._chats:
            return self._idle
        return f"Working in {len(self._chats):,} chat{'s' if len(self._chats) > 1 else ''}"

    async def _change(self) -> None:
        while True:
            await self._clock.sleep(EVERY)
            if (line := self._line) == self._shown:
                self._changes = False
                return
            self._shown = line
            await self._show(line)

    async def aclose(self) -> None:
        """Change nothing any more. Idempotent."""
        await self._jobs.aclose()
