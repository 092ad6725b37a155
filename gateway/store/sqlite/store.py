"""`SqliteStore`: the port on one SQLite file. Each method says which function does it, and what
this process must remember when it is durable. Queries are in `readable`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar, Unpack

import apsw

from gateway.domain.approval import Approval
from gateway.domain.chat import Outbound, SessionKey
from gateway.domain.message import Message
from gateway.domain.pin import Pins
from gateway.domain.session import Compaction, EndReason, Session, SessionRef
from gateway.domain.usage import LedgerEntry
from gateway.runtime.clock import Clock
from gateway.runtime.errors import SessionConflict, StoreUnavailable
from gateway.runtime.points import Points, ignore_points
from gateway.store.records import (
    EXPIRY_CLAIM,
    Arrival,
    Claim,
    InboxItem,
    ItemOutcome,
    Lease,
    Opening,
    Rebuilt,
    Receipt,
    SessionChanges,
    SignalKind,
    StepRecord,
    ToolIntent,
    TurnEnd,
    check_changes,
)
from gateway.store.shared.platforms import Platforms
from gateway.store.sqlite import approving, inbox, outbox, pinning, sessions, turns
from gateway.store.sqlite.agenda import Agenda, rows_to_send
from gateway.store.sqlite.deciding import DecidingStore
from gateway.store.sqlite.filing import FilingStore
from gateway.store.sqlite.lanes import Lanes
from gateway.store.sqlite.leases import Leases
from gateway.store.sqlite.metering import MeteringStore
from gateway.store.sqlite.outbox import Advance
from gateway.store.sqlite.sessions import Appended, Opened

T = TypeVar("T")


class SqliteStore(DecidingStore, MeteringStore, FilingStore):
    """Everything in the SQLite file at `path`. `concurrency`: how many lanes may be claimed as their
    message is accepted, which saves a commit. With `read_only` it opens beside a running gateway,
    without lock or migration, and writing methods raise StoreUnavailable. `points` is for every
    store's sake: the named points lie between the steps of the port, and this one passes none within."""

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock,
        concurrency: int = 256,
        points: Points = ignore_points,
        read_only: bool = False,
        cached_messages: int = 200_000,
    ) -> None:
        super().__init__(path, clock=clock, read_only=read_only, cached_messages=cached_messages)
        self._concurrency = concurrency
        self._lanes = Lanes(concurrency=concurrency, generation=0, waiting=())
        self._leases = Leases(clock)
        self._runs = Platforms()
        self._bypassed: list[InboxItem] = []
        self._listeners: list[Callable[[SessionKey, SignalKind], None]] = []
        # A session and its deadline → when it may be offered again; with another deadline it may at once.
        self._due_claims: dict[tuple[str, float | None], float] = {}

    @property
    def commits(self) -> int:
        """Transactions that changed something, since `open`."""
        return self._database.commits

    # -- lifetime ---------------------------------------------------------------------------

    async def open(self) -> None:
        await self._database.open()
        if self._read_only:
            return
        queued, self._bypassed = await self._database.read(inbox.unfinished)
        self._lanes = Lanes(concurrency=self._concurrency, generation=self._database.generation, waiting=queued)
        now = self._time.now()
        await self._database.writer.run(lambda connection: outbox.cap_waits(connection, now))
        await self._rest_on()
        self._agenda = Agenda(await self._database.read(outbox.unfinished_heads))
        self._lanes.serve(self._runs)
        self._agenda.serve(self._sends)

    async def aclose(self) -> None:
        unstarted, unsent = self._lanes.unstarted(), [row.id for row in self._agenda.unclaimed()]
        if (unstarted or unsent) and self._database.is_open:

            def give_back(connection: apsw.Connection) -> None:
                inbox.uncount(connection, unstarted)
                outbox.give_back(connection, unsent)

            self._lanes = Lanes(concurrency=0, generation=0, waiting=())
            self._agenda = Agenda(())
            with suppress(StoreUnavailable):  # a full disk must not keep the process from ending
                await self._database.writer.run(give_back)
        await self._database.aclose()

    async def backup(self, path: Path) -> None:
        """Copy the whole store, as it is now, into a new file at `path`; the gateway goes on meanwhile."""
        await self._database.backup(path)

    # -- receiving --------------------------------------------------------------------------

    async def accept(self, arrivals: Sequence[Arrival], *, cap: int) -> list[Receipt]:
        reserved = self._lanes.reserve(dict.fromkeys(arrival.key for arrival in arrivals if not arrival.bypass))

        def done(arrived: list[inbox.Arrived]) -> None:
            for each in arrived:
                if each.item is None or each.receipt.item is not None:
                    continue
                (self._lanes.claimed if each.claimed else self._lanes.queued)(each.item)
            self._lanes.unreserve(reserved)

        idle = frozenset(str(key) for key in reserved)
        arrived = await self._database.writer.run(
            lambda connection: inbox.accept(connection, arrivals, cap, idle),
            done=done,
            failed=partial(self._lanes.unreserve, reserved),
        )
        return [each.receipt for each in arrived]

    async def refuse(self, arrival: Arrival, notice: Outbound) -> tuple[Outbound, ...]:
        sender = self._sender()

        def work(connection: apsw.Connection) -> tuple[Advance, ...]:
            if not inbox.record_refused(connection, arrival):
                return ()
            return outbox.emit(connection, [notice], sender)

        return await self._send(work)

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
        left = [item for item in self._bypassed if item.key.platform in self._runs]
        self._bypassed = [item for item in self._bypassed if item.key.platform not in self._runs]
        if not left:
            return []
        return await self._database.writer.run(
            lambda connection: [inbox.count_attempt(connection, item) for item in left],
            failed=lambda: self._bypassed.extend(left),
        )

    async def release(self, lease: Lease, *, counted: bool = False) -> None:
        lane = self._lanes.check(lease)
        head = lane.head
        assert head is not None
        self._lanes.ending(lane)
        await self._database.writer.run(
            lambda connection: inbox.uncount(connection, [] if counted else [head]),
            done=lambda _: self._lanes.released(lane, counted=counted),
            failed=partial(self._lanes.not_ended, lane),
        )

    async def running(self, key: SessionKey) -> InboxItem | None:
        return self._lanes.current(key)

    async def waiting(self, key: SessionKey, limit: int) -> list[InboxItem]:
        return self._lanes.waiting(key, limit)

    # -- one turn ---------------------------------------------------------------------------

    async def open_reply(self, lease: Lease, item: InboxItem, reply: Outbound) -> Outbound:
        self._lanes.check(lease, item)
        return await self._database.writer.run(lambda connection: turns.open_reply(connection, item, reply))

    async def note_streamed(self, outbound_id: str, platform_message_id: str) -> None:
        await self._database.writer.run(
            lambda connection: outbox.note_streamed(connection, outbound_id, platform_message_id)
        )

    async def begin_tools(
        self, lease: Lease, ref: SessionRef, item: InboxItem, record: StepRecord, intents: Sequence[ToolIntent]
    ) -> tuple[Message, ...]:
        self._lanes.check(lease, item)
        return await self._append(
            item, record, lambda connection: turns.begin_tools(connection, ref, item, record, intents)
        )

    async def record_step(
        self, lease: Lease, ref: SessionRef, item: InboxItem, record: StepRecord
    ) -> tuple[Message, ...]:
        self._lanes.check(lease, item)
        return await self._append(item, record, lambda connection: turns.record_step(connection, ref, item, record))

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
        lane = self._lanes.check(lease, item)
        self._lanes.ending(lane)
        sender = self._sender()

        def done(ended: turns.Ended) -> None:
            if ended.appended is not None and record is not None:
                self._appended(item, record, ended.appended)
            self._noted(ended.advances)
            self._lanes.ended(lane, ended.next)

        def abandoned(ended: turns.Ended) -> None:
            self._agenda.hand_back(rows_to_send(ended.advances))
            if ended.next is not None:
                self._lanes.hand_back(lane)

        ended = await self._database.writer.run(
            lambda connection: turns.finish(connection, item, step, outcome, outbound, sender),
            done=done,
            failed=partial(self._lanes.not_ended, lane),
            abandoned=abandoned,
        )
        stored = () if ended.appended is None else ended.appended.messages
        return TurnEnd(messages=stored, next=ended.next, outbound=rows_to_send(ended.advances))

    async def finish_bypassed(self, item: InboxItem, outbound: Sequence[Outbound]) -> tuple[Outbound, ...]:
        sender = self._sender()
        return await self._send(lambda connection: turns.finish_bypassed(connection, item, outbound, sender))

    async def ask(self, lease: Lease, approval: Approval, shown: Sequence[Outbound]) -> tuple[Outbound, ...]:
        head = self._lanes.check(lease).head
        if head is None or head.id != approval.item:
            raise SessionConflict("This item is not the one its lane runs.")
        sender = self._sender()
        return await self._send(lambda connection: approving.ask(connection, approval, shown, sender))

    # -- signals ----------------------------------------------------------------------------

    async def signal(self, key: SessionKey, kind: SignalKind, at: float) -> bool:
        item = self._lanes.current(key)
        if item is None:
            return False

        def done(left: bool) -> None:
            for listener in self._listeners if left else ():
                listener(key, kind)

        return await self._database.writer.run(
            lambda connection: inbox.leave_signal(connection, item, kind, at), done=done
        )

    def on_signal(self, listener: Callable[[SessionKey, SignalKind], None]) -> None:
        self._listeners.append(listener)

    # -- several processes: there is one ----------------------------------------------------

    def serve(self, *, runs: Collection[str], sends: Collection[str]) -> None:
        self._runs = Platforms(runs)
        self._lanes.serve(self._runs)
        self._send_to(Platforms(sends))

    def on_left(self, listener: Callable[[], None]) -> None:
        return

    async def hold(self, name: str, holder: str, seconds: float) -> bool:
        return self._leases.hold(name, holder, seconds)

    async def let_go(self, name: str, holder: str) -> None:
        self._leases.let_go(name, holder)

    # -- sessions ---------------------------------------------------------------------------

    async def open_session(self, lease: Lease, opening: Opening) -> Session:
        self._lanes.check(lease)
        opened = await self._database.writer.run(
            lambda connection: sessions.open_(connection, lease.key, opening), done=self._opened
        )
        return opened.session

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
        return await self._database.writer.run(lambda connection: sessions.update(connection, ref, lease.key, changes))

    async def set_pins(self, lease: Lease, pins: Pins, rebuilt: Rebuilt | None) -> Session | None:
        self._lanes.check(lease)
        return await self._database.writer.run(lambda connection: pinning.set_(connection, lease.key, pins, rebuilt))

    async def charge(self, session: Session, calls: Sequence[LedgerEntry]) -> None:
        def work(connection: apsw.Connection) -> None:
            for call in calls:
                sessions.record_call(connection, call, session.id, session.key)

        await self._database.writer.run(work)

    async def hook_done(self, session_id: str) -> None:
        await self._database.writer.run(lambda connection: sessions.hook_done(connection, session_id))

    async def claim_due_sessions(self, now: float, limit: int) -> list[Session]:
        self._due_claims = {each: until for each, until in self._due_claims.items() if until > now}
        most = limit + len(self._due_claims)
        due = await self._database.read(lambda connection: sessions.due(connection, now, most))
        claimed = [session for session in due if (session.id, session.expires_at) not in self._due_claims][:limit]
        self._due_claims.update(((session.id, session.expires_at), now + EXPIRY_CLAIM) for session in claimed)
        return claimed

    # -- what the process remembers ---------------------------------------------------------

    async def _append(
        self, item: InboxItem, record: StepRecord, work: Callable[[apsw.Connection], Appended]
    ) -> tuple[Message, ...]:
        appended: Appended = await self._database.writer.run(work, done=partial(self._appended, item, record))
        return appended.messages

    def _appended(self, item: InboxItem, record: StepRecord, appended: Appended) -> None:
        self._cache.append(appended.session_id, appended.position, appended.messages)
        self._lanes.absorbed(item.key, record.absorbed)

    def _opened(self, opened: Opened | None) -> None:
        """A continuation that took over late messages is not cached: its first reader loads it."""
        if opened is not None and opened.session.message_count == len(opened.messages):
            self._cache.put(opened.session.id, opened.messages)
