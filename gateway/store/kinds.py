"""Every kind of record in a store: its fields, its key, and its indexes. A record with a `key` belongs to that
conversation. A `lane` is a conversation's key as text, a `chat` is a chat without its threads as text."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

from msgspec import Struct

from gateway.domain.approval import Approval
from gateway.domain.chat import (
    MOST_PLACE,
    PLACED,
    UNSENT,
    ChatAddress,
    Inbound,
    KeptFile,
    Outbound,
    OutboundState,
    SessionKey,
)
from gateway.domain.memory import Fact
from gateway.domain.reminder import Reminder
from gateway.domain.rule import Pins
from gateway.domain.session import Compaction, Session
from gateway.domain.usage import LedgerEntry, UsageTotal
from gateway.store.records import ItemOutcome, SignalKind, ToolIntent
from gateway.store.shared.platforms import chat_name
from gateway.store.space import Entry, Kind, Order

ALL: Final = ""  # the only name of an index over all records of a kind


# -- what came in --------------------------------------------------------------------------------------


class EventRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An event that was accepted or refused, and the item that it became."""

    name: str  # `event_name`
    item: int


def event_name(platform: str, event_id: str) -> str:
    """The name of a platform's event."""
    return f"{platform}/{event_id}"


class Item(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What somebody sent, once it was accepted. An item with an `owner` bypasses its lane and is run by that process;
    "" once the process died."""

    number: int
    key: SessionKey
    inbound: Inbound | None  # None: its conversation was erased
    accepted_at: float
    attempts: int = 0
    bypass: bool = False
    owner: str = ""
    absorbed_by: int | None = None
    outcome: ItemOutcome | None = None
    ended_at: float | None = None

    @property
    def lane(self) -> str:
        """The lane in which it waits."""
        return self.key.text

    @property
    def waits(self) -> bool:
        """Whether it is in its lane: it waits there, or is the one that runs."""
        return self.outcome is None and not self.bypass and self.absorbed_by is None


def _item_entries(item: Item) -> tuple[Entry, ...]:
    number, key = item.number, item.key
    said = None if item.inbound is None else (key.text, number)
    if item.outcome is not None:
        return said, None, None, (ALL, number) if item.outcome == "dead" else None
    if not item.bypass:
        return said, None, None, None
    return said, (item.owner, number) if item.owner else None, None if item.owner else (key.platform, number), None


EVENT: Final = Kind("event", EventRecord, attrgetter("name"))
ITEM: Final = Kind("item", Item, attrgetter("number"), numbered=True, spares="inbound")
HEARD, BYPASSED, LEFT, DEAD = ITEM.indexed(_item_entries, "heard", "bypassed", "left", "dead")


class Lane(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A conversation with items. `queue` holds them in order; `absorbed` are those that went into the turn of the
    first. While a process runs the first item, `owner` names the process and `fence` its right; otherwise the lane
    waits since `since`, which is a number. It is `suspect` if its first item may have killed several processes."""

    key: SessionKey
    since: int
    queue: tuple[int, ...]
    absorbed: tuple[int, ...] = ()
    owner: str = ""
    fence: int = 0
    suspect: bool = False

    @property
    def head(self) -> int:
        """Its first item."""
        return self.queue[0]


def _lane_entries(lane: Lane) -> tuple[Entry, ...]:
    if lane.owner:
        held = (lane.owner, lane.fence)
        return None, None, held, held if lane.suspect else None
    waits = (lane.key.platform, lane.since)
    return (None, waits, None, None) if lane.suspect else (waits, None, None, None)


LANE: Final = Kind("lane", Lane, attrgetter("key.text"))
READY, SUSPECTS, HELD, TRIED = LANE.indexed(_lane_entries, "ready", "suspects", "held", "tried")


class TurnRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far an unfinished item got, what its turn asks people, and the signals for it."""

    item: int
    key: SessionKey
    session_id: str = ""
    steps: int = 0
    intents: tuple[ToolIntent, ...] = ()
    reply: str | None = None  # the row that streams
    asked: tuple[Approval, ...] = ()
    signals: tuple[tuple[float, SignalKind], ...] = ()
    began: bool = False  # it has more than signals


TURN: Final = Kind("turn", TurnRecord, attrgetter("item"), numbered=True)
ASKING: Final = TURN.index("asking", lambda turn: (chat_name(turn.key.address), turn.item) if turn.asked else None)


class Member(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A process that works on the store, and until when it counts as alive."""

    owner: str
    until: float


MEMBER: Final = Kind("member", Member, attrgetter("owner"))
MEMBERS: Final = MEMBER.index("members", lambda member: (ALL, member.until))

# -- conversations -------------------------------------------------------------------------------------


class SessionRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session without its prompt. `seq` orders sessions; `owed` orders the hooks that are due at their ends (0:
    none), and the process that ended the session owes the hook ("": that process died). `offered` is when an expired
    session was last offered to a process, which then has some time to end it."""

    seq: int
    session: Session
    owed: int = 0
    owed_by: str = ""
    offered_to: str = ""
    offered_until: float = 0.0


class Prompt(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session's system prompt: long, and hardly ever changed."""

    session_id: str
    text: str


def _session_entries(kept: SessionRecord) -> tuple[Entry, ...]:
    session, seq = kept.session, kept.seq
    lane = session.key.text
    is_open = session.ended_at is None
    is_due = (is_open or session.temporary) and session.expires_at is not None  # one that has ended is to be deleted
    return (
        (ALL, seq),
        (lane, seq),
        (chat_name(session.key.address), seq) if session.key.helper is None else None,
        (lane, seq) if is_open else None,
        (ALL, max(session.expires_at or 0.0, kept.offered_until)) if is_due else None,
        (kept.offered_to, seq) if kept.offered_to and is_due else None,
        (kept.owed_by, kept.owed) if kept.owed else None,
    )


SESSION: Final = Kind("session", SessionRecord, attrgetter("session.id"))
PROMPT: Final = Kind("prompt", Prompt, attrgetter("session_id"))
SESSIONS, OF_KEY, OF_CHAT, PRESENT, DUE, OFFERED, OWED = SESSION.indexed(
    _session_entries, "sessions", "of_key", "of_chat", "present", "due", "offered", "owed"
)


class MessageRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message, which never changes, and the session in which it was first said. `note` is the host's, without the
    facts that are stored beside it."""

    number: int
    key: SessionKey
    session_id: str
    at: float
    tokens: int | None
    message: dict[str, Any]
    note: dict[str, Any] | None = None


MESSAGE: Final = Kind("message", MessageRecord, attrgetter("number"), numbered=True)
(MESSAGES,) = MESSAGE.indexed(lambda said: ((said.key.text, said.number),), "messages")


class CompactionRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A compaction, stored under both the session that it ended and the one that it opened."""

    number: int
    compaction: Compaction


COMPACTION: Final = Kind("compaction", CompactionRecord, attrgetter("number"), numbered=True)
ENDING: Final = COMPACTION.index("ending", lambda made: (made.compaction.parent_id, made.number))
OPENING: Final = COMPACTION.index("opening", lambda made: (made.compaction.child_id, made.number))

# -- what is shown -------------------------------------------------------------------------------------


class Row(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A row of the outbox. `seq` orders all rows, `place` those of a chat that are not shown yet. `claim` is the
    process that sends it ("" once it died). `heard`: a message from the chat came in since the row was handed out.
    `confirmed`: a process that was thought dead says that the row was shown."""

    seq: int
    place: int
    out: Outbound
    claim: str = ""
    heard: bool = False
    confirmed: bool = False
    put_off_for: float | None = None

    @property
    def chat(self) -> str:
        """Its chat; all threads of a chat share one order."""
        return chat_name(self.out.to)


@lru_cache(maxsize=8_192)
def address_name(address: ChatAddress) -> str:
    """An address in text form, with its thread."""
    return SessionKey(platform=address.platform, chat=address.chat, thread=address.thread).text


def _row_entries(row: Row) -> tuple[Entry, ...]:
    out, seq, place = row.out, row.seq, row.place
    state = out.state
    ended = (ALL, seq), (address_name(out.to), seq)
    if state not in UNSENT:
        return (*ended, None, None, (ALL, seq) if state in _ENDED_UNSEEN else None, None)
    is_placed, chat = state in PLACED, chat_name(out.to)
    return (
        *ended,
        (chat, place) if is_placed else None,
        (out.to.platform, seq),
        None,
        (chat, place) if is_placed and place > MOST_PLACE else None,
    )


_ENDED_UNSEEN: Final = (OutboundState.REFUSED, OutboundState.WITHHELD)

ROW: Final = Kind("row", Row, attrgetter("out.id"))
ROWS, AT_ADDRESS, OUT, UNSENT_ROWS, UNSEEN, UNASKED = ROW.indexed(
    _row_entries, "rows", "address", "out", "unsent", "unseen", "unasked"
)


class ChatRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What there is to know about a chat: why nothing can be shown there, and when to look at its first waiting row."""

    name: str
    platform: str
    closed: str | None = None
    look_at: float | None = None


class Name(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """For a chat that had several names on its platform: the first one and the present one."""

    chat: str
    first: str | None = None
    later: str | None = None


CHAT: Final = Kind("chat", ChatRecord, attrgetter("name"))
LOOKS: Final = CHAT.index("looks", lambda chat: None if chat.look_at is None else (chat.platform, chat.look_at))
NAME: Final = Kind("name", Name, attrgetter("chat"))

# -- what is kept beside conversations -----------------------------------------------------------------


class ReminderRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A reminder, with its most important fields repeated for indexes."""

    reminder: Reminder

    @property
    def chat(self) -> str:
        """The chat in which it fires."""
        return chat_name(self.reminder.key.address)


def _due_alarm(alarm: ReminderRecord) -> tuple[str, Order] | None:
    reminder = alarm.reminder
    return None if reminder.due_at is None or reminder.parked else (reminder.key.platform, reminder.due_at)


ALARM: Final = Kind("reminder", ReminderRecord, attrgetter("reminder.id"))
ALARMS: Final = ALARM.index("of_key", lambda alarm: (alarm.reminder.key.owner.text, alarm.reminder.number))
OPEN_ALARMS: Final = ALARM.index(
    "open", lambda alarm: (alarm.chat, alarm.reminder.made_at) if alarm.reminder.is_open else None
)
PERSONS: Final = ALARM.index(
    "person",
    lambda alarm: (
        (f"{alarm.chat} {alarm.reminder.source.user}", alarm.reminder.made_at) if alarm.reminder.is_open else None
    ),
)
DUE_ALARMS: Final = ALARM.index("due", _due_alarm)


class PinsRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A conversation's pins."""

    key: SessionKey
    pins: Pins


PINNED: Final = Kind("pinned", PinsRecord, attrgetter("key.text"))


class FactRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A fact of a scope."""

    scope: SessionKey
    fact: Fact


class Scope(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How often the facts of a scope were changed, and the highest number that one of them had."""

    scope: SessionKey
    version: int
    last_number: int


FACT: Final = Kind("fact", FactRecord, lambda kept: f"{kept.scope.text} {kept.fact.id}")
FACTS: Final = FACT.index("facts", lambda kept: (kept.scope.text, kept.fact.made_at))
SCOPE: Final = Kind("scope", Scope, attrgetter("scope.text"))


class NoteRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A small text in a folder."""

    folder: str
    name: str
    text: str


NOTE: Final = Kind("note", NoteRecord, lambda note: f"{note.folder}\0{note.name}")
NOTES: Final = NOTE.index("folder", lambda note: (note.folder, 0))
UNDER: Final = NOTE.index("under", lambda note: (note.folder.partition(" ")[2], 0) if " " in note.folder else None)


class File(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A kept file without its content."""

    key: SessionKey
    file: KeptFile


class Content(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of one or several of a key's files."""

    key: SessionKey
    digest: str
    content: bytes


FILE: Final = Kind("file", File, lambda kept: f"{kept.key.text} {kept.file.ref}")
FILES: Final = FILE.index("files", lambda kept: (kept.key.text, kept.file.at))
CONTENT: Final = Kind("content", Content, lambda kept: f"{kept.key.text} {kept.digest}", raw="content")
CONTENTS: Final = CONTENT.index("contents", lambda kept: (kept.key.text, 0))

# -- money, and the pace at which rows go out ----------------------------------------------------------


class CallRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A model call. It has no key once its conversation was erased."""

    number: int
    platform: str
    key: SessionKey | None
    session_id: str
    entry: LedgerEntry


class Sum(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A day's model calls with the same platform, purpose and model, added up. The day is UTC, counted from 1970."""

    day: int
    platform: str
    purpose: str
    model: str
    total: UsageTotal = UsageTotal()


def _call_entries(call: CallRecord) -> tuple[Entry, ...]:
    return (ALL, call.entry.at), None if call.key is None else (call.key.text, call.entry.at)


CALL: Final = Kind("call", CallRecord, attrgetter("number"), numbered=True)
CALLS, OF_LANE = CALL.indexed(_call_entries, "calls", "of_key")
SUM: Final = Kind("sum", Sum, lambda each: f"{each.day} {each.platform} {each.purpose} {each.model}")
(SUMS,) = SUM.indexed(lambda each: ((ALL, each.day),), "days")


class Account(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Money spent and reserved, in millionths of a US dollar."""

    name: str
    spent: int = 0
    forget_at: float | None = None


class Reserved(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Money that counts as spent for a running call."""

    id: str
    account: str
    amount: int
    owner: str


ACCOUNT: Final = Kind("account", Account, attrgetter("name"))
OLD: Final = ACCOUNT.index("old", lambda account: None if account.forget_at is None else (ALL, account.forget_at))
RESERVED: Final = Kind("reserved", Reserved, lambda held: f"{held.id} {held.account}")
RESERVERS: Final = RESERVED.index("owner", lambda held: (held.owner, 0))


class Rest(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A silence that a platform asked for, and its length in seconds."""

    account: str
    bucket: str
    until: float
    seconds: float


REST: Final = Kind("rest", Rest, lambda rest: f"{rest.account} {rest.bucket}")
RESTS: Final = REST.index("rests", lambda rest: (ALL, rest.until))


class Bucket(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The moments of a bucket that were given away, ascending, and until when it is silent. From `idle_from` on it
    holds nobody back."""

    name: str
    taken: tuple[float, ...] = ()
    silent_until: float = 0.0
    idle_from: float = 0.0


class Ticket(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The moment that was given to a message."""

    name: str
    moment: float


class Hold(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who holds a lease that belongs to no lane, for example to poll a bot account, and until when."""

    name: str
    holder: str
    until: float


BUCKET: Final = Kind("bucket", Bucket, attrgetter("name"))
IDLE: Final = BUCKET.index("idle", lambda bucket: (ALL, bucket.idle_from))
TICKET: Final = Kind("ticket", Ticket, attrgetter("name"))
MOMENTS: Final = TICKET.index("moments", lambda ticket: (ALL, ticket.moment))
HOLD: Final = Kind("hold", Hold, attrgetter("name"))


class DeedRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that was forgotten or erased, and counts of what went."""

    id: str
    key: SessionKey
    at: float
    counts: Mapping[str, int]


DEED: Final = Kind("deed", DeedRecord, attrgetter("id"))

KINDS: Final[tuple[Kind[Any], ...]] = (
    *(EVENT, ITEM, LANE, TURN, MEMBER, SESSION, PROMPT, MESSAGE, COMPACTION, ROW, CHAT, NAME),
    *(ALARM, PINNED, FACT, SCOPE, NOTE, FILE, CONTENT, CALL, SUM, ACCOUNT, RESERVED, REST, DEED),
    *(BUCKET, TICKET, HOLD),
)


def names() -> list[str]:
    """The names of all kinds and indexes: a store that was written without one of them makes it when it is opened."""
    return [name for kind in KINDS for name in (kind.name, *(f"{kind.name}.{each.name}" for each in kind.indexes))]
