"""Asks the model of a turn for the answer of each step, and other models while it is away.

Only a useful answer counts. A prompt that is too long is made to fit (`fitting`), an answer that was cut off is asked
for again with more room, and an empty one once more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Final

from msgspec import Struct, field

from gateway.agent.caching import BEFORE, prompt
from gateway.agent.conversation import Conversation
from gateway.agent.fallback import NOT_AVAILABLE, explained, passes_on, reason, told
from gateway.agent.fitting import MOST_EXTENSIONS, NO_ROOM, Fitting, change_model, lacks_room, more_output
from gateway.agent.metering import LEAST_OUTPUT, Metering
from gateway.agent.ports import Observer, Reply
from gateway.agent.steps import ToolSteps
from gateway.domain.chat import NO_TERMS, Terms
from gateway.domain.message import Message, ToolCall, assistant
from gateway.domain.usage import CanonicalUsage, LedgerEntry, Purpose
from gateway.providers.base import Completed, ModelRequest, ModelSpec, ReasoningDelta, StopReason, TextDelta
from gateway.runtime.errors import (
    ContentRefused,
    ContextOverflow,
    EmptyAnswer,
    OutputCapTooLarge,
    ProviderError,
    ProviderRejected,
    ProviderUnavailable,
    SpendCapReached,
    UserError,
)
from gateway.runtime.points import Points
from gateway.runtime.structs import replace

_EMPTY_RETRIES = 1  # an empty answer is asked for once more
_BLANK: Final = " \t\n\r\f\v\xa0\xad\u200b\u200c\u200d\u2060\u3000\ufeff"  # of which a reader sees nothing
OUT_OF_STEPS = "You have used all tool calls of this turn. Answer now with what you know."
_OUT_OF_STEPS: Final[Sequence[Message]] = ({"role": "user", "content": OUT_OF_STEPS},)
NO_WORDS_LEFT = "I have used all the steps that I may take for one message, and I am not done. Ask me to go on."

ENDED_EARLY: Mapping[StopReason, str] = {
    "length": "My answer reached the output limit of the model. To let me go on, send /continue.",
    "refused": "The model or its provider refused to say more. Word your message differently, or try another /model.",
}
REPEATED = "I started repeating myself, so I stopped. Send /retry to let me answer again."
NOT_TAKEN = "None of the available models accepts {names}. Leave {names} out, or choose another model."
TOO_SMALL = "max_tokens leaves no room for an answer: raise it, or leave it out."
SHORTENED = "A spend cap stopped this answer. The operator can raise {key}."


class Asking(Struct, kw_only=True):
    """The model calls of one turn."""

    metering: Metering
    fitting: Fitting
    steps: ToolSteps
    observer: Observer
    reply: Reply
    points: Points
    purpose: Purpose = "turn"
    also: Sequence[ModelSpec] = ()  # who is asked where no other model answers
    terms: Terms = NO_TERMS
    stop: StopReason = "stop"  # why the last answer ended
    partial_text: str = ""  # of the answer under way
    remarks: list[str] = field(default_factory=list)  # lines about the reply, behind it
    spent: list[LedgerEntry] = field(default_factory=list)  # the turn's calls
    _home: ModelSpec | None = None  # the conversation's own model, which another one may stand in for
    _absence: str = ""  # why that one does not answer
    _told: bool = False  # who gives the present answer

    async def answer(self, conversation: Conversation, step: int, *, last: bool) -> Completed:
        """Ask the conversation's model or, while it is away, those that may stand in for it."""
        if self._home is None or conversation.spec.place == self._home.place:
            self._home = conversation.spec
        home, failures = self._home, list[ProviderError]()
        unpaid: SpendCapReached | None = None
        self._absence = self.metering.models.absence(home) or self._absence
        for candidate in (candidates := self._candidates(conversation, home)):
            spec = self.metering.models.learned.of(candidate, conversation.stored.session.key)
            stands_in = spec.place != home.place
            if spec.place != conversation.spec.place:
                await change_model(conversation, spec)
                await self.fitting.fit(conversation)
            stops = self.metering.caps.when_reached == "stop"
            least = LEAST_OUTPUT if stops or candidate is candidates[-1] else None
            try:
                completed = await self._ask(conversation, step, last=last, least=least)
            except SpendCapReached as error:
                if stops:
                    raise
                unpaid = unpaid or error
                continue
            except ProviderError as error:
                if not passes_on(error, stands_in=stands_in):
                    raise
                failures.insert(len(failures) if stands_in else 0, error)
                self._absence = self._absence if stands_in else reason(error)
                continue
            if not completed.tool_calls and not self._told:  # it came without a first piece
                await self._tell_who_answers(conversation)
            return completed
        raise unpaid or explained(failures[0], self.metering.models.fallbacks)

    async def use_own_model(self, conversation: Conversation) -> None:
        """Return to the conversation's own model at the end of a turn."""
        if self._home is not None and conversation.spec.place != self._home.place:
            await change_model(conversation, self._home)

    async def _tell_who_answers(self, conversation: Conversation) -> None:
        """Say before the answer's first words that another model gives it than the answer before."""
        home, self._told = self._home or conversation.spec, True
        absence = self._absence if self.fitting.details or not self._absence else NOT_AVAILABLE
        again = self.metering.models.away_for(home) if absence else 0.0
        marks, sentence = told(conversation.fresh.announced, conversation.spec, home, absence, again)
        conversation.announce(marks)
        if sentence:
            await self.observer.tell(sentence)

    def _candidates(self, conversation: Conversation, home: ModelSpec) -> list[ModelSpec]:
        """The models to ask, in order. One that stood in at the previous step continues, because two models in one turn
        confuse each other."""
        able, present = [*self.metering.models.chain(home), *self.also], conversation.spec.place
        if self.terms.settings:
            wanted, plugins = self.terms.wanted, self.metering.models.plugins
            able = [spec for spec in able if plugins[spec.provider].takes >= wanted]
            if not able:
                names = ", ".join(sorted(wanted - plugins[home.provider].takes))
                raise UserError(NOT_TAKEN.format(names=names or "all of these settings"))
        return able if present == home.place else sorted(able, key=lambda spec: spec.place != present)

    async def _ask(self, conversation: Conversation, step: int, *, last: bool, least: int | None) -> Completed:
        """Ask the present model until its answer is of use. `least`: the output tokens that would do where a spend cap
        has no room for more; None: all of them."""
        max_tokens, cap = conversation.spec.max_output_tokens, self.terms.max_tokens
        if cap is not None:
            max_tokens = min(cap, max_tokens or cap)
        empty = extended = 0
        shortened: SpendCapReached | None = None
        while True:
            self.observer.phase("thinking", step)
            try:
                completed = await self._call(conversation, max_tokens, step, last=last, least=least)
            except SpendCapReached as error:
                if not error.available:
                    raise
                shortened, max_tokens = error, error.available
                continue
            except (ContextOverflow, OutputCapTooLarge) as error:
                max_tokens = await self.fitting.recover(conversation, error, max_tokens)
                continue
            except ProviderRejected as error:
                if not await self.fitting.shorten(conversation, error):
                    raise
                continue
            if completed.stop == "refused":
                completed = replace(completed, tool_calls=())
                if not completed.text.strip(_BLANK):
                    raise ContentRefused("The model refused to answer.")
            said = completed.text.strip(_BLANK)
            if (last and said) or ((said or completed.tool_calls) and not completed.cut_call):
                return await self._kept(conversation, completed, shortened, last=last)
            if lacks_room(completed):
                if shortened is not None:
                    raise shortened
                if cap is not None:
                    raise UserError(TOO_SMALL)
                extended, least = extended + 1, None
                max_tokens = self._more_room(conversation, completed, max_tokens, extended)
                continue
            empty += 1
            if empty > _EMPTY_RETRIES:
                raise EmptyAnswer

    async def _kept(
        self, conversation: Conversation, completed: Completed, shortened: SpendCapReached | None, *, last: bool
    ) -> Completed:
        """Add an answer to the conversation, and remark on its early end. `shortened`: by this spend cap."""
        self.points("turn.model_called")
        self.stop = completed.stop
        if not completed.tool_calls and completed.stop in ENDED_EARLY and self.terms is NO_TERMS:
            cap = shortened if completed.stop == "length" else None
            self.remarks.append(SHORTENED.format(key=cap.key) if cap else ENDED_EARLY[completed.stop])
        if last:
            # Only text was asked for; calls of a model that ignores this would never get a result.
            said = completed.text if completed.text.strip(_BLANK) else NO_WORDS_LEFT
            completed = replace(completed, text=said, tool_calls=())
        if completed.tool_calls:
            completed = replace(completed, tool_calls=_distinct(completed.tool_calls))
        conversation.add(await conversation.measured_aside(message_of(completed)), self.metering.clock.now())
        self.partial_text = ""
        return completed

    async def _call(
        self, conversation: Conversation, max_tokens: int | None, step: int, *, last: bool, least: int | None
    ) -> Completed:
        spec, session = conversation.marked(), conversation.stored.session
        request = ModelRequest(
            messages=prompt(
                session.system_prompt,
                # What only this call needs stands behind the cached prefix, and is not stored.
                chain(
                    conversation.stored.messages,
                    conversation.fresh.messages,
                    _OUT_OF_STEPS if last and step > 1 else (),
                ),
                spec,
                conversation.aside() if conversation.quotes else None,
            ),
            files_at=conversation.files_at(before=BEFORE),
            tools=await self.steps.schemas(conversation),
            max_tokens=max_tokens,
            prompt_tokens=conversation.prompt_tokens(),
            tool_choice="none" if last else "required" if self.terms.must_call else "auto",
            chosen=self.terms.settings,
            pausing=self.observer.pausing,
        )
        # Where the own model answers, as ever, there is nothing to tell.
        self._told = not conversation.fresh.announced and self._home is not None and spec.place == self._home.place
        if (plugged := self.fitting.plugged) is not None:
            await plugged.asked(session, spec, request.messages)
        text, begun, thought, completed, most = "", False, False, None, longest(max_tokens)
        asked_at = self.metering.clock.monotonic()
        enter = partial(self._enter, conversation)
        call = self.metering.call(spec, request, session, self.purpose, enter, least=least)
        async with call:
            async for event in call.events:
                call.see(event)
                if isinstance(event, TextDelta):
                    if not self._told:
                        await self._tell_who_answers(conversation)
                    text += event.text
                    if len(text) > most:  # what the call cost is not known then
                        completed = self._said_once(Completed(text=text[:most], stop="length"))
                        break
                    # Only new words take the place of earlier ones: a person may see those already.
                    if begun := begun or bool(text.strip(_BLANK)):
                        self.partial_text = text
                        await self.reply.text(text)
                elif isinstance(event, Completed):
                    completed = self._said_once(event) if event.stop == "length" else event
                else:
                    self.observer.alive()
                    thinks = isinstance(event, ReasoningDelta)
                    if thinks and not thought:
                        self.observer.phase("reasoning")
                    text, thought = text if thinks else "", thinks or thought
                    begun = bool(text) and begun
        if completed is None:
            raise ProviderUnavailable("The model's answer ended without a result.", malformed=True)
        await self._note(conversation, request, spec, completed.usage or CanonicalUsage(), asked_at)
        if plugged is not None:
            await plugged.answered(session, spec, completed)
        return completed

    def _enter(self, conversation: Conversation, entry: LedgerEntry) -> None:
        conversation.ledger.append(entry)
        self.spent.append(entry)

    def _said_once(self, completed: Completed) -> Completed:
        """Return an answer that a limit ended, without what it repeated up to there."""
        if completed.tool_calls or (text := said_once(completed.text)) is None:
            return completed
        self.remarks.append(REPEATED)
        return replace(completed, text=text, stop="stop", original=None)

    async def _note(
        self,
        conversation: Conversation,
        request: ModelRequest,
        spec: ModelSpec,
        usage: CanonicalUsage,
        asked_at: float,
    ) -> None:
        """Note what an answer used, for all who estimate the next request."""
        counted = conversation.answered(request, spec, usage, asked_at)
        self.metering.models.learned.fits(spec, usage.prompt_tokens)
        if usage.prompt_tokens:
            await conversation.engine.learn({**usage.as_dict(), "estimated_prompt_tokens": counted})

    def _more_room(
        self, conversation: Conversation, completed: Completed, max_tokens: int | None, extended: int
    ) -> int:
        """Return the output cap for another try at a tool call that was cut off. Raises UserError when there is no more
        room."""
        room = more_output(
            completed,
            max_tokens=max_tokens,
            prompt_tokens=conversation.prompt_tokens(),
            context_length=conversation.spec.context_length,
        )
        if room is None or extended > MOST_EXTENSIONS:
            raise UserError(NO_ROOM)
        return room


def message_of(completed: Completed) -> Message:
    """Return an answer as it is stored: with its thoughts, and with its blocks as its provider sent them."""
    kept = {"original": completed.original} if completed.original else {}
    message = assistant(completed.text or None, completed.tool_calls, **kept)
    if completed.reasoning:
        message["reasoning_content"] = completed.reasoning
    return message


def _distinct(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """Return the calls with distinct ids: some servers leave ids out or repeat them."""
    seen: set[str] = set()
    distinct: list[ToolCall] = []
    for number, call in enumerate(calls):
        call_id = call["id"] or f"call_{number}"
        while call_id in seen:
            call_id = f"{call_id}_{number}"
        seen.add(call_id)
        distinct.append({**call, "id": call_id})
    return tuple(distinct)


# -- answers without an end ----------------------------------------------------------------------------


LONGEST: Final = 131_072  # characters of an answer: 32,768 tokens, as most texts have them
_OF_A_TOKEN: Final = 10  # characters at most, on average: a limit of the model's own may allow more
_UNIT: Final = 200  # characters that are looked for again
_TIMES: Final = 20  # that they come again
_LONGEST: Final = 2_000  # characters of what is repeated


def longest(tokens: int | None) -> int:
    """How many characters an answer may have. `tokens`: the model's own limit, which its server keeps; None: it has
    none."""
    return max(LONGEST, _OF_A_TOKEN * (tokens or 0))


def said_once(text: str) -> str | None:
    """The text with what is repeated at its end said once; None: nothing is."""
    found = text.rfind(text[-_UNIT:], max(0, len(text) - _UNIT - _LONGEST), len(text) - 1)
    if found < 0:
        return None
    period = len(text) - _UNIT - found
    begin = len(text) - max(_TIMES * period, _TIMES * _UNIT)
    if begin < 0 or text[begin:-period] != text[begin + period :]:
        return None
    while begin and text[begin - 1] == text[begin - 1 + period]:
        begin -= 1
    return text[: begin + period]
