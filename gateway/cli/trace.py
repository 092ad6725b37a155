"""`legato trace`: from one id to the turn that it belongs to, with its messages, model calls, tools and outbox rows.

Fields of a trace: item, event, key, kind, user, text, accepted_at, ended_at, seconds, outcome, absorbed_by, attempts,
sessions (ids), messages (id, at, role, text, tokens, tools), calls (at, session_id, purpose, provider, model, tokens,
cost_usd), rows (as `legato outbox` has them). Of an id that belongs to no turn, those that are known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Final

from gateway.app.orders import Order, left
from gateway.cli.reports import Row, one_line, outbox_row, outbox_text, time_text
from gateway.domain.chat import EVENT, ChatAddress, Outbound, SessionKey, readable
from gateway.domain.message import Message, is_summary, note_of, text_of
from gateway.domain.session import Session
from gateway.domain.wording import counted
from gateway.runtime.errors import SessionNotFound, UserError
from gateway.store.port import ReportStore, Store
from gateway.store.records import Call, Fate, Found
from gateway.store.shared.documents import storable

_SESSIONS: Final = 1_000  # of a key that are looked through
_ROWS: Final = 10_000  # of a chat
_TURNS: Final = 20  # of a session, the newest


async def traced(store: Store, name: str, platforms: Collection[str], now: float) -> list[Row]:
    """The traces of all that has this name: an item (which log lines call `turn`), an event, a message, a row of the
    outbox, a session; "turn=1" is item 1 alone. Raises UserError if nothing has it."""
    what, _, name = storable(name).strip().rpartition("=")
    known = await store.named(name, platforms)
    fates, rest = [*known.fates], list[Row]()
    if what != "turn":
        fates += (await store.named(f"{EVENT}{name}", platforms)).fates  # what `legato send --ask` calls by this name
        if known.row is not None:
            fates += (of_row := await _fates_of(store, known.row.key.platform, known.row.answers))
            rest += [] if of_row else [{"key": str(known.row.key), "rows": [outbox_row(known.row)]}]
        if known.message is not None:
            fates += (of_message := await _of_message(store, known.message))
            if not of_message:
                found = known.message
                rest.append({"sessions": [found.session_id], "messages": [_message(found.message)]})
        with suppress(SessionNotFound):
            fates += await _of_session(store, session := await store.session(name))
            rest += [] if fates else [{"sessions": [session.id], "key": str(session.key)}]
        rest += [_of_order(order) for order in (await left(store)).values() if order.id == name]
    if not (fates or rest):
        raise UserError(
            f"Nothing has the id {name}. Give the id of a turn (as log lines name it), a message, a session, an event, "
            "or a row of the outbox."
        )
    shown: dict[ChatAddress, list[Outbound]] = {}
    turns = {fate.item.id: fate for fate in fates}
    return [*[await _turn(store, fate, now, shown) for fate in turns.values()], *rest]


async def _fates_of(store: ReportStore, platform: str, event: str | None) -> list[Fate]:
    if event is None:
        return []
    found = (await store.named(event, [platform])).fates
    return [fate for fate in found if fate.item.inbound.event_id == event]


async def _of_message(store: Store, found: Found) -> list[Fate]:
    """The item whose turn a message belongs to: that of the last event before it."""
    session = await store.session(found.session_id)
    event = None
    for message in await store.transcript(session):
        event = note_of(message).get("event", event)
        if note_of(message).get("id") == note_of(found.message).get("id"):
            return await _fates_of(store, session.key.platform, event)
    return []


async def _of_session(store: Store, session: Session) -> list[Fate]:
    events = (note_of(message).get("event") for message in await store.transcript(session))
    newest = [event for event in dict.fromkeys(events) if event is not None][-_TURNS:]
    return [fate for event in newest for fate in await _fates_of(store, session.key.platform, event)]


async def _turn(store: Store, fate: Fate, now: float, shown: dict[ChatAddress, list[Outbound]]) -> Row:
    """A turn, or the item of none. `shown` has the rows of the chats that were looked at, newest first."""
    item, until, chat = fate.item, fate.ended_at or now, fate.item.key.address
    if chat not in shown:
        shown[chat] = await store.outbox(chat, _ROWS)
    sessions = [
        each
        for each in await store.sessions(item.key, _SESSIONS)
        if each.started_at <= until and each.last_active_at >= item.accepted_at
    ]
    said: dict[str | None, Message] = {}
    for session in reversed(sessions):  # the oldest first
        for message in _said(await store.transcript(session), item.inbound.event_id):
            said.setdefault(note_of(message).get("id"), message)
    # A server's clock, by which items end, may be behind the one that calls and messages go by.
    spoken = [note_of(message).get("at", until) for message in said.values()]
    calls = await store.calls(item.key, item.accepted_at, max([until, *spoken]))
    rows = [row for row in reversed(shown[chat]) if row.answers == item.inbound.event_id]
    return {
        "item": item.id,
        "event": item.inbound.event_id,
        "key": str(item.key),
        "kind": item.inbound.kind,
        "user": item.inbound.source.user,
        "text": readable(item.inbound),
        "accepted_at": time_text(item.accepted_at),
        "ended_at": time_text(fate.ended_at),
        "seconds": round(until - item.accepted_at, 3),
        "outcome": fate.outcome,
        "absorbed_by": fate.absorbed_by,
        "attempts": item.attempts,
        "sessions": [each.id for each in reversed(sessions)],
        "messages": [_message(message) for message in said.values()],
        "calls": [_call(call) for call in calls],
        "rows": [outbox_row(row) for row in rows],
    }


def _said(transcript: Iterable[Message], event: str) -> list[Message]:
    """The messages of an event's turn: from its own to the next event's."""
    own: list[Message] = []
    inside = False
    for message in transcript:
        came_by = note_of(message).get("event")
        if came_by is not None or message["role"] == "user":
            inside = came_by == event
        if inside and not is_summary(message):
            own.append(message)
    return own


def _message(message: Message) -> Row:
    note = note_of(message)
    return {
        "id": note.get("id"),
        "at": time_text(note.get("at")),
        "role": message["role"],
        "text": text_of(message),
        "tokens": note.get("tokens"),
        "tools": [call["function"]["name"] for call in message.get("tool_calls", ())],
    }


def _call(call: Call) -> Row:
    entry = call.entry
    return {
        "at": time_text(entry.at),
        "session_id": call.session_id,
        "purpose": entry.purpose,
        "provider": entry.provider,
        "model": entry.model,
        "tokens": entry.usage.as_dict(),
        "cost_usd": entry.cost_usd,
    }


def _of_order(order: Order) -> Row:
    """A text that waits for a gateway: no row yet."""
    to = order.address
    row = Outbound(
        id=order.id,
        key=SessionKey(platform=to.platform, chat=to.chat, thread=to.thread),
        to=to,
        kind="notice",
        text=order.text,
        created_at=order.at,
    )
    return {"key": str(row.key), "rows": [outbox_row(row) | {"state": "left"}]}


def trace_text(traces: Sequence[Row]) -> str:
    """Traces to be read."""
    return "\n\n".join("\n".join(_lines(each)) for each in traces)


def _lines(trace: Row) -> list[str]:
    lines = []
    if "item" in trace:
        end = trace["outcome"] or "not ended yet"
        took = f" after {trace['seconds']:,.1f} s" if trace["outcome"] else ""
        joined = f" into turn {trace['absorbed_by']}" if trace["absorbed_by"] else ""
        tries = f", {counted(trace['attempts'], 'attempt')}" if trace["attempts"] > 1 else ""
        lines.append(f"turn {trace['item']}  {trace['key']}  {end}{joined}{took}{tries}")
        lines.append(
            f"{_moment(trace['accepted_at'])}  {trace['kind']} {trace['event']} of {trace['user']}: "
            f"{one_line(trace['text'])}"
        )
    if sessions := trace.get("sessions"):
        lines.append(f"session{'' if len(sessions) == 1 else 's'} {', '.join(sessions)}")
    steps = [(each["at"] or "", _said_line(each)) for each in trace.get("messages", ())]
    steps += [(each["at"], _call_line(each)) for each in trace.get("calls", ())]
    lines += [f"{_moment(at)}  {text}" for at, text in sorted(steps, key=itemgetter(0))]
    if rows := trace.get("rows"):
        lines.append(outbox_text(rows))
    return lines


def _said_line(message: Row) -> str:
    tools = f"→ {', '.join(message['tools'])}" if message["tools"] else ""
    tokens = "" if message["tokens"] is None else f" ({message['tokens']:,} tokens)"
    words = " ".join(filter(None, (one_line(message["text"]), tools)))
    return f"{message['role']} {message['id']}{tokens}: {words}"


def _call_line(call: Row) -> str:
    tokens, cost = call["tokens"], call["cost_usd"]
    price = "no price" if cost is None else f"${cost:.4f}"
    cached = f" ({tokens['cache_read_tokens']:,} cached)" if tokens["cache_read_tokens"] else ""
    return (
        f"call for {call['purpose']}: {call['model']}, {tokens['prompt_tokens']:,} tokens in{cached}, "
        f"{tokens['output_tokens']:,} out, {price}"
    )


def _moment(at: str) -> str:
    return at[:19].replace("T", " ")
