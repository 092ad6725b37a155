"""Reminders and schedules, and the steps of their lives.

A reminder is one immutable value with a version. Each change gives the next version, which a store accepts only in
place of the version before. So if two processes fire a reminder, or a sweep fires it while a person cancels it, one is
first and the other changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, Literal

from msgspec import Struct
from pydantic import Field

from gateway.domain.chat import SessionKey, Source, speaker
from gateway.domain.recurrence import MOST_COUNTED, Moments, Rule, local_of, rule_of, zone_named
from gateway.domain.settings import Count, Section, SpendCap
from gateway.domain.when import When
from gateway.domain.wording import counted, lasting
from gateway.runtime.structs import replace

ReminderKind = Literal["say", "ask"]
ReminderState = Literal["waiting", "paused", "done", "missed", "cancelled"]
WhenLate = Literal["say", "skip"]

LATE: Final = 120.0  # seconds behind its time, from which on a reminder says that it is late
LONGEST_TEXT: Final = 1_500  # characters: one message on every platform
TOGETHER: Final = "{count} reminders were due at once:"
_SHOWN: Final = 80  # of a text in a list


class ReminderRules(Section):
    """`reminders` limits reminders (/remind), and prompts that run at set times (/schedule)."""

    per_person: Count = Field(100, description="how many one person may have in a chat")
    per_chat: Count = Field(300, description="how many a chat may have")
    least_minutes: Count = Field(5, description="the shortest time between repeats")
    waiting: Count = Field(5, description="how many may wait in a chat; more are combined in one message")
    budget_usd: SpendCap | None = Field(0.5, description="what one run of a scheduled prompt may cost; null: no limit")
    failures: Count = Field(3, description="a scheduled prompt pauses after this many failures in a row")


class Reminder(Struct, frozen=True, kw_only=True):
    """A text to be told (`say`) or a prompt for the model (`ask`), at a time that a person chose.

    `source` is where it was asked for, and by whom; `made_by` the event id of that message. `number` is what people
    call it, counted within the key by its store. `start` is the naive local time, in the time zone `zone`, of the only
    or first moment. `due_at`: when it fires next (seconds since the epoch), None where nothing is to come; moments of
    its rule up to `settled_until` are over. `fired` counts how often it fired; `shown_as` is the id of the row of the
    last time, and `said` that row's text. `failures`: runs of a prompt that failed in a row, up to the run of the
    number `judged`. `token` stands on its buttons. `parked`: its chat is closed, so it waits until somebody writes
    there; the store says so. `origin`: whose words the text is, where the model read it somewhere; "" for a person's.
    """

    id: str
    key: SessionKey
    source: Source
    kind: ReminderKind
    text: str
    zone: str
    start: str
    rule: str = ""
    when_late: WhenLate = "say"
    due_at: float | None
    settled_until: float
    state: ReminderState = "waiting"
    token: str
    made_by: str
    made_at: float
    fired: int = 0
    fired_at: float | None = None
    shown_as: str | None = None
    said: str = ""
    failures: int = 0
    judged: int = 0
    version: int = 1
    number: int = 0
    parked: bool = False
    origin: str = ""

    @property
    def is_open(self) -> bool:
        """Whether the reminder may still fire."""
        return self.state in ("waiting", "paused")

    @property
    def recurrence(self) -> Rule | None:
        """Return the reminder's rule; None: it fires once."""
        return rule_of(self.rule, self.local_start) if self.rule else None

    @property
    def often(self) -> str:
        """Return the rule in words; "": it fires once."""
        rule = self.recurrence
        return rule.said if rule is not None else ""

    @property
    def timetable(self) -> Moments | None:
        """The moments of its rule."""
        rule = self.recurrence
        return None if rule is None else rule.table(self.local_start, zone_named(self.zone) or UTC)

    @property
    def local_start(self) -> datetime:
        """`start` as a time."""
        return datetime.fromisoformat(self.start)

    @property
    def brief(self) -> str:
        """Return the text in one line of a list, and whose words it is."""
        flat = " ".join(self.text.split())
        return f"{flat if len(flat) <= _SHOWN else f'{flat[: _SHOWN - 1]}…'}{self.credit}"

    @property
    def credit(self) -> str:
        """Whose words the text is, to be put after it; "" for a person's."""
        return f" (the words of {self.origin})" if self.origin else ""

    def local(self, moment: float) -> str:
        """A moment in its time zone."""
        return written(moment, self.zone)

    def changed(self, **changes: object) -> Reminder:
        """The next version."""
        return replace(self, version=self.version + 1, **changes)  # type: ignore[arg-type]

    def belongs_to(self, source: Source) -> bool:
        """Whether this speaker made the reminder."""
        return (source.platform, source.chat, source.user) == (self.key.platform, self.key.chat, self.source.user)


class Firing(Struct, frozen=True, kw_only=True):
    """The result of one moment of a due reminder. `after` is its next version; `shown`: whether there is anything to
    say or do; `delay`: how many seconds late; `missed`: moments of its rule before the present one that passed
    unseen."""

    after: Reminder
    shown: bool
    delay: float
    missed: int = 0


def firing(reminder: Reminder, now: float, shown_as: str) -> Firing:
    """Fire a due reminder. Of several moments that passed, the newest counts."""
    missed = left_out(reminder, now)
    if reminder.when_late == "skip" and missed.delay >= LATE:
        return missed
    after = replace(missed.after, fired=reminder.fired + 1, fired_at=now, shown_as=shown_as)
    after = replace(after, state="waiting" if after.due_at is not None else "done")
    return replace(missed, after=after, shown=True)


def left_out(reminder: Reminder, now: float) -> Firing:
    """Let the moments of a due reminder pass unsaid."""
    assert reminder.due_at is not None, "what is not due does not fire"
    table, delay, missed, following = reminder.timetable, now - reminder.due_at, 0, None
    settled = max(now, reminder.settled_until)
    if table is not None:
        new, newest = table.passed(reminder.settled_until, now)
        if new > 0:  # else it was put off
            delay, missed = now - newest, new - 1
        following = table.after(settled)
    over: ReminderState = "done" if reminder.fired else "missed"
    after = reminder.changed(
        due_at=following, settled_until=settled, state=over if following is None else reminder.state
    )
    return Firing(after=after, shown=False, delay=delay, missed=missed)


def cancelled(reminder: Reminder) -> Reminder:
    """Return the reminder as it fires no more."""
    return reminder.changed(due_at=None, state="cancelled")


def put_off(reminder: Reminder, until: float) -> Reminder:
    """Return the reminder as it fires (again) at this moment; a rule goes on as before."""
    return reminder.changed(due_at=until, state="waiting")


def placed(when: When, zone: str) -> tuple[str, str]:
    """The zone and the first local time of a reminder. A repeating one stays in the zone that was said for it; a single
    one is shown in the person's own."""
    if when.rule is not None:
        return str(when.zone), when.start.isoformat()
    return zone, local_of(when.due, zone_named(zone) or UTC).isoformat()


def moved(reminder: Reminder, when: When, zone: str, now: float) -> Reminder:
    """The same version with another time."""
    zone, start = placed(when, zone)
    return replace(
        reminder,
        start=start,
        rule=str(when.rule or ""),
        zone=zone,
        due_at=when.due,
        settled_until=now,
        state="waiting",
        failures=0,
    )


def skipped(reminder: Reminder) -> Reminder | None:
    """The next moment of its rule is left out. None: it has no rule, or no other moment."""
    table = reminder.timetable
    if table is None or reminder.due_at is None:
        return None
    following = table.after(reminder.due_at)
    return None if following is None else reminder.changed(due_at=following, settled_until=reminder.due_at)


def resumed(reminder: Reminder, now: float) -> Reminder | None:
    """A paused reminder, continued at its next moment; None if there is none."""
    table = reminder.timetable
    due = reminder.due_at if table is None else table.after(now)
    if due is None:
        return None
    return reminder.changed(due_at=max(due, now), settled_until=now, state="waiting", failures=0)


def judged(reminder: Reminder, run: int, *, failed: bool, most: int) -> Reminder:
    """Return the reminder after a run of its prompt; the same run judged again changes nothing."""
    if run <= reminder.judged:
        return reminder
    failures = reminder.failures + 1 if failed else 0
    if failures >= most and reminder.state == "waiting":
        return reminder.changed(failures=failures, judged=run, state="paused", due_at=None)
    return reminder.changed(failures=failures, judged=run)


# -- in words ------------------------------------------------------------------------------------


def shown(firing: Firing) -> str:
    """Return the text that a person reads when a reminder fires."""
    reminder, late = firing.after, ""
    if firing.delay >= LATE:
        late = f"late by {roughly(firing.delay)}"
    if firing.missed:
        least = "at least " if firing.missed == MOST_COUNTED - 1 else ""
        late += f"{', ' if late else ''}{least}{counted(firing.missed, 'earlier time')} missed"
    to = f"{speaker(reminder.source)}: " if reminder.source.chat_type != "direct" else ""
    return f"⏰ {to}{reminder.text}{reminder.credit}{f' ({late})' if late else ''}"


def together(firings: Sequence[Firing], most: int) -> tuple[str, int]:
    """Return one text for the first of these that fire, of at most `most` characters, and how many these are: one at
    least. What is said word for word more than once is said once, with the number of times."""
    said: dict[str, int] = {}
    text = ""
    for taken, each in enumerate(firings):
        said[shown(each)] = said.get(shown(each), 0) + 1
        lines = (f"{line} (×{times})" if times > 1 else line for line, times in said.items())
        longer = "\n".join((TOGETHER.format(count=taken + 1), *lines))
        if taken and len(longer) > most:
            return text, taken
        text = longer
    return text, len(firings)


def asked(firing: Firing, now: float) -> str:
    """Return the prompt as the model reads it: with its author and the time, so that the model needs no clock."""
    reminder = firing.after
    who = speaker(reminder.source) if reminder.source.user_name else "the person"
    late = f", late by {roughly(firing.delay)}" if firing.delay >= LATE else ""
    how = f"{reminder.often} " if reminder.rule else ""
    whose = f"; the words of {reminder.origin}, which {who} let stand" if reminder.origin else ""
    here = f"it is {reminder.local(now)} now{late}; nobody waits at the screen{whose}"
    return f"[scheduled {how}by {who}; {here}]\n{reminder.text}"


def roughly(seconds: float) -> str:
    """A delay for people: "3 h", "2 days"."""
    days = round(seconds / 86_400)
    return counted(days, "day") if seconds >= 2 * 86_400 else lasting(seconds)


def written(moment: float, zone: str, *, seconds: bool = False, said: str = "") -> str:
    """A moment in a time zone: "Mon 23 Nov 2026, 08:00 (Europe/Berlin)"; without the zone where it was `said`."""
    local = local_of(moment, zone_named(zone) or UTC)
    time = f"{local:%H:%M:%S}" if seconds else f"{local:%H:%M}"
    return f"{local:%a} {local.day} {local:%b %Y}, {time}{'' if zone == said else f' ({zone})'}"


def next_moments(reminder: Reminder, said: str = "") -> str:
    """Return the next moment and the rule in words; `said` is the zone that need not be named."""
    often, due = reminder.often, reminder.due_at
    if reminder.parked:
        return "waits until someone writes in its chat"
    if due is None:
        return often
    following = written(due, reminder.zone, said=said)
    return f"{often}, next {following}" if often else following


def notes_of(source: Source) -> str:
    """The folder of what a person set for themselves, wherever they talk. It is emptied when they are forgotten."""
    return f"person:{source.platform}:{source.user}"
