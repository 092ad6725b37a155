"""Reminders and prompts that run by the clock, for the model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from datetime import UTC, tzinfo
from typing import Any, Final

from msgspec import Struct

from gateway.agent.provenance import Kept
from gateway.agent.tools.base import ReminderBook, ToolContext, schema
from gateway.agent.tools.shell import shown
from gateway.domain.recurrence import Recurrence, local_of, rule_of, zone_named
from gateway.domain.reminder import Reminder, ReminderKind, WhenLate, next_moments, written
from gateway.domain.when import BadTime, NoTime, When, read_exactly, repeated
from gateway.runtime.clock import Clock
from gateway.runtime.errors import ToolError, UserError

_TWO_DAYS: Final = 172_800.0  # seconds
_TIMES: Final = "`2026-11-24T09:00`, `tomorrow 09:00`, `in 20 minutes`, or with a `rule` `09:00`"


class RemindersTool(Struct, frozen=True):
    """Makes and changes reminders; a person must allow those that come again. A call that is repeated after a crash
    finds its reminder."""

    name = "reminders"
    description = (
        "Reminds the person later (kind `say`: the text is shown as it is) or has you answer a prompt later (`ask`), "
        "once or again and again. `when` is the person's local time in English or ISO 8601, whatever language they "
        f"speak: {_TIMES}. `rule` is for what comes again: a rule of iCalendar such as `FREQ=WEEKLY;INTERVAL=2;"
        "BYDAY=TU`; the person is shown what it means, and asked. Never guess a time: ask what is not clear. "
        "You need not know the time: each result says what time it is and when it will come; tell the person that. "
        "`skip` leaves out the next time, `resume` goes on with a paused one, `timezone` keeps the person's time zone: "
        "set it if they say where they live."
    )
    parameters = schema(
        "action",
        action={
            "type": "string",
            "enum": ["create", "list", "cancel", "snooze", "skip", "resume", "change", "timezone"],
        },
        text={"type": "string", "description": "What to say, in the person's words, or the prompt."},
        when={"type": "string", "description": "The time; with a `rule` its time of day, or the first day and time."},
        rule={
            "type": "string",
            "description": "RRULE of RFC 5545 with its BYDAY or BYMONTHDAY, or `cron 0 9 * * 1-5`.",
        },
        kind={"type": "string", "enum": ["say", "ask"]},
        number={"type": "integer", "minimum": 1, "description": "Which one, as `list` gives it."},
        when_late={"type": "string", "enum": ["say", "skip"], "description": "If the bot was not running then."},
        timezone={"type": "string", "description": "IANA name. Default: the person's own."},
    )
    read_only = False
    idempotent = True
    brings = ""
    timeout = 20.0
    admins_only = False
    setting = ""

    clock: Clock

    def question(self, arguments: Mapping[str, Any]) -> str | None:
        """The whole reading of a time that comes again, which is the same in each time zone."""
        try:
            found = _read(arguments, self.clock.now() - _TWO_DAYS, UTC)
        except (ToolError, BadTime):
            return None  # the call fails of it, too
        if found is None or found.rule is None or arguments.get("action") not in ("create", "change"):
            return None
        timed = isinstance(found.rule, Recurrence) and not (found.rule.is_exact or found.rule.hours)
        zone = _text(arguments, "timezone") or ("" if found.zone is UTC else str(found.zone))
        often = f"{found.rule.said}{f' at {found.start:%H:%M}' if timed else ''}{f' ({zone})' if zone else ''}"
        first = f", from {found.start:%Y-%m-%d} on" if _text(arguments, "when")[:4].isdecimal() else ""
        text = _text(arguments, "text") or f"reminder {arguments.get('number')}"
        verb = "Answer this by myself" if arguments.get("kind") == "ask" else "Remind you"
        return shown(f"{verb} {often}{first}: {text}?")

    def kept(self, arguments: Mapping[str, Any]) -> Kept | None:
        text, action = arguments.get("text"), arguments.get("action")
        if action not in ("create", "change") or not isinstance(text, str) or not text.strip():
            return None
        what = "prompt that I answer" if arguments.get("kind") == "ask" else "reminder"
        when = arguments.get("when")
        return Kept(f"{what}, {when}" if when else what, text)

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        book, action = context.reminders, arguments["action"]
        try:
            zone = await self._zone(arguments, book)
            now = context.clock.now()
            done = await self._done(action, arguments, book, zone, now, context.provenance.origin)
        except (UserError, BadTime) as error:
            raise ToolError(str(error)) from None
        return f"It is {written(now, zone)} now. {done}"

    async def _zone(self, arguments: Mapping[str, Any], book: ReminderBook) -> str:
        named = _text(arguments, "timezone")
        if not named:
            return await book.zone()
        if arguments.get("action") == "timezone":
            return await book.set_zone(named)
        if zone_named(named) is None:
            raise ToolError(f"{named[:60]!r} is not a time zone; use an IANA name such as Europe/Vienna.")
        return named

    async def _done(
        self,
        action: str,
        arguments: Mapping[str, Any],
        book: ReminderBook,
        zone: str,
        now: float,
        origin: Callable[[str], str],
    ) -> str:
        if action == "list":
            return "\n".join(["Reminders:", *map(_line, await book.listed())])
        if action == "timezone":
            return f"The person's time zone is {zone}."
        when = await asyncio.to_thread(_read, arguments, now, zone_named(zone) or UTC)
        if when is not None and when.rule is not None and self.question(arguments) is None:
            raise ToolError("What comes again can only be made by `create` or `change`.")
        if action == "create":
            if when is None:
                raise ToolError(f"`when` is missing. Such as: {_TIMES}.")
            kind: ReminderKind = "ask" if arguments.get("kind") == "ask" else "say"
            late: WhenLate = "skip" if arguments.get("when_late") == "skip" else "say"
            cause = json.dumps(dict(arguments), sort_keys=True, default=str)
            text = _text(arguments, "text")
            made = await book.add(
                kind=kind, text=text, when=when, zone=zone, when_late=late, cause=cause, origin=origin(text)
            )
            doubt = book.unreached(made)
            return f"Stored: {_line(made)}" + (f" Tell the person, as if you said it: {doubt}" if doubt else "")
        number = arguments.get("number")
        if not isinstance(number, int):
            raise ToolError("`number` says which one; the action `list` gives the numbers.")
        if action == "change":
            text = _text(arguments, "text")
            return f"Now: {_line(await book.reword(number, text or None, when, zone, origin(text)))}"
        return f"Now: {_line(await self._changed(action, number, book, when, now))}"

    async def _changed(self, action: str, number: int, book: ReminderBook, when: When | None, now: float) -> Reminder:
        match action:
            case "cancel":
                return await book.cancel(number)
            case "snooze":
                return await book.snooze(number, when.due if when else now + 600)
            case "skip":
                return await book.skip(number)
        return await book.resume(number)


def _read(arguments: Mapping[str, Any], now: float, zone: tzinfo) -> When | None:
    """The time of a call, if it says any. Raises ToolError."""
    said, rule = _text(arguments, "when"), _text(arguments, "rule")
    if not said and not rule:
        return None
    try:
        found = read_exactly(said or "in 1 minute", now, zone)
        if not rule:
            return found
        again = rule_of(rule, found.start)
        if not isinstance(again, Recurrence):
            return repeated(again, found.start if said else local_of(now, zone), now, zone)
        if again.unit in ("week", "month", "year") and not (again.weekdays or again.month_days):
            raise ToolError("`rule` must name its days, with BYDAY or BYMONTHDAY.")
        if again.is_exact:
            return repeated(again, found.start, now, found.zone)
        if found.rule or found.is_span or found.zone is not zone:
            raise ToolError("Beside a `rule`, `when` is a local time such as `09:00` or `2026-11-24T09:00`.")
        return repeated(again, found.start, now, zone)
    except NoTime:
        present = f"{local_of(now, zone):%A, %Y-%m-%d %H:%M} ({zone})"
        raise ToolError(f"{said[:60]!r} is no time that I can read. It is {present} now. Such as: {_TIMES}.") from None
    except ValueError as error:
        raise ToolError(str(error)) from None


def _text(arguments: Mapping[str, Any], name: str) -> str:
    return str(arguments.get(name) or "").strip()


def _line(reminder: Reminder) -> str:
    when = next_moments(reminder) if reminder.state == "waiting" else reminder.state
    prompt = ", a prompt" if reminder.kind == "ask" else ""
    return f"number {reminder.number}{prompt}: {reminder.brief} ({when})"


TOOLS = (lambda host: RemindersTool(host.clock),)
