"""Updates on their way to the bot, as `getUpdates` gives them out.

Source: https://core.telegram.org/bots/api#getting-updates and the public source of the Bot API server. An update is
kept until an offset beyond it is asked for, but at most 24 hours (a press of a button: 150 seconds).
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gateway.runtime.clock import Clock
from tests.emulators.telegram.refusals import Refusal, conflict

DAY: Final = 86_400.0
LONGEST_POLL: Final = 50
KINDS: Final = re.findall(
    r"\w+",
    "message edited_message channel_post edited_channel_post inline_query chosen_inline_result callback_query "
    "shipping_query pre_checkout_query poll poll_answer my_chat_member chat_member chat_join_request chat_boost "
    "removed_chat_boost message_reaction message_reaction_count business_connection business_message "
    "edited_business_message deleted_business_messages purchased_paid_media managed_bot guest_message",
)
ON_REQUEST: Final = frozenset({"chat_member", "message_reaction", "message_reaction_count"})
BY_DEFAULT: Final = frozenset(KINDS) - ON_REQUEST
LIFETIMES: Final = {"callback_query": 150.0, "shipping_query": 150.0, "pre_checkout_query": 150.0}
_FUTURE: Final = 10  # an offset further than this beyond the last update is not believed


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """One update. `lane`: whoever delivers several at once keeps the order within each."""

    id: int
    kind: str
    body: dict[str, Any]
    expires: float
    lane: int

    def as_json(self) -> dict[str, Any]:
        """`Update`."""
        return {"update_id": self.id, self.kind: self.body}


class UpdateQueue:
    """The updates that the bot has not confirmed yet, and the one poll that may wait for more."""

    def __init__(self, clock: Clock, *, first_id: int) -> None:
        self.allowed: frozenset[str] = BY_DEFAULT
        self.on_new: Callable[[], None] = lambda: None
        self._clock = clock
        self._next = first_id
        self._pending: deque[Update] = deque()
        self._poll: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        self._expire()
        return len(self._pending)

    @property
    def polled(self) -> bool:
        """Somebody waits for more."""
        return self._poll is not None

    def put(self, kind: str, body: dict[str, Any], *, lane: int) -> Update | None:
        """Queue an update; None if the bot does not want its kind."""
        if kind not in self.allowed:
            return None
        expires = self._clock.monotonic() + LIFETIMES.get(kind, DAY)
        update = Update(id=self._next, kind=kind, body=body, expires=expires, lane=lane)
        self._next += 1
        self._pending.append(update)
        if self._poll and not self._poll.done():
            self._poll.set_result(None)
        self.on_new()
        return update

    def allow(self, kinds: Any) -> None:
        """Take the bot's wishes for kinds of updates: a list of kinds, an empty one for the default. A value that is
        no list changes nothing, and unknown kinds are passed over. What is no list changes nothing, and unknown kinds
        are passed over."""
        if isinstance(kinds, list):
            known = frozenset(str(kind) for kind in kinds) & frozenset(KINDS)
            self.allowed = known or BY_DEFAULT

    def clear(self) -> None:
        """Forget everything that waits."""
        self._pending.clear()

    def waiting(self) -> Sequence[Update]:
        """All that waits, oldest first."""
        self._expire()
        return tuple(self._pending)

    def confirm(self, update_id: int) -> None:
        """Forget one update."""
        self._pending = deque(update for update in self._pending if update.id != update_id)

    async def get(self, offset: int, limit: int, wait: float) -> list[Update]:
        """`getUpdates`; waits up to `wait` seconds for one. Raises the 409 if another poll takes over meanwhile."""
        found = self._take(offset, limit)
        if found or wait <= 0:
            return found
        self.interrupt(
            conflict("terminated by other getUpdates request; make sure that only one bot instance is running")
        )
        self._poll = poll = asyncio.get_running_loop().create_future()
        try:
            async with self._clock.limit(wait):
                await poll
        except TimeoutError:
            pass
        finally:
            if self._poll is poll:
                self._poll = None
        return self._take(offset, limit)

    def interrupt(self, refusal: Refusal) -> None:
        """End the poll that waits, if one does, with a refusal."""
        if self._poll and not self._poll.done():
            self._poll.set_exception(refusal)

    def _take(self, offset: int, limit: int) -> list[Update]:
        """Confirm what lies before the offset; what comes next. A negative offset counts from the end."""
        self._expire()
        if offset < 0:
            while len(self._pending) > -offset:
                self._pending.popleft()
        elif offset <= self._next + _FUTURE:
            while self._pending and self._pending[0].id < offset:
                self._pending.popleft()
        return [self._pending[index] for index in range(min(limit, len(self._pending)))]

    def _expire(self) -> None:
        now = self._clock.monotonic()
        if any(update.expires <= now for update in self._pending):
            self._pending = deque(update for update in self._pending if update.expires > now)
