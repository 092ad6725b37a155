"""The arguments and results of the store port: plain frozen data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, TypedDict

from msgspec import Struct, field

from gateway.domain.approval import Approval
from gateway.domain.chat import ChatType, Inbound, Outbound, SessionKey
from gateway.domain.message import Message
from gateway.domain.rule import Pin
from gateway.domain.session import Session, SessionRef, Todo
from gateway.domain.usage import CanonicalUsage, LedgerEntry

Acceptance = Literal["new", "duplicate", "full"]
CapName = Literal["session", "person", "chat", "gateway", "schedule", "helper", "heartbeat", "key", "files"]
ItemOutcome = Literal["answered", "stopped", "failed", "dead", "absorbed", "refused", "withdrawn"]
SignalKind = Literal["stop", "interrupt"]
UsageBy = Literal["model", "purpose", "platform", "session", "key", "day"]  # a day of UTC: "2026-11-28"
OF_DAYS: Final[tuple[UsageBy, ...]] = ("model", "purpose", "platform", "day")  # stores hold the sums of these by day

# For how many seconds a process must have run before each attempt at an item. A process that dies again and again for
# reasons of its own uses up no more than the first two.
ATTEMPT_PAUSES: Final = (0.0, 0.0, 5.0, 30.0, 120.0)
SUSPECT_ATTEMPTS: Final = 2  # that no process survived, after which an item is tried alone
MOST_ATTEMPTS: Final = len(ATTEMPT_PAUSES)  # that no process survived, after which an item is a dead letter


def attempt_pause(attempts: int, pauses: Sequence[float]) -> float:
    """Seconds that a process must have run before it tries an item with so many attempts again. 0.0 also for an item
    that will only be buried."""
    return pauses[attempts] if attempts < MOST_ATTEMPTS else 0.0


MOST_HEARD: Final = 500  # of a key's ended items, how many can be listed
LEASE_SECONDS: Final = 10.0  # how long a process may be silent before others take over what it holds
EXPIRY_CLAIM: Final = 600.0  # seconds after which a session that is still due is offered again
ACCOUNT_KEPT: Final = 7 * 86_400.0  # seconds that a day's account outlives its day: clocks may be wrong


class Lease(Struct, frozen=True, kw_only=True):
    """The right to run one key's lane; `fence` rises with every claim of the lane."""

    key: SessionKey
    worker: str
    fence: int


class Arrival(Struct, frozen=True, kw_only=True):
    """An Inbound on its way into the store; with `bypass` it does not wait in its lane."""

    inbound: Inbound
    key: SessionKey
    at: float
    bypass: bool = False


class InboxItem(Struct, frozen=True, kw_only=True):
    """An accepted Inbound. `id` is its place in the order of acceptance within its key."""

    id: str
    key: SessionKey
    inbound: Inbound
    accepted_at: float
    attempts: int  # claims of the item, the present one included


class Beginning(Struct, frozen=True, kw_only=True):
    """What a turn begins with: the progress of an earlier attempt (or None), the present session of the item's key, and
    whether the key has reminders."""

    journal: TurnJournal | None
    tip: Session | None
    reminders: bool


class Claim(Struct, frozen=True, kw_only=True):
    """A lane that this worker now runs, and the item at its head. `begins`: what its turn begins with, if the store
    looked at that, too."""

    lease: Lease
    item: InboxItem
    begins: Beginning | None = None


class Receipt(Struct, frozen=True, kw_only=True):
    """The fate of one Arrival. `item` is set for a new Arrival with `bypass`, which the caller runs. `reopened`: its
    chat was closed until then."""

    event_id: str
    status: Acceptance
    waiting: int = 0  # items of its lane ahead of it
    item: InboxItem | None = None
    reopened: bool = False


class ToolIntent(Struct, frozen=True, kw_only=True):
    """A tool call about to run, whose effects must not be repeated blindly. With `waits` the call has had no effect
    yet: the call, or another before it, waits for a person's yes."""

    call_id: str
    tool: str
    waits: bool = False


class TurnJournal(Struct, frozen=True, kw_only=True):
    """The progress of an earlier attempt at an item, for the one that resumes it.

    The transcript already holds the messages of `steps` steps, the person's own first. `intents` are tool calls that
    had begun when the process died: unless they wait for a yes, their outcome is unknown. `reply` is the outbox row of
    a streaming reply; `approvals` are the item's questions.
    """

    session_id: str
    steps: int = 0
    intents: tuple[ToolIntent, ...] = ()
    reply: Outbound | None = None
    approvals: tuple[Approval, ...] = ()

    @property
    def begun(self) -> bool:
        """Whether the transcript already holds the messages that the turn began with."""
        return self.steps > 0 or bool(self.intents)


class Patch(Struct, frozen=True, kw_only=True):
    """What an append changes in the session's row; None leaves a field as it is."""

    at: float
    usage: CanonicalUsage | None = None  # added
    cost_usd: float = 0.0  # added
    last_prompt_tokens: int | None = None
    reported_messages: int | None = None
    engine_state: Mapping[str, Any] | None = None
    todos: tuple[Todo, ...] | None = None
    expires_at: float | None = None
    announced: tuple[str, ...] | None = None
    tools: tuple[str, ...] | None = None
    flushed_messages: int | None = None


_SUMMED: Final = ("at", "usage", "cost_usd")
# The fields that a Patch replaces.
PATCHED: Final = tuple(name for name in Patch.__struct_fields__ if name not in _SUMMED)


class StepRecord(Struct, frozen=True, kw_only=True):
    """What a step (or a turn's end) adds: messages in order, model calls, changes of the session.

    `absorbed` are ids of queued items whose text is among the messages: they end with this turn. `after` is the number
    of messages that the transcript holds before, as far as the turn knows. If it holds another number, an earlier write
    that the turn had given up on has landed, and this write is a SessionConflict.
    """

    messages: Sequence[Message]
    patch: Patch
    ledger: Sequence[LedgerEntry] = ()
    absorbed: Sequence[str] = ()
    after: int | None = None  # None: any number


class TurnEnd(Struct, frozen=True, kw_only=True):
    """The result of `finish_turn`. `next` is the lane's next item, already claimed under the same lease (None: the lane
    was released). `outbound` are the rows that this worker must now send."""

    messages: tuple[Message, ...]
    next: InboxItem | None
    outbound: tuple[Outbound, ...]


class Decision(Struct, frozen=True, kw_only=True):
    """The result of a verdict. `approval` is the question as it is now; `first` says whether this verdict decided it.
    `outbound` are the rows that this worker must now send."""

    approval: Approval
    first: bool
    outbound: tuple[Outbound, ...] = ()


class Changed(Struct, frozen=True, kw_only=True):
    """The result of changing a reminder. `first`: nobody else had changed it before. `outbound` are the rows that this
    worker must now send."""

    first: bool
    outbound: tuple[Outbound, ...] = ()


class Opening(Struct, frozen=True, kw_only=True):
    """A session to be opened. `transcript` holds stored messages (with a host `id`: shared by
    reference) and new ones (without: stored)."""

    session: Session
    transcript: Sequence[Message] = ()


class SessionChanges(TypedDict, total=False):
    """The fields of a session that a write outside of a turn may change."""

    title: str | None
    model: str
    model_chosen_at: str | None
    places: Sequence[str]
    system_prompt: str
    last_prompt_tokens: int
    engine_state: Mapping[str, Any]
    announced: Sequence[str]
    expires_at: float | None
    flushed_messages: int


def check_changes(changes: SessionChanges) -> None:
    """Raises ValueError for fields that cannot be changed this way."""
    if unknown := changes.keys() - SessionChanges.__annotations__:
        raise ValueError(f"a session's {', '.join(sorted(unknown))} cannot be changed this way")


class Rebuilt(Struct, frozen=True, kw_only=True):
    """A session's system prompt, built anew. `last_prompt_tokens`: what the provider would have reported for this
    prompt; 0 if there is no report."""

    ref: SessionRef
    system_prompt: str
    last_prompt_tokens: int


class Replacement(Struct, frozen=True, kw_only=True):
    """A message that replaces the stored message `old` in every transcript: a summary of something forgotten, made
    again. It is stored for the session `session_id`."""

    old: str
    message: Message
    session_id: str


class Rewriting(Struct, frozen=True, kw_only=True):
    """The new state of a session that held something forgotten, besides its transcript; its prompt goes. `freed`: the
    tokens by which its transcript shrinks."""

    session_id: str
    freed: int
    title: str | None
    todos: tuple[Todo, ...]


class Forgetting(Struct, frozen=True, kw_only=True):
    """What a key's conversations lose.

    `id` is made from its cause, so that no deed is done twice. `tip` is the key's present session as the caller saw it;
    `item` is the item that asked, whose own words go, too. `removed` are ids of messages, `reminders` of reminders,
    `files` are refs, `rules` pins. `counts` is for people.
    """

    id: str
    key: SessionKey
    at: float
    item: str | None
    tip: SessionRef | None
    removed: tuple[str, ...]
    replaced: tuple[Replacement, ...] = ()
    sessions: tuple[Rewriting, ...] = ()
    files: tuple[str, ...] = ()
    reminders: tuple[str, ...] = ()
    rules: tuple[Pin, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)


class Erasure(Struct, frozen=True, kw_only=True):
    """Everything of a key goes; with `before`, only older things: ended sessions whose last message, and files that
    were kept, before that moment (seconds since the epoch); with `over`, only the temporary chat that ended then, with
    these `files`. `id` and `item` are as in `Forgetting`."""

    id: str
    key: SessionKey
    at: float
    item: str | None = None
    before: float | None = None
    over: float | None = None
    files: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether nothing of the key stays."""
        return self.before is None and self.over is None


class Talk(Struct, frozen=True, kw_only=True):
    """A conversation in which a person spoke."""

    key: SessionKey
    chat_type: ChatType


class Found(Struct, frozen=True, kw_only=True):
    """An original message, with the session in which it was said first."""

    session_id: str
    message: Message
    at: float


Vector: TypeAlias = tuple[bytes, bytes]  # its signs and its numbers (`shared/vectors`); empty: none is to be had


class Unembedded(Struct, frozen=True, kw_only=True):
    """A message without a vector, and the key of its conversation. `text` "": it needs none."""

    message_id: str
    key: SessionKey
    session_id: str
    text: str


class Meaning(Struct, frozen=True, kw_only=True):
    """The vector of a question, and the model that made it."""

    model: str
    vector: Vector


class Passage(Struct, frozen=True, kw_only=True):
    """A result of a search: consecutive messages. `best` is the place of the message that was found, among its
    neighbours. `score` can be compared within one search."""

    turns: tuple[Found, ...]
    best: int
    score: float

    @property
    def hit(self) -> Found:
        """The message that was found."""
        return self.turns[self.best]


class Fate(Struct, frozen=True, kw_only=True):
    """An item and what became of it. `outcome` None: it has not ended. `absorbed_by`: the id of the item whose turn
    answered it."""

    item: InboxItem
    outcome: ItemOutcome | None
    ended_at: float | None
    absorbed_by: str | None


class Named(Struct, frozen=True, kw_only=True):
    """Everything with a certain name: items, also those that came as the event of this name; a message; a row of the
    outbox."""

    fates: tuple[Fate, ...] = ()
    message: Found | None = None
    row: Outbound | None = None


class Call(Struct, frozen=True, kw_only=True):
    """A model call, and the session that it was made for."""

    session_id: str
    entry: LedgerEntry


class StoreStatus(Struct, frozen=True, kw_only=True):
    """Figures for `/status` and `legato check`."""

    waiting: int  # accepted, not yet ended
    unsent: int  # outbound rows not yet in a final state
    dead: int
    sessions: int
    unindexed: int = 0  # messages whose search entries another version made, and which a run makes anew


class Pile(Struct, frozen=True, kw_only=True):
    """Things that wait. `oldest`: since when the oldest one waits (seconds since the epoch); None if nothing does."""

    count: int = 0
    oldest: float | None = None


class Backlog(Struct, frozen=True, kw_only=True):
    """What waits in the store, for a monitor that asks often: nothing is scanned.

    Moments are seconds since the epoch. `waiting`: items without an outcome, by platform. `idle`: since when the oldest
    item waits in a lane that nobody runs, by platform, as far as this process can know. `unsent`: rows that were not
    shown yet, by platform and state; those that stream have no age. `dead`: items that were given up.
    """

    waiting: Mapping[str, Pile] = field(default_factory=dict)
    idle: Mapping[str, float] = field(default_factory=dict)
    unsent: Mapping[tuple[str, str], Pile] = field(default_factory=dict)
    dead: int = 0


class Cap(Struct, frozen=True, kw_only=True):
    """A spend cap in force: `account` may not be charged more than `limit`, in millionths of a US dollar. `resets_at`:
    when another account takes over (at the end of a day, seconds since the epoch); None: never."""

    name: CapName
    account: str
    limit: int
    resets_at: float | None = None


class Reservation(Struct, frozen=True, kw_only=True):
    """The most that one model call can cost, in millionths of a US dollar, and the caps that it counts against, widest
    first. `id` is the call's own."""

    id: str
    amount: int
    caps: tuple[Cap, ...]


class CapReached(Struct, frozen=True, kw_only=True):
    """A reservation was refused by the first cap without room. `spent`: what is spent and reserved under that cap, in
    millionths of a US dollar."""

    cap: Cap
    spent: int
