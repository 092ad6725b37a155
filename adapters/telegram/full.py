"""Messages that a full lane would refuse, told from their updates: to store them costs more than to refuse them, and
who writes a thousand a second must not hold up the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct, field

from adapters.telegram.codec import without_mention
from adapters.telegram.updates import Update
from gateway.domain.adapter import Accepted
from gateway.domain.chat import Inbound
from gateway.runtime.clock import Clock

_REMEMBERED: Final = 10_000  # writers
_LONGEST_YES: Final = 8  # characters of a word that answers a question

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

    def refuses(self, update: Update, username: str) -> bool:
        """Say whether an update brings plain words of such a writer to the bot of this name."""
        message = update.message
        if not self._until or message is None or message.migrate_to_chat_id or message.migrate_from_chat_id:
            return False
        writer = message.sender_chat or message.writer
        if writer is None:
            return False
        place = str(message.chat.id), message.thread, str(writer.id)
        if self._until.get(place, 0.0) <= self.clock.monotonic():
            return False
        said = without_mention(message.text or message.caption, username)
        return not said.startswith("/") and len(said) > _LONGEST_YES
