"""`Compressor`: the default engine. Plans, asks a model for notes, falls back, keeps score.

The story of one pass is `compress`. What it decides is in `plan` (sizes, boundaries, pruning), how
it gets its notes in `summariser`, what it remembers of sizes in `measured`. State changes only after
the last await, so a cancelled pass leaves everything as it was.

Beyond `ContextEngine` and `MeasuredEngine`, `on_session_start` understands `auxiliary_context_length` (the
summariser's window, when it is another model) and `call_aligned` (`summariser.CallAligned`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.context.cooldown import Cooldown
from gateway.context.engine import Outcome
from gateway.context.material import Redact
from gateway.context.measured import NOTHING, UNKNOWN_WINDOW, MeasuredEngine, positive
from gateway.context.plan import carry_out
from gateway.context.policy import CompressionSettings, pressure_tier
from gateway.context.summariser import Summariser, Wish
from gateway.domain.message import Message
from gateway.runtime.clock import Clock
from gateway.runtime.errors import CompressionFailed
from gateway.runtime.tokens import TokenCounter


class Compressor(MeasuredEngine):
    """Head + summary + tail: the default engine. One instance per session."""

    name = "compressor"
    supports_background = True
    threshold_percent = 0.50
    protect_first_n = 3
    protect_last_n = 20

    def __init__(self, settings: CompressionSettings, *, counter: TokenCounter, clock: Clock, redact: Redact) -> None:
        super().__init__(settings, counter=counter)
        self._summariser = Summariser(counter=counter, clock=clock, redact=redact)
        self._auxiliary_window: int | None = None

    def on_session_start(self, session_id: str, **info: Any) -> None:
        """Take the model's window and the summariser from `info`; counters go on."""
        call_model = info.get("call_model")
        self._summariser.call_model = call_model if callable(call_model) else None
        call_aligned = info.get("call_aligned")
        self._summariser.call_aligned = call_aligned if callable(call_aligned) else None
        self._auxiliary_window = positive(info.get("auxiliary_context_length"))
        super().on_session_start(session_id, **info)

    def _clean_slate(self) -> None:
        super()._clean_slate()
        self._summariser.cooldown = Cooldown()

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        """Whether an automatic pass is due. Completion tokens play no part. Where the summariser's key
        or quota was just refused a pass would only be called off again."""
        return super().should_compress(prompt_tokens) and not self._summariser.refused

    def get_status(self) -> dict[str, Any]:
        """The base figures and why automatic passes or the summariser rest, if they do."""
        return {**super().get_status(), "summariser_resting_until": self._summariser.resting_until}

    def dump_state(self) -> dict[str, Any]:
        """What every measured engine keeps, and the summariser's cooldown."""
        return {**super().dump_state(), "cooldown": self._summariser.cooldown.dump()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Take up a dumped state; what is missing or malformed starts afresh."""
        super().load_state(state)
        self._summariser.cooldown = Cooldown.load(state.get("cooldown"))

    async def compress(
        self,
        messages: Sequence[Message],
        current_tokens: int | None = None,
        focus_topic: str | None = None,
        force: bool = False,
        memory_context: str = "",
    ) -> list[Message]:
        """A shorter transcript, or the same messages with `last_outcome.error` saying why not.

        An automatic pass that would save under 10 % changes nothing and is a strike.
        """
        plan = self._plan(messages, current_tokens, force=force)
        if plan is None:
            return self._unchanged(messages, NOTHING, force=force)
        if not plan.summarises:
            return self._only_pruned(messages, plan, force=force)
        wish = Wish(
            focus=focus_topic or "",
            memory=memory_context,
            force=force,
            emergency=self._is_emergency(current_tokens),
            transcript=messages,
            # The session's own model may have to help out, and its window may have shrunk since the start.
            window=min(filter(None, (self._auxiliary_window, self.context_length)), default=UNKNOWN_WINDOW),
            correction=self.correction,
        )
        try:
            written = await self._summariser.write(plan, wish)
        except CompressionFailed as error:
            self.last_outcome = Outcome(error=str(error), aborted=True)
            return list(messages)
        result = carry_out(
            plan,
            written.notes,
            fallback=written.fallback,
            counter=self._counter,
            identifiers=written.identifiers,
        )
        outcome = Outcome(
            fallback=written.fallback,
            dropped=len(plan.middle),
            error=written.error,
            failed_model=written.failed_model,
        )
        return self._finish(messages, plan, result, outcome, force=force)

    def _is_emergency(self, current_tokens: int | None) -> bool:
        prompt = self.last_prompt_tokens if current_tokens is None else current_tokens
        return pressure_tier(prompt, self.context_length) == "emergency"
