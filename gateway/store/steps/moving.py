"""Turns what a store of an earlier layout holds into today's records. The facts come as `gateway.store.shared.facts`
describes them, in that order."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Final
from urllib.parse import unquote

from gateway.domain.chat import MOST_PLACE, PLACED, SessionKey
from gateway.domain.usage import LedgerEntry
from gateway.runtime.structs import replace
from gateway.store.kinds import (
    ACCOUNT,
    ALARM,
    CALL,
    CHAT,
    COMPACTION,
    CONTENT,
    DEED,
    EVENT,
    FACT,
    FILE,
    ITEM,
    LANE,
    MESSAGE,
    NAME,
    NOTE,
    PINNED,
    PROMPT,
    ROW,
    SCOPE,
    SESSION,
    TURN,
    Account,
    CallRecord,
    ChatRecord,
    CompactionRecord,
    Content,
    DeedRecord,
    EventRecord,
    FactRecord,
    File,
    Item,
    Lane,
    MessageRecord,
    Name,
    NoteRecord,
    PinsRecord,
    Prompt,
    ReminderRecord,
    Row,
    Scope,
    SessionRecord,
    TurnRecord,
    event_name,
)
from gateway.store.records import SUSPECT_ATTEMPTS
from gateway.store.shared import fields
from gateway.store.shared.documents import (
    ERASED,
    approval_from,
    intents_from,
    loads,
    pins_from,
    readable_inbound,
    reminder_from,
)
from gateway.store.shared.facts import UNREADABLE, Record, damaged
from gateway.store.space import Kind, Space
from gateway.store.steps import spending
from gateway.store.steps.copying import look

Data = dict[str, Any]


def put(space: Space, records: Iterable[Record]) -> None:
    """Put what these facts say. Raises StoreError for one that cannot be read."""
    for record in records:
        try:
            if (made := _MADE.get(record.kind)) is not None:
                space.put(made[0], made[1](space, record.data))
            else:
                _PUT[record.kind](space, record.data)
        except UNREADABLE as error:
            name = next((str(record.data[each]) for each in _NAMES if record.data.get(each)), "")
            raise damaged(f"{record.kind} {name}", error) from error


def _session(space: Space, data: Data) -> None:
    session = fields.SESSION.of_texts(data)
    space.put(PROMPT, Prompt(session_id=session.id, text=session.system_prompt))
    space.put(SESSION, SessionRecord(seq=space.number(), session=replace(session, system_prompt="")))


def _message(space: Space, data: Data) -> None:
    note = loads(data["note"]) if data["note"] else None
    said = MessageRecord(
        number=int(data["id"]),
        key=_key(data).owner,
        session_id=data["session_id"],
        at=data["at"],
        tokens=data["tokens"],
        message=loads(data["body"]),
        note=note,
    )
    space.put(MESSAGE, said)


def _place(space: Space, data: Data) -> None:
    space.extend(data["session_id"], [int(data["message_id"])], at=data["position"])


def _hook(space: Space, data: Data) -> None:
    kept = space.get(SESSION, data["session_id"])
    if kept is not None:
        space.put(SESSION, replace(kept, owed=space.number()))


def _event(space: Space, data: Data) -> None:
    number, key = int(data["id"]), _key(data)
    inbound = None if data["inbound"] == ERASED else readable_inbound(data["inbound"], key, str(number))
    item = Item(
        number=number,
        key=key,
        inbound=inbound,
        accepted_at=data["accepted_at"],
        attempts=data["attempts"],
        bypass=bool(data["bypass"]),
        absorbed_by=data["absorbed_by"],
        outcome=data["outcome"],
        ended_at=data["ended_at"],
    )
    space.put(EVENT, EventRecord(name=event_name(data["platform"], data["event_id"]), item=number))
    space.put(ITEM, item)
    lane = space.get(LANE, key.text)
    if item.waits and lane is None:
        space.put(LANE, Lane(key=key, since=number, queue=(number,), suspect=item.attempts >= SUSPECT_ATTEMPTS))
    elif item.waits and lane is not None:
        space.put(LANE, replace(lane, queue=(*lane.queue, number)))
    elif item.outcome is None and item.absorbed_by is not None and lane is not None:
        space.put(LANE, replace(lane, absorbed=(*lane.absorbed, number)))


def _turn(space: Space, data: Data) -> None:
    begun = replace(
        _turn_of(space, data),
        session_id=data["session_id"] or "",
        steps=data["steps"],
        intents=intents_from(data["intents"]),
        reply=data["reply"],
        began=True,
    )
    space.put(TURN, begun)


def _approval(space: Space, data: Data) -> None:
    turn = _turn_of(space, data)
    asked = approval_from(data["asked"], str(data["item"]), data["verdict"])
    space.put(TURN, replace(turn, asked=(*turn.asked, asked), began=True))


def _signal(space: Space, data: Data) -> None:
    turn = _turn_of(space, data)
    space.put(TURN, replace(turn, signals=(*turn.signals, (data["at"], data["kind"]))))


def _turn_of(space: Space, data: Data) -> TurnRecord:
    return space.get(TURN, int(data["item"])) or TurnRecord(item=int(data["item"]), key=_key(data))


def _row(space: Space, data: Data) -> None:
    """A row that was being sent now has no sender, as if its process had died. Later rows have higher places."""
    out = fields.OUTBOUND.of_texts(data)
    behind = MOST_PLACE + 1 if out.unasked and not out.attempts else 0
    row = Row(seq=space.number(), place=(data["ahead"] or 0) + behind, out=out)
    space.put(ROW, row)
    if out.state in PLACED:
        look(space, row)


def _call(space: Space, data: Data) -> None:
    of_call = {name: data[name] for name in ("at", "purpose", "provider", "model", "cost_usd")}
    entry = LedgerEntry(usage=fields.USAGE.of_texts(data), **of_call)
    call = CallRecord(
        number=space.number(),
        platform=data["platform"],
        key=_key(data) if data["key"] else None,
        session_id=data["session_id"],
        entry=entry,
    )
    spending.enter_call(space, call)


def _file(space: Space, data: Data) -> None:
    space.put(FILE, File(key=_key(data), file=fields.FILE.of_texts(data)))
    space.put(CONTENT, Content(key=_key(data), digest=data["digest"], content=data["content"]))


def _closed(space: Space, data: Data) -> None:
    platform = unquote(data["lane"].partition("/")[0])
    known = space.get(CHAT, data["lane"]) or ChatRecord(name=data["lane"], platform=platform)
    space.put(CHAT, replace(known, closed=data["reason"]))


def _key(data: Data) -> SessionKey:
    return SessionKey.parse(data["key"])


def _deed(_: Space, data: Data) -> DeedRecord:
    return DeedRecord(id=data["deed"], key=_key(data), at=data["at"], counts=json.loads(data["counts"]))


def _fact(_: Space, data: Data) -> FactRecord:
    fact = fields.FACT.of_texts(data)
    return FactRecord(scope=fact.scope, fact=fact)


def _scope(_: Space, data: Data) -> Scope:
    scope = SessionKey.parse(data["scope"])
    return Scope(scope=scope, version=data["version"], last_number=data["last_number"] or 0)


def _account(_: Space, data: Data) -> Account:
    forget_at = None if data["forget_at"] is None else data["forget_at"] / 1_000
    return Account(name=data["account"], spent=data["spent"], forget_at=forget_at)


def _reminder(_: Space, data: Data) -> ReminderRecord:
    return ReminderRecord(reminder=reminder_from(data["reminder"], data["number"], parked=bool(data["parked"])))


# Facts that become one record and change no other: its kind, and what makes it.
_MADE: Final[dict[str, tuple[Kind[Any], Callable[[Space, Data], Any]]]] = {
    "compactions": (
        COMPACTION,
        lambda space, data: CompactionRecord(number=space.number(), compaction=fields.COMPACTION.of_texts(data)),
    ),
    "spending": (ACCOUNT, _account),
    "pins": (PINNED, lambda _, data: PinsRecord(key=_key(data), pins=pins_from(data["rules"]))),
    "forgotten": (DEED, _deed),
    "memory": (FACT, _fact),
    "memory counters": (SCOPE, _scope),
    "reminders": (ALARM, _reminder),
    "notes": (NOTE, lambda _, data: NoteRecord(folder=data["account"], name=data["name"], text=data["value"])),
    "renamed chats": (NAME, lambda _, data: Name(chat=data["lane"], first=data["first"], later=data["later"])),
}
_PUT: Final[dict[str, Callable[[Space, Data], None]]] = {
    "sessions": _session,
    "messages": _message,
    "transcripts": _place,
    "hooks": _hook,
    "events": _event,
    "turns": _turn,
    "approvals": _approval,
    "signals": _signal,
    "outbox": _row,
    "ledger": _call,
    "files": _file,
    "closed chats": _closed,
}

_NAMES: Final = ("id", "ref", "number", "token", "item", "deed", "key", "session_id", "lane")  # what a fact is named by

# The facts of which each becomes one record, and the kind of that.
BECOMES: Final[dict[str, str]] = {
    "sessions": SESSION.name,
    "messages": MESSAGE.name,
    "transcripts": "series",
    "events": ITEM.name,
    "outbox": ROW.name,
    "ledger": CALL.name,
    "files": FILE.name,
    **{fact: kind.name for fact, (kind, _) in _MADE.items()},
}
