"""The patterns of times in people's words, put together from `words`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final, Generic, TypeVar

from msgspec import Struct

from gateway.domain.when import words
from gateway.runtime.patterns import late

K = TypeVar("K")

_pattern = partial(late, flags=re.IGNORECASE)

_CJK: Final = "\u4e00-\u9fff"
_END: Final = rf"(?:(?<=[{_CJK}])|(?![^\W{_CJK}]))"  # of a word; Chinese words need no space behind them
GAP: Final = re.compile(r"[\s,，、]*")
_NUMBER: Final = rf"(?:\d{{1,9}}\s*|(?:{'|'.join(words.NUMBERS.values())})(?:\s+|(?<=[{_CJK}])))"


class Alternatives(Struct, Generic[K], frozen=True):
    """One pattern for several values, each with a group of its own."""

    values: tuple[K, ...]
    pattern: re.Pattern[str]

    def match(self, text: str, at: int) -> tuple[K, int] | None:
        """The value that is said here, and where it ends."""
        found = self.pattern.match(text, at)
        return None if found is None or found.lastindex is None else (self.values[found.lastindex - 1], found.end())

    def of(self, text: str) -> K:
        """The value of a text that another pattern found."""
        found = self.pattern.fullmatch(text.strip())
        assert found is not None, "both patterns have the same words"
        assert found.lastindex is not None, "each value has a group"
        return self.values[found.lastindex - 1]


def _choice(texts: Mapping[K, str], end: str = "") -> Alternatives[K]:
    return Alternatives(tuple(texts), _pattern(f"(?:{'|'.join(f'({text})' for text in texts.values())}){end}"))


def _any(alternatives: Iterable[str]) -> str:
    return f"(?:{'|'.join(alternatives)})"


_SPAN_END: Final = rf"(?:(?<=[{_CJK}])|(?![^\W\d{_CJK}]))"  # "1h30m"
_NO_UNIT: Final = rf"(?!\s+{_any(words.UNITS.values())}{_SPAN_END})"  # "1h 30 minutes" are two spans
_HOURS_NUMBER: Final = rf"(?:\d{{1,3}}|{_any(words.NUMBERS.values())})"
_HALVES: Final = (
    rf"{_HOURS_NUMBER}(?:{words.AND_A_HALF_BEFORE})(?:{words.UNITS['hour']})"
    rf"|{_HOURS_NUMBER}\s+(?:{words.UNITS['hour']})\s+(?:{words.AND_A_HALF_BEHIND})"
    rf"|\d{{1,3}}[.,]\d{{1,2}}\s*(?:{words.UNITS['hour']})"
    rf"|\d{{1,3}}\s?h\s?[0-5]\d(?![\d:]){_NO_UNIT}"  # "1h30"
)
PART_OF_AN_HOUR: Final = _choice(words.PARTS_OF_AN_HOUR, _SPAN_END)
_SPAN: Final = (
    rf"(?:{_any(words.PARTS_OF_AN_HOUR.values())}|{_HALVES}|{_NUMBER}{_any(words.UNITS.values())}){_SPAN_END}"
)
SPANS: Final = _pattern(
    rf"(?P<before>(?:{words.IN})\s+)?"
    rf"(?P<spans>{_SPAN}(?:\s*(?:,\s*|(?:{words.AND})\s+)?{_SPAN}){{0,4}}|(?:(?<=через\s)){_any(words.UNITS.values())}{_END})"
    rf"(?:\s*(?P<behind>(?:{words.AFTERWARDS}){_END}))?"
)
ONE_SPAN: Final = _pattern(
    rf"(?P<part>{_any(words.PARTS_OF_AN_HOUR.values())}){_SPAN_END}|(?P<halves>{_HALVES}){_SPAN_END}"
    rf"|(?P<number>{_NUMBER})(?P<unit>{_any(words.UNITS.values())}){_SPAN_END}"
)
HOURS_AND_MINUTES: Final = _pattern(rf"(?P<hours>\d{{1,3}})\s?h\s?(?P<minutes>\d{{2}})(?!\w){_NO_UNIT}")
LEADING_NUMBER: Final = _pattern(rf"\d{{1,3}}[.,]\d{{1,2}}|{_HOURS_NUMBER}")
NAMED_RULE: Final = _choice(words.RULES, _END)
RULE: Final = _pattern(
    rf"(?:{words.EVERY})(?:\s+|(?<=[{_CJK}]))(?:(?P<other>{words.OTHER})\s+|(?P<number>{_NUMBER}))?(?P<unit>{_any(words.UNITS.values())}){_END}"
)
RULE_DAYS: Final = _pattern(
    rf"(?:{words.EVERY}|{words.EVERY_ON})\s*"
    rf"(?P<days>{_any(words.WEEKDAYS)}{_END}(?:\s*(?:[,，、]|(?:{words.AND})\b|和)?\s*(?:{words.ON})?\s*"
    rf"{_any(words.WEEKDAYS)}{_END}){{0,6}})"
)
RULE_PART: Final = _choice(
    {at: rf"(?:{words.EVERY})(?:\s+|(?<=[{_CJK}]))(?:{text})" for at, text in sorted(words.EVERY_PART_OF_DAY.items())},
    rf"(?:(?<=[{_CJK}])|{_END})",
)
_OF_MONTH: Final = (
    rf"(?:\s+(?:(?P<next>{words.OF_NEXT_MONTH})|(?P<every>{words.OF_EVERY_MONTH})|(?P<this>{words.OF_MONTH})){_END})"
)
MONTH_DAY: Final = _pattern(
    rf"(?:(?P<lead>{words.EVERY})\s+)?(?:(?P<on>{words.ON})\s+)?(?:the\s+)?(?:d[ií]a\s+)?"
    rf"(?:(?P<day>\d{{1,2}})(?P<sign>st|nd|rd|th|er|\.|号|號|日|-?го|-?е)?(?P<number>\s+числ[ао])?|(?P<first>{words.FIRST_DAY}))"
    rf"(?![\d:.]|\w*[^\W\d{_CJK}]){_OF_MONTH}?"
)
MONTH_END: Final = _pattern(
    rf"(?:(?P<lead>{words.EVERY})\s+)?(?:(?:{words.ON})\s+)?(?:the\s+)?(?:{words.LAST_DAY}|{words.MONTH_END}){_OF_MONTH}"
    rf"|(?:(?P<alone_every>{words.EVERY})\s*)?(?:{words.MONTH_END_ALONE}){_END}"
    rf"|(?P<alone_next>{words.NEXT_MONTH_END_ALONE})"
    rf"|(?:{words.THIS_MONTH})(?:的)?(?:{words.LAST_DAY})"
)
LAST_OF_RULE: Final = _pattern(rf"的?(?:(?:{words.ON})\s+)?(?:the\s+)?(?:{words.LAST_DAY}){_END}")
ISO: Final = _pattern(
    rf"(?:(?:{words.ON})\s+)?(?P<year>\d{{4,9}})-(?P<month>\d{{1,2}})-(?P<day>\d{{1,2}})(?!\d)(?:T(?=\d))?"
)
DOTTED: Final = _pattern(
    rf"(?:(?:{words.ON})\s+)?(?P<day>\d{{1,2}})\.\s?(?P<month>\d{{1,2}})\.(?:\s?(?P<year>\d{{4}}))?(?!\d)"
)
DAY_MONTH: Final = _pattern(
    rf"(?:(?:{words.ON})\s+)?(?:the\s+)?(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?\s+(?:of\s+|de\s+)?"
    rf"(?P<name>{_any(words.MONTHS)}){_END}\.?(?:,?\s+(?:de\s+)?(?P<year>\d{{4,9}})(?!\d|:))?"
)
MONTH_NAME_DAY: Final = _pattern(
    rf"(?:(?:{words.ON})\s+)?(?P<name>{_any(words.MONTHS)}){_END}\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?![\d:])"
    rf"(?:,?\s+(?P<year>\d{{4,9}})(?!\d|:))?"
)
CHINESE_DATE: Final = _pattern(r"(?:(?P<year>\d{4,9})年)?(?P<month>\d{1,2})月(?P<day>\d{1,2})[日号號]?")
DAYS: Final = _choice({days: words.DAYS[days] for days in sorted(words.DAYS, reverse=True)}, _END)
WEEKDAY: Final = _pattern(
    rf"(?:(?:{words.ON})\s+)?(?:(?:{words.THIS})(?:\s+|(?<=[{_CJK}])))?(?:(?P<next>{words.NEXT})\s*)?"
    rf"(?P<weekday>{_any(words.WEEKDAYS)})(?:{_END}|(?={_any(words.PARTS_OF_DAY.values())}{_END})"
    rf"|(?=(?:{words.NAMED_TIMES['12:00']}){_END}))"
    rf"(?:\s+(?P<behind>{words.NEXT_BEHIND}){_END})?"
)
ONE_WEEKDAY: Final = _pattern(rf"(?<![^\W{_CJK}]){_any(words.WEEKDAYS)}{_END}")
NEXT_UNIT: Final = _pattern(rf"(?:{words.NEXT})\s*(?P<unit>{_any(words.UNITS.values())}){_END}")
NEXT_WEEK: Final = _pattern(rf"(?:{words.NEXT_WEEK})(?:{_END})")
WEEKDAYS: Final = _choice(dict(enumerate(words.WEEKDAYS)))
MONTHS: Final = _choice(dict(enumerate(words.MONTHS, 1)))
UNITS: Final = _choice(words.UNITS)
NUMBERS: Final = _choice({**words.NUMBERS, 1: f"{words.NUMBERS[1]}|eins", 2: f"{words.NUMBERS[2]}|两"})
PARTS_OF_HOUR: Final = _choice({**words.PARTS_OF_HOUR, **words.MINUTES_OF_HOUR})
PARTS_BEHIND: Final = _choice(words.PARTS_OF_HOUR_BEHIND)
_PART_BEHIND: Final = rf"(?:\s+(?P<behind>{_any(words.PARTS_OF_HOUR_BEHIND.values())}))?"
HALF: Final = _choice({half: f"{text}|{words.OF_DAY_BEFORE.get(half, text)}" for half, text in words.OF_DAY.items()})
_AT: Final = rf"(?:{words.AT})(?:\s+|(?<=@))"
_OF_DAY: Final = rf"(?:\s*(?P<half>{_any(words.OF_DAY.values())})(?!\w))?"
TIMES: Final = (
    _pattern(rf"(?:{_AT})?(?P<hour>\d{{1,2}})[:：](?P<minute>\d{{2}})(?::\d{{2}})?(?:\s*(?:uhr)\b)?(?!\d){_OF_DAY}"),
    _pattern(
        rf"(?:{_AT}|(?=[\d.]{{4,5}}\s?(?:uhr|[ap]m)\b))(?P<hour>\d{{1,2}})\.(?P<minute>\d{{2}})(?:\s*(?:uhr)\b)?(?!\d){_OF_DAY}"
    ),
    _pattern(rf"(?:{_AT})?(?P<hour>\d{{1,2}})\s*(?P<half>{_any(words.OF_DAY.values())})(?!\w)"),
    _pattern(
        rf"(?:{_AT})?(?P<before>{_any(words.OF_DAY_BEFORE.values())}|中午)?\s*(?P<hour>\d{{1,2}}|十[一二]|[一二两三四五六七八九十])"
        r"[点點时時](?!間)(?:钟|鐘)?(?:(?P<minute>\d{1,2})分?|(?P<halfpast>半)|(?P<quarter>[一三])刻)?"
    ),
    _pattern(
        rf"(?:{_AT})?(?P<hour>\d{{1,2}}|(?:{words.HOURS_IN_FULL})(?=\s))\s*(?:{words.HOURS})"
        rf"(?:\s*(?P<minute>\d{{2}})(?!\d))?{_END}{_PART_BEHIND}{_OF_DAY}"
    ),
    _pattern(
        rf"(?:{_AT})?(?P<part>{_any(words.PARTS_OF_HOUR.values())})\s+(?P<hour>\d{{1,2}}|{words.HOUR_NUMBERS}){_END}{_OF_DAY}"
    ),
    _pattern(
        rf"{_AT}(?P<part>{_any(words.MINUTES_OF_HOUR.values())})\s+(?P<hour>\d{{1,2}}|{words.HOUR_NUMBERS}){_END}{_OF_DAY}"
    ),
    _pattern(rf"{_AT}(?P<hour>\d{{1,2}}|{words.HOUR_NUMBERS})(?![\d/]|[.:]\d){_END}{_PART_BEHIND}{_OF_DAY}"),
)
DOTTED_TIME: Final = _pattern(  # "tomorrow 14.30", and no amount
    rf"(?P<hour>\d{{1,2}})\.(?P<minute>[0-5]\d)(?![\w%]|[.,]\d|\s?(?:[€$£%]|(?:{words.AMOUNTS})\b)){_OF_DAY}"
)
LAST_HOUR: Final = _pattern(r"(?P<hour>\d{1,2})\s*\Z")  # "tomorrow 9", and nothing behind it
NAMED_TIMES: Final = _choice(
    {at: rf"(?:{_AT}|(?:{words.THIS})\s+)?(?:{text})" for at, text in words.NAMED_TIMES.items()}, _END
)
PARTS_OF_DAY: Final = _choice(
    {at: rf"(?:{_AT}|(?:{words.THIS})\s+)?(?:{text})" for at, text in words.PARTS_OF_DAY.items()}, _END
)
NIGHTS: Final = _choice(words.NIGHTS, _END)
OPEN_END: Final = _pattern(rf".*(?<![^\W{_CJK}])(?:{words.EVERY})\s*")
LEAD: Final = _pattern(rf"(?:{words.LEAD})(?:\s+|(?<=[{_CJK}]))|d['’](?=\w)")
EXCEPT: Final = _pattern(rf"[\s,，]*(?:{words.EXCEPT})(?:\s|(?<=[{_CJK}]))")
AND_MORE: Final = _pattern(rf"[\s,，]*(?:(?:{words.AND}|or|oder|ou|o|или)\s+|或者?|[和跟、])")
MORE_HOURS: Final = _pattern(
    r"\s{0,9}[-–]\s{0,9}\d{1,2}\s{0,9}[ap]\.?m\b"
    rf"|\s{{0,9}}[,，、]\s{{0,9}}\d{{1,2}}(?::\d{{2}}(?!\d)|\s{{0,9}}(?:[,，、]|\Z|(?:{words.AND}|or|oder|ou|или)\s{{1,9}}\d{{1,2}}(?!\w)))"
)
HOUR: Final = _pattern(r"\d{1,2}(?![\w:/.%€$-])")
BEFORE_OR_AFTER: Final = _pattern(words.BEFORE_OR_AFTER)
NO_ONE_TIME: Final = _pattern(
    rf"[\s,，]*(?:(?:{words.NO_ONE_TIME})\s+\d{{1,2}}(?:[:.]\d{{2}}|\s?(?:[ap]m|h|uhr))?(?![\w:/])"
    r"|\d{1,2}\s?[-–]\s?\d{1,2}(?!\w))"
)
UNREAD_TIME: Final = _pattern(
    rf"[\s,，]*(?:{_AT}\d|(?:во?\s+)?пол(?:овин[еу]\s|(?:{words.ORDINALS_OF_HOURS}))"
    r"|[的の]?(?:朝|夜|夕方|午前|午後|[上下]午|[早晚]上?)?(?:\d{1,2}|[一二两三四五六七八九十]{1,4})[点點時时号號])"
)
ON_WEEKDAY: Final = _pattern(rf"[\s,，]*(?:{words.ON})\s+{_any(words.WEEKDAYS)}{_END}")
ORDINALS: Final = _choice(words.ORDINALS)
NTH_WEEKDAY: Final = _pattern(
    rf"(?:(?P<lead>{words.EVERY})\s+)?的?(?:(?:{words.ON})\s+)?(?:the\s+)?"
    rf"(?P<which>{_any(words.ORDINALS.values())})\s*(?P<weekday>{_any(words.WEEKDAYS)}){_END}"
    rf"(?:\s+(?:(?P<every>{words.OF_EVERY_MONTH})|(?P<month>{words.IN_MONTH})){_END})?"
)
MORE_DAYS: Final = _pattern(words.MORE_DAYS)
