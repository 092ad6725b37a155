"""The agent's loop: fit the window, ask the model, run its tools, store the step, again.

`Agent.run` reads from top to bottom as the story of a turn. Everything that must survive goes through the
`TranscriptWriter`, and everything that a person may watch goes through the `Observer`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any

import structlog

from gateway.agent.caching import BEFORE, prompt
from gateway.agent.compaction import Compactor, Trigger
from gateway.agent.conversation import BLOCKED_MARK, Conversation
from gateway.agent.engines import adopt
from gateway.agent.fallback import NOT_AVAILABLE, explained, passes_on, reason, told
from gateway.agent.gate import Gate
from gateway.agent.memory.memories import Memories, TurnMemory
from gateway.agent.metering import LEAST_OUTPUT, Metering, millionths, written
from gateway.agent.models import Models
from gateway.agent.overflow import MOST_EXTENSIONS, NO_ROOM, NO_WAY_OUT, lacks_room, more_output, remedy
from gateway.agent.ports import Observer, Questions, TranscriptWriter
from gateway.agent.quotes import Holding, Quoting, marked
from gateway.agent.tools.base import Around, Files, Recall, ReminderBook, ToolContext
from gateway.agent.tools.offer import Caller, Offer, Toolbox
from gateway.agent.tools.outputs import OutputLimits, Outputs
from gateway.agent.tools.runtime import INTERRUPTED, UNKNOWN_OUTCOME, ToolRuntime
from gateway.context import feedback
from gateway.domain.message import Message, ToolCall, assistant, is_request, note_of, noted, text_of, tool_result
from gateway.domain.turn import TurnSettings
from gateway.domain.usage import CanonicalUsage, LedgerEntry
from gateway.domain.window import is_emergency
from gateway.providers.base import Completed, ModelRequest, ModelSpec, ReasoningDelta, StopReason, TextDelta
from gateway.runtime.clock import Clock
from gateway.runtime.errors import (
    ContentRefused,
    ContextOverflow,
    EmptyAnswer,
    OutputCapTooLarge,
    ProviderError,
    ProviderRejected,
    ProviderUnavailable,
    SpendCapReached,
    StoreUnavailable,
    UserError,
)
from gateway.runtime.points import Points
from gateway.store.records import ToolIntent

log = structlog.get_logger(__name__)

_MOST_PASSES = 3  # automatic compactions in a turn that do not bring its prompt under the mark; then the person is told
_LONGEST_TOKEN = 10  # characters, on average: an answer longer than that many windows' worth is a fault
_EMPTY_RETRIES = 1  # an empty answer is asked for once more
OUT_OF_STEPS = "You have used all tool calls of this turn. Answer now with what you know."
NO_WORDS_LEFT = "I used all the steps I have for one message without finishing. Ask me to go on and I will."

ENDED_EARLY: Mapping[StopReason, str] = {
    "length": "The answer reached the model's output limit. /continue makes me go on where it stopped.",
    "refused": "The model or its provider declined to say more. Put it differently, or try another model with /model.",
}
SHORTENED = "A spend cap left no room for more of this answer; the operator can raise {key}."
DECLINED = (
    "The model or its provider's content filter declined that, so I do not send it again. Put it differently, or try "
    "another model with /model. If the next message is declined, too, /undo takes back what was said before."
)
DECLINED_LATER = (
    "The model or its provider's content filter declined to go on. /undo takes your message back, and what came of it; "
    "then put it differently, or try another model with /model."
)
NOT_SENT = "[The model's provider refused this message of the person, so the model is not shown it.]"


@dataclass(slots=True, kw_only=True)
class Agent:
    """One turn over one conversation. It is cheap to build: it holds references and two counters."""

    models: Models
    metering: Metering
    toolbox: Toolbox
    compactor: Compactor
    writer: TranscriptWriter
    observer: Observer
    steer: Callable[[Conversation], Awaitable[None]]  # adds a person's messages for the running turn
    questions: Questions
    recall: Recall
    holding: Holding
    around: Around
    files: Files
    memories: Memories
    reminders: ReminderBook
    servers_tried: Callable[[], Awaitable[None]]  # waits a little for servers that are being started
    clock: Clock
    points: Points
    settings: TurnSettings
    limits: OutputLimits
    caller: Caller  # the person whom the turn answers
    quoting: Quoting | None = None  # automatic recall; None: switched off
    details: bool = True  # whether this person may read why a compaction failed
    automatic: bool = True  # compression.enabled
    partial_text: str = ""
    remarks: list[str] = field(default_factory=list)  # lines about the reply, behind it
    _offer: Offer = field(default_factory=partial(Offer, order=(), offered={}))  # the tools of the present step
    _tools: ToolRuntime = field(init=False)
    _spent: list[LedgerEntry] = field(default_factory=list)  # the turn's calls
    _home: ModelSpec | None = None  # the conversation's own model, which another one may stand in for
    _absence: str = ""  # why that one does not answer
    _passes: int = 0
    _overflows: int = 0
    _guessed: bool = False  # that the prompt is too long, because it was refused without a reason

    async def run(self, conversation: Conversation, intents: Collection[ToolIntent] = ()) -> str:
        """Carry the turn to its final text; the person's message is already in `conversation`.

        An earlier process may have left tool calls without a result, and `intents`. Those that wait had not begun; the
        others may have taken effect and are not run again. The final assistant message is left in
        `conversation.fresh`, for the end of the turn to store.
        Raises ProviderError, and UserError when the window cannot be met.
        """
        try:
            return await self._run(conversation, intents)
        except ContentRefused as error:
            raise UserError(DECLINED if _withheld(conversation) else DECLINED_LATER) from error
        finally:
            if self._home is not None and conversation.spec.place != self._home.place:
                await self._change_model(conversation, self._home)

    async def _run(self, conversation: Conversation, intents: Collection[ToolIntent]) -> str:
        if not conversation.tools:  # the session's first turn, which a person expects to have its tools
            await self.servers_tried()
        self._offer_tools(conversation)
        await self._resume_tools(conversation, intents)
        for step in range(1, self.settings.max_steps + 1):
            await self.steer(conversation)
            self._offer_tools(conversation)
            await self._fit(conversation)
            if step == 1 and self.quoting is not None:
                conversation.quotes = await self.quoting.find(conversation, self.holding)
                conversation.announced = marked(conversation.announced, conversation.quotes)
            completed = await self._answer(conversation, step, last=step == self.settings.max_steps)
            if not completed.tool_calls:
                return completed.text
            await self._run_tools(conversation, completed.tool_calls, step)
        raise AssertionError("the last step is asked for text only")

    def footer(self) -> str:
        """Return the tokens and the cost of the turn as the last line of its answer; "" unless that is wanted."""
        if not self.metering.caps.footer or not self._spent:
            return ""
        usage = sum((entry.usage for entry in self._spent), CanonicalUsage())
        costs = [entry.cost_usd for entry in self._spent]
        known = sum(cost for cost in costs if cost is not None)
        cost = written(millionths(known)) if None not in costs else "no price known"
        return f"\n\n({usage.prompt_tokens:,} tokens in, {usage.output_tokens:,} out, {cost})"

    async def warn(self, conversation: Conversation) -> list[str]:
        """Return the news about spend caps that are nearly used up; each is told once."""
        if not self.metering.has_caps or not any(entry.cost_usd for entry in self._spent):
            return []
        try:
            another = self.metering.short_answer(conversation.spec, conversation.prompt_tokens())
            news, marks = await self.metering.warnings(conversation.session, conversation.announced, another=another)
        except StoreUnavailable:
            return []  # a warning is not worth the turn that it follows
        conversation.announced = marks
        return news

    def interrupt(self, conversation: Conversation) -> None:
        """Make a conversation whole again after its turn was cut short: the text so far is kept, and a call without a
        result gets one that says so."""
        if self.partial_text:
            self._add(conversation, assistant(self.partial_text))
            self.partial_text = ""
        close_open_calls(conversation, self.clock.now())

    # -- fitting the window -----------------------------------------------------------------

    def compact_no_more(self) -> None:
        """Let the turn compact no more by itself, because a pass just before it failed. The recovery from a prompt that
        is too long still compacts."""
        self._passes = _MOST_PASSES

    async def _fit(self, conversation: Conversation) -> None:
        while self._passes < _MOST_PASSES:
            trigger = await self._trigger(conversation)
            if trigger is None:
                self._passes = 0  # it fits, and a turn of hundreds of steps may fill the window again and again
                return
            self._passes += 1
            if not await self._compact(conversation, trigger):
                return

    async def _trigger(self, conversation: Conversation) -> Trigger | None:
        """Return the reason to compact before the next call, or None."""
        tokens, engine = conversation.prompt_tokens(), conversation.engine
        first = not conversation.reported_tokens
        if not self.automatic:
            return None
        if await engine.wants(tokens):
            return "preflight" if first else "threshold"
        if is_emergency(tokens, conversation.spec.context_length):
            return "emergency"
        if engine.automatic_blocked and tokens >= engine.threshold_tokens:
            await self._tell_of_block(conversation)
        return "preflight" if first and await engine.wants_preflight(conversation.all()) else None

    async def _compact(self, conversation: Conversation, trigger: Trigger, *, force: bool = False) -> bool:
        self.observer.phase("compacting")
        if not self.compactor.is_prepared(conversation):
            await self.observer.tell(feedback.compressing(conversation.session.compaction_count + 1))
        report = await self.compactor.run(conversation, trigger, force=force)
        remarks = feedback.remarks(report.outcome, details=self.details)
        for remark in remarks if report.changed or report.outcome.aborted else ():
            await self.observer.tell(remark)
        return report.changed

    async def _tell_of_block(self, conversation: Conversation) -> None:
        """Say once that automatic compaction does not help any more."""
        if BLOCKED_MARK not in conversation.announced:
            conversation.announced = (*conversation.announced, BLOCKED_MARK)
            await self.observer.tell(feedback.BLOCKED)

    # -- asking the model -------------------------------------------------------------------

    async def _answer(self, conversation: Conversation, step: int, *, last: bool) -> Completed:
        """Ask the conversation's model; while it is away, ask those that may stand in for it."""
        if self._home is None or conversation.spec.place == self._home.place:
            self._home = conversation.spec
        home, failures = self._home, list[ProviderError]()
        unpaid: SpendCapReached | None = None
        self._absence = self.models.absence(home) or self._absence
        for candidate in (candidates := self._candidates(conversation, home)):
            spec = self.models.learned.of(candidate, conversation.session.key)
            stands_in = spec.place != home.place
            if spec.place != conversation.spec.place:
                await self._change_model(conversation, spec)
                await self._fit(conversation)
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
            if not completed.tool_calls:
                self._tell_who_answered(conversation, spec, home)
            return completed
        raise unpaid or explained(failures[0], self.models.fallbacks)

    def _tell_who_answered(self, conversation: Conversation, spec: ModelSpec, home: ModelSpec) -> None:
        """Say behind the answer that another model gave it than the answer before."""
        absence = self._absence if self.details or not self._absence else NOT_AVAILABLE
        conversation.announced, sentence = told(conversation.announced, spec, home, absence)
        if sentence:
            self.remarks.insert(0, sentence)

    def _candidates(self, conversation: Conversation, home: ModelSpec) -> list[ModelSpec]:
        """Return the models to be asked, in order. One that stood in at the step before goes on: two models in one turn
        confuse each other."""
        chain, present = self.models.chain(home), conversation.spec.place
        return chain if present == home.place else sorted(chain, key=lambda spec: spec.place != present)

    async def _change_model(self, conversation: Conversation, spec: ModelSpec) -> None:
        conversation.spec = spec
        await adopt(conversation.engine, spec)

    async def _ask(self, conversation: Conversation, step: int, *, last: bool, least: int | None) -> Completed:
        """`least`: the output tokens that would do where a spend cap has no room for more; None: all of them."""
        max_tokens = conversation.spec.max_output_tokens
        empty = extended = 0
        shortened: SpendCapReached | None = None
        while True:
            self.observer.phase("thinking", step)
            try:
                completed = await self._call(conversation, max_tokens, last=last, least=least)
            except SpendCapReached as error:
                if not error.available:
                    raise
                shortened, max_tokens = error, error.available
                continue
            except (ContextOverflow, OutputCapTooLarge) as error:
                max_tokens = await self._recover(conversation, error, max_tokens)
                continue
            except ProviderRejected as error:
                if not await self._shortened(conversation, error):
                    raise
                continue
            if completed.stop == "refused":
                completed = replace(completed, tool_calls=())
                if not completed.text.strip():
                    raise ContentRefused("The model declined to answer.")
            if lacks_room(completed) and not (last and completed.text.strip()):
                if shortened is not None:
                    raise shortened
                extended, least = extended + 1, None
                max_tokens = self._more_room(conversation, completed, max_tokens, extended)
                continue
            if completed.text.strip() or completed.tool_calls:
                break
            empty += 1
            if empty > _EMPTY_RETRIES:
                raise EmptyAnswer
        self.points("turn.model_called")
        if not completed.tool_calls and completed.stop in ENDED_EARLY:
            cap = shortened if completed.stop == "length" else None
            self.remarks.append(SHORTENED.format(key=cap.key) if cap else ENDED_EARLY[completed.stop])
        if last:
            # Only text was asked for; calls of a model that ignores this would never get a result.
            completed = replace(
                completed, text=completed.text if completed.text.strip() else NO_WORDS_LEFT, tool_calls=()
            )
        completed = replace(completed, tool_calls=_distinct(completed.tool_calls))
        self._add(conversation, await conversation.measured_aside(message_of(completed)))
        self.partial_text = ""
        return completed

    async def _call(
        self, conversation: Conversation, max_tokens: int | None, *, last: bool, least: int | None
    ) -> Completed:
        spec = conversation.spec
        request = ModelRequest(
            messages=self._prompt(conversation, last=last),
            files_at=[BEFORE + position for position in conversation.files_at()],
            tools=await self._schemas(conversation),
            max_tokens=max_tokens,
            tool_choice="none" if last else "auto",
            pausing=self.observer.pausing,
        )
        text, completed = "", None
        asked_at = self.clock.monotonic()
        prompt_tokens = conversation.prompt_tokens()
        call = self.metering.call(spec, request, conversation.session, "turn", prompt_tokens=prompt_tokens, least=least)
        async with call as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    text += event.text
                    if len(text) > _LONGEST_TOKEN * spec.context_length:
                        raise ProviderUnavailable("The model's answer does not end; please try again.", malformed=True)
                    # Only new words take the place of earlier ones: a person may see those already.
                    self.partial_text = text
                    await self.observer.text(text)
                elif isinstance(event, Completed):
                    completed = event
                else:
                    self.observer.alive()
                    text = text if isinstance(event, ReasoningDelta) else ""
        if completed is None:
            raise ProviderUnavailable("The model's answer ended without a result.", malformed=True)
        usage = completed.usage or CanonicalUsage()
        counted = conversation.counted_tokens()
        conversation.sent(request, usage, asked_at)
        conversation.reported(usage)
        self.models.learned.fits(spec, usage.prompt_tokens)
        entry = self.models.entry(self.clock.now(), "turn", spec, usage)
        conversation.ledger.append(entry)
        self._spent.append(entry)
        if usage.prompt_tokens:
            await conversation.engine.learn({**usage.as_dict(), "estimated_prompt_tokens": counted})
        return completed

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

    async def _recover(
        self, conversation: Conversation, error: ContextOverflow | OutputCapTooLarge, max_tokens: int | None
    ) -> int | None:
        """Make room and return the output cap for the retry. Raises UserError when there is no way left."""
        spec = conversation.spec
        todo = remedy(
            error,
            attempts=self._overflows,
            context_length=spec.context_length,
            max_tokens=max_tokens,
            prompt_tokens=conversation.prompt_tokens(),
        )
        log.info("overflow_met", model=spec.name, because=error.because, action=todo.action, limit=todo.limit)
        self._overflows += 1
        conversation.quotes = None  # the least that the request can do without
        if todo.action == "lower_output":
            return todo.max_tokens
        compacts = todo.action != "give_up" and self.automatic
        if compacts and await self._compact_to(conversation, error, todo.limit):
            return max_tokens
        if self.metering.view.put_aside(conversation.spec, conversation.all()):
            return max_tokens
        raise UserError(NO_WAY_OUT) from error

    async def _shortened(self, conversation: Conversation, error: ProviderRejected) -> bool:
        """Compact after a refusal that gives no reason, where the prompt may be too long; once in a turn."""
        spec, learned = conversation.spec, self.models.learned
        if not error.unexplained or not self.automatic:
            return False
        if self._guessed:
            learned.was_not_length(spec)
            return False
        assumed = self.models.is_assumed(spec)
        if not learned.may_exceed(spec, conversation.prompt_tokens(), assumed=assumed):
            return False
        self._guessed = await conversation.engine.has_content(conversation.all())
        return self._guessed and await self._compact(conversation, "overflow", force=True)

    async def _compact_to(
        self, conversation: Conversation, error: ContextOverflow | OutputCapTooLarge, limit: int | None
    ) -> bool:
        """Compact after a refusal. The limit that it stated counts from now on, or for this call only where it is not
        the model's window."""
        spec, learned = conversation.spec, self.models.learned
        if isinstance(error, ContextOverflow) and error.lasting:
            known = learned.meet(spec, conversation.session.key, limit)
            if known != spec:
                await self._change_model(conversation, spec := known)
        if limit is None or limit >= spec.context_length:
            return await self._compact(conversation, "overflow", force=True)
        await self._change_model(conversation, replace(spec, context_length=limit))
        try:
            return await self._compact(conversation, "overflow", force=True)
        finally:
            await self._change_model(conversation, spec)

    def _prompt(self, conversation: Conversation, *, last: bool) -> Sequence[Message]:
        # Behind the cached prefix and not stored, because only this call needs it.
        now: list[Message] = [{"role": "user", "content": OUT_OF_STEPS}] if last and self.settings.max_steps > 1 else []
        whole = chain(conversation.messages, conversation.fresh, now)
        return prompt(conversation.session.system_prompt, whole, conversation.spec, conversation.aside())

    async def _schemas(self, conversation: Conversation) -> list[dict[str, Any]]:
        return [*self._offer.schemas, *(await self._engine_schemas(conversation)).values()]

    async def _engine_schemas(self, conversation: Conversation) -> dict[str, dict[str, Any]]:
        """Return the engine's tools by name, without names of ours: an API refuses two tools of one name."""
        named = {schema["function"]["name"]: schema for schema in await conversation.engine.tool_schemas()}
        return {name: schema for name, schema in named.items() if name not in self._offer.offered}

    # -- running tools ----------------------------------------------------------------------

    def _offer_tools(self, conversation: Conversation) -> None:
        """Look up the present tools: some come and go while the turn runs."""
        if self._offer.version != self.toolbox.version or self._offer.order != conversation.tools:
            self._offer = self.toolbox.offer(conversation.tools, self.caller, conversation.spec.context_length)
            self._tools = ToolRuntime(self._offer, self.clock)
        conversation.show(self._offer.order, self._offer.tokens)

    async def _run_tools(self, conversation: Conversation, calls: Sequence[ToolCall], step: int) -> None:
        names = [call["function"]["name"] for call in calls]
        self.observer.phase("running tools", step, names)
        self.toolbox.used(names)
        asked = self._tools.questions(calls, admin=self.caller.admin)
        intents = self._tools.intents(calls, asked)
        if intents:
            await self.writer.begin_tools(conversation, intents)
            self.points("turn.tools_begun")
        elif any(map(self._offer.refers, names)):
            await self.writer.record_step(conversation)
        await self._complete_tools(conversation, calls, {}, asked)

    async def _complete_tools(
        self,
        conversation: Conversation,
        calls: Sequence[ToolCall],
        results: dict[str, Message],
        asked: Mapping[str, str],
    ) -> None:
        context = ToolContext(
            session=conversation.session,
            clock=self.clock,
            recall=self.recall,
            around=self.around,
            files=self.files,
            memory=TurnMemory(self.memories, conversation.session, conversation.messages),
            reminders=self.reminders,
            admin=self.caller.admin,
            todos=conversation.todos,
            hidden=self._offer.hidden,
        )

        def add(result: Message) -> None:
            conversation.todos, conversation.tools = context.todos, (*self._offer.order, *context.found)
            self._add(conversation, result)

        gate = Gate(
            conversation=conversation,
            calls=calls,
            results=results,
            asked=asked,
            intents=self._tools.intents(calls, asked),
            repeatable=self._tools.repeatable,
            questions=self.questions,
            writer=self.writer,
            observer=self.observer,
            add=add,
        )
        try:
            engine_tools = await self._engine_tools(conversation)
            await self._tools.run(
                calls, context, engine_tools, results, self._outputs(conversation), gate if asked else None
            )
        finally:
            # Finished results are recorded in the order of the calls, even after a cancellation.
            conversation.todos, conversation.tools = context.todos, (*self._offer.order, *context.found)
            gate.keep()
        self.points("turn.tools_ran")
        await self.writer.record_step(conversation)
        self.points("turn.step_recorded")

    async def _resume_tools(self, conversation: Conversation, intents: Collection[ToolIntent]) -> None:
        calls = _open_calls(conversation.newest_first())
        if not calls:
            return
        waiting = {intent.call_id for intent in intents if intent.waits}
        begun = {intent.call_id for intent in intents} - waiting
        results = {
            call["id"]: tool_result(call["id"], UNKNOWN_OUTCOME)
            for call in calls
            if call["id"] not in waiting and not self._tools.repeatable(call, begun=call["id"] in begun)
        }
        left = [call for call in calls if call["id"] not in results]
        asked = self._tools.questions(left, admin=self.caller.admin)
        if not asked and (behind := self._tools.intents(left)):  # they waited behind an answered question
            await self.writer.begin_tools(conversation, behind)
        await self._complete_tools(conversation, calls, results, asked)

    async def _engine_tools(self, conversation: Conversation) -> Mapping[str, Callable[..., Awaitable[str]]]:
        async def run(name: str, arguments: Mapping[str, Any]) -> str:
            return await conversation.engine.call_tool(name, arguments, messages=conversation.all())

        return dict.fromkeys(await self._engine_schemas(conversation), run)

    def _outputs(self, conversation: Conversation) -> Outputs:
        return Outputs(
            limits=self.limits,
            files=self.files,
            window=conversation.spec.context_length,
            count=conversation.counter.text,
            measured=conversation.measured,
        )

    def _add(self, conversation: Conversation, message: Message) -> None:
        conversation.add(message, self.clock.now())


def _withheld(conversation: Conversation) -> bool:
    """Put a sentence in place of a person's words that a model refused, so that the next request is not refused
    again. Their words stay in the note, where a search and /retry find them. False: they are stored already, and
    stored messages do not change."""
    said = [at for at, message in enumerate(conversation.fresh) if is_request(message)]
    for at in said:
        message = conversation.fresh[at]
        stub = noted({**message, "content": NOT_SENT}, **{"said": text_of(message), **note_of(message)}, withheld=True)
        conversation.fresh[at] = noted(conversation.measured(stub), instructions=[])
    return bool(said)


def close_open_calls(conversation: Conversation, at: float) -> None:
    """Give every tool call that was interrupted a result that says so."""
    for call in _open_calls(conversation.newest_first()):
        conversation.add(tool_result(call["id"], INTERRUPTED), at)


def message_of(completed: Completed) -> Message:
    """Return an answer as it is stored: with its thoughts, and with its blocks as its provider sent them."""
    kept = {"original": completed.original} if completed.original else {}
    message = assistant(completed.text or None, completed.tool_calls, **kept)
    if completed.reasoning:
        message["reasoning_content"] = completed.reasoning
    return message


def has_open_calls(conversation: Conversation) -> bool:
    """Say whether an earlier process left tool calls without results."""
    return bool(_open_calls(conversation.newest_first()))


def _open_calls(newest_first: Iterable[Message]) -> list[ToolCall]:
    """Return the tool calls at the end of a transcript that have no result yet."""
    answered: set[str] = set()
    for message in newest_first:
        if message["role"] == "tool":
            answered.add(message.get("tool_call_id", ""))
            continue
        if message["role"] == "assistant" and not note_of(message).get("summary"):
            return [call for call in message.get("tool_calls", ()) if call["id"] not in answered]
        return []
    return []


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
