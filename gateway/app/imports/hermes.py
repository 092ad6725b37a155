"""hermes-agent's `state.db`: SQLite tables `sessions` and `messages`, whose columns grew over the years.

A compression opened a session below another one, or marked rows as `compacted`. Both come as the one conversation that
they were, without the summaries: Legato compresses it anew when it is gone on with.

Source: https://github.com/NousResearch/hermes-agent (hermes_state_common.py, schema 30).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import apsw

from gateway.app.imports.jsonl import calls_in
from gateway.app.imports.past import Past, Tally, moment, returned, said, title_text, whole, words
from gateway.domain.message import Message
from gateway.runtime.errors import UserError

_SESSION: Final = ("id", "parent_session_id", "title", "started_at", "model", "end_reason", "model_config", "source")
_MESSAGE: Final = (
    "role", "content", "tool_call_id", "tool_calls", "tool_name", "timestamp", "_compressed_summary", "active",
    "compacted",
)  # fmt: skip
_SUMMARIES: Final = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]")  # the beginnings of those of earlier versions
_PARTS: Final = "\x00json:"  # before a content that is a list of parts
_DELEGATE: Final = "_delegate_from"
_LONGEST_CHAIN: Final = 1_000  # sessions

Row = Mapping[str, Any]


def conversations(path: Path, tally: Tally) -> Iterator[Past]:
    """The conversations, newest first. The file is only read; hermes-agent may run. Raises UserError."""
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
            connection.set_busy_timeout(5_000)
            yield from _conversations(connection, path, tally)
    except apsw.Error as error:
        raise UserError(f"{path} is not a readable SQLite file ({error}). Name hermes-agent's state.db.") from error


def _conversations(connection: apsw.Connection, path: Path, tally: Tally) -> Iterator[Past]:
    of_session, of_message = (_columns(connection, *each) for each in (("sessions", _SESSION), ("messages", _MESSAGE)))
    if not of_session or not of_message:
        raise UserError(f"{path} is not the state.db of hermes-agent, because it has no sessions and messages.")
    lineage = "NULL AS parent_session_id" not in of_session and "NULL AS end_reason" not in of_session
    children = {str(row[0]): str(row[1]) for row in connection.execute(_CONTINUED)} if lineage else dict[str, str]()
    continued = set(children.values())
    rows = connection.execute(f"SELECT {of_session} FROM sessions ORDER BY started_at DESC, id DESC").fetchall()
    sessions = [dict(zip(_SESSION, row, strict=True)) for row in rows]
    titles = {str(each["id"]): title_text(each["title"]) for each in sessions}
    for session in sessions:
        if str(session["id"]) in continued:
            continue  # a part of the conversation above it
        if session["source"] == "tool" or _DELEGATE in str(session["model_config"] or ""):
            tally.leave_out("runs of sub-agents")
            continue
        chain = [str(session["id"])]
        while (below := children.get(chain[-1])) is not None and below not in chain and len(chain) < _LONGEST_CHAIN:
            chain.append(below)
        past = Past(
            source=str(session["id"]),
            title=next(filter(None, (titles.get(each) for each in reversed(chain))), ""),
            started_at=moment(session["started_at"]),
            model=str(session["model"] or ""),
            messages=tuple(_messages(connection, of_message, chain, tally)),
        )
        if (found := whole(past, tally)) is not None:
            yield found


# Of several children the first began with the compression; the others were branched off later.
_CONTINUED: Final = (
    "SELECT p.id, (SELECT c.id FROM sessions c WHERE c.parent_session_id = p.id ORDER BY c.started_at, c.id LIMIT 1)"
    " FROM sessions p WHERE p.end_reason = 'compression'"
    " AND EXISTS (SELECT 1 FROM sessions c WHERE c.parent_session_id = p.id)"
)


def _columns(connection: apsw.Connection, table: str, wanted: tuple[str, ...]) -> str:
    """What to select for the wanted columns, NULL for those that this version has not; "" without the table."""
    there = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
    return ", ".join(name if name in there else f"NULL AS {name}" for name in wanted) if there else ""


def _messages(connection: apsw.Connection, columns: str, chain: list[str], tally: Tally) -> Iterator[Message]:
    """The messages of a conversation, each once: what a compression kept stands in both sessions."""
    seen: set[tuple[Any, ...]] = set()
    for number, name in enumerate(chain):
        copied = number > 0  # the beginning of a continuation repeats the end of the session before
        for row in connection.execute(f"SELECT {columns} FROM messages WHERE session_id = ? ORDER BY id", (name,)):
            facts = dict(zip(_MESSAGE, row, strict=True))
            if _is_summary(facts):
                tally.leave_out("summaries of a compression: what they stand for came along")
                continue
            if facts["active"] == 0 and not facts["compacted"]:
                tally.leave_out("messages that were undone")
                continue
            known = tuple(facts[each] for each in ("role", "content", "tool_call_id", "tool_calls"))
            copied = copied and known in seen
            seen.add(known)
            if not copied and (message := _message(facts, tally)) is not None:
                yield message


def _is_summary(facts: Row) -> bool:
    return bool(facts["_compressed_summary"]) or str(facts["content"] or "").startswith(_SUMMARIES)


def _message(facts: Row, tally: Tally) -> Message | None:
    role, at, text = facts["role"], moment(facts["timestamp"]), words(_content(facts["content"]))
    if role == "tool":
        return returned(facts["tool_call_id"], facts["tool_name"], text, at)
    if role not in ("user", "assistant"):
        tally.leave_out("instructions and settings" if role == "system" else "messages of an unknown kind")
        return None
    return said(role, text, at, calls_in(_json(facts["tool_calls"])) if role == "assistant" else ())


def _content(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, str) and value.startswith(_PARTS):
        return _json(value.removeprefix(_PARTS))
    return value


def _json(text: Any) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
