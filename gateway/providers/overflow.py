"""Is a refusal about length, and which length?

Two errors look alike and want opposite remedies. *The prompt is too long*: compact. *The prompt
fits, but prompt plus requested output does not*: ask for less output, keep the transcript. And
some texts only mention tokens: rate limits, unsupported parameters.

The wording is the vendors' own and keeps changing, so this reads facts before phrases. If a text
states both the window and the size of the input, arithmetic decides. Only where numbers are
missing do phrases decide.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptTooLong:
    """The input alone does not fit; `limit` is the window in tokens if the text states it."""

    limit: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputTooLong:
    """The input fits, the requested output does not; `available` tokens would."""

    available: int | None


# A number of tokens; one with more digits is none. Not from the middle of a number: each digit would be a beginning.
# Not a part of a model's name either ("v3-0324"), and no thousands ("128k"); a line's end may be written as "\n".
_N = r"(?:(?<![a-z\d_-])|(?<=\\n))(\d[\d,_]{0,15})(?![\d,_]|[km]\b)"

_UPPER = r"(\d[\d_]{0,15})(?!\d)"  # of a range, behind a comma: "[1,8192]"

# What the text says the whole window is. The first match wins, so the telling ones come first.
_WINDOW: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rf'n_ctx(?:\\?")?\s*:\s*{_N}',
        rf"context size \({_N} tokens",
        rf"maximum context length (?:of \S{{1,80}} )?(?:is|of) (?:only )?{_N}",
        rf"maximum context (?:length|limit)[^\d.]{{0,20}}{_N}",
        rf"context length (?:is|of) (?:only )?{_N}",
        rf"context length \({_N}",
        rf"\(context length {_N}",
        rf"{_N} maximum context length",
        rf"maximum model length of {_N}",
        rf"maximum prompt length is {_N}",
        rf"configured limit of {_N}",
        rf"model token limit:? {_N}",
        rf"exceed(?:s|ed)? (?:the )?(?:context )?limit(?: of|:)?[^\d]{{0,3}}\d+ ?\+ ?\d+ >(?: |\\n)?{_N}",
        rf"exceeds? the limit of {_N}",
        rf"tokens > {_N} maximum",
        rf"maximum number of tokens allowed \(?{_N}",
        rf"maximum number of (?:input )?tokens:? (?:\d+ > )?{_N}",
        rf"(?<!with )\bmax(?:imum)? (?:allowed )?(?:input |sequence |prompt )?length (?:is |of )?\(?{_N}",
        rf"\bmax_(?:seq_|model_|input_)?len(?:gth)?\W{{0,2}} (?:of |is (?:set to )?)?\(?{_N}",
        rf"range of input length should be \[\d{{1,16}}, ?{_UPPER}\]",
        rf"must be <= {_N}\. given",
        rf"must have less than {_N} tokens",
        rf"cannot exceed {_N}",
        rf"while limit is {_N}",
        rf"max(?:imum)? (?:request )?size: {_N} tokens",
        rf"context (?:length|size|window)(?: size)?(?:,| is| of|:)? \(?{_N}(?! (?:tokens )?exceeds?)",
        rf"\bmax(?:imum)?(?: of|:)? {_N}(?! ?(?:char|byte|image|item|[km]b))",
        rf"(?:最大|上限|限制)[^\d,。，]{{0,16}}{_N}",
        rf"{_N} ?(?:个)? ?tokens? ?(?:的)?(?:上限|限制)",
    )
)

# What the text says the input is. Several hits (messages, functions, tools) are added up.
_INPUT: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_N} in (?:the|your) (?:messages|functions|prompt)",
        rf"{_N} of (?:text|tool|image|audio) input",
        rf"your messages resulted in {_N}",
        rf"your request has {_N} input",
        rf"you passed {_N} input",
        rf"{_N} tokens from the input",
        rf"given: {_N} `inputs`",
        rf"limit[^\d]{{0,3}}{_N} ?\+ ?\d+ >(?: |\\n)?\d+",
        rf"prompt contains (?:at least )?{_N} input tokens",
        rf"(?:prompt|input|request|conversation) (?:has|is) (?:about |at least )?{_N} tokens",
        rf"input length (?:of \S{{1,80}} )?is {_N}",
    )
)

# The setting that asks for output, as vendors call it. Beside a plus sign the bound is on the sum with the input.
_SETTING: Final = r"(?<!\+ )(?<!\+ `)\bmax(?:imum)?[_ ](?:completion_|new_|output_)?tokens\b"

# What the text says the output may be at most, whatever the input.
_OUTPUT_CAP: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rf"supports at most {_N} completion tokens",
        rf"{_SETTING}[^.]{{0,40}} too \w{{1,9}}: [\d,]{{1,16}}\. [^.\d]{{0,40}}at most {_N}",
        rf"max_(?:completion_|output_)?tokens:? \d+ > {_N}",
        rf"{_SETTING}[^.]{{0,40}} must be between \d+ and {_N}",
        rf"{_SETTING}[^.]{{0,100}} (?:<=|less than or equal to|at most|no more than|(?:can ?not|must not) exceed)"
        rf" \W?{_N}",
        rf"(?:output|completion) tokens[^.\d]{{0,40}} exceeds? [^.\d]{{0,40}}{_N}",
        rf"max_(?:completion_|output_)?tokens exceeds? the [a-z ]{{0,20}}limit of {_N}",
        rf"tokens you requested exceeds? the model limit of {_N}",
        rf"max_(?:completion_|output_)?tokens[^\d\[]{{0,20}}\[\d{{1,16}}, ?{_UPPER}\]",
        rf"(?:valid )?range of max_(?:completion_|output_)?tokens (?:is|should be) \[\d{{1,16}}, ?{_UPPER}\]",
        rf"max(?:_completion|_output)?_?tokens\W{{0,3}} (?:for \S+ )?(?:must be|should be|needs to be|has to be)"
        rf" (?:less than or equal to|at most|<=|no more than|smaller than) \W?{_N}",
        rf"maximum (?:allowed )?(?:number of )?(?:output|completion) tokens[^\d]{{0,20}}{_N}",
        rf"max_tokens[^\d]{{0,12}}(?:最大|上限|不能超过|不得超过)[^\d]{{0,8}}{_N}",
    )
)

# The same, where the number itself is too much already.
_OUTPUT_BOUND: Final = tuple(
    re.compile(pattern) for pattern in (rf"to {_N} \(exclusive\)", rf"supported range \[\d{{1,16}}, ?{_UPPER}\)")
)
_OUTPUT_TOO_MUCH: Final = re.compile(
    rf"{_SETTING}\W{{0,3}} (?:value )?(?:is |parameter is )?"
    r"(?:too (?:large|big|high)|(?:above|over|beyond|exceeds?) the (?!(?:\S+ ){0,3}context))"
)

_ASKS_OUTPUT: Final = re.compile(
    r"max_(?:completion_|new_|output_)?tokens|in the (?:completion|output)|for the completion"
    r"|requested .{0,12}output tokens"
)

# "41911 tokens exceeds max context window of 32768": whatever the words, a number is said to be above a smaller one.
_MORE_THAN: Final = (
    r"(?:exceed(?:s|ed|ing)?|(?:greater|larger|longer|more|higher) than|less than or equal to|at most|supports?"
    r"|(?:but|while)[^.;\d]{0,40}(?:max|limit|context))"
)
_ABOVE: Final = re.compile(
    rf"{_N}(?=[^.;\d]{{0,60}}\b{_MORE_THAN}\b[^.;\d]{{0,60}}{_N}(?! ?(?:char|byte|image|pixel|item|[km]b|per )))"
)
_ABOUT_LENGTH: Final = re.compile(r"token|prompt|context|input|length|message")
_BEFORE: Final = 80  # characters of the same sentence say what the number counts

_TOO_LONG: Final = re.compile(
    "|".join(
        (
            r"(?:context|content)[ _]length[ _]exceed(?:ed|s)",
            r"prompt_tokens_exceeded",
            r"exceed_context_size",
            r"request_too_large",
            r"model_context_window_exceeded",
            r"(?:maximum|max|model'?s?|available) context (?:length|size|window|limit)",
            r"too many total text bytes|current length is [\d,]+ while limit is|\"token limit\"",
            r"context (?:length|size|window)[^.]{0,40}(?:exceed|overflow|too (?:small|long))",
            r"(?:exceed|overflow|larger than|longer than|greater than|beyond|surpass)[^.]{0,60}context"
            r" (?:length|size|window|limit)",
            r"context the overflows",
            r"reached context length of",
            r"(?:prompt|input|conversation|messages?|request)(?: \w+)?(?: is| are| was|:)? too (?:long|large|big)",
            r"(?:prompt|input|history|context)\b[^.]{0,40}\btoo (?:long|large)",
            r"(?:prompt|input|conversation|history) is (?:longer|larger) than",
            r"(?:request|prompt|input) exceeds the maximum size",
            r"at most [\d,]{1,16} tokens,? (?:but )?(?:got|received|given)",
            r"too many (?:input |prompt )?tokens",
            r"tokens? (?:count )?[^.]{0,40}exceeds? the (?:model'?s? )?(?:max|limit)",
            r"\b(?:tokens|prompt|input|request)\b[^.]{0,40}(?:more|greater|larger|longer|higher) than (?:the )?"
            r"(?:max|allowed|supported)",
            r"(?<!image )(?<!audio )(?<!file )\b(?:prompt|input|request|messages?|sequence) (?:size|length)[^.]{0,40}"
            r"exceeds? ",
            r"exceed(?:s|ed)?[^.]{0,40}(?:token limit|max(?:imum)? length|maximum number of (?:input )?tokens)",
            r"maximum (?:prompt|input|sequence) length",
            r"exceeds? (?:the )?(?:max|maximum|configured|allowed) (?:\w+ ){0,2}(?:length|limit|tokens)",
            r"exceeds? (?:the )?max message tokens",
            r"greater than max_seq_len",
            r"token limit exceeded|(?:above|over|beyond) the (?:token limit|maximum context)",
            r"\b(?:prompt|inputs?|conversation|messages?) exceeds? (?:the )?(?:n_ctx|max_\w+_len)",
            r"exceeds the (?:max_model_len|maximum length|context)",
            r"input tokens exceed",
            r"range of input length should be",
            r"`inputs` (?:tokens )?(?:must|\+)|\binputs? must (?:have|be|contain) (?:less|fewer|at most|no more)",
            r"reduce (?:the|your) (?:(?:length|size|number of tokens) )?(?:(?:of|in) )?(?:(?:the|your) )?"
            r"(?:messages|prompt|input)",
            r"\.content': string too long",
            r"array too long[^.]{0,40}messages|'messages': array too long",
            r"request body too large",
            r"maximum model length",
            # 上下文 context, 长度 length, 超 over, 输入 input, 提示词 prompt, 过长/太长/超长 too long
            r"(?:上下文|输入|提示词|prompt|文本|消息|请求|token)[^。]{0,16}(?:过长|太长|超长)",
            r"(?:上下文|输入|提示词|prompt|文本|消息|token)[^。]{0,24}(?:超出|超过|超限)",
            r"(?:超出|超过)[^。]{0,24}(?:上下文|输入长度|最大长度|长度限制|token ?(?:上限|限制)|最大 ?token)",
        )
    )
)

# Texts that mention tokens and lengths but are about something else.
_OTHER: Final = re.compile(
    r"unsupported (?:parameter|value)|unsupported_parameter|unknown parameter|unrecognized (?:request )?argument"
    r"|is not supported with this model|extra inputs are not permitted|unexpected keyword|string_type"
    r"|invalid (?:api )?(?:key|token)\b|image exceeds|invalid base64"
    r"|context (?:length|size|window)(?: is)? too small(?! for)"
)


def judge_length(text: str) -> PromptTooLong | OutputTooLong | None:
    """What a refusal's text says about length; None if it is about something else.

    `text` is the whole body as it came; case does not matter.
    """
    lowered = text.lower()
    if _OTHER.search(lowered):
        return None
    window = _first(_WINDOW, lowered)
    used = sum(int(_digits(match)) for pattern in _INPUT for match in pattern.findall(lowered)) or None
    asks_output = _ASKS_OUTPUT.search(lowered) is not None
    if asks_output and window is not None and used is not None:
        return OutputTooLong(available=window - used) if used < window else PromptTooLong(limit=window)
    if window is not None and used is not None and used > window:
        return PromptTooLong(limit=window)
    cap, bound = _first(_OUTPUT_CAP, lowered), _first(_OUTPUT_BOUND, lowered)
    if cap is not None or bound is not None:
        return OutputTooLong(available=cap or (bound or 1) - 1 or None)
    above = _above(lowered)
    if above is not None:
        return above
    if _OUTPUT_TOO_MUCH.search(lowered):
        return OutputTooLong(available=None)
    return PromptTooLong(limit=window) if _TOO_LONG.search(lowered) else None


def _above(text: str) -> PromptTooLong | OutputTooLong | None:
    """What is said to be above its limit, by the numbers of both."""
    for match in _ABOVE.finditer(text):
        used, limit = (int(_digits(number)) for number in match.groups())
        what = re.split(r"[.;]", text[max(0, match.start() - _BEFORE) : match.start()])[-1]
        if used <= limit or "at least" in what or "minimum" in what:
            continue
        if re.search(_SETTING, what):
            return OutputTooLong(available=limit or None)
        if _ABOUT_LENGTH.search(what + text[match.end() : match.end() + _BEFORE]):
            return PromptTooLong(limit=limit or None)
    return None


def _first(patterns: tuple[re.Pattern[str], ...], text: str) -> int | None:
    for pattern in patterns:
        match = pattern.search(text)
        if match:
            return int(_digits(match.group(1))) or None
    return None


def _digits(number: str) -> str:
    return number.replace(",", "").replace("_", "")
