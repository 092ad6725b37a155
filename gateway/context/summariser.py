"""Getting notes for a plan: from a model if one answers, verified; else by rule, and saying why.

One object per session. It remembers only how long a summariser that failed is left alone, and changes
that only after its last await, so that a cancelled pass leaves everything as it was.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gateway.clock import Clock
from gateway.context import fallback, identifiers, material, summary, verification
from gateway.context.cooldown import Cooldown, Failure, classify
from gateway.context.plan import Plan
from gateway.context.policy import Correction
from gateway.context.prompts import INSTRUCTIONS
from gateway.domain.message import Message
from gateway.errors import CompressionFailed, ConfigError, GatewayError, SummaryRefused
from gateway.tokens import TokenCounter

CallModel = Callable[[Sequence[Message], int], Awaitable[str] | str]
Ledger = Mapping[str, Message | None]

NO_MODEL: Final = "No model is configured that could summarise."
PATIENCE: Final = 300.0  # seconds for all attempts: half of what a turn may be silent (SPEC 2)
_SLACK: Final = 512  # tokens of the summariser's window left for formats and miscounts
_LEDGER_SHARE: Final = 8  # at least an eighth of the room is the ledger's, if there is anything in it
_FALLBACK_SHARE: Final = 5  # of a rule-made summary a fifth
_LEAST_OUTPUT: Final = 256  # tokens; a smaller cap would cut off what is well meant


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Notes, verified and redacted, the identifiers they hold, and how they came about."""

    notes: str
    identifiers: Sequence[str] = ()
    fallback: bool = False
    error: str | None = None
    failed_model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a pass asks for. `focus`: a topic, "" for the newest requests. `memory`: what memory wants
    kept. `force`: cooldowns do not hold. `emergency`: whatever the reason, there must be notes.
    `window`: tokens of the summariser's window, as its provider counts."""

    focus: str = ""
    memory: str = ""
    force: bool = False
    emergency: bool = False
    window: int
    correction: Correction


class Summariser:
    """Writes the notes of one session's compactions. `call_model` None: by rule only."""

    def __init__(self, *, counter: TokenCounter, clock: Clock, redact: material.Redact) -> None:
        self.call_model: CallModel | None = None
        self.cooldown = Cooldown()
        self._counter = counter
        self._clock = clock
        self._redact = redact

    @property
    def resting_until(self) -> float | None:
        """When a summariser that failed is asked again, in seconds since the epoch; None: at once."""
        return self.cooldown.until if self.cooldown.active(self._clock.now()) else None

    @property
    def refused(self) -> bool:
        """Whether key or quota were refused lately, so that nothing can be written without `force`."""
        return self.cooldown.kind == "refused" and self.resting_until is not None

    async def write(self, plan: Plan, wish: Wish) -> Written:
        """Notes from the model, else by rule. Raises CompressionFailed where the key or the quota
        was refused: no rule-made notes then, a person can mend that (SPEC 5)."""
        ledger = identifiers.ledger(plan.middle, plan.identifiers)
        if self.call_model is None:
            return self._by_rule(plan, ledger, NO_MODEL)
        if self.resting_until is not None and not wish.force:
            seconds = self.cooldown.until - self._clock.now()
            reason = f"The summariser failed recently and rests for {seconds:.0f} s more."
            return self._without_model(plan, ledger, reason, self.cooldown.kind, None, wish.emergency)
        try:
            async with self._clock.limit(PATIENCE):
                answer, notes = await self._ask(self.call_model, plan, ledger, wish)
        except (GatewayError, TimeoutError) as error:
            kind = _kind(error)
            self.cooldown = self.cooldown.after(kind, self._clock.now(), error)
            reason = self._redact(str(error)) or "The summariser did not answer in time."
            return self._without_model(plan, ledger, reason, kind, error, wish.emergency)
        self.cooldown = Cooldown()
        failed = getattr(answer, "failed_model", None)
        return Written(notes=notes, identifiers=verification.held(notes, ledger), failed_model=failed)

    def _without_model(
        self,
        plan: Plan,
        ledger: Ledger,
        reason: str,
        kind: Failure | None,
        error: BaseException | None,
        emergency: bool,
    ) -> Written:
        if kind == "refused" and not emergency:
            raise CompressionFailed(reason) from error
        return self._by_rule(plan, ledger, reason, getattr(error, "failed_model", None))

    def _by_rule(self, plan: Plan, ledger: Ledger, reason: str, failed_model: str | None = None) -> Written:
        chars, tokens = plan.budgets.fallback_chars, min(plan.budgets.max_summary_tokens, plan.room)
        spare = min(chars // _FALLBACK_SHARE, sum(len(value) + 3 for value in ledger))
        notes = fallback.write(
            plan.request,
            verification.without_section(plan.previous)[0],
            plan.middle,
            plan.calls,
            self._redact,
            chars=chars - spare,
            tokens=tokens - min(tokens // _FALLBACK_SHARE, spare),
            counter=self._counter,
        )
        notes = verification.completed(notes, ledger, self._redact, room=tokens, counter=self._counter, chars=chars)
        held = verification.held(notes, ledger)
        return Written(notes=notes, identifiers=held, fallback=True, error=reason, failed_model=failed_model)

    async def _ask(self, call_model: CallModel, plan: Plan, ledger: Ledger, wish: Wish) -> tuple[Any, str]:
        """(the model's answer, the notes in it); one stricter second try. Raises SummaryRefused."""
        limit = max(_LEAST_OUTPUT, plan.budget * 5 // 4)
        listed = sum(self._counter.text(value) + 3 for value in ledger)
        room = plan.room - min(plan.room // _LEDGER_SHARE, listed)
        recent = [] if wish.focus else summary.newest_requests(plan.requests, self._redact)
        turns = self._material(plan, wish, limit, recent)
        refused = ""
        while True:
            messages = summary.request(
                turns,
                self._redact,
                tokens=min(plan.budget, room),
                previous=plan.previous,
                memory=wish.memory,
                focus=wish.focus,
                recent=recent,
                refused=refused,
            )
            try:
                reply = call_model(messages, limit)
                answer = await reply if inspect.isawaitable(reply) else reply
                notes = verification.notes_in(answer, limit=limit, room=room, counter=self._counter)
            except SummaryRefused as error:
                if refused:
                    raise SummaryRefused(f"The summary could not be used because {error}.") from error
                refused = str(error)
                continue
            return answer, verification.completed(notes, ledger, self._redact, room=plan.room, counter=self._counter)

    def _material(self, plan: Plan, wish: Wish, limit: int, recent: Sequence[str]) -> str:
        """What the summariser reads, within its window."""
        fixed = (INSTRUCTIONS, plan.previous, wish.memory, wish.focus, *recent)
        taken = limit + _SLACK + sum(self._counter.text(text) for text in fixed)
        return material.render(
            plan.middle,
            plan.calls,
            self._redact,
            chars=material.INPUT_CHARS,
            tokens=max(500, wish.correction.invert(wish.window) - taken),
            counter=self._counter,
        )


def _kind(error: BaseException) -> Failure:
    if isinstance(error, SummaryRefused):
        return "malformed"
    return "unconfigured" if isinstance(error, ConfigError) else classify(error)
