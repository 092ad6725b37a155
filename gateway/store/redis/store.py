"""`RedisStore`: the port on a Redis server or cluster, in the order of `gateway.store.port`.

The scripts do the work of a step. Here are the arguments of each script, and the process's own notes once it is done.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from math import ceil
from typing import Any, Concatenate, Final, ParamSpec, TypeVar, Unpack

from gateway.domain.adapter import GRACE, Rate
from gateway.domain.approval import Approval, Verdict
from gateway.domain.chat import MOST_PLACE, ChatAddress, KeptFile, Outbound, SessionKey
from gateway.domain.memory import MemoryChange
from gateway.domain.message import Message
from gateway.domain.reminder import Reminder
from gateway.domain.rule import Pins
from gateway.domain.session import Compaction, EndReason, Session, SessionRef
from gateway.domain.usage import LedgerEntry, UsageTotal
from gateway.runtime.clock import Clock
from gateway.runtime.errors import SessionConflict, SessionNotFound, StoreUnavailable
from gateway.runtime.structs import replace
from gateway.runtime.tasks import Background
from gateway.store.port import Store
from gateway.store.records import (
    ATTEMPT_PAUSES,
    EXPIRY_CLAIM,
    LEASE_SECONDS,
    OF_DAYS,
    Arrival,
    Beginning,
    CapReached,
    Changed,
    Claim,
    Decision,
    Erasure,
    Forgetting,
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
    StoreStatus,
    Talk,
    ToolIntent,
    TurnEnd,
    UsageBy,
    Vector,
    chat_type_of,
    check_changes,
)
from gateway.store.redis import arguments, forgetting, reading, searching, vectors
from gateway.store.redis.admission import admit
from gateway.store.redis.arguments import flags, of_lease
from gateway.store.redis.codec import compaction_from, compaction_json, number, pairs, row_from, session_from
from gateway.store.redis.connection import Caller, Job
from gateway.store.redis.endpoint import UNREACHABLE, Endpoint
from gateway.store.redis.keeping import (
    content_of,
    fact_texts,
    folder_at,
    pieces,
    read_memory,
)
from gateway.store.redis.keyspace import keys
from gateway.store.redis.lanes import Lanes
from gateway.store.redis.mark import check_free
from gateway.store.redis.membership import Membership
from gateway.store.redis.outbox import Outbox, advances_from
from gateway.store.redis.partitions import (
    EVERYWHERE,
    Places,
    by_partition,
    partition_of,
    partition_of_key,
    partition_of_name,
)
from gateway.store.redis.spending import Spending
from gateway.store.redis.wire import Wire
from gateway.store.shared.agenda import Advance, rows_to_send
from gateway.store.shared.documents import (
    approval_from,
    approval_json,
    file_from,
    file_json,
    in_order,
    intents_json,
    item_from,
    pins_from,
    pins_json,
    reminder_from,
    storable,
    verdict_json,
)
from gateway.store.shared.platforms import Platforms, chat_name
from gateway.store.shared.process import Process

T = TypeVar("T")
P = ParamSpec("P")


def _reads(
    query: Callable[Concatenate[Wire, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[RedisStore, P], Coroutine[Any, Any, T]]:
    """The step that only asks this query."""

    async def step(store: RedisStore, /, *args: P.args, **named: P.kwargs) -> T:
        return await query(store._wire, *args, **named)

    return step


class RedisStore(Store):
    """Everything in the Redis database at `url`, shared with all processes that use the database.

    `lease_seconds`: how long this process may be silent before the others take over its claims; so long its claims
    last after a crash, too. `timeout`: how long the server may take to answer. `patience`: how long a step that was
    not sent waits for a server that is away, before the step fails with StoreUnavailable; a step that may have been
    done waits for its answer. With `waits`, `open` waits for a server that cannot be reached, and `told` is given a
    sentence about that.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Clock,
        lease_seconds: float = LEASE_SECONDS,
        timeout: float = 5.0,
        patience: float = 5.0,
        waits: bool = True,
        told: Callable[[str], None] = lambda _: None,
        attempt_pauses: Sequence[float] = ATTEMPT_PAUSES,
    ) -> None:
        self.owner: Final = os.urandom(8).hex()  # the name of this process among the others
        self._endpoint = Endpoint(url, timeout=timeout)
        self._admitted = partial(admit, self._endpoint, clock, waits=waits, told=told)
        self._process = Process(clock)
        self._places = Places()
        self._background = Background()
        self._caller = Caller(owner=self.owner, channel="", life=int(lease_seconds * 1_000))
        self._wire = Wire(
            self._endpoint, caller=self._caller, clock=clock, background=self._background, patience=patience
        )
        self._entering = searching.Entering(self._wire)
        self._lanes = Lanes(self._wire, self._places, clock, attempt_pauses)
        self._process.signal_listeners.append(lambda key, _: self._lanes.disturb(key))
        self._outbox = Outbox(self._wire, self._process, self._places)
        self._spending = Spending(self._wire, clock)
        self._days = reading.DaySums()
        self._old_search = set[int]()  # partitions whose search entries another version made
        self._membership = Membership(
            self._endpoint,
            self._caller,
            self._wire,
            process=self._process,
            lanes=self._lanes,
            outbox=self._outbox,
            background=self._background,
            old_search=self._old_search,
        )

    def rest(self) -> int:
        """Forget the transcripts that nobody asked for since the last call; return their bytes."""
        return self._process.transcripts.rest()

    # -- lifetime ---------------------------------------------------------------------------

    async def open(self) -> None:
        """Connect and join. Raises StoreUnavailable for a server that must not be used."""
        store_id = await self._admitted()
        with suppress(*UNREACHABLE):  # then the steps of this process will wait for the server, too
            self._old_search |= await searching.outdated(self._endpoint)
        self._caller.channel = f"legato:{store_id}"
        self._wire.open()
        self._lanes.begin()
        await self._membership.join(store_id)
        await self._make_sure()
        await self._membership.stay()

    async def _make_sure(self) -> None:
        """Look for a migration once more. A migration that began since `admit` may not have seen this process as a
        member; but then this process sees the migration now, and withdraws."""
        try:
            await check_free(self._endpoint)
        except UNREACHABLE:
            return  # the steps of this process will wait for the server, too
        except StoreUnavailable:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """Finish the steps on their way and leave, so that the others need not wait for the lease."""
        if self._wire.is_open:
            self._entering.enter()
            await self._wire.drain()
            await self._membership.leave()
        await self._background.aclose()
        await self._wire.aclose()

    # -- receiving --------------------------------------------------------------------------

    async def accept(self, arrivals: Sequence[Arrival], *, cap: int) -> list[Receipt]:
        batches = by_partition(arrivals, lambda each: partition_of_key(each.key))
        jobs = [self._accept(partition, batch, cap) for partition, batch in batches.items()]
        answers = dict(zip(batches, map(iter, await self._wire.results(jobs)), strict=True))
        return [_receipt(each, *next(answers[partition_of_key(each.key)])) for each in arrivals]

    def _accept(self, partition: int, batch: Sequence[Arrival], cap: int) -> Job:
        accepting = self._lanes.accepting(len(batch))

        def done(reply: list[Any]) -> None:
            for arrival, (status, ahead, item_id, _, fence, *begins) in zip(batch, reply, strict=True):
                if fence:
                    self._lanes.accepted(accepting, _item(arrival, item_id), fence, *begins)
                elif status == "new" and not ahead and not arrival.bypass:
                    self._lanes.ready.add(partition, int(item_id))

        flat = [text for each in batch for text in (*arguments.arrival(each), "1" if each.bypass else "0")]
        abandoned = partial(self._accepted_for_nobody, batch)
        start = (str(cap), str(accepting.room), str(len(batch)))
        job = self._wire.send(partition, "accept", *start, *flat, done=done, abandoned=abandoned)
        job.over.append(lambda _: self._lanes.ready.redeem(accepting.room))
        return job

    def _accepted_for_nobody(self, batch: Sequence[Arrival], reply: list[Any]) -> None:
        """The caller will not see the receipts: its bypass items are for the next caller of `claim_bypassed`."""
        receipts = (_receipt(arrival, *each) for arrival, each in zip(batch, reply, strict=True))
        items = [receipt.item for receipt in receipts if receipt.item is not None]
        self._process.bypassed += items
        if items:
            self._process.tell_left()

    async def refuse(self, arrival: Arrival, notice: Outbound) -> tuple[Outbound, ...]:
        parts = [*arguments.arrival(arrival), self._now(), *arguments.rows([notice])]
        return await self._outbox.claimed(self._outbox.send(partition_of_key(arrival.key), "refuse", *parts))

    async def amend(self, arrival: Arrival) -> bool:
        lane, platform, event, inbound, *_ = arguments.arrival(arrival)
        partition = partition_of_key(arrival.key)
        return await self._wire.run(partition, "amend", lane, platform, event, inbound, read=_whether)

    # -- lanes ------------------------------------------------------------------------------

    async def claim_next(self, worker: str) -> Claim:
        return await self._lanes.claim_next(worker)

    async def claim_bypassed(self, worker: str) -> list[InboxItem]:
        jobs = [self._wire.send(partition, "claim_bypassed") for partition in EVERYWHERE]
        items = [item_from(each) for reply in await self._wire.results(jobs) for each in reply]
        unseen, self._process.bypassed = self._process.bypassed, []
        return sorted([*items, *unseen], key=lambda item: int(item.id))

    async def release(self, lease: Lease, *, counted: bool = False) -> None:
        parts = [*of_lease(lease), *flags(counted)]
        try:
            await self._wire.run(
                partition_of_key(lease.key), "release", *parts, done=partial(self._lanes.released, lease)
            )
        except SessionConflict:
            self._lanes.ended(lease)
            raise

    async def running(self, key: SessionKey) -> InboxItem | None:
        (item,) = await self._wire.look(partition_of_key(key), "running", str(key))
        return item_from(item) if item else None

    async def waiting(self, key: SessionKey, limit: int) -> list[InboxItem]:
        return [
            item_from(each) for each in await self._wire.look(partition_of_key(key), "waiting", str(key), str(limit))
        ]

    heard = _reads(reading.heard)

    # -- one turn ---------------------------------------------------------------------------

    async def beginning(self, item: InboxItem) -> Beginning:
        (facts,) = await self._wire.look(partition_of_key(item.key), "beginning", item.id, str(item.key))
        return reading.beginning_from(item, self._places, facts)

    async def open_reply(self, lease: Lease, item: InboxItem, reply: Outbound) -> Outbound:
        partition = partition_of_key(lease.key)
        parts = [*of_lease(lease), item.id, reply.session_id or "", *arguments.row(reply)]
        opened = await self._wire.run(partition, "open_reply", *parts, read=_row)
        self._places.note(opened.id, partition)
        return opened

    async def note_streamed(self, outbound_id: str, platform_message_id: str | None) -> None:
        partition = await self._outbox.place_of(outbound_id)
        if partition is not None:
            await self._wire.run(partition, "note_streamed", outbound_id, storable(platform_message_id or ""))

    async def begin_tools(
        self, lease: Lease, ref: SessionRef, item: InboxItem, record: StepRecord, intents: Sequence[ToolIntent]
    ) -> tuple[Message, ...]:
        return await self._step(lease, ref, item, record, "0", intents_json(intents))

    async def record_step(
        self, lease: Lease, ref: SessionRef, item: InboxItem, record: StepRecord
    ) -> tuple[Message, ...]:
        stored = await self._step(lease, ref, item, record, "1", "[]")
        self._lanes.recorded(lease)
        return stored

    async def _step(
        self, lease: Lease, ref: SessionRef, item: InboxItem, record: StepRecord, steps: str, intents: str
    ) -> tuple[Message, ...]:
        def read(reply: list[Any]) -> tuple[int, tuple[Message, ...]]:
            _, position, ids = reply[0]
            return position, arguments.stored(record.messages, ids, record.patch.at)

        entries = await searching.entries_of_long(record.messages)
        parts = [*of_lease(lease), item.id, steps, intents, *arguments.step(ref, lease.key, record)]
        _, messages = await self._wire.run(
            partition_of_key(lease.key),
            "step",
            *parts,
            read=read,
            done=lambda appended: self._appended(lease.key, ref.id, record, entries, *appended),
        )
        return messages

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
        key = lease.key
        entries = await searching.entries_of_long(record.messages) if record else {}
        step = ["0"] if ref is None or record is None else ["1", *arguments.step(ref, key, record)]
        parts = [*of_lease(lease), item.id, outcome, self._now(), *step, *arguments.rows(outbound)]

        def read(reply: list[Any]) -> tuple[TurnEnd, int, tuple[Advance, ...]]:
            appended, following, advances = reply[0], reply[1], advances_from(reply[2])
            messages = arguments.stored(record.messages, appended[2], record.patch.at) if record else ()
            end = TurnEnd(
                messages=messages,
                next=item_from(following) if following else None,
                outbound=rows_to_send(advances),
            )
            return end, appended[1] if appended else 0, advances

        def done(ended: tuple[TurnEnd, int, tuple[Advance, ...]]) -> None:
            end, position, advances = ended
            if ref is not None and record is not None:
                self._appended(key, ref.id, record, entries, position, end.messages)
            self._outbox.noted(advances)
            self._lanes.ended(lease, end.next)

        def abandoned(ended: tuple[TurnEnd, int, tuple[Advance, ...]]) -> None:
            self._outbox.given_back(ended[2])
            if ended[0].next is not None:
                self._lanes.give_back(lease)

        end, _, _ = await self._wire.run(
            partition_of_key(key), "finish", *parts, read=read, done=done, abandoned=abandoned
        )
        return end

    async def finish_bypassed(self, item: InboxItem, outbound: Sequence[Outbound]) -> tuple[Outbound, ...]:
        parts = [item.id, self._now(), *arguments.rows(outbound)]
        return await self._outbox.claimed(self._outbox.send(partition_of_key(item.key), "finish_bypassed", *parts))

    # -- questions to people ----------------------------------------------------------------

    async def ask(self, lease: Lease, approval: Approval, shown: Sequence[Outbound]) -> tuple[Outbound, ...]:
        parts = [*of_lease(lease), approval.item, approval.token, approval_json(approval)]
        parts += [self._now(), *arguments.rows(shown)]
        return await self._outbox.claimed(self._outbox.send(partition_of_key(lease.key), "ask", *parts))

    async def decide(
        self, asked: Approval, verdict: Verdict, by: str | None, at: float, shown: Sequence[Outbound]
    ) -> Decision | None:
        parts = [str(asked.key), asked.token, verdict_json(verdict, by, at), self._now(), *arguments.rows(shown)]

        def read(reply: list[Any]) -> tuple[Decision | None, tuple[Advance, ...]]:
            first, found, advances = reply
            if not found:
                return None, ()
            item, document, decided = found
            approval = approval_from(document, item, decided)
            return Decision(approval=approval, first=bool(first)), advances_from(advances)

        def done(decided: tuple[Decision | None, tuple[Advance, ...]]) -> None:
            self._outbox.noted(decided[1])
            if decided[0] is not None and decided[0].first:
                self._process.tell_decided(asked.key)

        decision, advances = await self._wire.run(
            partition_of_key(asked.key),
            "decide",
            *parts,
            read=read,
            done=done,
            abandoned=lambda decided: self._outbox.given_back(decided[1]),
        )
        return None if decision is None else replace(decision, outbound=rows_to_send(advances))

    async def approvals(self, chat: ChatAddress) -> list[Approval]:
        found = await self._wire.look(partition_of(chat.platform, chat.chat), "approvals", chat_name(chat))
        return list(in_order(approval_from(asked, item, verdict or None) for item, asked, verdict in found))

    def on_decided(self, listener: Callable[[SessionKey], None]) -> None:
        self._process.decided_listeners.append(listener)

    # -- signals ----------------------------------------------------------------------------

    async def signal(self, key: SessionKey, kind: SignalKind, at: float) -> bool:
        def done(left: bool) -> None:
            if left:
                self._process.tell_signal(key, kind)

        return await self._wire.run(
            partition_of_key(key), "signal", str(key), kind, number(at), read=_whether, done=done
        )

    async def signals(self, item: InboxItem) -> tuple[SignalKind, ...]:
        if self._lanes.is_quiet(item) and self._membership.listens:
            return ()
        return await reading.signals(self._wire, item)

    def on_signal(self, listener: Callable[[SessionKey, SignalKind], None]) -> None:
        self._process.signal_listeners.append(listener)

    # -- several processes ------------------------------------------------------------------

    def serve(self, *, runs: Collection[str], sends: Collection[str]) -> None:
        self._process.serve(runs=runs, sends=sends)
        self._caller.runs, self._caller.sends = self._process.runs, self._process.sends
        if self._wire.is_open:
            self._membership.served()

    def on_rows(self, listener: Callable[[], None]) -> None:
        self._process.rows_listeners.append(listener)

    def on_left(self, listener: Callable[[], None]) -> None:
        self._process.left_listeners.append(listener)

    async def hold(self, name: str, holder: str, seconds: float) -> bool:
        parts = [storable(name), storable(holder), str(max(1, int(seconds * 1_000)))]
        return await self._wire.run(partition_of_name(name), "hold", *parts, read=_whether)

    async def let_go(self, name: str, holder: str) -> None:
        await self._wire.run(partition_of_name(name), "let_go", storable(name), storable(holder))

    # -- sessions ---------------------------------------------------------------------------

    async def tip(self, key: SessionKey) -> Session | None:
        partition = partition_of_key(key)
        (fields,) = await self._wire.look(partition, "tip", str(key))
        return self._session(fields, partition) if fields else None

    async def session(self, session_id: str, key: SessionKey | None = None) -> Session:
        asked = self._places.possible(session_id) if key is None else (partition_of_key(key),)
        found = await self._wire.ask_all((each, ("HGETALL", f"session:{session_id}")) for each in asked)
        for where, fields in zip(asked, found, strict=True):
            if fields:
                return self._session(fields, where)
        raise SessionNotFound(f"There is no session {session_id}.")

    def _session(self, fields: list[str], partition: int) -> Session:
        session = session_from(fields)
        self._places.note(session.id, partition)
        return session

    async def transcript(self, session: Session) -> tuple[Message, ...]:
        known = self._process.transcripts.get(session.id, session.rewritten) or ()
        if len(known) < session.message_count:
            known, size = await reading.transcript_from(self._wire, session, known)
            self._process.transcripts.put(session.id, known, session.rewritten, size)
        return known

    async def open_session(self, lease: Lease, opening: Opening) -> Session:
        session, parts = _opening(lease, opening)
        await self._opened(lease, opening, "open_session", *of_lease(lease), *parts)
        return session

    async def import_sessions(self, openings: Sequence[Opening]) -> list[bool]:
        jobs = list(map(self._import, openings))
        # The terms are read while the server stores the messages, behind the terms of those before. What an error
        # leaves without terms gets them from the next process, as after a crash.
        read = asyncio.to_thread(lambda: [searching.entries_of(each.transcript) for each in openings])
        replies, entries = await asyncio.gather(self._wire.results(jobs), read)
        new: dict[SessionKey, list[tuple[Message, Sequence[str] | None]]] = {}
        for opening, (ids, *known), found in zip(openings, replies, entries, strict=True):
            if not known:
                messages = arguments.stored(opening.transcript, ids, opening.session.started_at)
                new.setdefault(opening.session.key, []).extend(_new(opening.transcript, messages, found))
        for key, messages_of_key in new.items():
            searching.index(self._wire, key, messages_of_key)
        return [len(reply) == 1 for reply in replies]

    def _import(self, opening: Opening) -> Job:
        session, (session_id, _, *parts) = arguments.opening(opening)
        return self._wire.send(partition_of_key(session.key), "import_session", str(session.key), session_id, *parts)

    async def end_session(
        self, lease: Lease, ref: SessionRef, reason: EndReason, at: float, opening: Opening | None
    ) -> Session | None:
        start = [*of_lease(lease), ref.id, str(ref.epoch), reason, number(at)]
        if opening is None:
            await self._wire.run(partition_of_key(lease.key), "end_session", *start, "0")
            return None
        session, parts = _opening(lease, opening)
        await self._opened(lease, opening, "end_session", *start, "1", *parts)
        return session

    async def continue_session(
        self, lease: Lease, ref: SessionRef, opening: Opening, snapshot_length: int, compaction: Compaction
    ) -> Session:
        session, parts = _opening(lease, opening)
        # A child starts at or after its parent's end, whatever the clock did in between.
        ended_at = min(compaction.at, session.started_at)
        start = [*of_lease(lease), ref.id, str(ref.epoch), number(ended_at), str(snapshot_length)]
        reply = await self._opened(lease, opening, "continue_session", *start, compaction_json(compaction), *parts)
        return replace(session, message_count=reply[1], transcript_tokens=reply[2])

    async def update_session(self, lease: Lease, ref: SessionRef, **changes: Unpack[SessionChanges]) -> Session:
        check_changes(changes)
        parts = [*of_lease(lease), ref.id, str(ref.epoch), *arguments.changes(changes)]
        return await self._wire.run(
            partition_of_key(lease.key), "update_session", *parts, read=lambda reply: session_from(reply[0])
        )

    async def charge(self, session: Session, calls: Sequence[LedgerEntry]) -> None:
        key = session.key
        await self._wire.run(partition_of_key(key), "charge", str(key), *arguments.calls(calls, session.id, key))

    async def pending_hooks(self, limit: int) -> list[Session]:
        jobs = [self._wire.send(partition, "pending_hooks", str(limit)) for partition in EVERYWHERE]
        owed = [each for reply in await self._wire.results(jobs) for each in reply]
        owed.sort(key=lambda each: float(each[0]))
        return [session_from(fields) for _, fields in owed[:limit]]

    async def hook_done(self, session_id: str) -> None:
        asked = self._places.possible(session_id)
        await self._wire.results([self._wire.send(each, "hook_done", session_id) for each in asked])

    async def claim_due_sessions(self, now: float, limit: int) -> list[Session]:
        found = await self._wire.look_everywhere("due_sessions", number(now), str(limit))
        due = sorted(
            (float(at), partition, session_id)
            for partition, flat in enumerate(found)
            for session_id, at in zip(flat[::2], flat[1::2], strict=True)
        )[:limit]
        times = [number(now), number(now + EXPIRY_CLAIM)]
        jobs = []
        for partition, some in by_partition(due, lambda each: each[1]).items():
            ids = arguments.listed([session_id for _, _, session_id in some])
            jobs.append(self._wire.send(partition, "claim_due", *times, *ids))
        claimed = [session_from(fields) for reply in await self._wire.results(jobs) for fields in reply]
        return sorted(claimed, key=lambda session: session.expires_at or 0.0)

    # -- pins: `pins:<key>` is a document beside the key's sessions --------------------------

    async def pins(self, key: SessionKey) -> Pins:
        document = await self._wire.ask(partition_of_key(key), "GET", f"pins:{key}")
        return pins_from(document) if document else Pins()

    async def set_pins(self, lease: Lease, pins: Pins, rebuilt: Rebuilt | None) -> Session | None:
        parts = ["0"]
        if rebuilt is not None:
            ref, prompt = rebuilt.ref, storable(rebuilt.system_prompt)
            parts = ["1", ref.id, str(ref.epoch), prompt, str(rebuilt.last_prompt_tokens)]

        def read(reply: list[Any]) -> Session | None:
            return session_from(reply[0]) if reply[0] else None

        partition = partition_of_key(lease.key)
        return await self._wire.run(partition, "set_pins", *of_lease(lease), pins_json(pins), *parts, read=read)

    # -- forgetting -------------------------------------------------------------------------

    async def forget(self, lease: Lease | None, deed: Forgetting) -> Mapping[str, int]:
        counts = await forgetting.forget(self._wire, self._endpoint, lease, deed)
        self._background.start(forgetting.forget_history(self._endpoint, self._process.clock), name="forget history")
        for session in deed.sessions:
            self._process.transcripts.drop(session.session_id)
        return counts

    async def erase(self, lease: Lease | None, deed: Erasure) -> Mapping[str, int]:
        ended = await self._wire.ask(partition_of_key(deed.key), "LRANGE", f"sessions:{deed.key}", "0", "-1")
        for folder in await self.folders(deed.key) if deed.before is None else ():
            await self.set_notes(folder, dict.fromkeys(await self.notes(folder)))
        counts = await forgetting.erase(self._wire, self._endpoint, lease, deed, self._now())
        for session_id in ended:
            self._process.transcripts.drop(session_id)
        self._background.start(forgetting.forget_history(self._endpoint, self._process.clock), name="forget history")
        return counts

    async def talks(self, platform: str | None, person: str | None) -> list[Talk]:
        found = await forgetting.talks(self._wire, self._endpoint, platform, person)
        return [Talk(key=SessionKey.parse(key), chat_type=chat_type_of(found[key])) for key in sorted(found)]

    forgotten = _reads(forgetting.counted)

    # -- memory -----------------------------------------------------------------------------

    memory = _reads(read_memory)

    async def change_memory(self, change: MemoryChange) -> bool:
        parts = [str(change.scope), str(change.version), str(change.last_number), *arguments.listed(change.gone)]
        parts += [str(len(change.kept)), *(text for each in change.kept for text in fact_texts(each))]
        return await self._wire.run(partition_of_key(change.scope), "change_memory", *parts, read=_whether)

    async def note_flushed(self, session: Session, messages: int) -> None:
        await self._wire.run(partition_of_key(session.key), "note_flushed", session.id, str(messages))

    async def note_title(self, session: Session, title: str) -> None:
        parts = [session.id, str(session.rewritten), storable(title)]
        await self._wire.run(partition_of_key(session.key), "note_title", *parts)

    # -- reminders --------------------------------------------------------------------------

    async def add_reminder(self, reminder: Reminder, most: int, in_chat: int) -> Reminder | None:
        key = reminder.key
        parts = [reminder.id, str(key), chat_name(key.address), storable(reminder.source.user), str(most), str(in_chat)]
        facts = arguments.reminder(reminder)
        return await self._wire.run(partition_of_key(key), "add_reminder", *parts, *facts, read=_reminder)

    async def reminder(self, chat: ChatAddress, reminder_id: str) -> Reminder | None:
        name, partition = f"reminder:{storable(reminder_id)}", partition_of(chat.platform, chat.chat)
        *facts, where = await self._wire.ask(partition, "HMGET", name, "reminder", "number", "parked", "chat")
        return _reminder([facts]) if where == chat_name(chat) else None

    async def reminders(self, key: SessionKey, over: int) -> list[Reminder]:
        found = await self._wire.look(partition_of_key(key), "reminders", str(key), chat_name(key.address), str(over))
        return [each for facts in found if (each := _reminder([facts])) is not None]

    async def has_reminders(self, key: SessionKey) -> bool:
        return bool(await self._wire.ask(partition_of_key(key), "EXISTS", f"reminders:{key}"))

    async def due_reminders(self, now: float, limit: int) -> list[Reminder]:
        found = await self._wire.look_everywhere("due_reminders", number(now), str(limit))
        due = sorted((each for some in found for each in some), key=lambda each: float(each[0]))[:limit]
        return [each for _, *facts in due if (each := _reminder([facts])) is not None]

    async def change_reminder(
        self,
        reminder: Reminder,
        shown: Sequence[Outbound] = (),
        arrival: Arrival | None = None,
        also: Sequence[Reminder] = (),
    ) -> Changed:
        partition = partition_of_key(reminder.key)
        item = ["1", *arguments.arrival(arrival)[:5]] if arrival else ["0"]

        def read(reply: list[Any]) -> tuple[bool, str, tuple[Advance, ...]]:
            return bool(reply[0]), reply[1], advances_from(reply[2])

        def done(changed: tuple[bool, str, tuple[Advance, ...]]) -> None:
            _, item_id, advances = changed
            if item_id:
                self._lanes.ready.add(partition, int(item_id))
            self._outbox.noted(advances)

        first, _, advances = await self._wire.run(
            partition,
            "change_reminder",
            *(self._now(), *arguments.reminders([reminder, *also]), *item, *arguments.rows(shown)),
            read=read,
            done=done,
            abandoned=lambda changed: self._outbox.given_back(changed[2]),
        )
        return Changed(first=first, outbound=rows_to_send(advances))

    rows = _reads(reading.rows_of_chat)

    # -- files ------------------------------------------------------------------------------

    async def keep_file(self, key: SessionKey, file: KeptFile, content: bytes) -> KeptFile:
        partition, lane = partition_of_key(key), str(key)
        for place, piece in enumerate(pieces(content)):
            await self._wire.run(partition, "keep_piece", lane, file.digest, str(place), piece)
        parts = [lane, storable(file.ref), number(file.at), file_json(file)]
        return await self._wire.run(partition, "keep_file", *parts, read=lambda reply: file_from(reply[0]))

    async def kept_file(self, key: SessionKey, ref: str) -> KeptFile | None:
        document = await self._wire.ask(partition_of_key(key), "HGET", f"files:{key}", storable(ref))
        return file_from(document) if document else None

    async def kept_files(self, key: SessionKey, limit: int) -> list[KeptFile]:
        partition = partition_of_key(key)
        refs = await self._wire.ask(partition, "ZRANGE", f"filed:{key}", "0", str(limit - 1), "REV")
        documents = await self._wire.ask(partition, "HMGET", f"files:{key}", *refs) if refs else []
        return [file_from(document) for document in documents if document]

    async def file_content(self, key: SessionKey, digest: str) -> bytes | None:
        return await content_of(self._wire, partition_of_key(key), str(key), digest)

    # -- delivery ---------------------------------------------------------------------------

    async def emit(self, outbound: Sequence[Outbound]) -> tuple[Outbound, ...]:
        rows = by_partition(outbound, lambda row: partition_of(row.to.platform, row.to.chat))
        jobs = [
            self._outbox.send(partition, "emit", self._now(), *arguments.rows(some)) for partition, some in rows.items()
        ]
        claimed = {row.id: row for row in await self._outbox.claimed(*jobs)}
        first = list(dict.fromkeys(row.id for row in outbound if row.id in claimed))
        return tuple(claimed.pop(row_id) for row_id in first) + tuple(claimed.values())

    async def claim_outbound(self, limit: int) -> list[Outbound]:
        return await self._outbox.claim(limit)

    def owns(self, row: Outbound) -> bool:
        return self._membership.is_sure(partition_of(row.to.platform, row.to.chat))

    async def mark_sent(self, outbound_id: str, platform_message_id: str | None) -> Outbound | None:
        return await self._outbox.mark(outbound_id, "sent", storable(platform_message_id or ""))

    async def mark_retry(
        self, outbound_id: str, seconds: float, *, ambiguous: bool, anew: bool = False, counted: bool = True
    ) -> None:
        due = number(self._process.time.now() + seconds)
        await self._outbox.mark(outbound_id, "retry", due, *flags(ambiguous, anew, counted))

    async def mark_refused(
        self,
        outbound_id: str,
        reason: str,
        instead: Outbound | None = None,
        *,
        gone: bool = False,
        keeps: bool = False,
    ) -> Outbound | None:
        row = ["0"] if instead is None else ["1", *arguments.row(instead)]
        return await self._outbox.mark(outbound_id, "refused", storable(reason), *flags(gone, keeps), *row)

    async def next_due(self) -> float | None:
        due = self._process.agenda.next_due()
        return None if due is None else max(0.0, due - self._process.time.now())

    # -- chats in which nothing can be shown any more ---------------------------------------

    async def close_chat(self, to: ChatAddress, reason: str) -> None:
        parts = [chat_name(to), storable(reason), self._now()]
        await self._outbox.claimed(self._outbox.send(partition_of(to.platform, to.chat), "close_chat", *parts))

    async def open_chat(self, to: ChatAddress) -> bool:
        return await self._wire.run(partition_of(to.platform, to.chat), "open_chat", chat_name(to), read=_whether)

    async def has_unsent(self, to: ChatAddress) -> bool:
        found: int = await self._wire.ask(partition_of(to.platform, to.chat), "ZCARD", f"out:{chat_name(to)}")
        return found > 0

    async def unasked(self, to: ChatAddress) -> int:
        rows = f"out:{chat_name(to)}"
        found: int = await self._wire.ask(partition_of(to.platform, to.chat), "ZCOUNT", rows, f"({MOST_PLACE}", "+inf")
        return found

    async def closed(self, to: ChatAddress) -> str | None:
        return await self._of_chat("closed", to.platform, to.chat)

    # -- chats that their platform calls by another name than before ------------------------

    async def rename_chat(self, platform: str, before: str, after: str) -> None:
        first = await self._of_chat("first_names", platform, before) or before
        if first == after:
            return
        # A caller that is cut short repeats the step; each of these changes may be made twice.
        await self._rename(platform, after, first=first)
        for name in dict.fromkeys((before, first)):
            await self._rename(platform, name, later=after)

    async def first_name(self, platform: str, chat: str, event_id: str) -> str:
        first = await self._of_chat("first_names", platform, chat)
        if first is None:
            return chat
        known = await self._wire.ask(partition_of(platform, chat), "HEXISTS", f"events:{platform}", storable(event_id))
        return chat if known else first

    async def later_name(self, platform: str, chat: str) -> str | None:
        return await self._of_chat("later_names", platform, chat)

    async def _of_chat(self, what: str, platform: str, chat: str) -> str | None:
        name = chat_name(ChatAddress(platform=platform, chat=chat))
        found: str | None = await self._wire.ask(partition_of(platform, chat), "HGET", what, name)
        return found

    async def _rename(self, platform: str, chat: str, *, first: str = "", later: str = "") -> None:
        name = chat_name(ChatAddress(platform=platform, chat=chat))
        parts = [name, storable(first), storable(later)]
        await self._wire.run(partition_of(platform, chat), "rename_chat", *parts)

    # -- what may be spent, and how fast may be sent ----------------------------------------

    async def reserve(self, reservation: Reservation) -> CapReached | None:
        return await self._spending.reserve(reservation)

    async def settle(self, reservation: Reservation, cost: int) -> None:
        await self._spending.settle(reservation, cost, reservation.caps)

    async def spent(self, accounts: Sequence[str]) -> list[int]:
        return await self._spending.spent(accounts)

    async def take(self, account: str, ticket: str, rates: Sequence[Rate]) -> float:
        each = [part for rate in rates for part in (storable(rate.bucket), str(rate.most), _milliseconds(rate.seconds))]
        parts = [storable(account), storable(ticket), _milliseconds(GRACE), str(len(rates)), *each]
        reply: list[Any] = await self._wire.run(partition_of_name(account), "take", *parts)
        return int(reply[0]) / 1_000

    async def hold_off(self, account: str, bucket: str, seconds: float) -> None:
        parts = [storable(account), storable(bucket), _milliseconds(seconds)]
        await self._wire.run(partition_of_name(account), "hold_off", *parts)

    async def resting(self, account: str, bucket: str) -> float:
        name = f"silent:{storable(account)}:{storable(bucket)}"
        return max(0, int(await self._wire.ask(partition_of_name(account), "PTTL", name))) / 1_000

    # -- notes ------------------------------------------------------------------------------

    async def notes(self, folder: str) -> dict[str, str]:
        return pairs(await self._wire.ask(partition_of_name(folder), "HGETALL", folder_at(folder)))

    async def set_notes(
        self, folder: str, changes: Mapping[str, str | None], still: Mapping[str, str | None] | None = None
    ) -> bool:
        parts = [storable(folder)]
        for some in (still or {}, changes):
            parts.append(str(len(some)))
            for name, text in some.items():
                parts += [storable(name), *flags(text is not None), storable(text or "")]
        return await self._wire.run(partition_of_name(folder), "set_notes", *parts, read=_whether)

    async def folders(self, key: SessionKey) -> list[str]:
        named = {name.split(":", 2)[2] async for name in keys(self._endpoint, f"{{p??}}:notes:* {key}")}
        return [folder for folder in named if folder.partition(" ")[2] == str(key)]

    # -- reading for people -----------------------------------------------------------------

    sessions = _reads(reading.sessions)
    conversations = _reads(reading.conversations)

    async def compactions(self, session_id: str) -> list[Compaction]:
        asked = self._places.possible(session_id)
        found = await self._wire.ask_all((each, ("LRANGE", f"compactions:{session_id}", "0", "-1")) for each in asked)
        return [compaction_from(text) for texts in found for text in texts]

    async def search(
        self, words: str, key: SessionKey | None, limit: int, meaning: Meaning | None = None
    ) -> list[Passage]:
        now = self._process.time.now()
        return await searching.search(self._wire, self._old_search, words, key, limit, now, meaning)

    unembedded = _reads(searching.unembedded)

    async def keep_vectors(self, model: str, key: SessionKey, kept: Mapping[str, Vector]) -> None:
        await vectors.keep(self._wire, partition_of_key(key), searching.owner_of(str(key)), model, kept)

    holding = _reads(searching.holding)
    around = _reads(searching.around)

    async def usage(
        self, since: float, by: UsageBy, session_id: str | None = None, key: SessionKey | None = None
    ) -> list[UsageTotal]:
        if session_id is not None:
            try:
                owner = (await self.session(session_id)).key
            except SessionNotFound:
                return []
            if key not in (None, owner):
                return []
            key = owner  # a session's entries are found through its key
        if key is None and by in OF_DAYS:
            return await self._days.usage(self._wire, since, by, self._process.time.now())
        where: Iterable[int] = EVERYWHERE if key is None else (partition_of_key(key),)
        return await reading.usage(self._wire, where, since, by, session_id, key)

    calls = _reads(reading.calls)
    named = _reads(reading.named)

    async def status(self, platforms: Collection[str] | None = None) -> StoreStatus:
        return await reading.status(self._wire, Platforms(platforms), self._old_search)

    backlog = _reads(reading.backlog)
    dead = _reads(reading.dead)

    async def bury(self, item: InboxItem) -> bool:
        return await self._wire.run(partition_of_key(item.key), "bury", item.id, read=_whether)

    outbox = _reads(reading.rows)

    # -- what the process remembers ---------------------------------------------------------

    def _now(self) -> str:
        return number(self._process.time.now())

    def _appended(
        self,
        key: SessionKey,
        session_id: str,
        record: StepRecord,
        entries: Mapping[int, Sequence[str]],
        position: int,
        messages: tuple[Message, ...],
    ) -> None:
        self._process.transcripts.append(session_id, position, messages)
        self._entering.add(key, _new(record.messages, messages, entries))

    async def _opened(self, lease: Lease, opening: Opening, script: str, *parts: str) -> list[Any]:
        """Run a script that opens a session and gives the ids of its messages first. A continuation
        that took over late messages is not cached: its first reader loads it."""
        session, partition = opening.session, partition_of_key(lease.key)

        def done(reply: list[Any]) -> None:
            messages = arguments.stored(opening.transcript, reply[0], session.started_at)
            self._places.note(session.id, partition)
            if len(reply) == 1 or reply[1] == len(messages):
                self._process.transcripts.put(session.id, messages)
            self._entering.add(lease.key, _new(opening.transcript, messages, {}))

        return await self._wire.run(partition, script, *parts, done=done)


def _new(
    given: Sequence[Message], stored: Sequence[Message], entries: Mapping[int, Sequence[str]]
) -> list[tuple[Message, Sequence[str] | None]]:
    """The messages that were not stored before, with their entries where these are known."""
    pairs = enumerate(zip(stored, given, strict=True))
    return [(message, entries.get(place)) for place, (message, before) in pairs if message is not before]


def _row(reply: list[Any]) -> Outbound:
    return row_from(reply[0])


def _reminder(reply: list[Any]) -> Reminder | None:
    document, number_, parked = reply[0] or ("", "", "")
    return reminder_from(document, number_, parked=parked == "1") if document else None


def _whether(reply: list[Any]) -> bool:
    return bool(reply[0])


def _milliseconds(seconds: float) -> str:
    return str(max(1, ceil(seconds * 1_000)))


def _opening(lease: Lease, opening: Opening) -> tuple[Session, list[str]]:
    if opening.session.key != lease.key:
        raise SessionConflict(f"Session {opening.session.id} does not belong to the lane that writes.")
    return arguments.opening(opening)


def _item(arrival: Arrival, item_id: str) -> InboxItem:
    return InboxItem(id=item_id, key=arrival.key, inbound=arrival.inbound, accepted_at=arrival.at, attempts=1)


def _receipt(arrival: Arrival, status: Any, ahead: int, item_id: str, reopened: int, *_: Any) -> Receipt:
    item = _item(arrival, item_id) if status == "new" and arrival.bypass else None
    return Receipt(event_id=arrival.inbound.event_id, status=status, waiting=ahead, item=item, reopened=bool(reopened))
