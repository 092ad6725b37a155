"""A store's facts as plain records, for moving the whole of it.

A record says what a store knows, never how it keeps it. A store gives its records in an order that
is the same wherever they lie: sessions as they were opened, their messages as they were said, items
as they were accepted, rows as they were emitted. So what was copied can be compared, order included.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, ClassVar, Final, Literal, get_args

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
    "closed chats",
    "renamed chats",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedClosedChat:
    """A chat in which nothing can be shown any more, and why, in the order of the chats' text."""

    kind: ClassVar[Kind] = "closed chats"
    chat: SessionKey  # its platform and chat, and nothing else
    reason: str

    @property
    def id(self) -> str:
        return str(self.chat)

    def facts(self) -> Any:
        return (self.chat, self.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedRenamedChat:
    """One name of a chat that has several, what it was called first and what it is called by now, each None if
    that is this name; in the order of the chats' text."""

    kind: ClassVar[Kind] = "renamed chats"
    chat: SessionKey  # its platform and chat, and nothing else
    first: str | None
    later: str | None

    @property
    def id(self) -> str:
        return str(self.chat)

    def facts(self) -> Any:
        return (self.chat, self.first, self.later)


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
    | MovedClosedChat
    | MovedRenamedChat
)
