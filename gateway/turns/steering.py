"""Steering: messages that a person sends while a turn runs, and that reach it from its lane."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from gateway.agent.conversation import Conversation
from gateway.agent.files.intake import FileIntake
from gateway.domain.chat import Inbound, readable
from gateway.runtime.clock import Clock
from gateway.runtime.errors import StoreUnavailable
from gateway.store.port import Store
from gateway.store.records import InboxItem
from gateway.turns.parts import following, joined, patience

log = structlog.get_logger(__name__)

_MOST = 50  # items looked at between two steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Steering:
    """Steers the turn of one item. `takes_messages`: plain messages steer, too, not only those by /steer.
    `alive` is called while files are fetched."""

    item: InboxItem
    store: Store
    files: FileIntake
    clock: Clock
    takes_messages: bool
    alive: Callable[[], None]
    _taken: set[str] = field(default_factory=set)

    async def __call__(self, conversation: Conversation) -> None:
        """Add the lane's messages for this turn to the conversation, up to the first item that needs a turn of its
        own."""
        try:
            waiting = await self.store.waiting(self.item.key, _MOST)
        except StoreUnavailable as error:
            log.warning("steering_skipped", error=str(error))  # the items wait in the lane all the same
            return
        self._taken.update(conversation.absorbed)  # the parts of the turn's own message are in the lane still
        waiting = [item for item in waiting if item.id not in self._taken]
        while waiting:
            item, *behind = waiting
            if patience(item, behind, self.clock.now()):
                return  # its other parts may come before the next step
            parts = following(item, behind)
            said = joined(item.inbound, [part.inbound for part in parts])
            if not self._is_for_this_turn(said) or conversation.too_long(readable(said)):
                return  # a message that is too long is refused in its own turn, and spares this one
            message = await self.files.message(item.key, said, conversation.spec, self.alive)
            conversation.add(message, self.clock.now())
            taken = [item.id, *(part.id for part in parts)]
            conversation.absorbed += taken
            self._taken.update(taken)
            waiting = [other for other in behind if other.id not in self._taken]

    def _is_for_this_turn(self, said: Inbound) -> bool:
        if said.kind == "steer":
            return True
        plain = said.kind == "message" and said.command is None
        return plain and self.takes_messages and bool(readable(said).strip())
