"""The store port: the atomic steps of the domain, never generic CRUD.

Rules every implementation keeps, and the contract suite proves:

1. Each writing method is one transaction: all of it is durable when it returns, or none of it.
2. Messages are immutable and append-only; a transcript is an ordered list of references to them. Only `forget` and
   `erase`, which a person asks for, take any away.
3. A write in a lane carries its `Lease`; a stale fence raises SessionConflict, nothing is written.
   A write to a session also carries its `SessionRef`; a stale epoch raises SessionConflict.
4. One claim per lane at a time, items in arrival order; one claimed Outbound per chat at a time,
   in emission order.
5. Everything a writing method touches belongs to one (platform, chat), except the ledger, the
   search index and lists over all sessions, which may lag. Nothing needs a join.
6. No step costs more because more sessions exist or a transcript is longer.

Foreign failures (disk full, connection lost) become StoreUnavailable.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Final, Protocol, Unpack, runtime_checkable

from gateway.domain.adapter import Rate
from gateway.domain.approval import Approval, Verdict
from gateway.domain.chat import ChatAddress, KeptFile, Outbound, OutboundState, SessionKey
from gateway.domain.memory import Memory, MemoryChange
from gateway.domain.message import Message
from gateway.domain.reminder import Reminder
from gateway.domain.rule import Pins
from gateway.domain.session import Compaction, EndReason, Session, SessionRef, is_continuation
from gateway.domain.usage import LedgerEntry, UsageTotal
from gateway.runtime.errors import SessionNotFound
from gateway.runtime.metrics import Counter
from gateway.store.records import (
    Arrival,
    Backlog,
    Beginning,
    Call,
    CapReached,
    Changed,
    Claim,
    Decision,
    Erasure,
    Forgetting,
    Found,
    InboxItem,
    ItemOutcome,
    Lease,
    Meaning,
    Named,
    Opening,
    Passage,
    Rebuilt,
    Receipt,
    Reservation,
    SessionChanges,
    SignalKind,
    StepRecord,
    StoreStatus,
    Talk,
    ToolIntent,
    TurnEnd,
    TurnJournal,
    Unembedded,
    UsageBy,
    Vector,
)

PROCESSES_LOST: Final = Counter(
    name="processes_lost", text="Other processes of the store that this one found dead; each part of it counts."
)


@runtime_checkable
class Remembers(Protocol):
    """A store that keeps in memory what it has read."""

    def rest(self) -> int:
        """Forget what nobody asked for since the last call; return its bytes."""


@runtime_checkable
class CanBeDamaged(Protocol):
    """A store in a file, whose bytes others may change."""

    async def check(self) -> None:
        """Read all of it. Raises StoreUnavailable where it is damaged."""


class InboxStore(ABC):
    """What people sent, and the lane of each conversation in which it waits."""

    @abstractmethod
    async def accept(self, arrivals: Sequence[Arrival], *, cap: int) -> list[Receipt]:
        """Store each Inbound once by (platform, event_id) and schedule its lane.

        An event that is known is a `duplicate`; one is `full`, and is not stored, if its lane holds `cap` items
        already. Receipts come in the order of the arrivals; `waiting` counts the running item, too.
        """

    @abstractmethod
    async def refuse(self, arrival: Arrival, notice: Outbound) -> tuple[Outbound, ...]:
        """Record an Inbound as refused, together with the sentence that says so; nothing happens for a duplicate.
        Returns the rows to send now."""

    @abstractmethod
    async def amend(self, arrival: Arrival) -> bool:
        """The writer changed a message or took it back: its item, which has the arrival's key and event id, gets this
        Inbound in the place of its own. False, and nothing changes, unless that item waits in its lane and no attempt
        was made at it."""

    @abstractmethod
    async def claim_next(self, worker: str) -> Claim:
        """Wait for a lane with work that nobody runs, and claim it with a fresh fence.

        The attempt is counted durably before this returns. Safe to cancel: a cancelled wait
        claims nothing. Items left by an earlier process come back in their order. An item that
        SUSPECT_ATTEMPTS claims have not ended is claimed only while this process runs no other such item, and when it
        has run for as long as ATTEMPT_PAUSES says: neither the one that kills the process, nor a process that dies
        for reasons of its own, must use up the attempts of the others.
        """

    @abstractmethod
    async def claim_bypassed(self, worker: str) -> list[InboxItem]:
        """Bypass items that another process accepted and did not end; each is given once."""

    @abstractmethod
    async def release(self, lease: Lease, *, counted: bool = False) -> None:
        """Give a lane back with its head unfinished. The attempt does not count (shutdown), unless it is
        `counted`: the attempt failed in a way that may repeat itself."""

    @abstractmethod
    async def running(self, key: SessionKey) -> InboxItem | None:
        """The key's item that some process runs, or has begun and is about to resume."""

    @abstractmethod
    async def waiting(self, key: SessionKey, limit: int, *, behind: InboxItem | None = None) -> list[InboxItem]:
        """The key's queued items behind the running one, oldest first. `behind`: the item that this process runs there,
        for whose turn those are enough that the process has heard of."""

    @abstractmethod
    async def signal(self, key: SessionKey, kind: SignalKind, at: float) -> bool:
        """Leave a signal for the item that runs in the key's lane (or is about to be resumed).
        False, and nothing is stored, if there is no such item."""

    @abstractmethod
    async def signals(self, item: InboxItem) -> tuple[SignalKind, ...]:
        """Signals left for this item, which stay until the item ends."""

    @abstractmethod
    def on_signal(self, listener: Callable[[SessionKey, SignalKind], None]) -> None:
        """Call `listener` on the event loop whenever a signal is left, in every process."""


class TurnStore(ABC):
    """The steps of one turn, from its claim to its reply."""

    @abstractmethod
    async def beginning(self, item: InboxItem) -> Beginning:
        """Return what a turn begins with, by one look."""

    async def journal(self, item: InboxItem) -> TurnJournal | None:
        """Return the progress of an earlier attempt; None if it recorded nothing."""
        return (await self.beginning(item)).journal

    @abstractmethod
    async def open_reply(self, lease: Lease, item: InboxItem, reply: Outbound) -> Outbound:
        """Store a reply that starts to stream, in state `streaming`. The reply gets its place among the chat's
        rows with its text, from the turn's end; until then the others do not wait for it. An item has one
        reply: asked again, the store returns the first as it is."""

    @abstractmethod
    async def note_streamed(self, outbound_id: str, platform_message_id: str | None) -> None:
        """Remember the platform's id of a streaming reply's message. None: the platform may show one, and nobody knows
        its id."""

    @abstractmethod
    async def begin_tools(
        self, lease: Lease, ref: SessionRef, item: InboxItem, record: StepRecord, intents: Sequence[ToolIntent]
    ) -> tuple[Message, ...]:
        """Append the step so far (its tool calls last) and the intents, before any effect.
        Returns the messages as stored, with their ids."""

    @abstractmethod
    async def record_step(
        self, lease: Lease, ref: SessionRef, item: InboxItem, record: StepRecord
    ) -> tuple[Message, ...]:
        """Append what a step added, count the step and clear its intents."""

    @abstractmethod
    async def finish_turn(
        self,
        lease: Lease,
        ref: SessionRef | None,
        item: InboxItem,
        record: StepRecord | None,
        outcome: ItemOutcome,
        outbound: Sequence[Outbound],
    ) -> TurnEnd:
        """End an item: messages, usage, inbox row, signals and outbox rows in one transaction.

        An Outbound whose id names the streaming reply gives that row its final text; a streaming
        reply that gets none is refused. If the caller is cancelled while this is written, the next item and
        the rows go to the next claim. `ref` and `record` are None for an item that touched no session (a
        command, a refusal).
        """

    @abstractmethod
    async def finish_bypassed(self, item: InboxItem, outbound: Sequence[Outbound]) -> tuple[Outbound, ...]:
        """End a bypass item with its answer. Returns the rows to send now."""


class QuestionStore(ABC):
    """What people are asked, and what they decide. Questions belong to an unfinished item, whose end forgets them: a
    button that is pressed later names nothing."""

    @abstractmethod
    async def ask(self, lease: Lease, approval: Approval, shown: Sequence[Outbound]) -> tuple[Outbound, ...]:
        """Store a question of the item that the lane runs, and the rows that ask it; a token that is
        known is not stored again. A streaming reply among the rows has its final text, and the item may open
        another one. Returns the rows to send now."""

    @abstractmethod
    async def decide(
        self, asked: Approval, verdict: Verdict, by: str | None, at: float, shown: Sequence[Outbound]
    ) -> Decision | None:
        """Decide a question, together with the rows that say so, unless somebody was first: then nothing
        is stored. None: the question is not there any more."""

    @abstractmethod
    async def approvals(self, chat: ChatAddress) -> list[Approval]:
        """The questions of the chat's unfinished items (in all of its threads), decided or not, as they
        were asked."""

    @abstractmethod
    def on_decided(self, listener: Callable[[SessionKey], None]) -> None:
        """Call `listener` on the event loop whenever a question of a key is decided, in every process.
        News may be lost: a turn that waits looks now and then."""


class FleetStore(ABC):
    """What several processes on one store say to one another."""

    @abstractmethod
    def serve(self, *, runs: Collection[str], sends: Collection[str]) -> None:
        """From now on this process claims only lanes and bypass items of the platforms `runs`, and
        only rows and reminders of the platforms `sends`; the others wait for another process. Before the first
        call it claims everything."""

    @abstractmethod
    def on_rows(self, listener: Callable[[], None]) -> None:
        """Call `listener` on the event loop whenever `claim_outbound` may give rows that this process did not
        know of."""

    @abstractmethod
    def on_left(self, listener: Callable[[], None]) -> None:
        """Call `listener` on the event loop whenever another process died or ended and left items to
        `claim_bypassed` or `pending_hooks`."""

    @abstractmethod
    async def hold(self, name: str, holder: str, seconds: float) -> bool:
        """Take a lease, or renew it, for so many seconds: whether `holder` has it now. A lease has one holder at
        a time in all processes, such as the one that polls a bot account."""

    @abstractmethod
    async def let_go(self, name: str, holder: str) -> None:
        """Give a lease back before its time; nothing happens to a lease of another holder."""


class SessionStore(ABC):
    """Sessions, their transcripts, and the hooks that are owed for their ends."""

    @abstractmethod
    async def tip(self, key: SessionKey) -> Session | None:
        """The key's present session."""

    @abstractmethod
    async def session(self, session_id: str, key: SessionKey | None = None) -> Session:
        """The session of this id; its key, where the caller knows it, spares a search. Raises SessionNotFound."""

    @abstractmethod
    async def transcript(self, session: Session) -> tuple[Message, ...]:
        """The session's messages in order, each with its host note (`id`, `tokens`, …)."""

    @abstractmethod
    async def open_session(self, lease: Lease, opening: Opening) -> Session:
        """Open a session under a key that has none open. Raises SessionConflict if the key has one."""

    @abstractmethod
    async def end_session(
        self, lease: Lease, ref: SessionRef, reason: EndReason, at: float, opening: Opening | None
    ) -> Session | None:
        """End a session at a real end: its hook becomes `pending`, the key's tip moves to the session that
        `opening` opens (None: the key has no session until the next message)."""

    @abstractmethod
    async def continue_session(
        self, lease: Lease, ref: SessionRef, opening: Opening, snapshot_length: int, compaction: Compaction
    ) -> Session:
        """Compaction: end the parent (`compression`), open the child, move the tip; messages of
        the parent after `snapshot_length` are appended to the child as they are."""

    @abstractmethod
    async def update_session(self, lease: Lease, ref: SessionRef, **changes: Unpack[SessionChanges]) -> Session:
        """Change fields of a session. Another `model` or `system_prompt` raises the epoch, and another `model`
        forgets the last report. Returns the session as it now is."""

    @abstractmethod
    async def import_sessions(self, openings: Sequence[Opening]) -> list[bool]:
        """Store sessions of another program, which have ended. Their keys' present sessions stay, and lists name them
        behind all that are there. False, and nothing of it is stored, for one of whose id there is a session. Each is
        there whole or not at all, and an error may leave any of them there."""

    @abstractmethod
    async def charge(self, session: Session, calls: Sequence[LedgerEntry]) -> None:
        """Enter model calls that belong to no turn into the ledger, under this session."""

    @abstractmethod
    async def pending_hooks(self, limit: int) -> list[Session]:
        """Ended sessions whose `on_session_end` is still owed, oldest first."""

    @abstractmethod
    async def hook_done(self, session_id: str) -> None:
        """`on_session_end` returned for this session."""

    @abstractmethod
    async def claim_due_sessions(self, now: float, limit: int) -> list[Session]:
        """Open sessions whose `expires_at` has passed, earliest first. A session that was returned is not returned
        again for EXPIRY_CLAIM seconds, unless its deadline changes or the process that claimed it ends before."""

    async def lineage(self, session_id: str) -> list[Session]:
        """Root to tip of the chain of continuations that `session_id` belongs to. Raises SessionNotFound."""
        chain = [await self.session(session_id)]
        seen = {session_id}

        async def unseen(other_id: str | None) -> Session | None:
            """A session that is not in the chain yet: a damaged chain may lead back to its beginning."""
            if other_id is None or other_id in seen:
                return None
            seen.add(other_id)
            with suppress(SessionNotFound):
                return await self.session(other_id)
            return None

        while (parent := await unseen(chain[0].parent_id)) and is_continuation(parent, chain[0]):
            chain.insert(0, parent)
        while (child := await unseen(chain[-1].continuation_id)) and is_continuation(chain[-1], child):
            chain.append(child)
        return chain


class MemoryStore(ABC):
    """What outlives sessions: pins and memory. Pins belong to a key and to none of its sessions: they outlive resets,
    and what is pinned under one key is never seen under another. Facts belong to a scope, which lies in one chat. A
    change names the version that it changes, so no lease is needed: two lanes of a scope, or a process that wakes up
    late, cannot undo each other's work."""

    @abstractmethod
    async def pins(self, key: SessionKey) -> Pins:
        """The key's pins; a key without any is no error."""

    @abstractmethod
    async def set_pins(self, lease: Lease, pins: Pins, rebuilt: Rebuilt | None) -> Session | None:
        """Replace the key's pins and, in the same step, the prompt of its present session, whose epoch
        rises: so no prompt is ever without the pins. Returns that session as it now is. `rebuilt` None: the key
        has no session. Raises SessionConflict if the key has one all the same."""

    @abstractmethod
    async def memory(self, scope: SessionKey) -> Memory:
        """The scope's facts; a scope without any is no error."""

    @abstractmethod
    async def change_memory(self, change: MemoryChange) -> bool:
        """Change the facts of a scope. False, and nothing is stored, if the memory has another version by now: then
        look again."""

    @abstractmethod
    async def note_flushed(self, session: Session, messages: int) -> None:
        """Note that memory has been given so many messages of an ended session; a smaller number changes nothing."""

    @abstractmethod
    async def note_title(self, session: Session, title: str) -> None:
        """Give a session a title that was made of its messages as the caller saw them. One that has a title by now, or
        of which something was forgotten meanwhile, stays as it is."""


class ForgettingStore(ABC):
    """What a person wants forgotten is nowhere afterwards: no row, no index entry and no file of the store holds it.
    What came in and what was shown under the key loses its words as a whole, once it has ended: nobody reads them any
    more, and any of them may repeat what is forgotten. Event ids stay, so that no event is accepted twice."""

    @abstractmethod
    async def forget(self, lease: Lease | None, deed: Forgetting) -> Mapping[str, int]:
        """Take messages out of a key's conversations, with all that the deed names, and return its counts. A deed
        that was done before returns its earlier counts. Raises SessionConflict if the tip is not the key's present
        session any more, under that epoch. `lease` None: the caller holds no lane; a turn that runs in it loses its
        session to the new epoch."""

    @abstractmethod
    async def erase(self, lease: Lease | None, deed: Erasure) -> Mapping[str, int]:
        """Take away everything of a key: its sessions with their messages, its pins and files, and the words of its
        inbox and outbox. Its model calls stay in the ledger as sums of nobody's. Items of its lane that are not ended
        end as refused, but for those of the caller's own lane. Returns counts: sessions, messages, files, rules."""

    @abstractmethod
    async def talks(self, platform: str | None, person: str | None) -> list[Talk]:
        """The conversations in which a person spoke, as far as their messages are still known; None: any platform, and
        everybody. The store is scanned for them."""

    @abstractmethod
    async def forgotten(self, key: SessionKey, deed: str) -> Mapping[str, int] | None:
        """Return the counts of the deed with this id; None: it was not done."""


class ReminderStore(ABC):
    """Reminders belong to a key, and outlive its sessions. A reminder that waits costs nothing: the store orders those
    that have a time by it. While their chat is closed they are parked, and are not due."""

    @abstractmethod
    async def add_reminder(self, reminder: Reminder, most: int, in_chat: int) -> Reminder | None:
        """Store a reminder and give it the key's next number. One whose id is known is returned as it is now. None:
        its person has `most` in this chat that wait or are paused."""

    @abstractmethod
    async def reminder(self, chat: ChatAddress, reminder_id: str) -> Reminder | None:
        """The reminder of this id, if it belongs to this chat."""

    @abstractmethod
    async def reminders(self, key: SessionKey, over: int) -> list[Reminder]:
        """The key's reminders that wait or are paused, by their number, and then those that are over, newest first, at
        most so many."""

    @abstractmethod
    async def has_reminders(self, key: SessionKey) -> bool:
        """Whether the key ever had a reminder; asked at every message, so it costs next to nothing."""

    @abstractmethod
    async def due_reminders(self, now: float, limit: int) -> list[Reminder]:
        """Reminders whose time has come, of the platforms that this process sends to, earliest first. Nothing is
        claimed: of several processes that change a reminder, one is first."""

    @abstractmethod
    async def change_reminder(
        self,
        reminder: Reminder,
        shown: Sequence[Outbound] = (),
        arrival: Arrival | None = None,
        also: Sequence[Reminder] = (),
    ) -> Changed:
        """Put a reminder into the place of the version before it, and those in `also`, which are of the same chat, all
        or none, together with the rows that say so, and with the item
        that it puts into its lane, whatever waits there. If that version was replaced already, nothing is stored."""


class FileStore(ABC):
    """Files belong to a key, as pins do: what was sent in one conversation is never read in another. A content is named
    by its SHA-256 and never changes, so no lease is needed: a process that keeps a content twice, or too late, keeps
    the same. Messages and rows name a content and never hold one, which is loaded only when it is shown."""

    @abstractmethod
    async def keep_file(self, key: SessionKey, file: KeptFile, content: bytes) -> KeptFile:
        """Keep a file and its content, whose digest the file states. The first file that was kept under a `ref`
        stands, and is returned."""

    @abstractmethod
    async def kept_file(self, key: SessionKey, ref: str) -> KeptFile | None:
        """The file that was kept under this `ref`."""

    @abstractmethod
    async def kept_files(self, key: SessionKey, limit: int) -> list[KeptFile]:
        """The key's files, newest first."""

    @abstractmethod
    async def file_content(self, key: SessionKey, digest: str) -> bytes | None:
        """The content of a file of this key; None: the key has no content of this digest."""


class OutboxStore(ABC):
    """Rows that people are shown, in the order of emission in each chat."""

    @abstractmethod
    async def emit(self, outbound: Sequence[Outbound]) -> tuple[Outbound, ...]:
        """Store messages that belong to no turn's end; a message whose id is known is not stored again.
        Returns the rows to send now: of each chat at most its head."""

    @abstractmethod
    async def claim_outbound(self, limit: int) -> list[Outbound]:
        """Claim each chat's earliest unfinished row that is due; for rows in state `sending` that
        no living worker owns, the earlier attempt counts as ambiguous."""

    @abstractmethod
    def owns(self, row: Outbound) -> bool:
        """Whether a row that this process has claimed is certainly still its own. Another process may have taken
        over the row of a process that was silent for too long (stopped, cut off)."""

    @abstractmethod
    async def mark_sent(self, outbound_id: str, platform_message_id: str | None) -> Outbound | None:
        """The platform showed the row. Returns the chat's next row, already claimed for sending, if there is one."""

    @abstractmethod
    async def mark_retry(
        self, outbound_id: str, seconds: float, *, ambiguous: bool, anew: bool = False, counted: bool = True
    ) -> None:
        """This attempt failed; try again in `seconds`, by the store's own time, which setting a clock does not
        move. The chat's later rows wait for the row. `ambiguous`: nobody knows whether the row was shown. `anew`:
        the message that the row had is gone, and every doubt about the message; the row is sent like a new one.
        Not `counted`: the platform asked the row to wait, which is no attempt."""

    @abstractmethod
    async def mark_refused(
        self,
        outbound_id: str,
        reason: str,
        instead: Outbound | None = None,
        *,
        gone: bool = False,
        keeps: bool = False,
    ) -> Outbound | None:
        """The platform will never show the row; `instead` (a visible error) takes its place. `keeps`: the row is
        withheld if it is an answer (`KEPT`, a file), and not refused: emitted again, it goes out behind the chat's
        rows like a new one. What a closed chat is not shown is withheld so, too. `gone`: nothing can be
        shown in the chat any more, so the chat is closed, unless a message from there was accepted since the row
        was handed out: the message is newer than the platform's refusal. Returns a row as `mark_sent` does."""

    @abstractmethod
    async def has_unsent(self, to: ChatAddress) -> bool:
        """Whether rows of this chat wait to be shown, or are being sent. A reply that streams does not count."""

    @abstractmethod
    async def unasked(self, to: ChatAddress) -> int:
        """Count the rows of this chat that nobody waits for (`Outbound.unasked`) and that were not sent yet. They go
        out behind the chat's other rows."""

    @abstractmethod
    async def next_due(self) -> float | None:
        """In how many seconds the earliest row that waits for a retry is due; None: no row waits."""

    @abstractmethod
    async def rows(self, chat: ChatAddress, row_ids: Sequence[str]) -> list[Outbound]:
        """The rows of these ids, as far as they are of this chat."""


class ChatStore(ABC):
    """Chats in which nothing can be shown any more, and those that their platform calls by another name than before. A
    chat is closed in all its threads, for every process, until a message from it is accepted: `accept` opens the chat
    in the same step. `mark_refused` closes a chat, too. A chat keeps its first name, under which its conversations,
    rules, files and questions lie: so nothing has to be moved, and no message can fall between two keys."""

    @abstractmethod
    async def close_chat(self, to: ChatAddress, reason: str) -> None:
        """The platform said that nothing reaches this chat: rows that wait are refused with `reason`, and so is
        every later row when its turn comes, without an attempt. A row that is being sent ends by itself."""

    @abstractmethod
    async def open_chat(self, to: ChatAddress) -> bool:
        """The chat is there again; say whether it was closed."""

    @abstractmethod
    async def closed(self, to: ChatAddress) -> str | None:
        """Return the reason why the chat is closed; None: the chat is open."""

    @abstractmethod
    async def rename_chat(self, platform: str, before: str, after: str) -> None:
        """The platform calls the chat `before` by the name `after` from now on, and the chat is open. Told again,
        nothing changes: the first name that was said of `after` stays its first name. The step may be several
        transactions: a caller that was cut short repeats the step."""

    @abstractmethod
    async def first_name(self, platform: str, chat: str, event_id: str) -> str:
        """Return the first name of an event's chat. An event that was accepted before the store knew the other name
        keeps its chat, so that the event is known when it comes again."""

    @abstractmethod
    async def later_name(self, platform: str, chat: str) -> str | None:
        """Return the present name of a chat that has another one by now; None: `chat` is still its name."""


class BudgetStore(ABC):
    """What may be spent, and how fast may be sent. Counted for all processes."""

    @abstractmethod
    async def reserve(self, reservation: Reservation) -> CapReached | None:
        """Count a call's worst case as spent under each of its caps, or under none of them: then the
        first cap without room is returned. The same id counts once, however often it is asked for.

        However many ask at once, no account goes beyond its limit; of several calls that together have no
        room, all may be refused. A call that nobody settles stays counted as it was reserved: its process
        is dead, and the money may have been spent.
        """

    @abstractmethod
    async def settle(self, reservation: Reservation, cost: int) -> None:
        """Replace a reservation by the call's real cost, in millionths of a US dollar. A second time, or a
        day later, nothing changes."""

    @abstractmethod
    async def spent(self, accounts: Sequence[str]) -> list[int]:
        """Return the sum that is spent and reserved under each account, in millionths of a US dollar."""

    @abstractmethod
    async def take(self, account: str, ticket: str, rates: Sequence[Rate]) -> float:
        """Seconds until the message `ticket` may be sent; 0.0: now, and the ticket is used up.

        The moment is the ticket's own: a caller that waited asks again with the same ticket, in any
        process, and is told 0.0, or to wait again if `hold_off` or the caller's own delay moved the moment.
        Moments given away in `account` keep all `rates`, however many processes ask; a moment that
        nobody uses is lost. One clock decides: the process's own, or the server's where the store is shared.
        """

    @abstractmethod
    async def hold_off(self, account: str, bucket: str, seconds: float) -> None:
        """The platform asked for silence: until the silence is over, this bucket has no moment, not even one that
        was given away already, and not after a restart either."""

    @abstractmethod
    async def resting(self, account: str, bucket: str) -> float:
        """For how many seconds the bucket must stay silent; 0.0: it need not."""


def under(key: SessionKey, kind: str) -> str:
    """The folder of a kind of small state, a word, that lies under a key: it is erased with the key, and words that
    are forgotten under the key are forgotten in it."""
    return f"{kind} {key}"


class Documents(ABC):
    """Small state without steps of its own: notes, which are small texts by name, in folders. A platform's adapter has
    a folder of its account; every other kind of small state has one of its own, or one `under` each conversation.
    Notes are copied and migrated with the rest. The steps work in a store that is opened for reading, too: an admin
    lets somebody in from a shell while the gateway runs."""

    @abstractmethod
    async def notes(self, folder: str) -> dict[str, str]:
        """The folder's notes by name; a folder without any is no error."""

    @abstractmethod
    async def set_notes(
        self, folder: str, changes: Mapping[str, str | None], still: Mapping[str, str | None] | None = None
    ) -> bool:
        """Write these notes, and forget those that are None. False, and nothing is stored, unless the notes of `still`
        are as they were read, None those that were not there: then look again."""

    @abstractmethod
    async def folders(self, key: SessionKey) -> list[str]:
        """The folders `under` a key that hold notes. The store may be scanned."""


class ReportStore(ABC):
    """Reading for people: a search, and lists over everything."""

    @abstractmethod
    async def sessions(self, key: SessionKey | None, limit: int, offset: int = 0) -> list[Session]:
        """Sessions of a key (None: of all), newest first."""

    @abstractmethod
    async def conversations(self, chat: SessionKey, limit: int) -> list[SessionKey]:
        """The keys with sessions of a chat that has this key: that one and those of its threads, newest first, without
        helpers. Redis reads the keys of a sixteenth of all sessions for it."""

    @abstractmethod
    async def compactions(self, session_id: str) -> list[Compaction]:
        """The compactions that ended or opened this session, oldest first."""

    @abstractmethod
    async def search(
        self, words: str, key: SessionKey | None, limit: int, meaning: Meaning | None = None
    ) -> list[Passage]:
        """Original messages (no summaries, no stubs) that answer a question or hold some of the words, best first:
        what was said, then what tools returned, as far as that is indexed (`searchable`, `ranking`). What holds
        the words between quotation marks as they are comes first. `key` None: in all conversations. `meaning`: what was
        said and means nearly the same is found, too, as far as it has vectors of that model."""

    @abstractmethod
    async def holding(self, values: Sequence[str], key: SessionKey, limit: int) -> list[list[Found]]:
        """For each of a few values the original messages of a key that hold it as it is written, as far as that is
        indexed: the oldest and up to `limit` of the newest, oldest first. All values cost one look, because a turn
        waits for it."""

    @abstractmethod
    async def around(self, key: SessionKey, message_id: str, reach: int) -> list[Found]:
        """A message of a key's conversations among what was said before and after it, oldest first, at most `reach`
        messages on each side; empty for a message of no conversation of this key."""

    @abstractmethod
    async def usage(
        self, since: float, by: UsageBy, session_id: str | None = None, key: SessionKey | None = None
    ) -> list[UsageTotal]:
        """Ledger totals from `since` on, most expensive first, optionally of one session or key."""

    @abstractmethod
    async def calls(self, key: SessionKey, since: float, until: float) -> list[Call]:
        """The model calls of a key's conversations between two moments, oldest first."""

    @abstractmethod
    async def named(self, name: str, platforms: Collection[str]) -> Named:
        """What has this id, which people read in a log or a list; also the events of this id on these platforms."""

    @abstractmethod
    async def status(self, platforms: Collection[str] | None = None) -> StoreStatus:
        """Counts over everything, for which the store may be scanned. Waiting items and unsent rows are counted of
        these platforms alone, if they are given."""

    @abstractmethod
    async def backlog(self) -> Backlog:
        """What waits, over all platforms; it costs no more because more was said, or more people talk. Where thousands
        wait, the store may look at some of them alone, and give ages that are too small."""

    @abstractmethod
    async def heard(self, key: SessionKey, limit: int) -> list[InboxItem]:
        """The key's items, whatever became of them, newest first: at most the newest MOST_HEARD ones."""

    @abstractmethod
    async def dead(self, limit: int) -> list[InboxItem]:
        """The items that were given up (outcome `dead`), newest first."""

    @abstractmethod
    async def bury(self, item: InboxItem) -> bool:
        """Take an item off the dead ones: it counts as withdrawn. False: it was none of them."""

    @abstractmethod
    async def outbox(
        self, address: ChatAddress | None, limit: int, states: Collection[OutboundState] = ()
    ) -> list[Outbound]:
        """Outbound rows of an address (None: of all), newest first; only those in one of these states, if any is
        given, for which the store may be scanned."""


class VectorStore(ABC):
    """Vectors of messages, beside the index. They go with their messages, and all of them once those of another model
    or length are kept. No migration carries them: they are made anew."""

    @abstractmethod
    async def unembedded(self, model: str, length: int, limit: int) -> list[Unembedded]:
        """Some messages of one conversation without a vector of this model and length (0: nobody knows), the newest
        ones first; none: all have one."""

    @abstractmethod
    async def keep_vectors(self, model: str, key: SessionKey, kept: Mapping[str, Vector]) -> None:
        """Keep the vectors of all messages that `unembedded` gave, by their ids; `vectors.NONE` for those that can have
        none. A message that was forgotten meanwhile gets none."""


class Store(
    InboxStore,
    TurnStore,
    QuestionStore,
    FleetStore,
    SessionStore,
    MemoryStore,
    ForgettingStore,
    ReminderStore,
    FileStore,
    OutboxStore,
    ChatStore,
    BudgetStore,
    Documents,
    ReportStore,
    VectorStore,
    ABC,
):
    """All of them, as one backend. `open` before use, `aclose` after; every method may raise StoreUnavailable."""

    @abstractmethod
    async def open(self) -> None:
        """Take ownership and migrate. Raises StoreLocked or StoreUnavailable."""

    @abstractmethod
    async def aclose(self) -> None:
        """Finish pending writes and release ownership. Idempotent."""
