"""What a store of an earlier layout holds, as plain facts, the same whichever store they lie in.

A fact is a kind and the kind's fields. JSON that was kept as text stays text; a flag is 0 or 1. A reader gives the
facts of a kind in an order: sessions as they were opened, their messages as they were said, items as they were
accepted, rows as they were emitted. `gateway.store.steps.moving` makes records of them.

What belongs to a running process (leases, fences, claims) is no fact, nor is what follows from facts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

from msgspec import Struct

from gateway.runtime.errors import StoreError
from gateway.store.shared.fields import COMPACTION, FACT, FILE, OUTBOUND, SESSION, USAGE

T = TypeVar("T")

PAGE: Final = 1_000  # records at most that are in memory at a time
PAGE_TEXT: Final = 8_000_000  # characters and bytes at most of these, unless one record alone has more
TOLD_EACH: Final = 20_000  # facts, after which somebody who waits for them is told

_SESSION, _COMPACTION, _ROW, _FILE, _FACT, _USAGE = (
    " ".join(shape.names) for shape in (SESSION, COMPACTION, OUTBOUND, FILE, FACT, USAGE)
)
# Each kind with its fields, in the order in which it is moved.
FIELDS: Final[dict[str, tuple[str, ...]]] = {
    kind: tuple(names.split())
    for kind, names in {
        # is_tip: whether the session is its key's present one
        "sessions": f"{_SESSION} is_tip",
        # where the first session has them that has them
        "messages": "id key session_id role body note tokens at",
        "transcripts": "session_id key position message_id",
        "compactions": f"{_COMPACTION} key",
        # ended sessions whose `on_session_end` is owed, in the order of the ends
        "hooks": "session_id key",
        # Ids rise with acceptance and are unique; commands make other ids of them. `inbound` is moved as it is: a
        # damaged one, too.
        "events": "event_id id key platform inbound accepted_at attempts bypass absorbed_by outcome ended_at",
        # of unfinished events
        "turns": "item key session_id steps intents reply",
        "approvals": "token item key chat asked verdict",
        "signals": "item key kind at",
        # ahead: how many rows of the chat go out before a waiting one. One in the state `sending` may have been
        # shown: nobody knows.
        "outbox": f"{_ROW} lane ahead",
        "ledger": f"session_id key at platform purpose provider model cost_usd {_USAGE}",
        # What is reserved for calls that nobody settles any more counts as spent. forget_at: in milliseconds since
        # the epoch.
        "spending": "account spent forget_at",
        "pins": "key rules",
        # deeds of forgetting, and what they counted
        "forgotten": "deed key at counts",
        "memory": _FACT,
        # how often a scope's facts were changed, and the highest number that one of them ever had
        "memory counters": "scope version last_number",
        "reminders": "id key chat platform person number version open due_at parked reminder",
        # content: bytes
        "files": f"{_FILE} key content",
        "notes": "account name value",
        "closed chats": "lane reason",
        "renamed chats": "lane first later",
    }.items()
}


UNREADABLE: Final = (ValueError, KeyError, TypeError, AttributeError)  # what a damaged document raises


class Record(Struct, frozen=True):
    """One fact, by its kind's fields."""

    kind: str
    data: dict[str, Any]


class Milestones:
    """How far many facts are, for a person who waits for them."""

    def __init__(self) -> None:
        self._next = TOLD_EACH

    def reached(self, done: int) -> bool:
        """Whether it is time to tell that so many are done."""
        if done < self._next:
            return False
        self._next = done - done % TOLD_EACH + TOLD_EACH
        return True


def size_of(record: Record) -> int:
    """The characters and bytes of a fact."""
    return sum(len(value) for value in record.data.values() if isinstance(value, str | bytes))


def in_pages(records: Iterable[T], size_of: Callable[[T], int]) -> Iterator[Sequence[T]]:
    """Facts or records, as many together as may be in memory at a time."""
    page: list[T] = []
    size = 0
    for record in records:
        length = size_of(record)
        if page and (len(page) == PAGE or size + length > PAGE_TEXT):
            yield page
            page, size = [], 0
        page.append(record)
        size += length
    if page:
        yield page


def damaged(what: str, error: Exception) -> StoreError:
    """The error for a fact that cannot be read."""
    return StoreError(
        f"The store is damaged: {what} cannot be read ({type(error).__name__}: {error}). Nothing in the store was "
        "changed. Use the earlier version, or restore a backup."
    )


def incomplete(what: str, why: str) -> StoreError:
    """The error for an upgrade after which something is missing, or is not as it was."""
    return StoreError(
        f"{what} cannot be updated to this version: {why}. Nothing in the store was changed. Use the earlier version, "
        "and report this."
    )


def lost(message: int | str, session_id: str) -> StoreError:
    """The error for a transcript that names a message which is not there."""
    return StoreError(
        f"The store is damaged: message {message} of session {session_id} is missing. "
        "Restore a backup, then migrate the restored store."
    )
