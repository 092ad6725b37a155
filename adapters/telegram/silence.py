"""Chats that Telegram asked to leave alone, as far as this process was told.

Whatever kind of call was told so, all kinds keep it: the gateway's own books learn of it with the next message.
"""

from __future__ import annotations

from gateway.runtime.clock import Clock
from gateway.runtime.errors import AdapterError, RateLimited


class Silence:
    """Until when which chat is to be left alone."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}

    def heard(self, chat: str, error: AdapterError) -> AdapterError:
        """The error of a call to this chat, which may ask for silence."""
        if isinstance(error, RateLimited):
            self._until[chat] = self._clock.monotonic() + error.retry_after
        return error

    def check(self, chat: str) -> None:
        """Raise RateLimited while the chat is to be left alone."""
        left = self._until.get(chat, 0.0) - self._clock.monotonic()
        if left > 0.0:
            raise RateLimited(f"Telegram asked to wait, for {left:.0f} s more", retry_after=left)
        self._until.pop(chat, None)
