"""The processes that work on a store, and what one that died leaves to the others."""

from __future__ import annotations

from gateway.store.kinds import MEMBER, MEMBERS, Member
from gateway.store.space import MANY, Caller, Space
from gateway.store.steps import lanes, outbox, sessions, spending


def join(space: Space, caller: Caller, until: float) -> None:
    """This process lives, at least until then. One that has the store for itself takes over from all others."""
    for other in space.first(MEMBERS, "", MANY):
        if other.owner != caller.owner and (caller.sole or other.until <= caller.now):
            leave(space, other.owner)
    space.put(MEMBER, Member(owner=caller.owner, until=until))
    outbox.cap_waits(space, caller)


def leave(space: Space, owner: str) -> None:
    """A process is no more: all that it had claimed is free."""
    lanes.leave(space, owner)
    outbox.leave(space, owner)
    sessions.leave(space, owner)
    spending.leave(space, owner)
    space.drop(MEMBER, owner)
