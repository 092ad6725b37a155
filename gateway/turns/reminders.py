"""The sweep for due reminders, and the outcome of a scheduled prompt.

Firing is one step of the store: the row that is shown, or the prompt's item in its lane, together with the reminder's
next time. A step that comes second, of another process or after a crash, changes nothing. So nothing is claimed
before, and a fired reminder is delivered as surely as any row or item."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from gateway.domain.chat import Inbound, OutboundKind
from gateway.domain.reminder import LATE, Firing, Reminder, asked, firing, judged, left_out
from gateway.people.pairing import Pairing
from gateway.people.reminders import Reminders, row_of_run, run_of, schedule_event
from gateway.runtime.clock import Clock
from gateway.runtime.errors import StoreUnavailable
from gateway.runtime.metrics import Counter
from gateway.runtime.points import Points
from gateway.store.port import Store
from gateway.store.records import Arrival, InboxItem, ItemOutcome

log = structlog.get_logger(__name__)

LOOK_EVERY: Final = 1.0  # seconds; a look is one step into an index
_BATCH: Final = 100

REMINDERS: Final = Counter(
    name="reminders",
    text="Reminders and scheduled prompts whose time came: fired, late, or skipped.",
    labels=("platform", "kind", "outcome"),
)
RUNS_FAILED: Final = Counter(name="schedules_failed", text="Scheduled prompts that failed.", labels=("platform",))

ONCE: Final = (
    "This was the scheduled prompt {number}. I say only once that it fails, and go on trying; /reminders shows it, "
    "/reminders cancel {number} ends it."
)
PAUSED: Final = (
    "I paused the scheduled prompt {number}, because it failed {failures} times in a row. /reminders resume {number} "
    "goes on with it, /reminders cancel {number} ends it."
)

Shown = Sequence[tuple[OutboundKind, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReminderSweep:
    """Fires due reminders, in the process that looks first."""

    store: Store
    reminders: Reminders
    pairing: Pairing
    clock: Clock
    points: Points

    async def sweep(self) -> int:
        """Fire all that is due. Returns how many fired here."""
        fired = 0
        try:
            while True:
                now = self.clock.now()
                due = await self.store.due_reminders(now, _BATCH)
                fired += sum(await asyncio.gather(*(self._fire(each, now) for each in due)))
                if len(due) < _BATCH:
                    return fired
        except StoreUnavailable as error:
            log.error("reminders_wait", error=str(error))
            return fired

    async def _fire(self, reminder: Reminder, now: float) -> bool:
        """Fire a reminder, and say whether it fired here. A person who may not talk here any more is told nothing."""
        event = schedule_event(reminder, reminder.fired + 1)
        if await self.pairing.lets_in(reminder.source):
            fired = self.reminders.worded(firing(reminder, now, row_of_run(event)))
        else:
            fired = left_out(reminder, now)
        rows = self.reminders.rows(fired.after) if fired.shown and reminder.kind == "say" else []
        arrival = _arrival(fired, event, now) if fired.shown and reminder.kind == "ask" else None
        self.points("reminder.due")
        changed = await self.store.change_reminder(fired.after, rows, arrival)
        self.points("reminder.fired")
        if changed.first:
            self.reminders.outbox.deliver(changed.outbound)
            outcome = "skipped" if not fired.shown else "late" if fired.delay >= LATE else "fired"
            REMINDERS.count(reminder.key.platform, reminder.kind, outcome)
        return changed.first

    async def judged(self, item: InboxItem, outcome: ItemOutcome, shown: Shown) -> Shown:
        """Note whether a run of a scheduled prompt failed, and return what its chat is shown: of failures in a row the
        first, and the one that pauses the prompt. The same run is noted once, however often it is tried. Nothing
        changes for other items."""
        if item.inbound.kind != "schedule" or outcome not in ("answered", "failed", "dead"):
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


def _arrival(fired: Firing, event: str, now: float) -> Arrival:
    """The item that runs a prompt in the lane of its conversation."""
    reminder = fired.after
    inbound = Inbound(
        event_id=event,
        source=reminder.source,
        text=asked(fired, now),
        kind="schedule",
        own=reminder.text,
        sent_at=now,
    )
    return Arrival(inbound=inbound, key=reminder.key, at=now)
