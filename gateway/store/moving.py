"""Moving a whole store: its facts as plain records, and the port of who gives and who takes them.

A record says what a store knows, never how it keeps it. A store gives its records in an order that
is the same wherever they lie: sessions as they were opened, their messages as they were said, items
as they were accepted, rows as they were emitted. So what was copied can be compared, order included,
by one digest for each kind.

What belongs to a running process (leases, fences, claims) is no fact and is not moved: the target is
as if the source's last process had been killed and another one were to start.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, ClassVar, Final, Literal, Protocol, get_args

from gateway.domain.approval import Approval
from gateway.domain.chat import Outbound, SessionKey
from gateway.domain.file import KeptFile
from gateway.domain.message import Message, note_of, wire
from gateway.domain.pairing import GuestBook
from gateway.domain.pin import Pins
from gateway.domain.session import Compaction, Session
from gateway.domain.usage import LedgerEntry
from gateway.store.records import ItemOutcome, SignalKind, ToolIntent

Kind = Literal[
    "sessions",
    "messages",
    "transcripts",
    "compactions",
    "hooks",
    "events",
    "outbox",
    "ledger",
    "spending",
    "pins",
    "files",
    "pairing",
]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
PAGE: Final = 1_000  # records at most that are in memory at a time
PAGE_BYTES: Final = 8_000_000  # of files' contents, unless one alone has more


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedSession:
    """A session with all its fields, and whether it is its key's present one."""

    kind: ClassVar[Kind] = "sessions"
    session: Session
    is_tip: bool

    @property
    def id(self) -> str:
        """What people are told."""
        return self.session.id

    def facts(self) -> Any:
        """What must be the same on both sides."""
        return (self.session, self.is_tip)


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedMessage:
    """A message with its id and the host's note. It comes where its first session has it."""

    kind: ClassVar[Kind] = "messages"
    key: SessionKey
    session_id: str
    message: Message

    @property
    def id(self) -> str:
        """Its id, unique in the store."""
        return note_of(self.message)["id"]

    def facts(self) -> Any:
        note: Mapping[str, Any] = note_of(self.message)
        return (self.key, self.session_id, wire(self.message), sorted(note.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedReference:
    """One more place of a session's transcript, and the message there."""

    kind: ClassVar[Kind] = "transcripts"
    key: SessionKey
    session_id: str
    message_id: str

    @property
    def id(self) -> str:
        return f"{self.message_id} in {self.session_id}"

    def facts(self) -> Any:
        return (self.key, self.session_id, self.message_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedCompaction:
    """A run that made a continuation, in the order of the sessions it ended."""

    kind: ClassVar[Kind] = "compactions"
    key: SessionKey
    compaction: Compaction

    @property
    def id(self) -> str:
        return self.compaction.child_id

    def facts(self) -> Any:
        return (self.key, self.compaction)


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedHook:
    """An ended session whose `on_session_end` is owed, in the order of the ends."""

    kind: ClassVar[Kind] = "hooks"
    key: SessionKey
    session_id: str

    @property
    def id(self) -> str:
        return self.session_id

    def facts(self) -> Any:
        return (self.key, self.session_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedTurn:
    """How far an unfinished item got. `reply_id`: its streaming row; `approvals`: what it asked."""

    session_id: str | None
    steps: int
    intents: tuple[ToolIntent, ...]
    reply_id: str | None
    approvals: tuple[Approval, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedItem:
    """An accepted event, ended (`outcome`, `ended_at`) or not. Numbers rise with acceptance and are
    unique in the store; an unfinished item keeps its own, since commands make ids of it. `document` is
    the Inbound as every store writes it (gateway.store.documents), moved as it is: a damaged one, too."""

    kind: ClassVar[Kind] = "events"
    number: str
    key: SessionKey
    platform: str
    event_id: str
    document: str
    accepted_at: float
    attempts: int
    bypass: bool = False
    absorbed_by: str | None = None  # the number of the item into whose turn its text went
    outcome: ItemOutcome | None = None
    ended_at: float | None = None
    turn: MovedTurn | None = None
    signals: tuple[tuple[SignalKind, float], ...] = ()  # oldest first

    @property
    def id(self) -> str:
        return self.event_id

    def facts(self) -> Any:
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedRow:
    """An outbox row. `stands_for` is the id of the row whose place in the chat's order it has: the
    refused one that it was put in place of, else its own. `sending` means that nobody knows whether
    it was shown."""

    kind: ClassVar[Kind] = "outbox"
    row: Outbound
    stands_for: str

    @property
    def id(self) -> str:
        return self.row.id

    def facts(self) -> Any:
        return (self.row, self.stands_for)


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedCall:
    """A model call, in the order of time and then of entry."""

    kind: ClassVar[Kind] = "ledger"
    key: SessionKey
    session_id: str
    entry: LedgerEntry

    @property
    def id(self) -> str:
        return f"of {self.session_id} at {self.entry.at}"

    def facts(self) -> Any:
        return (self.key, self.session_id, self.entry)


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedAccount:
    """What is spent under an account of spend caps, in millionths of a US dollar. What is reserved for
    calls that nobody will settle any more counts as spent. `forget_at` (milliseconds since the epoch):
    when nobody will ask for it any more; None: never."""

    kind: ClassVar[Kind] = "spending"
    account: str
    spent: int
    forget_at: int | None

    @property
    def id(self) -> str:
        return self.account

    def facts(self) -> Any:
        return (self.account, self.spent, self.forget_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedPins:
    """What is pinned under a key, in the order of the keys' text. None of the rules may be left: who
    removed the last one is a fact, too."""

    kind: ClassVar[Kind] = "pins"
    key: SessionKey
    pins: Pins

    @property
    def id(self) -> str:
        return f"of {self.key}"

    def facts(self) -> Any:
        return (self.key, self.pins)


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedFile:
    """A kept file with its content, in the order of the keys' text, then of time and ref."""

    kind: ClassVar[Kind] = "files"
    key: SessionKey
    file: KeptFile
    content: bytes

    @property
    def id(self) -> str:
        return f"{self.file.ref} of {self.key}"

    def facts(self) -> Any:
        return (self.key, self.file, sha256(self.content).hexdigest())


def by_size(files: Iterable[MovedFile]) -> Iterator[Sequence[MovedFile]]:
    """Pages of files that hold PAGE_BYTES at most, or one file."""
    page: list[MovedFile] = []
    size = 0
    for file in files:
        if page and (len(page) == PAGE or size + len(file.content) > PAGE_BYTES):
            yield page
            page, size = [], 0
        page.append(file)
        size += len(file.content)
    if page:
        yield page


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedGuestBook:
    """Who was let in by a code, and who asks; none if nobody ever did."""

    kind: ClassVar[Kind] = "pairing"
    book: GuestBook

    @property
    def id(self) -> str:
        return "the guest book"

    def facts(self) -> Any:
        return self.book


FORGOTTEN: Final = 86_400.0  # an account that is forgotten within this many seconds is not moved

Record = (
    MovedSession
    | MovedMessage
    | MovedReference
    | MovedCompaction
    | MovedHook
    | MovedItem
    | MovedRow
    | MovedCall
    | MovedAccount
    | MovedPins
    | MovedFile
    | MovedGuestBook
)


class Source(Protocol):
    """A store whose facts are read. `name` is its address without credentials, `identity` the same
    for two addresses of one store."""

    name: str

    @property
    def identity(self) -> str:
        """What tells it from other stores; known once it is open."""

    async def open(self) -> None:
        """Take it, so that no gateway opens it meanwhile. Raises StoreLocked if one uses it, or
        StoreUnavailable."""

    def dump(self, now: float) -> AsyncGenerator[Sequence[Record], None]:
        """All records in pages of at most PAGE. Kinds may be mixed; each is in its own order. What is
        FORGOTTEN by `now` (seconds since the epoch) is left out."""

    async def check(self) -> None:
        """Raises StoreUnavailable if it is no longer certain that no gateway uses it."""

    async def aclose(self) -> None:
        """Let go of it. Idempotent."""


class Target(Source, Protocol):
    """An empty store that is filled. `open` refuses any that is neither empty nor half-filled by a
    migration."""

    async def begin(self, origin: str) -> None:
        """Mark it as half-filled from `origin`, so that no gateway opens it, and empty it of what an
        earlier migration left."""

    async def restore(self, page: Sequence[Record]) -> None:
        """Store records, in the order in which a source gives them."""

    async def complete(self) -> None:
        """Every record is there: make whatever needs all of them."""

    async def publish(self) -> None:
        """Take the mark away: from now on it is a store like any other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """How many records of a kind there are, and the digest of them in their order."""

    count: int
    digest: str


class Tally:
    """Counts records and digests each kind's, in the order in which they are added."""

    def __init__(self) -> None:
        self._counts = dict.fromkeys(KINDS, 0)
        self._digests = {kind: sha256() for kind in KINDS}

    def add(self, page: Iterable[Record]) -> None:
        """The next records."""
        for record in page:
            self._counts[record.kind] += 1
            self._digests[record.kind].update(canonical(record))

    @property
    def total(self) -> int:
        """Records of every kind."""
        return sum(self._counts.values())

    def figures(self) -> dict[Kind, Figure]:
        """By kind, in the order of KINDS."""
        return {kind: Figure(count=self._counts[kind], digest=self._digests[kind].hexdigest()) for kind in KINDS}


def canonical(record: Record) -> bytes:
    """A record as bytes: equal for equal facts and for no others."""
    text = repr(record.facts())
    # With its length in front, two records cannot be taken for two others that are cut elsewhere.
    return f"{len(text)}:{text}".encode("utf-8", "backslashreplace")
