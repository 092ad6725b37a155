"""/remind, /schedule, /reminders and /timezone: what is said later, or asked of the model by the clock.

Times are read by a small grammar, without a model. What it does not read whole goes to the model, whose tool takes any
moment and any rule. A model without tools cannot do that: then a sentence says how to write the time.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from datetime import UTC, tzinfo
from typing import Final

from gateway.agent.tools.offer import Caller
from gateway.commands.base import Answer, CommandContext, command
from gateway.domain.chat import Outbound, OutboundState
from gateway.domain.place import names
from gateway.domain.recurrence import local_of, zone_named
from gateway.domain.reminder import Reminder, ReminderKind, next_moments, written
from gateway.domain.when import EXAMPLES, BadTime, NoTime, When, read, read_exactly, says_no_time
from gateway.domain.wording import counted
from gateway.people.reminders import EMPTY, PersonReminders
from gateway.runtime.errors import UserError

_NO_TIME: Final = (
    "I found no time in your message. Put the time at the beginning or the end, in English or as an ISO date. "
    "For example: /{command} tomorrow at 9 call Ann. Or: /{command} 2027-01-31 08:00 pay the rent."
)
# What the model is asked in the place of a command, before the words of the person.
_TO_MODEL: Final = "With your tool `reminders`, {do}. Ask me first if my words do not say when, or not clearly: {words}"
_DO: Final[dict[ReminderKind, str]] = {
    "say": "remind me as I say",
    "ask": "schedule this prompt for yourself (kind `ask`)",
}
_HOW_TO: Final = "What should I {verb}, and when? For example:\n{examples}"
_ZONE_UNKNOWN: Final = (
    "I used the time zone {zone}. To set your time zone, send /timezone <city>, for example /timezone Berlin."
)
_STAY: Final = "Your earlier reminders ({numbers}) keep their old time zone. /reminders shows their times."
_NONE: Final = "You have no reminders here. You can make one with a message such as:\n{examples}"
_CALLS: Final = re.compile(
    r"(cancel|delete|remove|change|snooze|skip|resume)\s+(?:#\s*)?(\d{1,9})(?:\s+(.*))?", re.DOTALL
)
_USAGE: Final = (
    "/reminders lists your reminders. After /reminders, you can write cancel <n>, change <n> <another text or time>, "
    "snooze <n> [10m], skip <n> or resume <n>, where <n> is a number from the list."
)
_NOT_SHOWN: Final = (OutboundState.REFUSED, OutboundState.WITHHELD)
_SNOOZE: Final = 600.0  # seconds
_THINGS: Final = ("tea", "call Ann", "take out the bins")
_PROMPTS: Final = {
    "every weekday at 8": "what is new about heat pumps?",
    "tomorrow at 9": "sum up what we said today",
    "every monday at 9": "ask me how the week is planned",
}


@command("remind <when what>", "What I remember", "remind you at a set time", elsewhere=("reminder", "remindme"))
async def remind(ctx: CommandContext) -> Answer | str:
    """Store a reminder."""
    return await _added(ctx, "say")


@command("schedule <when what>", "What I remember", "answer a prompt at a set time", elsewhere=("cron",))
async def schedule(ctx: CommandContext) -> Answer | str:
    """Store a prompt that runs by the clock."""
    return await _added(ctx, "ask")


@command("reminders [cancel n]", "What I remember", "list upcoming reminders", elsewhere=("schedules",), bypass="bare")
async def reminders(ctx: CommandContext) -> Answer | str:
    """List the reminders of the conversation, or change one."""
    own, argument = ctx.people.reminders.of(ctx.item), ctx.argument.strip()
    if argument.lower() in ("", "list"):
        return await _listed(own)
    called = _CALLS.fullmatch(argument)
    if called is None:
        raise UserError(_USAGE)
    verb, number, rest = called[1].lower(), int(called[2]), (called[3] or "").strip()
    if bool(rest) != (verb == "change") and verb != "snooze":
        raise UserError(_USAGE)
    try:
        return await _changed(own, verb, number, rest)
    except NoTime as error:
        unread = str(error) or _NO_TIME.format(command=f"reminders {verb} {number}")
        return await _to_model(ctx, f"{verb} reminder {number} as I say", rest, unread)


@command("timezone [city]", "What I remember", "show or set your time zone", elsewhere=("tz",))
async def timezone(ctx: CommandContext) -> str:
    """Show or set the time zone of the person."""
    own = ctx.people.reminders.of(ctx.item)
    name = await own.set_zone(ctx.argument) if ctx.argument.strip() else await own.zone()
    told = f"Your time zone is {name}, where it is {written(own.now(), name, said=name)} now."
    mine = [each for each in await own.listed() if each.is_open and each.belongs_to(ctx.inbound.source)]
    if elsewhere := [f"{each.number}" for each in mine if each.zone != name]:
        return f"{told}\n{_STAY.format(numbers=', '.join(elsewhere))}"
    return told


async def _added(ctx: CommandContext, kind: ReminderKind) -> Answer | str:
    own, argument = ctx.people.reminders.of(ctx.item), ctx.argument.strip()
    if not argument:
        raise UserError(_HOW_TO.format(verb="say" if kind == "say" else "answer", examples=_examples(kind)))
    zone = await own.zone()
    try:
        when = await _read(read, argument, own.now(), zone)
    except NoTime as error:
        unread = str(error) or _NO_TIME.format(command="remind" if kind == "say" else "schedule")
        return await _to_model(ctx, _DO[kind], argument, unread)
    if not when.rest:
        raise UserError(EMPTY)
    made = await own.add(kind=kind, text=when.rest, when=when, zone=zone, cause="command")
    lines = [_confirmed(made), *filter(None, [own.unreached(made)])]
    if made.number == 1 and await ctx.people.reminders.own_zone(ctx.inbound.source) is None:
        lines.append(_ZONE_UNKNOWN.format(zone=zone))
    return "\n".join(lines)


async def _to_model(ctx: CommandContext, do: str, words: str, unread: str) -> Answer:
    """Hand on what was not read. Raises UserError with the sentence about that if no model can do it here."""
    session, source = await ctx.present(), ctx.inbound.source
    models, caller = ctx.sessions.models, Caller(source=source, admin=ctx.people.pairing.access.is_admin(source))
    spec = models.of(session) if session else models.home_of(ctx.key.platform, names(source))
    if not (models.takes_tools(spec) and ctx.sessions.toolbox.has("reminders", caller)):
        raise UserError(unread)
    return Answer(then=_TO_MODEL.format(do=do, words=words))


async def _read(how: Callable[[str, float, tzinfo], When], text: str, now: float, zone: str) -> When:
    """Read a time. Raises NoTime, and UserError for a time that cannot be."""
    try:
        return await asyncio.to_thread(how, text, now, zone_named(zone) or UTC)
    except BadTime as error:
        raise UserError(str(error)) from None


def _examples(kind: ReminderKind) -> str:
    if kind == "ask":
        return "\n".join(f"/schedule {when} {prompt}" for when, prompt in _PROMPTS.items())
    things = (*_THINGS, *_THINGS)
    return "\n".join(f"/remind {when} {what}" for when, what in zip(EXAMPLES, things, strict=False))


def _confirmed(made: Reminder) -> str:
    what = "I will remind you of this" if made.kind == "say" else "I will answer this prompt"
    return f"{made.number}. {what}: {made.brief}\n{next_moments(made)}\n(/reminders cancel {made.number} cancels it)"


async def _changed(own: PersonReminders, verb: str, number: int, rest: str) -> str:
    match verb:
        case "snooze":
            until = await _until(own, rest)
            after = await own.snooze(number, until)
            return f"{number}. {after.brief} — {next_moments(after)}"
        case "change":
            zone = await own.zone()
            when = None if says_no_time(rest) else await _read(read, rest, own.now(), zone)
            after = await own.reword(number, (rest if when is None else when.rest) or None, when, zone)
            return f"{number}. {after.brief} — {next_moments(after)}"
        case "skip":
            after = await own.skip(number)
            return f"{number}. {after.brief} — {next_moments(after)}"
        case "resume":
            after = await own.resume(number)
            return f"{number}. {after.brief} goes on — {next_moments(after)}"
        case _:
            after = await own.cancel(number)
            return f"{number}. {after.brief} is cancelled."


async def _until(own: PersonReminders, rest: str) -> float:
    """The moment that a snooze says: "10m", "until 18:00"; ten minutes if it says nothing. Raises NoTime."""
    if not rest:
        return own.now() + _SNOOZE
    zone = await own.zone()
    for text in (rest, f"in {rest}", f"at {rest}"):
        try:
            said = text.removeprefix("until ").removeprefix("for ")
            return (await _read(read_exactly, said, own.now(), zone)).due
        except NoTime:
            continue
    raise NoTime(
        'Say how long I should wait, or until when: "/reminders snooze 2 1h", "/reminders snooze 2 tomorrow at 9".'
    )


async def _listed(own: PersonReminders) -> str:
    found = await own.listed()
    if not found:
        return _NONE.format(examples=_examples("say"))
    rows, zone = await own.shown(found), await own.zone()
    open_ = [_line(each, rows, zone) for each in found if each.is_open]
    over = [_line(each, rows, zone) for each in found if not each.is_open]
    parts = [f"It is {written(own.now(), zone)}."]
    parts += ["Reminders to come:", *open_] if open_ else ["There are no upcoming reminders."]
    parts += ["Reminders that are over:", *over] if over else []
    return "\n".join(parts)


def _line(reminder: Reminder, rows: Mapping[str, Outbound], zone: str) -> str:
    what = f"{reminder.number}. {'(prompt) ' if reminder.kind == 'ask' else ''}{reminder.brief}"
    facts = [next_moments(reminder, zone)] if reminder.state == "waiting" else []
    if reminder.state == "paused":
        failed = counted(reminder.failures, "failure")
        facts.append(f"paused after {failed} in a row (/reminders resume {reminder.number})")
    if reminder.state == "cancelled":
        facts.append("cancelled")
    if reminder.state == "missed":
        facts.append("I was not running at its time, so I skipped it")
    if reminder.fired_at is not None:
        times = f" ({counted(reminder.fired, 'time')})" if reminder.fired > 1 else ""
        facts.append(f"fired {written(reminder.fired_at, zone, seconds=True, said=zone)}{times}")
        if reminder.shown_as or reminder.kind == "ask":  # else it was shown with others
            facts.append(_receipt(rows.get(reminder.shown_as or ""), zone))
    return f"{what} — {', '.join(filter(None, facts))}"


def _receipt(row: Outbound | None, zone: str) -> str:
    """Say whether and when the platform showed a reminder's text."""
    if row is None:
        return "not answered yet"
    if row.shown_at is not None:
        return f"shown {local_of(row.shown_at, zone_named(zone) or UTC):%H:%M:%S}"
    return f"not shown: {row.error}" if row.state in _NOT_SHOWN else "not shown yet"


COMMANDS = (remind, schedule, reminders, timezone)
