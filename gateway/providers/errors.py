"""The refusals of providers as Legato's own errors: the one place that reads their bodies.

Pure: (status, body, headers) in, an error out. The order of the questions matters. Money and
speed come before length, because their texts mention tokens; length comes before the status,
because vendors answer it with 400, 413, 422, 500 or inside a 200.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final

from gateway.domain.wording import lasting
from gateway.providers.features import refused_feature
from gateway.providers.overflow import OutputTooLong, PromptTooLong, judge_length
from gateway.runtime.errors import (
    ContentRefused,
    ContextOverflow,
    FeatureRefused,
    OutputCapTooLarge,
    PicturesRefused,
    ProviderError,
    ProviderRateLimited,
    ProviderRejected,
    ProviderUnavailable,
    QuotaExceeded,
)

_BODY_READ: Final = 20_000  # characters of a body that are looked at
_DETAIL: Final = 200  # characters of the provider's own words that are passed on

_QUOTA: Final = re.compile(
    r"insufficient[_ ](?:quota|balance|credits?|funds)|billing_hard_limit|billing_not_active|credit balance is too low"
    r"|requires? more credits|out of credits|exceeded your current quota|quota[_ ]exceeded|payment required"
    r"|spend(?:ing)? limit|account is not active|arrear|余额不足|欠费|额度已用(?:完|尽)"
)
_RATE: Final = re.compile(
    r"rate[_ -]?limit|too many requests|tokens per (?:min|minute|day|hour)|requests per (?:min|minute|day|hour)"
    r"|\b[tr]p[md]\b|per[_ -]?minute|throttl|resource[_ ]exhausted|please wait before"
    r"|请求过于频繁|限流|并发数?过高|速率限制"
)
_OVERLOADED: Final = re.compile(
    r"overloaded|over capacity|server_error|service[_ ]unavailable|temporarily unavailable|api_error|bad gateway"
    r"|internal[_ ]?(?:server[_ ])?error|timed? ?out|try again later|no healthy upstream"
    r"|model is (?:currently )?loading"
)
# How servers say that a model takes no pictures: OpenAI, OpenRouter (404), DeepSeek, llama.cpp (500), vLLM, Ollama,
# LM Studio and, for any list of parts, Groq.
_NO_PICTURES: Final = re.compile(
    r"image_url is only supported by|endpoints found that support image|unknown variant [`'\"]?image_url"
    r"|unsupported content part type: ?\\?[`'\"]?image|image input is not supported|not a multimodal model"
    r"|at most 0 image|missing data required for image|content must be a string|不支持(?:图片|图像|视觉|多模态)"
    r"|(?:do|does|is|are)(?:es)?(?: not|n['’]t) support(?:ed)?(?: for)? (?:image|vision|multi-?modal)"
)
# A key that a vendor quotes in part: "sk-ab***cd", "sk-abcd…".
_MASKED_KEY: Final = re.compile(
    r"(?:(?<![\w-])[\w-]{1,200}+)?\*{3,}+[\w*-]*+"
    r"|(?<![\w-])(?=[\w-]{0,200}[-_\d])[\w-]{5,200}+(?:…|\.{3})[\w-]*+|\b(?:sk|pk|rk|gsk|xai)-[\w-]++"
)
# Vendors' names for the sentence for people.
_ALIASES: Final = {"msg": "message", "detail": "message", "error_msg": "message", "errorMessage": "message"}
# Vendors with two regions, where a key of one is unknown in the other; the paths behind the hosts are the same.
_OTHER_REGION: Final = {
    "api.moonshot.cn": "api.moonshot.ai",
    "dashscope.aliyuncs.com": "dashscope-intl.aliyuncs.com",
    "open.bigmodel.cn": "api.z.ai",
    "api.minimaxi.com": "api.minimax.io",
    "api.siliconflow.cn": "api.siliconflow.com",
}
_OTHER_REGIONS: Final = _OTHER_REGION | {there: here for here, there in _OTHER_REGION.items()}
_FEATURE_STATUS: Final = frozenset({0, 400, 404, 405, 422, 500, 501})  # 500: llama.cpp, of a chat template
_UNAVAILABLE_STATUS: Final = frozenset({408, 409, 425, 499})


def classify(
    status: int, body_text: str, headers: Mapping[str, str], *, redact: Callable[[str], str] = str, host: str = ""
) -> ProviderError:
    """The error that an answer stands for. Never raises.

    `status` is the HTTP status, or 200 for an error object inside a success; then the object's own
    code counts. `headers` may have any case. `host`: who answered. Every text is one short redacted sentence or two.
    """
    error = _meaning(status, body_text, headers, redact, host)
    error.status = error.status or status
    return error


def _meaning(
    status: int, body_text: str, headers: Mapping[str, str], redact: Callable[[str], str], host: str
) -> ProviderError:
    body, data = _read(body_text)
    fields = dict(_fields(data))
    if status < 300:
        status = _inner_status(fields)
    lowered = body.lower()
    detail = _detail(fields, body, redact)
    if status == 402 or (_QUOTA.search(lowered) and not _is_rate(lowered, fields)):
        return QuotaExceeded(
            f"The provider says the account has no credit left{detail}. Top it up, or change the model.", status=status
        )
    if status in _CONTENT_STATUS and _CONTENT.search(lowered):
        text = f"The provider's content filter refused the request{detail}. Put it differently, or try /model."
        return ContentRefused(text, status=status or None)
    too_much = _more_than_a_minute(status, lowered)
    if too_much is not None:
        return too_much
    if status == 429 or (status < 500 and status not in (401, 403) and _RATE.search(lowered)):
        return _rate_limited(headers, lowered, detail)
    if status in (401, 403):
        return ProviderRejected(
            f"The provider refused the API key{detail}. Check model.api_key.{_region_hint(host)}", status=status
        )
    length = judge_length(body)
    if length is None and status == 413:
        length = PromptTooLong(limit=None, because="status 413")
    if isinstance(length, PromptTooLong):
        return _context_overflow(length, bulky=status == 413 and length.limit is None)
    if isinstance(length, OutputTooLong):
        return _output_cap(length)
    if _NO_PICTURES.search(lowered):
        return PicturesRefused(f"The model takes words only{detail}.", status=status or None)
    feature = refused_feature(lowered) if status in _FEATURE_STATUS else None
    if feature is not None:
        text = f"The model refuses a part of the request{detail}. Check the model's settings, or try /model."
        return FeatureRefused(text, feature=feature, status=status or None)
    if status >= 500 or status in _UNAVAILABLE_STATUS or (status == 0 and not _says_invalid(fields)):
        return ProviderUnavailable(
            f"The provider has a problem ({status or 'in mid-answer'}){detail}. Try again later.",
            retry_after=retry_after(headers),
        )
    if status < 500 and _OVERLOADED.search(lowered) and not _says_invalid(fields):
        return ProviderUnavailable(
            f"The provider is overloaded{detail}. Try again later.", retry_after=retry_after(headers)
        )
    return _rejected(status, lowered, detail)


# Azure; OpenAI; Anthropic; Alibaba; DeepSeek; Moonshot; OpenRouter; Zhipu.
_CONTENT: Final = re.compile(
    r"\"(?:code|type)\": \"content_filter\"|content management policy|responsibleaipolicyviolation"
    r"|content_policy_violation|flagged as potentially violating|blocked by content filtering|data_?inspection_?failed"
    r"|may contain inappropriate content|content exists risk|considered high risk|requires moderation"
    r"|包含不安全或敏感内容"
)
_CONTENT_STATUS: Final = frozenset({0, 400, 403, 422, 451})


def _region_hint(host: str) -> str:
    other = _OTHER_REGIONS.get(host)
    return f" A key of the other region wants {other} in model.base_url." if other else ""


# Words of a refusal that names a fault of a request. Without one of them, its length may be.
_FAULT: Final = re.compile(
    r"support|unknown|unrecogni[sz]ed|unexpected|missing|required|must |should |invalid (?!request|input|param)|\brole"
    r"|tool|function|schema|json|pars(?:e|ing)|decod|not found|not exist|does not|deprecated|not (?:permitted|allowed)"
    r"|expired|region|location|polic(?:y|ies)|flagged|safety|moderat|temperature|top_|penalty|seed|logprob|image|file"
    r"|audio|stop|budget|think|reasoning|plan\b|credit|quota|balance|upload|dimension|cache|metadata|embedding"
    r"|malformed|too (?:short|small)|output|max_\w{0,12}_?tokens|per (?:day|minute)|retries|maximum of \d|max data"
    r"|不支持|缺少|参数|敏感|违规|余额|充值|并发|图|视频|格式"
)
_REFUSED_STATUS: Final = frozenset({400, 422})


def _rejected(status: int, lowered: str, detail: str) -> ProviderRejected:
    if 300 <= status < 400:
        text = "The model's address redirects elsewhere. Put the final address into model.base_url."
    elif status == 404:
        text = f"The provider does not know this model or address{detail}. Check model.name and model.base_url."
    else:
        text = f"The provider refused the request{detail}. Check the model's settings, or try /model."
    unexplained = status in _REFUSED_STATUS and _FAULT.search(lowered) is None
    return ProviderRejected(text, status=status or None, unexplained=unexplained)


def _context_overflow(length: PromptTooLong, *, bulky: bool) -> ContextOverflow:
    window = f" of {length.limit:,} tokens" if length.limit else ""
    return ContextOverflow(
        f"The conversation is longer than the model's window{window}. "
        "Use /compress to shorten it or /new to start fresh.",
        limit=length.limit,
        bulky=bulky,
        because=length.because,
    )


def _output_cap(length: OutputTooLong) -> OutputCapTooLarge:
    room = f" (room for {length.available:,} tokens)" if length.available else ""
    return OutputCapTooLarge(
        f"More output was asked for than the model can give{room}. Lower model.max_output_tokens.",
        available=length.available,
        because=length.because,
    )


def _rate_limited(headers: Mapping[str, str], lowered: str, detail: str) -> ProviderRateLimited:
    wait = retry_after(headers, lowered)
    when = f"in {lasting(wait, short=True)}" if wait else "in a moment"
    return ProviderRateLimited(f"The provider asks to slow down{detail}. Try again {when}.", retry_after=wait)


# "on tokens per min (TPM): Limit 30000, Requested 42362": OpenAI, Groq and others.
_TOKENS_PER_TIME: Final = re.compile(r"\b(output )?tokens per (?:min|day)|\b(o)?tp[md]\b")
_ONE_MINUTE: Final = re.compile(r"\blimit:? *([\d,]{1,16})[,.](?: *used:? *[\d,]{1,16},)? *requested:? *([\d,]{1,16})")


def _more_than_a_minute(status: int, lowered: str) -> ContextOverflow | OutputCapTooLarge | None:
    """The overflow of a limit per minute or day by one request, which no waiting makes fit."""
    what, found = _TOKENS_PER_TIME.search(lowered), _ONE_MINUTE.search(lowered)
    if what is None:
        return None
    limit, requested = (int(number.replace(",", "") or 0) for number in found.groups()) if found else (0, 0)
    if requested <= limit and not (status == 413 and found is None):
        return None
    if any(what.groups()):
        return _output_cap(OutputTooLong(available=limit or None, because="a limit per minute"))
    much = f"of {limit:,} tokens " if limit else "of tokens "
    return ContextOverflow(
        f"The request is larger than the account's limit {much}per minute. "
        "Use /compress to shorten the conversation or /new to start fresh.",
        limit=limit or None,
        lasting=False,
        because="a limit per minute",
    )


def _is_rate(lowered: str, fields: Mapping[str, Any]) -> bool:
    """Gemini words its per-minute limits as an exceeded quota; a stated wait gives it away."""
    if fields.get("code") == "insufficient_quota" or fields.get("type") == "insufficient_quota":
        return False
    return bool(re.search(r"per[_ -]?(?:minute|day|hour)|retrydelay|retry in \d", lowered))


# --- waiting ---------------------------------------------------------------------------------


def retry_after(headers: Mapping[str, str], lowered_body: str = "") -> float | None:
    """Return the seconds to wait: `retry-after-ms`, `Retry-After` (seconds, or a date measured against the answer's
    own Date, so that no clock is needed), or the body's words; else None."""
    given = {name.lower(): value.strip() for name, value in headers.items()}
    milliseconds = _number(given.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    stated = given.get("retry-after", "")
    seconds = _number(stated)
    if seconds is None and stated:
        seconds = _between(given.get("date", ""), stated)
    return _in_words(lowered_body) if seconds is None else seconds


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,9}(\.\d+)?", text) else None


def _between(start: str, end: str) -> float | None:
    try:
        return max(0.0, (parsedate_to_datetime(end) - parsedate_to_datetime(start)).total_seconds())
    except (ValueError, TypeError):
        return None


_WORDS: Final = re.compile(
    r"(?:try again in|retry in|retry after|retrydelay\"?\s*:\s*\"?|wait)\s*"
    r"(?:(?P<h>\d{1,4}) ?h(?:ours?)?)? ?(?:(?P<m>\d{1,5}) ?m(?:in(?:utes?)?)?(?!s))? ?"
    r"(?:(?P<s>\d{1,6}(?:\.\d+)?) ?s)?(?:(?P<ms>\d{1,9}(?:\.\d+)?) ?ms)?"
)


def _in_words(lowered: str) -> float | None:
    for match in _WORDS.finditer(lowered):
        if any(match.groups()):
            hours, minutes, seconds, milliseconds = (float(part or 0) for part in match.group("h", "m", "s", "ms"))
            return hours * 3600 + minutes * 60 + seconds + milliseconds / 1000
    return None


# --- bodies ----------------------------------------------------------------------------------


def _read(body_text: str) -> tuple[str, Any]:
    """The body as readable text, JSON's escapes undone (Chinese often comes escaped), and as data."""
    try:
        data = json.loads(body_text)
        return json.dumps(data, ensure_ascii=False)[:_BODY_READ], data
    except (ValueError, RecursionError):
        return body_text[:_BODY_READ], None


def _fields(data: Any) -> Iterator[tuple[str, Any]]:
    """The scalar fields of an error body, outer ones first so that inner, telling ones win."""
    pending = [data]
    while pending:
        found = pending.pop(0)
        if isinstance(found, list):
            pending.extend(found[:8])
        elif isinstance(found, dict):
            for key, value in list(found.items())[:40]:
                if isinstance(value, (dict, list)):
                    pending.append(value)
                elif key == "error" and isinstance(value, str):
                    yield "message", value
                elif value is not None:
                    yield _ALIASES.get(key) or str(key), value


def _inner_status(fields: Mapping[str, Any]) -> int:
    """The status that an error inside a 200 names for itself; 0 if none."""
    for name in ("code", "status", "status_code", "http_code"):
        value = str(fields.get(name, ""))
        if re.fullmatch(r"[45]\d\d", value):
            return int(value)
    return 0


def _says_invalid(fields: Mapping[str, Any]) -> bool:
    kinds = f"{fields.get('type', '')} {fields.get('code', '')} {fields.get('status', '')}".lower()
    return "invalid" in kinds or "not_found" in kinds or "unsupported" in kinds


def _detail(fields: Mapping[str, Any], body: str, redact: Callable[[str], str]) -> str:
    """The provider's own words, ready to stand in a sentence: ": …" or nothing for HTML pages."""
    words = fields.get("message")
    if not isinstance(words, str) or not words.strip():
        words = "" if body.lstrip()[:1] in ("<", "{", "[") else body
    # Redact before cutting: a credential cut in half is no longer recognised.
    words = " ".join(_MASKED_KEY.sub("[REDACTED]", redact(words[:4_000])).split())
    if len(words) > _DETAIL:
        words = words[: _DETAIL - 1].rstrip() + "…"
    return f": {words.rstrip('. ')}" if words else ""
