"""Getting notes for a plan: from a model if one answers, verified; else by rule, and saying why.

The conversation's own model is asked in place, behind the conversation, where the host can do that
(`CallAligned`). Any other request stands alone: instructions, earlier notes and the middle as text, in
several parts if the summariser's window takes no more at once. Each part brings the notes of the one
before up to date; if one fails, its notes stay and only the rest is noted by rule.

One object per session. It remembers only how long a summariser that failed is left alone, and changes
that only after its last await, so that a cancelled pass leaves everything as it was.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gateway.context import fallback, identifiers, material, statements, summary, verification
from gateway.context.cooldown import Cooldown, Failure, classify
from gateway.context.plan import Plan
from gateway.context.policy import Correction
from gateway.context.prompts import INSTRUCTIONS
from gateway.context.pruning import cut
from gateway.context.withheld import withheld, without
from gateway.domain.message import Message
from gateway.runtime.clock import Clock
from gateway.runtime.errors import CompressionFailed, ConfigError, GatewayError, SummaryRefused
from gateway.runtime.tokens import TokenCounter

CallModel = Callable[[Sequence[Message], int], Awaitable[str] | str]
CallAligned = Callable[[Sequence[Message], str, int], Awaitable[str | None]]
"""Asks the conversation's own model in place: the transcript as it was last sent, one instruction, the
most tokens of the answer. None, at once and for nothing, where no cache would be met."""

NO_MODEL: Final = "No model is configured that could summarise."
PATIENCE: Final = 300.0  # seconds for all attempts: half of what a turn may be silent
_SLACK: Final = 512  # tokens of the summariser's window left for formats and miscounts
_LEDGER_SHARE: Final = 8  # at least an eighth of the room is the ledger's, if there is anything in it
_FALLBACK_SHARE: Final = 5  # of a rule-made summary a fifth
_LEAST_OUTPUT: Final = 256  # tokens; a smaller cap would cut off what is well meant
_LEAST_INPUT: Final = 500  # tokens of the middle in one request, whatever the window is said to be
_MOST_PARTS: Final = 4  # requests for one middle; what they cannot take is left out by rank (`material`)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Notes, verified and redacted, the identifiers they hold (with their weights), and how they came about."""

    notes: str
    identifiers: Mapping[str, float]
    fallback: bool = False
    error: str | None = None
    failed_model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a pass asks for. `focus`: a topic, "" for the newest requests. `memory`: what memory wants
    kept. `force`: cooldowns do not hold. `emergency`: whatever the reason, there must be notes.
    `transcript`: what is compacted, as the host gave it. `window`: tokens of the summariser's window,
    as its provider counts."""

    focus: str = ""
    memory: str = ""
    force: bool = False
    emergency: bool = False
    transcript: Sequence[Message] = ()
    window: int
    correction: Correction


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """What every request of a pass has in common. `limit`: its output cap. `room`: the most tokens the
    notes may take, `tokens` how many are asked for. `window`: the summariser's, as we count."""

    limit: int
    room: int
    tokens: int
    recent: Sequence[str]
    window: int


@dataclass(slots=True)
class _Draft:
    """The notes so far, the earlier ones at first. `done`: how many messages of the middle they cover.
    `refused`: why an answer could not be used, "" as long as all could."""

    notes: str
    done: int = 0
    refused: str = ""


class Summariser:
    """Writes the notes of one session's compactions. `call_model` None: by rule only; `call_aligned`
    None: every request stands alone."""

    def __init__(self, *, counter: TokenCounter, clock: Clock, redact: material.Redact) -> None:
        self.call_model: CallModel | None = None
        self.call_aligned: CallAligned | None = None
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
        was refused: no rule-made notes then, a person can mend that."""
        gone = statements.outdated(plan.middle, plan.previous, plan.head)
        ledger = identifiers.ledger(plan.middle, plan.identifiers, gone.corrections)
        ledger = {value: entry for value, entry in ledger.items() if value not in gone.values}
        draft = _Draft(plan.previous)
        if self.call_model is None:
            return self._by_rule(plan, ledger, draft, NO_MODEL)
        if self.resting_until is not None and not wish.force:
            seconds = self.cooldown.until - self._clock.now()
            reason = f"The summariser failed recently and rests for {seconds:.0f} s more."
            return self._without_model(plan, ledger, draft, reason, self.cooldown.kind, None, wish.emergency)
        try:
            async with self._clock.limit(PATIENCE):
                answer, notes = await self._ask(self.call_model, plan, ledger, wish, draft)
        except (GatewayError, TimeoutError) as error:
            kind = _kind(error)
            self.cooldown = self.cooldown.after(kind, self._clock.now(), error)
            reason = self._redact(str(error)) or "The summariser did not answer in time."
            return self._without_model(plan, ledger, draft, reason, kind, error, wish.emergency)
        self.cooldown = Cooldown()
        failed = getattr(answer, "failed_model", None)
        return Written(notes=notes, identifiers=verification.held(notes, ledger), failed_model=failed)

    def _without_model(
        self,
        plan: Plan,
        ledger: verification.Ledger,
        draft: _Draft,
        reason: str,
        kind: Failure | None,
        error: BaseException | None,
        emergency: bool,
    ) -> Written:
        if kind == "refused" and not emergency:
            raise CompressionFailed(reason) from error
        return self._by_rule(plan, ledger, draft, reason, getattr(error, "failed_model", None))

    def _by_rule(
        self, plan: Plan, ledger: verification.Ledger, draft: _Draft, reason: str, failed_model: str | None = None
    ) -> Written:
        chars, tokens = plan.budgets.fallback_chars, min(plan.budgets.max_summary_tokens, plan.room)
        if draft.done:  # a model's work, in sections that may take half of the room
            chars += 2 * len(draft.notes)
        spare = min(chars // _FALLBACK_SHARE, sum(len(value) + 3 for value, entry in ledger.items() if entry.owed))
        notes = fallback.write(
            plan.request,
            verification.without_section(draft.notes)[0],
            plan.middle[draft.done :],
            plan.calls,
            self._redact,
            chars=chars - spare,
            tokens=tokens - min(tokens // _FALLBACK_SHARE, spare),
            counter=self._counter,
        )
        notes = verification.completed(
            notes, ledger, self._redact, room=tokens, counter=self._counter, chars=chars, previous=plan.previous
        )
        held = verification.held(notes, ledger)
        return Written(notes=notes, identifiers=held, fallback=True, error=reason, failed_model=failed_model)

    async def _ask(
        self, call_model: CallModel, plan: Plan, ledger: verification.Ledger, wish: Wish, draft: _Draft
    ) -> tuple[Any, str]:
        """(the model's last answer, the notes in it); one stricter second try. Raises SummaryRefused.

        Where the conversation's own model can be asked in place it is. The second try, and whatever
        that is not possible for, stands alone, in as many parts as the model's window makes necessary.
        """
        order = self._order(plan, ledger, wish)
        answer = await self._ask_in_place(plan, wish, order, draft)
        if answer is None:
            for part in self._parts(plan, wish, order):
                answer = await self._ask_alone(call_model, part, wish, order, draft)
                draft.done = part.end
        return answer, verification.completed(
            draft.notes, ledger, self._redact, room=plan.room, counter=self._counter, previous=plan.previous
        )

    async def _ask_in_place(self, plan: Plan, wish: Wish, order: _Order, draft: _Draft) -> Any:
        """The answer to an aligned call, its notes in `draft`; None if it was not made or not usable.

        Its request is not redacted: it says to a model nothing that this very model was not told in
        the same words before. Its answer is, by what redaction would have taken out of the request.
        """
        if self.call_aligned is None:
            return None
        task = summary.instruction(
            material.opening(plan.rest, plan.calls, self._redact) if plan.rest else "",
            self._redact,
            tokens=order.tokens,
            previous=bool(plan.previous),
            memory=wish.memory,
            focus=wish.focus,
            recent=order.recent,
        )
        try:
            answer = await self.call_aligned(wish.transcript, task, order.limit)
            if answer is None:
                return None
            notes = verification.notes_in(answer, limit=order.limit, room=order.room, counter=self._counter)
            if not verification.structured(notes):
                raise SummaryRefused("it went on with the conversation instead of taking notes")
        except SummaryRefused as error:
            draft.refused = str(error)
            return None
        draft.notes = without(notes, withheld(plan.whole, self._redact))
        return answer

    async def _ask_alone(
        self, call_model: CallModel, part: material.Part, wish: Wish, order: _Order, draft: _Draft
    ) -> Any:
        """The answer to a request that holds one part of the middle, its notes in `draft`."""
        while True:
            messages = summary.request(
                part.text,
                self._redact,
                tokens=order.tokens,
                previous=self._shortened(draft.notes, order.limit),
                memory=wish.memory,
                focus=wish.focus,
                recent=order.recent,
                refused=draft.refused,
            )
            try:
                reply = call_model(messages, order.limit)
                answer = await reply if inspect.isawaitable(reply) else reply
                notes = verification.accept(
                    answer, self._redact, limit=order.limit, room=order.room, counter=self._counter
                )
            except SummaryRefused as error:
                if draft.refused:
                    raise SummaryRefused(f"The summary could not be used because {error}.") from error
                draft.refused = str(error)
                continue
            draft.notes = notes
            return answer

    def _order(self, plan: Plan, ledger: verification.Ledger, wish: Wish) -> _Order:
        """What every request of a pass asks for. Notes are read and written again for every part, so
        neither may take more than a quarter of the window."""
        window = wish.correction.invert(wish.window)
        limit = max(_LEAST_OUTPUT, min(plan.budget * 5 // 4, window // 4))
        listed = sum(self._counter.text(value) + 3 for value, entry in ledger.items() if entry.owed)
        room = plan.room - min(plan.room // _LEDGER_SHARE, listed)
        recent = [] if wish.focus else summary.newest_requests(plan.requests, self._redact)
        return _Order(
            limit=limit, room=room, tokens=min(plan.budget, room, limit * 4 // 5), recent=recent, window=window
        )

    def _parts(self, plan: Plan, wish: Wish, order: _Order) -> list[material.Part]:
        """What the summariser reads, request by request, each within its window."""
        fixed = (INSTRUCTIONS, wish.memory, wish.focus, *order.recent)
        room = order.window - order.limit - _SLACK - sum(self._counter.text(text) for text in fixed)
        earlier = min(order.limit, self._counter.text(plan.previous))
        return material.parts(
            plan.middle,
            plan.calls,
            self._redact,
            chars=material.INPUT_CHARS,
            tokens=max(_LEAST_INPUT, room - earlier),
            each=max(_LEAST_INPUT, room - order.limit),  # the second one brings the notes of the first
            most=_MOST_PARTS,
            counter=self._counter,
        )

    def _shortened(self, notes: str, tokens: int) -> str:
        """Earlier notes of at most about `tokens` tokens. The list at their end goes first, for it is made
        anew anyway; only a window that is too small for the rest costs them their middle."""
        if self._counter.text(notes) <= tokens:
            return notes
        bare, _ = verification.without_section(notes)
        size = self._counter.text(bare)
        return bare if size <= tokens else cut(self._redact(bare), len(bare) * tokens // size)


def _kind(error: BaseException) -> Failure:
    if isinstance(error, SummaryRefused):
        return "malformed"
    return "unconfigured" if isinstance(error, ConfigError) else classify(error)
