"""Runs the tool calls of one step, and contains the foreign code of tools.

Every call gets exactly one result, whatever happens: an unknown tool, arguments that are no JSON object, a time-out
and an exception are results that the model can read and act upon.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from hashlib import blake2s
from typing import Any

import structlog
from msgspec import Struct

from gateway.agent.gate import Gate
from gateway.agent.provenance import Provenance
from gateway.agent.tools.arguments import parsed
from gateway.agent.tools.base import NeedsApproval, Question, Result, ToolContext
from gateway.agent.tools.offer import Offer
from gateway.agent.tools.outputs import Outputs
from gateway.agent.tools.shell import shown
from gateway.domain.message import Message, ToolCall, noted, tool_result
from gateway.runtime.clock import Clock
from gateway.runtime.errors import ToolDenied, ToolError
from gateway.store.records import ToolIntent

log = structlog.get_logger(__name__)

UNKNOWN_OUTCOME = (
    "The gateway stopped while this tool was running, so its outcome is unknown: it may or may not have taken "
    "effect. It was not run again. Check the present state before repeating it."
)
INTERRUPTED = "The person stopped this turn while the tool was running; it may or may not have taken effect."

NOT_ALLOWED = (
    "Another program began this turn, and nobody was asked whether {name} may be called: at most {most} calls of one "
    "answer, with {size:,} characters of arguments each, are asked for. If it is needed, call it again with less."
)
NOT_THEIRS = (
    "These are not the person's words, but come from {origin}, and they were not asked whether to keep them: that is "
    "asked once in a turn, for all calls of one step. Say in your answer what you would keep, and keep it if they "
    "say so."
)

# These have no effect outside the conversation but by other tools, which are asked for.
_INWARD = ("delegate", "skill", "todo")
_LONGEST_QUESTION = 1_500  # characters: a person must be able to read all of it
_MOST_ASKED = 10  # questions of one step: each is a message, and platforms show few a minute
_ENGINE_SECONDS = 120.0  # for a tool of the context engine, which declares no limit of its own

Traced = Callable[[ToolCall], AbstractContextManager[Callable[[str], None]]]
"""Around a call; its result's text is handed to what it gives."""


def untraced(_: ToolCall) -> AbstractContextManager[Callable[[str], None]]:
    """`Traced` that does nothing."""
    return nullcontext(lambda _: None)


EngineTool = Callable[[str, Mapping[str, Any]], Awaitable[str]]


class ToolRuntime(Struct, frozen=True):
    """Runs calls of the tools on offer, and of the context engine's own. `lets`: no person began the turn, so that a
    person must allow each call with an effect, but for tools of these names; None: one did. `after` may word a result
    anew."""

    offer: Offer
    clock: Clock
    traced: Traced = untraced
    lets: Collection[str] | None = None
    after: Callable[[ToolCall, Result], Awaitable[Result]] | None = None

    def intents(self, calls: Sequence[ToolCall], asked: Collection[str] = ()) -> list[ToolIntent]:
        """The calls whose effects must not be repeated after a crash, and those that a person is asked about: while
        there are any of the latter, all of them wait."""
        return [
            ToolIntent(call_id=call["id"], tool=call["function"]["name"], waits=bool(asked))
            for call in calls
            if not self.repeatable(call) or call["id"] in asked
        ]

    def repeatable(self, call: ToolCall, *, begun: bool = False) -> bool:
        """Whether the call may simply be run again. One that has `begun`, with an intent on record, may have had
        an effect even if its tool is gone by now."""
        tool = self.offer.get(call["function"]["name"])
        return not begun if tool is None else tool.read_only or tool.idempotent

    def questions(self, calls: Sequence[ToolCall], *, admin: bool) -> dict[str, Question]:
        """The questions to a person, who may be an admin, before these calls, by call id. A call that would fail brings
        no question: the attempt to run it says why. Nor do calls beyond the tenth, which do not run."""
        questions = [(call["id"], self._question(call, admin)) for call in calls]
        return dict([(call_id, question) for call_id, question in questions if question][:_MOST_ASKED])

    def effects(self, calls: Sequence[ToolCall], others: int) -> dict[str, Question]:
        """The questions before those of these calls that have an effect in a turn that no person began, beside so many
        others."""
        asked: dict[str, Question] = {}
        for call in calls:
            name, text = call["function"]["name"], call["function"]["arguments"]
            if self._is_guarded(name) and len(asked) + others < _MOST_ASKED and len(text) <= _LONGEST_QUESTION:
                asked[call["id"]] = Question.about(f"Another program began this. May I call {name}?", shown(text))
        return asked

    def _is_guarded(self, name: str) -> bool:
        """Whether this tool has effects that need a yes because no person began the turn."""
        tool = self.offer.get(name)
        return self.lets is not None and tool is not None and not tool.read_only and name not in (*self.lets, *_INWARD)

    def keeping(self, calls: Sequence[ToolCall], turn: Provenance) -> dict[str, Question]:
        """One question to a person before all calls of a step that keep words for good which the person did not say,
        by call id. A call without room in the question is not asked about."""
        lines: list[str] = []
        origins: dict[str, None] = {}
        covered: list[str] = []
        for call in calls:
            line, whose = self._line(call, turn)
            if whose and len(line) + sum(map(len, lines)) <= _LONGEST_QUESTION:
                lines.append(line)
                origins[whose] = None
                covered.append(call["id"])
        text = f"Keep this for later? You did not say it; it comes from {', '.join(origins)}: {'; '.join(lines)}"
        return {call_id: Question(text, of=covered[0]) for call_id in covered}

    def _line(self, call: ToolCall, turn: Provenance) -> tuple[str, str]:
        """What a call keeps, in one line that hides nothing, and whose words it is; "" for a person's."""
        try:
            kept = self.offer.kept(call["function"]["name"], call["function"]["arguments"])
        except Exception:
            kept = None  # it raises again when the call comes to run, and the call fails with it
        whose = turn.to_ask(kept) if kept else ""
        return (f"{shown(kept.what)}: “{shown(kept.text)}”", whose) if kept and whose else ("", "")

    def _question(self, call: ToolCall, admin: bool) -> Question | None:
        name = call["function"]["name"]
        each = self.offer.there(name)
        tool = each.asking if each is not None else None
        if each is None or tool is None or (tool.admins_only and not admin) or name in (self.lets or ()):
            return None
        try:
            arguments = each.arguments.read(call["function"]["arguments"])
            asked = tool.question(arguments)
            question = Question.about(*asked) if isinstance(asked, tuple) else Question(asked or "")
            text = question.text
            deed = f"{name} {json.dumps(arguments, sort_keys=True)}\n{text}"  # all that was shown, and what will be run
            named = blake2s(deed.encode("utf-8", "replace"), digest_size=16).hexdigest() if self.lets is None else ""
            return question._replace(setting=tool.setting, deed=named) if text else None
        except Exception:
            return None  # it raises again when the call comes to run, and the call fails with it

    async def run(
        self,
        calls: Sequence[ToolCall],
        context: ToolContext,
        engine_tools: Mapping[str, EngineTool],
        results: dict[str, Message],
        outputs: Outputs,
        gate: Gate | None = None,
    ) -> None:
        """Fill `results` (by call id) as calls end: read-only ones side by side, then the others in the model's order,
        each through the `gate`. After a cancellation `results` holds the calls that had ended. `outputs` are the
        step's."""

        async def one(call: ToolCall) -> None:
            name = call["function"]["name"]
            allowed = (gate is not None and call["id"] in gate.asked) or name in (self.lets or ())
            result = await self._result(call, context, engine_tools, allowed=allowed)
            result = result if self.after is None else await self.after(call, result)
            made = await outputs.result(call["id"], name, self.offer.get(name), result.text, result.pictures)
            origin = self.offer.brings(call)
            made = noted(made, origin=origin) if origin else made
            results[call["id"]] = made if result.only is None else noted(made, only=[*result.only])

        waiting = [call for call in calls if call["id"] not in results]
        if gate is not None:
            await gate.ask()
        async with asyncio.TaskGroup() as group:
            for call in waiting:
                if self._independent(call):
                    group.create_task(one(call))
        await outputs.fit(results, [call["id"] for call in waiting if self._independent(call)])
        together = False
        for call in waiting:
            if self._independent(call):
                continue
            shows = hasattr(self.offer.get(call["function"]["name"]), "shows")
            if together and (gate is not None or not shows):
                await context.files.show()
            together = shows
            try:
                if gate is not None:
                    await gate.open(call)
            except ToolDenied as denied:
                results[call["id"]] = tool_result(call["id"], f"Denied: {denied}")
            else:
                await one(call)
                await outputs.fit(results, [call["id"]])

    def _independent(self, call: ToolCall) -> bool:
        each = self.offer.there(call["function"]["name"])
        if each is None:
            return True
        beside = each.tool.read_only or hasattr(each.tool, "beside")
        return beside and each.asking is None and not self._is_guarded(each.tool.name)

    async def _result(
        self, call: ToolCall, context: ToolContext, engine_tools: Mapping[str, EngineTool], *, allowed: bool
    ) -> Result:
        name = call["function"]["name"]
        try:
            with self.traced(call) as told:
                result = await self._run(name, call, context, engine_tools, allowed=allowed)
                told(result.text)
                return result
        except ToolError as error:
            return Result(text=f"Error: {error}")
        except Exception as error:
            # A tool is foreign code: its exceptions are results, not the end of the turn.
            log.exception("tool_failed", tool=name)
            return Result(text=f"Error: {name} failed unexpectedly ({type(error).__name__}).")

    async def _run(
        self, name: str, call: ToolCall, context: ToolContext, engine_tools: Mapping[str, EngineTool], *, allowed: bool
    ) -> Result:
        engine_tool = engine_tools.get(name)
        if engine_tool is not None:
            arguments = parsed(call["function"]["arguments"])
            return await self._timed(name, _ENGINE_SECONDS, engine_tool(name, arguments))
        each = self.offer.there(name)
        if each is None:
            raise ToolError(self.offer.why_not(name))
        arguments = each.arguments.read(call["function"]["arguments"])
        if name in self.offer.keepers and not allowed:
            kept = self.offer.kept(name, call["function"]["arguments"])
            if kept is not None and (whose := context.provenance.to_ask(kept)):
                raise ToolDenied(NOT_THEIRS.format(origin=whose))
        if self._is_guarded(name) and not allowed:
            raise ToolDenied(NOT_ALLOWED.format(name=name, most=_MOST_ASKED, size=_LONGEST_QUESTION))
        if each.asking is not None:
            _check(each.asking, arguments, admin=context.admin, allowed=allowed)
        return await self._timed(name, each.tool.timeout, each.tool.run(arguments, context))

    async def _timed(self, name: str, seconds: float, work: Awaitable[object]) -> Result:
        try:
            async with self.clock.limit(seconds):
                result = await work
        except TimeoutError:
            raise ToolError(f"{name} did not finish within {seconds:g} seconds.") from None
        if isinstance(result, Result):
            return result
        # Anything but text could never be sent to a model.
        return Result(text=result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str))


def _check(tool: NeedsApproval, arguments: Mapping[str, Any], *, admin: bool, allowed: bool) -> None:
    """The last wall before a tool that a person must allow. Raises ToolDenied."""
    if tool.admins_only and not admin:
        raise ToolDenied("Only an admin of this bot may have this done; say so and do not try another way.")
    if tool.question(arguments) and not allowed:
        raise ToolDenied(
            f"This needs a person's yes, and nobody was asked: at most {_MOST_ASKED} calls of one answer are asked "
            "for. If it is still needed, call it again."
        )
