"""The store port: the atomic steps of the domain, never generic CRUD.

A method names the step that does the work, and what this process must remember afterwards; a `Backend` runs the step.
Rules that every backend keeps, and the contract suite proves:

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

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Final, Protocol, Unpack, runtime_checkable

from gateway.domain.adapter import Rate
from gateway.domain.approval import Approval, Verdict
from gateway.domain.chat import ChatAddress, KeptFile, Outbound, OutboundState, SessionKey
from gateway.domain.memory import Memory, MemoryChange
from gateway.domain.message import Message, note_of
from gateway.domain.reminder import Reminder
from gateway.domain.rule import Pins
from gateway.domain.session import Compaction, EndReason, Session, SessionRef, is_continuation
from gateway.domain.usage import LedgerEntry, UsageTotal
from gateway.runtime.errors import SessionNotFound, StoreUnavailable
from gateway.runtime.metrics import Counter
from gateway.runtime.structs import replace
from gateway.store.process import StoreProcess
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
    check_changes,
)
from gateway.store.shared.platforms import Platforms
from gateway.store.shared.transcripts import TranscriptCache
from gateway.store.steps import (
    forgetting,
    keeping,
    lanes,
    members,
    outbox,
    pace,
    reminders,
    reports,
    sessions,
    spending,
    turns,
)

_MOST_PASSED_OVER: Final = 500  # passages of chats that a search does not show

PROCESSES_LOST: Final = Counter(
    name="processes_lost", text="Other processes on the store that this process found dead, each part counted."
)


@runtime_checkable
class CanBeDamaged(Protocol):
    """A store in a file, which others may damage."""

    async def check(self) -> None:
        """Read everything. Raises StoreUnavailable if something is damaged."""


class InboxStore(StoreProcess):
    """What people sent, and the lane of each conversation in which it waits."""

    async def accept(self, arrivals: Sequence[Arrival], *, cap: int) -> list[Receipt]:
        """Store each Inbound once by (platform, event_id) and schedule its lane.

        A known event is a `duplicate`. If its lane already holds `cap` items, it is `full` and is not stored. Receipts
        come in the order of the arrivals; `waiting` includes the running item.
        """
        room, disturbed = self._reserve(len(arrivals)), self._disturbed

        def done(accepted: lanes.Accepted) -> None:
            for each in accepted.claimed if self._disturbed == disturbed else ():
                self._quiet[each.item.key.text] = each.item.id
            self._claimed(room, accepted.claimed)

        accepted = await self._backend.run(
            turns.accept, self._caller(), arrivals, cap, room, done=done, failed=lambda: self._claimed(room, ())
        )
        return accepted.receipts

    async def refuse(self, arrival: Arrival, notice: Outbound) -> tuple[Outbound, ...]:
        """Store an Inbound as refused, together with the sentence that says so; a duplicate changes nothing. Returns
        the rows to send now."""
        return await self._send(lanes.refuse, arrival, notice)

    async def amend(self, arrival: Arrival) -> bool:
        """The writer edited a message or took it back: replace the Inbound of its item, which has the arrival's key and
        event id. Returns False, and changes nothing, unless that item still waits and was never tried."""
        return await self._run(lanes.amend, arrival)

    async def claim_next(self, worker: str) -> Claim:
        """Wait for a lane with work that nobody runs, and claim it with a fresh fence.

        The attempt is counted durably before this returns. Safe to cancel: a cancelled wait claims nothing. Items left
        by an earlier process come back in their order. An item becomes a suspect after SUSPECT_ATTEMPTS claims without
        an end. A process runs one suspect at a time, and only once it has lived as long as ATTEMPT_PAUSES says. So the
        attempts of other items are used up neither by an item that kills the process, nor by a process that dies for
        reasons of its own."""
        while (claimed := self._workers.take()) is None:
            found = await self._look_for_lane() if self._workers.may_claim else await self._workers.wait()
            if found is not None:
                claimed = found
                break
        lease = Lease(key=claimed.item.key, worker=worker, fence=claimed.fence)
        return Claim(lease=lease, item=claimed.item, begins=claimed.begins)

    async def claim_bypassed(self, worker: str) -> list[InboxItem]:
        """Bypass items that another process accepted and did not finish; each is given once."""
        return await self._backend.run(lanes.claim_left, self._caller())

    async def release(self, lease: Lease, *, counted: bool = False) -> None:
        """Give a lane back with its head unfinished. The attempt does not count (as at a shutdown), unless it is
        `counted` because the failure may happen again."""

        def done(_: None) -> None:
            self._room += 1
            self._quiet.pop(lease.key.text, None)

        await self._backend.run(lanes.release, lease, counted, done=done)

    async def running(self, key: SessionKey) -> InboxItem | None:
        """The key's item that a process runs, or has begun and will resume."""
        return await self._look(lanes.running, key)

    async def waiting(self, key: SessionKey, limit: int, *, behind: InboxItem | None = None) -> list[InboxItem]:
        """The key's queued items behind the running one, oldest first. If `behind` is given, this process runs that
        item, and only needs those that it has heard of."""
        if behind is not None and self._is_quiet(behind):
            return []
        return await self._look(lanes.waiting, key, limit)

    async def signal(self, key: SessionKey, kind: SignalKind, at: float) -> bool:
        """Leave a signal for the item that runs in the key's lane, or will be resumed. Returns False, and stores
        nothing, if there is none."""
        return await self._run(lanes.signal, key, kind, at)

    async def signals(self, item: InboxItem) -> tuple[SignalKind, ...]:
        """Signals for this item. They stay until it ends."""
        return () if self._is_quiet(item) else await self._look(lanes.signals, item)

    def on_signal(self, listener: Callable[[SessionKey, SignalKind], None]) -> None:
        """Call `listener` on the event loop whenever a signal is left, by any process."""
        self._listeners["signal"].append(listener)


class TurnStore(StoreProcess):
    """The steps of one turn, from its claim to its reply."""

    async def beginning(self, item: InboxItem) -> Beginning:
        """Everything that a turn begins with, in one look."""
        return await self._look(turns.beginning, item)

    async def journal(self, item: InboxItem) -> TurnJournal | None:
        """The progress of an earlier attempt; None if there is none."""
        return (await self.beginning(item)).journal

    async def open_reply(self, lease: Lease, item: InboxItem, reply: Outbound) -> Outbound:
        """Store a reply that starts to stream, in state `streaming`. It gets its place among the chat's rows when the
        turn ends and its text is known; until then no row waits for it. An item has one reply: asked again, this
        returns the first one unchanged."""
        return await self._run(turns.open_reply, lease, item, reply)

    async def note_streamed(self, outbound_id: str, platform_message_id: str | None) -> None:
        """Remember the platform's id of a streaming reply's message. None: there may be a message, but nobody knows its
        id."""
        await self._run(outbox.note_streamed, outbound_id, platform_message_id)

    async def begin_tools(
        self, lease: Lease, ref: SessionRef, item: InboxItem, record: StepRecord, intents: Sequence[ToolIntent]
    ) -> tuple[Message, ...]:
        """Append the step so far (its tool calls last) and the intents, before anything has an effect. Returns the
        messages as stored, with their ids."""
        return await self._append(turns.begin_tools, lease, ref, item, record, intents)

    async def record_step(
        self, lease: Lease, ref: SessionRef, item: InboxItem, record: StepRecord
    ) -> tuple[Message, ...]:
        """Append what a step added, count the step and clear its intents."""
        return await self._append(turns.record_step, lease, ref, item, record)

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
        if (ref is None) != (record is None):
            raise ValueError("a turn's end has both a session and a record, or neither")
        step = None if ref is None or record is None else (ref, record)

        def done(ended: turns.Ended) -> None:
            if ended.appended is not None:
                self._appended(ended.appended)
            self._quiet.pop(lease.key.text, None)
            if ended.next is None:
                self._room += 1

        def abandoned(ended: turns.Ended) -> None:
            self._left_over(ended.outbound)
            if ended.next is not None:
                self._workers.offer(lanes.Claimed(fence=lease.fence, item=ended.next))

        ended = await self._backend.run(
            turns.finish, self._caller(), lease, item, step, outcome, outbound, done=done, abandoned=abandoned
        )
        stored = () if ended.appended is None else ended.appended.messages
        return TurnEnd(messages=stored, next=ended.next, outbound=ended.outbound)

    async def finish_bypassed(self, item: InboxItem, outbound: Sequence[Outbound]) -> tuple[Outbound, ...]:
        """End a bypass item with its answer. Returns the rows to send now."""
        return await self._send(turns.finish_bypassed, item, outbound)


class QuestionStore(StoreProcess):
    """What people are asked, and what they decide. Questions belong to an unfinished item and end with it: a button
    that is pressed later has no question any more."""

    async def ask(self, lease: Lease, approval: Approval, shown: Sequence[Outbound]) -> tuple[Outbound, ...]:
        """Store a question of the lane's running item, and the rows that ask it; a known token is not stored again. If
        a streaming reply is among the rows, it has its final text, and the item may open another one. Returns the rows
        to send now."""
        return await self._send(turns.ask, lease, approval, shown)

    async def decide(
        self, asked: Approval, verdict: Verdict, by: str | None, at: float, shown: Sequence[Outbound]
    ) -> Decision | None:
        """Decide a question, and store the rows that say so, unless somebody was first. None: the question no longer
        exists."""

        def abandoned(decision: Decision | None) -> None:
            self._left_over(decision.outbound if decision is not None else ())

        return await self._backend.run(turns.decide, self._caller(), asked, verdict, by, at, shown, abandoned=abandoned)

    async def approvals(self, chat: ChatAddress) -> list[Approval]:
        """The questions of the chat's unfinished items (in all threads), decided or not, in the order they were
        asked."""
        return await self._look(turns.approvals, chat)

    def on_decided(self, listener: Callable[[SessionKey], None]) -> None:
        """Call `listener` on the event loop whenever a question of a key is decided, by any process. News may get lost,
        so a waiting turn also looks now and then."""
        self._listeners["decided"].append(listener)


class FleetStore(StoreProcess):
    """How processes on one store talk to one another."""

    def serve(self, *, runs: Collection[str], sends: Collection[str]) -> None:
        """From now on this process claims only lanes and bypass items of the platforms in `runs`, and only rows and
        reminders of those in `sends`. Before the first call it claims everything."""
        self._runs, self._sends = Platforms(runs), Platforms(sends)
        self._nothing_due = False
        self._workers.look()
        self._tell("rows")  # rows that an earlier process left may wait

    def on_rows(self, listener: Callable[[], None]) -> None:
        """Call `listener` on the event loop whenever `claim_outbound` may have rows that this process does not know
        of."""
        self._listeners["rows"].append(listener)

    def on_left(self, listener: Callable[[], None]) -> None:
        """Call `listener` on the event loop whenever another process has died or stopped and left items for
        `claim_bypassed` or `pending_hooks`."""
        self._listeners["left"].append(listener)

    async def hold(self, name: str, holder: str, seconds: float) -> bool:
        """Take or renew a lease for so many seconds. Returns whether `holder` has it now. Only one holder in all
        processes can have a lease, for example to poll a bot account."""
        return await self._fleet(pace.hold, name, holder, self._time.now(), seconds)

    async def let_go(self, name: str, holder: str) -> None:
        """Give a lease back early. Someone else's lease is not touched."""
        await self._fleet(pace.let_go, name, holder)


class SessionStore(StoreProcess):
    """Sessions, their transcripts, and the hooks that are owed for their ends."""

    async def tip(self, key: SessionKey) -> Session | None:
        """The key's present session."""
        return await self._look(sessions.tip, key)

    async def session(self, session_id: str, key: SessionKey | None = None) -> Session:
        """The session with this id. If the caller knows its key, that saves a search. Raises SessionNotFound."""
        return await self._look(sessions.by_id, session_id)

    async def transcript(self, session: Session) -> tuple[Message, ...]:
        """The session's messages in order, each with its host note (`id`, `tokens`, …)."""
        if self._backend.is_beside:  # whose owner tells nothing
            return tuple(await self._read(sessions.transcript, session.id, 0))
        known = self._transcripts.get(session.id, session.rewritten) or ()
        while len(known) < session.message_count:
            rest = await self._backend.read(sessions.transcript, session.id, len(known))
            known = (*known, *rest)
            # Something may have been appended meanwhile; later appends are told.
            if len(known) >= await self._look(sessions.length, session.id):
                self._transcripts.put(session.id, known, session.rewritten)
                break
        return known

    async def open_session(self, lease: Lease, opening: Opening) -> Session:
        """Open a session under a key that has none open. Raises SessionConflict if the key has one."""
        opened = await self._backend.run(sessions.open_session, lease, opening, done=self._opened)
        return opened.session

    async def end_session(
        self, lease: Lease, ref: SessionRef, reason: EndReason, at: float, opening: Opening | None
    ) -> Session | None:
        """End a session at a real end: its hook becomes `pending`, the key's tip moves to the session that
        `opening` opens (None: the key has no session until the next message)."""
        opened = await self._backend.run(sessions.end_session, lease, ref, reason, at, opening, done=self._opened)
        return None if opened is None else opened.session

    async def continue_session(
        self, lease: Lease, ref: SessionRef, opening: Opening, snapshot_length: int, compaction: Compaction
    ) -> Session:
        """Compaction: end the parent (`compression`), open the child, move the tip; messages of
        the parent after `snapshot_length` are appended to the child as they are."""
        opened = await self._backend.run(
            sessions.continue_session, lease, ref, opening, snapshot_length, compaction, done=self._opened
        )
        return opened.session

    async def update_session(self, lease: Lease, ref: SessionRef, **changes: Unpack[SessionChanges]) -> Session:
        """Change fields of a session. Another `model` or `system_prompt` raises the epoch, and another `model`
        forgets the last report. Returns the session as it now is."""
        check_changes(changes)
        return await self._run(sessions.update_session, lease, ref, changes)

    async def set_project(self, owner: SessionKey, session_ids: Sequence[str], project: str) -> None:
        """Put sessions of this owner's chats into a project, by its id ("": into none). Ids of others are left alone.
        No lane is needed: a turn that runs keeps its prompt, and the next one follows."""
        await self._run(sessions.set_project, owner, session_ids, project)

    async def keep_temporary(self, lease: Lease, ref: SessionRef, expires_at: float | None) -> None:
        """Make the key's temporary chat an ordinary one; its present session, with this deadline, gets another epoch
        and no prompt."""
        await self._run(sessions.keep_temporary, lease, ref, expires_at)

    async def import_sessions(self, openings: Sequence[Opening]) -> list[bool]:
        """Store sessions of another program, which have ended. Their keys' present sessions stay, and lists name them
        behind all that are there. False, and nothing of it is stored, for one of whose id there is a session. Each is
        there whole or not at all, and an error may leave any of them there."""
        return await asyncio.gather(*(self._run(sessions.import_session, each) for each in openings))

    async def charge(self, session: Session, calls: Sequence[LedgerEntry]) -> None:
        """Enter model calls that belong to no turn into the ledger, under this session."""
        await self._run(spending.enter, calls, session.id, session.key)

    async def pending_hooks(self, limit: int) -> list[Session]:
        """Ended sessions whose `on_session_end` this process owes, oldest first. What a dead process owed is this one's
        from now on."""
        owed = await self._run(sessions.pending_hooks, self._owner, limit)
        return [session for _, session in sorted(owed, key=itemgetter(0))[:limit]]

    async def hook_done(self, session_id: str) -> None:
        """`on_session_end` has returned for this session."""
        await self._run(sessions.hook_done, session_id)

    async def claim_due_sessions(self, now: float, limit: int) -> list[Session]:
        """Open sessions, and temporary ones that have ended, whose `expires_at` has passed, earliest first. Each is
        returned again only after EXPIRY_CLAIM seconds, or if its deadline changes, or if the process that claimed it
        stops before."""
        return await self._backend.run(sessions.claim_due, self._caller(), now, limit)

    async def note_title(self, session: Session, title: str) -> None:
        """Give a session a title that was made from its messages as the caller saw them, unless it already has one, or
        something of it was forgotten meanwhile."""
        await self._run(sessions.note_title, session, title)

    async def lineage(self, session_id: str) -> list[Session]:
        """Root to tip of the chain of continuations that `session_id` belongs to. Raises SessionNotFound."""
        chain = [await self.session(session_id)]
        seen = {session_id}

        async def unseen(other_id: str | None) -> Session | None:
            """The session of this id, unless it is in the chain already: a damaged chain may lead in a circle."""
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


class MemoryStore(StoreProcess):
    """Pins and memory, which outlive sessions. Pins belong to a key, survive resets, and are never seen under another
    key. Facts belong to a scope, which lies in one chat. Each change names the version that it changes, so no lease is
    needed: neither two lanes of a scope, nor a process that wakes up late, can undo each other's work."""

    async def pins(self, key: SessionKey) -> Pins:
        """The key's pins, maybe none."""
        return await self._look(keeping.pins, key)

    async def set_pins(
        self, lease: Lease, pins: Pins, rebuilt: Rebuilt | None, known: Pins | None = None
    ) -> Session | None:
        """Replace the pins of the key's owner and, in the same step, the prompt of the key's present session, whose
        epoch rises. The owner's other chats lose their prompts, which their next turns make anew; so none is ever used
        without the pins. Returns the key's session. Raises SessionConflict if `rebuilt` is None and the key has a
        session after all, or if the pins are not those `known` any more, because another chat has changed them."""
        return await self._run(keeping.set_pins, lease, known, pins, rebuilt)

    async def memory(self, scope: SessionKey) -> Memory:
        """The scope's facts, maybe none."""
        return await self._read(keeping.memory, scope)

    async def change_memory(self, change: MemoryChange) -> bool:
        """Change the facts of a scope. Returns False, and stores nothing, if the memory has a newer version: then read
        it again."""
        return await self._backend.run_beside(keeping.change_memory, change)

    async def note_flushed(self, session: Session, messages: int) -> None:
        """Note how many messages of an ended session the memory has been given. A smaller number changes nothing."""
        await self._run(sessions.note_flushed, session.id, messages)


class ForgettingStore(StoreProcess):
    """What a person wants forgotten is nowhere afterwards: no row, index entry or file of the store holds it.
    Everything that came in and was shown under the key loses its words once it has ended, because nobody reads them any
    more and any of them may repeat what is forgotten. Event ids stay, so that no event is accepted twice."""

    async def forget(self, lease: Lease | None, deed: Forgetting) -> Mapping[str, int]:
        """Take messages out of a key's conversations, with everything that the deed names, and return counts. A deed
        that was already done returns its earlier counts. Raises SessionConflict unless the tip is still the key's
        present session, under that epoch. If `lease` is None, the caller holds no lane; a turn that runs there loses
        its session to the new epoch."""
        counts = await self._run(forgetting.forget, lease, deed)
        for session in deed.sessions:
            self._transcripts.drop(session.session_id)
        await self._backend.scrub()
        return counts

    async def erase(self, lease: Lease | None, deed: Erasure) -> Mapping[str, int]:
        """Delete everything of a key: its sessions with their messages, its pins and files, and the words of its inbox
        and outbox. Its model calls stay in the ledger as anonymous sums. Unfinished items of its lane end as refused,
        except those of the caller's own lane. Returns counts: sessions, messages, files, rules."""
        counts = await self._run(forgetting.erase, lease, deed)
        self._transcripts = TranscriptCache()
        await self._backend.scrub()
        return counts

    async def talks(self, platform: str | None, person: str | None) -> list[Talk]:
        """The conversations in which a person spoke, as far as their messages still exist. None: on any platform, and
        everybody. Scans the store."""
        return await self._read(forgetting.talks, platform, person)

    async def forgotten(self, key: SessionKey, deed: str) -> Mapping[str, int] | None:
        """The counts of the deed with this id; None if it was not done."""
        return await self._read(forgetting.forgotten, deed)


class ReminderStore(StoreProcess):
    """Reminders belong to a key and outlive its sessions. A waiting reminder costs nothing, because the store keeps
    those with a time in order. While their chat is closed they are parked, and not due."""

    async def add_reminder(self, reminder: Reminder, most: int, in_chat: int) -> Reminder | None:
        """Store a reminder under the key's next number. If its id is known, return it as it is now. None: its person
        already has `most` waiting or paused ones in this chat."""
        return await self._run(reminders.add, reminder, most, in_chat)

    async def reminder(self, chat: ChatAddress, reminder_id: str) -> Reminder | None:
        """The reminder of this id, if it belongs to this chat."""
        return await self._look(reminders.of_id, chat, reminder_id)

    async def reminders(self, key: SessionKey, over: int) -> list[Reminder]:
        """The key's waiting and paused reminders by number, then those that are over, newest first, up to a limit."""
        return await self._read(reminders.of_key, key, over)

    async def has_reminders(self, key: SessionKey) -> bool:
        """Whether the key ever had a reminder. Asked at every message, so it costs next to nothing."""
        return await self._look(reminders.has_any, key)

    async def due_reminders(self, now: float, limit: int) -> list[Reminder]:
        """Reminders whose time has come, of platforms that this process sends to, earliest first. Nothing is claimed:
        if several processes change a reminder, one of them is first."""
        return await self._backend.look(reminders.due, self._caller(), now, limit)

    async def change_reminder(
        self,
        reminder: Reminder,
        shown: Sequence[Outbound] = (),
        arrival: Arrival | None = None,
        also: Sequence[Reminder] = (),
    ) -> Changed:
        """Replace the version before this one, also of the reminders in `also` (of the same chat): all or none. The
        same step stores the rows that say so, and the item for the lane, even a full one. If that version was already
        replaced, nothing is stored."""
        arrivals = [] if arrival is None else [arrival]
        room = self._reserve(len(arrivals))

        def done(changed: reminders.Replaced) -> None:
            self._claimed(room, changed.claimed)

        def abandoned(changed: reminders.Replaced) -> None:
            self._left_over(changed.outbound)

        changed = await self._backend.run(
            reminders.change,
            self._caller(),
            [reminder, *also],
            shown,
            arrivals,
            room,
            done=done,
            failed=lambda: self._claimed(room, ()),
            abandoned=abandoned,
        )
        return Changed(first=changed.first, outbound=changed.outbound)


class FileStore(StoreProcess):
    """Files belong to a key, as pins do: what was sent in one conversation is never read in another. Contents are named
    by their SHA-256 and never change, so no lease is needed: keeping one twice, or late, does no harm. Messages and
    rows only name a content, which is loaded when it is shown."""

    async def keep_file(self, key: SessionKey, file: KeptFile, content: bytes) -> KeptFile:
        """Keep a file and its content, whose digest the file states. If a file was already kept under this `ref`, that
        one stays and is returned."""
        return await self._run(keeping.keep_file, key, file, content)

    async def kept_file(self, key: SessionKey, ref: str) -> KeptFile | None:
        """The file that was kept under this `ref`."""
        return await self._look(keeping.kept_file, key, ref)

    async def kept_files(self, key: SessionKey, limit: int) -> list[KeptFile]:
        """The key's files, newest first."""
        return await self._read(keeping.kept_files, key, limit)

    async def file_content(self, key: SessionKey, digest: str) -> bytes | None:
        """The content with this digest; None if the key has none."""
        return await self._read(keeping.file_content, key, digest)


class OutboxStore(StoreProcess):
    """Rows to show to people, in the order in which each chat's were emitted."""

    async def emit(self, outbound: Sequence[Outbound]) -> tuple[Outbound, ...]:
        """Store messages that belong to no turn's end, unless their ids are known. Returns the rows to send now, at
        most one for each chat."""
        return await self._send(outbox.emit, outbound)

    async def claim_outbound(self, limit: int) -> list[Outbound]:
        """Claim each chat's earliest unfinished row that is due. For rows in state `sending` that no living worker
        owns, the earlier attempt counts as ambiguous."""
        unsent, self._unsent = self._unsent[:limit], self._unsent[limit:]
        if len(unsent) == limit:
            return unsent
        try:
            return [*unsent, *await self._send(outbox.claim_due, limit - len(unsent))]
        except BaseException:
            self._unsent += unsent
            raise

    def owns(self, row: Outbound) -> bool:
        """Whether a row that this process claimed is certainly still its own. If it was silent too long (stopped, cut
        off), another process may have taken it over."""
        return self._backend.is_sure(row.to)

    async def mark_sent(self, outbound_id: str, platform_message_id: str | None) -> Outbound | None:
        """The platform showed the row. Returns the chat's next row, already claimed for sending, if there is one."""
        return await self._next_row(outbox.mark_sent, outbound_id, platform_message_id)

    async def mark_retry(
        self,
        outbound_id: str,
        seconds: float,
        *,
        ambiguous: bool,
        anew: bool = False,
        counted: bool = True,
        attempt: int | None = None,
    ) -> None:
        """This attempt (None: the last one) failed; try again in `seconds`, by the store's own time, which does not
        depend on the machine's clock. The chat's later rows wait. `ambiguous`: nobody knows whether the row was shown.
        `anew`: its message is gone, and so are all doubts; it is sent like a new one. Not `counted`: the platform asked
        to wait, which is no attempt."""
        await self._backend.run(
            outbox.mark_retry, self._caller(), outbound_id, seconds, ambiguous, anew, counted, attempt
        )

    async def mark_refused(
        self,
        outbound_id: str,
        reason: str,
        instead: Outbound | None = None,
        *,
        gone: bool = False,
        keeps: bool = False,
    ) -> Outbound | None:
        """The platform will never show the row; `instead` (a visible error) takes its place. `keeps`: an answer
        (`KEPT`, a file) is withheld instead of refused; if it is emitted again, it goes out behind the chat's rows like
        a new one. Whatever a closed chat is not shown is withheld in the same way. `gone`: nothing can be shown in the
        chat any more, so it is closed, unless a message came from there after the row was handed out, which is newer
        than the refusal. Returns a row as `mark_sent` does."""
        return await self._next_row(outbox.mark_refused, outbound_id, reason, instead, gone, keeps)

    async def has_unsent(self, to: ChatAddress) -> bool:
        """Whether rows of this chat wait, or are being sent. A streaming reply does not count."""
        return await self._read(outbox.has_unsent, to)

    async def unasked(self, to: ChatAddress) -> int:
        """Count the unsent rows of this chat that nobody waits for (`Outbound.unasked`). They go out after the chat's
        other rows."""
        return await self._look(outbox.unasked, to)

    async def next_due(self) -> float | None:
        """Seconds until the earliest row that waits for a retry is due; None if no row waits."""
        if self._unsent:
            return 0.0
        if self._nothing_due:
            return None
        self._nothing_due = True  # until something else is told
        try:
            due = await self._backend.look(outbox.next_due, self._caller())
        except BaseException:
            self._nothing_due = False
            raise
        self._nothing_due = self._nothing_due and due is None
        return None if due is None else max(0.0, due - self._time.now())

    async def rows(self, chat: ChatAddress, row_ids: Sequence[str]) -> list[Outbound]:
        """Those of these rows that belong to this chat."""
        return await self._read(outbox.rows, chat, row_ids)


class ChatStore(StoreProcess):
    """Chats in which nothing can be shown any more, and chats whose platform has renamed them. A chat is closed in all
    threads, for every process, until `accept` stores a message from it, which opens it in the same step. `mark_refused`
    closes chats, too. A renamed chat keeps its first name, under which its conversations, rules, files and questions
    lie; so nothing has to be moved, and no message can fall between two keys."""

    async def close_chat(self, to: ChatAddress, reason: str) -> None:
        """The platform says that nothing reaches this chat: waiting rows are refused with `reason`, and so is every
        later row when its turn comes, without an attempt. A row that is being sent ends by itself."""
        await self._run(outbox.close_chat, to, reason)

    async def open_chat(self, to: ChatAddress) -> bool:
        """The chat is reachable again. Returns whether it was closed."""
        return await self._run(outbox.open_chat, to)

    async def closed(self, to: ChatAddress) -> str | None:
        """Why the chat is closed; None if it is open."""
        return await self._look(outbox.closed, to)

    async def rename_chat(self, platform: str, before: str, after: str) -> None:
        """The platform now calls the chat `before` by the name `after`, and the chat is open. Repeating this changes
        nothing; `after` keeps the first name that it was given. It may take several transactions; a caller that was cut
        short repeats it."""
        await self._run(keeping.rename_chat, platform, before, after)

    async def first_name(self, platform: str, chat: str, event_id: str) -> str:
        """The first name of an event's chat. An event that was accepted before the store knew the other name keeps its
        chat, so that it is recognised when it comes again."""
        return await self._look(keeping.first_name, platform, chat, event_id)

    async def later_name(self, platform: str, chat: str) -> str | None:
        """The present name of a renamed chat; None if `chat` is still its name."""
        return await self._look(keeping.later_name, platform, chat)


class BudgetStore(StoreProcess):
    """What may be spent, and how fast may be sent, counted for all processes together."""

    async def reserve(self, reservation: Reservation) -> CapReached | None:
        """Count a call's worst case as spent under each of its caps.

        If one has no room, count nothing and return the first such cap. The same id counts once. However many ask at
        once, no account exceeds its limit, though several calls that do not fit together may all be refused. A call
        that nobody settles stays counted: its process died, and the money may have been spent.
        """
        while self._void:
            void = self._void.pop()
            await self._run(spending.settle, void, 0)

        def abandoned(reached: CapReached | None) -> None:
            if reached is None:
                self._void.append(reservation)

        return await self._backend.run(
            spending.reserve, self._caller(), reservation, self._clock.now(), abandoned=abandoned
        )

    async def settle(self, reservation: Reservation, cost: int) -> None:
        """Replace a reservation by the call's real cost, in millionths of a US dollar. Repeating it, or doing it a day
        later, changes nothing."""
        await self._run(spending.settle, reservation, cost)

    async def spent(self, accounts: Sequence[str]) -> list[int]:
        """The sum of spent and reserved money under each account, in millionths of a US dollar."""
        return await self._look(spending.spent, accounts)

    async def take(self, account: str, ticket: str, rates: Sequence[Rate]) -> float:
        """Seconds until the message `ticket` may be sent; at 0.0 the ticket is used up.

        The ticket has its own moment: after waiting, ask again with the same ticket, in any process, and get 0.0, or
        another wait if `hold_off` or your own delay has moved the moment. However many processes ask, the moments given
        in `account` keep to all `rates`; an unused moment is lost. One clock decides: the process's own, or the
        server's if the store is shared.
        """
        return await self._fleet(pace.take, account, ticket, rates, self._time.now())

    async def hold_off(self, account: str, bucket: str, seconds: float) -> None:
        """The platform asked for silence. Until it is over, this bucket has no moment, not even one that was already
        given, and not after a restart either."""
        until = self._time.now() + seconds
        await self._fleet(pace.hold_off, account, bucket, until)
        await self._run(spending.rest, account, bucket, until, seconds)

    async def resting(self, account: str, bucket: str) -> float:
        """Seconds for which the bucket must stay silent; 0.0 if it need not."""
        return await self._fleet(pace.resting, account, bucket, self._time.now())


def under(key: SessionKey, kind: str) -> str:
    """The folder of a kind of small state (a word) under a key. It is erased with the key, and `/forget` there also
    looks into it."""
    return f"{kind} {key}"


class Documents(StoreProcess):
    """Small state without steps of its own: notes, which are small named texts, in folders. A platform's adapter has a
    folder for its account; every other kind of small state has one folder, or one `under` each conversation. Notes are
    copied and migrated with everything else. This also works if a store is opened only for reading: an admin can let
    somebody in from a shell while the gateway runs."""

    async def notes(self, folder: str) -> dict[str, str]:
        """The folder's notes by name, maybe none."""
        return await self._look(keeping.notes, folder)

    async def set_notes(
        self, folder: str, changes: Mapping[str, str | None], still: Mapping[str, str | None] | None = None
    ) -> bool:
        """Write these notes, and forget those that are None. If `still` is given, do so only if those notes are as they
        were read (None: they did not exist); otherwise return False and store nothing."""
        return await self._backend.run_beside(keeping.set_notes, folder, changes, still)

    async def folders(self, key: SessionKey) -> list[str]:
        """The folders `under` a key that hold notes. May scan the store."""
        return await self._read(keeping.folders, key)


class ReportStore(StoreProcess):
    """Reading for people: a search, and lists over everything."""

    async def sessions(self, key: SessionKey | None, limit: int, offset: int = 0) -> list[Session]:
        """Sessions of a key (None: of all), newest first."""
        return await self._read(reports.listed_sessions, key, limit, offset)

    async def conversations(self, chat: SessionKey, limit: int) -> list[SessionKey]:
        """The keys with sessions in the chat of this key, threads included, newest first, without helpers. Redis reads
        the keys of a sixteenth of all sessions for it."""
        return await self._read(reports.conversations, chat, limit)

    async def own_sessions(self, owner: SessionKey, limit: int) -> list[Session]:
        """The sessions of all chats that a person has alone with the bot, newest first, without their prompts: of the
        keys that have this `owner`, as far as they are among the `limit` newest of the chat."""
        return await self._read(reports.own_sessions, owner, limit)

    async def compactions(self, session_id: str) -> list[Compaction]:
        """The compactions that ended or opened this session, oldest first."""
        return await self._read(reports.compactions, session_id)

    async def search(
        self,
        words: str,
        key: SessionKey | None,
        limit: int,
        meaning: Meaning | None = None,
        *,
        hidden: SessionKey | None = None,
    ) -> list[Passage]:
        """Original messages (no summaries, no stubs) that answer a question or hold some of its words, the best first.
        Words of people and the model come before results of tools, as far as these are indexed (`searchable`,
        `ranking`). Messages with a quoted phrase come first. `key` None: in all conversations. `meaning`: messages with
        a similar meaning are found, too, if that model has made their vectors. `hidden`: in the temporary chat of this
        key alone; None: in no temporary chat."""
        most = limit
        while True:  # the other kind of chat may hold whatever answers best
            found = await self._backend.search(words, key and key.owner, most, self._time.now(), meaning)
            open_to = [each for each in found if _is_open(each.hit, hidden)]
            if len(open_to) >= limit or len(found) < most or most > _MOST_PASSED_OVER:
                return open_to[:limit]
            most *= 4

    async def holding(
        self, values: Sequence[str], key: SessionKey, limit: int, *, hidden: SessionKey | None = None
    ) -> list[list[Found]]:
        """For each of a few values, the key's original messages that hold it exactly, as far as that is indexed: the
        oldest, and up to `limit` of the newest, oldest first. All values together cost one look, because a turn waits
        for it. `hidden`: as in `search`."""
        found = await self._backend.holding(values, key.owner, limit)
        return [[each for each in some if _is_open(each, hidden)] for some in found]

    async def around(
        self, key: SessionKey, message_id: str, reach: int, *, hidden: SessionKey | None = None
    ) -> list[Found]:
        """A message of the key's conversations with what was said before and after it, oldest first, at most `reach`
        messages on each side. Empty if the message is of no conversation of this key. `hidden`: as in `search`."""
        found = await self._backend.around(key.owner, message_id, reach)
        return [each for each in found if _is_open(each, hidden)]

    async def usage(
        self, since: float, by: UsageBy, session_id: str | None = None, key: SessionKey | None = None
    ) -> list[UsageTotal]:
        """Ledger totals from `since` on, most expensive first, optionally of one session or key."""
        return await self._read(spending.usage, since, by, session_id, key)

    async def calls(self, key: SessionKey, since: float, until: float) -> list[Call]:
        """The model calls of a key's conversations between two moments, oldest first."""
        return await self._read(spending.calls, key, since, until)

    async def named(self, name: str, platforms: Collection[str]) -> Named:
        """Whatever has this id, which people read in a log or a list; also the events with this id on these
        platforms."""
        return await self._read(reports.named, name, platforms)

    async def status(self, platforms: Collection[str] | None = None) -> StoreStatus:
        """Counts over everything, for which the store may be scanned. If platforms are given, only their waiting items
        and unsent rows are counted."""
        found = await self._read(reports.status, platforms)
        return replace(found, unindexed=await self._backend.unindexed())

    async def unindexed(self) -> int:
        """The number of messages that no search finds yet, because another version entered them in the index. Once it
        is 0, nobody is asked again."""
        left = 0 if self._is_indexed else await self._backend.unindexed()
        self._is_indexed = not left
        return left

    async def backlog(self) -> Backlog:
        """What waits, on all platforms. It costs no more as conversations and people grow. If thousands wait, the store
        may look at only some of them, and give ages that are too small."""
        found = await self._read(reports.backlog)
        idle = dict(found.idle)
        for each in self._workers.claimed:  # they wait for a worker, too
            platform, since = each.item.key.platform, each.item.accepted_at
            idle[platform] = min(since, idle.get(platform, since))
        return replace(found, idle=idle)

    async def heard(self, key: SessionKey, limit: int) -> list[InboxItem]:
        """The key's items, whatever became of them, newest first, at most MOST_HEARD."""
        return await self._read(reports.heard, key, limit)

    async def dead(self, limit: int) -> list[InboxItem]:
        """The items that were given up (outcome `dead`), newest first."""
        return await self._read(reports.dead, limit)

    async def bury(self, item: InboxItem) -> bool:
        """Take an item off the dead ones; it counts as withdrawn. False if it was not among them."""
        return await self._run(reports.bury, item)

    async def outbox(
        self, address: ChatAddress | None, limit: int, states: Collection[OutboundState] = ()
    ) -> list[Outbound]:
        """Outbound rows of an address (None: of all), newest first, optionally only those in certain states, for which
        the store may be scanned."""
        return await self._read(reports.outbox, address, limit, states)


class VectorStore(StoreProcess):
    """Vectors of messages, beside the index. They go with their messages, and all of them go once vectors of another
    model or length are kept. They are never migrated, but made again."""

    async def unembedded(self, model: str, length: int, limit: int) -> list[Unembedded]:
        """Some messages of one conversation without a vector of this model and length (0: unknown), newest first.
        Empty: all have one."""
        return await self._backend.unembedded(model, length, limit)

    async def keep_vectors(self, model: str, key: SessionKey, kept: Mapping[str, Vector]) -> None:
        """Keep the vectors of all messages that `unembedded` gave, by their ids; `vectors.NONE` for those that can have
        none. Messages that were forgotten meanwhile get none."""
        await self._backend.keep_vectors(model, key, kept)


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
):
    """The whole port, on any backend. Call `open` before use and `aclose` after; every method may raise
    StoreUnavailable."""

    async def open(self) -> None:
        """Take ownership and migrate. Raises StoreLocked or StoreUnavailable."""
        self._owner = await self._backend.open(self._hear, self._caller)
        if self._backend.is_beside:
            return
        self._began = self._clock.monotonic()
        await self._backend.run(members.join, self._caller(), self._time.now() + self._backend.life)
        now = self._time.now()
        for rest in await self._run(spending.rests, now):
            until = now + min(rest.until - now, rest.seconds)
            self._fleeting.run(pace.hold_off, rest.account, rest.bucket, until)

    def rest(self) -> int:
        """Drop transcripts that nobody asked for since the last call, and return their bytes."""
        return self._transcripts.rest()

    async def aclose(self) -> None:
        """Finish pending writes and release ownership. Idempotent."""
        left, unsent = self._workers.close(), [row.id for row in self._unsent]
        owner, self._owner, self._unsent = self._owner, "", []
        if owner:
            with suppress(StoreUnavailable):  # a full disk must not keep the process from ending
                await self._backend.run(members.end, self._caller(owner), left, unsent)
        await self._backend.aclose()


def _is_open(found: Found, hidden: SessionKey | None) -> bool:
    """Whether a search in the temporary chat of this key, or in all others, may find a message."""
    return note_of(found.message).get("hidden") == (hidden and hidden.text)
