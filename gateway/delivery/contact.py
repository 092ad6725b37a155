"""Asks whether a platform answers, with calls that do no harm.

If the outcome of a send is unknown, it is repeated only after its platform has answered such a call. Otherwise an
outage would use up all tries of a message, and nobody would ever see it.
"""

from __future__ import annotations

from math import inf
from typing import Final

import structlog
from msgspec import Struct

from gateway.domain.adapter import CanPing
from gateway.runtime.backoff import Backoff
from gateway.runtime.clock import Clock
from gateway.runtime.errors import AdapterError
from gateway.runtime.tasks import Background

log = structlog.get_logger(__name__)

_FIRST_PAUSE: Final = 0.5  # seconds between two calls that were not answered
_LAST_PAUSE: Final = 10.0
_FRESH: Final = 10.0  # seconds for which an answer says that the platform answers
_LOOK_AGAIN: Final = 0.5  # seconds between a call and the moment at which its answer is looked for


class Contact(Struct, kw_only=True):
    """Whether one platform answers. While it is asked, rows are put off rather than held."""

    name: str
    adapter: CanPing
    clock: Clock
    background: Background
    _answered_at: float = -inf  # monotonic
    _asked_at: float = -inf  # monotonic: when it is asked next, or was asked last

    def doubt(self) -> None:
        """Doubt the platform: the answer to a send was lost, so earlier answers prove nothing."""
        self._answered_at = -inf
        self._ask()

    def wait(self) -> float:
        """Seconds after which to look again; 0.0 if the platform has answered since the last doubt."""
        now = self.clock.monotonic()
        if now - self._answered_at <= _FRESH:
            return 0.0
        self._ask()
        return max(0.0, self._asked_at - now) + _LOOK_AGAIN

    def _ask(self) -> None:
        self.background.start_once(self._asking(), name=f"contact {self.name}")

    async def _asking(self) -> None:
        """Ask until there is an answer."""
        backoff = Backoff(_FIRST_PAUSE, _LAST_PAUSE)
        while True:
            self._asked_at = asked_at = self.clock.monotonic()
            try:
                await self.adapter.ping()
            except AdapterError as error:
                pause = backoff.pause()
                log.info("platform_silent", platform=self.name, error=str(error), again_in=pause)
                self._asked_at = self.clock.monotonic() + pause
                await self.clock.sleep(pause)
                continue
            self._answered_at = asked_at
            return
