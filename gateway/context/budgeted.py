"""`MeasuredEngine`: the bookkeeping of an engine that compacts by token budgets.

It knows the budgets of the window, the last report of the provider, the provider's tokenizer and the usefulness of
earlier passes (`state`); all of that survives a restart. A subclass writes `compress`.

Beyond the port, `on_session_start` and `update_model` take `max_output_tokens` (the room that the window must keep
for the answer). `update_from_response` learns the tokenizer's ratio if the usage also holds
`estimated_prompt_tokens`: our own count of the very same request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Any, Final

from msgspec import ValidationError, convert
from msgspec.structs import asdict

from gateway.context.engine import ContextEngine, Outcome
from gateway.context.plan import Plan, make_plan, shortened, total_tokens
from gateway.context.policy import EFFECTIVE_SAVING, CompressionSettings, Pace, Rates, budgets, cheapest_threshold
from gateway.context.state import Correction, Strikes
from gateway.domain.message import Message
from gateway.domain.usage import UNKNOWN_WINDOW, reserved_output
from gateway.runtime.tokens import TokenCounter

NOTHING: Final = "There is nothing to compress, because too little stands before the newest messages, which stay."
NO_GAIN: Final = "Compressing now would not make the conversation shorter."
_ANEW: Final = 10  # requests after which the cheapest threshold is looked for again
_COUNTERS: Final = ("last_prompt_tokens", "last_completion_tokens", "last_total_tokens", "compression_count")
_counted: Final = attrgetter(*_COUNTERS)


class MeasuredEngine(ContextEngine):
    """An engine that decides by sizes when to compact and whether a result was worth it. One per session.

    An automatic pass that would save under 10 % changes nothing and is a strike. A malformed part of a dumped state
    starts afresh.
    """

    def __init__(self, settings: CompressionSettings, *, counter: TokenCounter) -> None:
        self.settings = settings
        self.threshold_percent = settings.share
        self.protect_first_n = settings.protect_first_n
        self.protect_last_n = settings.protect_last_n
        self.last_outcome = Outcome()
        self._counter = counter
        self._model = ""
        self._max_output: int | None = None
        self._strikes = Strikes()
        self._corrections: dict[str, Correction] = {}
        self._pace = Pace()
        self._rates: Callable[[str], Rates | None] | None = None
        self._budgets = budgets(UNKNOWN_WINDOW, settings, reserved_output(UNKNOWN_WINDOW, None))

    def protected(self, messages: Sequence[Message], current_tokens: int) -> tuple[int, int]:
        """How many of the last messages a pass would now leave as they are, and the tail's budget in tokens; (0, 0) if
        there are too few messages for a pass."""
        plan = self._plan(messages, current_tokens, force=False)
        return (plan.protected, plan.budgets.tail_tokens) if plan is not None else (0, 0)

    # -- told by the host -------------------------------------------------------------------

    def on_session_start(self, session_id: str, **info: Any) -> None:
        rates = info.get("rates")
        self._rates = rates if callable(rates) else None
        window = positive(info.get("context_length")) or self.context_length
        if window:
            model = info.get("model")
            output = positive(info.get("max_output_tokens"))
            self.update_model(model if isinstance(model, str) else self._model, window, max_output_tokens=output)

    def on_session_reset(self) -> None:
        super().on_session_reset()
        self._clean_slate()
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
        # Another model starts with a clean slate.
        if self._model and model != self._model:
            self._clean_slate()
            self._max_output = None
        self._model = model
        self._max_output = max_output_tokens or self._max_output
        self.context_length = context_length
        self._set_budgets()

    def update_from_response(self, usage: Mapping[str, int]) -> None:
        prompt = usage.get("prompt_tokens", 0)
        if self.settings.threshold == "auto":
            self._learn_pace(prompt, usage.get("cache_read_tokens", 0))
        self.last_prompt_tokens = prompt
        self.last_completion_tokens = usage.get("completion_tokens", 0)
        self.last_total_tokens = usage.get("total_tokens", 0) or prompt + self.last_completion_tokens
        self._strikes = self._strikes.after_report(prompt, self.threshold_tokens)
        if own := usage.get("estimated_prompt_tokens"):
            self._corrections[self._model] = self.correction.observed(own, prompt)

    def _learn_pace(self, prompt: int, cached: int) -> None:
        self._pace = self._pace.after(prompt, self.last_prompt_tokens, cached)
        if self._pace.requests % _ANEW == 0:  # not at each request: people are shown the threshold
            self._set_budgets()

    def _set_budgets(self) -> None:
        cheapest = None
        if self.settings.threshold == "auto" and self._rates is not None:
            least = self.settings.min_threshold_tokens
            cheapest = cheapest_threshold(least, self.settings, self._pace, self._rates(self._model))
        reserved = reserved_output(self.context_length, self._max_output)
        self._budgets = budgets(self.context_length, self.settings, reserved, cheapest)
        self.threshold_tokens = self._budgets.threshold_tokens

    def _clean_slate(self) -> None:
        """Forget the reasons for holding passes back."""
        self._strikes = Strikes()

    # -- asked by the host ------------------------------------------------------------------

    @property
    def automatic_blocked(self) -> bool:
        """Whether anti-thrashing holds automatic passes back; the host tells the person once."""
        return self._strikes.blocked

    @property
    def correction(self) -> Correction:
        """The ratio of the present model's token counts to ours."""
        return self._corrections.get(self._model, Correction())

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        tokens = self.last_prompt_tokens if prompt_tokens is None else prompt_tokens
        return bool(self.threshold_tokens) and tokens >= self.threshold_tokens and not self._held_back

    @property
    def _held_back(self) -> bool:
        """Whether no pass may begin by itself, however full the window is."""
        return self._strikes.blocked

    def has_content_to_compress(self, messages: Sequence[Message]) -> bool:
        plan = self._plan(messages, None, force=True)
        return plan is not None and (plan.summarises or self._pruned(plan) is not None)

    def get_status(self) -> dict[str, Any]:
        return {**super().get_status(), "automatic_blocked": self._strikes.blocked}

    def dump_state(self) -> dict[str, Any]:
        return {
            "version": 1,
            "model": self._model,  # by which a switch is noticed
            **dict(zip(_COUNTERS, _counted(self), strict=True)),
            "strikes": asdict(self._strikes),
            **({"pace": asdict(self._pace)} if self._pace.requests else {}),
            "corrections": dict(zip(self._corrections, map(asdict, self._corrections.values()), strict=True)),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        for name in _COUNTERS:
            setattr(self, name, positive(state.get(name)) or 0)
        model = state.get("model")
        self._model = model if isinstance(model, str) else ""
        self._strikes = Strikes.load(state.get("strikes"))
        with suppress(ValidationError):
            self._pace = convert(state.get("pace") or {}, Pace)
        stored = state.get("corrections")
        if isinstance(stored, Mapping):
            self._corrections = {str(model): Correction.load(value) for model, value in stored.items()}

    # -- the ends of a pass -----------------------------------------------------------------

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
        """The transcript with messages only shortened; None if that saves nothing."""
        result = shortened(plan, self._counter)
        return result if total_tokens(result, self._counter) < plan.before else None

    def _only_pruned(self, messages: Sequence[Message], plan: Plan, *, force: bool) -> list[Message]:
        """End a pass that can take no message out of view."""
        pruned = self._pruned(plan)
        if pruned is None:
            return self._unchanged(messages, NO_GAIN, force=force)
        return self._finish(messages, plan, pruned, Outcome(), force=force)

    def _unchanged(self, messages: Sequence[Message], error: str, *, force: bool) -> list[Message]:
        """End a pass that gained nothing: a strike, unless somebody asked for it."""
        self._strikes = Strikes() if force else self._strikes.after_pass(effective=False)
        self.last_outcome = Outcome(error=error)
        return list(messages)

    def _finish(
        self, messages: Sequence[Message], plan: Plan, result: list[Message], outcome: Outcome, *, force: bool
    ) -> list[Message]:
        """Use the result if it saves a tenth, or with `force` if it saves anything."""
        after = total_tokens(result, self._counter)
        effective = after <= plan.before * (1 - EFFECTIVE_SAVING)
        if after >= plan.before or not (effective or force):
            return self._unchanged(messages, NO_GAIN, force=force)
        self._strikes = Strikes() if force else self._strikes.after_pass(effective=effective)
        self.compression_count += 1
        self.last_prompt_tokens = self.correction.apply(plan.overhead + after)
        self.last_outcome = outcome
        return result


def positive(value: Any) -> int | None:
    """Return `value` if it is a number of tokens above zero."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
