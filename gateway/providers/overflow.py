"""Is a refusal about length, and which length?

Two errors look alike and want opposite remedies. *The prompt is too long*: compact. *The prompt
fits, but prompt plus requested output does not*: ask for less output, keep the transcript. And
some texts only mention tokens: rate limits, unsupported parameters.

The wording is the vendors' own and keeps changing, so this reads facts before phrases, and phrases
by their parts. The text is made plain. Each number gets a role by the words around it: a limit, the
input, the output that was asked for; arithmetic decides. Where numbers are missing, words decide:
a thing that has a length, and that it is too much.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptTooLong:
    """The input alone does not fit; `limit` is the window in tokens if the text states it."""

    limit: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputTooLong:
    """The input fits, the requested output does not; `available` tokens would."""

    available: int | None


def judge_length(text: str) -> PromptTooLong | OutputTooLong | None:
    """Return the statement of a refusal's text about length; None if the text is about something else.

    `text` is the whole body as it came; case does not matter.
    """
    plain = _plain(text)
    if _OTHER.search(plain):
        return None
    numbers = _Numbers.of(plain)
    window, used, asked = numbers.window, numbers.used, numbers.asked
    if window and used and (asked or _ASKS_OUTPUT.search(plain)):
        return OutputTooLong(available=window - used) if used < window else PromptTooLong(limit=window)
    if window and used and used > window:
        return PromptTooLong(limit=window)
    if numbers.caps:
        return OutputTooLong(available=min(numbers.caps) or None)
    if (window and asked and asked >= window) or _OUTPUT_TOO_MUCH.search(plain) or _advises_less_output(plain):
        return OutputTooLong(available=None)
    return PromptTooLong(limit=window) if _says_too_long(plain) else None


# --- the plain text --------------------------------------------------------------------------

# Where a field of JSON begins or ends.
_FIELD: Final = (
    r"[\\\"]{1,9}(?:message|msg|error|detail|type|code|param|error_msg|status_msg)[\\\"]{1,9}: ?|[\\\"]{1,9},"
)
_PLAIN: Final = tuple(
    (re.compile(pattern), plain)
    for pattern, plain in (
        (r"\\{1,9}n|\s+", " "),
        (_FIELD, ". "),
        (r"[\\\"'`*“”’$]", ""),
        (r"(?<=[a-z])_(?=[a-z])", " "),
        (r"(?<![\w.=:-])[a-z][a-z-]{0,40}\d[\w.-]{0,60}", "model"),  # "deepseek-v3-0324" says no number of tokens
        (r"\[\d{1,16}, ?(\d{1,16})\]|between \d{1,16} and (\d{1,16})", r"at most \1\2"),
        (r"\[\d{1,16}, ?(\d{1,16})\)|from \d{1,16} \(inclusive\) to (\d{1,16})", r"at most \1\2 (exclusive)"),
        (r"(?<=\d)[,_](?=\d{3}(?!\d))|(?<=\d)\.0+(?!\d)", ""),  # thousands and decimals
        (r"input validation error|invalid (?:request|input argument)", ""),
        (r"(?<=exceeds limit) \(2013\)", ""),  # MiniMax's code of this error
    )
)


def _plain(text: str) -> str:
    text = text.lower()
    for pattern, plain in _PLAIN:
        text = pattern.sub(plain, text)
    return text


# --- numbers ---------------------------------------------------------------------------------

# A number of tokens; one with more digits is none. No thousands ("128k"), nothing that counts something else.
_OTHER_UNIT: Final = r"\b(?:char|byte|image|pixel|item|pages|element|string|array|maxlength|[km]b\b|per\b)"
_NUMBER: Final = re.compile(rf"(?<![\w.-])(\d{{1,16}})(?!(?!tokens?\b)\w|\.\d| ?(?:{_OTHER_UNIT}))")
_MOST_NUMBERS: Final = 50  # are looked at
_LARGEST: Final = 10_000_000  # tokens of a window; what is larger counts bytes
_NEAR: Final = 160  # characters around a number that say what it counts

# The setting that asks for output, as vendors call it. Beside a plus sign the bound is on the sum with the input.
_MAX_TOKENS: Final = r"\bmax(?:imum)? ?(?:completion |new |output ?)?tokens(?![a-z]| (?:allowed|limit|supported|of \d))"
_SETTING: Final = (
    rf"(?<!\+ )(?<!and ){_MAX_TOKENS}|\b(?:output|completion) tokens|tokens you requested|out of supported range"
)
_ASKS_OUTPUT: Final = re.compile(rf"{_SETTING}|{_MAX_TOKENS}")
_OUTPUT: Final = re.compile(_SETTING)
_OUTPUT_BEFORE: Final = re.compile(rf"(?:{_MAX_TOKENS}|{_SETTING})(?: value of)?(?: is|:| too large|=| \(| )*$")
_OUTPUT_AFTER: Final = re.compile(
    r" (?:tokens )?(?:(?:in|for) the (?:completion|output)|(?:output|completion|max new) tokens?)"
)
_PART_AFTER: Final = re.compile(
    r" (?:tokens )?(?:(?:in|from|of) (?:the |your )?)?(?:text |tool |image |audio )?"
    r"(?:inputs?|messages|functions|prompt)\b"
)

_LIMIT: Final = re.compile(
    r"max|limit|budget|context (?:window|length|size)|n ctx|cache size|at most|up to|not exceed|exceeds|vs\b"
    r"|(?:less|fewer|greater|larger|longer|bigger|higher|more) than| > |<=|最大|上限|限制"
)
_LIMIT_AFTER: Final = re.compile(
    r"[ -]?(?:tokens? )?(?:maximum|limit|budget|available|allowed|supported"
    r"|(?:个)? ?(?:tokens? ?)?(?:的)?(?:上限|限制))"
)
_INPUT: Final = re.compile(r"token|prompt|context|input|length|message|request|conversation|\+ $")
_USED_BEFORE: Final = re.compile(
    r"\b(?:requested|received|got|given|has|have|contains?|actual|supplied|provided|resulted in)"
    r"(?: a total of| about| at least| over|:| \()* ?$"
)
_USED_AFTER: Final = re.compile(r" (?:tokens )?(?:were |was )?(?:requested|given|received|supplied|provided|needed)\b")
# "178959 + 64000 > 200000" and "64000 > 64001 - 24235".
_SUM: Final = re.compile(r"(\d{1,16}) ?\+ ?\d{1,16} ?> ?(\d{1,16})|\d{1,16} ?> ?(\d{1,16}) ?- ?(\d{1,16})")


@dataclass(slots=True)
class _Numbers:
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
    def of(cls, plain: str) -> _Numbers:
        numbers = cls()
        summed = _SUM.search(plain)
        if summed:
            used, window = summed[1] or summed[4], summed[2] or summed[3]
            numbers.windows.append(int(window))
            numbers.parts.append(int(used))
            numbers.outputs.append(1)
            return numbers
        of_output = _OUTPUT_TOO_MUCH.search(plain) is not None or _BLAMES_OUTPUT.search(plain) is not None
        for match in islice(_NUMBER.finditer(plain), _MOST_NUMBERS):
            numbers._add(int(match[1]), *_around(plain, match), of_output=of_output)
        return numbers

    def _add(self, number: int, sentence: str, before: str, after: str, *, of_output: bool) -> None:
        """`before`: the words of the sentence since the last number. `of_output`: limits are the output's."""
        words = _OUTPUT.sub("output", before)
        if re.search(rf"{_OTHER_UNIT}|\bbound\b|resulting in|\bby (?:about )?$", before) or not number:
            return
        elsewhere = sentence + re.split(r"[.;] ", after)[0]
        if re.search(_OVER, before) and _OUTPUT_BEFORE.search(before):
            self.caps.append(number)
        elif _OUTPUT_BEFORE.search(before) or (_OUTPUT_AFTER.match(after) and "most" not in before):
            self.outputs.append(number)
        elif _is_limit(words, before, after):
            if number > _LARGEST or re.search(_OTHER_UNIT, elsewhere):
                return
            number -= after.startswith(" (exclusive)")
            if (of_output or _OUTPUT.search(sentence) or _OUTPUT.match(after.lstrip())) and "context" not in before:
                self.caps.extend([number] if number > 1 else [])
            else:
                self.windows.append(number)
        elif _PART_AFTER.match(after):
            self.parts.append(number)
        elif _INPUT.search(before if not _USED_BEFORE.search(before) else sentence) or after.startswith(" token"):
            self.totals.append(number)


def _is_limit(words: str, before: str, after: str) -> bool:
    if _LIMIT_AFTER.match(after):
        return True
    is_used = _USED_BEFORE.search(before) or _USED_AFTER.match(after)
    return _LIMIT.search(words) is not None and not is_used


def _around(plain: str, match: re.Match[str]) -> tuple[str, str, str]:
    sentence = re.split(r"[.;] ", plain[max(0, match.start() - _NEAR) : match.start()])[-1]
    return sentence, re.split(r"\d", sentence)[-1], plain[match.end() : match.end() + _NEAR]


# --- words -----------------------------------------------------------------------------------

_THING: Final = (
    r"\b(?:prompt|inputs?|messages?|conversation|history|context|request|payload|body|sequence"
    r"|(?<!budget )(?<!output )(?<!completion )tokens?|content|question|session)\b"
)
_MEASURE: Final = (
    r"\b(?:limit|max\w*|context|window|length|size|len|budget|allowed|supported|n ctx|threshold|model|\d{3,16})\b"
)
_OVER: Final = (
    r"\b(?:exceed\w*|overflow\w*|surpass\w*|(?:long|larg|great|bigg|high)er than|more than|above|over|beyond)\b"
)
_SO_FAR: Final = r"[^.;]{0,60}?"
_LESS_INPUT: Final = rf"\b(?:reduce|shorten|decrease|shorter)\b{_SO_FAR}\b(?:messages|prompt|input)\b"

_TOO_LONG: Final = re.compile(
    "|".join(
        (
            rf"{_THING}{_SO_FAR}\btoo (?:long|large|big)\b",
            r"\btoo (?:many|long|large)(?: total)?(?: text| input| prompt| message)? (?:tokens|bytes|prompt|input)\b",
            rf"{_THING}{_SO_FAR}{_OVER}{_SO_FAR}{_MEASURE}",
            rf"{_OVER}{_SO_FAR}\b(?:context|session)(?: max)? (?:length|size|window|limit)",
            r"(?<!output )\b(?:token|context|length|window) limit(?: has been| was| is)? (?:reached|hit|exceeded)",
            rf"{_THING}{_SO_FAR}\b(?:does|do|did|will|would)(?: not|nt) fit\b",
            rf"{_THING}{_SO_FAR}{_OVER}{_SO_FAR}\b(?:kv cache|max position embeddings)\b|\btext exceeds\b",
            r"\bmax (?:seq|sequence|model|input|prompt|context) len(?:gth)?\b[^.;]{0,40}>=",
            r"\bcharacters too long|(?<!\d: )\bexpected maxlength: \d{1,16}. actual|[:.] ?token limit ?[.}]",
            rf"{_OVER} (?:the )?max tokens",
            r"\b(?:context|prompt|input|tokens?|conversation|content|max \w{1,9} len)"
            r"(?: (?:length|size|window|limit|tokens|quantity))?(?: of \d{1,16})?(?: tokens)?(?: has been| was| is)?"
            r" (?:exceed|overflow)",
            rf"\bmax(?:imum)? (?:length|size){_SO_FAR}{_THING}",
            rf"\breached{_SO_FAR}(?:context|conversation)",
            r"\b(?:maximum|max|models?|available|supports|supported|allowed) context (?:length|size|window|limit)",
            rf"\b(?:context|n ctx)\b{_SO_FAR}\b(?:exceed\w*|overflow\w*|full|exhausted|used up)\b",
            _LESS_INPUT,
            rf"{_THING}{_SO_FAR}\b(?:must|should|can ?not)\b{_SO_FAR}(?:less|fewer|at most|exceed|no more|<=)",
            # 上下文 context, 长度 length, 超 over, 输入 input, 提示词 prompt, 对话 conversation, 过长/太长 too long
            r"(?:上下文|输入|提示词|prompt|文本|消息|请求|对话|内容|token)[^。]{0,24}(?:过长|太长|超长|超出|超过|超限|过大)",
            r"(?:超出|超过)[^。]{0,24}(?:上下文|长度|token|上限)|压缩上下文",
        )
    )
)
_OUTPUT_TOO_MUCH: Final = re.compile(
    rf"(?:{_SETTING}|\boutput token)(?: value| parameter| count)?(?: is| would| must not| should not| cannot)?"
    r" (?:too (?:large|big|high)|above|over|beyond|exceed|limited|参数超|超|过大|太大)"
)
# A field that stands alone, as in "param": "max_tokens".
_BLAMES_OUTPUT: Final = re.compile(rf"\. {_MAX_TOKENS}\.? ?[.}}]")
_LESS_OUTPUT: Final = re.compile(r"\b(?:lower|reduce|decrease) (?:the )?max tokens|\bmax tokens to a (?:lower|smaller)")
_SENTENCE_ENDS: Final = (". ", "; ", "。")
# What has a length or a number of its own: where a sentence speaks of it, the sentence is not about the prompt.
_NO_TEXT: Final = re.compile(
    r"\b(?:images?|audio|video|files?|attachments?|upload|pdf|usage|quota|stop|cache key|metadata|allowance"
    r"|thinking|billing|plan|period|month)\b"
    r"|\b(?:tool|function)s?(?:\[\d{1,4}\])?\.? ?(?:function\.)?(?:name|description)|图|视频|音频|文件|次数|频率|并发"
)

# Texts that mention tokens and lengths but are about something else.
_OTHER: Final = re.compile(
    r"unsupported (?:parameter|value)|unknown parameter|unrecognized (?:request )?argument"
    r"|is not supported with this model|extra inputs are not permitted|unexpected keyword|string type"
    r"|invalid (?:api )?(?:key|token)\b|invalid base64|increase the max tokens"
    r"|(?:window|length|size)(?: is)? too small(?! for)|must be an? (?:positive|integer|number|valid)"
)


def _says_too_long(plain: str) -> bool:
    found: Iterator[re.Match[str]] = _TOO_LONG.finditer(plain)
    return any("text" in match[0] or not _NO_TEXT.search(plain, *_sentence(plain, match)) for match in found)


def _sentence(plain: str, match: re.Match[str]) -> tuple[int, int]:
    """Return the beginning and the end of the sentence around a match."""
    start = max(plain.rfind(end, 0, match.start()) for end in _SENTENCE_ENDS)
    ends = [end for end in (plain.find(end, match.end()) for end in _SENTENCE_ENDS) if end >= 0]
    return max(start, match.start() - _NEAR), min([*ends, match.end() + 40])


def _advises_less_output(plain: str) -> bool:
    return _LESS_OUTPUT.search(plain) is not None and re.search(_LESS_INPUT, plain) is None
