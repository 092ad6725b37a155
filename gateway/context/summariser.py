"""Gets the notes for a plan: from a model if one answers, verified; otherwise by rule, with the reason.

If the host can do that (`CallAligned`), the conversation's own model is asked in place, at the end of the conversation.
Any other request stands alone: it holds instructions, earlier notes and the middle as text. If the middle is too long
for the summariser's window, several requests follow one another, and each updates the notes of the one before. If one
fails, the notes so far stay, and the rest is noted by rule. The only state is the cooldown after a failure. It changes
after the last await, so a cancelled pass leaves everything as it was."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from math import inf
from typing import Any, Final

from msgspec import Struct

from gateway.context import (
    checking,
    facts,
    fallback,
    ledger,
    prompts,
    statements,
    summary_input,
    timelines,
    verification,
)
from gateway.context.assembly import Noted
from gateway.context.dating import Dating, Days
from gateway.context.engine import Outcome
from gateway.context.listing import Room
from gateway.context.plan import Plan
from gateway.context.pruning import cut
from gateway.context.standing import SHARE, listed
from gateway.context.state import Cooldown, classify
from gateway.context.verification import Lists
from gateway.domain.message import Message
from gateway.runtime.clock import Clock
from gateway.runtime.errors import CompressionFailed, ConfigError, ContextOverflow, GatewayError, SummaryRefused
from gateway.runtime.redaction import Redact
from gateway.runtime.structs import replace
from gateway.runtime.tokens import TokenCounter

CallModel = Callable[[Sequence[Message], int], Awaitable[str] | str]
CallAligned = Callable[[Sequence[Message], str, int], Awaitable[str | None]]
"""Asks the conversation's own model in place: the transcript as it was last sent, one instruction, the most tokens of
the answer. None, at once and free of charge, where the provider's cache would not be met."""

NO_MODEL: Final = "No model is configured for summaries."
PATIENCE: Final = 300.0  # seconds for all attempts: half of the time for which a turn may be silent
_SLACK: Final = 512  # tokens of the summariser's window left for formats and miscounts
_SMALLEST_WINDOW: Final = 2_048  # tokens; no summariser works with less
_LEAST_OUTPUT: Final = 256  # tokens; a smaller cap would cut off good answers
_LEAST_INPUT: Final = 500  # tokens of the middle in one request, whatever window is reported
_MOST_PARTS: Final = 4  # requests for one middle; the rest is left out by rank (`material`)
_REQUEST_CHARS: Final = 400  # of each of the newest requests


class Written(Struct, frozen=True, kw_only=True):
    """Notes, verified and redacted, with what is kept for the next pass and their circumstances."""

    notes: str
    kept: Noted
    outcome: Outcome


class PassOptions(Struct, frozen=True, kw_only=True):
    """The particulars of one pass.

    `focus`: a topic; "" for the newest requests. `memory`: text that memory wants kept. `force`: ignore cooldowns.
    `emergency`: there must be notes, whatever speaks against them. `transcript`: the messages as the host gave them.
    `window`: the summariser's window in tokens, as we count.
    """

    focus: str = ""
    memory: str = ""
    force: bool = False
    emergency: bool = False
    transcript: Sequence[Message] = ()
    window: int


class Summariser:
    """Gets the notes of one session's compactions.

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
        """Until when a failed summariser rests, in seconds since the epoch; None if it does not."""
        return self.cooldown.until if self.cooldown.active(self._clock.now()) else None

    @property
    def refused(self) -> bool:
        """Whether the provider recently refused the key, or the quota was used up; then only `force` tries again."""
        return self.cooldown.kind == "refused" and self.resting_until is not None

    async def write(self, plan: Plan, options: PassOptions) -> Written:
        """Notes from the model, otherwise by rule. Raises CompressionFailed if key or quota were refused: a person can
        fix that, and rule-made notes would only hide it."""
        notes = await asyncio.to_thread(_Notes, plan, counter=self._counter, redact=self._redact)
        if self.call_model is None:
            return await asyncio.to_thread(notes.by_rule, NO_MODEL)
        error: BaseException | None = None
        if self.resting_until is not None and not options.force:
            kind, seconds = self.cooldown.kind, self.cooldown.until - self._clock.now()
            reason = f"The summary model failed recently, so I do not ask it for {seconds:.0f} s."
        else:
            try:
                async with self._clock.limit(PATIENCE):
                    written = await self._asked(notes, options, self.call_model)
            except (GatewayError, TimeoutError) as raised:
                error = raised
            else:
                self.cooldown = Cooldown()
                return written
            if isinstance(error, SummaryRefused):
                kind = "malformed"
            else:
                kind = "unconfigured" if isinstance(error, ConfigError) else classify(error)
            self.cooldown = self.cooldown.after(kind, self._clock.now(), error)
            reason = self._redact(str(error)) or "The summary model did not answer in time."
        if kind == "refused" and not options.emergency:
            raise CompressionFailed(reason) from error
        return await asyncio.to_thread(notes.by_rule, reason, getattr(error, "failed_model", None))

    async def _asked(self, notes: _Notes, options: PassOptions, call_model: CallModel) -> Written:
        """A model's notes. If its window is smaller than it says, it gets half as much until that fits."""
        while True:
            try:
                return await _Asking(notes, options, call_model, self.call_aligned).write()
            except ContextOverflow as error:
                smaller = min(options.window // 2, error.limit or options.window)
                if smaller < _SMALLEST_WINDOW:
                    raise
                options = replace(options, window=smaller)
                notes.begin_again()


class _Notes:
    """The notes of one pass. `text`: the notes so far, at first the earlier ones; `done`: how many messages of the
    middle they cover."""

    def __init__(self, plan: Plan, *, counter: TokenCounter, redact: Redact) -> None:
        self.plan = plan
        self.counter = counter
        self.redact = redact
        self.text = plan.previous
        self.done = 0
        self._corrected: list[str] = []
        self._outdated = statements.outdated(plan.middle, plan.previous, plan.head)
        most = max(ledger.LEDGER, plan.room // ledger.PER_TOKENS)
        ranked = ledger.ledger(plan.middle, plan.identifiers, self._outdated.corrections, most, plan.owned)
        present = self._outdated.present
        self._facts = [
            replace(each, text=redact(statements.marked(each.text, present, self._outdated.about)))
            for each in plan.facts
        ]
        self._sayings = timelines.carried(plan.sayings, plan.middle, redact)
        # Facts stand in a list of their own, if there is no room for them here.
        own = {each.text for each in self._facts}
        rows = timelines.changed(self._sayings)
        self._changed = sorted(rows, key=lambda row: (row[-1].text not in own, row[-1].at), reverse=True)
        self._days = Days(max([0.0, *(each.at for each in self._sayings), *(each.at for each in self._facts)]))
        self.ledger = {value: entry for value, entry in ranked.items() if value not in self._outdated.values}

    def begin_again(self) -> None:
        """Forget what was noted of the middle, which will be read again."""
        self.text, self.done = self.plan.previous, 0

    def by_rule(self, reason: str, failed_model: str | None = None) -> Written:
        """Notes in which rules cover everything that no model has covered."""
        plan, budgets = self.plan, self.plan.budgets
        chars, tokens = budgets.fallback_chars, min(budgets.max_summary_tokens, plan.room - plan.ledger_room)
        if self.done:  # a model's work, in sections that may take half of the room
            chars += 2 * len(self.text)
        lists = self.lists(tokens + plan.ledger_room, chars + 4 * plan.ledger_room)
        self.text = fallback.write(
            plan.request,
            verification.without_lists(self.text),
            plan.middle[self.done :],
            plan.calls,
            self.redact,
            chars=chars - len(lists.text),
            tokens=tokens - self.counter.text(lists.text),
            counter=self.counter,
        )
        outcome = Outcome(fallback=True, error=reason, failed_model=failed_model)
        return self.completed(tokens + plan.ledger_room, lists, outcome)

    def check(self, originals: Sequence[Message]) -> None:
        """Remove from a model's notes what contradicts the originals."""
        self.text, corrected = checking.checked(self.text, originals, self.plan.previous)
        self._corrected = [self.redact(each) for each in corrected]

    def completed(self, room: int, lists: Lists, outcome: Outcome) -> Written:
        """The notes, followed by the `lists` and the list of identifiers."""
        notes = verification.completed(
            self.text,
            self.ledger,
            self.redact,
            room=room,
            counter=self.counter,
            previous=self.plan.previous,
            lists=lists,
            gone=self._outdated,
            dating=Dating(
                [*facts.threads(self._facts), *([each.told for each in row] for row in self._changed)], self._days
            ),
        )
        held = verification.held(notes, self.ledger)
        kept = Noted(
            identifiers=held,
            owned={value: round(self.ledger[value].own, 3) for value in held if self.ledger[value].own},
            standing=self.plan.standing,
            facts=self._facts,
            timelines=self._sayings,
            corrected=self._corrected,
        )
        return Written(notes=notes, kept=kept, outcome=outcome)

    def lists(self, room: int, chars: float = inf) -> Lists:
        """Return the lists of what people said for notes of `room` tokens and `chars` characters."""
        whole = Room(room, self.counter, chars)
        changed, shown = timelines.listed(self._changed, self._days, whole.share(timelines.SHARE))
        return Lists(
            standing=listed(self.plan.standing, self.redact, whole.share(SHARE)),
            facts=facts.listed(self._facts, self._days, whole.share(facts.SHARE), shown),
            changed=statements.marked(changed, self._outdated.present, self._outdated.about),
        )


class _Asking:
    """Lets a model write the notes of one pass. The first try is made in place if possible; every other request stands
    alone. One unusable answer is forgiven, and asked for again with its flaw."""

    def __init__(
        self, notes: _Notes, options: PassOptions, call_model: CallModel, call_aligned: CallAligned | None
    ) -> None:
        plan, counter = notes.plan, notes.counter
        self._notes = notes
        self._plan = plan
        self._options = options
        self._call_model = call_model
        self._call_aligned = call_aligned
        self._refused = ""  # the flaw of the last answer, "" as long as all were usable
        # Every part's request reads notes and writes them anew, so neither may take more than a quarter of the window.
        self._limit = max(_LEAST_OUTPUT, min(plan.budget * 5 // 4, options.window // 4))
        self._lists = notes.lists(plan.room)
        lists = min(plan.ledger_room, sum(map(len, notes.ledger))) + counter.text(self._lists.text)
        self._room = plan.room - lists  # the most tokens that the answer may have
        self._tokens = min(plan.budget, self._room, self._limit * 4 // 5)  # the number that is asked for
        self._recent = [] if options.focus else [line for line in map(self._line, plan.requests) if line]

    async def write(self) -> Written:
        """Return verified notes. Raises SummaryRefused after one stricter second try."""
        answer = await self._ask_in_place()
        if answer is None:
            for part in await asyncio.to_thread(self._parts):
                answer = await self._ask_alone(part)
                self._notes.done = part.end
        outcome = Outcome(failed_model=getattr(answer, "failed_model", None))
        await asyncio.to_thread(self._notes.check, self._options.transcript)
        return await asyncio.to_thread(self._notes.completed, self._plan.room, self._lists, outcome)

    async def _ask_in_place(self) -> Any:
        """The answer to an aligned call; None if there was no call or no usable answer.

        The request is not redacted, because the same words were sent to the same model before. The answer is:
        everything that redaction would have removed from the request is removed from it.
        """
        if self._call_aligned is None:
            return None
        plan, redact = self._plan, self._notes.redact
        task = prompts.instruction(
            summary_input.opening(plan.rest, plan.calls, redact) if plan.rest else "",
            redact,
            tokens=self._tokens,
            previous=bool(plan.previous),
            memory=self._options.memory,
            focus=self._options.focus,
            recent=self._recent,
        )
        try:
            answer = await self._call_aligned(self._options.transcript, task, self._limit)
            if answer is None:
                return None
            notes = self._read(answer)
            if not verification.structured(notes):
                raise SummaryRefused("it went on with the conversation instead of taking notes")
        except SummaryRefused as error:
            self._refused = str(error)
            return None
        self._notes.text = verification.without(notes, verification.withheld(plan.whole, redact))
        return answer

    async def _ask_alone(self, part: summary_input.Part) -> Any:
        """Return the answer to a request that holds one part of the middle."""
        while True:
            messages = prompts.request(
                part.text,
                self._notes.redact,
                tokens=self._tokens,
                previous=self._shortened(self._notes.text),
                memory=self._options.memory,
                focus=self._options.focus,
                recent=self._recent,
                refused=self._refused,
            )
            try:
                reply = self._call_model(messages, self._limit)
                answer = await reply if inspect.isawaitable(reply) else reply
                self._notes.text = self._notes.redact(self._read(answer))
            except SummaryRefused as error:
                if self._refused:
                    raise SummaryRefused(f"The summary could not be used because {error}.") from error
                self._refused = str(error)
            else:
                return answer

    def _read(self, answer: Any) -> str:
        """Return the notes in an answer. Raises SummaryRefused."""
        spoken = "\n".join(self._plan.requests)
        return verification.notes_in(
            answer, limit=self._limit, room=self._room, counter=self._notes.counter, spoken=spoken
        )

    def _line(self, request: str) -> str:
        """Return a request on one line, redacted before the cut."""
        line = " ".join(self._notes.redact(request[: 10 * _REQUEST_CHARS]).split())
        return line if len(line) <= _REQUEST_CHARS else f"{line[:_REQUEST_CHARS]}…"

    def _parts(self) -> list[summary_input.Part]:
        """Return the middle as the summariser reads it, request by request, each within its window."""
        plan, counter = self._plan, self._notes.counter
        given = sum(counter.text(text) for text in (self._options.memory, self._options.focus, *self._recent))
        room = self._options.window - self._limit - _SLACK - counter.constant(prompts.INSTRUCTIONS) - given
        earlier = min(self._limit, counter.text(plan.previous))
        return summary_input.parts(
            plan.middle,
            plan.calls,
            self._notes.redact,
            chars=summary_input.INPUT_CHARS,
            tokens=max(_LEAST_INPUT, room - earlier),
            each=max(_LEAST_INPUT, room - self._limit),  # the second one brings the notes of the first
            most=_MOST_PARTS,
            counter=counter,
        )

    def _shortened(self, notes: str) -> str:
        """Earlier notes, shortened to about the length of an answer. The list at their end goes first, because it is
        made again anyway; the middle of the rest is cut only if the window is too small for it."""
        counter = self._notes.counter
        if counter.text(notes) <= self._limit:
            return notes
        bare = verification.without_lists(notes)
        size = counter.text(bare)
        return bare if size <= self._limit else cut(self._notes.redact(bare), len(bare) * self._limit // size)
