"""The reply of a turn while it grows, and the line in its place that says why there is none yet."""

from __future__ import annotations

from msgspec import Struct

from gateway.agent.conversation import Conversation
from gateway.delivery.drafts import Draft
from gateway.delivery.outbox import Outbox
from gateway.domain.adapter import CanStream
from gateway.domain.chat import Outbound
from gateway.runtime.clock import Clock
from gateway.runtime.tasks import best_effort
from gateway.store.records import InboxItem, Lease
from gateway.turns.limits import TurnTime

STANDS_IN = "I am still working: {doing}, {seconds:.0f} s so far. /stop ends my work."
PAUSES = "The model did not answer, so I try again in {pause:.0f} s{so_far}. /stop ends my work."
SO_FAR = " ({seconds:.0f} s so far)"
TOOK = "My answer took {seconds:.0f} s."


class GrowingReply(Struct, kw_only=True):
    """The agent's `Reply` for the turn of one item. It is stored under `lease` with this `id`."""

    item: InboxItem
    time: TurnTime
    lease: Lease | None
    id: str
    outbox: Outbox
    clock: Clock
    conversation: Conversation | None = None  # that the reply belongs to, once it is known
    stream: CanStream | None = None  # the adapter, if it takes pieces of replies
    _draft: Draft | None = None
    _so_far: str = ""  # the reply's words
    _stands_in: bool = False  # a line may stand in the place of the reply

    def begin(self) -> None:
        """From now on, say in the reply's place why a long wait is long, if the platform can show that."""
        if self.lease is not None and self.outbox.grows(self.item.inbound.source.platform):
            self._stands_in = True
            self.outbox.stand_ins.call(self.item.id, self._stand_in_again)

    async def end(self) -> None:
        """Stop showing the reply. Afterwards it is stored what is shown."""
        self.lease = None
        if self._stands_in:
            self.outbox.stand_ins.take_back(self.item.id)
            self.outbox.first_looks.take_back(self.id)
        if self._draft is not None:
            await self._draft.end()

    async def text(self, so_far: str) -> None:
        """Show the reply as it grows, if the platform can."""
        self.time.alive()
        begins, self._so_far = not self._so_far, so_far
        if self._draft is not None:
            self._draft.show(so_far)
        elif begins and self._stands_in:
            self.outbox.first_looks.call(self.id, self._show)
        if self.stream is not None:
            source, session = self.item.inbound.source, self.conversation.stored.session if self.conversation else None
            reply = Outbound(
                id=self.id,
                key=self.item.key,
                to=source.address,
                kind="reply",
                text=so_far,
                session_id=session.id if session else None,
                answers=self.item.inbound.event_id,
            )
            if not await best_effort(self.stream.show_partial(reply), what="show_partial"):
                self.stream = None

    async def set_aside(self) -> str:
        """End the reply with what is shown; the next words begin another message."""
        if self._draft is not None:
            await self._draft.end()
            self.lease, self._draft = self._draft.lease, None
        self.outbox.first_looks.take_back(self.id)
        said_as, self.id, self._so_far = self.id, self.outbox.new_id(), ""
        return said_as

    def _show(self) -> None:
        self._open_draft()
        if self._draft is not None:
            self._draft.show(self._so_far)

    def _open_draft(self) -> None:
        if self._draft is None and self.lease is not None:
            self._draft, self.lease = self.outbox.draft(self.lease, self.item, self.id), None

    # -- a long wait ------------------------------------------------------------------------

    def _stand_in_again(self) -> None:
        self.stand_in()
        self.outbox.stand_ins.call(self.item.id, self._stand_in_again)

    def stand_in(self) -> None:
        """Until there is a reply, show in its place the reason why. The reply then replaces the line."""
        if self._so_far or not self._stands_in or self.time.turn.phase == "waiting for your yes or no":
            return
        self._open_draft()
        if self._draft is not None:
            now = self.clock.monotonic()
            seconds, pause = now - self.time.turn.started_at, self.time.turn.pause(now)
            so_far = SO_FAR.format(seconds=seconds) if seconds >= 1 else ""
            line = PAUSES.format(pause=pause, so_far=so_far) if pause >= 1 else ""
            self._draft.stand_in(line or STANDS_IN.format(doing=self.time.turn.doing, seconds=seconds))

    def standing_in(self) -> str:
        """The text that may stay in place of such a line; "" if there is no such line."""
        if self._draft is None or self._so_far:
            return ""
        return TOOK.format(seconds=self.clock.monotonic() - self.time.turn.started_at)
