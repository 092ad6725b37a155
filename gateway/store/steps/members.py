"""The processes that work on a store, and what a dead one leaves to the others."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from gateway.runtime.structs import replace
from gateway.store.kinds import MEMBER, MEMBERS, UNSENT_ROWS, Member
from gateway.store.records import Lease
from gateway.store.space import MANY, Caller, Space
from gateway.store.steps import lanes, outbox, sessions, spending


def join(space: Space, caller: Caller, until: float) -> None:
    """This process lives, at least until then. If it has the store for itself, it takes over from all others."""
    for other in space.first(MEMBERS, "", MANY):
        if other.owner != caller.owner and (caller.sole or other.until <= caller.now):
            leave(space, other.owner)
    space.put(MEMBER, Member(owner=caller.owner, until=until))
    outbox.cap_waits(space, caller)


class Beat(Struct, frozen=True, kw_only=True):
    """What a process learns when it beats. `known`: it still counted as alive. `ends_at`: when the first other process
    is thought dead, unless it beats. `rank`: how many of the others come before it by name."""

    known: bool
    dead: int
    ends_at: float | None
    waits: bool  # a lane waits for a worker
    rank: int


def beat(space: Space, caller: Caller, life: float) -> Beat:
    """This process lives for so many more seconds. A process whose time is over is dead, unless nobody could beat: if
    no process has beaten for half a life, the server was away or its clock was set, and everybody gets a whole life."""
    members = space.first(MEMBERS, "", MANY)
    known = space.get(MEMBER, caller.owner) is not None
    if known and max(member.until for member in members) < caller.now + life / 2:
        members = [replace(member, until=caller.now + life) for member in members]
        for member in members:
            space.put(MEMBER, member)
    others = [member for member in members if member.owner != caller.owner]
    dead = [member for member in others if member.until <= caller.now]
    for member in dead:
        _tell_rows(space)
        leave(space, member.owner)
    space.put(MEMBER, Member(owner=caller.owner, until=caller.now + life))
    ends_at = min([member.until for member in others if member not in dead], default=None)
    rank = len([member for member in others if member not in dead and member.owner < caller.owner])
    return Beat(known=known, dead=len(dead), ends_at=ends_at, waits=lanes.waits(space, caller), rank=rank)


def end(space: Space, caller: Caller, claimed: Sequence[lanes.Claimed], unsent: Sequence[str]) -> None:
    """This process stops: what it had claimed and given to nobody was no attempt."""
    for each in claimed:
        lanes.release(space, Lease(key=each.item.key, worker="", fence=each.fence), False)
    outbox.give_back(space, caller, unsent)
    _tell_rows(space)
    leave(space, caller.owner)


def _tell_rows(space: Space) -> None:
    """Rows that were being sent are now anybody's."""
    for platform in space.names(UNSENT_ROWS):
        space.tell("rows", platform)


def leave(space: Space, owner: str) -> None:
    """A process is gone: everything that it had claimed is free."""
    lanes.leave(space, owner)
    outbox.leave(space, owner)
    sessions.leave(space, owner)
    spending.leave(space, owner)
    space.drop(MEMBER, owner)
