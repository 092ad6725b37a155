"""A time at the beginning or the end of a text, and the rest of the text."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, tzinfo
from typing import Final

from gateway.domain.recurrence import local_of
from gateway.domain.when import patterns
from gateway.domain.when.moments import When, checked, resolved
from gateway.domain.when.parts import SHORT, BadTime, TimeParts, scan
from gateway.runtime.structs import replace

_READ: Final = 120  # characters of each end of a text
_SOME_DAYS: Final = "every monday, tuesday and thursday at 9"
_SIGNS: Final = " \t\r\n,，、:：-–—"

EXAMPLES: Final = (
    "in 20 minutes",
    "tomorrow at 9",
    "monday 18:30",
    "2027-01-31 08:00",
    "every weekday at 8",
    "every 2 hours",
)


class NoTime(ValueError):
    """A text says no time that this grammar knows."""


def read(text: str, now: float, zone: tzinfo) -> When:
    """The time at the beginning of a text, else at its end. Raises NoTime, BadTime."""
    text = text.strip()
    parts, rest = _at_beginning(text)
    if parts is None:
        parts, rest = _at_end(text)
    elif not parts.spans:
        parts, rest = _with_end(parts, text, rest)
    if parts is None or not parts.is_whole:
        raise NoTime(text[:_READ])
    _check_rest(parts, text, rest)
    return replace(resolved(parts, now, zone), rest=_cleaned(rest))


def _check_rest(parts: TimeParts, text: str, rest: str) -> None:
    """Raises BadTime if the time goes on in the rest: a part of it that is passed over makes another time of it."""
    if not text.endswith(rest):
        return
    if patterns.EXCEPT.match(rest) and parts.rule is not None:
        raise BadTime(f"I cannot leave out days. Name those that are meant: {_SOME_DAYS}.")
    more = patterns.AND_MORE.match(rest[:_READ])
    hour_too = more is not None and parts.clock is not None and patterns.HOUR.match(rest, more.end())
    if more is not None and (hour_too or scan(rest[:_READ], more.end())[1] > more.end()):
        raise BadTime(f'There are two times, and I can keep one at a time: "{text[: len(text) - len(rest)].strip()}".')
    if parts.clock is not None and patterns.MORE_HOURS.match(rest[:_READ]):
        raise BadTime(f"I need one time of day at a time. For example: {EXAMPLES[1]} call Ann.")
    if parts.at is None and (parts.has_day or parts.rule) and (vague := patterns.NO_ONE_TIME.match(rest[:_READ])):
        raise BadTime(f'I need one time of day, not "{vague[0].strip(_SIGNS)}". For example: {EXAMPLES[1]} call Ann.')
    said = text[: len(text) - len(rest)]
    unread = patterns.UNREAD_TIME.match(rest[:_READ]) if parts.clock is None and (parts.has_day or parts.rule) else None
    if unread or (parts.clock and rest[:1] in "-–" and rest[1:2].isdecimal()):
        raise BadTime(
            f'I do not know the time of day behind "{said.strip(_SIGNS)}". For example: {EXAMPLES[1]} call Ann.'
        )
    if (parts.spans or parts.clock) and said[-1:].isalnum() and rest[:1].isdecimal():
        raise BadTime(f'I cannot read all of "{said.strip(_SIGNS)}{rest.split()[0]}". For example: {EXAMPLES[0]} tea.')
    more_days = patterns.SPANS.match(rest[:_READ].lstrip(_SIGNS))
    on_weekday = parts.spans and patterns.ON_WEEKDAY.match(rest[:_READ])
    if on_weekday or (parts.weekday is not None and more_days and more_days["before"]):
        raise BadTime(f"I cannot tell which day that is. Say its date: {EXAMPLES[3]}.")


def _with_end(parts: TimeParts, text: str, rest: str) -> tuple[TimeParts, str]:
    """The parts at the beginning, with what the end adds: "tomorrow call mum at 9". Raises BadTime for two times."""
    behind, shorter = _at_end(rest)
    if behind is None or behind.spans or behind.rule is not None:
        return parts, rest
    if behind.is_time_only:
        if parts.clock is None and (behind.clock or not parts.part_of_day):
            parts.clock, parts.part_of_day = behind.clock, parts.part_of_day or behind.part_of_day
            return parts, shorter
        return parts, rest
    said = rest[len(shorter) :].strip(_SIGNS)
    if parts.is_vague and (behind.clock is not None or parts.is_short):
        _, before = _at_end(text)
        return behind, before  # "morning run tomorrow at 7"
    if parts.is_time_only and (len(said) > SHORT or said >= "\u4e00"):
        first = text[: len(text) - len(rest)].strip(_SIGNS)
        raise BadTime(f'There are two times, "{first}" and "{said}". Put the whole time first: {EXAMPLES[1]} call Ann.')
    return parts, rest


def read_exactly(text: str, now: float, zone: tzinfo) -> When:
    """A text that is a time and nothing else; also an ISO time with an offset. Raises NoTime, BadTime."""
    text = text.strip()
    try:
        stated = datetime.fromisoformat(text)
    except ValueError:
        stated = None
    if stated is not None and stated.tzinfo is not None:
        due = stated.timestamp()
        return checked(When(start=local_of(due, zone), due=due), now, zone)
    found = read(text, now, zone)
    if found.rest:
        raise NoTime(text[:_READ])
    return found


def _at_beginning(text: str) -> tuple[TimeParts | None, str]:
    head = text[:_READ]
    lead = patterns.LEAD.match(head)
    for begin in dict.fromkeys((0, lead.end() if lead else 0)):
        parts, end = scan(head, begin)
        if end > begin:
            return parts, text[end:]
    return None, text


def _at_end(text: str) -> tuple[TimeParts | None, str]:
    text = text.rstrip(" .!?。！？")
    tail = text[-_READ:]
    for begin in _beginnings(tail):
        if begin == 0 and len(tail) < len(text):
            continue  # perhaps the middle of a word
        parts, end = scan(f" {tail}", begin + 1)  # no span without a word before it
        if end == len(tail) + 1:
            rest = text[: len(text) - len(tail) + begin]
            return (None, text) if patterns.OPEN_END.fullmatch(rest[-_READ:]) else (parts, rest)
    return None, text


def _beginnings(text: str) -> Iterator[int]:
    """Yield the places where a word begins, or may begin: Chinese words have no space before them."""
    for at, sign in enumerate(text):
        before = text[at - 1] if at else " "
        within = before in ":.," and sign.isdecimal() and text[at - 2 : at - 1].isdecimal()  # "8:30"
        if not sign.isspace() and not within and (not before.isalnum() or sign >= "\u4e00" or before >= "\u4e00"):
            yield at


def _cleaned(rest: str) -> str:
    """Return the text to say, without the words that only lead to it."""
    rest = rest.strip(_SIGNS)
    found = patterns.LEAD.match(rest)
    return rest[found.end() :].strip(_SIGNS) if found else rest
