"""The store as the `legato` program shows it: rows with stable fields, and the same as text.

Fields of a session row: id, key, parent_id, started_at, ended_at, end_reason, title, messages (a
count). `show` has the transcript's messages in `messages` instead. Fields of an outbox row: id, platform, chat, thread,
kind, state, text, session_id, answers, attempts, ambiguous, created_at, due_at, shown_at, error. Times are ISO 8601 in
UTC.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, cast

from msgspec import convert, to_builtins

from gateway.domain.chat import UNSENT, Outbound, OutboundState
from gateway.domain.message import is_summary, note_of, text_of, wire
from gateway.domain.session import PassWork, Session
from gateway.domain.wording import counted
from gateway.runtime.errors import SessionNotFound
from gateway.store.port import ReportStore, SessionStore, Store
from gateway.store.records import Found, UsageBy
from gateway.words.text import Holds

Row = dict[str, Any]

_TEXT_WIDTH = 2_000  # characters of a message shown as text; --json shows all
_LINE_WIDTH = 76  # characters of a message in a list


async def session_rows(store: ReportStore, limit: int) -> list[Row]:
    """Sessions of everybody, newest first, without those of helpers, which their callers' results name."""
    return [_session(session) for session in await store.sessions(None, limit) if session.key.helper is None]


async def lineage_rows(store: Store, session_id: str) -> list[Row]:
    """Root to tip, each with the `compaction` that opened it: trigger, what it did, tokens before and after. Raises
    SessionNotFound."""
    with named(session_id):
        return [await _link(store, session) for session in await store.lineage(session_id)]


async def _link(store: ReportStore, session: Session) -> Row:
    made = next((each for each in await store.compactions(session.id) if each.child_id == session.id), None)
    return {**_session(session), "compaction": None if made is None else to_builtins(made)}


@contextmanager
def named(session_id: str) -> Iterator[None]:
    """Tell in the block that there is no such session, and where those are that there are. Raises SessionNotFound."""
    try:
        yield
    except SessionNotFound:
        text = f"There is no session {session_id}. `legato sessions list` lists all sessions."
        raise SessionNotFound(text) from None


async def show_row(store: SessionStore, session_id: str) -> Row:
    """A session and its transcript: each message with `id`, `at`, `tokens` and `summary` beside
    the fields a model sees. Raises SessionNotFound."""
    with named(session_id):
        session = await store.session(session_id)
    messages = []
    for message in await store.transcript(session):
        note = note_of(message)
        host = {
            "id": note.get("id"),
            "at": time_text(note.get("at")),
            "tokens": note.get("tokens"),
            "summary": is_summary(message),
            "derived_from": note.get("derived_from", []),
        }
        messages.append({**host, **wire(message)})
    return {**_session(session), "messages": messages}


async def found_rows(store: Store, words: str, limit: int) -> list[Row]:
    """Hits, best first, with the messages around each that hold a word: key, session_id, message_id, at, role, text."""
    sought = Holds(words)
    hits: list[Found] = []
    for passage in await store.search(words, None, limit):
        others = (each for each in passage.turns if each is not passage.hit)
        hits += [passage.hit, *(each for each in others if sought.held(text_of(each.message)))]
    keys = {each: (await store.session(each)).key.text for each in {hit.session_id for hit in hits[:limit]}}
    return [
        {
            "key": keys[hit.session_id],
            "session_id": hit.session_id,
            "message_id": note_of(hit.message).get("id"),
            "at": time_text(hit.at),
            "role": hit.message["role"],
            "text": text_of(hit.message),
        }
        for hit in hits[:limit]
    ]


async def usage_rows(store: ReportStore, since: float, by: str) -> list[Row]:
    """Totals, most expensive first: label, calls, the token buckets, cost_usd, unpriced_calls."""
    return [
        {
            "label": total.label,
            "calls": total.calls,
            **total.usage.as_dict(),
            "cost_usd": round(total.cost_usd, 6),
            "unpriced_calls": total.unpriced_calls,
        }
        for total in await store.usage(since, cast(UsageBy, by))
    ]


async def outbox_rows(store: ReportStore, limit: int, *, everything: bool) -> list[Row]:
    """Messages on their way to people, newest first; without `everything` only those that are not shown."""
    states = () if everything else (*UNSENT, OutboundState.REFUSED, OutboundState.WITHHELD)
    return [outbox_row(row) for row in await store.outbox(None, limit, states)]


def outbox_row(row: Outbound) -> Row:
    """A message on its way to people."""
    return {
        "id": row.id,
        "platform": row.to.platform,
        "chat": row.to.chat,
        "thread": row.to.thread,
        "kind": row.kind,
        "state": str(row.state),
        "text": row.text,
        "session_id": row.session_id,
        "answers": row.answers,
        "attempts": row.attempts,
        "ambiguous": row.ambiguous,
        "created_at": time_text(row.created_at),
        "due_at": time_text(row.due_at or None),
        "shown_at": time_text(row.shown_at),
        "error": row.error,
    }


async def dead_rows(store: ReportStore, limit: int) -> list[Row]:
    """Messages that were given up, newest first: id, platform, chat, kind, user, text, event, attempts, created_at."""
    return [
        {
            "id": item.id,
            "platform": item.key.platform,
            "chat": item.key.chat,
            "kind": "message" if item.inbound.kind in ("message", "queue", "steer") else item.inbound.kind,
            "user": item.inbound.source.user,
            "text": item.inbound.text,
            "event": item.inbound.event_id,
            "attempts": item.attempts,
            "created_at": time_text(item.accepted_at),
        }
        for item in await store.dead(limit)
    ]


def dead_text(rows: list[Row]) -> str:
    """Messages to be read."""
    if not rows:
        return "There is nothing to list: Legato has not given up on any message."
    return "\n".join(
        f"{row['created_at'][:16].replace('T', ' ')}  {row['id']}  {row['platform']}:{row['chat']}\n"
        f"  {one_line(row['text'])}\n  given up after {counted(row['attempts'], 'attempt')}"
        for row in rows
    )


def one_line(text: str) -> str:
    """The beginning of a text, in one line of a list."""
    joined = " ".join(text.split())
    return joined if len(joined) <= _LINE_WIDTH else f"{joined[: _LINE_WIDTH - 1]}…"


def lineage_text(rows: list[Row]) -> str:
    """A chain of sessions, with a line about each compaction between two."""
    head, *lines = sessions_text(rows).split("\n")
    told = [head]
    for row, line in zip(rows, lines, strict=True):
        if (made := row["compaction"]) is not None:
            work = convert(made["work"], PassWork).told if made["work"] else "no details were kept"
            sizes = f"~{made['tokens_before']:,} → ~{made['tokens_after']:,} tokens"
            told.append(f"  ↓ compressed ({made['trigger']}): {sizes}; {work}")
        told.append(line)
    return "\n".join(told)


def sessions_text(rows: list[Row]) -> str:
    """A table of sessions."""
    if not rows:
        return "There are no sessions yet."
    wide = max(len(row["id"]) for row in rows)  # an imported session has a longer id
    lines = [f"{'id':<{wide}} {'started':<17} {'ended':<12} {'messages':>8}  key"]
    for row in rows:
        started = row["started_at"][:16].replace("T", " ")
        title = f"  “{row['title']}”" if row["title"] else ""
        ended = row["end_reason"] or "open"
        lines.append(f"{row['id']:<{wide}} {started:<17} {ended:<12} {row['messages']:>8}  {row['key']}{title}")
    return "\n".join(lines)


def show_text(row: Row) -> str:
    """A transcript to be read."""
    head = f"{row['id']}  {row['key']}  {row['end_reason'] or 'open'}  {len(row['messages'])} messages"
    blocks = [head]
    for message in row["messages"]:
        who = "summary" if message["summary"] else message["role"]
        text = text_of(message)
        calls = [call["function"]["name"] for call in message.get("tool_calls", ())]
        if calls:
            text = f"{text}\n→ calls {', '.join(calls)}".strip()
        if len(text) > _TEXT_WIDTH:
            text = f"{text[:_TEXT_WIDTH]} … ({len(text):,} characters)"
        blocks.append(f"── {who}\n{text}")
    return "\n\n".join(blocks)


def found_text(rows: list[Row]) -> str:
    """Hits to be read."""
    if not rows:
        return "Nothing was found."
    return "\n\n".join(
        f"{row['at']}  {row['key']}  {row['session_id']}  {row['role']}\n{row['text'][:_TEXT_WIDTH]}" for row in rows
    )


def usage_text(rows: list[Row]) -> str:
    """A table of totals."""
    if not rows:
        return "Legato used no model in this period."
    lines = [f"{'':<28} {'calls':>8} {'tokens in':>12} {'cached':>12} {'tokens out':>12} {'US$':>10}"]
    for row in rows:
        unpriced = f"  (no price for {row['unpriced_calls']})" if row["unpriced_calls"] else ""
        lines.append(
            f"{row['label'][:28]:<28} {row['calls']:>8,} {row['prompt_tokens']:>12,} {row['cache_read_tokens']:>12,} "
            f"{row['output_tokens']:>12,} {row['cost_usd']:>10.4f}{unpriced}"
        )
    return "\n".join(lines)


def outbox_text(rows: list[Row]) -> str:
    """Messages to be read, each with the reason why it is not shown."""
    if not rows:
        return "There is nothing to list: every message has been shown."
    blocks = []
    for row in rows:
        place = f"{row['platform']}:{row['chat']}" + (f"/{row['thread']}" if row["thread"] else "")
        created = row["created_at"][:16].replace("T", " ")
        blocks.append(
            f"{created}  {row['state']:<9} {row['kind']:<8} {place}  {row['id']}\n"
            f"  {one_line(row['text'])}{_reason(row)}"
        )
    return "\n".join(blocks)


def _reason(row: Row) -> str:
    tried = counted(row["attempts"], "attempt")
    doubt = f", {row['ambiguous']} of them with an unknown outcome" if row["ambiguous"] else ""
    if row["state"] in (OutboundState.REFUSED, OutboundState.WITHHELD):
        return f"\n  given up after {tried}{doubt}: {row['error']}"
    if row["state"] == OutboundState.SENT or not row["attempts"]:
        return ""
    again = f", the next at {row['due_at'][11:19]} UTC" if row["due_at"] else ""
    return f"\n  {tried}{doubt}{again}"


def _session(session: Session) -> Row:
    return {
        "id": session.id,
        "key": str(session.key),
        "parent_id": session.parent_id,
        "started_at": time_text(session.started_at),
        "ended_at": time_text(session.ended_at),
        "end_reason": session.end_reason,
        "title": session.title,
        "messages": session.message_count,
    }


def time_text(at: float | None) -> str | None:
    """A time (seconds since the epoch) as ISO 8601 in UTC."""
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
