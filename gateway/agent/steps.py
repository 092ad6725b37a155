"""The tools of a turn: those on offer at each step, and the results of the model's calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from gateway.agent.conversation import Conversation
from gateway.agent.delegation import Helpers, Order
from gateway.agent.gate import Gate, holder
from gateway.agent.memory.memories import Memories, TurnMemory
from gateway.agent.ports import Observer, Questions, Reply, TranscriptWriter
from gateway.agent.provenance import Provenance, provenance, turn_in
from gateway.agent.running import at_work
from gateway.agent.tools.base import Buys, Files, Question, Result, ToolContext
from gateway.agent.tools.offer import Caller, Offer, Toolbox
from gateway.agent.tools.outputs import OutputLimits, Outputs
from gateway.agent.tools.runtime import INTERRUPTED, UNKNOWN_OUTCOME, ToolRuntime, Traced, untraced
from gateway.agent.waking import is_alone
from gateway.domain.approval import Choices, Labels, Verdict
from gateway.domain.chat import NO_TERMS, Inbound, Terms
from gateway.domain.message import Message, ToolCall, note_of, text_of, tool_result
from gateway.domain.session import Session
from gateway.runtime.clock import Clock
from gateway.runtime.errors import ToolError
from gateway.runtime.points import Points
from gateway.runtime.structs import replace
from gateway.store.records import ToolIntent

if TYPE_CHECKING:
    from gateway.agent.plugged import Plugged

SKILL: Final = "skill"
NARROWED: Final = (
    "Error: {tool} was not called: a skill that you use allows only {tools}, until your answer. Say so if it is needed."
)

NO_RESULT: Final = "The program that has this tool sent no result of the call."
NOT_FOR_HELPERS: Final = "A helper cannot have these tools. It can have: {tools}."


@dataclass(slots=True, kw_only=True)
class ToolSteps:
    """The tools of one turn, for its `caller`."""

    toolbox: Toolbox
    caller: Caller
    writer: TranscriptWriter
    observer: Observer
    reply: Reply
    questions: Questions
    context: partial[ToolContext]  # what calls may use, beside the files and what a turn makes for each step
    files: Files
    memories: Memories
    helpers: Helpers
    event: str = ""  # that the turn answers
    alone: bool = False  # of a helper: its caller may begin nothing more in the background, and nor may it
    lets: Collection[str] | None = None  # tools with effects that need no yes; None: a person began the turn
    helps: Session | None = None  # a helper's caller, in whose folder, files and history it works
    terms: Terms = NO_TERMS  # with tools that the program behind the message runs itself, before ours of their names
    limits: OutputLimits
    turn: str  # the id of the item that the turn answers
    redact: Callable[[str], str]
    clock: Clock
    points: Points
    buying: Buys | None = None
    traced: Traced = untraced
    plugged: Plugged | None = None
    _offer: Offer = field(default_factory=partial(Offer, order=(), offered={}))  # the tools of the present step
    _tools: ToolRuntime = field(init=False)
    _foreign: dict[str, None] = field(default_factory=dict)  # the origins of foreign words that the turn has read
    _provenance: Provenance = field(default_factory=Provenance)  # the same, for a step that may keep words
    _asked_to_keep: bool = False  # in this turn
    _only: frozenset[str] | None = None  # the tools that a skill in use allows, kept because a compaction may come

    def offer(self, conversation: Conversation) -> None:
        """Look up the present tools: some come and go while the turn runs."""
        if self._offer.version != self.toolbox.version or self._offer.order != conversation.fresh.tools:
            self._offer = self.toolbox.offer(
                conversation.fresh.tools,
                self.caller,
                conversation.spec.context_length,
                conversation.stored.session.system_prompt,
            )
            after = None if self.plugged is None else partial(self._returned, self.plugged, conversation)
            self._tools = ToolRuntime(self._offer, self.clock, self.traced, self.lets, after)
        more = self.toolbox.count(self.terms.tools) if self.terms.tools else 0
        conversation.show(self._offer.order, self._offer.tokens + more)

    def has_read(self, origin: str) -> None:
        """Note that the turn has read foreign words that no message holds."""
        self._foreign[origin] = None

    async def schemas(self, conversation: Conversation) -> list[dict[str, Any]]:
        """The schemas of the tools on offer and of the engine's tools; those of the program's own tools come last."""
        if self.terms.tools:
            engine = await self._engine_schemas(conversation) if conversation.engine.may_have_tools else {}
            ours = [] if self.terms.must_call else [*self._offer.schemas, *engine.values()]
            theirs = self.terms.names
            left = [each for each in ours if each["function"]["name"] not in theirs]
            return [*left, *map(dict, self.terms.tools)]
        if not conversation.engine.may_have_tools:
            return self._offer.schemas
        return [*self._offer.schemas, *(await self._engine_schemas(conversation)).values()]

    async def _engine_schemas(self, conversation: Conversation) -> dict[str, dict[str, Any]]:
        """Return the engine's tools by name, without names of ours: an API refuses two tools of one name."""
        named = {schema["function"]["name"]: schema for schema in await conversation.engine.tool_schemas()}
        return {name: schema for name, schema in named.items() if name not in self._offer.offered}

    async def run(self, conversation: Conversation, calls: Sequence[ToolCall], step: int) -> bool:
        """Run the calls of a step. The intents of those that must not be repeated are stored before. Returns whether
        calls are left for the program behind the message."""
        if self.terms.tools:
            theirs = self.terms.names
            ours = [call for call in calls if call["function"]["name"] not in theirs]
            if len(ours) < len(calls):
                if ours:
                    await self.run(conversation, ours, step)
                return True
        self.observer.phase("running tools", step, at_work(calls, self.redact))
        self.toolbox.used([call["function"]["name"] for call in calls])
        refused = await self._refused(conversation, calls, {})
        left = [call for call in calls if call["id"] not in refused]
        asked = self._asked(conversation, left)
        intents = self._tools.intents(left, asked)
        if intents:
            await self.writer.begin_tools(conversation, intents)
            self.points("turn.tools_begun")
        elif self._offer.refers(calls):
            await self.writer.record_step(conversation)
        await self._complete(conversation, calls, refused, asked)
        return False

    async def resume(self, conversation: Conversation, intents: Collection[ToolIntent]) -> bool:
        """Complete the calls that an earlier process left without a result. Those whose intents wait had not begun; the
        others may have taken effect and are not run again. Says whether calls are left, as `run` does."""
        still_open = open_calls(conversation)
        theirs = self.terms.names
        calls = [call for call in still_open if call["function"]["name"] not in theirs]
        if not calls:
            return bool(still_open)
        waiting = {intent.call_id for intent in intents if intent.waits}
        begun = {intent.call_id for intent in intents} - waiting
        results = {
            call["id"]: tool_result(call["id"], UNKNOWN_OUTCOME)
            for call in calls
            if call["id"] not in waiting and not self._tools.repeatable(call, begun=call["id"] in begun)
        }
        results = await self._refused(conversation, calls, results)
        left = [call for call in calls if call["id"] not in results]
        asked = self._asked(conversation, left)
        if not asked and (behind := self._tools.intents(left)):  # they waited behind an answered question
            await self.writer.begin_tools(conversation, behind)
        elif self._offer.refers(left):
            await self.writer.record_step(conversation)  # whatever killed the process, it was not this turn
        if begun:
            await self.files.show_left()
        await self._complete(conversation, calls, results, asked)
        return len(calls) < len(still_open)

    async def _refused(
        self, conversation: Conversation, calls: Sequence[ToolCall], results: Mapping[str, Message]
    ) -> dict[str, Message]:
        """The results, and those of the calls that a skill or a plug-in refuses."""
        results = {**results, **self._narrowed(conversation, calls)}
        if self.plugged is not None:
            results |= await self.plugged.refusals(conversation.stored.session, calls, results)
        return results

    async def _returned(self, plugged: Plugged, conversation: Conversation, call: ToolCall, result: Result) -> Result:
        text = await plugged.returned(conversation.stored.session, call, result.text)
        return result if text == result.text else replace(result, text=text)

    def _narrowed(self, conversation: Conversation, calls: Sequence[ToolCall]) -> dict[str, Message]:
        """Refuse the calls of tools that a skill in use does not allow. Several skills allow what each of them does."""
        if self._only is None and SKILL not in self._offer.offered:
            return {}
        for message in turn_in(conversation.newest_first()):
            if (named := note_of(message).get("only")) is not None:
                self._only = frozenset(named) if self._only is None else self._only & frozenset(named)
        only = self._only
        return {
            call["id"]: tool_result(call["id"], NARROWED.format(tool=name, tools=", ".join(sorted(only))))
            for call in calls
            if only is not None and (name := call["function"]["name"]) in self._offer.offered and name not in only
        }

    def _asked(self, conversation: Conversation, calls: Sequence[ToolCall]) -> Mapping[str, Question]:
        """The questions to the person before these calls. What they may keep is asked about once in a turn."""
        asked = self._kept_or_asked(conversation, calls)
        if self.lets is None:
            return asked
        return {**self._tools.effects([call for call in calls if call["id"] not in asked], len(asked)), **asked}

    def _kept_or_asked(self, conversation: Conversation, calls: Sequence[ToolCall]) -> Mapping[str, Question]:
        asked = self._tools.questions(calls, admin=self.caller.admin)
        if self._offer.keepers.isdisjoint([call["function"]["name"] for call in calls]):
            return asked
        seen = provenance(turn_in(conversation.newest_first()))
        self._foreign.update(dict.fromkeys(seen.foreign))
        self._provenance = Provenance(own=seen.own or self._provenance.own, foreign=tuple(self._foreign))
        free = [call for call in calls if call["id"] not in asked]
        kept = {} if self._asked_to_keep else self._tools.keeping(free, self._provenance)
        self._asked_to_keep = self._asked_to_keep or bool(kept)
        return {**kept, **asked}

    async def _complete(
        self,
        conversation: Conversation,
        calls: Sequence[ToolCall],
        results: dict[str, Message],
        asked: Mapping[str, Question],
    ) -> None:
        session = self.helps or conversation.stored.session
        context = self.context(
            session=session,
            clock=self.clock,
            files=self.files,
            memory=TurnMemory(
                self.memories, conversation.stored.session, conversation.stored.messages, self._provenance.origin
            ),
            source=None if self.alone else self.caller.source,
            ask=None if self.helps else partial(self._ask, conversation, asyncio.Lock(), bool(asked)),
            told=lambda text: self.observer.phase("running tools", tools=[text]),
            delegate=None if self.helps else partial(self._delegate, conversation),
            buying=self.buying and partial(self.buying, session, later=conversation.ledger.append),
            provenance=self._provenance,
            admin=self.caller.admin,
            turn=self.turn,
            todos=conversation.fresh.todos,
            hidden=self._offer.hidden,
            newest_first=conversation.newest_first,
        )

        def add(result: Message) -> None:
            conversation.after_tools(context.todos, (*self._offer.order, *context.found))
            conversation.add(result, self.clock.now())

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
            reply=self.reply,
            add=add,
        )
        outputs = Outputs(
            limits=self.limits,
            files=self.files,
            window=conversation.spec.context_length,
            count=conversation.counter.text,
            measured=conversation.measured,
        )
        try:
            engine_tools = await self._engine_tools(conversation)
            await self._tools.run(calls, context, engine_tools, results, outputs, gate if asked else None)
        finally:
            await self.files.show()  # before the results say so
            # Finished results are recorded in the order of the calls, even after a cancellation.
            conversation.after_tools(context.todos, (*self._offer.order, *context.found))
            gate.keep()
        for result in results.values():  # kept here, too, because a compaction may take it away within the turn
            if origin := note_of(result).get("origin"):
                self._foreign[origin] = None
        self.points("turn.tools_ran")
        await self.writer.record_step(conversation)
        self.points("turn.step_recorded")

    async def _ask(
        self,
        conversation: Conversation,
        one_by_one: asyncio.Lock,
        asked: bool,
        text: str,
        labels: Labels | None,
        choices: Choices,
    ) -> tuple[Verdict, str]:
        async with one_by_one, self.observer.asking():
            said = "" if asked else text_of(holder(conversation)).strip() or self.reply.standing_in()
            said_as = await self.reply.set_aside() if said else None
            verdict, words = await self.questions.put(text, labels, choices, said, said_as)
        if words and self.plugged is not None:
            answer = Inbound(event_id=self.event, source=self.caller.source, text=words)
            heard = await self.plugged.words(conversation.stored.session, answer)
            return ("denied", heard.refusal) if heard.refusal else (verdict, words)
        return verdict, words

    async def _delegate(self, conversation: Conversation, order: Order) -> str:
        if self._only is not None:  # a skill in use allows those who work for it no more
            named = self._only.intersection(order.tools or self._only)
            if not named:
                raise ToolError(NOT_FOR_HELPERS.format(tools=", ".join(self._may_have(sorted(self._only)))))
            order = replace(order, tools=tuple(sorted(named)))
        order = replace(order, alone=is_alone(conversation.newest_first()))
        if self.lets is not None:
            order = replace(order, lets=tuple(sorted(self.lets)))
        if order.tools and not self._may_have(order.tools):
            raise ToolError(NOT_FOR_HELPERS.format(tools=", ".join(self._may_have(self.toolbox.installed))))
        session = conversation.stored.session
        order = replace(order, session=session.id, turn=self.turn, event=self.event)
        step = note_of(holder(conversation))["id"]
        return await self.helpers.run(order, session.key, self.caller.source, step, self.observer.alive)

    def _may_have(self, names: Iterable[str]) -> list[str]:
        """Return those of these tools that a helper can be given."""
        toolbox = self.toolbox.for_helper(())
        return [name for name in names if toolbox.has(name, self.caller)]

    async def _engine_tools(self, conversation: Conversation) -> Mapping[str, Callable[..., Awaitable[str]]]:
        async def run(name: str, arguments: Mapping[str, Any]) -> str:
            return await conversation.engine.call_tool(name, arguments, messages=conversation.all())

        return dict.fromkeys(await self._engine_schemas(conversation), run)


def close_open_calls(conversation: Conversation, at: float) -> None:
    """Give every tool call that was interrupted a result that says so."""
    for call in open_calls(conversation):
        conversation.add(tool_result(call["id"], INTERRUPTED), at)


async def take_results(conversation: Conversation, results: Mapping[str, str], event: str, at: float) -> bool:
    """Give the calls that wait for the program behind an event's message their results, by call id, including those
    that it leaves out. False if none of these calls waits."""
    calls = open_calls(conversation)
    if not any(call["id"] in results for call in calls):
        return False
    for call in calls:
        text, origin = results.get(call["id"], NO_RESULT), f"the tool {call['function']['name']}"
        result = tool_result(call["id"], text, origin=origin, event=event)
        conversation.add(await conversation.measured_aside(result), at)
    return True


def open_calls(conversation: Conversation) -> list[ToolCall]:
    """Return the tool calls at the end of the conversation that have no result yet."""
    answered: set[str] = set()
    for message in conversation.newest_first():
        if message["role"] == "tool":
            answered.add(message.get("tool_call_id", ""))
            continue
        if message["role"] == "assistant" and not note_of(message).get("summary"):
            calls = message.get("tool_calls")
            return [call for call in calls if call["id"] not in answered] if calls else []
        return []
    return []
