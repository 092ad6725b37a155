"""`Window`: an engine without a model. Head and newest messages stay, the middle leaves view.

    [ head ][ marker ][ carried ][ tail ]

In the place of notes this engine puts a marker: the number of messages out of view, their times, and the way to find
them. They stay in the store, in reach of `search_history` and /recall, and the marker derives from every one of them.
No model is asked, so nothing can fail, cost or take long; the subject of the conversation must be looked up.

Head, tail, carried messages and the shortening of old tool results are those of the compressor. Pinned rules stand in
the system prompt, which no engine is given. The marker is noted as a summary, so the next pass renews it. Notes of
another engine are kept below the marker while there is room.

A topic to focus on has no effect. `supports_background` stays False: a pass takes milliseconds, and a pass prepared
early leaves less room than a pass made when needed, so the prefix in the provider's cache would change more often.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import to_builtins

from gateway.context.assembly import joined, sanitize
from gateway.context.budgeted import NOTHING, MeasuredEngine
from gateway.context.engine import Outcome
from gateway.context.plan import Plan
from gateway.context.policy import CompressionSettings
from gateway.context.prompts import END_MARKER, FIND, OPENER, neutralise
from gateway.domain.message import Message, noted, user
from gateway.runtime.redaction import Redact
from gateway.runtime.tokens import TokenCounter

_ADVICE: Final = (
    f"None of them was summarised and none is lost: {FIND} Look there before you say that you do not remember, "
    "and before you do anything over again: it may be done already. Respond only to what stands below this note."
)
_KEPT: Final = "Kept from earlier notes:"
_KEPT_LINE: Final = re.compile(rf"^{re.escape(_KEPT)}$", re.MULTILINE)
_LEAST_KEPT: Final = 40  # tokens; a shorter piece of notes says nothing


class Window(MeasuredEngine):
    """The engine that keeps head and tail and a marker in between. One instance per session."""

    name = "window"
    threshold_percent = 0.75

    def __init__(self, settings: CompressionSettings, *, counter: TokenCounter, redact: Redact) -> None:
        super().__init__(settings, counter=counter)
        self._redact = redact

    def compress(
        self,
        messages: Sequence[Message],
        current_tokens: int | None = None,
        focus_topic: str | None = None,
        force: bool = False,
        memory_context: str = "",
    ) -> list[Message]:
        plan = self._plan(messages, current_tokens, force=force)
        if plan is None:
            return self._unchanged(messages, NOTHING, force=force)
        if not plan.summarises:
            return self._only_pruned(messages, plan, force=force)
        marker = self._marker(plan, memory_context)
        result = sanitize([*plan.lead, *joined(plan.head, marker, plan.tail, self._counter)])
        return self._finish(messages, plan, result, Outcome(dropped=len(plan.middle)), force=force)

    def _marker(self, plan: Plan, memory: str) -> Message:
        text = f"{plan.archive.line()} {_ADVICE}"
        earlier = _KEPT_LINE.sub("", plan.previous).strip()
        if (told := self._redact(memory).strip()) not in earlier:
            earlier = f"{earlier}\n{told}".strip()
        kept = self._fitted(earlier, plan.room - plan.ledger_room - self._counter.text(text))
        body = f"{text}\n{_KEPT}\n{kept}" if kept else text
        marker = user(
            f"{OPENER}\n{body}\n{END_MARKER}",
            summary=True,
            derived_from=list(plan.replaced_ids),
            archive=to_builtins(plan.archive),
        )
        return noted(marker, tokens=self._counter.message(marker))

    def _fitted(self, notes: str, room: int) -> str:
        """The beginning of `notes`, at most `room` tokens; "" if that would say nothing."""
        text = neutralise(notes).strip()
        while room >= _LEAST_KEPT and (size := self._counter.text(text)) > room:
            text = f"{text[: min(len(text) - 3, len(text) * room // size)].rstrip('… ')} …"
        return text if room >= _LEAST_KEPT else ""


def for_window(settings: CompressionSettings) -> CompressionSettings:
    """The settings for `Window`. Two defaults suit a summariser, which works best long before the window is full; this
    engine uses three quarters of the window and no floor instead. No notes take room from the newest messages."""
    plain, changed = CompressionSettings(), dict[str, float](left_ratio=1.0)
    if settings.threshold == plain.threshold:
        changed["threshold"] = Window.threshold_percent
    if settings.min_threshold_tokens == plain.min_threshold_tokens:
        changed["min_threshold_tokens"] = 0
    return settings.model_copy(update=changed)
