"""The service of reminders: people make, list, cancel and snooze them by command, by tool and by button.

A change begins with the reminder as it is now, and is repeated if someone else was first. The ids of a reminder and of
its rows are made from their causes, so a step that is repeated after a crash finds its own results.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from hmac import compare_digest
from typing import Final

from msgspec import Struct

from gateway.delivery.outbox import Outbox
from gateway.domain.chat import SCHEDULED, Button, ChatAddress, Inbound, Outbound, SessionKey, Source
from gateway.domain.recurrence import zone_called, zone_named
from gateway.domain.reminder import (
    LONGEST_TEXT,
    Firing,
    Reminder,
    ReminderKind,
    ReminderRules,
    WhenLate,
    cancelled,
    moved,
    notes_of,
    placed,
    put_off,
    resumed,
    shown,
    skipped,
    together,
)
from gateway.domain.when import When
from gateway.domain.wording import counted
from gateway.people.access import Access
from gateway.runtime.clock import Clock, Ids, lasting_id
from gateway.runtime.errors import UserError
from gateway.runtime.structs import replace
from gateway.store.insist import insist
from gateway.store.port import Store
from gateway.store.records import Changed, InboxItem

OVER_LISTED: Final = 10  # reminders that are over, in a list
_LONGEST_JOINED: Final = 3_000  # characters of reminders in one message
_ZONE: Final = "timezone"
_PRESS: Final = "remind"  # the beginning of a button's token
_SNOOZES: Final = {"10m": 600.0, "1h": 3_600.0}

NOT_YOURS: Final = "This reminder belongs to someone else, so I did nothing."
GONE: Final = "This reminder no longer exists, so I did nothing."
OVER: Final = "I cannot do that with this reminder at the moment. /reminders shows the reminder."
OVER_BEFORE: Final = "Reminder {number} is already over, so I did nothing."
TOO_MANY: Final = "You already have {most} here, and I cannot keep more. /reminders cancel <n> removes a reminder."
CHAT_FULL: Final = "{most} are waiting here, and I cannot keep more. Try again when some are over or cancelled."
TOO_OFTEN: Final = "This is too often. Leave at least {least} between two times."
EMPTY: Final = "Also say what the reminder is about, for example: /remind in 20 minutes tea"
TOO_LONG: Final = "A reminder may have at most {most:,} characters, but this text has {size:,}. Shorten it."
NO_ZONE: Final = (
    'There is no time zone "{name}". Zones are named after cities, for example Europe/Berlin or Asia/Tokyo.'
)
UNREACHED: Final = (
    "I can write to you here only for {hours} after your last message. If you write no message in that time, this "
    "reminder waits until you write."
)
NO_NUMBER: Final = "There is no reminder {number} here. /reminders lists your reminders."

Decide = Callable[[Reminder], Reminder | None]


def schedule_event(reminder: Reminder, run: int) -> str:
    """The event id of the time that a reminder fires for the `run`th time."""
    return f"{SCHEDULED}{reminder.id}:{run}"


def run_of(event_id: str) -> tuple[str, int]:
    """Return the reminder's id and the number of the run: the inverse of `schedule_event`."""
    _, reminder_id, run = event_id.split(":")
    return reminder_id, int(run)


def row_of_run(event_id: str) -> str:
    """Return the id of the row that shows the words of a run."""
    return lasting_id("o", event_id)


class Reminders(Struct, kw_only=True):
    """`zone` is the time zone of people who never said theirs."""

    store: Store
    outbox: Outbox
    access: Access
    clock: Clock
    ids: Ids
    rules: ReminderRules
    zone: str

    def of(self, item: InboxItem) -> PersonReminders:
        """Return the reminders of an item's conversation and person."""
        return PersonReminders(every=self, item=item)

    # -- time zones -------------------------------------------------------------------------

    async def own_zone(self, source: Source) -> str | None:
        """The time zone that a person said; None: they never did."""
        name = (await self.store.notes(notes_of(source))).get(_ZONE)
        return name if name and zone_named(name) else None

    async def set_zone(self, source: Source, said: str) -> str:
        """Keep a person's time zone, said by its name or its city's; returns its name. Raises UserError."""
        name = await asyncio.to_thread(zone_called, said)
        if name is None:
            raise UserError(NO_ZONE.format(name=said.strip()[:60]))
        await self.store.set_notes(notes_of(source), {_ZONE: name})
        return name

    # -- firing -----------------------------------------------------------------------------

    def worded(self, fired: Firing) -> Firing:
        """Return the firing with its text. Where there are no buttons, the text says how to snooze the reminder."""
        after = fired.after
        how = f"\n(/reminders snooze {after.number} 10m says it again later)"
        hint = "" if self.outbox.has_buttons(after.key.platform) else how
        return replace(fired, after=replace(after, said=f"{shown(fired)}{hint}"))

    async def room(self, to: ChatAddress) -> int:
        """How many more messages of reminders may wait to be shown in a chat."""
        return self.rules.waiting - await self.store.unasked(to)

    def joined(self, firings: Sequence[Firing], row_id: str) -> tuple[list[Firing], list[Outbound]]:
        """Return the first of these reminders of one conversation, and the one message that says them all. It has no
        buttons, and no later change of one of them changes it."""
        text, taken = together(firings, _LONGEST_JOINED)
        first = firings[0].after
        some = [replace(each, after=replace(each.after, shown_as=None)) for each in firings[:taken]]
        return some, self._composed(first, text, row_id)

    def rows(self, reminder: Reminder) -> list[Outbound]:
        """Return the rows that a reminder shows as it fires, with its buttons."""
        *first, last = self._composed(reminder, reminder.said, reminder.shown_as)
        return [*first, replace(last, buttons=_buttons(reminder))]

    # -- changing ---------------------------------------------------------------------------

    async def change(self, key: SessionKey, reminder_id: str, decide: Decide, said: str = "") -> Reminder | None:
        """Change a reminder by `decide`; the message of its last time then ends with `said`. None: the reminder is
        gone, or `decide` gives none."""
        while True:
            present = await self.store.reminder(key.address, reminder_id)
            after = decide(present) if present is not None else None
            if after is None:
                return None
            if (await self._put(after, self._edit(after, said) if said else [])).first:
                return after

    async def _put(self, after: Reminder, rows: Sequence[Outbound]) -> Changed:
        step = insist(lambda: self.store.change_reminder(after, rows), clock=self.clock, what="change_reminder")
        changed = await step
        self.outbox.deliver(changed.outbound)
        return changed

    def _edit(self, reminder: Reminder, said: str) -> list[Outbound]:
        """The row that takes the buttons away from the message of the last time."""
        if reminder.shown_as is None or reminder.kind != "say":
            return []
        *_, last = self._composed(reminder, f"{reminder.said}\n\n{said}")
        return [replace(last, edits=reminder.shown_as)]

    def _composed(self, reminder: Reminder, text: str, first_id: str | None = None) -> list[Outbound]:
        return self.outbox.compose(reminder.key, reminder.key.address, "reminder", text, first_id=first_id)

    # -- buttons ----------------------------------------------------------------------------

    def presses(self, inbound: Inbound) -> bool:
        """Whether a button is a reminder's."""
        return inbound.text.partition(" ")[0] == _PRESS

    async def pressed(self, inbound: Inbound) -> str:
        """Do what a button says. Returns a sentence for the person who pressed it."""
        _, verb, reminder_id, token = [*inbound.text.split(" "), "", "", ""][:4]
        reminder = await self.store.reminder(inbound.source.address, reminder_id)
        if reminder is None or not compare_digest(reminder.token.encode(), token.encode(errors="replace")):
            return GONE
        if not (reminder.belongs_to(inbound.source) or self.access.is_admin(inbound.source)):
            return NOT_YOURS
        if verb in _SNOOZES:
            return await self._snooze(reminder, self.clock.now() + _SNOOZES[verb])
        decide, said = _PRESSES.get(verb, (skipped, ""))
        after = await self.change(reminder.key, reminder.id, decide, said)
        if after is None:
            return OVER
        return said or f"The next time is {after.local(after.due_at or 0.0)}."

    async def _snooze(self, reminder: Reminder, until: float) -> str:
        said = f"Again at {reminder.local(until)}."
        later = await self.change(reminder.key, reminder.id, lambda each: _snoozed(each, until), said)
        if later is None:
            return OVER
        return (
            said
            if later.due_at == until
            else f"This reminder is already due before that time: {later.local(later.due_at or 0.0)}."
        )


def _cancelled(reminder: Reminder) -> Reminder | None:
    return cancelled(reminder) if reminder.is_open else None


def _snoozed(reminder: Reminder, until: float) -> Reminder | None:
    """A repeating reminder continues as before: it is never put off beyond its next time."""
    if reminder.state in ("cancelled", "paused"):
        return None
    if reminder.rule and reminder.due_at is not None and reminder.due_at <= until:
        return reminder.changed()
    return put_off(reminder, until)


_PRESSES: Final[dict[str, tuple[Decide, str]]] = {
    "done": (Reminder.changed, "✓ Done."),  # nothing changes but the text of its message
    "cancel": (_cancelled, "Cancelled."),
    "skip": (skipped, ""),
}


def _buttons(reminder: Reminder) -> tuple[tuple[Button, ...], ...]:
    def button(label: str, verb: str) -> Button:
        return Button(label=label, token=f"{_PRESS} {verb} {reminder.id} {reminder.token}")

    first = (button("Done", "done"), button("10 min", "10m"), button("1 hour", "1h"))
    if reminder.due_at is None:
        return (first,)
    return (first, (button("Skip next", "skip"), button("Cancel", "cancel")))


class PersonReminders(Struct, frozen=True, kw_only=True):
    """The reminders of an item's conversation and person, for commands and tools. A method that cannot do its work
    raises UserError."""

    every: Reminders
    item: InboxItem

    async def zone(self) -> str:
        return await self.every.own_zone(self.item.inbound.source) or self.every.zone

    async def set_zone(self, name: str) -> str:
        return await self.every.set_zone(self.item.inbound.source, name)

    def now(self) -> float:
        return self.every.clock.now()

    async def add(
        self,
        *,
        kind: ReminderKind,
        text: str,
        when: When,
        zone: str,
        when_late: WhenLate = "say",
        cause: str,
        origin: str = "",
    ) -> Reminder:
        every, item, now = self.every, self.item, self.now()
        zone, start = placed(when, zone)
        reminder = Reminder(
            id=lasting_id("r", item.key, item.inbound.event_id, cause, size=8),
            key=item.key,
            source=item.inbound.source,
            kind=kind,
            text=_checked(text),
            zone=zone,
            start=start,
            rule=str(when.rule or ""),
            when_late=when_late,
            due_at=when.due,
            settled_until=now,
            token=every.ids.new("t"),
            made_by=item.inbound.event_id,
            made_at=now,
            origin=origin,
        )
        self._check_often(reminder)
        rules = every.rules
        stored = await every.store.add_reminder(reminder, rules.per_person, rules.per_chat)
        if stored is None:
            mine = sum(each.is_open and each.belongs_to(item.inbound.source) for each in await self.listed())
            if mine >= rules.per_person:
                raise UserError(TOO_MANY.format(most=counted(rules.per_person, "reminder")))
            raise UserError(CHAT_FULL.format(most=counted(rules.per_chat, "reminder")))
        return stored

    def _check_often(self, reminder: Reminder) -> None:
        rule, least = reminder.recurrence, self.every.rules.least_minutes
        if rule is not None and rule.least_seconds < 60.0 * least:
            raise UserError(TOO_OFTEN.format(least=counted(least, "minute")))

    def unreached(self, made: Reminder) -> str:
        reach = self.every.outbox.reach(self.item.key.platform)
        if reach is None or (not made.rule and (made.due_at or 0.0) < self.now() + reach):
            return ""
        return UNREACHED.format(hours=counted(round(reach / 3_600.0), "hour"))

    async def listed(self) -> Sequence[Reminder]:
        return await self.every.store.reminders(self.item.key, OVER_LISTED)

    async def shown(self, reminders: Sequence[Reminder]) -> dict[str, Outbound]:
        """The rows of their last times, by id."""
        ids = [each.shown_as for each in reminders if each.shown_as]
        rows = await self.every.store.rows(self.item.key.address, ids) if ids else []
        return {row.id: row for row in rows}

    async def cancel(self, number: int) -> Reminder:
        return await self._change(number, _cancelled, "Cancelled.")

    async def snooze(self, number: int, until: float) -> Reminder:
        return await self._change(number, lambda each: _snoozed(each, until))

    async def skip(self, number: int) -> Reminder:
        return await self._change(number, skipped)

    async def resume(self, number: int) -> Reminder:
        now = self.now()
        return await self._change(number, lambda each: resumed(each, now) if each.state == "paused" else None)

    async def reword(self, number: int, text: str | None, when: When | None, zone: str, origin: str = "") -> Reminder:
        worded, now = None if text is None else _checked(text), self.now()

        def decide(each: Reminder) -> Reminder | None:
            if not each.is_open:
                return None
            after = each.changed(text=worded, origin=origin) if worded else each.changed()
            if when is None:
                return after
            self._check_often(after := moved(after, when, zone, now))
            return after

        return await self._change(number, decide)

    async def _change(self, number: int, decide: Decide, said: str = "") -> Reminder:
        found = next((each for each in await self.listed() if each.number == number), None)
        source = self.item.inbound.source
        if found is None:
            raise UserError(NO_NUMBER.format(number=number))
        if not (found.belongs_to(source) or self.every.access.is_admin(source)):
            raise UserError(NOT_YOURS)
        after = await self.every.change(self.item.key, found.id, decide, said)
        if after is None:
            raise UserError(OVER if found.is_open else OVER_BEFORE.format(number=number))
        return after


def _checked(text: str) -> str:
    text = text.strip()
    if not text:
        raise UserError(EMPTY)
    if len(text) > LONGEST_TEXT:
        raise UserError(TOO_LONG.format(most=LONGEST_TEXT, size=len(text)))
    return text
