"""Questions of unfinished items: asked once, decided once, forgotten when their item ends."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from gateway.domain.approval import Approval, Verdict
from gateway.domain.chat import ChatAddress, Outbound
from gateway.store.records import Decision
from gateway.store.shared.agenda import Advance
from gateway.store.shared.documents import approval_from, approval_json, in_order, verdict_json
from gateway.store.shared.platforms import chat_name
from gateway.store.sqlite import outbox
from gateway.store.sqlite.connection import change, many, one
from gateway.store.sqlite.outbox import Sender

Decided = tuple[Decision | None, tuple[Advance, ...]]


def of_item(connection: apsw.Connection, item: int) -> tuple[Approval, ...]:
    """The questions of an unfinished item."""
    rows = many(connection, "SELECT item, asked, verdict FROM approvals WHERE item = ?", (item,))
    return in_order(approval_from(asked, str(number), verdict) for number, asked, verdict in rows)


def of_chat(connection: apsw.Connection, chat: ChatAddress) -> list[Approval]:
    """The questions of a chat."""
    rows = many(connection, "SELECT item, asked, verdict FROM approvals WHERE chat = ?", (chat_name(chat),))
    return list(in_order(approval_from(asked, str(number), verdict) for number, asked, verdict in rows))


def put(connection: apsw.Connection, approval: Approval) -> bool:
    """Write a question as it is; False: the question was there already."""
    verdict = None
    if not approval.is_open:
        verdict = verdict_json(approval.state, approval.decided_by, approval.decided_at or 0.0)
    chat = ChatAddress(platform=approval.key.platform, chat=approval.key.chat)
    row = one(
        connection,
        "INSERT INTO approvals(token, item, chat, asked, verdict) VALUES (?,?,?,?,?)"
        " ON CONFLICT (token) DO NOTHING RETURNING token",
        (approval.token, int(approval.item), chat_name(chat), approval_json(approval), verdict),
    )
    return row is not None


def ask(
    connection: apsw.Connection, approval: Approval, shown: Sequence[Outbound], sender: Sender
) -> tuple[Advance, ...]:
    """Store a question and show it, unless that was done. From now on the item has a journal."""
    if not put(connection, approval):
        return ()
    change(connection, "INSERT INTO turns(item) VALUES (?) ON CONFLICT (item) DO NOTHING", (int(approval.item),))
    for row in shown:
        change(connection, "UPDATE turns SET reply = NULL WHERE item = ? AND reply = ?", (int(approval.item), row.id))
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
        "UPDATE approvals SET verdict = ? WHERE token = ? AND verdict IS NULL RETURNING item, asked, verdict",
        (verdict_json(verdict, by, at), asked.token),
    )
    if row is not None:
        approval = approval_from(row[1], str(row[0]), row[2])
        return Decision(approval=approval, first=True), outbox.emit(connection, shown, sender)
    row = one(connection, "SELECT item, asked, verdict FROM approvals WHERE token = ?", (asked.token,))
    if row is None:
        return None, ()
    return Decision(approval=approval_from(row[1], str(row[0]), row[2]), first=False), ()


def forget(connection: apsw.Connection, item: int) -> None:
    """Drop the questions of an item that has ended."""
    change(connection, "DELETE FROM approvals WHERE item = ?", (item,))
