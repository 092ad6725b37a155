"""Finds sessions whose time is over, and puts a request to end each into its lane; it ends nothing itself.

It asks the store, so it also finds sessions that no agent has in memory, or that expired while the process was down. A
request is an ordinary inbox item whose event id names the session, its deadline and the hour. So two sweeps or two
processes make one item, and a request that had no effect (after a clock had jumped ahead, for example) is made again
later. The lane checks the deadline again, so no session ends under a running turn.
"""

from __future__ import annotations

import structlog

from gateway.domain.chat import Inbound, Source
from gateway.domain.session import Session
from gateway.runtime.clock import Clock
from gateway.runtime.errors import StoreUnavailable
from gateway.store.port import Store
from gateway.store.records import Arrival

log = structlog.get_logger(__name__)

_BATCH = 500
_ASK_AGAIN = 3_600.0  # seconds after which a request that had no effect is made anew
_NO_CAP = 1_000_000  # the gateway's own requests are never refused


class Expiry:
    """Looks through the store for sessions whose time is over."""

    def __init__(self, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def sweep(self) -> None:
        """Put a request to end each due session into its lane."""
        try:
            due = await self._store.claim_due_sessions(self._clock.now(), _BATCH)
            await self._store.accept([self._request(session) for session in due], cap=_NO_CAP)
        except StoreUnavailable as error:
            log.error("sweep_failed", error=str(error))

    def _request(self, session: Session) -> Arrival:
        key = session.key
        source = Source(
            platform=key.platform, chat=key.chat, chat_type=session.chat_type, user=key.user or "", thread=key.thread
        )
        inbound = Inbound(
            event_id=f"expiry:{session.id}:{session.expires_at}:{self._clock.now() // _ASK_AGAIN:.0f}",
            source=source,
            text=session.id,
            kind="expiry",
        )
        return Arrival(inbound=inbound, key=key, at=self._clock.now())
