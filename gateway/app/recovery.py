"""What a start finds unfinished, and what it does about it.

Accepted items and unsent messages need nothing here: lanes and outbox take them up by themselves.
Left over are commands that bypass the lanes, and hooks of ended sessions that are still owed.
"""

from __future__ import annotations

import structlog

from gateway.agent.sessions import Sessions
from gateway.runtime.tasks import Background
from gateway.store.port import Store
from gateway.turns.turn import Turns

log = structlog.get_logger(__name__)

_MOST_HOOKS = 10_000  # the rest is found by the next start


async def recover(store: Store, sessions: Sessions, turns: Turns, background: Background, worker: str) -> None:
    """Finish what an earlier process began; before the lanes start, so that a `/stop` that was
    accepted still reaches the turn it was meant for, and no hook is owed but the earlier process's."""
    for item in await store.claim_bypassed(worker):
        turns.run_bypassed(item)
    owed = await store.pending_hooks(_MOST_HOOKS)
    if owed:
        log.info("hooks_owed", count=len(owed))
        # A hook may be slow; nobody has to wait for the hooks of yesterday.
        background.start(sessions.pay_hooks(owed), name="owed hooks")
