"""A turn: its journal while it runs, the questions that it asks people, and everything at once when it ends."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from gateway.domain.approval import Approval, Verdict
from gateway.domain.chat import ChatAddress, Outbound, OutboundState, SessionKey
from gateway.domain.session import SessionRef
from gateway.runtime.errors import SessionConflict
from gateway.runtime.structs import replace
from gateway.store.kinds import ASKING, ITEM, ROW, TURN, Item, TurnRecord
from gateway.store.records import (
    Arrival,
    Beginning,
    Decision,
    InboxItem,
    ItemOutcome,
    Lease,
    StepRecord,
    ToolIntent,
    TurnJournal,
)
from gateway.store.shared.documents import in_order
from gateway.store.shared.platforms import chat_name
from gateway.store.space import MANY, Caller, Space
from gateway.store.steps import lanes, outbox, reminders, sessions


class Ended(Struct, frozen=True, kw_only=True):
    """The result of ending an item. `next`: the lane's next item, claimed under the same lease. `outbound`: rows to
    send now."""

    appended: sessions.Appended | None
    next: InboxItem | None
    outbound: tuple[Outbound, ...]


# -- its beginning -------------------------------------------------------------------------------------


def accept(space: Space, caller: Caller, arrivals: Sequence[Arrival], cap: int, room: int) -> lanes.Accepted:
    """`lanes.accept`, together with what the turns of the claimed lanes begin with, so that nobody has to look for
    that."""
    accepted = lanes.accept(space, caller, arrivals, cap, room)
    claimed = [replace(each, begins=_beginning(space, None, each.item.key)) for each in accepted.claimed]
    return replace(accepted, claimed=claimed)


def beginning(space: Space, item: InboxItem) -> Beginning:
    """What the turn of an item begins with."""
    return _beginning(space, journal(space, item), item.key)


def _beginning(space: Space, known: TurnJournal | None, key: SessionKey) -> Beginning:
    return Beginning(journal=known, tip=sessions.tip(space, key), reminders=reminders.has_any(space, key))


# -- the journal ---------------------------------------------------------------------------------------


def journal(space: Space, item: InboxItem) -> TurnJournal | None:
    """The progress of an unfinished item; None if nothing was stored."""
    turn = space.get(TURN, int(item.id))
    if turn is None or not turn.began:
        return None
    row = None if turn.reply is None else space.get(ROW, turn.reply)
    reply = None if row is None else row.out
    return TurnJournal(
        session_id=turn.session_id or (reply and reply.session_id) or "",
        steps=turn.steps,
        intents=turn.intents,
        reply=reply,
        approvals=in_order(turn.asked),
    )


def _turn(space: Space, item: Item) -> TurnRecord:
    known = space.get(TURN, item.number)
    return TurnRecord(item=item.number, key=item.key, began=True) if known is None else replace(known, began=True)


def _item(space: Space, number: str) -> Item:
    found = space.get(ITEM, int(number))
    if found is None:
        raise SessionConflict(f"There is no item {number}.")
    return found


def open_reply(space: Space, lease: Lease, item: InboxItem, reply: Outbound) -> Outbound:
    """Store a reply that starts to stream. Asked again for the same item, return the first one."""
    lanes.held(space, lease, item.id)
    turn = _turn(space, _item(space, item.id))
    row = None if turn.reply is None else space.get(ROW, turn.reply)
    if row is not None:
        return row.out
    opened = replace(reply, state=OutboundState.STREAMING)
    if space.get(ROW, reply.id) is None:
        outbox.insert(space, opened)
    space.put(TURN, replace(turn, session_id=turn.session_id or reply.session_id or "", reply=reply.id))
    return opened


def begin_tools(
    space: Space, lease: Lease, ref: SessionRef, item: InboxItem, record: StepRecord, intents: Sequence[ToolIntent]
) -> sessions.Appended:
    """Append the step so far, and note which effects are about to happen."""
    lanes.held(space, lease, item.id)
    running = _item(space, item.id)
    appended = sessions.append(space, ref, running, record)
    space.put(TURN, replace(_turn(space, running), session_id=ref.id, intents=tuple(intents)))
    return appended


def record_step(space: Space, lease: Lease, ref: SessionRef, item: InboxItem, record: StepRecord) -> sessions.Appended:
    """Append a step's messages; its intents are settled, and attempts count from zero."""
    lanes.held(space, lease, item.id)
    running = _item(space, item.id)
    appended = sessions.append(space, ref, running, record)
    turn = _turn(space, running)
    space.put(TURN, replace(turn, session_id=ref.id, steps=turn.steps + 1, intents=()))
    lanes.count_anew(space, running)
    return appended


# -- its end -------------------------------------------------------------------------------------------


def finish(
    space: Space,
    caller: Caller,
    lease: Lease,
    item: InboxItem,
    step: tuple[SessionRef, StepRecord] | None,
    outcome: ItemOutcome,
    rows: Sequence[Outbound],
) -> Ended:
    """End an item with its last step and its rows, and claim the lane's next one."""
    lanes.held(space, lease, item.id)
    running = _item(space, item.id)
    appended = None if step is None else sessions.append(space, step[0], running, step[1])
    turn = lanes.end(space, running, outcome, caller.now)
    reply = None if turn is None else turn.reply
    unsaid = [] if reply is None or reply in [row.id for row in rows] else outbox.drop_streaming(space, reply)
    outbound = outbox.emit(space, caller, rows, also=unsaid)
    following = lanes.go_on(space, lease.key, caller.now)
    return Ended(appended=appended, next=following, outbound=outbound)


def finish_bypassed(space: Space, caller: Caller, item: InboxItem, rows: Sequence[Outbound]) -> tuple[Outbound, ...]:
    """End a bypass item with its answer."""
    lanes.end(space, _item(space, item.id), "answered", caller.now)
    return outbox.emit(space, caller, rows)


# -- questions -----------------------------------------------------------------------------------------


def ask(
    space: Space, caller: Caller, lease: Lease, approval: Approval, shown: Sequence[Outbound]
) -> tuple[Outbound, ...]:
    """Store and show a question, once. If a streaming reply is among the rows, it has ended."""
    lanes.held(space, lease, approval.item)
    turn = _turn(space, _item(space, approval.item))
    if approval.token in [each.token for each in turn.asked]:
        return ()
    reply = None if turn.reply in [row.id for row in shown] else turn.reply
    space.put(TURN, replace(turn, asked=(*turn.asked, approval), reply=reply))
    return outbox.emit(space, caller, shown)


def decide(
    space: Space,
    caller: Caller,
    asked: Approval,
    verdict: Verdict,
    by: str | None,
    at: float,
    shown: Sequence[Outbound],
) -> Decision | None:
    """Decide an open question, and show the verdict. None if the question no longer exists."""
    turn = space.get(TURN, int(asked.item))
    found = None if turn is None else next((each for each in turn.asked if each.token == asked.token), None)
    if turn is None or found is None:
        return None
    if not found.is_open:
        return Decision(approval=found, first=False)
    decided = replace(found, state=verdict, decided_by=by, decided_at=at)
    space.put(TURN, replace(turn, asked=tuple([decided if each is found else each for each in turn.asked])))
    space.tell("decided", asked.key.text)
    return Decision(approval=decided, first=True, outbound=outbox.emit(space, caller, shown))


def approvals(space: Space, chat: ChatAddress) -> list[Approval]:
    """The questions of a chat, in the order in which they were asked."""
    turns = space.first(ASKING, chat_name(chat), MANY)
    return list(in_order([asked for turn in turns for asked in turn.asked]))
