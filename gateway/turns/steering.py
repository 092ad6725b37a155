"""Steering: messages that a person sends during a turn, and that reach it from its lane."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import aclosing
from typing import TYPE_CHECKING, Literal

import structlog
from msgspec import Struct, field

from gateway.agent.conversation import Conversation
from gateway.agent.files.intake import FileIntake, Show
from gateway.agent.files.message import without_files
from gateway.domain.chat import Inbound, Source, readable
from gateway.domain.message import Message
from gateway.runtime.clock import Clock
from gateway.runtime.errors import NothingSaid, StoreUnavailable
from gateway.store.port import Store
from gateway.store.records import InboxItem
from gateway.turns.parts import following, joined, patience
from gateway.turns.reminded import reminded

if TYPE_CHECKING:
    from gateway.agent.plugged import Plugged

log = structlog.get_logger(__name__)

_MOST = 50  # items looked at between two steps
NOT_FETCHED = "which was not fetched: the turn was ended first"


class Steering(Struct, kw_only=True):
    """Steers the turn of one item. `takes_messages`: plain messages steer, too, not only /steer: those that wait when
    the turn begins, those that come before any step, or none. `alive` is called while files are fetched, `show` with
    their spoken words. `lets_in` is asked about each person whose words would enter the turn; `shut_out` ends the turn
    of somebody who may no longer talk here."""

    item: InboxItem
    store: Store
    files: FileIntake
    clock: Clock
    takes_messages: Literal["never", "at first", "always"]
    alive: Callable[[], None]
    show: Show
    lets_in: Callable[[Source], Awaitable[bool]]
    shut_out: Callable[[], None]
    plugged: Plugged | None = None
    _taken: set[str] = field(default_factory=set)
    _begun: bool = False  # before the first step the person was asked for just now

    async def __call__(self, conversation: Conversation) -> None:
        """Add the lane's messages for this turn to the conversation, up to the first item that needs its own turn."""
        if self._begun and not await self._may_talk(self.item.inbound.source):
            self.shut_out()
            return
        self._begun = True
        if waiting := await self._waiting(conversation):
            async with aclosing(self._messages(conversation, waiting)) as messages:
                async for parts, said, behind in messages:
                    if patience(parts[0], behind, self.clock.now()):
                        return  # its other parts may come before the next step
                    try:
                        message = await self.files.message(conversation, said, self.alive, self.show)
                    except NothingSaid:
                        continue  # its own turn ends without a word
                    message = await conversation.measured_aside(message)
                    self._take(conversation, parts, message, await reminded(self.store, conversation))
        if self.takes_messages == "at first":
            self.takes_messages = "never"

    async def put_aside(self, conversation: Conversation, stopped_at: float) -> bool:
        """Add the messages for this turn that came before a person stopped it (seconds since the epoch), without an
        answer. Returns whether there were any."""
        before = len(conversation.fresh.absorbed)
        async with aclosing(self._messages(conversation, await self._waiting(conversation))) as messages:
            async for parts, said, _ in messages:
                if parts[0].accepted_at > stopped_at:
                    break
                message = await conversation.measured_aside(without_files(self.item.key, said, NOT_FETCHED))
                self._take(conversation, parts, message)
        return len(conversation.fresh.absorbed) > before

    async def _waiting(self, conversation: Conversation) -> list[InboxItem]:
        """The lane's items that are not in this turn yet."""
        try:
            waiting = await self.store.waiting(self.item.key, _MOST, behind=self.item)
        except StoreUnavailable as error:
            log.warning("steering_skipped", error=str(error))  # the items wait in the lane all the same
            return []
        self._taken.update(conversation.fresh.absorbed)  # the parts of the turn's own message are in the lane still
        return [item for item in waiting if item.id not in self._taken] if waiting else []

    async def _messages(
        self, conversation: Conversation, waiting: list[InboxItem]
    ) -> AsyncGenerator[tuple[list[InboxItem], Inbound, list[InboxItem]]]:
        """Those of these items that are for this turn, up to the first that needs its own turn: each with the items
        that are its parts, and those after its first one."""
        while waiting:
            item, *behind = waiting
            parts = [item, *following(item, behind)]
            said = joined(item.inbound, [part.inbound for part in parts[1:]])
            if not await self._may_talk(said.source):
                waiting = [other for other in behind if other not in parts]
                continue  # its own turn refuses it
            if not self._is_for_this_turn(said) or await conversation.too_long(readable(said)):
                return  # a message that is too long is refused in its own turn, and spares this one
            if self.plugged is not None:
                heard = await self.plugged.message(conversation.stored.session, said)
                if heard.refusal:
                    return  # which its own turn tells
                said = heard.said
            yield parts, said, behind
            waiting = [other for other in behind if other not in parts]

    def _take(
        self, conversation: Conversation, parts: list[InboxItem], message: Message, before: Iterable[Message] = ()
    ) -> None:
        for each in (*before, message):
            conversation.add(each, self.clock.now())
        taken = [part.id for part in parts]
        conversation.absorb(taken)
        self._taken.update(taken)

    async def _may_talk(self, source: Source) -> bool:
        try:
            return await self.lets_in(source)
        except StoreUnavailable as error:
            log.warning("guest_book_not_read", error=str(error))  # a person who was let in stays
            return True

    def _is_for_this_turn(self, said: Inbound) -> bool:
        if said.kind == "steer":
            return True
        # A program wants an answer to each of its requests.
        plain = said.kind == "message" and said.command is None and said.terms is None
        return plain and self.takes_messages != "never" and bool(readable(said).strip())
