"""Messages that a full lane would refuse, told from their raw JSON: to read them costs more than to refuse them, and
who writes a thousand a second must not hold up the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import Struct, field

from adapters.telegram.codec import without_mention
from gateway.domain.adapter import Accepted
from gateway.domain.chat import Inbound
from gateway.runtime.clock import Clock

_REMEMBERED: Final = 10_000  # writers
_LONGEST_YES: Final = 8  # characters of a word that answers a question
_SERVICE: Final = ("migrate_to_chat_id", "migrate_from_chat_id")  # the chat's own messages, which have a writer, too

_Writer = tuple[str, str | None, str]  # chat, topic, person


class FullLanes(Struct, kw_only=True):
    """The writers whose plain words are refused for a moment. Their writers were told; what may have to reach a turn
    that runs, a command or a yes or no, is never refused here."""

    clock: Clock
    _until: dict[_Writer, float] = field(default_factory=dict)  # monotonic

    def note(self, batch: Iterable[Inbound], accepted: Iterable[Accepted]) -> None:
        """Remember the writers of those that met a full lane."""
        full = {each.event_id: each.full_for for each in accepted if each.full_for}
        if not full:
            return
        now = self.clock.monotonic()
        if len(self._until) > _REMEMBERED:
            self._until = {writer: until for writer, until in self._until.items() if until > now}
        for inbound in batch:
            if inbound.event_id in full:
                source = inbound.source
                self._until[source.chat, source.thread, source.user] = now + full[inbound.event_id]

    def refuses(self, update: Any, username: str) -> bool:
        """Say whether an update, as Telegram sent it, brings plain words of such a writer to the bot of this name."""
        if not self._until:
            return False
        message = update.get("message") if isinstance(update, dict) else None
        if not isinstance(message, dict) or any(name in message for name in _SERVICE):
            return False
        writer = _writer(message)
        if writer is None or self._until.get(writer, 0.0) <= self.clock.monotonic():
            return False
        words = message.get("text") or message.get("caption") or ""
        if not isinstance(words, str):
            return False
        said = without_mention(words, username)
        return not said.startswith("/") and len(said) > _LONGEST_YES


def without_refused(updates: Sequence[Any], lanes: FullLanes, username: str) -> list[Any]:
    """The updates that are worth reading. The last keeps its number, which tells Telegram how far this has come."""
    kept = [update for update in updates if not lanes.refuses(update, username)]
    if updates and (not kept or kept[-1] is not updates[-1]):
        kept.append({"update_id": updates[-1]["update_id"]})
    return kept


def _writer(message: dict[str, Any]) -> _Writer | None:
    chat, person = message.get("chat"), message.get("sender_chat") or message.get("from")
    if not isinstance(chat, dict) or not isinstance(person, dict):
        return None
    topic = message.get("message_thread_id") if message.get("is_topic_message") else None
    return str(chat.get("id")), str(topic) if topic else None, str(person.get("id"))
