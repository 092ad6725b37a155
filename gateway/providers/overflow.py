"""Is a refusal about length, and which length?

Two errors look alike and want opposite remedies. *The prompt is too long*: compact. *The prompt
fits, but prompt plus requested output does not*: ask for less output, keep the transcript. And
some texts only mention tokens: rate limits, credentials, unsupported parameters.

The wording is the vendors' own and keeps changing, so no phrase of theirs stands here. The text is
made plain and cut into sentences. Each number gets a role by the words around it: a limit, the
input, the output that was asked for; arithmetic decides. Where numbers are missing, signs decide:
the subject of a sentence, and whether that is too much. A verdict names its signs, for the log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from msgspec import Struct, field

from gateway.runtime.patterns import late, table


class PromptTooLong(Struct, frozen=True, kw_only=True):
    """The input alone does not fit. `limit` is the window in tokens, if the text states it. `because`: for the log."""

    limit: int | None
    because: str = ""


class OutputTooLong(Struct, frozen=True, kw_only=True):
    """The input fits, the requested output does not; `available` tokens would. `limit`: the window, if the text states
    it. `because`: for the log."""

    available: int | None
    limit: int | None = None
    because: str = ""


def judge_length(text: str) -> PromptTooLong | OutputTooLong | None:
    """Return the statement of a refusal's text about length; None if the text is about something else.

    `text` is the whole body as it came.
    """
    plain = _plain(text)
    if _OTHER.search(plain):
        return None
    if _NO_ROOM.search(plain):
        return PromptTooLong(limit=None, because="less than no room is left for the output")
    sentences = _SENTENCE.split(plain)
    blames_output = _OUTPUT_TOO_MUCH.search(plain) is not None or _BLAMES_OUTPUT.search(plain) is not None
    numbers = _Numbers.of(sentences, of_output=blames_output)
    window, used, asked = numbers.window, numbers.used, numbers.asked
    told = f"window {window}, input {used}, output {asked}"
    if window and used and (asked or _ASKS_OUTPUT.search(plain)) and used < window:
        return OutputTooLong(available=window - used, limit=window, because=told)
    if window and used and used > window:
        return PromptTooLong(limit=window, because=told)
    if _OF_BOTH.search(plain) and not numbers.parts:  # what is asked for is small beside a window
        return PromptTooLong(limit=window, because=f"input and output together; {told}")
    if numbers.caps:
        return OutputTooLong(available=min(numbers.caps) or None, because="a cap of the output")
    if (window and asked and asked >= window) or _OUTPUT_TOO_MUCH.search(plain) or _advises_less_output(plain):
        return OutputTooLong(available=None, because=f"the output is too much; {told}")
    signs = next(filter(None, map(_signs, islice(_short(sentences), _MOST_PIECES))), None)
    return PromptTooLong(limit=window, because=", ".join(signs)) if signs else None


# --- the plain text --------------------------------------------------------------------------

_CAMEL: Final = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])")  # "PromptTooLong", "maxOutputTokens"
_TABLE: Final = table(__file__)
_PLAIN: Final = tuple(
    (re.compile(pattern), plain)
    for pattern, plain in (
        (  # FastAPI's
            r"\bmax_(?:completion_|new_)?tokens\W{1,12}msg\W{1,12}input should be less than or equal to (\d+)"
            r"[^}]{0,80}",
            r"max_tokens must be at most \1. ",
        ),
        (r"<[a-z/!][^<>]{0,200}>", ". "),  # a page has tags
        (r"\\{1,9}n|\s+", " "),
        (_TABLE["field"][0], ". "),
        (r"[\\\"'`*“”’$]", ""),
        (_TABLE["setting_named"][0], "a setting"),
        (r"(?<=[a-z])_(?=[a-z])", " "),
        (r"(?<![\w.=:-])[a-z][a-z-]{0,40}\d[\w.-]{0,60}", "model"),  # "deepseek-v3-0324" says no number of tokens
        (r"\[\d{1,16}, ?(\d{1,16})\]|between \d{1,16} and (\d{1,16})", r"at most \1\2"),
        (r"\[\d{1,16}, ?(\d{1,16})\)|from \d{1,16} \(inclusive\) to (\d{1,16})", r"at most \1\2 (exclusive)"),
        (r"(?<=\d)[,_](?=\d{3}(?!\d))|(?<=\d)\.0+(?!\d)", ""),  # thousands and decimals
        (
            r"\binput should be (?:less|greater) than\b(?!(?: or equal to)? \d+ tokens)",
            "a value is wrong:",
        ),  # pydantic's
        (r"input validation error|invalid (?:request|input argument)", ""),
        (r"(?<=exceeds limit) \(2013\)", ""),  # MiniMax's code of this error
        # A setting of the output that something else is measured by.
        (_TABLE["exceeds"][0], r"\1 the token limit"),
    )
)
_SENTENCE: Final = re.compile(r"[.;] |。")


def _plain(text: str) -> str:
    text = _CAMEL.sub(" ", text).lower()
    for pattern, plain in _PLAIN:
        text = pattern.sub(plain, text)
    return text


# --- numbers ---------------------------------------------------------------------------------

_OTHER_UNIT: Final = late(_TABLE["other_unit"])
_NO_NUMBER: Final = late(_TABLE["no_number"])
_OVER: Final = late(_TABLE["over"])
_NUMBER: Final = late(_TABLE["number"])
_MOST_NUMBERS: Final = 50  # are looked at
_LARGEST: Final = 10_000_000  # tokens of a window; a larger number counts bytes
_FEWEST: Final = 100  # tokens of a window, where nothing else says that they are tokens
_OF_TOKENS: Final = re.compile(r"token|len(?:gth)?\b")
_NEAR: Final = 160  # characters around a number that name its unit; words as near belong together

_ASKS_OUTPUT: Final = late(_TABLE["asks_output"])
_OUTPUT: Final = late(_TABLE["output setting"])
_OUTPUT_BEFORE: Final = late(_TABLE["output_before"])
_OUTPUT_AFTER: Final = late(_TABLE["output_after"])
_PART_AFTER: Final = late(_TABLE["part_after"])
_LIMIT: Final = late(_TABLE["limit"])
_LIMIT_AFTER: Final = late(_TABLE["limit_after"])
_INPUT: Final = late(_TABLE["input"])
_USED_BEFORE: Final = late(_TABLE["used_before"])
_USED_AFTER: Final = late(_TABLE["used_after"])
# "178959 + 64000 > 200000" and "64000 > 64001 - 24235".
_SUM: Final = late(_TABLE["sum"])


class _Numbers(Struct):
    """The numbers of a text by their meaning, in tokens."""

    windows: list[int] = field(default_factory=list)
    caps: list[int] = field(default_factory=list)  # of the output
    outputs: list[int] = field(default_factory=list)  # asked for
    parts: list[int] = field(default_factory=list)  # of the input: messages, functions
    totals: list[int] = field(default_factory=list)  # of the input, or of input and output

    @property
    def window(self) -> int | None:
        return min(self.windows, default=None)

    @property
    def used(self) -> int | None:
        return sum(self.parts) or max(self.totals, default=None)

    @property
    def asked(self) -> int | None:
        return max(self.outputs, default=None)

    @classmethod
    def of(cls, sentences: list[str], *, of_output: bool) -> _Numbers:
        """`of_output`: limits are the output's."""
        numbers = cls()
        summed = _SUM.search(". ".join(each for each in sentences if not _ANOTHER_THING.search(each)))
        if summed:
            used, window = summed[1] or summed[4], summed[2] or summed[3]
            numbers.windows.append(int(window))
            numbers.parts.append(int(used))
            return numbers
        found = ((sentence, match) for sentence in sentences for match in _NUMBER.finditer(sentence))
        for sentence, match in islice(found, _MOST_NUMBERS):
            start, end = match.span()
            before, after = sentence[max(0, start - _NEAR) : start], sentence[end : end + _NEAR]
            numbers._add(int(match[1]), before, after, of_output=of_output)
        return numbers

    def _add(self, number: int, so_far: str, after: str, *, of_output: bool) -> None:
        """`so_far`: the sentence until the number."""
        before = re.split(r"\d", so_far)[-1]
        words = _OUTPUT.sub("output", before)
        if _NO_NUMBER.search(before) or not number:
            return
        if _OVER.search(before) and _OUTPUT_BEFORE.search(before):
            self.caps.append(number)
        elif _OUTPUT_BEFORE.search(before) or (_OUTPUT_AFTER.match(after) and "most" not in before):
            self.outputs.append(number)
        elif _is_limit(words, before, after):
            if not _FEWEST <= number <= _LARGEST and not _OF_TOKENS.search(so_far + after):
                return
            if number > _LARGEST or _OTHER_UNIT.search(so_far + after) or _ANOTHER_THING.search(so_far + after):
                return
            number -= after.startswith(" (exclusive)")
            if (of_output or _OUTPUT.search(so_far) or _OUTPUT.match(after.lstrip())) and "context" not in before:
                self.caps.extend([number] if number > 1 else [])
            else:
                self.windows.append(number)
        elif _PART_AFTER.match(after):
            self.parts.append(number)
        elif _INPUT.search(before if not _USED_BEFORE.search(before) else so_far) or after.startswith(" token"):
            self.totals.append(number)


def _is_limit(words: str, before: str, after: str) -> bool:
    if _LIMIT_AFTER.match(after):
        return True
    is_used = _USED_BEFORE.search(before) or _USED_AFTER.match(after)
    return _LIMIT.search(words) is not None and not is_used


# --- signs -----------------------------------------------------------------------------------


class _Sign(NamedTuple):
    """Words that speak for a prompt that is too long, or against it."""

    name: str
    points: int
    words: re.Pattern[str]


_ANOTHER_THING: Final = late(_TABLE["another thing"])
# Each sign counts once in a sentence. The sentence speaks of a prompt that is too long if it names a thing and an
# excess and has enough points.
_ENOUGH: Final = 4
_MOST_PIECES: Final = 60  # of sentences are looked at; a refusal names its reason near its beginning
_POINTS: Final = {
    "prompt": 2, "text": 1, "too long": 3, "excess": 2, "advice": 1, "limit with its number": 1, "measure": 1,
    "output": -2, "output that ended": -4, "another thing": -4, "time, load or money": -4, "safety": -4,
    "credential": -4, "too little": -4,
}  # fmt: skip
_SIGNS: Final = tuple(_Sign(name, points, late(_TABLE[name])) for name, points in _POINTS.items())
_A_THING: Final = frozenset({"prompt", "text"})
_AN_EXCESS: Final = frozenset({"too long", "excess", "advice", "limit with its number"})

_OUTPUT_TOO_MUCH: Final = late(_TABLE["output_too_much"])
# "max_tokens must be at least 1, got -950": the server's own sum, of the window without the prompt.
_NO_ROOM: Final = late(_TABLE["no_room"])
# A field that stands alone, as in "param": "max_tokens", or that has a wrong value.
_BLAMES_OUTPUT: Final = late(_TABLE["blames_output"])
# "the estimated number of input and maximum output tokens (35000) exceeded this model context window limit"
_OF_BOTH: Final = late(_TABLE["of_both"])
_LESS_OUTPUT: Final = late(_TABLE["less_output"])
_LESS_INPUT: Final = late(_TABLE["less_input"])
_THE_OUTPUT: Final = late(_TABLE["the_output"])

# Texts that mention tokens and lengths but are about something else.
_OTHER: Final = late(_TABLE["other"])


def _short(sentences: list[str]) -> Iterator[str]:
    """Yield sentences, or pieces of long ones that overlap: words that are far apart do not belong together."""
    for sentence in sentences:
        for start in range(0, max(len(sentence) - _NEAR, 1), _NEAR):
            yield sentence[start : start + 2 * _NEAR]


def _signs(sentence: str) -> list[str]:
    """What in a sentence says that a prompt is too long; empty if nothing does."""
    said = _THE_OUTPUT.sub("output", sentence)
    found = [sign for sign in _SIGNS if sign.words.search(said)]
    names = {sign.name for sign in found}
    enough = sum(sign.points for sign in found) >= _ENOUGH
    return [sign.name for sign in found] if enough and names & _A_THING and names & _AN_EXCESS else []


def _advises_less_output(plain: str) -> bool:
    return _LESS_OUTPUT.search(plain) is not None and _LESS_INPUT.search(plain) is None
