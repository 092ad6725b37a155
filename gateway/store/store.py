"""`SpaceStore`: the whole port on top of steps, written once for all backends, in the order of `gateway.store.port`.
Each method names the step that does the work, and what this process must remember afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from operator import itemgetter
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack

from gateway.domain.adapter import Rate
from gateway.domain.approval import Approval, Verdict
from gateway.domain.chat import Outbound, SessionKey
from gateway.domain.memory import MemoryChange
from gateway.domain.message import Message
from gateway.domain.reminder import Reminder
from gateway.domain.session import Compaction, EndReason, Session, SessionRef
from gateway.domain.usage import LedgerEntry
from gateway.runtime.clock import Clock
from gateway.runtime.errors import StoreUnavailable
from gateway.runtime.structs import replace
from gateway.store.backend import Backend, News
from gateway.store.fleeting import MemoryRecords
from gateway.store.port import Store
from gateway.store.records import (
    ATTEMPT_PAUSES,
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
    Receipt,
    Reservation,
    SessionChanges,
    SignalKind,
    StepRecord,
    StoreStatus,
    ToolIntent,
    TurnEnd,
    Unembedded,
    Vector,
    check_changes,
)
from gateway.store.shared.process import Process
from gateway.store.shared.transcripts import TranscriptCache
from gateway.store.space import Caller, Space
from gateway.store.steps import forgetting, keeping, lanes, members, pace, reports, spending, turns
from gateway.store.steps import outbox as rows_of
from gateway.store.steps import reminders as alarms
from gateway.store.steps import sessions as talks_of
from gateway.store.workers import LaneWorkers

T = TypeVar("T")
P = ParamSpec("P")

Method = Callable[Concatenate["SpaceStore", P], Coroutine[Any, Any, T]]


def _looks(step: Callable[Concatenate[Space, P], T], way: str = "look") -> Method[P, T]:
    """A method that looks by this step; `way`: the method of the backend that does it."""

    async def method(store: SpaceStore, /, *args: P.args, **named: P.kwargs) -> T:
        done: T = await getattr(store._backend, way)(partial(step, **named) if named else step, *args)
        return done

    return method


def _reads(step: Callable[Concatenate[Space, P], T]) -> Method[P, T]:
    """The same for steps that may look at any number of records."""
    return _looks(step, "read")


def _runs(step: Callable[Concatenate[Space, P], T]) -> Method[P, T]:
    """The same for steps that put records, and change nothing in memory."""
    return _looks(step, "run")


class SpaceStore(Store):
    """A store on this backend. `concurrency`: how many lanes this process claims in the step that accepts their
    message."""

    def __init__(
        self,
        backend: Backend,
        *,
        clock: Clock,
        concurrency: int = 256,
        attempt_pauses: Sequence[float] = ATTEMPT_PAUSES,
    ) -> None:
        self._backend = backend
        self._clock = clock
        self._pauses = attempt_pauses
        self._owner = ""
        self._began = clock.monotonic()
        self._process = Process(clock)
        self._workers = LaneWorkers(clock)
        self._room = concurrency  # for so many lanes more
        self._unsent: list[Outbound] = []  # claimed for a caller that was gone before the answer
        self._nothing_due = False  # for certain
        self._void: list[Reservation] = []  # reserved for such a caller
        self._disturbed = 0  # how often news of a lane that runs were heard, or may have been missed
        self._quiet: dict[str, str] = {}  # lanes of which nothing was heard since they were claimed with this item
        self._fleeting = MemoryRecords()  # what need not outlive this process, where it has the store for itself

    # -- lifetime ---------------------------------------------------------------------------

    async def open(self) -> None:
        self._owner = await self._backend.open(self._hear, self._caller)
        if self._backend.is_beside:
            return
        self._began = self._clock.monotonic()
        await self._backend.run(members.join, self._caller(), self._process.time.now() + self._backend.life)
        now = self._process.time.now()
        for rest in await self._backend.run(spending.rests, now):
            until = now + min(rest.until - now, rest.seconds)
            self._fleeting.run(pace.hold_off, rest.account, rest.bucket, until)

    def rest(self) -> int:
        """Drop transcripts that nobody asked for since the last call, and return their bytes."""
        return self._process.transcripts.rest()

    async def aclose(self) -> None:
        left, unsent = self._workers.close(), [row.id for row in self._unsent]
        owner, self._owner, self._unsent = self._owner, "", []
        if owner:
            with suppress(StoreUnavailable):  # a full disk must not keep the process from ending
                await self._backend.run(members.end, self._caller(owner), left, unsent)
        await self._backend.aclose()

    def _caller(self, owner: str = "") -> Caller:
        return Caller(
            owner=owner or self._owner,
            now=self._process.time.now(),
            uptime=self._clock.monotonic() - self._began,
            runs=self._process.runs,
            sends=self._process.sends,
            pauses=self._pauses,
            sole=self._backend.is_sole,
        )

    def _hear(self, news: News) -> None:
        """Something happened, in this process or another."""
        topic, *words = news
        if topic in ("due", "rows", "missed"):
            self._nothing_due = False
        if topic in ("signal", "behind", "missed"):
            self._disturbed += 1
            if words:
                self._quiet.pop(words[0], None)
            else:
                self._quiet.clear()
        if topic == "time":
            self._process.time.learn(float(words[0]))
        elif topic == "missed":
            self._workers.look()
            self._process.tell("rows")
            self._process.tell("left")
        elif topic == "ready":
            self._workers.look()
        elif topic == "rows" and self._process.sends.has_chat_of(words[0]):
            self._process.tell("rows")
        elif topic in ("signal", "decided"):
            lane, *kind = words
            self._process.tell(topic, SessionKey.parse(lane), *kind)
        elif topic == "left":
            self._process.tell("left")

    # -- receiving --------------------------------------------------------------------------

    async def accept(self, arrivals: Sequence[Arrival], *, cap: int) -> list[Receipt]:
        room, disturbed = self._reserve(len(arrivals)), self._disturbed

        def done(accepted: lanes.Accepted) -> None:
            if self._disturbed == disturbed:
                self._quiet |= {each.item.key.text: each.item.id for each in accepted.claimed}
            self._claimed(room, accepted.claimed)

        accepted = await self._backend.run(
            turns.accept, self._caller(), arrivals, cap, room, done=done, failed=lambda: self._claimed(room, ())
        )
        return accepted.receipts

    def _reserve(self, most: int) -> int:
        """Set room aside for lanes that may be claimed at once."""
        room = min(most, max(0, self._room))
        self._room -= room
        return room

    def _claimed(self, room: int, claimed: Sequence[lanes.Claimed]) -> None:
        """So many lanes were claimed, of the room that was set aside."""
        self._room += room - len(claimed)
        for each in claimed:
            self._workers.offer(each)

    async def refuse(self, arrival: Arrival, notice: Outbound) -> tuple[Outbound, ...]:
        return await self._send(lanes.refuse, arrival, notice)

    amend = _runs(lanes.amend)

    # -- lanes ------------------------------------------------------------------------------

    async def claim_next(self, worker: str) -> Claim:
        while (claimed := self._workers.take()) is None:
            found = await self._look_for_lane() if self._workers.may_claim else await self._workers.wait()
            if found is not None:
                claimed = found
                break
        lease = Lease(key=claimed.item.key, worker=worker, fence=claimed.fence)
        return Claim(lease=lease, item=claimed.item, begins=claimed.begins)

    async def _look_for_lane(self) -> lanes.Claimed | None:
        asked_at = self._clock.monotonic()
        self._workers.looks()

        def looked(found: lanes.Claimed | lanes.NoClaim) -> None:
            if isinstance(found, lanes.Claimed):
                self._room -= 1
                self._workers.look()  # there may be more
            else:
                self._workers.found_none(found.again_in, asked_at)

        def abandoned(found: lanes.Claimed | lanes.NoClaim) -> None:
            if isinstance(found, lanes.Claimed):
                self._workers.offer(found)

        found = await self._backend.run(
            lanes.claim, self._caller(), done=looked, failed=self._workers.look, abandoned=abandoned
        )
        return found if isinstance(found, lanes.Claimed) else None

    async def claim_bypassed(self, worker: str) -> list[InboxItem]:
        return await self._backend.run(lanes.claim_left, self._caller())

    async def release(self, lease: Lease, *, counted: bool = False) -> None:
        def done(_: None) -> None:
            self._room += 1
            self._quiet.pop(lease.key.text, None)

        await self._backend.run(lanes.release, lease, counted, done=done)

    running = _looks(lanes.running)

    async def waiting(self, key: SessionKey, limit: int, *, behind: InboxItem | None = None) -> list[InboxItem]:
        if behind is not None and self._is_quiet(behind):
            return []
        return await self._backend.look(lanes.waiting, key, limit)

    heard = _reads(reports.heard)
    signal = _runs(lanes.signal)

    async def signals(self, item: InboxItem) -> tuple[SignalKind, ...]:
        return () if self._is_quiet(item) else await self._backend.look(lanes.signals, item)

    def _is_quiet(self, item: InboxItem) -> bool:
        """Whether nothing was heard of a running item's lane, although anything new would have been."""
        return self._backend.listens and self._quiet.get(item.key.text) == item.id

    def on_signal(self, listener: Callable[[SessionKey, SignalKind], None]) -> None:
        self._process.listeners["signal"].append(listener)

    # -- one turn ---------------------------------------------------------------------------

    beginning = _looks(turns.beginning)
    open_reply = _runs(turns.open_reply)
    note_streamed = _runs(rows_of.note_streamed)

    async def begin_tools(
        self, lease: Lease, ref: SessionRef, item: InboxItem, record: StepRecord, intents: Sequence[ToolIntent]
    ) -> tuple[Message, ...]:
        done = await self._backend.run(turns.begin_tools, lease, ref, item, record, intents, done=self._appended)
        return done.messages

    async def record_step(
        self, lease: Lease, ref: SessionRef, item: InboxItem, record: StepRecord
    ) -> tuple[Message, ...]:
        done = await self._backend.run(turns.record_step, lease, ref, item, record, done=self._appended)
        return done.messages

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
        return await self._send(turns.finish_bypassed, item, outbound)

    # -- questions to people ----------------------------------------------------------------

    async def ask(self, lease: Lease, approval: Approval, shown: Sequence[Outbound]) -> tuple[Outbound, ...]:
        return await self._send(turns.ask, lease, approval, shown)

    async def decide(
        self, asked: Approval, verdict: Verdict, by: str | None, at: float, shown: Sequence[Outbound]
    ) -> Decision | None:
        def abandoned(decision: Decision | None) -> None:
            self._left_over(decision.outbound if decision is not None else ())

        return await self._backend.run(turns.decide, self._caller(), asked, verdict, by, at, shown, abandoned=abandoned)

    approvals = _looks(turns.approvals)

    def on_decided(self, listener: Callable[[SessionKey], None]) -> None:
        self._process.listeners["decided"].append(listener)

    # -- several processes ------------------------------------------------------------------

    def serve(self, *, runs: Collection[str], sends: Collection[str]) -> None:
        self._process.serve(runs=runs, sends=sends)
        self._nothing_due = False
        self._workers.look()
        self._process.tell("rows")  # rows that an earlier process left may wait

    def on_rows(self, listener: Callable[[], None]) -> None:
        self._process.listeners["rows"].append(listener)

    def on_left(self, listener: Callable[[], None]) -> None:
        self._process.listeners["left"].append(listener)

    async def hold(self, name: str, holder: str, seconds: float) -> bool:
        return await self._fleet(pace.hold, name, holder, self._process.time.now(), seconds)

    async def let_go(self, name: str, holder: str) -> None:
        await self._fleet(pace.let_go, name, holder)

    # -- sessions ---------------------------------------------------------------------------

    tip = _looks(talks_of.tip)

    async def session(self, session_id: str, key: SessionKey | None = None) -> Session:
        return await self._backend.look(talks_of.by_id, session_id)

    async def transcript(self, session: Session) -> tuple[Message, ...]:
        if self._backend.is_beside:  # whose owner tells nothing
            return tuple(await self._backend.read(talks_of.transcript, session.id, 0))
        known = self._process.transcripts.get(session.id, session.rewritten) or ()
        while len(known) < session.message_count:
            rest = await self._backend.read(talks_of.transcript, session.id, len(known))
            known = (*known, *rest)
            # Something may have been appended meanwhile; later appends are told.
            if len(known) >= await self._backend.look(talks_of.length, session.id):
                self._process.transcripts.put(session.id, known, session.rewritten)
                break
        return known

    async def open_session(self, lease: Lease, opening: Opening) -> Session:
        opened = await self._backend.run(talks_of.open_session, lease, opening, done=self._opened)
        return opened.session

    async def end_session(
        self, lease: Lease, ref: SessionRef, reason: EndReason, at: float, opening: Opening | None
    ) -> Session | None:
        opened = await self._backend.run(talks_of.end_session, lease, ref, reason, at, opening, done=self._opened)
        return None if opened is None else opened.session

    async def continue_session(
        self, lease: Lease, ref: SessionRef, opening: Opening, snapshot_length: int, compaction: Compaction
    ) -> Session:
        opened = await self._backend.run(
            talks_of.continue_session, lease, ref, opening, snapshot_length, compaction, done=self._opened
        )
        return opened.session

    async def update_session(self, lease: Lease, ref: SessionRef, **changes: Unpack[SessionChanges]) -> Session:
        check_changes(changes)
        return await self._backend.run(talks_of.update_session, lease, ref, changes)

    async def import_sessions(self, openings: Sequence[Opening]) -> list[bool]:
        return await asyncio.gather(*(self._backend.run(talks_of.import_session, each) for each in openings))

    async def charge(self, session: Session, calls: Sequence[LedgerEntry]) -> None:
        await self._backend.run(spending.enter, calls, session.id, session.key)

    async def pending_hooks(self, limit: int) -> list[Session]:
        owed = await self._backend.run(talks_of.pending_hooks, self._owner, limit)
        return [session for _, session in sorted(owed, key=itemgetter(0))[:limit]]

    hook_done = _runs(talks_of.hook_done)

    async def claim_due_sessions(self, now: float, limit: int) -> list[Session]:
        return await self._backend.run(talks_of.claim_due, self._caller(), now, limit)

    # -- pins and memory --------------------------------------------------------------------

    pins = _looks(keeping.pins)
    set_pins = _runs(keeping.set_pins)
    memory = _reads(keeping.memory)

    async def change_memory(self, change: MemoryChange) -> bool:
        return await self._backend.run_beside(keeping.change_memory, change)

    async def note_flushed(self, session: Session, messages: int) -> None:
        await self._backend.run(talks_of.note_flushed, session.id, messages)

    note_title = _runs(talks_of.note_title)

    # -- forgetting -------------------------------------------------------------------------

    async def forget(self, lease: Lease | None, deed: Forgetting) -> Mapping[str, int]:
        counts = await self._backend.run(forgetting.forget, lease, deed)
        for session in deed.sessions:
            self._process.transcripts.drop(session.session_id)
        await self._backend.scrub()
        return counts

    async def erase(self, lease: Lease | None, deed: Erasure) -> Mapping[str, int]:
        counts = await self._backend.run(forgetting.erase, lease, deed)
        self._process.transcripts = TranscriptCache()
        await self._backend.scrub()
        return counts

    talks = _reads(forgetting.talks)

    async def forgotten(self, key: SessionKey, deed: str) -> Mapping[str, int] | None:
        return await self._backend.read(forgetting.forgotten, deed)

    # -- reminders --------------------------------------------------------------------------

    add_reminder = _runs(alarms.add)
    reminder = _looks(alarms.of_id)
    reminders = _reads(alarms.of_key)
    has_reminders = _looks(alarms.has_any)

    async def due_reminders(self, now: float, limit: int) -> list[Reminder]:
        return await self._backend.look(alarms.due, self._caller(), now, limit)

    async def change_reminder(
        self,
        reminder: Reminder,
        shown: Sequence[Outbound] = (),
        arrival: Arrival | None = None,
        also: Sequence[Reminder] = (),
    ) -> Changed:
        arrivals = [] if arrival is None else [arrival]
        room = self._reserve(len(arrivals))

        def done(changed: alarms.Replaced) -> None:
            self._claimed(room, changed.claimed)

        def abandoned(changed: alarms.Replaced) -> None:
            self._left_over(changed.outbound)

        changed = await self._backend.run(
            alarms.change,
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

    rows = _reads(rows_of.rows)

    # -- files ------------------------------------------------------------------------------

    keep_file = _runs(keeping.keep_file)
    kept_file = _looks(keeping.kept_file)
    kept_files = _reads(keeping.kept_files)
    file_content = _reads(keeping.file_content)

    # -- delivery ---------------------------------------------------------------------------

    async def emit(self, outbound: Sequence[Outbound]) -> tuple[Outbound, ...]:
        return await self._send(rows_of.emit, outbound)

    async def claim_outbound(self, limit: int) -> list[Outbound]:
        unsent, self._unsent = self._unsent[:limit], self._unsent[limit:]
        if len(unsent) == limit:
            return unsent
        try:
            return [*unsent, *await self._send(rows_of.claim_due, limit - len(unsent))]
        except BaseException:
            self._unsent += unsent
            raise

    def owns(self, row: Outbound) -> bool:
        return self._backend.is_sure(row.to)

    async def mark_sent(self, outbound_id: str, platform_message_id: str | None) -> Outbound | None:
        return await self._next_row(rows_of.mark_sent, outbound_id, platform_message_id)

    async def mark_retry(
        self, outbound_id: str, seconds: float, *, ambiguous: bool, anew: bool = False, counted: bool = True
    ) -> None:
        await self._backend.run(rows_of.mark_retry, self._caller(), outbound_id, seconds, ambiguous, anew, counted)

    async def mark_refused(
        self,
        outbound_id: str,
        reason: str,
        instead: Outbound | None = None,
        *,
        gone: bool = False,
        keeps: bool = False,
    ) -> Outbound | None:
        return await self._next_row(rows_of.mark_refused, outbound_id, reason, instead, gone, keeps)

    has_unsent = _reads(rows_of.has_unsent)
    unasked = _looks(rows_of.unasked)

    async def next_due(self) -> float | None:
        if self._unsent:
            return 0.0
        if self._nothing_due:
            return None
        self._nothing_due = True  # until something else is told
        try:
            due = await self._backend.look(rows_of.next_due, self._caller())
        except BaseException:
            self._nothing_due = False
            raise
        self._nothing_due = self._nothing_due and due is None
        return None if due is None else max(0.0, due - self._process.time.now())

    async def _send(self, step: Callable[..., tuple[Outbound, ...]], *args: Any) -> tuple[Outbound, ...]:
        """Run a step that claims rows. If its caller is gone, the rows go to the next one."""
        return await self._backend.run(step, self._caller(), *args, abandoned=self._left_over)

    def _left_over(self, rows: Sequence[Outbound]) -> None:
        """These rows were claimed for a caller that is gone: whoever claims next sends them."""
        if rows:
            self._unsent += rows
            self._process.tell("rows")

    async def _next_row(self, step: Callable[..., Outbound | None], *args: Any) -> Outbound | None:
        def abandoned(row: Outbound | None) -> None:
            self._left_over(() if row is None else (row,))

        return await self._backend.run(step, self._caller(), *args, abandoned=abandoned)

    # -- chats ------------------------------------------------------------------------------

    close_chat = _runs(rows_of.close_chat)
    open_chat = _runs(rows_of.open_chat)
    closed = _looks(rows_of.closed)
    rename_chat = _runs(keeping.rename_chat)

    async def first_name(self, platform: str, chat: str, event_id: str) -> str:
        return await self._backend.look(keeping.first_name, platform, chat, event_id)

    later_name = _looks(keeping.later_name)

    # -- what may be spent, and how fast may be sent ----------------------------------------

    async def reserve(self, reservation: Reservation) -> CapReached | None:
        while self._void:
            void = self._void.pop()
            await self._backend.run(spending.settle, void, 0)

        def abandoned(reached: CapReached | None) -> None:
            if reached is None:
                self._void.append(reservation)

        return await self._backend.run(
            spending.reserve, self._caller(), reservation, self._clock.now(), abandoned=abandoned
        )

    settle = _runs(spending.settle)
    spent = _looks(spending.spent)

    async def take(self, account: str, ticket: str, rates: Sequence[Rate]) -> float:
        return await self._fleet(pace.take, account, ticket, rates, self._process.time.now())

    async def hold_off(self, account: str, bucket: str, seconds: float) -> None:
        until = self._process.time.now() + seconds
        await self._fleet(pace.hold_off, account, bucket, until)
        await self._backend.run(spending.rest, account, bucket, until, seconds)

    async def resting(self, account: str, bucket: str) -> float:
        return await self._fleet(pace.resting, account, bucket, self._process.time.now())

    async def _fleet(self, step: Callable[..., T], *args: Any) -> T:
        """Run a step on state that need not outlive the processes."""
        if not self._backend.is_sole:
            return await self._backend.run(step, *args)
        result, _ = self._fleeting.run(step, *args)
        return result

    # -- notes ------------------------------------------------------------------------------

    notes = _looks(keeping.notes)

    async def set_notes(
        self, folder: str, changes: Mapping[str, str | None], still: Mapping[str, str | None] | None = None
    ) -> bool:
        return await self._backend.run_beside(keeping.set_notes, folder, changes, still)

    folders = _reads(keeping.folders)

    # -- reading for people -----------------------------------------------------------------

    async def sessions(self, key: SessionKey | None, limit: int, offset: int = 0) -> list[Session]:
        return await self._backend.read(reports.listed_sessions, key, limit, offset)

    conversations = _reads(reports.conversations)
    compactions = _reads(reports.compactions)

    async def search(
        self, words: str, key: SessionKey | None, limit: int, meaning: Meaning | None = None
    ) -> list[Passage]:
        return await self._backend.search(words, key, limit, self._process.time.now(), meaning)

    async def holding(self, values: Sequence[str], key: SessionKey, limit: int) -> list[list[Found]]:
        return await self._backend.holding(values, key, limit)

    async def around(self, key: SessionKey, message_id: str, reach: int) -> list[Found]:
        return await self._backend.around(key, message_id, reach)

    usage = _reads(spending.usage)
    calls = _reads(spending.calls)
    named = _reads(reports.named)

    async def status(self, platforms: Collection[str] | None = None) -> StoreStatus:
        found = await self._backend.read(reports.status, platforms)
        return replace(found, unindexed=await self._backend.unindexed())

    async def backlog(self) -> Backlog:
        found = await self._backend.read(reports.backlog)
        idle = dict(found.idle)
        for each in self._workers.claimed:  # they wait for a worker, too
            platform, since = each.item.key.platform, each.item.accepted_at
            idle[platform] = min(since, idle.get(platform, since))
        return replace(found, idle=idle)

    dead = _reads(reports.dead)
    bury = _runs(reports.bury)
    outbox = _reads(reports.outbox)

    async def unembedded(self, model: str, length: int, limit: int) -> list[Unembedded]:
        return await self._backend.unembedded(model, length, limit)

    async def keep_vectors(self, model: str, key: SessionKey, kept: Mapping[str, Vector]) -> None:
        await self._backend.keep_vectors(model, key, kept)

    # -- what the process remembers ---------------------------------------------------------

    def _appended(self, appended: talks_of.Appended) -> None:
        self._process.transcripts.append(appended.session_id, appended.position, appended.messages)

    def _opened(self, opened: talks_of.Opened | None) -> None:
        """Do not cache a continuation that took over late messages: its first reader loads it."""
        if opened is not None and opened.session.message_count == len(opened.messages):
            self._process.transcripts.put(opened.session.id, opened.messages)
