"""The usage and the cost of a model call, and the size of a model's window."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import ceil
from typing import Final, Literal, Protocol

from msgspec import Struct

Purpose = Literal[
    "turn", "delegate", "compression", "memory", "title", "listening", "transcription", "speech", "picture",
    "embedding", "broken off",
]  # fmt: skip
_BYTES_OF_A_TOKEN: Final = 4  # in nearly any language
BROKEN_OFF: Final[Purpose] = "broken off"  # an attempt at an answer that did not end; its figures are our estimate


class CanonicalUsage(Struct, frozen=True, kw_only=True, omit_defaults=True, dict=True):
    """Token buckets of one call, the same for every API; none overlaps another."""

    input_tokens: int = 0  # prompt tokens that were neither read from nor written to a cache
    output_tokens: int = 0  # includes reasoning
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0  # a part of output_tokens

    @cached_property
    def prompt_tokens(self) -> int:
        """All that filled the window on the way in: cached tokens are cheap but not absent."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens

    @property
    def completion_tokens(self) -> int:
        """The name engines know `output_tokens` by."""
        return self.output_tokens

    @property
    def total_tokens(self) -> int:
        """Prompt and output together."""
        return self.prompt_tokens + self.output_tokens

    def __add__(self, other: CanonicalUsage) -> CanonicalUsage:
        return CanonicalUsage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
        )

    def as_dict(self) -> dict[str, int]:
        """Return the counts for engines: the three totals and every bucket."""
        prompt = self.prompt_tokens
        return {
            "prompt_tokens": prompt,
            "completion_tokens": self.output_tokens,
            "total_tokens": prompt + self.output_tokens,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cache_read_tokens": self.cache_read_tokens,
            "cache_write_tokens": self.cache_write_tokens,
            "reasoning_tokens": self.reasoning_tokens,
        }


def estimated_output(said: str) -> int:
    """The tokens of words that nobody counted, estimated by their bytes, because the event loop waits for this."""
    return ceil(len(said.encode("utf-8", "replace")) / _BYTES_OF_A_TOKEN)


class LedgerEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One model call of any purpose, as the ledger keeps it."""

    at: float
    purpose: Purpose
    provider: str
    model: str
    usage: CanonicalUsage
    cost_usd: float | None  # None: no price is known for the model


def usage_of(calls: Sequence[LedgerEntry]) -> CanonicalUsage:
    """The usage of model calls together."""
    if len(calls) == 1:  # as nearly always
        return calls[0].usage
    return sum((call.usage for call in calls), CanonicalUsage())


class Seller(Protocol):
    """Somebody who is paid for something other than models, as the ledger names them."""

    provider: str
    model: str


class UsageTotal(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Ledger entries added up under one label (a model, a purpose, a platform, a session)."""

    label: str = ""
    calls: int = 0
    usage: CanonicalUsage = CanonicalUsage()
    cost_usd: float = 0.0  # of the calls whose price is known
    unpriced_calls: int = 0

    def __add__(self, other: UsageTotal) -> UsageTotal:
        return UsageTotal(
            label=self.label,
            calls=self.calls + other.calls,
            usage=self.usage + other.usage,
            cost_usd=self.cost_usd + other.cost_usd,
            unpriced_calls=self.unpriced_calls + other.unpriced_calls,
        )


# -- windows -------------------------------------------------------------------------------------------


UNKNOWN_WINDOW: Final = 128_000  # tokens of a model that neither configuration, provider nor price table knows

# Shares of the window, and the consequence of a prompt that reaches them.
LOGGED: Final = 0.65  # the log says so
TOLD: Final = 0.75  # the person is told
HYGIENE: Final = 0.85  # the conversation is compacted before its next turn; the default of hygiene.threshold
EMERGENCY: Final = 0.95  # the conversation is compacted, whatever holds automatic compaction back


def reserved_output(context_length: int, max_output_tokens: int | None) -> int:
    """Return the tokens of a window that are kept free for the answer."""
    return max_output_tokens or min(8_192, context_length // 10)


def is_emergency(prompt_tokens: int, context_length: int) -> bool:
    """Whether a prompt has reached the last mark of a window; never for a window of unknown size (0)."""
    return context_length > 0 and prompt_tokens >= EMERGENCY * context_length
