"""The refusals of providers as Legato's own errors: the one place that reads their bodies.

Pure: (status, body, headers) in, an error out. `classify` has the questions in their order, and each question stands
with the wordings by which it is answered. Money and speed come before length, because their texts mention tokens;
length comes before the status, because vendors answer it with 400, 413, 422, 500 or inside a 200.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final

from gateway.domain.wording import lasting
from gateway.providers.features import allowed_values, refused_feature
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
from gateway.runtime.patterns import late, table

_BODY_READ: Final = 20_000  # characters of a body that are looked at
_DETAIL: Final = 200  # characters of the provider's own words that are passed on


def classify(
    status: int, body_text: str, headers: Mapping[str, str], *, redact: Callable[[str], str] = str, host: str = ""
) -> ProviderError:
    """The error that an answer stands for. Never raises.

    `status` is the HTTP status, or 200 for an error object inside a success; then the object's own
    code counts. `headers` may have any case. `host`: who answered. Every text is one short redacted sentence or two.
    """
    refusal = _Refusal(status, body_text, headers, redact, host)
    questions = (
        _no_credit,
        _content_refused,
        _more_than_a_minute,
        _model_gone,
        _rate_limited,
        _not_served_here,
        _key_refused,
        _too_long,
        _pictures_refused,
        _feature_refused,
        _unavailable,
    )
    error = next(filter(None, (question(refusal) for question in questions)), None) or _rejected(refusal)
    error.status = refusal.status or status or None
    return error


class _Refusal:
    """An answer that is an error. `status`: that of an error inside a 200 is its own, 0 if it names none. `lowered`:
    the body in lower case. `fields`: those of its JSON. `detail`: the provider's own words, behind a colon."""

    def __init__(
        self, status: int, body_text: str, headers: Mapping[str, str], redact: Callable[[str], str], host: str
    ) -> None:
        self.body, data = _read(body_text)
        self.lowered = self.body.lower()
        self.fields = dict(_fields(data))
        self.status = _inner_status(self.fields) if status < 300 else status
        self.detail = _detail(self.fields, self.body, redact)
        self.headers = headers
        self.host = host

    @property
    def says_invalid(self) -> bool:
        """Whether the request is named as the fault."""
        kinds = " ".join(str(self.fields.get(name, "")) for name in ("type", "code", "status")).lower()
        return "invalid" in kinds or "not_found" in kinds or "unsupported" in kinds


# --- money, content, speed -------------------------------------------------------------------

_TABLE: Final = table(__file__)
_QUOTA: Final = late(_TABLE["quota"])
# Alibaba's "Throttling.AllocationQuota" is of a minute, too.
_PER_TIME: Final = re.compile(r"per[_ -]?(?:minute|day|hour)|retrydelay|retry in \d|\bthrottling\.|每分钟")


def _no_credit(refusal: _Refusal) -> ProviderError | None:
    if refusal.status != 402:
        insufficient = "insufficient_quota" in (refusal.fields.get("code"), refusal.fields.get("type"))
        # Gemini words its per-minute limits as an exceeded quota; a stated wait gives it away.
        is_rate = not insufficient and _PER_TIME.search(refusal.lowered)
        if is_rate or not _QUOTA.search(refusal.lowered):
            return None
    return QuotaExceeded(
        f"The provider says the account has no credit left{refusal.detail}. Top up the account, or change the model."
    )


# Azure; OpenAI; Anthropic; Alibaba; DeepSeek; Moonshot; OpenRouter; Zhipu.
_CONTENT: Final = late(_TABLE["content"])
_CONTENT_STATUS: Final = frozenset({0, 400, 403, 422, 451})


def _content_refused(refusal: _Refusal) -> ProviderError | None:
    if refusal.status not in _CONTENT_STATUS or not _CONTENT.search(refusal.lowered):
        return None
    return ContentRefused(
        f"The provider's content filter refused the request{refusal.detail}. Put your message differently, or try "
        "another /model."
    )


# "on tokens per min (TPM): Limit 30000, Requested 42362": OpenAI, Groq and others.
_TOKENS_PER_TIME: Final = re.compile(r"\b(output )?tokens per (?:min|day)|\b(o)?tp[md]\b")
_ONE_MINUTE: Final = re.compile(r"\blimit:? *([\d,]{1,16})[,.](?: *used:? *[\d,]{1,16},)? *requested:? *([\d,]{1,16})")


def _more_than_a_minute(refusal: _Refusal) -> ProviderError | None:
    """The overflow of a limit per minute or day by one request, which no waiting makes fit."""
    what, found = _TOKENS_PER_TIME.search(refusal.lowered), _ONE_MINUTE.search(refusal.lowered)
    if what is None:
        return None
    limit, requested = (int(number.replace(",", "") or 0) for number in found.groups()) if found else (0, 0)
    if requested <= limit and not (refusal.status == 413 and found is None):
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


_RATE: Final = late(_TABLE["rate"])


def _rate_limited(refusal: _Refusal) -> ProviderError | None:
    status = refusal.status
    if status != 429 and (status >= 500 or status in (401, 403) or not _RATE.search(refusal.lowered)):
        return None
    wait = retry_after(refusal.headers, refusal.lowered)
    when = f"in {lasting(wait, short=True)}" if wait else "in a moment"
    return ProviderRateLimited(f"The provider asks to slow down{refusal.detail}. Try again {when}.", retry_after=wait)


# --- the key ---------------------------------------------------------------------------------

# Vendors with two regions, where a key of one is unknown in the other; the paths behind the hosts are the same.
_OTHER_REGION: Final = {
    "api.moonshot.cn": "api.moonshot.ai",
    "dashscope.aliyuncs.com": "dashscope-intl.aliyuncs.com",
    "open.bigmodel.cn": "api.z.ai",
    "api.minimaxi.com": "api.minimax.io",
    "api.siliconflow.cn": "api.siliconflow.com",
}
_OTHER_REGIONS: Final = _OTHER_REGION | {there: here for here, there in _OTHER_REGION.items()}


# OpenAI's unsupported_country_region_territory; Gemini's "User location is not supported"; xAI, Groq and Chinese ones.
_REGION: Final = late(_TABLE["region"])


def _not_served_here(refusal: _Refusal) -> ProviderError | None:
    """A provider that refuses a country refuses every key of it."""
    if refusal.status not in (400, 401, 403, 451) or not _REGION.search(refusal.lowered):
        return None
    return ProviderRejected(
        f"The provider does not serve this machine's country or region{refusal.detail}. "
        "Choose another provider, or reach this one through another server (model.base_url).",
        away=True,
    )


# Gemini and xAI answer a wrong key with 400.
_KEY: Final = re.compile(
    r"(?:invalid|incorrect|wrong|expired|missing) api[_ -]?key"
    r"|api[_ -]?key (?:not valid|expired|is (?:invalid|missing))"
)


def _key_refused(refusal: _Refusal) -> ProviderError | None:
    if refusal.status not in (401, 403) and not (refusal.status == 400 and _KEY.search(refusal.lowered)):
        return None
    other = _OTHER_REGIONS.get(refusal.host)
    hint = f" If your key is for the other region, set model.base_url to {other}." if other else ""
    text = f"The provider refused the API key{refusal.detail}. Check model.api_key.{hint}"
    return ProviderRejected(text, away=True)


# Vendors' words for a model that is not there, or not any more: Groq, DeepSeek, Mistral, OpenRouter, Z.ai, OpenAI.
_GONE: Final = late(_TABLE["gone"])
_GONE_STATUS: Final = frozenset({0, 400, 403, 404, 410, 422, 429, 503})  # 429: Z.ai, of another plan; 503: one-api


def _model_gone(refusal: _Refusal) -> ProviderError | None:
    if refusal.status not in _GONE_STATUS or not _GONE.search(refusal.lowered):
        return None
    text = (
        f"The provider does not have this model{refusal.detail}. Check model.name. `legato models` lists the "
        "provider's models."
    )
    return ProviderRejected(text, away=True)


# --- length ----------------------------------------------------------------------------------


def _too_long(refusal: _Refusal) -> ProviderError | None:
    length = judge_length(refusal.body)
    if length is None and refusal.status == 413:
        length = PromptTooLong(limit=None, because="status 413")
    if isinstance(length, OutputTooLong):
        return _output_cap(length)
    if length is None:
        return None
    window = f" of {length.limit:,} tokens" if length.limit else ""
    return ContextOverflow(
        f"The conversation is longer than the model's window{window}. "
        "Use /compress to shorten the conversation or /new to start fresh.",
        limit=length.limit,
        bulky=refusal.status == 413 and length.limit is None,
        because=length.because,
    )


def _output_cap(length: OutputTooLong) -> OutputCapTooLarge:
    room = f" (room for {length.available:,} tokens)" if length.available else ""
    return OutputCapTooLarge(
        f"The model cannot write as much as Legato asked for{room}. Lower model.max_output_tokens.",
        available=length.available,
        limit=length.limit,
        because=length.because,
    )


# --- the parts of a request ------------------------------------------------------------------

# How servers say that a model takes no pictures: OpenAI, OpenRouter (404), DeepSeek, llama.cpp (500), vLLM, Ollama,
# LM Studio and, for any list of parts, Groq.
_NO_PICTURES: Final = late(_TABLE["no_pictures"])


def _pictures_refused(refusal: _Refusal) -> ProviderError | None:
    if not _NO_PICTURES.search(refusal.lowered):
        return None
    return PicturesRefused(f"The model accepts only text{refusal.detail}.")


_FEATURE_STATUS: Final = frozenset({0, 400, 404, 405, 422, 500, 501})  # 500: llama.cpp, of a chat template


def _feature_refused(refusal: _Refusal) -> ProviderError | None:
    feature = refused_feature(refusal.lowered) if refusal.status in _FEATURE_STATUS else None
    if feature is None:
        return None
    text = f"The model refuses a part of the request{refusal.detail}. Check the settings, or choose another /model."
    return FeatureRefused(text, feature=feature, allowed=allowed_values(feature, refusal.lowered))


# --- all others ------------------------------------------------------------------------------

_OVERLOADED: Final = late(_TABLE["overloaded"])
_UNAVAILABLE_STATUS: Final = frozenset({408, 409, 424, 425, 498, 499})  # 424: Bedrock; 498: Groq, without room


def _unavailable(refusal: _Refusal) -> ProviderError | None:
    status, wait = refusal.status, retry_after(refusal.headers)
    if status >= 500 or status in _UNAVAILABLE_STATUS or (status == 0 and not refusal.says_invalid):
        text = f"The provider has a problem ({status or 'in mid-answer'}){refusal.detail}. Try again later."
        return ProviderUnavailable(text, retry_after=wait)
    if _OVERLOADED.search(refusal.lowered) and not refusal.says_invalid:
        return ProviderUnavailable(f"The provider is overloaded{refusal.detail}. Try again later.", retry_after=wait)
    return None


# Words of a refusal that names a fault of a request. Without one of them, its length may be.
_FAULT: Final = late(_TABLE["fault"])
_REFUSED_STATUS: Final = frozenset({400, 422})


def _rejected(refusal: _Refusal) -> ProviderError:
    status = refusal.status
    if 300 <= status < 400:
        text = "The address of the model redirects to another one. Put the final address into model.base_url."
    elif status == 404:
        text = f"The provider does not know this model or address{refusal.detail}. Check model.name and model.base_url."
    else:
        text = f"The provider refused the request{refusal.detail}. Check the settings, or choose another /model."
    unexplained = status in _REFUSED_STATUS and _FAULT.search(refusal.lowered) is None
    return ProviderRejected(text, unexplained=unexplained)


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
    except (ValueError, TypeError, OverflowError):  # no date, one without a zone, a year that no calendar has
        return None


_WORDS: Final = re.compile(
    r"(?:try again (?:in|after)|retry in|retry after|retrydelay\"?\s*:\s*\"?|wait)\s*"
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

# A key that a vendor quotes in part: "sk-ab***cd", "sk-abcd…".
_MASKED_KEY: Final = re.compile(
    r"(?:(?<![\w-])[\w-]{1,200}+)?\*{3,}+[\w*-]*+"
    r"|(?<![\w-])(?=[\w-]{0,200}[-_\d])[\w-]{5,200}+(?:…|\.{3})[\w-]*+|\b(?:sk|pk|rk|gsk|xai)-[\w-]++"
)
# Vendors' names for the sentence for people.
_ALIASES: Final = {"msg": "message", "detail": "message", "error_msg": "message", "errorMessage": "message"}


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
                elif key == "raw" and isinstance(value, str):  # a router's copy of the vendor's own answer
                    inner = _read(value)[1]
                    pending.append(inner if isinstance(inner, dict) else {"message": value})
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


def _detail(fields: Mapping[str, Any], body: str, redact: Callable[[str], str]) -> str:
    """The provider's own words, in a form for sentences: ": …", or nothing for HTML pages."""
    words = fields.get("message")
    if not isinstance(words, str) or not words.strip():
        words = "" if body.lstrip()[:1] in ("<", "{", "[") else body
    # Redact before cutting: a credential cut in half is no longer recognised.
    words = " ".join(_MASKED_KEY.sub("[REDACTED]", redact(words[:4_000])).split())
    if len(words) > _DETAIL:
        words = words[: _DETAIL - 1].rstrip() + "…"
    return f": {words.rstrip('. ')}" if words else ""
