"""All records of a store, to be put into another one as they are, and the proof that all of them arrived.

What belongs to a running process stays behind: a copy is as if the last process had been killed. What follows from
records (indexes, sums of days, when to look at a chat, the search index) is made anew where they arrive.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from operator import attrgetter
from typing import Any, Final, Protocol, TypeVar

from msgspec import Struct

from gateway.domain.chat import PLACED, OutboundState, SessionKey
from gateway.runtime.errors import StoreError
from gateway.runtime.structs import replace
from gateway.store.kinds import (
    BUCKET,
    CALL,
    CHAT,
    COMPACTION,
    CONTENT,
    EVENT,
    FACT,
    FILE,
    HOLD,
    ITEM,
    KINDS,
    LANE,
    MEMBER,
    MESSAGE,
    NAME,
    PROMPT,
    RESERVED,
    REST,
    ROW,
    SCOPE,
    SESSION,
    SUM,
    TICKET,
    ChatRecord,
    Row,
)
from gateway.store.records import SUSPECT_ATTEMPTS
from gateway.store.shared.facts import in_pages, lost
from gateway.store.space import Key, Kind, Space, grouped
from gateway.store.steps import spending

T = TypeVar("T")

_SOME: Final = 100  # records that are looked at together


class Transcript(Struct, frozen=True, kw_only=True):
    """A session's series."""

    session_id: str
    numbers: Sequence[int]


TRANSCRIPT: Final = Kind("transcript", Transcript, attrgetter("session_id"))
_LEFT_BEHIND: Final[Sequence[Kind[Any]]] = (
    MEMBER,
    RESERVED,
    REST,
    SUM,
    BUCKET,
    TICKET,
    HOLD,
    MESSAGE,
)  # messages come with their sessions
_COPIED: Final[Sequence[Kind[Any]]] = (
    CHAT,
    CONTENT,
    *(kind for kind in KINDS if kind not in (*_LEFT_BEHIND, CHAT, CONTENT)),
)
_NAMED: Final[dict[str, Kind[Any]]] = {kind.name: kind for kind in (*_COPIED, MESSAGE, TRANSCRIPT)}
# Kinds whose records belong to another one, and by which key.
_BELONGS: Final[dict[Kind[Any], tuple[Kind[Any], Any]]] = {
    EVENT: (ITEM, attrgetter("item")),
    LANE: (ITEM, attrgetter("head")),
    PROMPT: (SESSION, attrgetter("session_id")),
    COMPACTION: (SESSION, attrgetter("compaction.parent_id")),
}


class Everything(Protocol):
    """All records of a store, or of a part of it that refers to no other, which nobody changes meanwhile."""

    def every(self, kind: Kind[T]) -> Iterator[T]:
        """The records of a kind."""

    def many(self, kind: Kind[T], keys: Sequence[Key]) -> list[T]:
        """The records of these keys in their order, as far as they are there."""

    def members(self, series: str) -> list[int]:
        """The numbers of a series."""


class Copied(Struct, frozen=True):
    """A record, and the conversation that it belongs to, if it does to one."""

    name: str  # of its kind
    record: Any
    key: SessionKey | None
    document: bytes

    @property
    def kind(self) -> Kind[Any]:
        """Its kind."""
        return _NAMED[self.name]


def pages(parts: Sequence[Everything]) -> Iterator[Sequence[Copied]]:
    """All records in pages: not more of them than may be in memory at a time."""
    contents = set[Key]()
    every = (copied for kind in _COPIED for part in parts for copied in _of_kind(part, kind, contents))
    return in_pages(every, lambda copied: len(copied.document))


def _of_kind(stored: Everything, kind: Kind[Any], contents: set[Key]) -> Iterator[Copied]:
    for some in grouped(kind, stored.every(kind), _SOME):
        owners = _owners(stored, kind, some)
        if kind is CONTENT:
            contents.update(map(CONTENT.key, some))
        for record, owner in zip(some, owners, strict=True):
            if kind is FILE and f"{record.key.text} {record.file.digest}" not in contents:
                raise _damaged(f"file {record.file.ref} of {record.key.text} has no content")
            left = _as_left(kind, record, owner)
            if left is not None:
                yield _copied(kind, left, _key(kind, record if kind not in _BELONGS else owner))
            if kind is SESSION:
                yield from _said(stored, record.session.id, record.session.key)


def _owners(stored: Everything, kind: Kind[Any], records: Sequence[Any]) -> Sequence[Any]:
    """The records of another kind to which these belong."""
    if kind not in _BELONGS:
        return [None] * len(records)
    other, key_of = _BELONGS[kind]
    wanted = [key_of(record) for record in records]
    there = {other.key(each): each for each in stored.many(other, list(dict.fromkeys(wanted)))}
    for key in wanted:
        if key not in there:
            raise _damaged(f"{other.name} {key} is missing")
    return [there[key] for key in wanted]


def _damaged(what: str) -> StoreError:
    return StoreError(f"The store is damaged: {what}. Restore a backup, then migrate the restored store.")


def _key(kind: Kind[Any], record: Any) -> SessionKey | None:
    """The conversation of a record."""
    if kind in (CHAT, NAME):
        return SessionKey.parse(record.name if kind is CHAT else record.chat)
    if kind is ROW:
        return SessionKey(platform=record.out.to.platform, chat=record.out.to.chat)
    of = next((getattr(record, name) for name in ("session", "reminder") if hasattr(record, name)), record)
    key: SessionKey | None = getattr(of, "scope" if kind in (FACT, SCOPE) else "key", None)
    return key


def _as_left(kind: Kind[Any], record: Any, owner: Any) -> Any:
    """A record as the death of its process leaves it; None: it says nothing else."""
    if kind is LANE and record.owner:
        return replace(record, owner="", fence=0, since=record.head, suspect=owner.attempts >= SUSPECT_ATTEMPTS)
    if kind is ITEM and record.owner:
        return replace(record, owner="")
    if kind is ROW:
        return replace(record, claim="", heard=False)
    if kind is SESSION:
        return replace(record, offered_to="", offered_until=0.0, owed_by="")
    if kind is CHAT:
        return None if record.closed is None else replace(record, look_at=None)
    return record


def _said(stored: Everything, session_id: str, key: SessionKey) -> Iterator[Copied]:
    """The messages that were said first in a session, and its transcript."""
    numbers = stored.members(session_id)
    for wanted in grouped(MESSAGE, numbers, _SOME):
        found = stored.many(MESSAGE, wanted)
        if len(found) < len(wanted):
            raise lost(min(set(wanted) - {said.number for said in found}), session_id)
        for said in found:
            if said.session_id == session_id:
                yield _copied(MESSAGE, said, key)
    yield _copied(TRANSCRIPT, Transcript(session_id=session_id, numbers=numbers), key)


def copied_from(name: str, key: SessionKey | None, document: bytes) -> Copied:
    """What has this kind, key and document."""
    return Copied(name, _NAMED[name].record(document), key, document)


def _copied(kind: Kind[Any], record: Any, key: SessionKey | None) -> Copied:
    return Copied(kind.name, record, key, kind.document(record))


def put(space: Space, page: Iterable[Copied]) -> None:
    """Put records into a store that held nothing."""
    for each in page:
        kind, record = each.kind, each.record
        if kind is TRANSCRIPT:
            space.extend(record.session_id, record.numbers, at=0)
        elif kind is CALL:
            spending.enter_call(space, record)
        else:
            space.put(kind, record)
        if kind is ROW and record.out.state in PLACED:
            look(space, record)


def look(space: Space, row: Row) -> None:
    """A row that waits is looked at when it is due; one that was being sent as soon as somebody looks."""
    look_at = row.out.due_at if row.out.state is OutboundState.PENDING else 0.0
    known = space.get(CHAT, row.chat) or ChatRecord(name=row.chat, platform=row.out.to.platform)
    space.put(CHAT, replace(known, look_at=look_at if known.look_at is None else min(known.look_at, look_at)))


class Tally:
    """Counts records by their kind, and digests them, in whichever order they come."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter(dict.fromkeys(_NAMED, 0))
        self._sums = defaultdict[str, int](int)

    def add(self, page: Iterable[Copied]) -> None:
        """Some more records."""
        for each in page:
            self.counts[each.name] += 1
            self._sums[each.name] += int.from_bytes(sha256(each.document).digest())

    def differing(self, other: Tally) -> str | None:
        """The first kind of which the other one was given other records."""
        return next((name for name in self.counts if self._sums[name] != other._sums[name]), None)
