"""The usage of a call, from every provider in one shape.

Providers disagree on names and on the counts that include others: Anthropic counts cached tokens apart from
the input, OpenAI counts them inside. `CanonicalUsage` keeps buckets that never overlap, so that
prompt tokens are always their sum, whoever reported them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from gateway.domain.usage import CanonicalUsage

_MOST: Final = 10**12  # tokens of a call; a store holds the sums of many
_HOLDERS: Final = ("response", "message", "error", "x_groq")  # an event's, an error's and Groq's
Api = Literal["chat_completions", "responses", "messages"]


def normalize_usage(raw: Any, api: Api) -> CanonicalUsage:
    """The buckets of `raw`, a dict or an object as `api` reports usage. Counts are tokens.

    Never raises: what is missing, negative, beyond all measure or not a number counts as 0.
    """
    if raw is None or isinstance(raw, (str, bytes, int, float)):
        return CanonicalUsage()
    # A proxy in front of another API may keep that one's names, and one that only relabels the envelope keeps the usage
    # whole, its meaning included: Anthropic's counts cached tokens apart, that of Responses has details.
    has_prompt, has_input = (_field(raw, name) is not None for name in ("prompt_tokens", "input_tokens"))
    if has_prompt and not has_input:
        return _chat_completions(raw)
    if api == "chat_completions" and has_input and not has_prompt:
        api = "messages" if _field(raw, "input_tokens_details") is None else "responses"
    if api == "messages":
        return _messages(raw)
    return _responses(raw) if api == "responses" else _chat_completions(raw)


def told(data: Any, api: Api) -> CanonicalUsage | None:
    """The usage that an answer, an event or an error's body carries; None for none. Figures without a token say
    nothing."""
    usage = normalize_usage(usage_in(data), api)
    return usage if usage.total_tokens else None


def usage_in(data: Any) -> dict[str, Any]:
    """The usage in an answer, an event or an error's body."""
    holders = (data, *(data.get(name) for name in _HOLDERS)) if isinstance(data, dict) else ()
    found = (holder.get("usage") for holder in holders if isinstance(holder, dict))
    return next((usage for usage in found if usage and isinstance(usage, dict)), {})


def _messages(raw: Any) -> CanonicalUsage:
    write = _count(raw, "cache_creation_input_tokens") or sum(
        _count(raw, "cache_creation", f"ephemeral_{ttl}_input_tokens") for ttl in ("5m", "1h")
    )
    return CanonicalUsage(
        input_tokens=_count(raw, "input_tokens"),
        output_tokens=_count(raw, "output_tokens"),
        cache_read_tokens=_count(raw, "cache_read_input_tokens"),
        cache_write_tokens=write,
        reasoning_tokens=_count(raw, "output_tokens_details", "thinking_tokens"),
    )


def _responses(raw: Any) -> CanonicalUsage:
    read = _count(raw, "input_tokens_details", "cached_tokens")
    write = _count(raw, "input_tokens_details", "cache_creation_tokens") or _count(
        raw, "input_tokens_details", "cache_write_tokens"
    )
    return CanonicalUsage(
        input_tokens=max(0, _count(raw, "input_tokens") - read - write),
        output_tokens=_count(raw, "output_tokens"),
        cache_read_tokens=read,
        cache_write_tokens=write,
        reasoning_tokens=_count(raw, "output_tokens_details", "reasoning_tokens"),
    )


def _chat_completions(raw: Any) -> CanonicalUsage:
    read = (
        _count(raw, "prompt_tokens_details", "cached_tokens")
        or _count(raw, "cache_read_input_tokens")
        or _count(raw, "prompt_cache_hit_tokens")
        or _count(raw, "cached_tokens")
    )
    write = _count(raw, "prompt_tokens_details", "cache_write_tokens") or _count(raw, "cache_creation_input_tokens")
    return CanonicalUsage(
        input_tokens=max(0, _count(raw, "prompt_tokens") - read - write),
        output_tokens=_count(raw, "completion_tokens"),
        cache_read_tokens=read,
        cache_write_tokens=write,
        reasoning_tokens=_count(raw, "completion_tokens_details", "reasoning_tokens"),
    )


def _field(raw: Any, name: str) -> Any:
    return raw.get(name) if isinstance(raw, (dict, Mapping)) else getattr(raw, name, None)


def _count(raw: Any, *path: str) -> int:
    for name in path:
        raw = _field(raw, name)
    if isinstance(raw, bool) or not isinstance(raw, (int, float)) or not 0 <= raw <= _MOST:
        return 0
    return int(raw)
