"""Pressure: marks of a filling window, each announced once when it is crossed.

At the window's first mark the log says so. At the second the person is told, unless a compaction comes anyway: in a
small window it begins above that mark. The person is also told shortly before the conversation will be compressed,
unless that is immediate. If a conversation falls back below a mark, the mark can be crossed, and announced, again.
Hygiene and the loop act on the other marks."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import structlog

from gateway.agent.conversation import Conversation
from gateway.domain.usage import EMERGENCY, HYGIENE, LOGGED, TOLD
from gateway.runtime.metrics import Histogram

log = structlog.get_logger(__name__)

NEARLY: Final = 0.85  # of the compaction threshold
_OVERDUE: Final = 1.2  # times the threshold: less than that, the next turn compresses, and nobody need do anything
_SOON: Final = 1_000  # tokens below the threshold: one more message, in a small window

PRESSURE: Final = Histogram(
    name="pressure",
    text="Share of the window that is full after a turn.",
    bounds=(0.1, 0.3, 0.5, LOGGED, TOLD, HYGIENE, EMERGENCY),
)

_PREFIX: Final = "pressure:"
_WINDOW_LOG, _WINDOW, _THRESHOLD = (_PREFIX + mark for mark in ("window-log", "window", "threshold"))

FULL = (
    "This conversation fills {share:.0%} of the model's window (~{tokens:,} of {window:,} tokens). "
    "/compress <topic> makes room and keeps what matters to you, and /new starts fresh."
)
NEAR = (
    "This conversation fills ~{tokens:,} tokens, and I compress it at {threshold:,}. "
    "/compress <topic> compresses it now and keeps the topic in detail."
)


def marks(tokens: int, window: int, threshold: int) -> frozenset[str]:
    """Return the marks that a request of `tokens` reaches. `threshold` 0: nothing is compressed automatically."""
    above = {
        _WINDOW_LOG: tokens >= LOGGED * window,
        _WINDOW: tokens >= max(TOLD * window, _OVERDUE * threshold),
        _THRESHOLD: (1 - NEARLY) * threshold >= _SOON and tokens >= NEARLY * threshold,
    }
    return frozenset(mark for mark, reached in above.items() if reached)


def sentences(crossed: Collection[str], tokens: int, window: int, threshold: int) -> list[str]:
    """Return what the person is told about marks that were just crossed: the graver news, if several."""
    if _WINDOW in crossed:
        return [FULL.format(share=tokens / window, tokens=tokens, window=window)]
    return [NEAR.format(tokens=tokens, threshold=threshold)] if _THRESHOLD in crossed else []


def announce(conversation: Conversation, *, automatic: bool) -> list[str]:
    """Return the sentences that are due now, and note on the conversation that they were said."""
    engine, tokens, window = conversation.engine, conversation.prompt_tokens(), conversation.spec.context_length
    PRESSURE.observe(tokens / window)
    threshold, announced = engine.threshold_tokens, conversation.fresh.announced
    if not announced and tokens < LOGGED * window and tokens < NEARLY * threshold:  # as most often
        return []
    threshold = threshold if automatic and not engine.automatic_blocked else 0
    reached = marks(tokens, window, threshold)
    said = {mark for mark in announced if mark.startswith(_PREFIX)}
    crossed = reached - said
    if reached != said:
        others = [mark for mark in announced if not mark.startswith(_PREFIX)]
        conversation.announce((*others, *sorted(reached)))
    if _WINDOW_LOG in crossed:
        log.info("window_filling", session=conversation.stored.session.id, tokens=tokens, window=window)
    return sentences(crossed, tokens, window, threshold)
