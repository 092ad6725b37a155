"""`Compressor`: the default engine. Plans, asks a model for notes, falls back, keeps score.

The story of one pass is `compress`. What it decides is in `plan` (sizes, boundaries, pruning), how
it gets its notes in `summariser`. State changes only after the last await, so a cancelled pass leaves
everything as it was.

Beyond SPEC 4, `on_session_start` understands `max_output_tokens` (what the window must keep free
for the answer) and `auxiliary_context_length` (the summariser's window, when it is another model);
`update_model` takes `max_output_tokens` too. `update_from_response` learns the tokenizer's ratio
if the usage also holds `estimated_prompt_tokens`: our own count of the very same request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gateway.clock import Clock
from gateway.context.cooldown import Cooldown
from gateway.context.engine import ContextEngine, Outcome
from gateway.context.material import Redact
from gateway.context.plan import Plan, carry_out, make_plan, shortened, total_tokens
from gateway.context.policy import (
    EFFECTIVE_SAVING,
    CompressionSettings,
    Correction,
    budgets,
    pressure_tier,
    reserved_output,
)
from gateway.context.summariser import Summariser, Wish, Written
from gateway.context.thrashing import Strikes
from gateway.domain.message import Message
from gateway.errors import CompressionFailed
from gateway.tokens import TokenCounter

NOTHING: Final = "Nothing to compress yet: the conversation is still short."
NO_GAIN: Final = "Compressing now would not make the conversation shorter."
_UNKNOWN_WINDOW: Final = 128_000  # tokens (SPEC 9)


class Compressor(ContextEngine):
    """Head + summary + tail, with everything SPEC 5 says around it. One instance per session."""

    name = "compressor"
    supports_background = True
    threshold_percent = 0.50
    protect_first_n = 3
    protect_last_n = 20

    def __init__(self, settings: CompressionSettings, *, counter: TokenCounter, clock: Clock, redact: Redact) -> None:
        self.settings = settings
        self.threshold_percent = settings.threshold
        self.protect_first_n = settings.protect_first_n
        self.protect_last_n = settings.protect_last_n
        self.last_outcome = Outcome()
        self._counter = counter
        self._summariser = Summariser(counter=counter, clock=clock, redact=redact)
        self._model = ""
        self._max_output: int | None = None
        self._auxiliary_window: int | None = None
        self._strikes = Strikes()
        self._corrections: dict[str, Correction] = {}
        self._budgets = budgets(_UNKNOWN_WINDOW, settings, reserved_output(_UNKNOWN_WINDOW, None))

    # -- what the host tells ----------------------------------------------------------------

    def on_session_start(self, session_id: str, **info: Any) -> None:
        """Take the model's window and the summariser from `info`; counters go on."""
        call_model = info.get("call_model")
        self._summariser.call_model = call_model if callable(call_model) else None
        self._auxiliary_window = _positive(info.get("auxiliary_context_length"))
        window = _positive(info.get("context_length")) or self.context_length
        if window:
            model = info.get("model")
            output = _positive(info.get("max_output_tokens"))
            self.update_model(model if isinstance(model, str) else self._model, window, max_output_tokens=output)

    def on_session_reset(self) -> None:
        """What follows has nothing to do with what was."""
        super().on_session_reset()
        self._strikes = Strikes()
        self._summariser.cooldown = Cooldown()
        self.last_outcome = Outcome()

    def update_model(
        self,
        model: str,
        context_length: int,
        base_url: str = "",
        api_key: str = "",
        provider: str = "",
        max_output_tokens: int | None = None,
    ) -> None:
        """Budgets follow the model's window; another model starts with a clean slate."""
        if self._model and model != self._model:
            self._strikes = Strikes()
            self._summariser.cooldown = Cooldown()
            self._max_output = None
        self._model = model
        self._max_output = max_output_tokens or self._max_output
        self.context_length = context_length
        self._budgets = budgets(context_length, self.settings, reserved_output(context_length, self._max_output))
        self.threshold_tokens = self._budgets.threshold_tokens

    def update_from_response(self, usage: Mapping[str, int]) -> None:
        """Learn what the last call really used; judges the pass before it, if there was one."""
        prompt = _positive(usage.get("prompt_tokens")) or 0
        self.last_prompt_tokens = prompt
        self.last_completion_tokens = _positive(usage.get("completion_tokens")) or 0
        self.last_total_tokens = _positive(usage.get("total_tokens")) or prompt + self.last_completion_tokens
        self._strikes = self._strikes.after_report(prompt, self.threshold_tokens)
        own = _positive(usage.get("estimated_prompt_tokens"))
        if own:
            self._corrections[self._model] = self.correction.observed(own, prompt)

    # -- what the host asks -----------------------------------------------------------------

    @property
    def automatic_blocked(self) -> bool:
        """Whether anti-thrashing holds automatic passes back; the host tells the person once."""
        return self._strikes.blocked

    @property
    def correction(self) -> Correction:
        """How the present model's provider counts, compared with us."""
        return self._corrections.get(self._model, Correction())

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        """Whether an automatic pass is due. Completion tokens play no part. Where the summariser's key
        or quota was just refused a pass would only be called off again."""
        tokens = self.last_prompt_tokens if prompt_tokens is None else prompt_tokens
        if not self.threshold_tokens or tokens < self.threshold_tokens or self._strikes.blocked:
            return False
        return not self._summariser.refused

    def has_content_to_compress(self, messages: Sequence[Message]) -> bool:
        """Whether a manual pass would find something to shorten."""
        plan = self._plan(messages, None, force=True)
        return plan is not None and (plan.summarises or self._pruned(plan) is not None)

    def get_status(self) -> dict[str, Any]:
        """The base figures and why automatic passes or the summariser rest, if they do."""
        return {
            **super().get_status(),
            "automatic_blocked": self._strikes.blocked,
            "summariser_resting_until": self._summariser.resting_until,
        }

    def dump_state(self) -> dict[str, Any]:
        """Counters, strikes, cooldown and learned ratios; the model, so that a switch is noticed."""
        return {
            "version": 1,
            "model": self._model,
            "last_prompt_tokens": self.last_prompt_tokens,
            "last_completion_tokens": self.last_completion_tokens,
            "last_total_tokens": self.last_total_tokens,
            "compression_count": self.compression_count,
            "strikes": self._strikes.dump(),
            "cooldown": self._summariser.cooldown.dump(),
            "corrections": {model: correction.dump() for model, correction in self._corrections.items()},
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Take up a dumped state; what is missing or malformed starts afresh."""
        for name in ("last_prompt_tokens", "last_completion_tokens", "last_total_tokens", "compression_count"):
            setattr(self, name, _positive(state.get(name)) or 0)
        model = state.get("model")
        self._model = model if isinstance(model, str) else ""
        self._strikes = Strikes.load(state.get("strikes"))
        self._summariser.cooldown = Cooldown.load(state.get("cooldown"))
        stored = state.get("corrections")
        if isinstance(stored, Mapping):
            self._corrections = {str(model): Correction.load(value) for model, value in stored.items()}

    # -- one pass ---------------------------------------------------------------------------

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
            pruned = self._pruned(plan)
            if pruned is None:
                return self._unchanged(messages, NO_GAIN, force=force)
            return self._finish(messages, plan, pruned, None, force=force)
        wish = Wish(
            focus=focus_topic or "",
            memory=memory_context,
            force=force,
            emergency=self._is_emergency(current_tokens),
            # The session's own model may have to help out, and its window may have shrunk since the start.
            window=min(filter(None, (self._auxiliary_window, self.context_length)), default=_UNKNOWN_WINDOW),
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
        return self._finish(messages, plan, result, written, force=force)

    def _plan(self, messages: Sequence[Message], current_tokens: int | None, *, force: bool) -> Plan | None:
        return make_plan(
            messages,
            budgets=self._budgets,
            settings=self.settings,
            correction=self.correction,
            current_tokens=current_tokens,
            force=force,
            counter=self._counter,
        )

    def _pruned(self, plan: Plan) -> list[Message] | None:
        """What shortening alone gives where no summary is worth making; None if it does not help."""
        result = shortened(plan, self._counter)
        return result if total_tokens(result, self._counter) < plan.before else None

    def _is_emergency(self, current_tokens: int | None) -> bool:
        prompt = self.last_prompt_tokens if current_tokens is None else current_tokens
        return pressure_tier(prompt, self.context_length) == "emergency"

    def _unchanged(self, messages: Sequence[Message], error: str, *, force: bool) -> list[Message]:
        self._strikes = Strikes() if force else self._strikes.after_pass(effective=False)
        self.last_outcome = Outcome(error=error)
        return list(messages)

    def _finish(
        self,
        messages: Sequence[Message],
        plan: Plan,
        result: list[Message],
        written: Written | None,
        *,
        force: bool,
    ) -> list[Message]:
        """Take the result if it is worth it; with `force` any saving is. `written` is None where
        messages were only shortened."""
        after = total_tokens(result, self._counter)
        effective = after <= plan.before * (1 - EFFECTIVE_SAVING)
        if after >= plan.before or not (effective or force):
            return self._unchanged(messages, NO_GAIN, force=force)
        self._strikes = Strikes() if force else self._strikes.after_pass(effective=effective)
        self.compression_count += 1
        self.last_prompt_tokens = self.correction.apply(plan.overhead + after)
        self.last_outcome = Outcome()
        if written is not None:
            self.last_outcome = Outcome(
                fallback=written.fallback,
                dropped=len(plan.middle),
                error=written.error,
                failed_model=written.failed_model,
            )
        return result


def _positive(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
