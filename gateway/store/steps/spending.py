"""What model calls cost: the ledger with its daily sums, the accounts of spend caps, and the silences that platforms
asked for.

A reservation counts as spent at once, so a crash needs no repair: it only leaves the note that could have corrected the
sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from math import ceil
from typing import Final

from gateway.domain.chat import SessionKey
from gateway.domain.usage import LedgerEntry, UsageTotal
from gateway.runtime.structs import replace
from gateway.store.kinds import (
    ACCOUNT,
    CALL,
    CALLS,
    OF_LANE,
    OLD,
    RESERVED,
    RESERVERS,
    REST,
    RESTS,
    SESSION,
    SUM,
    SUMS,
    Account,
    CallRecord,
    Reserved,
    Rest,
    Sum,
)
from gateway.store.records import ACCOUNT_KEPT, OF_DAYS, Call, Cap, CapReached, Reservation, UsageBy
from gateway.store.shared.documents import storable
from gateway.store.space import MANY, Caller, Space

_DAY: Final = 86_400

# -- the ledger ----------------------------------------------------------------------------------------


def enter(space: Space, calls: Iterable[LedgerEntry], session_id: str, key: SessionKey) -> None:
    """Enter model calls into the ledger; those of a helper count under its caller's key."""
    for entry in calls:
        call = CallRecord(
            number=space.number(), platform=key.platform, key=key.caller, session_id=session_id, entry=entry
        )
        enter_call(space, call)


def enter_call(space: Space, call: CallRecord) -> None:
    """Enter a model call, and add it to its day."""
    space.put(CALL, call)
    day = _day_of(call)
    known = space.get(SUM, SUM.key(day)) or day
    space.put(SUM, replace(known, total=known.total + _total("", call.entry)))


def _day_of(call: CallRecord) -> Sum:
    entry = call.entry
    return Sum(day=int(entry.at // _DAY), platform=call.platform, purpose=entry.purpose, model=entry.model)


def _total(label: str, entry: LedgerEntry) -> UsageTotal:
    return UsageTotal(
        label=label, calls=1, usage=entry.usage, cost_usd=entry.cost_usd or 0.0, unpriced_calls=entry.cost_usd is None
    )


def usage(
    space: Space, since: float, by: UsageBy, session_id: str | None = None, key: SessionKey | None = None
) -> list[UsageTotal]:
    """Totals since a moment, most expensive first."""
    totals: dict[str, UsageTotal] = {}

    def add(more: UsageTotal) -> None:
        totals[more.label] = more if more.label not in totals else totals[more.label] + more

    if session_id is None and key is None and by in OF_DAYS:
        whole = ceil(since / _DAY)  # the first day that counts as a whole
        for each in space.first(SUMS, "", MANY, since=whole):
            add(replace(each.total, label=_label_of_sum(each, by)))
        calls = space.first(CALLS, "", MANY, since=since, before=whole * _DAY)
    else:
        calls = _calls_of(space, since, session_id, key)
    for call in calls:
        add(_total(_label(call, by), call.entry))
    return sorted(totals.values(), key=lambda each: (-each.cost_usd, -_weight(each), each.label))


def _weight(total: UsageTotal) -> int:
    return total.usage.input_tokens + total.usage.output_tokens


def _calls_of(space: Space, since: float, session_id: str | None, key: SessionKey | None) -> list[CallRecord]:
    if session_id is None:
        return space.first(CALLS, "", MANY, since=since) if key is None else _of_lane(space, key, since)
    kept = space.get(SESSION, session_id)
    lane = None if kept is None else kept.session.key
    if lane is None or key not in (None, lane):
        return []
    return [call for call in _of_lane(space, lane, since) if call.session_id == session_id]


def _of_lane(space: Space, key: SessionKey, since: float) -> list[CallRecord]:
    return space.first(OF_LANE, key.text, MANY, since=since)


def _label(call: CallRecord, by: UsageBy) -> str:
    if by == "session":
        return call.session_id
    if by == "key":
        return "" if call.key is None else call.key.text
    return _label_of_sum(_day_of(call), by)


def _label_of_sum(each: Sum, by: UsageBy) -> str:
    return day_text(each.day) if by == "day" else str(getattr(each, by))


def day_text(day: int) -> str:
    """A day, counted from 1970, as text."""
    return (date(1970, 1, 1) + timedelta(days=day)).isoformat()


def calls(space: Space, key: SessionKey, since: float, until: float) -> list[Call]:
    """The model calls of a key between two moments, oldest first."""
    found = _of_lane(space, key, since)
    return [Call(session_id=each.session_id, entry=each.entry) for each in found if each.entry.at <= until]


def leave_nobody(space: Space, key: SessionKey, session_id: str | None = None) -> None:
    """From now on the calls of a key, or of one of its sessions, belong to nobody; their sums stay."""
    for call in space.first(OF_LANE, key.text, MANY):
        if session_id in (None, call.session_id):
            space.put(CALL, replace(call, key=None, session_id=""))


# -- spend caps ----------------------------------------------------------------------------------------


def reserve(space: Space, caller: Caller, reservation: Reservation, now: float) -> CapReached | None:
    """Count a reservation under all its caps, or under none."""
    for old in space.first(OLD, "", MANY, before=now):
        space.drop(ACCOUNT, old.name)
    new = [cap for cap in reservation.caps if space.get(RESERVED, _name(reservation, cap)) is None]
    for cap in new:
        spent = _spent(space, cap.account)
        if spent + reservation.amount > cap.limit:
            return CapReached(cap=cap, spent=spent)
    for cap in new:
        known = space.get(ACCOUNT, storable(cap.account))
        if known is None:
            forget_at = None if cap.resets_at is None else cap.resets_at + ACCOUNT_KEPT
            known = Account(name=storable(cap.account), forget_at=forget_at)
        space.put(ACCOUNT, replace(known, spent=known.spent + reservation.amount))
        held = Reserved(
            id=storable(reservation.id), account=storable(cap.account), amount=reservation.amount, owner=caller.owner
        )
        space.put(RESERVED, held)
    return None


def settle(space: Space, reservation: Reservation, cost: int) -> None:
    """Correct each account by the difference, once."""
    for cap in reservation.caps:
        held = space.get(RESERVED, _name(reservation, cap))
        if held is None:
            continue
        space.drop(RESERVED, _name(reservation, cap))
        known = space.get(ACCOUNT, storable(cap.account))
        if known is not None:
            space.put(ACCOUNT, replace(known, spent=known.spent + cost - held.amount))


def spent(space: Space, accounts: Sequence[str]) -> list[int]:
    """Money spent and reserved under each account."""
    return [_spent(space, name) for name in accounts]


def _spent(space: Space, account: str) -> int:
    known = space.get(ACCOUNT, storable(account))
    return 0 if known is None else known.spent


def _name(reservation: Reservation, cap: Cap) -> str:
    return storable(f"{reservation.id} {cap.account}")


def leave(space: Space, owner: str) -> None:
    """A process is dead: what it reserved stays counted."""
    for held in space.first(RESERVERS, owner, MANY):
        space.drop(RESERVED, RESERVED.key(held))


# -- silence -------------------------------------------------------------------------------------------


def rest(space: Space, account: str, bucket: str, until: float, seconds: float) -> None:
    """A platform asked for so many seconds of silence."""
    wanted = Rest(account=storable(account), bucket=storable(bucket), until=until, seconds=seconds)
    known = space.get(REST, REST.key(wanted))
    if known is None or known.until < until:
        space.put(REST, wanted)


def rests(space: Space, now: float) -> list[Rest]:
    """The silences that are not over yet."""
    for over in space.first(RESTS, "", MANY, before=now):
        space.drop(REST, REST.key(over))
    return space.first(RESTS, "", MANY)
