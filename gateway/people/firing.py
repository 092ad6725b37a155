"""What happens when a reminder is due, and the outcome of a scheduled prompt.

Firing is one step of the store: the row that is shown, or the prompt's item in its lane, together with the reminder's
next time. A second step, by another process or after a crash, changes nothing. So nothing needs to be claimed before,
and a fired reminder is delivered as surely as any row or item.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import structlog
from msgspec import Struct

from gateway.domain.chat import ChatAddress, Inbound, Outbound, OutboundKind, SessionKey
from gateway.domain.reminder import LATE, Firing, Reminder, asked, firing, judged, left_out
from gateway.people.pairing import Pairing
from gateway.people.reminders import Reminders, row_of_run, run_of, schedule_event
from gateway.runtime.clock import Clock
from gateway.runtime.errors import StoreUnavailable
from gateway.runtime.metrics import Counter
from gateway.runtime.points import Points
from gateway.runtime.structs import replace
from gateway.store.port import Store
from gateway.store.records import Arrival, InboxItem, ItemOutcome

log = structlog.get_logger(__name__)

LOOK_EVERY: Final = 1.0  # seconds; a look is one step into an index
_BATCH: Final = 100
_LOOKED_AT: Final = 200  # items that wait in a lane

REMINDERS: Final = Counter(
    name="reminders",
    text="Reminders and scheduled prompts that came due: fired, late, or skipped.",
    labels=("platform", "kind", "outcome"),
)
RUNS_FAILED: Final = Counter(name="schedules_failed", text="Scheduled prompts that failed.", labels=("platform",))

ONCE: Final = (
    "The scheduled prompt {number} failed. I will keep trying, but will not tell you again. /reminders shows the "
    "prompt, and /reminders cancel {number} ends it."
)
PAUSED: Final = (
    "I paused the scheduled prompt {number}, because it failed {failures} times in a row. /reminders resume {number} "
    "resumes this prompt, and /reminders cancel {number} ends it."
)

Shown = Sequence[tuple[OutboundKind, str]]


class ReminderFiring(Struct, frozen=True, kw_only=True):
    """Fires due reminders, in the process that looks first."""

    store: Store
    reminders: Reminders
    pairing: Pairing
    clock: Clock
    points: Points

    async def fire_due(self) -> int:
        """Fire everything that is due, as far as its chats have room. Returns how many fired here."""
        fired, limit = 0, _BATCH
        try:
            while True:
                now = self.clock.now()
                due = await self.store.due_reminders(now, limit)
                groups = await self._groups([await self._firing(each, now) for each in due])
                fired += sum(await asyncio.gather(*(self._fire(each, now) for each in groups)))
                if len(due) < limit:
                    return fired
                if sum(map(len, groups)) < len(due):
                    limit *= 2  # what waits for room must not hide what is due behind it
        except StoreUnavailable as error:
            log.error("reminders_wait", error=str(error))
            return fired

    async def _firing(self, reminder: Reminder, now: float) -> Firing:
        """Fire a reminder, in thought. A person who may not talk here any more is told nothing."""
        if not await self.pairing.may_be_told(reminder.source):
            return left_out(reminder, now)
        key = reminder.key
        if key.is_own and not ((tip := await self.store.tip(key)) and tip.message_count):
            # A chat that is empty, deleted or at rest is looked at by nobody.
            reminder = replace(reminder, key=key.owner, source=replace(reminder.source, thread=None))
        return firing(reminder, now, row_of_run(schedule_event(reminder, reminder.fired + 1)))

    async def _groups(self, fired: Sequence[Firing]) -> list[list[Firing]]:
        """What fires now, in the messages that say it. Where more is due in a chat than may wait there to be shown, the
        rest becomes one message for each conversation, and what finds no room stays due."""
        groups: list[list[Firing]] = [[each] for each in fired if not each.shown]
        chats: dict[ChatAddress, list[Firing]] = {}
        asking: set[SessionKey] = set()
        for each in fired:
            key = each.after.key
            if each.shown and each.after.kind == "ask":
                # Of the prompts of a conversation one waits in its lane: people's messages come right behind it.
                if key in asking or any(
                    item.inbound.kind == "schedule" for item in await self.store.waiting(key, _LOOKED_AT)
                ):
                    continue
                asking.add(key)
            if each.shown:
                chats.setdefault(replace(key.address, thread=None), []).append(each)
        for chat, firings in chats.items():
            groups += _within(firings, await self.reminders.room(chat))
        return groups

    async def _fire(self, group: Sequence[Firing], now: float) -> int:
        """Fire reminders that are said in one message, and say how many fired here."""
        fired = self.reminders.worded(group[0]) if group[0].shown else group[0]
        reminder = fired.after
        event = schedule_event(reminder, reminder.fired)
        rows: list[Outbound] = []
        also: Sequence[Firing] = ()
        if len(group) > 1:
            (fired, *also), rows = self.reminders.joined(group, row_of_run(event))
        elif fired.shown and reminder.kind == "say":
            rows = self.reminders.rows(fired.after)
        arrival = _arrival(fired, event, now) if fired.shown and reminder.kind == "ask" else None
        self.points("reminder.due")
        changed = await self.store.change_reminder(fired.after, rows, arrival, [each.after for each in also])
        self.points("reminder.fired")
        if not changed.first:
            return 0
        self.reminders.outbox.deliver(changed.outbound)
        for each in (fired, *also):
            outcome = "skipped" if not each.shown else "late" if each.delay >= LATE else "fired"
            REMINDERS.count(reminder.key.platform, reminder.kind, outcome)
        return 1 + len(also)

    async def judged(self, item: InboxItem, outcome: ItemOutcome, shown: Shown) -> Shown:
        """Note whether this run of a scheduled prompt failed, and return what its chat is shown: of failures in a row
        the first, and the one that pauses the prompt. The same run is noted once, however often it is tried."""
        if outcome not in ("answered", "failed", "dead"):
            return shown
        failed = outcome != "answered"
        reminder_id, run = run_of(item.inbound.event_id)

        def decide(present: Reminder) -> Reminder | None:
            after = judged(present, run, failed=failed, most=self.reminders.rules.failures)
            return None if after is present else after

        await self.reminders.change(item.key, reminder_id, decide)
        present = await self.store.reminder(item.key.address, reminder_id)
        if not failed:
            return shown
        RUNS_FAILED.count(item.key.platform)
        if present is None or not present.rule or present.judged != run:
            return shown
        facts = {"number": present.number, "failures": present.failures}
        if present.state == "paused":
            return [*shown, ("notice", PAUSED.format(**facts))]
        if present.failures == 1:
            return [*shown, ("notice", ONCE.format(**facts))]
        return [each for each in shown if each[0] != "error"]


def _within(firings: Sequence[Firing], room: int) -> list[list[Firing]]:
    """The messages for what is due in a chat that has room for so many."""
    if len(firings) <= room:
        return [[each] for each in firings]
    alone = [[each] for each in firings[: max(0, room - 1)]]
    conversations: dict[SessionKey, list[Firing]] = {}
    for each in firings[len(alone) :]:
        if each.after.kind == "say":
            conversations.setdefault(each.after.key, []).append(each)
    return [*alone, *list(conversations.values())[: max(0, room - len(alone))]]


def _arrival(fired: Firing, event: str, now: float) -> Arrival:
    reminder = fired.after
    inbound = Inbound(
        event_id=event,
        source=reminder.source,
        text=asked(fired, now),
        kind="schedule",
        own="" if reminder.origin else reminder.text,
        sent_at=now,
    )
    return Arrival(inbound=inbound, key=reminder.key, at=now)
