"""A time at the beginning or the end of a text, and the rest of the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import tzinfo
from functools import partial
from typing import Final

from gateway.domain.recurrence import local_of, rule_of
from gateway.domain.when.grammar import NTH, SPANS, BadTime, TimeParts, scan
from gateway.domain.when.moments import When, repeated, resolved
from gateway.runtime.patterns import late, table
from gateway.runtime.structs import replace

_READ: Final = 120  # characters of each end of a text
_SIGNS: Final = " \t\r\n,:-–—"

EXAMPLES: Final = (
    "in 20 minutes",
    "tomorrow at 9",
    "monday 18:30",
    "2027-01-31 08:00",
    "every weekday at 8",
    "every 2 hours",
)
_UNCLEAR: Final = (
    'I can read "{said}" as a time, but not what "{more}" adds to it. Put a colon after the whole time, such as: '
    f"{EXAMPLES[1]}: call Ann."
)
_NO_DAY: Final = (
    f'I can read "{{said}}" as a time of day in English only. Say it as in: at {{said}}, or: {EXAMPLES[2]}.'
)

_pattern = partial(late, flags=re.IGNORECASE)
_LEAD: Final = _pattern(r"(?:(?:please\s+)?(?:remind\s+)?me(?:\s+(?:to|that|about|of))?|to|that|about)\s+")
_TABLE: Final = table(__file__)
_ENGLISH: Final = _pattern("[a-z]")
# Times in other languages beside what was read: "every", "today", "tomorrow", weekdays and parts of the day.
_ELSEWHERE: Final = _pattern(_TABLE["elsewhere"])
# What may be a part of a time, beside the parts that `scan` reads anywhere.
_TIME_LIKE: Final = _pattern(
    rf"{SPANS}(?!\w)|(?<!\w)(?:\w+\s+times|once|twice|{NTH}|of\s+the\s+(?:week|month|year)|except|unless|excluding"
    r"|(?:on|and|this)\s+(?:mon|tue|wed|thu|fri|sat|sun)|yesterday|(?:this|next)\s+(?:week|month|year)(?:end)?)(?!\w)"
)
_BEGINNING: Final = re.compile(r"(?<![^\s(\"“])\S")
_NUMBER: Final = _pattern(_TABLE["number"])
# Words beside a time that may change it.
_BESIDE: Final = _pattern(_TABLE["beside"])
# "And" between two parts of a span, in other languages.
_AND: Final = _pattern("und|et|y|e|en|och|og|ja|i|a|si|și|ve|и|та|και|plus")
# Words beside a day that say its time of day.
_AT_A_TIME: Final = _pattern(_TABLE["at_a_time"])

# A cron expression at the beginning of a text: in quotes, as five fields, or as one of its words.
_CRON: Final = _pattern(_TABLE["cron"])
_FIELD: Final = re.compile(r"\s+(?:\*\S*|\d+[-,/*]\S*|\d+)(?=\s|$)")
_QUOTE: Final = 'Put the cron expression in quotes, such as: cron "0 9 * * 1-5" call Ann.'


class NoTime(ValueError):
    """A text says no time that this grammar reads whole: a sentence about what is unclear, or no words at all."""


def read(text: str, now: float, zone: tzinfo) -> When:
    """The time at the beginning of a text, else at its end; the whole of it before a colon or beside quoted words.
    Raises NoTime, BadTime."""
    if found := _CRON.match(text.strip()):
        return replace(_cron(found, now, zone), rest=_without_lead(found.string[found.end() :].strip(_SIGNS)))
    parts, rest = _parted(text.strip())
    return replace(resolved(parts, now, zone), rest=_without_lead(rest.strip(_SIGNS)).strip(_SIGNS))


def read_exactly(text: str, now: float, zone: tzinfo) -> When:
    """A text that is a time and nothing else. Raises NoTime, BadTime."""
    return resolved(_whole(text), now, zone)


def _cron(found: re.Match[str], now: float, zone: tzinfo) -> When:
    """The first time of a cron expression. Raises BadTime."""
    if found["bare"] and _FIELD.match(found.string, found.end()):
        raise BadTime(_QUOTE)
    try:
        rule = rule_of(f"cron {found[str(found.lastgroup)]}")
    except ValueError as error:
        raise BadTime(str(error)) from None
    return repeated(rule, local_of(now, zone), now, zone)


def _parted(text: str) -> tuple[TimeParts, str]:
    """The time and the rest. Raises NoTime, BadTime."""
    for when, rest in _marked(text):
        try:
            return _whole(when), rest
        except NoTime:
            continue
    parts, rest = _at_beginning(text)
    words = rest[:_READ].split()
    if parts is None:
        parts, rest = _at_end(text)
        words = rest[-_READ:].split()[::-1]
    elif parts.takes_clock and not parts.spans:
        behind, shorter = _at_end(rest)
        if behind is not None and behind.clock and not (behind.has_day or behind.rule or behind.spans):
            parts.clock, parts.part_of_day = behind.clock, parts.part_of_day or behind.part_of_day
            parts.zone, rest = behind.zone, shorter
    if parts is None or any(map(_ELSEWHERE.search, (rest[:_READ], rest[-_READ:]))):
        raise NoTime
    said = text.replace(rest, "", 1).strip(_SIGNS) if rest else text
    if unread := _unread(parts, rest, words):
        raise NoTime(_UNCLEAR.format(said=said, more=unread))
    if not (parts.has_day or parts.spans or parts.rule or _ENGLISH.search(said)):
        raise NoTime(_NO_DAY.format(said=said))
    return parts, rest


def _marked(text: str) -> Iterator[tuple[str, str]]:
    """Yield what stands before a colon or beside quoted words, and the other part."""
    before, *said = text.replace("“", '"').replace("”", '"').split('"')
    if len(said) == 2 and bool(before.strip()) != bool(said[1].strip()):
        yield before or said[1], said[0]
    head, colon, behind = text[:_READ].partition(": ")
    if colon:
        yield head, behind + text[_READ:]


def _whole(text: str) -> TimeParts:
    """The parts of a text that is a time. Raises NoTime, BadTime."""
    text = _without_lead(text[: _READ + 1].strip(_SIGNS + ".!"))
    parts, end = scan(text)
    if end < len(text) or len(text) > _READ or not parts.is_whole:
        raise NoTime
    return parts


def _at_beginning(text: str) -> tuple[TimeParts | None, str]:
    head = text[:_READ]
    lead = _LEAD.match(head)
    begin = lead.end() if lead else 0
    parts, end = scan(head[begin:])
    return (parts, text[begin + end :]) if end and parts.is_whole else (None, text)


def _at_end(text: str) -> tuple[TimeParts | None, str]:
    text = text.rstrip(" .!?")
    tail = text[-_READ:]
    for begin in _beginnings(tail):
        if begin == 0 and len(tail) < len(text):
            continue  # perhaps the middle of a word
        parts, end = scan(f" {tail}", begin + 1)  # no span without a word before it
        if end == len(tail) + 1 and parts.is_whole:
            return parts, text[: len(text) - len(tail) + begin]
    return None, text


def _beginnings(text: str) -> Iterator[int]:
    """Yield the places where a word begins."""
    return (found.start() for found in _BEGINNING.finditer(text))


def says_no_time(text: str) -> bool:
    """Whether nothing in a text looks like a time, or a part of one."""
    return not (
        _CRON.match(text)
        or _NUMBER.search(text)
        or _ELSEWHERE.search(text)
        or any(map(_part_in, (text[:_READ], text[-_READ:])))
    )


def _unread(parts: TimeParts, rest: str, words: list[str]) -> str:
    """The first piece of the rest that may belong to the time; "": there is none. `words` are those of the rest, the
    nearest to the time first."""
    near = [word.strip(_SIGNS).lower() for word in words if word.strip(_SIGNS)][:2]
    if near and near[0] in ("to", "for", "about", "that"):
        near = near[1:]
    if parts.spans and near[1:] and _AND.fullmatch(near[0]) and _NUMBER.match(near[1]):
        return near[1]
    if near and (_BESIDE.match(near[0]) or _NUMBER.match(near[0])):
        return near[0]
    if words and words[0][0] in "-–/+&" and words[0][1:2].isdecimal():
        return words[0]
    is_open = parts.takes_clock and not parts.part_of_day  # any number may be its time of day
    if is_open and (found := _AT_A_TIME.match(" ".join(near))):
        return found[0]
    for text in (rest[:_READ], rest[-_READ:]):
        if is_open and (found := _NUMBER.search(text)):
            return found[0]
        if piece := _part_in(text):
            return piece
    return ""


def _part_in(text: str) -> str:
    """The first words of a text that may be a part of a time; "": there are none."""
    if found := _TIME_LIKE.search(text):
        return found[0]
    for begin in _beginnings(text):
        try:
            _, end = scan(f" {text}", begin + 1)
        except BadTime:
            end = len(text) + 1
        if end > begin + 1:
            return text[begin:end].strip()
    return ""


def _without_lead(text: str) -> str:
    found = _LEAD.match(text)
    return text[found.end() :] if found else text
