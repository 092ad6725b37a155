"""Getting the notes for a plan: from a model if one answers, verified; else by rule, with the reason.

The conversation's own model is asked in place, behind the conversation, where the host can do that (`CallAligned`).
Any other request stands alone: it holds instructions, earlier notes and the middle as text. If the summariser's
window is too small for the middle, there are several requests, and each brings the notes of the one before up to
date; if one fails, the notes so far stay, and only the rest of the middle is noted by rule.

The only state is the cooldown after a failure. It changes after the last await, so a cancelled pass leaves
everything as it was.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gateway.context import fallback, identifiers, instructions, listing, material, prompts, statements, verification
from gateway.context.plan import Plan
from gateway.context.pruning import cut
from gateway.context.state import Cooldown, Correction, classify
from gateway.domain.message import Message
from gateway.runtime.clock import Clock
from gateway.runtime.errors import CompressionFailed, ConfigError, GatewayError, SummaryRefused
from gateway.runtime.redaction import Redact
from gateway.runtime.tokens import TokenCounter

CallModel = Callable[[Sequence[Message], int], Awaitable[str] | str]
CallAligned = Callable[[Sequence[Message], str, int], Awaitable[str | None]]
"""Asks the conversation's own model in place: the transcript as it was last sent, one instruction, the most tokens of
the answer. None, at once and free of charge, where the provider's cache would not be met."""

NO_MODEL: Final = "No model is configured that could summarise."
PATIENCE: Final = 300.0  # seconds for all attempts: half of the time for which a turn may be silent
_SLACK: Final = 512  # tokens of the summariser's window left for formats and miscounts
_LEAST_OUTPUT: Final = 256  # tokens; a smaller cap would cut off good answers
_LEAST_INPUT: Final = 500  # tokens of the middle in one request, whatever window is reported
_MOST_PARTS: Final = 4  # requests for one middle; the rest is left out by rank (`material`)
_REQUEST_CHARS: Final = 400  # of each of the newest requests


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Notes, verified and redacted, the identifiers that they hold (with their weights), and their circumstances."""

    notes: str
    identifiers: Mapping[str, float]
    fallback: bool = False
    error: str | None = None
    failed_model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The particulars of one pass.

    `focus`: a topic, "" for the newest requests. `memory`: text that memory wants kept. `force`: cooldowns do not
    hold. `emergency`: there must be notes, whatever the reason against them. `transcript`: the messages as the host
    gave them. `window`: tokens of the summariser's window, as its provider counts.
    """

    focus: str = ""
    memory: str = ""
    force: bool = False
    emergency: bool = False
    transcript: Sequence[Message] = ()
    window: int
    correction: Correction


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """The common part of all requests of a pass.

    `limit`: the output cap. `room`: the most tokens that the notes may take. `tokens`: the number that is asked for.
    `spoken`: the newest requests, whole. `window`: the summariser's, as we count.
    """

    limit: int
    room: int
    tokens: int
    recent: Sequence[str]
    spoken: str
    window: int


@dataclass(slots=True)
class _Draft:
    """The notes so far, at first the earlier ones.

    `done`: the number of messages of the middle that they cover. `refused`: the reason why the last answer could not
    be used, "" as long as all could.
    """

    notes: str
    done: int = 0
    refused: str = ""


class Summariser:
    """Writes the notes of one session's compactions.

    `call_model` None: only by rule. `call_aligned` None: every request stands alone.
    """

    def __init__(self, *, counter: TokenCounter, clock: Clock, redact: Redact) -> None:
        self.call_model: CallModel | None = None
        self.call_aligned: CallAligned | None = None
        self.cooldown = Cooldown()
        self._counter = counter
        self._clock = clock
        self._redact = redact

    @property
    def resting_until(self) -> float | None:
        """The end of the rest of a summariser that failed, in seconds since the epoch; None: it does not rest."""
        return self.cooldown.until if self.cooldown.active(self._clock.now()) else None

    @property
    def refused(self) -> bool:
        """Say whether the provider lately refused the key, or the quota was used up; only `force` tries again then."""
        return self.cooldown.kind == "refused" and self.resting_until is not None

    async def write(self, plan: Plan, wish: Wish) -> Written:
        """Return notes from the model, else by rule. Raises CompressionFailed where key or quota were refused: a
        person can mend that, and rule-made notes would only hide it."""
        gone = statements.outdated(plan.middle, plan.previous, plan.head)
        ledger = identifiers.ledger(
            plan.middle,
            plan.identifiers,
            gone.corrections,
            max(identifiers.LEDGER, plan.room // identifiers.PER_TOKENS),
        )
        ledger = {value: entry for value, entry in ledger.items() if value not in gone.values}
        draft = _Draft(plan.previous)
        if self.call_model is None:
            return self._by_rule(plan, ledger, gone, draft, NO_MODEL)
        error: BaseException | None = None
        if self.resting_until is not None and not wish.force:
            kind, seconds = self.cooldown.kind, self.cooldown.until - self._clock.now()
            reason = f"The summariser failed recently and rests for {seconds:.0f} s more."
        else:
            try:
                async with self._clock.limit(PATIENCE):
                    answer, notes = await self._ask(self.call_model, plan, ledger, gone, wish, draft)
            except (GatewayError, TimeoutError) as raised:
                error = raised
            else:
                self.cooldown = Cooldown()
                failed = getattr(answer, "failed_model", None)
                return Written(notes=notes, identifiers=verification.held(notes, ledger), failed_model=failed)
            if isinstance(error, SummaryRefused):
                kind = "malformed"
            else:
                kind = "unconfigured" if isinstance(error, ConfigError) else classify(error)
            self.cooldown = self.cooldown.after(kind, self._clock.now(), error)
            reason = self._redact(str(error)) or "The summariser did not answer in time."
        if kind == "refused" and not wish.emergency:
            raise CompressionFailed(reason) from error
        return self._by_rule(plan, ledger, gone, draft, reason, getattr(error, "failed_model", None))

    def _by_rule(
        self,
        plan: Plan,
        ledger: listing.Ledger,
        gone: statements.Outdated,
        draft: _Draft,
        reason: str,
        failed_model: str | None = None,
    ) -> Written:
        chars, tokens = plan.budgets.fallback_chars, min(plan.budgets.max_summary_tokens, plan.room - plan.ledger_room)
        if draft.done:  # a model's work, in sections that may take half of the room
            chars += 2 * len(draft.notes)
        standing = self._standing(plan, tokens + plan.ledger_room, chars + 4 * plan.ledger_room)
        notes = fallback.write(
            plan.request,
            verification.without_lists(draft.notes),
            plan.middle[draft.done :],
            plan.calls,
            self._redact,
            chars=chars - len(standing),
            tokens=tokens - self._counter.text(standing),
            counter=self._counter,
        )
        notes = verification.completed(
            notes,
            ledger,
            self._redact,
            room=tokens + plan.ledger_room,
            counter=self._counter,
            previous=plan.previous,
            standing=standing,
            gone=gone,
        )
        held = verification.held(notes, ledger)
        return Written(notes=notes, identifiers=held, fallback=True, error=reason, failed_model=failed_model)

    async def _ask(
        self,
        call_model: CallModel,
        plan: Plan,
        ledger: listing.Ledger,
        gone: statements.Outdated,
        wish: Wish,
        draft: _Draft,
    ) -> tuple[Any, str]:
        """Return the model's last answer and the notes in it. Raises SummaryRefused after one stricter second try.

        The first try is made in place if possible. Every other request stands alone.
        """
        order = self._order(plan, ledger, wish)
        answer = await self._ask_in_place(plan, wish, order, draft)
        if answer is None:
            for part in self._parts(plan, wish, order):
                answer = await self._ask_alone(call_model, part, wish, order, draft)
                draft.done = part.end
        return answer, verification.completed(
            draft.notes,
            ledger,
            self._redact,
            room=plan.room,
            counter=self._counter,
            previous=plan.previous,
            standing=self._standing(plan, plan.room),
            gone=gone,
        )

    async def _ask_in_place(self, plan: Plan, wish: Wish, order: _Order, draft: _Draft) -> Any:
        """Return the answer to an aligned call, its notes in `draft`; None if there was no call or no usable answer.

        The request is not redacted, because the very same words were sent to the very same model before. The answer
        is: everything is taken out of it that redaction would have taken out of the request.
        """
        if self.call_aligned is None:
            return None
        task = prompts.instruction(
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
            notes = verification.notes_in(
                answer, limit=order.limit, room=order.room, counter=self._counter, spoken=order.spoken
            )
            if not verification.structured(notes):
                raise SummaryRefused("it went on with the conversation instead of taking notes")
        except SummaryRefused as error:
            draft.refused = str(error)
            return None
        draft.notes = verification.without(notes, verification.withheld(plan.whole, self._redact))
        return answer

    async def _ask_alone(
        self, call_model: CallModel, part: material.Part, wish: Wish, order: _Order, draft: _Draft
    ) -> Any:
        """Return the answer to a request that holds one part of the middle, its notes in `draft`."""
        while True:
            messages = prompts.request(
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
                draft.notes = verification.accept(
                    answer, self._redact, limit=order.limit, room=order.room, counter=self._counter, spoken=order.spoken
                )
            except SummaryRefused as error:
                if draft.refused:
                    raise SummaryRefused(f"The summary could not be used because {error}.") from error
                draft.refused = str(error)
            else:
                return answer

    def _order(self, plan: Plan, ledger: listing.Ledger, wish: Wish) -> _Order:
        """Every part's request reads notes and writes them anew, so neither may take more than a quarter of the
        window."""
        window = wish.correction.invert(wish.window)
        limit = max(_LEAST_OUTPUT, min(plan.budget * 5 // 4, window // 4))
        standing = self._counter.text(self._standing(plan, plan.room))
        room = plan.room - min(plan.ledger_room, sum(len(value) for value in ledger)) - standing
        recent = [] if wish.focus else [line for line in map(self._line, plan.requests) if line]
        return _Order(
            limit=limit,
            room=room,
            tokens=min(plan.budget, room, limit * 4 // 5),
            recent=recent,
            spoken="\n".join(plan.requests),
            window=window,
        )

    def _standing(self, plan: Plan, room: int, chars: int | None = None) -> str:
        """Return the list of standing instructions for notes of `room` tokens and `chars` characters."""
        share = instructions.SHARE
        most = None if chars is None else int(chars * share)
        return instructions.written(
            plan.standing, self._redact, room=int(room * share), counter=self._counter, chars=most
        )

    def _line(self, request: str) -> str:
        """Return a request on one line, redacted before the cut."""
        line = " ".join(self._redact(request[: 10 * _REQUEST_CHARS]).split())
        return line if len(line) <= _REQUEST_CHARS else f"{line[:_REQUEST_CHARS]}…"

    def _parts(self, plan: Plan, wish: Wish, order: _Order) -> list[material.Part]:
        """Return the middle as the summariser reads it, request by request, each within its window."""
        given = sum(self._counter.text(text) for text in (wish.memory, wish.focus, *order.recent))
        room = order.window - order.limit - _SLACK - self._counter.constant(prompts.INSTRUCTIONS) - given
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
        """Return earlier notes of at most about `tokens` tokens. The list at their end goes first, because it is made
        anew anyway; the middle of the rest is cut only where the window is too small for it."""
        if self._counter.text(notes) <= tokens:
            return notes
        bare = verification.without_lists(notes)
        size = self._counter.text(bare)
        return bare if size <= tokens else cut(self._redact(bare), len(bare) * tokens // size)
