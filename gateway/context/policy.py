"""The time for a compaction, and the tokens for each part of a transcript: numbers in, numbers out.

On a large window the plain figures hold (200,000: threshold 100,000, tail 20,000, summary 10,000, list of identifiers
12,000, head 4,000). On a small one they would collide, and shares of the threshold win: head 10 %, summary 15 %,
summary and list 32.5 %, tail 10 to 20 %. The tail yields so far that a pass, with an opening and a long message, leaves
about half of the threshold.
All sizes are tokens unless a name says `chars`.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Annotated, Final

from msgspec import Struct
from pydantic import Field

from gateway.domain.settings import Contradiction, Count, Flag, Natural, Seconds, Section, Share, ShareOrAuto, Text
from gateway.domain.usage import HYGIENE
from gateway.runtime.structs import replace

HEAD_TOKENS: Final = 4_000
HEAD_SHARE: Final = 0.10
SUMMARY_FLOOR: Final = 2_000
SUMMARY_CEILING: Final = 12_000
SLACK: Final = 1.25  # times its budget: so long may a summary be
SUMMARY_WINDOW_SHARE: Final = 0.05
SUMMARY_SHARE: Final = 0.15
NOTES_SHARE: Final = 0.325  # of the threshold: the summary and the list of identifiers behind it
LEAST_TAIL: Final = 0.50  # of the tail's budget: the least that a small window leaves it
LEDGER_CEILING: Final = 12_000
FALLBACK_CHARS: Final = 8_000
USABLE_SHARE: Final = 0.85  # of the window without the reserved output: the highest threshold
SMALL: Final = 6_000  # tokens of a window; in a smaller one two messages fill what a pass leaves free
USABLE_OF_SMALL: Final = 0.93
TAIL_OVERRUN: Final = 1.5  # a message may overrun the tail's budget up to this factor
FREE_SHARE: Final = 0.30  # of the threshold beside system prompt and tools: a pass leaves it free
FREE_OF_SMALL: Final = 0.50  # the same in a small window, at least
MOST_FREE_OF_SMALL: Final = 0.70
_FREE_MESSAGES: Final = 10  # of the usual length, that the free room of a small window holds
FREE_OF_CHEAP: Final = 0.60  # the same where a window ends before its cheapest threshold
PLAIN_THRESHOLD: Final = 0.50  # of the window
MIN_TAIL_MESSAGES: Final = 3
LEAST_TARGET, MOST_TARGET = 0.10, 0.80  # shares of the threshold that the tail may be given
EFFECTIVE_SAVING: Final = 0.10  # of the tokens; an automatic pass must save so much

# Upper edge of the middle's size, and the share of the middle that a summary may take.
_SUMMARY_STEPS: Final = ((10_000, 0.20), (30_000, 0.15), (100_000, 0.10))
_SUMMARY_REST: Final = 0.05


class CompressionSettings(Section):
    """When a conversation fills more than `threshold` of the window, a summary replaces the middle of the
    conversation."""

    enabled: Flag = Field(True, description="compact conversations automatically")
    threshold: ShareOrAuto = Field(
        PLAIN_THRESHOLD,
        description="the share of the window at which it begins; auto: where the chat costs least",
    )
    target_ratio: Annotated[float, Field(strict=True, ge=LEAST_TARGET, le=MOST_TARGET, allow_inf_nan=False)] = Field(
        0.20, description="0.1 to 0.8: the share of the threshold that the newest messages keep"
    )
    left_ratio: Share = Field(
        0.46,
        description="the share of the threshold that a compaction may leave; newest messages may shrink by half",
    )
    max_tail_tokens: Count = Field(25_000, description="the newest messages never take more tokens than this")
    protect_first_n: Natural = Field(3, description="messages at the start that stay as they are")
    protect_last_n: Count = Field(20, description="messages at the end that stay while there is room")
    summary_model: Text | None = Field(
        None, description="short form of `auxiliary.compression`: another model at the same address"
    )
    min_threshold_tokens: Natural = Field(64_000, description="with a large window, compaction never begins below this")
    background: Flag = Field(True, description="prepare the summary after a reply, so that people need not wait")

    @property
    def share(self) -> float:
        """The share of the window at which a compaction begins, unless prices say otherwise."""
        return PLAIN_THRESHOLD if self.threshold == "auto" else self.threshold


class HygieneRules(Section):
    """A safety net. Before each turn, Legato compacts a conversation that is suddenly too full, for example after a
    switch to a smaller model."""

    threshold: Share = Field(
        HYGIENE, description="the share of the window at which it begins; above compression.threshold"
    )
    min_messages: Count = Field(4, description="shorter conversations are left alone")
    max_messages: Count = Field(5_000, description="longer conversations are compacted, whatever their size")
    timeout: Seconds = Field(120, description="seconds that a compaction may take")

    def contradictions(self) -> Iterator[Contradiction]:
        """A range has two ends."""
        if self.max_messages <= self.min_messages:
            yield (
                ("max_messages", "min_messages"),
                f"({self.max_messages:,}) must be above hygiene.min_messages ({self.min_messages:,})",
            )


class Budgets(Struct, frozen=True, kw_only=True):
    """The most that each part of a compacted transcript may take on one model.

    `usable_tokens`: the most that a prompt should take of the window. `ledger_tokens`: for the list of identifiers
    after a summary. `fallback_chars`: for a summary made without a model, whose tokens `max_summary_tokens` limits;
    both without the list. `free_share`: of the threshold beside system prompt and tools, which a pass leaves free.
    """

    usable_tokens: int
    threshold_tokens: int
    tail_tokens: int
    head_tokens: int
    max_summary_tokens: int
    ledger_tokens: int
    fallback_chars: int
    free_share: float = FREE_SHARE

    def scaled(self, factor: float) -> Budgets:
        """Return the budgets with tail, head and summary times `factor`."""
        return replace(
            self,
            tail_tokens=int(self.tail_tokens * factor),
            head_tokens=int(self.head_tokens * factor),
            max_summary_tokens=int(self.max_summary_tokens * factor),
            ledger_tokens=int(self.ledger_tokens * factor),
            fallback_chars=int(self.fallback_chars * factor),
        )


class Rates(Struct, frozen=True, kw_only=True):
    """The prices of a model's tokens, in any unit: of a prompt as it comes, as read from the provider's cache, and as
    written there; and of an answer."""

    input: float
    read: float
    write: float
    output: float


class Pace(Struct, frozen=True, kw_only=True):
    """How a chat goes. `growth`: how many tokens a request has more than the one before; `cached`: which share of its
    tokens the provider had cached; `requests`: how many were seen."""

    growth: float = 0.0
    cached: float = 0.0
    requests: int = 0

    def after(self, prompt: int, before: int, cached: int) -> Pace:
        """The pace after a request of `prompt` tokens. If that is shorter than the one `before`, there was a compaction
        in between, and it says nothing."""
        if not 0 < before < prompt:
            return self
        weight = max(1 / _PACE, 1 / (self.requests + 1))
        return Pace(
            growth=self.growth + weight * (prompt - before - self.growth),
            cached=self.cached + weight * (cached / prompt - self.cached),
            requests=self.requests + 1,
        )


_PACE: Final = 40  # requests that make up a pace
_KNOWN: Final = 10  # requests after which it is known
_LEAST: Final = 16_000  # tokens, where the settings name no least threshold


def cheapest_threshold(least: int, settings: CompressionSettings, pace: Pace, rates: Rates | None) -> int | None:
    """Return the threshold at which a chat costs least, but no less than `least`, so that no less stays in view than
    with the plain one. None while too little is known.

    A pass costs the prompt that it reads, the notes, and the writing of what it leaves. Every request costs the reading
    of the prompt. With a `span` of tokens between two passes, each token costs `one / span` for the pass and
    `price * (left + span / 2) / growth` for the readings. The sum is least at the root."""
    least = least or _LEAST
    if rates is None or pace.requests < _KNOWN or pace.growth <= 0:
        return None
    left = least * settings.left_ratio
    price = pace.cached * rates.read + (1 - pace.cached) * max(rates.write, rates.input)
    one = rates.output * least * SUMMARY_SHARE + (price + rates.write) * left
    return max(least, int(left + sqrt(2 * pace.growth * one / price))) if price > 0 else None


def budgets(context_length: int, settings: CompressionSettings, reserved: int, cheapest: int | None = None) -> Budgets:
    """The budgets for a window of `context_length` tokens, of which `reserved` are kept for the answer. `cheapest`: the
    threshold of this chat, if the settings leave it open."""
    share = USABLE_SHARE if context_length > SMALL else USABLE_OF_SMALL
    usable = max(0, int((context_length - reserved) * share))
    wanted = cheapest or max(int(context_length * settings.share), settings.min_threshold_tokens)
    threshold = max(1, min(wanted, usable))
    share = int(threshold * SUMMARY_SHARE)
    plain = min(int(context_length * SUMMARY_WINDOW_SHARE), SUMMARY_CEILING)
    summary = min(max(plain, min(SUMMARY_FLOOR, share)), share)
    ledger = min(int(threshold * NOTES_SHARE) - summary, LEDGER_CEILING)
    left = int(threshold * settings.left_ratio - summary * SLACK) - ledger
    least = max(LEAST_TARGET, settings.target_ratio * LEAST_TAIL)
    tail = min(int(threshold * settings.target_ratio), max(int(threshold * least), left))
    return Budgets(
        usable_tokens=usable,
        threshold_tokens=threshold,
        tail_tokens=min(tail, settings.max_tail_tokens),
        head_tokens=min(HEAD_TOKENS, int(threshold * HEAD_SHARE)),
        max_summary_tokens=summary,
        ledger_tokens=ledger,
        fallback_chars=min(FALLBACK_CHARS, summary * 4),
        # Every pass costs, and the next one cannot wait for the cheapest moment: the less is left, the later it comes.
        free_share=FREE_OF_CHEAP if cheapest and cheapest > usable else FREE_SHARE,
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


def fitted(plain: Budgets, overhead: int, message: float = 0.0) -> Budgets:
    """Return budgets for a request that also holds `overhead` tokens of system prompt and tools. `message`: tokens of a
    usual one; in a small window a few long ones would fill what a pass leaves free.

    Head, summary and an overrun tail must leave a share of the room beside the overhead free, or the next pass would
    come at once. Where they do not, all three shrink alike, to a tenth at least: an empty conversation is no help.
    """
    wanted = plain.head_tokens + plain.max_summary_tokens + plain.ledger_tokens + int(plain.tail_tokens * TAIL_OVERRUN)
    beside, free = max(1, plain.threshold_tokens - overhead), plain.free_share
    if plain.usable_tokens <= SMALL * USABLE_SHARE:
        free = max(free, min(MOST_FREE_OF_SMALL, max(FREE_OF_SMALL, _FREE_MESSAGES * message / beside)))
    room = beside * (1 - free)
    return plain if wanted <= room else plain.scaled(max(0.10, room / wanted))
