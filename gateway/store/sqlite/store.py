"""`SqliteStore`: the port on one SQLite file, in the order of `gateway.store.port`.

Each step names the function that does the work, and what this process must remember once the work is durable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar, Unpack

import apsw
import structlog

from gateway.domain.adapter import Rate
from gateway.domain.approval import Approval, Verdict
from gateway.domain.chat import ChatAddress, Outbound, SessionKey
from gateway.domain.memory import MemoryChange
from gateway.domain.message import Message
from gateway.domain.reminder import Reminder
from gateway.domain.rule import Pins
from gateway.domain.session import Compaction, EndReason, Session, SessionRef
from gateway.domain.usage import LedgerEntry
from gateway.runtime.clock import Clock
from gateway.runtime.errors import SessionConflict, StoreUnavailable
from gateway.runtime.structs import replace
from gateway.runtime.tasks import Background
from gateway.store.port import Store
from gateway.store.records import (
    ATTEMPT_PAUSES,
    EXPIRY_CLAIM,
    Arrival,
    Backlog,
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
    Opening,
    Passage,
    Rebuilt,
    Receipt,
    Reservation,
    SessionChanges,
    SignalKind,
    StepRecord,
    ToolIntent,
    TurnEnd,
    Vector,
    check_changes,
)
from gateway.store.shared.agenda import Advance, rows_to_send
from gateway.store.shared.platforms import chat_name
from gateway.store.shared.process import Process
from gateway.store.sqlite import (
    approving,
    forgetting,
    inbox,
    keeping,
    messages,
    outbox,
    reading,
    remembering,
    reminding,
    renaming,
    search,
    sessions,
    spending,
    turns,
    vectors,
)
from gateway.store.sqlite.connection import check_undamaged
from gateway.store.sqlite.database import HERE, Database, Query
from gateway.store.sqlite.lanes import Lanes
from gateway.store.sqlite.leases import Leases, Rates
from gateway.store.sqlite.outbox import Sender
from gateway.store.sqlite.sessions import Appended, Opened

T = TypeVar("T")
P = ParamSpec("P")

Step: TypeAlias = "Callable[Concatenate[SqliteStore, P], Coroutine[Any, Any, T]]"
RowStep = Callable[..., tuple[Advance, ...]]  # of a connection and `sender`

log = structlog.get_logger(__name__)

_FEW = 4  # rows, which are read here and now
_RENEWAL_PAUSE = 0.02  # seconds between two steps of making search entries anew
_TOLD = 10_000  # messages after which the log says how many are left
_SCRUB_PAUSE = 60.0  # seconds until the log is to be emptied again, which a backup held back


def _looks(query: Query[P, T]) -> Step[P, T]:
    """The step that looks up a few rows by this query, here and now."""

    async def step(store: SqliteStore, /, *args: P.args, **named: P.kwargs) -> T:
        return store._database.on(HERE, query, *args, **named)

    return step


def _reads(query: Query[P, T]) -> Step[P, T]:
    """The same, of any number of rows."""

    async def step(store: SqliteStore, /, *args: P.args, **named: P.kwargs) -> T:
        return await store._database.read(query, *args, **named)

    return step


def _writes(work: Query[P, T]) -> Step[P, T]:
    """The step that makes this change, on which nothing in memory depends."""

    async def step(store: SqliteStore, /, *args: P.args, **named: P.kwargs) -> T:
        return await store._database.write(work, *args, **named)

    return step


class SqliteStore(Store):
    """Everything in the SQLite file at `path`. `concurrency`: how many lanes may be claimed as their
    message is accepted, which saves a commit. `broken` is given a sentence if nothing can be written any
    more until the process starts again. A store of an earlier version is brought to this one: `told` is given a
    sentence about that, and with `keeps_copy` a copy stays beside it. With `read_only` the store opens beside
    a running gateway, without lock or migration, and writing steps raise StoreUnavailable."""

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock,
        concurrency: int = 256,
        read_only: bool = False,
        attempt_pauses: Sequence[float] = ATTEMPT_PAUSES,
        broken: Callable[[str], None] = lambda _: None,
        told: Callable[[str], None] = lambda _: None,
        keeps_copy: bool = True,
    ) -> None:
        self._clock = clock
        self._database = Database(path, read_only=read_only, broken=broken, told=told, keeps_copy=keeps_copy)
        self._process = Process(clock)
        self._lanes = Lanes(clock=clock, concurrency=concurrency, pauses=attempt_pauses)
        self._background = Background()
        self._leases = Leases(clock)
        self._rates = Rates()
        self._entries = search.Entries()
        self._unsent: list[Outbound] = []  # claimed for a caller that was gone before the answer
        self._void: list[Reservation] = []  # reserved for such a caller
        # A session and its deadline → when it may be offered again; with another deadline it may at once.
        self._due_claims: dict[tuple[str, float | None], float] = {}

    @property
    def commits(self) -> int:
        """Transactions that changed something, since `open`."""
        return self._database.commits

    async def check(self) -> None:
        """Read the whole file. Raises StoreUnavailable where it is damaged."""
        await self._database.read(check_undamaged, self._database.path)

    dangling = _reads(reading.dangling)

    def rest(self) -> int:
        """Forget the transcripts that nobody asked for since the last call; return their bytes."""
        return self._process.transcripts.rest()

    # -- lifetime ---------------------------------------------------------------------------

    async def open(self) -> None:
        await self._database.open()
        if self._database.is_read_only:
            return
        queued, self._process.bypassed = await self._database.read(inbox.unfinished)
        self._lanes.begin(self._database.generation, queued)
        await self._database.write(outbox.cap_waits, self._process.time.now())
        now = self._clock.now()
        for account, bucket, until, seconds in await self._database.write(spending.rests, now):
            self._rates.hold_off(account, bucket, self._clock.monotonic() + min(until - now, seconds))
        for chat, due_at in await self._database.read(outbox.unfinished_heads):
            self._process.agenda.wait(chat, due_at)
        if await self._database.read(forgetting.owes_scrub):
            self._background.start(self._scrub(), name="scrub")
        try:
            if await self._database.read(search.is_behind):
                await self._database.write(search.enter_missed)
        except StoreUnavailable as error:  # people are answered all the same
            log.error("search_index_behind", error=str(error))
        if not await self._database.read(search.is_made) and await self._database.write(search.is_outdated):
            self._background.start(self._renew_search(), name="search index")

    async def _renew_search(self) -> None:
        """Make the search entries of another version anew, some at a time, so that everybody else's writes come
        between."""
        left = await self._database.read(search.left)
        log.info("search_index_outdated", left=left)
        while await self._database.write(search.renew_some):
            left -= search.RENEWED
            if left > 0 and left % _TOLD < search.RENEWED:
                log.info("search_index_outdated", left=left)
            await self._clock.sleep(_RENEWAL_PAUSE)
        self._entries = search.Entries()
        log.info("search_index_renewed")

    async def aclose(self) -> None:
        await self._background.aclose()
        unstarted, unsent = self._lanes.close(), [row.id for row in self._unsent]
        if (unstarted or unsent) and self._database.is_open:

            def give_back(connection: apsw.Connection) -> None:
                inbox.uncount(connection, unstarted)
                outbox.give_back(connection, unsent)

            self._unsent = []
            with suppress(StoreUnavailable):  # a full disk must not keep the process from ending
                await self._database.write(give_back)
        await self._database.aclose()

    # -- receiving --------------------------------------------------------------------------

    async def accept(self, arrivals: Sequence[Arrival], *, cap: int) -> list[Receipt]:
        reserved = self._lanes.reserve(arrivals)

        def done(accepted: tuple[list[Receipt], list[InboxItem]]) -> None:
            self._arrived(reserved, accepted[1])

        receipts, _ = await self._database.writer.run(
            partial(inbox.accept, arrivals=arrivals, cap=cap, idle=frozenset(reserved)),
            done=done,
            failed=partial(self._lanes.unreserve, reserved),
        )
        return receipts

    def _arrived(self, reserved: dict[str, SessionKey], queued: Iterable[InboxItem]) -> None:
        """New items are stored, the first of each lane that was set aside as a claimed one."""
        for item in queued:
            if reserved.pop(item.key.text, None) is None:
                self._lanes.queued(item)
            else:
                self._lanes.claimed(item)
        if reserved:
            self._lanes.unreserve(reserved)

    async def refuse(self, arrival: Arrival, notice: Outbound) -> tuple[Outbound, ...]:
        def work(connection: apsw.Connection, sender: Sender) -> tuple[Advance, ...]:
            if not inbox.record_refused(connection, arrival):
                return ()
            return outbox.emit(connection, [notice], sender)

        return await self._send(work)

    async def amend(self, arrival: Arrival) -> bool:
        return await self._database.writer.run(
            lambda connection: inbox.amend(connection, arrival),
            done=lambda changed: self._lanes.amended(arrival.key, arrival.inbound) if changed else None,
        )

    # -- lanes ------------------------------------------------------------------------------

    async def claim_next(self, worker: str) -> Claim:
        lane = await self._lanes.next_ready()
        if lane.head is None:
            first = lane.queue[0]
            await self._database.writer.run(
                lambda connection: inbox.count_attempt(connection, first),
                done=partial(self._lanes.counted, lane),
                failed=partial(self._lanes.uncounted, lane),
                abandoned=lambda _: self._lanes.hand_back(lane),
            )
        return self._lanes.grant(lane, worker)

    async def claim_bypassed(self, worker: str) -> list[InboxItem]:
        process = self._process
        left = [item for item in process.bypassed if item.key.platform in process.runs]
        process.bypassed = [item for item in process.bypassed if item.key.platform not in process.runs]
        if not left:
            return []
        return await self._database.writer.run(
            lambda connection: [inbox.count_attempt(connection, item) for item in left],
            failed=lambda: process.bypassed.extend(left),
        )

    async def release(self, lease: Lease, *, counted: bool = False) -> None:
        lane = self._lanes.check(lease, ends=True)
        head = lane.head
        assert head is not None
        await self._database.writer.run(
            lambda connection: inbox.uncount(connection, [] if counted else [head]),
            done=lambda _: self._lanes.released(lane, counted=counted),
            failed=partial(self._lanes.not_ended, lane),
        )

    async def running(self, key: SessionKey) -> InboxItem | None:
        return self._lanes.current(key)

    async def waiting(self, key: SessionKey, limit: int) -> list[InboxItem]:
        return self._lanes.waiting(key, limit)

    async def heard(self, key: SessionKey, limit: int) -> list[InboxItem]:
        if limit <= _FEW:
            return self._database.on(HERE, inbox.heard, key.text, limit)
        return await self._database.read(inbox.heard, key.text, limit)

    # -- one turn ---------------------------------------------------------------------------

    beginning = _looks(turns.beginning)

    async def open_reply(self, lease: Lease, item: InboxItem, reply: Outbound) -> Outbound:
        self._lanes.check(lease, item)
        return await self._database.write(turns.open_reply, item, reply)

    note_streamed = _writes(outbox.note_streamed)

    async def begin_tools(
        self, lease: Lease, ref: SessionRef, item: InboxItem, record: StepRecord, intents: Sequence[ToolIntent]
    ) -> tuple[Message, ...]:
        self._lanes.check(lease, item)
        return await self._append(
            item.key, record, lambda connection: turns.begin_tools(connection, ref, item, record, intents)
        )

    async def record_step(
        self, lease: Lease, ref: SessionRef, item: InboxItem, record: StepRecord
    ) -> tuple[Message, ...]:
        self._lanes.check(lease, item)
        stored = await self._append(
            item.key, record, lambda connection: turns.record_step(connection, ref, item, record)
        )
        self._lanes.recorded(lease)
        return stored

    async def finish_turn(
        self,
        lease: Lease,
        ref: SessionRef | None,
        item: InboxItem,
        record: StepRecord | None,
        outcome: ItemOutcome,
        outbound: Sequence[Outbound],
    ) -> TurnEnd:
        if (ref is None) != (record is None):
            raise ValueError("a turn's end has both a session and a record, or neither")
        step = None if ref is None or record is None else (ref, record)
        lane = self._lanes.check(lease, item, ends=True)
        sender = self._sender()

        def done(ended: turns.Ended) -> None:
            if ended.appended is not None and record is not None:
                self._appended(item.key, record, ended.appended)
            self._noted(ended.advances)
            self._lanes.ended(lane, ended.next)

        def abandoned(ended: turns.Ended) -> None:
            self._unsent += rows_to_send(ended.advances)
            if ended.next is not None:
                self._lanes.hand_back(lane)

        ended = await self._database.writer.run(
            partial(turns.finish, item=item, step=step, outcome=outcome, outbound=outbound, sender=sender),
            done=done,
            failed=partial(self._lanes.not_ended, lane),
            abandoned=abandoned,
        )
        stored = () if ended.appended is None else ended.appended.messages
        return TurnEnd(messages=stored, next=ended.next, outbound=rows_to_send(ended.advances))

    async def finish_bypassed(self, item: InboxItem, outbound: Sequence[Outbound]) -> tuple[Outbound, ...]:
        return await self._send(partial(turns.finish_bypassed, item=item, outbound=outbound))

    # -- questions to people ----------------------------------------------------------------

    async def ask(self, lease: Lease, approval: Approval, shown: Sequence[Outbound]) -> tuple[Outbound, ...]:
        head = self._lanes.check(lease).head
        if head is None or head.id != approval.item:
            raise SessionConflict("This item is not the one its lane runs.")
        return await self._send(lambda connection, sender: approving.ask(connection, approval, shown, sender))

    async def decide(
        self, asked: Approval, verdict: Verdict, by: str | None, at: float, shown: Sequence[Outbound]
    ) -> Decision | None:
        sender = self._sender()

        def done(decided: approving.Decided) -> None:
            decision, advances = decided
            self._noted(advances)
            if decision is not None and decision.first:
                self._process.tell_decided(asked.key)

        def abandoned(decided: approving.Decided) -> None:
            self._unsent += rows_to_send(decided[1])

        decision, advances = await self._database.writer.run(
            lambda connection: approving.decide(connection, asked, verdict, by, at, shown, sender),
            done=done,
            abandoned=abandoned,
        )
        return None if decision is None else replace(decision, outbound=rows_to_send(advances))

    approvals = _looks(approving.of_chat)

    def on_decided(self, listener: Callable[[SessionKey], None]) -> None:
        self._process.decided_listeners.append(listener)

    # -- signals ----------------------------------------------------------------------------

    async def signal(self, key: SessionKey, kind: SignalKind, at: float) -> bool:
        item = self._lanes.current(key)
        if item is None:
            return False
        return await self._database.writer.run(
            lambda connection: inbox.leave_signal(connection, item, kind, at),
            done=lambda left: self._process.tell_signal(key, kind) if left else None,
        )

    signals = _looks(inbox.signals)

    def on_signal(self, listener: Callable[[SessionKey, SignalKind], None]) -> None:
        self._process.signal_listeners.append(listener)

    # -- several processes: there is one ----------------------------------------------------

    def serve(self, *, runs: Collection[str], sends: Collection[str]) -> None:
        self._process.serve(runs=runs, sends=sends)
        self._lanes.serve(self._process.runs)
        self._process.agenda.serve(self._process.sends)
        self._process.tell_rows()  # rows that an earlier process left may wait

    def on_rows(self, listener: Callable[[], None]) -> None:
        self._process.rows_listeners.append(listener)

    def on_left(self, listener: Callable[[], None]) -> None:
        self._process.left_listeners.append(listener)

    async def hold(self, name: str, holder: str, seconds: float) -> bool:
        return self._leases.hold(name, holder, seconds)

    async def let_go(self, name: str, holder: str) -> None:
        self._leases.let_go(name, holder)

    # -- sessions ---------------------------------------------------------------------------

    tip = _looks(sessions.tip)

    async def session(self, session_id: str, key: SessionKey | None = None) -> Session:
        return self._database.on(HERE, sessions.by_id, session_id)

    async def transcript(self, session: Session) -> tuple[Message, ...]:
        known = self._process.transcripts.get(session.id, session.rewritten) or ()
        if self._database.is_read_only or len(known) < session.message_count:
            known = await self._load(session, known)
        return known

    async def _load(self, session: Session, known: tuple[Message, ...]) -> tuple[Message, ...]:
        """Read the rest of a transcript whose beginning is known, and remember it all."""
        while True:
            rest, size = await self._database.read(messages.of_session, session.id, len(known))
            whole, known = not known, (*known, *rest)
            if self._database.is_read_only:  # a gateway tells nothing to a process beside it
                return known
            # Something may have been appended while the thread read; later appends are told.
            if len(known) >= self._database.on(HERE, sessions.length, session.id):
                self._process.transcripts.put(session.id, known, session.rewritten, size if whole else None)
                return known

    async def open_session(self, lease: Lease, opening: Opening) -> Session:
        self._lanes.check(lease)
        opened = await self._database.writer.run(
            lambda connection: sessions.open_(connection, lease.key, opening), done=self._opened
        )
        return opened.session

    async def import_sessions(self, openings: Sequence[Opening]) -> list[bool]:
        return await asyncio.gather(*(self._database.write(sessions.import_, each) for each in openings))

    async def end_session(
        self, lease: Lease, ref: SessionRef, reason: EndReason, at: float, opening: Opening | None
    ) -> Session | None:
        self._lanes.check(lease)
        opened = await self._database.writer.run(
            lambda connection: sessions.end(connection, ref, lease.key, reason, at, opening), done=self._opened
        )
        return None if opened is None else opened.session

    async def continue_session(
        self, lease: Lease, ref: SessionRef, opening: Opening, snapshot_length: int, compaction: Compaction
    ) -> Session:
        item = self._lanes.check(lease).head

        def work(connection: apsw.Connection) -> Opened:
            opened = sessions.continue_(connection, ref, lease.key, opening, snapshot_length, compaction)
            if item is not None:
                turns.follow(connection, item, ref.id, opened.session.id)
            return opened

        opened = await self._database.writer.run(work, done=self._opened)
        return opened.session

    async def update_session(self, lease: Lease, ref: SessionRef, **changes: Unpack[SessionChanges]) -> Session:
        check_changes(changes)
        self._lanes.check(lease)
        return await self._database.write(sessions.update, ref, lease.key, changes)

    async def charge(self, session: Session, calls: Sequence[LedgerEntry]) -> None:
        await self._database.write(sessions.record_calls, calls, session.id, session.key)

    pending_hooks = _reads(sessions.owed_hooks)
    hook_done = _writes(sessions.hook_done)

    async def claim_due_sessions(self, now: float, limit: int) -> list[Session]:
        self._due_claims = {each: until for each, until in self._due_claims.items() if until > now}
        due = await self._database.read(sessions.due, now, limit + len(self._due_claims))
        claimed = [session for session in due if (session.id, session.expires_at) not in self._due_claims][:limit]
        self._due_claims.update(((session.id, session.expires_at), now + EXPIRY_CLAIM) for session in claimed)
        return claimed

    # -- pins -------------------------------------------------------------------------------

    pins = _looks(keeping.pins)

    async def set_pins(self, lease: Lease, pins: Pins, rebuilt: Rebuilt | None) -> Session | None:
        self._lanes.check(lease)
        return await self._database.write(keeping.set_pins, lease.key, pins, rebuilt)

    # -- forgetting -------------------------------------------------------------------------

    async def forget(self, lease: Lease | None, deed: Forgetting) -> Mapping[str, int]:
        if lease is not None:
            self._lanes.check(lease)
        counts = await self._database.write(forgetting.forget, deed)
        self._entries = search.Entries()
        for session in deed.sessions:
            self._process.transcripts.drop(session.session_id)
        await self._scrub()
        return counts

    async def erase(self, lease: Lease | None, deed: Erasure) -> Mapping[str, int]:
        if lease is not None:
            self._lanes.check(lease)
        elif self._lanes.runs(deed.key):
            raise SessionConflict("This lane runs; what lies under its key is erased from within it.")
        ended = await self._database.read(sessions.ids_of, deed.key)
        counts = await self._database.write(forgetting.erase, deed, ends_items=lease is None)
        self._entries = search.Entries()
        for session_id in ended:
            self._process.transcripts.drop(session_id)
        await self._scrub()
        return counts

    talks = _reads(forgetting.talks)

    async def forgotten(self, key: SessionKey, deed: str) -> Mapping[str, int] | None:
        return await self._database.read(forgetting.counted, deed)

    async def rewrite(self) -> None:
        """Write the whole file anew, as small as can be and without anything that once was in it. Every write waits
        for it meanwhile."""
        await self._database.writer.run_outside(forgetting.rewrite_file)
        await self._database.writer.run_outside(forgetting.fold_log)

    async def _scrub(self) -> None:
        """Leave nothing forgotten in unused parts of the file, now or as soon as a backup is done."""
        if not await self._is_scrubbed():
            self._background.start_once(self._scrub_later(), name="scrub again")

    async def _scrub_later(self) -> None:
        is_scrubbed = False
        while not is_scrubbed:
            await self._clock.sleep(_SCRUB_PAUSE)
            is_scrubbed = await self._is_scrubbed()

    async def _is_scrubbed(self) -> bool:
        """Scrub, and say whether that worked. A crash in between leaves the debt."""
        first = True
        while await self._database.write(search.merge_some, first=first):
            first = False
        if await self._database.read(forgetting.is_old):
            await self._database.writer.run_outside(forgetting.rewrite_file)
        is_folded = await self._database.writer.run_outside(forgetting.fold_log)
        if is_folded:
            await self._database.write(forgetting.scrubbed)
        return is_folded

    # -- memory -----------------------------------------------------------------------------

    memory = _reads(remembering.memory)

    async def change_memory(self, change: MemoryChange) -> bool:
        return await self._database.write_beside(remembering.change_memory, change)

    note_flushed = _writes(sessions.note_flushed)
    note_title = _writes(sessions.note_title)

    # -- reminders --------------------------------------------------------------------------

    add_reminder = _writes(reminding.add)
    reminder = _looks(reminding.of_id)
    reminders = _reads(reminding.of_key)
    has_reminders = _looks(reminding.has_any)

    async def due_reminders(self, now: float, limit: int) -> list[Reminder]:
        return self._database.on(HERE, reminding.due, now, limit, self._process.sends)

    async def change_reminder(
        self,
        reminder: Reminder,
        shown: Sequence[Outbound] = (),
        arrival: Arrival | None = None,
        also: Sequence[Reminder] = (),
    ) -> Changed:
        sender, arrivals = self._sender(), [arrival] if arrival else []
        reserved = self._lanes.reserve(arrivals)
        idle = frozenset(reserved)

        def done(replaced: reminding.Replaced) -> None:
            self._arrived(reserved, replaced.queued)
            self._noted(replaced.advances)

        def abandoned(replaced: reminding.Replaced) -> None:
            self._unsent += rows_to_send(replaced.advances)

        replaced = await self._database.writer.run(
            lambda connection: reminding.replace(connection, [reminder, *also], shown, arrivals, idle, sender),
            done=done,
            failed=partial(self._lanes.unreserve, reserved),
            abandoned=abandoned,
        )
        return Changed(first=replaced.first, outbound=rows_to_send(replaced.advances))

    rows = _reads(reminding.rows_of_chat)

    # -- files ------------------------------------------------------------------------------

    keep_file = _writes(keeping.keep_file)
    kept_file = _looks(keeping.kept_file)
    kept_files = _reads(keeping.kept_files)
    file_content = _reads(keeping.file_content)

    # -- delivery ---------------------------------------------------------------------------

    async def emit(self, outbound: Sequence[Outbound]) -> tuple[Outbound, ...]:
        return await self._send(partial(outbox.emit, outbound=outbound))

    async def claim_outbound(self, limit: int) -> list[Outbound]:
        unsent, self._unsent = self._unsent[:limit], self._unsent[limit:]
        now = self._process.time.now()
        chats = self._process.agenda.take(now, limit - len(unsent))
        if not chats:
            return unsent

        def failed() -> None:
            self._unsent += unsent
            for chat in chats:
                self._process.agenda.wait(chat, now)

        claimed = await self._send(
            partial(outbox.advance_all, lanes=chats, reclaim=True),
            failed=failed,
            also=unsent,
        )
        return [*unsent, *claimed]

    def owns(self, row: Outbound) -> bool:
        return True  # the file has one owner

    async def mark_sent(self, outbound_id: str, platform_message_id: str | None) -> Outbound | None:
        claimed = await self._send(
            partial(outbox.mark_sent, outbound_id=outbound_id, platform_message_id=platform_message_id)
        )
        return claimed[0] if claimed else None

    async def mark_retry(
        self, outbound_id: str, seconds: float, *, ambiguous: bool, anew: bool = False, counted: bool = True
    ) -> None:
        step = partial(outbox.mark_retry, outbound_id=outbound_id, seconds=seconds)
        await self._send(partial(step, ambiguous=ambiguous, anew=anew, counted=counted))

    async def mark_refused(
        self,
        outbound_id: str,
        reason: str,
        instead: Outbound | None = None,
        *,
        gone: bool = False,
        keeps: bool = False,
    ) -> Outbound | None:
        step = partial(outbox.mark_refused, outbound_id=outbound_id, reason=reason, instead=instead)
        claimed = await self._send(partial(step, gone=gone, keeps=keeps))
        return claimed[0] if claimed else None

    async def next_due(self) -> float | None:
        due = 0.0 if self._unsent else self._process.agenda.next_due()
        return None if due is None else max(0.0, due - self._process.time.now())

    # -- chats in which nothing can be shown any more ---------------------------------------

    close_chat = _writes(outbox.close_chat)

    async def open_chat(self, to: ChatAddress) -> bool:
        return await self._database.write(outbox.reopen, chat_name(to))

    has_unsent = _reads(outbox.has_unsent)
    unasked = _looks(outbox.unasked)
    closed = _reads(outbox.closed_because)

    # -- chats that their platform calls by another name than before ------------------------

    rename_chat = _writes(renaming.rename)

    async def first_name(self, platform: str, chat: str, event_id: str) -> str:
        # An event is known in the whole file, under whatever name it was accepted.
        first, _ = self._database.on(HERE, renaming.names, platform, chat)
        return first or chat

    async def later_name(self, platform: str, chat: str) -> str | None:
        _, later = self._database.on(HERE, renaming.names, platform, chat)
        return later

    # -- what may be spent, and how fast may be sent ----------------------------------------

    async def reserve(self, reservation: Reservation) -> CapReached | None:
        now, generation = self._clock.now(), self._database.generation
        void, self._void = self._void, []

        def work(connection: apsw.Connection) -> CapReached | None:
            for each in void:
                spending.settle(connection, each, 0, generation)
            return spending.reserve(connection, reservation, now, generation)

        return await self._database.writer.run(
            work,
            failed=lambda: self._void.extend(void),
            abandoned=lambda reached: None if reached else self._void.append(reservation),
        )

    async def settle(self, reservation: Reservation, cost: int) -> None:
        await self._database.write(spending.settle, reservation, cost, self._database.generation)

    spent = _looks(spending.spent)

    async def take(self, account: str, ticket: str, rates: Sequence[Rate]) -> float:
        return self._rates.take(account, ticket, rates, self._clock.monotonic())

    async def hold_off(self, account: str, bucket: str, seconds: float) -> None:
        self._rates.hold_off(account, bucket, self._clock.monotonic() + seconds)
        await self._database.write(spending.rest, account, bucket, self._clock.now() + seconds, seconds)

    async def resting(self, account: str, bucket: str) -> float:
        return self._rates.resting(account, bucket, self._clock.monotonic())

    # -- notes ------------------------------------------------------------------------------

    notes = _looks(keeping.notes)

    async def set_notes(
        self, folder: str, changes: Mapping[str, str | None], still: Mapping[str, str | None] | None = None
    ) -> bool:
        return await self._database.write_beside(keeping.set_notes, folder, changes, still)

    folders = _reads(keeping.folders)

    # -- reading for people -----------------------------------------------------------------

    sessions = _reads(reading.listing)
    conversations = _reads(reading.conversations)
    compactions = _reads(reading.compactions)

    async def search(
        self, words: str, key: SessionKey | None, limit: int, meaning: Meaning | None = None
    ) -> list[Passage]:
        now = self._process.time.now()
        late = self._database.is_read_only
        return await self._database.search(
            search.passages, self._entries, words, key, limit, now, meaning, is_late=late
        )

    unembedded = _reads(vectors.unembedded)

    async def keep_vectors(self, model: str, key: SessionKey, kept: Mapping[str, Vector]) -> None:
        await self._database.write(vectors.keep, model, kept)

    async def holding(self, values: Sequence[str], key: SessionKey, limit: int) -> list[list[Found]]:
        return await self._database.search(search.holding, self._entries, values, key, limit)

    async def around(self, key: SessionKey, message_id: str, reach: int) -> list[Found]:
        number = messages.message_number(message_id)
        return await self._database.search(search.around, self._entries, key, number, reach)

    usage = _reads(reading.usage)
    calls = _reads(reading.calls)
    named = _reads(reading.named)
    status = _reads(reading.status)

    async def backlog(self) -> Backlog:
        return replace(await self._database.read(reading.backlog), idle=self._lanes.idle())

    dead = _reads(inbox.dead)
    bury = _writes(inbox.bury)
    outbox = _reads(outbox.listing)

    # -- what the process remembers ---------------------------------------------------------

    async def _append(
        self, key: SessionKey, record: StepRecord, work: Callable[[apsw.Connection], Appended]
    ) -> tuple[Message, ...]:
        appended: Appended = await self._database.writer.run(work, done=partial(self._appended, key, record))
        return appended.messages

    def _appended(self, key: SessionKey, record: StepRecord, appended: Appended) -> None:
        self._process.transcripts.append(appended.session_id, appended.position, appended.messages)
        if record.absorbed:
            self._lanes.absorbed(key, record.absorbed)

    def _opened(self, opened: Opened | None) -> None:
        """A continuation that took over late messages is not cached: its first reader loads it."""
        if opened is not None and opened.session.message_count == len(opened.messages):
            self._process.transcripts.put(opened.session.id, opened.messages)

    def _sender(self) -> Sender:
        return Sender(generation=self._database.generation, now=self._process.time.now(), platforms=self._process.sends)

    async def _send(
        self, work: RowStep, *, failed: Callable[[], None] = lambda: None, also: Iterable[Outbound] = ()
    ) -> tuple[Outbound, ...]:
        """Run a step that claims rows. If its caller is gone by then, the rows, and those of `also`, are for the next
        caller."""

        def abandoned(advances: tuple[Advance, ...]) -> None:
            self._unsent += (*also, *rows_to_send(advances))

        advances = await self._database.writer.run(
            partial(work, sender=self._sender()), done=self._noted, failed=failed, abandoned=abandoned
        )
        return rows_to_send(advances)

    def _noted(self, advances: tuple[Advance, ...]) -> None:
        """Take up the new state of the heads of chats. A step that began before this process served a platform did not
        claim the platform's rows: they must be looked at now."""
        self._process.agenda.note(advances)
        for each in advances:
            is_due = each.due_at is not None and each.due_at <= self._process.time.now()
            if is_due and self._process.sends.has_chat_of(each.chat):
                self._process.tell_rows()
                break
