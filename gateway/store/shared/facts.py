"""A store's facts as plain records, the same whichever store they lie in, and the proof that all arrived.

A record is a kind and the kind's fields. JSON that a store keeps as text stays text; a flag is 0 or 1. A store
gives the records of a kind in an order that is the same wherever they lie: sessions as they were opened, their
messages as they were said, items as they were accepted, rows as they were emitted, and what has no order of its
own by name. So one digest for each kind proves a copy, order included.

What belongs to a running process (leases, fences, claims) is no fact: a target is as if the source's last
process had been killed. What follows from facts (search entries, counters, what is due) a target makes anew.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Any, Final, Protocol

from msgspec import Struct

from gateway.runtime.errors import StoreError
from gateway.store.shared.fields import COMPACTION, FACT, FILE, OUTBOUND, SESSION, USAGE

PAGE: Final = 1_000  # records at most that are in memory at a time
PAGE_TEXT: Final = 8_000_000  # characters and bytes at most of these, unless one record alone has more
FORGOTTEN: Final = 86_400.0  # an account that is forgotten within this many seconds is not moved

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


class Record(Struct, frozen=True):
    """One fact: every field of its kind (None: it has none), and no other."""

    kind: str
    data: dict[str, Any]

    def canonical(self) -> bytes:
        """A text that is equal for equal facts, and only for those. Raises KeyError if a field is missing."""
        fields = [self.data[name] for name in FIELDS[self.kind]]
        return json.dumps(fields, default=lambda content: sha256(content).hexdigest()).encode("ascii")


def in_pages(records: Iterable[Record]) -> Iterator[Sequence[Record]]:
    """Records in pages that fit into memory."""
    page: list[Record] = []
    size = 0
    for record in records:
        length = sum(len(value) for value in record.data.values() if isinstance(value, str | bytes))
        if page and (len(page) == PAGE or size + length > PAGE_TEXT):
            yield page
            page, size = [], 0
        page.append(record)
        size += length
    if page:
        yield page


def lost(message_id: str, session_id: str) -> StoreError:
    """The error for a transcript that names a missing message."""
    return StoreError(
        f"The store is damaged: message {message_id} of session {session_id} is missing; "
        "restore a backup, then migrate that."
    )


class Source(Protocol):
    """A store whose facts are read. `name` is its address without credentials."""

    name: str

    @property
    def identity(self) -> str:
        """The same for two addresses of one store; known once it is open."""

    async def open(self) -> None:
        """Take the store, so that no gateway opens it. Raises StoreLocked if one uses it, or StoreUnavailable."""

    def dump(self, now: float) -> AsyncGenerator[Sequence[Record], None]:
        """All records, in pages of at most PAGE. Kinds may be mixed, but each kind comes in its own order. Records that
        are FORGOTTEN by `now` (seconds since the epoch) are left out."""

    async def check(self) -> None:
        """Raises StoreUnavailable if a gateway may be using the store after all."""

    async def aclose(self) -> None:
        """Give the store up. Idempotent."""


class Target(Source, Protocol):
    """A store to fill. `open` refuses one that is neither empty nor half filled by a migration."""

    async def begin(self, origin: str) -> None:
        """Mark the store as half filled from `origin`, so that no gateway opens it, and remove what an earlier
        migration left."""

    async def restore(self, page: Sequence[Record]) -> None:
        """Store records, in the order in which a source gives them."""

    async def complete(self) -> None:
        """All records are there: make everything that needs all of them."""

    async def publish(self) -> None:
        """Remove the mark: from now on this is a store like any other."""


class Tally:
    """Counts records, and digests each kind in the order in which they are added."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(FIELDS, 0)
        self._digests = {kind: sha256() for kind in FIELDS}

    def add(self, page: Iterable[Record]) -> None:
        """The next records."""
        for record in page:
            self.counts[record.kind] += 1
            self._digests[record.kind].update(record.canonical())

    @property
    def total(self) -> int:
        """How many records there are, of all kinds."""
        return sum(self.counts.values())

    def differing(self, other: Tally) -> str | None:
        """The first kind in which the other tally has seen different records."""
        differing = (kind for kind in FIELDS if self._digests[kind].digest() != other._digests[kind].digest())
        return next(differing, None)
