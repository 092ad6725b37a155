"""Rows of the outbox: each is emitted, claimed (one of a chat at a time) and ended.

    streaming ──> pending <──> sending ──> sent
                     │            │
                     └────────────┴──────> refused, or withheld ──> pending

A row in state `sending` names the process that sends it. The claims of a dead process are void: nobody knows whether
such a row was shown, so sending it again counts as a doubt.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from gateway.domain.chat import (
    KEPT,
    MOST_DOUBTS,
    MOST_IN_ROUND,
    MOST_PLACE,
    PLACED,
    ChatAddress,
    Outbound,
)
from gateway.domain.chat import OutboundState as State
from gateway.runtime.structs import replace
from gateway.store.kinds import ALARM, CHAT, LOOKS, OPEN_ALARMS, OUT, ROW, UNASKED, UNSENT_ROWS, ChatRecord, Row
from gateway.store.shared.documents import storable
from gateway.store.shared.platforms import chat_name
from gateway.store.space import MANY, Caller, Space, served

FORGOTTEN: Final = "forgotten"  # why a row was refused
ROUND: Final = 2 * MOST_IN_ROUND
_FEW: Final = 8  # rows at the beginning of a chat's

Rows = tuple[Outbound, ...]


# -- emitting ------------------------------------------------------------------------------------------


def emit(space: Space, caller: Caller, rows: Sequence[Outbound], also: Sequence[str] = ()) -> Rows:
    """Store rows in order, and claim the first of each chat that is due, also in the chats of `also`."""
    chats = [store(space, row) for row in rows]
    return advance_all(space, caller, [*chats, *also])


def store(space: Space, out: Outbound) -> str:
    """Store a row that is not known, and return its chat. A streaming row gets its text, and a withheld one goes out
    again; any other known row stays as it is."""
    known = space.get(ROW, out.id)
    if known is None:
        insert(space, replace(out, state=State.PENDING))
    elif known.out.state is State.STREAMING:
        _ends(space, known, out)
    elif known.out.state is State.WITHHELD:
        anew = replace(known.out, ambiguous=0, created_at=out.created_at, error=None, platform_message_id=None)
        _ends(space, replace(known, out=anew, claim="", confirmed=False), out)
    return chat_name(out.to) if known is None else known.chat


def _ends(space: Space, row: Row, final: Outbound) -> None:
    """Give a row its text and its place."""
    out = replace(
        row.out,
        state=State.PENDING,
        kind=final.kind,
        text=storable(final.text),
        due_at=final.due_at,
        platform_message_id=row.out.platform_message_id or final.platform_message_id,
    )
    space.put(ROW, replace(row, out=out, place=_place(space, out, space.number())))


def insert(space: Space, out: Outbound, place: int | None = None) -> None:
    """Store a new row as it is, after all others of its chat unless it has a place."""
    number = space.number()
    kept = replace(out, text=storable(out.text))
    space.put(ROW, Row(seq=number, place=_place(space, out, number) if place is None else place, out=kept))


def _place(space: Space, out: Outbound, number: int) -> int:
    """Where a row stands among those of its chat: behind all that were shown where none waits, else in the first round
    behind the next row's in which its conversation has none. What nobody waits for stands behind all others."""
    behind_all = number * ROUND if space.dense else number
    if out.unasked:
        return behind_all + MOST_PLACE
    chat = chat_name(out.to)
    waiting = space.first(OUT, chat, _FEW, before=MOST_PLACE)
    if not waiting:
        return behind_all
    many = waiting if len(waiting) < _FEW else space.first(OUT, chat, MANY, before=MOST_PLACE)
    mine = [row.place for row in many if row.out.key == out.key]
    after = max((_in_hand(waiting) or waiting[0]).place, mine[-1] if mine else 0)
    first = (after // ROUND + 1) * ROUND + (MOST_IN_ROUND if out.kind == "notice" else 0)
    there = space.last(OUT, chat, since=first, before=first + MOST_IN_ROUND)
    return there[0].place + 1 if there else first


def _in_hand(rows: Sequence[Row]) -> Row | None:
    """The row of a chat that is being sent: the first one, or one behind rows that are much in doubt."""
    for row in rows:
        if row.out.state is State.SENDING:
            return row
    return None


# -- claiming ------------------------------------------------------------------------------------------


def advance_all(space: Space, caller: Caller, chats: Iterable[str], *, adopts: bool = False) -> Rows:
    """`advance` for each chat, once and in order."""
    claimed = list[Outbound]()
    for chat in dict.fromkeys(chats):
        row = advance(space, caller, chat, adopts=adopts)
        if row is not None:
            claimed.append(row)
    return tuple(claimed)


def advance(space: Space, caller: Caller, chat: str, *, adopts: bool = False, shown: bool = False) -> Outbound | None:
    """Claim the chat's next row if it is due and this process sends to its platform. With `adopts`, also a row that a
    dead process was sending. With `shown`, another row of the chat has just been shown."""
    known = space.get(CHAT, chat)
    if known is not None and known.closed is not None:
        refuse_waiting(space, chat, known.closed, left=True)
    found = _next(space, caller, chat, shown=shown)
    if found is None:
        if known is not None:
            _look(space, chat, None)
        return None
    row, look_at = found
    is_left = row.out.state is State.SENDING and not row.claim
    if is_left and row.confirmed:  # its first sender knows that it was shown
        _settle(space, row, state=State.SENT)
        return advance(space, caller, chat, adopts=adopts, shown=shown)
    if row.out.state is State.SENDING and row.claim:
        _look(space, chat, None)
    elif not caller.sends.has_chat_of(chat):
        _look(space, chat, 0.0 if is_left else look_at)
        space.tell("rows", row.out.to.platform)
    elif not is_left and row.out.due_at > caller.now:
        _look(space, chat, look_at)
    elif is_left and not adopts:
        _look(space, chat, 0.0)
        space.tell("rows", row.out.to.platform)
    else:
        if known is not None:
            _look(space, chat, None)
        return _claim(space, caller, row, doubted=is_left)
    return None


def _next(space: Space, caller: Caller, chat: str, *, shown: bool) -> tuple[Row, float] | None:
    """The row whose turn it is in a chat, and when to look again if it waits. Usually that is the first row. But if
    many attempts have left it in doubt whether that one was shown, it does not hold up others while it waits."""
    first = space.first(OUT, chat)
    if not first:
        return None
    (row,) = first
    if not _is_in_doubt(row):
        return row, row.out.due_at
    due = caller.now if shown else row.out.due_at
    others = [each for each in space.first(OUT, chat, MANY) if not _is_in_doubt(each)]
    if others and (due > caller.now or others[0].out.state is State.SENDING):
        return others[0], min(due, others[0].out.due_at)
    return replace(row, out=replace(row.out, due_at=due)), due


def _is_in_doubt(row: Row) -> bool:
    return row.out.state is State.PENDING and row.out.ambiguous > MOST_DOUBTS


def _claim(space: Space, caller: Caller, row: Row, *, doubted: bool) -> Outbound:
    out = row.out
    if out.edits is not None and out.platform_message_id is None:
        edited = space.get(ROW, out.edits)
        out = replace(out, platform_message_id=None if edited is None else edited.out.platform_message_id)
    out = replace(out, state=State.SENDING, attempts=out.attempts + 1, ambiguous=out.ambiguous + doubted)
    place = row.place - MOST_PLACE if row.place > MOST_PLACE else row.place
    space.put(ROW, replace(row, out=out, claim=caller.owner, heard=False, place=place))
    return out


def _look(space: Space, chat: str, at: float | None) -> None:
    """Look at a chat at this time; None: only when something happens there."""
    known = space.get(CHAT, chat)
    if (known and known.look_at) == at:
        return
    platform = known.platform if known is not None else ""
    if known is None:
        platform = space.first(OUT, chat)[0].out.to.platform
        known = ChatRecord(name=chat, platform=platform)
    _keep(space, replace(known, look_at=at))
    if at is not None:
        space.tell("due", platform)


def _keep(space: Space, chat: ChatRecord) -> None:
    """Store what there is to remember of a chat, or delete it if there is nothing."""
    if chat.closed is None and chat.look_at is None:
        space.drop(CHAT, chat.name)
    else:
        space.put(CHAT, chat)


def claim_due(space: Space, caller: Caller, limit: int) -> Rows:
    """Claim the rows that are due, in chats that this process sends to, earliest first, also those that a dead process
    was sending."""
    platforms = served(space, caller.sends, LOOKS)
    found = [chat for name in platforms for chat in space.first(LOOKS, name, limit) if _at(chat) <= caller.now]
    chats = [chat.name for chat in sorted(found, key=_at)[:limit]]
    return advance_all(space, caller, chats, adopts=True)


def next_due(space: Space, caller: Caller) -> float | None:
    """When to look at the first chat that this process sends to; None if no row waits for a time."""
    platforms = served(space, caller.sends, LOOKS)
    return min([_at(chat) for name in platforms for chat in space.first(LOOKS, name)], default=None)


def _at(chat: ChatRecord) -> float:
    return 0.0 if chat.look_at is None else chat.look_at


# -- ending --------------------------------------------------------------------------------------------


def _settle(space: Space, row: Row, *, state: State, error: str | None = None) -> None:
    space.put(ROW, replace(row, out=replace(row.out, state=state, error=error or row.out.error)))


def mark_sent(space: Space, caller: Caller, row_id: str, shown_as: str | None) -> Outbound | None:
    """The platform showed the row; return the chat's next one."""
    row = space.get(ROW, row_id)
    if row is None or row.out.state not in PLACED:
        return None
    shown_as = row.out.platform_message_id if shown_as is None else storable(shown_as)
    shown_at = caller.now if row.out.shown_at is None else row.out.shown_at
    out = replace(row.out, platform_message_id=shown_as, shown_at=shown_at)
    if row.claim not in ("", caller.owner):
        space.put(ROW, replace(row, out=out, confirmed=True))
        return None
    space.put(ROW, replace(row, out=replace(out, state=State.SENT)))
    return advance(space, caller, row.chat, shown=True)


def mark_retry(
    space: Space,
    caller: Caller,
    row_id: str,
    seconds: float,
    ambiguous: bool,
    anew: bool,
    counted: bool,
    attempt: int | None = None,
) -> None:
    """An attempt failed: the row waits for so long, and its chat with it, unless the row is much in doubt, or is being
    sent anew."""
    row = space.get(ROW, row_id)
    if row is None or row.out.state is not State.SENDING or row.claim not in ("", caller.owner):
        return
    if attempt is not None and attempt != row.out.attempts:  # this process was thought dead, and has claimed it again
        return
    if row.confirmed:
        _settle(space, row, state=State.SENT)
        _look(space, row.chat, 0.0)
        return
    out = replace(
        row.out,
        state=State.PENDING,
        due_at=caller.now + seconds,
        ambiguous=ambiguous + (0 if anew else row.out.ambiguous),
        attempts=0 if anew else row.out.attempts - (not counted),
        platform_message_id=None if anew else row.out.platform_message_id,
    )
    space.put(ROW, replace(row, out=out, claim="", put_off_for=seconds))
    _look(space, row.chat, caller.now if ambiguous and out.ambiguous > MOST_DOUBTS else out.due_at)


def mark_refused(
    space: Space,
    caller: Caller,
    row_id: str,
    reason: str,
    instead: Outbound | None,
    gone: bool,
    keeps: bool,
) -> Outbound | None:
    """The row ends unseen, and `instead` goes out in its place. With `gone` the chat is closed, unless somebody wrote
    there since the row was handed out. Returns the chat's next row."""
    row = space.get(ROW, row_id)
    if row is None or row.out.state not in PLACED or row.claim not in ("", caller.owner):
        return None
    if row.confirmed:
        _settle(space, row, state=State.SENT)
    else:
        _refuse(space, row, reason, keeps=keeps or gone)
        if gone and not row.heard:
            note_closed(space, row.out.to, reason)
        if instead is not None and space.get(ROW, instead.id) is None:
            insert(space, replace(instead, state=State.PENDING), row.place)
    return advance(space, caller, row.chat)


def _refuse(space: Space, row: Row, reason: str, *, keeps: bool) -> None:
    """End a row unseen. With `keeps`, an answer is withheld, so that it can be shown later."""
    is_answer = row.out.edits is None and (row.out.kind in KEPT or row.out.file is not None)
    _settle(space, row, state=State.WITHHELD if keeps and is_answer else State.REFUSED, error=storable(reason))


def refuse_waiting(space: Space, chat: str, reason: str, *, left: bool = False) -> None:
    """End the waiting rows of a closed chat; with `left`, also those that a dead process was sending."""
    for row in space.first(OUT, chat, MANY):
        if row.out.state is State.PENDING or (left and not row.claim):
            _refuse(space, row, reason, keeps=True)


# -- streaming -----------------------------------------------------------------------------------------


def note_streamed(space: Space, outbound_id: str, platform_message_id: str | None) -> None:
    """Keep the platform's id of a streaming reply, or that nobody knows it, unless the reply has ended."""
    row = space.get(ROW, outbound_id)
    if row is not None and row.out.state is State.STREAMING:
        known = row.out.platform_message_id if platform_message_id is None else storable(platform_message_id)
        out = replace(row.out, platform_message_id=known, ambiguous=row.out.ambiguous + (platform_message_id is None))
        space.put(ROW, replace(row, out=out))


def drop_streaming(space: Space, row_id: str) -> list[str]:
    """End a reply that never got its text; return its chat, if it was one."""
    row = space.get(ROW, row_id)
    if row is None or row.out.state is not State.STREAMING:
        return []
    _settle(space, row, state=State.REFUSED, error="its turn ended without it")
    return [row.chat]


# -- closed chats --------------------------------------------------------------------------------------


def _closed(space: Space, chat: str) -> str | None:
    known = space.get(CHAT, chat)
    return None if known is None else known.closed


def closed(space: Space, to: ChatAddress) -> str | None:
    """Why a chat is closed; None if it is open."""
    return _closed(space, chat_name(to))


def close_chat(space: Space, to: ChatAddress, reason: str) -> None:
    """Close a chat; its waiting rows end unseen."""
    note_closed(space, to, reason)
    refuse_waiting(space, chat_name(to), reason)


def note_closed(space: Space, to: ChatAddress, reason: str) -> None:
    """Note that nothing can be shown in a chat; its reminders wait until it is open again."""
    known = space.get(CHAT, chat_name(to)) or ChatRecord(name=chat_name(to), platform=to.platform)
    space.put(CHAT, replace(known, closed=storable(reason)))
    _park(space, chat_name(to), parked=True)


def open_chat(space: Space, to: ChatAddress) -> bool:
    """The chat is reachable again. Returns whether it was closed."""
    return reopen(space, chat_name(to))


def reopen(space: Space, chat: str) -> bool:
    """Somebody wrote in a chat, so it is open. Returns whether it was closed. If a row is being sent there, a refusal
    of it will be older than this message."""
    row = _in_hand(space.first(OUT, chat, _FEW))
    if row is not None and not row.heard:
        space.put(ROW, replace(row, heard=True))
    known = space.get(CHAT, chat)
    if known is None or known.closed is None:
        return False
    _keep(space, replace(known, closed=None))
    _park(space, chat, parked=False)
    return True


def _park(space: Space, chat: str, *, parked: bool) -> None:
    """A chat's reminders wait until it is open again, or are due again."""
    for alarm in space.first(OPEN_ALARMS, chat, MANY):
        space.put(ALARM, replace(alarm, reminder=replace(alarm.reminder, parked=parked)))


# -- the end of a process ------------------------------------------------------------------------------


def give_back(space: Space, caller: Caller, row_ids: Sequence[str]) -> None:
    """Undo claims of rows that were handed to nobody, so no attempt was made."""
    for row_id in row_ids:
        row = space.get(ROW, row_id)
        if row is not None and row.out.state is State.SENDING and row.claim == caller.owner:
            out = replace(row.out, state=State.PENDING, attempts=row.out.attempts - 1)
            space.put(ROW, replace(row, out=out, claim=""))
            _look(space, row.chat, 0.0)


def leave(space: Space, owner: str) -> None:
    """Drop the claims of a dead process."""
    for platform in space.names(UNSENT_ROWS):
        for row in space.first(UNSENT_ROWS, platform, MANY):
            if row.out.state is State.SENDING and row.claim == owner:
                space.put(ROW, replace(row, claim=""))
                _look(space, row.chat, 0.0)


def cap_waits(space: Space, caller: Caller) -> None:
    """No row waits longer than it was put off for, in case the clock was set back."""
    for platform in space.names(LOOKS):
        for chat in space.first(LOOKS, platform, MANY, since=caller.now):
            for row in space.first(OUT, chat.name, MANY):
                latest = row.out.due_at if row.put_off_for is None else caller.now + row.put_off_for
                if row.out.due_at > latest:
                    space.put(ROW, replace(row, out=replace(row.out, due_at=latest)))
                    _look(space, chat.name, min(latest, _at(chat)))


# -- looking -------------------------------------------------------------------------------------------


def has_unsent(space: Space, to: ChatAddress) -> bool:
    """Whether rows of a chat wait or are being sent."""
    return bool(space.first(OUT, chat_name(to)))


def unasked(space: Space, to: ChatAddress) -> int:
    """Count the rows of a chat that nobody waits for and that no process has handled."""
    return space.count(UNASKED, chat_name(to))


def rows(space: Space, chat: ChatAddress, row_ids: Sequence[str]) -> list[Outbound]:
    """Those of these rows that belong to a chat."""
    found = [space.get(ROW, row_id) for row_id in row_ids]
    return [row.out for row in found if row is not None and row.chat == chat_name(chat)]


def look_now(space: Space, row: Row) -> None:
    """A row of a chat went out of turn: whoever sends there should look at the others."""
    known = space.get(CHAT, row.chat) or ChatRecord(name=row.chat, platform=row.out.to.platform)
    space.put(CHAT, replace(known, look_at=0.0))
    space.tell("rows", row.out.to.platform)
