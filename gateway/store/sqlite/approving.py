"""Questions of unfinished items: asked once, decided once, forgotten when their item ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import apsw

from gateway.domain.approval import Approval, Verdict
from gateway.domain.chat import ChatAddress, Outbound
from gateway.store.records import Decision
from gateway.store.shared.agenda import Advance
from gateway.store.shared.documents import approval_from, approval_json, in_order, verdict_json
from gateway.store.shared.platforms import chat_name
from gateway.store.sqlite import outbox
from gateway.store.sqlite.connection import Row, change, many, one
from gateway.store.sqlite.outbox import Sender

Decided = tuple[Decision | None, tuple[Advance, ...]]

_COLUMNS: Final = "item, asked, verdict"


def of_item(connection: apsw.Connection, item: int) -> tuple[Approval, ...]:
    """The questions of an unfinished item."""
    return in_order(map(_read, many(connection, f"SELECT {_COLUMNS} FROM approvals WHERE item = ?", (item,))))


def of_chat(connection: apsw.Connection, chat: ChatAddress) -> list[Approval]:
    """The questions of a chat."""
    rows = many(connection, f"SELECT {_COLUMNS} FROM approvals WHERE chat = ?", (chat_name(chat),))
    return list(in_order(map(_read, rows))) if rows else []


def ask(
    connection: apsw.Connection, approval: Approval, shown: Sequence[Outbound], sender: Sender
) -> tuple[Advance, ...]:
    """Store a question and show it, unless that was done. From now on the item has a journal."""
    row = (approval.token, int(approval.item), chat_name(approval.key.address), approval_json(approval))
    if not change(connection, "INSERT OR IGNORE INTO approvals(token, item, chat, asked) VALUES (?,?,?,?)", row):
        return ()
    change(connection, "INSERT INTO turns(item) VALUES (?) ON CONFLICT (item) DO NOTHING", (int(approval.item),))
    for each in shown:
        change(connection, "UPDATE turns SET reply = NULL WHERE item = ? AND reply = ?", (int(approval.item), each.id))
    return outbox.emit(connection, shown, sender)


def decide(
    connection: apsw.Connection,
    asked: Approval,
    verdict: Verdict,
    by: str | None,
    at: float,
    shown: Sequence[Outbound],
    sender: Sender,
) -> Decided:
    """Decide a question that nobody has decided, and show the verdict."""
    row = one(
        connection,
        f"UPDATE approvals SET verdict = ? WHERE token = ? AND verdict IS NULL RETURNING {_COLUMNS}",
        (verdict_json(verdict, by, at), asked.token),
    )
    if row is not None:
        return Decision(approval=_read(row), first=True), outbox.emit(connection, shown, sender)
    row = one(connection, f"SELECT {_COLUMNS} FROM approvals WHERE token = ?", (asked.token,))
    return (None if row is None else Decision(approval=_read(row), first=False)), ()


def forget(connection: apsw.Connection, item: int) -> None:
    """Drop the questions of an item that has ended."""
    change(connection, "DELETE FROM approvals WHERE item = ?", (item,))


def _read(row: Row) -> Approval:
    item, asked, verdict = row
    return approval_from(asked, str(item), verdict)
