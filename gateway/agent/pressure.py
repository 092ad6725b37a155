"""Pressure: how full the window is, told once for each mark that is crossed.

At 0.65 of the window the log says so, at 0.75 the person is told; so they are at 0.85 of the tokens at
which the conversation will be condensed. A mark that the conversation has fallen back from may be
crossed, and told, again. What is done at 0.85 and 0.95 of the window is hygiene's and the loop's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import structlog

from gateway.agent.conversation import Conversation
from gateway.runtime.metrics import Histogram, Metrics

log = structlog.get_logger(__name__)

_LOGGED: Final = 0.65  # of the window
_TOLD: Final = 0.75
_NEARLY: Final = 0.85  # of the compaction threshold

PRESSURE: Final = Histogram(
    name="pressure", text="Share of the window that a turn left filled.", bounds=(0.1, 0.3, 0.5, 0.65, 0.75, 0.85, 0.95)
)

_PREFIX: Final = "pressure:"
_WINDOW_LOG, _WINDOW, _THRESHOLD = (_PREFIX + mark for mark in ("window-log", "window", "threshold"))

FULL = (
    "This conversation fills {share:.0%} of the model's window (~{tokens:,} of {window:,} tokens). "
    "/compress <topic> makes room and keeps what matters to you, /new starts fresh."
)
NEAR = (
    "~{tokens:,} tokens are used, and at {threshold:,} I condense this conversation; "
    "/compress <topic> does it now and keeps that topic in detail."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressure:
    """What the next request will take, in tokens. `threshold` 0: nothing is condensed automatically."""

    tokens: int
    window: int
    threshold: int

    def marks(self) -> frozenset[str]:
        """The marks at or above which the conversation is."""
        above = {
            _WINDOW_LOG: self.tokens >= _LOGGED * self.window,
            _WINDOW: self.tokens >= _TOLD * self.window,
            _THRESHOLD: self.threshold > 0 and self.tokens >= _NEARLY * self.threshold,
        }
        return frozenset(mark for mark, crossed in above.items() if crossed)

    def sentences(self, crossed: Iterable[str]) -> list[str]:
        """What the person is told of marks that were just crossed: the graver one, if several."""
        if _WINDOW in crossed:
            return [FULL.format(share=self.tokens / self.window, tokens=self.tokens, window=self.window)]
        if _THRESHOLD in crossed:
            return [NEAR.format(tokens=self.tokens, threshold=self.threshold)]
        return []


def announce(conversation: Conversation, metrics: Metrics, *, automatic: bool) -> list[str]:
    """The sentences that are due now; that they were said is noted on the conversation."""
    engine = conversation.engine
    condenses = automatic and not engine.automatic_blocked
    pressure = Pressure(
        tokens=conversation.prompt_tokens(),
        window=conversation.spec.context_length,
        threshold=engine.threshold_tokens if condenses else 0,
    )
    metrics.observe(PRESSURE, pressure.tokens / pressure.window)
    marks, said = pressure.marks(), [mark for mark in conversation.announced if mark.startswith(_PREFIX)]
    crossed = marks.difference(said)
    if marks != set(said):
        others = [mark for mark in conversation.announced if not mark.startswith(_PREFIX)]
        conversation.announced = (*others, *sorted(marks))
    if _WINDOW_LOG in crossed:
        log.info("window_filling", session=conversation.session.id, tokens=pressure.tokens, window=pressure.window)
    return pressure.sentences(crossed)
