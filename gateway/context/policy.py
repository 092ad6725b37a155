"""When to compact, and how many tokens each part of a transcript may take: numbers in, numbers out.

On a large window the plain figures hold (200,000: threshold 100,000, tail 20,000, summary 10,000, head 4,000). On a
small one they would collide, and shares of the threshold win: head 10 %, summary 20 %, tail 20 %. So head, summary
and tail together leave at least half of the threshold free. All sizes are tokens unless a name says `chars`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from gateway.domain.window import HYGIENE

HEAD_TOKENS: Final = 4_000
HEAD_SHARE: Final = 0.10
SUMMARY_FLOOR: Final = 2_000
SUMMARY_CEILING: Final = 12_000
SUMMARY_WINDOW_SHARE: Final = 0.05
SUMMARY_SHARE: Final = 0.20
FALLBACK_CHARS: Final = 8_000
USABLE_SHARE: Final = 0.85  # of the window without the reserved output: the highest threshold
TAIL_OVERRUN: Final = 1.5  # a message may overrun the tail's budget up to this factor
MIN_TAIL_MESSAGES: Final = 3
LEAST_TARGET, MOST_TARGET = 0.10, 0.80  # shares of the threshold that the tail may be given
EFFECTIVE_SAVING: Final = 0.10  # of the tokens; an automatic pass must save so much

# Upper edge of the middle's size, and the share of the middle that a summary may take.
_SUMMARY_STEPS: Final = ((10_000, 0.20), (30_000, 0.15), (100_000, 0.10))
_SUMMARY_REST: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionSettings:
    """The sizes of the configuration's section `compression`.

    `threshold` is a share of the window, `target_ratio` a share of the threshold.
    """

    threshold: float = 0.50
    target_ratio: float = 0.20
    protect_first_n: int = 3
    protect_last_n: int = 20
    min_threshold_tokens: int = 64_000


@dataclass(frozen=True, slots=True, kw_only=True)
class HygieneRules:
    """When to compact before a turn: at a share of the window, or at a hard count of messages."""

    enabled: bool = True
    threshold: float = HYGIENE
    min_messages: int = 4
    max_messages: int = 5_000
    timeout: float = 120.0  # seconds

    def due(self, *, messages: int, tokens: int, context_length: int) -> bool:
        """Whether a transcript of this size must be compacted before the next turn."""
        if not self.enabled or messages < self.min_messages:
            return False
        return tokens >= self.threshold * context_length or messages >= self.max_messages


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """The most that each part of a compacted transcript may take on one model.

    `usable_tokens`: the most that a prompt should ever take of the window. `fallback_chars`: for a summary made
    without a model, whose tokens are bounded by `max_summary_tokens`.
    """

    usable_tokens: int
    threshold_tokens: int
    tail_tokens: int
    head_tokens: int
    max_summary_tokens: int
    fallback_chars: int

    def scaled(self, factor: float) -> Budgets:
        """Return the budgets with tail, head and summary times `factor`."""
        return replace(
            self,
            tail_tokens=int(self.tail_tokens * factor),
            head_tokens=int(self.head_tokens * factor),
            max_summary_tokens=int(self.max_summary_tokens * factor),
            fallback_chars=int(self.fallback_chars * factor),
        )


def budgets(context_length: int, settings: CompressionSettings, reserved: int) -> Budgets:
    """Return the budgets of a window of `context_length` tokens, of which `reserved` are kept for the answer."""
    usable = max(0, int((context_length - reserved) * USABLE_SHARE))
    wanted = max(int(context_length * settings.threshold), settings.min_threshold_tokens)
    threshold = max(1, min(wanted, usable))
    share = int(threshold * SUMMARY_SHARE)
    plain = min(int(context_length * SUMMARY_WINDOW_SHARE), SUMMARY_CEILING)
    summary = min(max(plain, min(SUMMARY_FLOOR, share)), share)
    ratio = min(MOST_TARGET, max(LEAST_TARGET, settings.target_ratio))
    return Budgets(
        usable_tokens=usable,
        threshold_tokens=threshold,
        tail_tokens=int(threshold * ratio),
        head_tokens=min(HEAD_TOKENS, int(threshold * HEAD_SHARE)),
        max_summary_tokens=summary,
        fallback_chars=min(FALLBACK_CHARS, summary * 4),
    )


def summary_budget(middle_tokens: int, max_summary_tokens: int) -> int:
    """Return the length of a summary of `middle_tokens`. It never falls as the middle grows."""
    best = 0.0
    for edge, share in _SUMMARY_STEPS:
        best = max(best, min(middle_tokens, edge) * share)
        if middle_tokens < edge:
            break
    else:
        best = max(best, middle_tokens * _SUMMARY_REST)
    return min(max(int(best), SUMMARY_FLOOR), max_summary_tokens)


def fitted(plain: Budgets, overhead: int) -> Budgets:
    """Return budgets for a request that also holds `overhead` tokens of system prompt and tools.

    Head, summary and an overrun tail must fit under the threshold beside the overhead. Where they do not, all three
    shrink alike, to a tenth at least: an empty conversation is no help.
    """
    wanted = plain.head_tokens + plain.max_summary_tokens + int(plain.tail_tokens * TAIL_OVERRUN)
    room = plain.threshold_tokens - overhead
    return plain if wanted <= room else plain.scaled(max(0.10, room / wanted))
