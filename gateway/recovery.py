"""What a start finds unfinished, and what it does about it.

Accepted items and unsent messages need nothing here: lanes and outbox take them up by themselves.
Left over are commands that bypass the lanes, and hooks of ended sessions that are still owed.
"""

from __future__ import annotations

import structlog

from gateway.lifecycle import Lifecycle
from gateway.store.base import Store
from gateway.turns import Turns

log = structlog.get_logger(__name__)


async def recover(store: Store, lifecycle: Lifecycle, turns: Turns, worker: str) -> None:
    """Finish what an earlier process began; before the lanes start, so that a `/stop` that was
    accepted still reaches the turn it was meant for."""
    for item in await store.claim_bypassed(worker):
        turns.run_bypassed(item)
    while paid := await lifecycle.pay_hooks():
        log.info("hooks_called", count=paid)
