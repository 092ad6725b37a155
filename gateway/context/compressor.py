"""`Compressor`, the default engine: it plans a pass, asks a model for notes or falls back, and judges the result.

`compress` reads as the story of one pass. `plan` decides on sizes, boundaries and pruning, `summariser` gets the
notes, `measured` keeps the figures. State changes after the last await, so a cancelled pass leaves everything as it
was.

Beyond the port and `MeasuredEngine`, `on_session_start` takes `auxiliary_context_length` (the summariser's window,
when it is another model) and `call_aligned` (`summariser.CallAligned`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import asdict

from gateway.context.budgeted import NOTHING, MeasuredEngine, positive
from gateway.context.engine import Outcome
from gateway.context.plan import carry_out
from gateway.context.policy import CompressionSettings
from gateway.context.state import Cooldown
from gateway.context.summariser import PassOptions, Summariser
from gateway.domain.message import Message
from gateway.domain.usage import UNKNOWN_WINDOW, is_emergency
from gateway.runtime.clock import Clock
from gateway.runtime.errors import CompressionFailed
from gateway.runtime.redaction import Redact
from gateway.runtime.structs import replace
from gateway.runtime.tokens import TokenCounter


class Compressor(MeasuredEngine):
    """The engine that keeps head and tail and puts a summary in between. One instance per session."""

    name = "compressor"
    supports_background = True
    threshold_percent = 0.50
    protect_first_n = 3
    protect_last_n = 20

    def __init__(self, settings: CompressionSettings, *, counter: TokenCounter, clock: Clock, redact: Redact) -> None:
        super().__init__(settings, counter=counter)
        self._summariser = Summariser(counter=counter, clock=clock, redact=redact)
        self._redact = redact
        self._auxiliary_window: int | None = None

    def on_session_start(self, session_id: str, **info: Any) -> None:
        call_model, call_aligned = info.get("call_model"), info.get("call_aligned")
        self._summariser.call_model = call_model if callable(call_model) else None
        self._summariser.call_aligned = call_aligned if callable(call_aligned) else None
        self._auxiliary_window = positive(info.get("auxiliary_context_length"))
        super().on_session_start(session_id, **info)

    def _clean_slate(self) -> None:
        super()._clean_slate()
        self._summariser.cooldown = Cooldown()

    @property
    def _held_back(self) -> bool:
        # After a refusal of the summariser's key or quota a pass would only be called off again.
        return super()._held_back or self._summariser.refused

    def get_status(self) -> dict[str, Any]:
        return {**super().get_status(), "summariser_resting_until": self._summariser.resting_until}

    def dump_state(self) -> dict[str, Any]:
        return {**super().dump_state(), "cooldown": asdict(self._summariser.cooldown)}

    def load_state(self, state: Mapping[str, Any]) -> None:
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
        # Thousands of long messages take a quarter of a second to read, and other chats go on meanwhile.
        plan = await asyncio.to_thread(self._plan, messages, current_tokens, force=force)
        if plan is None:
            return self._unchanged(messages, NOTHING, force=force)
        if not (plan.summarises and (force or plan.saves)):
            return self._only_pruned(messages, plan, force=force)
        prompt = self.last_prompt_tokens if current_tokens is None else current_tokens
        options = PassOptions(
            focus=focus_topic or "",
            memory=memory_context,
            force=force,
            emergency=is_emergency(prompt, self.context_length),
            transcript=messages,
            # The session's own model may have to help out, and its window may have shrunk since the start.
            window=self.correction.invert(
                min(filter(None, (self._auxiliary_window, self.context_length)), default=UNKNOWN_WINDOW)
            ),
        )
        try:
            written = await self._summariser.write(plan, options)
        except CompressionFailed as error:
            self.last_outcome = Outcome(error=str(error), aborted=True)
            return list(messages)
        outcome = replace(written.outcome, dropped=len(plan.middle))
        result = await asyncio.to_thread(
            carry_out, plan, written.notes, written.kept, self._redact, fallback=outcome.fallback, counter=self._counter
        )
        return self._finish(messages, plan, result, outcome, force=force)
