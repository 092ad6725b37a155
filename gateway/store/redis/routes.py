"""Where a step runs: its partition, which is that of the chat that its arguments name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from gateway.domain.approval import Approval
from gateway.domain.chat import ChatAddress, Outbound, SessionKey
from gateway.domain.memory import MemoryChange
from gateway.domain.reminder import Reminder
from gateway.domain.session import Session
from gateway.store.kinds import ROW, SESSION
from gateway.store.records import Arrival, Erasure, Forgetting, InboxItem, Lease, Opening
from gateway.store.redis.partitions import EVERYWHERE, partition_of, partition_of_key, partition_of_name
from gateway.store.space import Kind
from gateway.store.steps import forgetting, keeping, lanes, members, outbox, pace, reports, sessions, spending

Step = Callable[..., Any]


def _of_chat(chat: ChatAddress) -> int:
    return partition_of(chat.platform, chat.chat)


_PLACES: Final[dict[type, Callable[[Any], int]]] = {
    SessionKey: partition_of_key,
    ChatAddress: _of_chat,
    Outbound: lambda row: _of_chat(row.to),
    MemoryChange: lambda change: partition_of_key(change.scope),
    Opening: lambda opening: partition_of_key(opening.session.key),
    lanes.Claimed: lambda claimed: partition_of_key(claimed.item.key),
    **{
        each: lambda value: partition_of_key(value.key)
        for each in (Lease, InboxItem, Arrival, Session, Approval, Reminder, Forgetting, Erasure)
    },
}


def of_folder(folder: str) -> int:
    """The partition of a folder of notes: its conversation's, if it is one's."""
    _, _, key = folder.partition(" ")
    try:
        return partition_of_key(SessionKey.parse(key))
    except ValueError:
        return partition_of_name(folder)


MONEY: Final = partition_of_name("money")  # all accounts: a call counts under several at once, or under none

_NAMED: Final[dict[Step, Callable[[Sequence[Any]], int]]] = {
    **dict.fromkeys((keeping.notes, keeping.set_notes), lambda args: of_folder(args[0])),
    **dict.fromkeys(
        (keeping.first_name, keeping.later_name, keeping.rename_chat), lambda args: partition_of_name(args[0])
    ),
    **dict.fromkeys(
        (pace.take, pace.hold_off, pace.resting, pace.hold, pace.let_go, spending.rest),
        lambda args: partition_of_name(args[0]),
    ),
    **dict.fromkeys((spending.reserve, spending.settle, spending.spent), lambda _: MONEY),
}

# Steps that know only an id: the kind of record that it is of, and which argument it is.
BY_ID: Final[dict[Step, tuple[Kind[Any], int]]] = {
    outbox.note_streamed: (ROW, 0),
    outbox.mark_sent: (ROW, 1),
    outbox.mark_retry: (ROW, 1),
    outbox.mark_refused: (ROW, 1),
    sessions.by_id: (SESSION, 0),
    sessions.transcript: (SESSION, 0),
    sessions.length: (SESSION, 0),
    sessions.hook_done: (SESSION, 0),
    sessions.note_flushed: (SESSION, 0),
}

# Other steps may read everywhere, and write nowhere.
EVERYWHERE_WRITTEN: Final[tuple[Step, ...]] = (
    *(members.end, members.join, reports.compactions, reports.named),
    *(forgetting.forgotten, sessions.pending_hooks, spending.rests, spending.usage),
)


def places(step: Step, args: Sequence[Any]) -> Sequence[int]:
    """The partitions in which a step runs that is not in BY_ID."""
    by_name = _NAMED.get(step)
    if by_name is not None:
        return (by_name(args),)
    if step in EVERYWHERE_WRITTEN:
        return EVERYWHERE
    for value in args:
        of = _PLACES.get(type(value))
        if of is not None:
            return (of(value),)
    for value in args:
        if isinstance(value, list | tuple) and (found := _all(value)):
            return found
    return EVERYWHERE


def _all(values: Iterable[Any]) -> list[int]:
    found = dict.fromkeys(of(value) for value in values if (of := _PLACES.get(type(value))) is not None)
    return list(found)


def part(args: Sequence[Any], partition: int) -> list[Any]:
    """The arguments for one of several partitions: of a list only what belongs there."""
    return [_own(value, partition) if isinstance(value, list | tuple) else value for value in args]


def _own(values: Sequence[Any], partition: int) -> list[Any]:
    return [value for value in values if (of := _PLACES.get(type(value))) is None or of(value) == partition]
