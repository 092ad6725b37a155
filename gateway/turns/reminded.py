"""Puts the words of reminders into the conversation, as the bot's own, before the person's next words.

If a person answers "done!" to a reminder, the model must know what they mean. A reminder fires in no lane, so nothing
can be written into the conversation at that moment. Instead, the chat's rows say what was shown. Those since the last
request go in front of the next one, in the same step of the store. Each carries its row's id, so it is never taken
twice."""

from __future__ import annotations

from typing import Final

import structlog

from gateway.agent.conversation import Conversation
from gateway.domain.chat import OutboundState
from gateway.domain.message import Message, assistant, is_request, note_of
from gateway.runtime.errors import StoreUnavailable
from gateway.store.port import ReportStore, Store

log = structlog.get_logger(__name__)

_LOOKED_AT: Final = 20  # rows of the chat
_MOST: Final = 5  # reminders before one message
_SLACK: Final = 120.0  # seconds by which the clocks of two processes may differ


async def reminded(store: Store, conversation: Conversation) -> list[Message]:
    """What reminders showed under the conversation's key since its newest request, oldest first, unless it is already
    there. If the store does not answer, they are left out and the turn goes on."""
    key = conversation.stored.session.key
    try:
        if not await store.has_reminders(key):
            return []
        rows = await store.outbox(key.address, _LOOKED_AT)
        rows = [row for row in rows if row.kind == "reminder" and row.key == key and row.state == OutboundState.SENT]
        if not rows:
            return []
        since = await _since(store, conversation) - _SLACK
    except StoreUnavailable as error:
        log.warning("reminders_not_looked_at", error=str(error))
        return []
    known, said = _known(conversation, since - _SLACK), dict[str, str]()
    for row in reversed(rows):
        if row.edits is None and (row.shown_at or row.created_at) > since and row.id not in known:
            said[row.id] = row.text
        elif row.edits in said:  # such as the answer that was pressed
            said[row.edits] = row.text
    told = [(row_id, text) for row_id, text in said.items() if text.strip()]
    return [assistant(text, reminded=row_id) for row_id, text in told[-_MOST:]]


async def _since(store: ReportStore, conversation: Conversation) -> float:
    """When the person last spoke here: in this session, or in the one before unless they left it themselves."""
    newest = next(filter(is_request, conversation.newest_first()), None)
    if newest is not None:
        return note_of(newest).get("at", 0.0)
    session = conversation.stored.session
    before = next((each for each in await store.sessions(session.key, 2) if each.id != session.id), None)
    if before is None:
        return 0.0
    return session.started_at if before.end_reason == "reset" else before.last_active_at


def _known(conversation: Conversation, since: float) -> set[str]:
    """Rows that are already in the conversation, as far as they may be that young."""
    known = set()
    for message in conversation.newest_first():
        note = note_of(message)
        if note.get("at", since) < since:
            break
        known |= {note["reminded"]} if "reminded" in note else set()
    return known
