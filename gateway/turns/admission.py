"""Admission: how many messages are taken at once, from whom, and what becomes of those that are too many.

A lane has so many places. Where several people share one, nobody's messages take more than a part of them, and nobody
has an endless row of commands answered beside it. Who finds no place waits at the platform, or is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from msgspec import Struct, field

from gateway.commands.base import CommandRegistry
from gateway.delivery.outbox import Outbox
from gateway.domain.adapter import Accepted, Adapter
from gateway.domain.chat import SessionKey, is_shared
from gateway.runtime.clock import Clock
from gateway.runtime.errors import StoreUnavailable
from gateway.runtime.structs import replace
from gateway.store.port import InboxStore
from gateway.store.records import Arrival, Receipt
from gateway.turns.notices import Quota, Throttle

# Seconds for which a full lane counts as full: so short that nobody has read an answer of it meanwhile and writes anew.
_FULL_FOR: Final = 1.0
# Commands beside the lanes that are answered in a minute: as many messages as a group on Telegram is shown in one. More
# answers would only hold up everything else that the chat is to be shown.
_ANSWERED: Final = 20
_MINUTE: Final = 60.0
_SHARES: Final = 4  # where several people share a lane, nobody's messages take more than one place in so many
_BYPASSES: Final = attrgetter("bypass")

FULL = (
    "Too many messages are waiting here, so I did not take yours. Send your message again when I have answered a few."
)


class Admission(Struct, kw_only=True):
    """Bounds what waits in lanes of `cap` places, and what is answered beside them. `_full` notes when each key was
    last told that its lane is full. `_overflowed` has the keys whose adapter was told so, `_crowded` shared lanes in
    which somebody may have their share, and `_answered` counts a key's commands beside its lane."""

    store: InboxStore
    outbox: Outbox
    registry: CommandRegistry
    cap: int
    clock: Clock
    _full: Throttle = field(default_factory=Throttle)
    _overflowed: Throttle = field(default_factory=lambda: Throttle(every=_FULL_FOR))
    _crowded: set[SessionKey] = field(default_factory=set)
    _answered: Quota = field(default_factory=lambda: Quota(most=_ANSWERED, seconds=_MINUTE))
    _share: int = 1  # places of a lane for one of several people

    def __post_init__(self) -> None:
        self._share = max(1, self.cap // _SHARES)

    async def admitted(self, adapter: Adapter, arrivals: list[Arrival]) -> tuple[Sequence[Arrival], Sequence[Arrival]]:
        """The arrivals to be stored, and those that are too many."""
        too_many: list[Arrival] = []
        if not adapter.limits.pauses_when_full and any(map(_BYPASSES, arrivals)):
            arrivals, too_many = self._within_quota(arrivals)
        if self._crowded or len(arrivals) > self._share:
            arrivals, beyond = await self._within_share(arrivals)
            too_many += beyond
        return arrivals, too_many

    def note(self, arrival: Arrival, receipt: Receipt) -> None:
        """An arrival was stored, or found no room."""
        if arrival.bypass and receipt.status == "new" and self._is_counted(arrival):
            self._answered.take(arrival.key, self.clock.monotonic())
        if receipt.waiting < self._share:
            self._crowded.discard(arrival.key)
        elif is_shared(arrival.key, arrival.inbound.source):
            self._crowded.add(arrival.key)

    async def overflowed(self, adapter: Adapter, arrival: Arrival) -> Accepted:
        """The answer about a message whose lane is full."""
        answer = await self.turned_away(adapter, arrival)
        if answer.status == "refused":
            self._overflowed.due(arrival.key, self.clock.monotonic())
            answer = replace(answer, full_for=_FULL_FOR)
        return answer

    def _within_quota(self, arrivals: Sequence[Arrival]) -> tuple[list[Arrival], list[Arrival]]:
        """Arrivals to be stored, and those of a flood of commands that no lane bounds, because they do not wait in
        one. An adapter that stops reading while a lane is full needs no such limit."""
        now, coming = self.clock.monotonic(), dict[SessionKey, int]()
        taken: list[Arrival] = []
        too_many: list[Arrival] = []
        for arrival in arrivals:
            if arrival.bypass and self._is_counted(arrival):
                coming[arrival.key] = coming.get(arrival.key, 0) + 1
                if coming[arrival.key] > self._answered.left(arrival.key, now):
                    too_many.append(arrival)
                    continue
            taken.append(arrival)
        return taken, too_many

    async def _within_share(self, arrivals: Sequence[Arrival]) -> tuple[list[Arrival], list[Arrival]]:
        """Arrivals to be stored, and those of people whose messages take their share of a lane that others speak in,
        too."""
        shared = [each for each in arrivals if not each.bypass and is_shared(each.key, each.inbound.source)]
        places, known = Counter[tuple[SessionKey, str]](), set[str]()
        for key in {each.key for each in shared}:
            for item in await self.store.waiting(key, self.cap):
                places[key, item.inbound.source.user] += 1
                known.add(item.inbound.event_id)
        too_many: dict[str, Arrival] = {}
        for arrival in shared:
            who = arrival.key, arrival.inbound.source.user
            if arrival.inbound.event_id in known:
                continue  # handed over again
            if places[who] >= self._share:
                too_many[arrival.inbound.event_id] = arrival
            places[who] += 1
        return [each for each in arrivals if each.inbound.event_id not in too_many], [*too_many.values()]

    def _is_counted(self, arrival: Arrival) -> bool:
        """Whether a command beside the lane only shows something. Commands that decide or stop something are never
        counted."""
        call = arrival.inbound.command
        command = self.registry.get(call.name) if call else None
        return command is not None and not command.urgent

    async def turned_away(self, adapter: Adapter, arrival: Arrival) -> Accepted:
        """The answer about a message without room: it waits at its platform, or is refused."""
        event = arrival.inbound.event_id
        if adapter.limits.pauses_when_full or arrival.inbound.can_wait:
            return Accepted(event_id=event, status="full")
        await self._refuse(arrival)
        return Accepted(event_id=event, status="refused", told=FULL)

    async def _refuse(self, arrival: Arrival) -> None:
        """There is no room for a message. Its chat is told so once in a while: a sentence for each of a thousand
        messages would hold up everything else that the chat is to be shown. A message of which it is not told leaves
        nothing in the store: that would hold up everybody else, and fill the disk."""
        if not self._full.due(arrival.key, self.clock.monotonic()):
            return
        (notice, *_) = self.outbox.rows(arrival, "notice", FULL)
        try:
            self.outbox.deliver(await self.store.refuse(arrival, notice))
        except StoreUnavailable:
            self._full.forget(arrival.key)
            raise

    def rest(self, key: SessionKey) -> float:
        """Seconds for which a lane that took no more rests before its next turn."""
        return self._overflowed.left(key, self.clock.monotonic()) if self._overflowed.told else 0.0
