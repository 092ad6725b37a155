"""When to compact and how much each part may take: numbers in, numbers out.

All sizes are tokens unless a name says `chars`. On a large window the
plain figures hold (200,000: threshold 100,000, tail 20,000, summary 10,000, head 4,000). On a
small one they would collide, and shares of the threshold win: head 10 %, summary 20 %, tail 20 %,
so that head, summary and tail together leave at least half of the threshold free.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

HEAD_TOKENS: Final = 4_000
HEAD_SHARE: Final = 0.10
SUMMARY_FLOOR: Final = 2_000
SUMMARY_CEILING: Final = 12_000
SUMMARY_WINDOW_SHARE: Final = 0.05
SUMMARY_SHARE: Final = 0.20
FALLBACK_CHARS: Final = 8_000
USABLE_SHARE: Final = 0.85  # of the window without the reserved output: no threshold lies above
TAIL_OVERRUN: Final = 1.5  # a message may overrun the tail's budget up to this factor
MIN_TAIL_MESSAGES: Final = 3
EFFECTIVE_SAVING: Final = 0.10  # a pass that saves less is a strike
EMERGENCY: Final = 0.95

# Upper edge of the middle's size, and the share of it a summary may take.
_SUMMARY_STEPS: Final = ((10_000, 0.20), (30_000, 0.15), (100_000, 0.10))
_SUMMARY_REST: Final = 0.05

PressureTier = Literal["calm", "log", "tell", "hygiene", "emergency"]
_TIERS: Final[tuple[tuple[float, PressureTier], ...]] = (
    (EMERGENCY, "emergency"),
    (0.85, "hygiene"),
    (0.75, "tell"),
    (0.65, "log"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionSettings:
    """What the configuration's `compression` section says about sizes.

    `threshold` and `target_ratio` are shares (of the window, of the threshold); `target_ratio` is
    held within 0.10–0.80.
    """

    threshold: float = 0.50
    target_ratio: float = 0.20
    protect_first_n: int = 3
    protect_last_n: int = 20
    min_threshold_tokens: int = 64_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """What each part of a compacted transcript may take on one model. `usable_tokens`: the most that a
    prompt should ever take of the window."""

    usable_tokens: int
    threshold_tokens: int
    tail_tokens: int
    head_tokens: int
    max_summary_tokens: int
    fallback_chars: int  # of a summary made without a model; its tokens: max_summary_tokens

    def scaled(self, factor: float) -> Budgets:
        """The same budgets with tail, head and summary times `factor`; the rest stays."""
        return Budgets(
            usable_tokens=self.usable_tokens,
            threshold_tokens=self.threshold_tokens,
            tail_tokens=int(self.tail_tokens * factor),
            head_tokens=int(self.head_tokens * factor),
            max_summary_tokens=int(self.max_summary_tokens * factor),
            fallback_chars=int(self.fallback_chars * factor),
        )


def reserved_output(context_length: int, max_output_tokens: int | None) -> int:
    """Tokens of the window kept free for the answer."""
    return max_output_tokens or min(8_192, context_length // 10)


def budgets(context_length: int, settings: CompressionSettings, reserved: int) -> Budgets:
    """The budgets of a window of `context_length` tokens, `reserved` of them for the answer."""
    usable = max(0, int((context_length - reserved) * USABLE_SHARE))
    wanted = max(int(context_length * settings.threshold), settings.min_threshold_tokens)
    threshold = max(1, min(wanted, usable))
    share = int(threshold * SUMMARY_SHARE)
    plain = min(int(context_length * SUMMARY_WINDOW_SHARE), SUMMARY_CEILING)
    summary = min(max(plain, min(SUMMARY_FLOOR, share)), share)
    ratio = min(0.80, max(0.10, settings.target_ratio))
    return Budgets(
        usable_tokens=usable,
        threshold_tokens=threshold,
        tail_tokens=int(threshold * ratio),
        head_tokens=min(HEAD_TOKENS, int(threshold * HEAD_SHARE)),
        max_summary_tokens=summary,
        fallback_chars=min(FALLBACK_CHARS, summary * 4),
    )


def summary_budget(middle_tokens: int, max_summary_tokens: int) -> int:
    """How long a summary of `middle_tokens` may be. Never falls as the middle grows."""
    best, edge = 0.0, 0
    for edge, share in _SUMMARY_STEPS:
        best = max(best, min(middle_tokens, edge) * share)
        if middle_tokens < edge:
            break
    else:
        best = max(best, middle_tokens * _SUMMARY_REST)
    return min(max(int(best), SUMMARY_FLOOR), max_summary_tokens)


def fitted(plain: Budgets, overhead: int) -> Budgets:
    """Budgets for a request that also holds `overhead` tokens of system prompt and tools.

    Head, summary and an overrun tail must fit under the threshold beside it; where they do not,
    all three shrink alike, to a tenth at least: a conversation of nothing is no help.
    """
    wanted = plain.head_tokens + plain.max_summary_tokens + int(plain.tail_tokens * TAIL_OVERRUN)
    room = plain.threshold_tokens - overhead
    return plain if wanted <= room else plain.scaled(max(0.10, room / wanted))


def pressure_tier(prompt_tokens: int, context_length: int) -> PressureTier:
    """How full the window is: `calm` below 0.65, then `log`, `tell`, `hygiene`, `emergency`."""
    pressure = prompt_tokens / context_length if context_length > 0 else 0.0
    return next((tier for edge, tier in _TIERS if pressure >= edge), "calm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """How many tokens a model's provider reports for one of ours: a running ratio.

    Prompts below `SMALL` tokens teach nothing: constant overheads would dominate them.
    """

    ratio: float = 1.0
    samples: int = 0

    SMALL = 200
    _LOWEST, _HIGHEST = 0.5, 4.0
    _MEMORY = 8  # the newest report weighs at least an eighth

    def observed(self, own: int, reported: int) -> Correction:
        """After a provider reported `reported` tokens where we had counted `own`."""
        if own < self.SMALL or reported <= 0:
            return self
        seen = min(self._HIGHEST, max(self._LOWEST, reported / own))
        samples = min(self.samples + 1, self._MEMORY)
        return Correction(ratio=self.ratio + (seen - self.ratio) / samples, samples=samples)

    def apply(self, own: int) -> int:
        """Our count as the provider would report it."""
        return int(own * self.ratio + 0.5)

    def invert(self, reported: int) -> int:
        """A provider's figure as we would count it."""
        return int(reported / self.ratio)

    def dump(self) -> dict[str, Any]:
        """JSON-able form."""
        return {"ratio": self.ratio, "samples": self.samples}

    @classmethod
    def load(cls, state: object) -> Correction:
        """The inverse of `dump`; anything else gives a fresh one."""
        if not isinstance(state, Mapping):
            return cls()
        ratio, samples = state.get("ratio"), state.get("samples")
        if not isinstance(ratio, int | float) or not isinstance(samples, int) or samples < 1:
            return cls()
        if not cls._LOWEST <= ratio <= cls._HIGHEST:
            return cls()
        return cls(ratio=float(ratio), samples=min(samples, cls._MEMORY))
