"""`RedisStore`: the port on a Redis server or cluster. What a step does is in `scripts/`; here is
what each takes, and what this process remembers when it is done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

from gateway.domain.chat import Outbound, SessionKey
from gateway.domain.message import Message
from gateway.domain.session import Compaction, EndReason, Session, SessionRef
from gateway.domain.usage import LedgerEntry
from gateway.runtime.errors import SessionConflict, StoreError, StoreUnavailable
from gateway.store.records import (
    EXPIRY_CLAIM,
    SUSPECT_ATTEMPTS,
    Arrival,
    Claim,
    InboxItem,
    ItemOutcome,
    Lease,
    Opening,
    Receipt,
    SessionChanges,
    SignalKind,
    StepRecord,
    ToolIntent,
    TurnEnd,
    check_changes,
)
from gateway.store.redis import arguments, searching
from gateway.store.redis.codec import compaction_json, number, row_from, session_from
from gateway.store.redis.delivering import Advance, advances_from, rows_to_send
from gateway.store.redis.pairing import GuestStore
from gateway.store.redis.partitions import partition_of_key, partition_of_name
from gateway.store.redis.reading import EVERYWHERE
from gateway.store.shared.documents import intents_json, item_from, storable


class RedisStore(GuestStore):
    """Everything in the Redis database at `url`, shared with every other process that uses it.

    `lease_seconds`: how long this process may be silent before the others take over what it holds;
    also how long it holds on to nothing after a crash. `timeout`: how long the server may take to
    answer. `patience`: how long a step that was not sent waits for a server that is away, before it
    fails with StoreUnavailable; one that may have been done waits for its answer. With `waits`, `open`
    waits for a server that cannot be reached, and `told` is given a sentence about that.
    """

    # -- receiving --------------------------------------------------------------------------

    async def accept(self, arrivals: Sequence[Arrival], *, cap: int) -> list[Receipt]:
        places = [partition_of_key(arrival.key) for arrival in arrivals]
        partitions = list(dict.fromkeys(places))
        jobs = []
        for partition in partitions:
            batch = [arrival for arrival, place in zip(arrivals, places, strict=True) if place == partition]
            flat = [text for each in batch for text in (*arguments.arrival(each), "1" if each.bypass else "0")]

            def done(reply: list[Any], where: int = partition) -> None:
                numbers = [int(item_id) for status, _, item_id in reply if status == "new"]
                if numbers:
                    self._ready.add(where, min(numbers))

            parts = [str(cap), str(len(batch)), *flat]
            abandoned = partial(self._accepted_for_nobody, batch)
            jobs.append(self._wire.send(partition, "accept", *parts, done=done, abandoned=abandoned))
        if not jobs:
            return []
        answers = dict(zip(partitions, map(iter, await self._wire.results(jobs)), strict=True))
        return [_receipt(arrival, *next(answers[place])) for arrival, place in zip(arrivals, places, strict=True)]

    def _accepted_for_nobody(self, batch: Sequence[Arrival], reply: list[Any]) -> None:
        """The caller will not see its receipts: bypass items are offered to whoever asks next."""
        receipts = (_receipt(arrival, *each) for arrival, each in zip(batch, reply, strict=True))
        items = [receipt.item for receipt in receipts if receipt.item is not None]
        self._bypassed += items
        if items:
            self._tell_left()

    async def refuse(self, arrival: Arrival, notice: Outbound) -> tuple[Outbound, ...]:
        partition = partition_of_key(arrival.key)
        parts = [*arguments.arrival(arrival), number(self._time.now()), *arguments.rows([notice])]
        return await self._claimed([self._send_rows(partition, "refuse", *parts)])

    # -- lanes ------------------------------------------------------------------------------

    async def claim_next(self, worker: str) -> Claim:
        while True:
            partition, number_ = await self._ready.next()
            try:
                claim = await self._claim(partition, worker)
            except StoreUnavailable:
                self._ready.add(partition, number_)
                raise
            if claim is not None:
                return claim

    async def _claim(self, partition: int, worker: str) -> Claim | None:
        suspects = self._ready.take_suspect()

        def read(reply: list[Any]) -> tuple[Claim | None, str, str]:
            fence, facts, following, suspect = reply
            if not facts:
                return None, following, suspect
            item = item_from(facts)
            claim = Claim(lease=Lease(key=item.key, worker=worker, fence=int(fence)), item=item)
            return claim, following, suspect

        def done(found: tuple[Claim | None, str, str]) -> None:
            claim, following, suspect = found
            if claim is not None:
                self._held[claim.lease.key] = claim
            if suspects and (claim is None or claim.item.attempts <= SUSPECT_ATTEMPTS):
                self._ready.suspect_ended()
            if following:
                self._ready.add(partition, int(following))
            if suspect and (claim is not None or not suspects):
                self._ready.add_suspect(partition, int(suspect))

        def abandoned(found: tuple[Claim | None, str, str]) -> None:
            if found[0] is not None:
                self._submit_release(found[0].lease)

        try:
            claim, _, _ = await self._wire.run(
                partition, "claim", "1" if suspects else "0", read=read, done=done, abandoned=abandoned
            )
        except StoreError:
            if suspects:
                self._ready.suspect_ended()
            raise
        return claim

    async def claim_bypassed(self, worker: str) -> list[InboxItem]:
        jobs = [self._wire.send(partition, "claim_bypassed") for partition in EVERYWHERE]
        items = [item_from(each) for reply in await self._wire.results(jobs) for each in reply]
        unseen, self._bypassed = self._bypassed, []
        items += unseen
        return sorted(items, key=lambda item: int(item.id))

    async def release(self, lease: Lease, *, counted: bool = False) -> None:
        parts = [*_lease(lease), "1" if counted else "0"]
        try:
            await self._wire.run(
                partition_of_key(lease.key), "release", *parts, done=lambda reply: self._released(lease, reply)
            )
        except SessionConflict:
            self._let_go(lease)
            raise

    def _submit_release(self, lease: Lease) -> None:
        """Give back a lane whose claimer is gone."""
        self._wire.submit(
            partition_of_key(lease.key), "release", *_lease(lease), "0", done=lambda reply: self._released(lease, reply)
        )

    def _released(self, lease: Lease, reply: list[Any]) -> None:
        self._ready.add(partition_of_key(lease.key), int(reply[0]))
        self._let_go(lease)

    def _let_go(self, lease: Lease, following: InboxItem | None = None) -> None:
        """This process does not run the lane's item any more, but the `following` one, if there is one."""
        held = self._held.get(lease.key)
        if held is None or held.lease.fence != lease.fence:
            return
        del self._held[lease.key]
        if held.item.attempts > SUSPECT_ATTEMPTS:
            self._ready.suspect_ended()
        if following is not None:
            self._held[lease.key] = replace(held, item=following)

    # -- one turn ---------------------------------------------------------------------------

    async def open_reply(self, lease: Lease, item: InboxItem, reply: Outbound) -> Outbound:
        partition = partition_of_key(lease.key)
        parts = [*_lease(lease), item.id, reply.session_id or "", *arguments.row(reply)]

        def read(answer: list[Any]) -> Outbound:
            return row_from(answer[0])

        opened = await self._wire.run(partition, "open_reply", *parts, read=read)
        self._places.note(opened.id, partition)
        return opened

    async def begin_tools(
        self, lease: Lease, ref: SessionRef, item: InboxItem, record: StepRecord, intents: Sequence[ToolIntent]
    ) -> tuple[Message, ...]:
        return await self._step(lease, ref, item, record, "0", intents_json(intents))

    async def record_step(
        self, lease: Lease, ref: SessionRef, item: InboxItem, record: StepRecord
    ) -> tuple[Message, ...]:
        return await self._step(lease, ref, item, record, "1", "[]")

    async def _step(
        self, lease: Lease, ref: SessionRef, item: InboxItem, record: StepRecord, steps: str, intents: str
    ) -> tuple[Message, ...]:
        partition = partition_of_key(lease.key)

        def read(reply: list[Any]) -> tuple[int, tuple[Message, ...]]:
            _, position, ids = reply[0]
            return position, arguments.stored(record.messages, ids, record.patch.at)

        _, messages = await self._wire.run(
            partition,
            "step",
            *_lease(lease),
            item.id,
            steps,
            intents,
            *arguments.step(ref, lease.key, record),
            read=read,
            done=lambda appended: self._appended(lease.key, ref.id, record, *appended),
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
        key, partition = lease.key, partition_of_key(lease.key)
        step = ["0"] if ref is None or record is None else ["1", *arguments.step(ref, key, record)]
        parts = [*_lease(lease), item.id, outcome, number(self._time.now()), *step, *arguments.rows(outbound)]

        def read(reply: list[Any]) -> tuple[TurnEnd, int, tuple[Advance, ...]]:
            appended, following, advances = reply[0], reply[1], advances_from(partition, reply[2])
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
                self._appended(key, ref.id, record, position, end.messages)
            self._noted(advances)
            self._let_go(lease, end.next)

        def abandoned(ended: tuple[TurnEnd, int, tuple[Advance, ...]]) -> None:
            self._given_back(ended[2])
            if ended[0].next is not None:
                self._submit_release(lease)

        end, _, _ = await self._wire.run(partition, "finish", *parts, read=read, done=done, abandoned=abandoned)
        return end

    async def finish_bypassed(self, item: InboxItem, outbound: Sequence[Outbound]) -> tuple[Outbound, ...]:
        partition = partition_of_key(item.key)
        parts = [item.id, number(self._time.now()), *arguments.rows(outbound)]
        return await self._claimed([self._send_rows(partition, "finish_bypassed", *parts)])

    def _appended(
        self, key: SessionKey, session_id: str, record: StepRecord, position: int, messages: tuple[Message, ...]
    ) -> None:
        self._cache.append(session_id, position, messages)
        new = [message for message, given in zip(messages, record.messages, strict=True) if message is not given]
        searching.index(self._wire, partition_of_key(key), key, new)

    # -- signals ----------------------------------------------------------------------------

    async def signal(self, key: SessionKey, kind: SignalKind, at: float) -> bool:
        def done(reply: list[Any]) -> None:
            for listener in self._listeners if reply[0] else ():
                listener(key, kind)

        reply: list[Any] = await self._wire.run(partition_of_key(key), "signal", str(key), kind, number(at), done=done)
        return bool(reply[0])

    def on_signal(self, listener: Callable[[SessionKey, SignalKind], None]) -> None:
        self._listeners.append(listener)

    # -- sessions ---------------------------------------------------------------------------

    async def open_session(self, lease: Lease, opening: Opening) -> Session:
        session, parts = _opening(lease, opening)
        await self._opened(lease, opening, "open_session", *_lease(lease), *parts)
        return session

    async def end_session(
        self, lease: Lease, ref: SessionRef, reason: EndReason, at: float, opening: Opening | None
    ) -> Session | None:
        start = [*_lease(lease), ref.id, str(ref.epoch), reason, number(at)]
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
        start = [*_lease(lease), ref.id, str(ref.epoch), number(ended_at), str(snapshot_length)]
        reply = await self._opened(lease, opening, "continue_session", *start, compaction_json(compaction), *parts)
        return replace(session, message_count=reply[1], transcript_tokens=reply[2])

    async def _opened(self, lease: Lease, opening: Opening, script: str, *parts: str) -> list[Any]:
        """Run a script that opens a session and gives the ids of its messages first. A continuation
        that took over late messages is not cached: its first reader loads it."""
        key, session = lease.key, opening.session

        def done(reply: list[Any]) -> None:
            messages = arguments.stored(opening.transcript, reply[0], session.started_at)
            self._places.note(session.id, partition_of_key(key))
            if len(reply) == 1 or reply[1] == len(messages):
                self._cache.put(session.id, messages)
            new = [message for message, given in zip(messages, opening.transcript, strict=True) if message is not given]
            searching.index(self._wire, partition_of_key(key), key, new)

        return await self._wire.run(partition_of_key(key), script, *parts, done=done)

    async def update_session(self, lease: Lease, ref: SessionRef, **changes: Unpack[SessionChanges]) -> Session:
        check_changes(changes)
        parts = [*_lease(lease), ref.id, str(ref.epoch), *arguments.changes(changes)]

        def read(reply: list[Any]) -> Session:
            return session_from(reply[0])

        return await self._wire.run(partition_of_key(lease.key), "update_session", *parts, read=read)

    async def charge(self, session: Session, calls: Sequence[LedgerEntry]) -> None:
        key = session.key
        await self._wire.run(partition_of_key(key), "charge", str(key), *arguments.calls(calls, session.id, key))

    async def pending_hooks(self, limit: int) -> list[Session]:
        jobs = [self._wire.send(partition, "pending_hooks", str(limit)) for partition in EVERYWHERE]
        owed = [each for reply in await self._wire.results(jobs) for each in reply]
        owed.sort(key=lambda each: float(each[0]))
        return [session_from(fields) for _, fields in owed[:limit]]

    async def hook_done(self, session_id: str) -> None:
        partition = self._places.get(session_id)
        asked = EVERYWHERE if partition is None else (partition,)
        await self._wire.results([self._wire.send(each, "hook_done", session_id) for each in asked])

    async def claim_due_sessions(self, now: float, limit: int) -> list[Session]:
        found = await self._wire.look_everywhere("due_sessions", number(now), str(limit))
        due = sorted(
            (float(at), partition, session_id)
            for partition, flat in enumerate(found)
            for session_id, at in zip(flat[::2], flat[1::2], strict=True)
        )[:limit]
        till = number(now + EXPIRY_CLAIM)
        jobs = []
        for partition in dict.fromkeys(where for _, where, _ in due):
            ids = [session_id for _, where, session_id in due if where == partition]
            jobs.append(self._wire.send(partition, "claim_due", number(now), till, *arguments.listed(ids)))
        if not jobs:
            return []
        claimed = [session_from(fields) for reply in await self._wire.results(jobs) for fields in reply]
        return sorted(claimed, key=lambda session: session.expires_at or 0.0)

    # -- leases -----------------------------------------------------------------------------

    async def hold(self, name: str, holder: str, seconds: float) -> bool:
        life = str(max(1, int(seconds * 1_000)))
        reply: list[Any] = await self._wire.run(partition_of_name(name), "hold", storable(name), storable(holder), life)
        return bool(reply[0])

    async def let_go(self, name: str, holder: str) -> None:
        await self._wire.run(partition_of_name(name), "let_go", storable(name), storable(holder))


def _lease(lease: Lease) -> list[str]:
    """What a step in a lane begins with."""
    return [str(lease.key), str(lease.fence)]


def _opening(lease: Lease, opening: Opening) -> tuple[Session, list[str]]:
    if opening.session.key != lease.key:
        raise SessionConflict(f"Session {opening.session.id} does not belong to the lane that writes.")
    return arguments.opening(opening)


def _receipt(arrival: Arrival, status: Any, ahead: int, item_id: str) -> Receipt:
    item = None
    if status == "new" and arrival.bypass:
        item = InboxItem(id=item_id, key=arrival.key, inbound=arrival.inbound, accepted_at=arrival.at, attempts=1)
    return Receipt(event_id=arrival.inbound.event_id, status=status, waiting=ahead, item=item)
