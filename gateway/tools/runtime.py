"""Running the tool calls of one step: foreign code is contained here.

Every call gets exactly one result, whatever happens: an unknown tool, arguments that are no JSON
object, a time-out and an exception are results the model can read and act upon.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import structlog

from gateway.clock import Clock
from gateway.domain.message import Message, ToolCall, tool_result
from gateway.errors import ToolError
from gateway.store.base import ToolIntent
from gateway.tools.base import ToolContext
from gateway.tools.registry import ToolRegistry

log = structlog.get_logger(__name__)

UNKNOWN_OUTCOME = (
    "The gateway stopped while this tool was running, so its outcome is unknown: it may or may not have taken "
    "effect. It was not run again. Check the present state before repeating it."
)
INTERRUPTED = "The person stopped this turn while the tool was running; it may or may not have taken effect."

_ENGINE_SECONDS = 120.0  # for a tool of the context engine, which declares no limit of its own

EngineTool = Callable[[str, Mapping[str, Any]], Awaitable[str]]


class ToolRuntime:
    """Executes calls against the registry and, for the names it owns, the context engine."""

    def __init__(self, registry: ToolRegistry, clock: Clock) -> None:
        self.registry = registry
        self._clock = clock

    def intents(self, calls: Sequence[ToolCall]) -> list[ToolIntent]:
        """The calls whose effects must not be repeated after a crash."""
        intents = []
        for call in calls:
            tool = self.registry.get(call["function"]["name"])
            if tool is not None and not tool.read_only and not tool.idempotent:
                intents.append(ToolIntent(call_id=call["id"], tool=tool.name))
        return intents

    async def run(
        self,
        calls: Sequence[ToolCall],
        context: ToolContext,
        engine_tools: Mapping[str, EngineTool],
        results: dict[str, Message],
    ) -> None:
        """Fill `results` (by call id) as calls end: read-only ones side by side, then the others in
        the order the model asked for. If cancelled, `results` holds what had ended."""

        async def one(call: ToolCall) -> None:
            results[call["id"]] = tool_result(call["id"], await self._result(call, context, engine_tools))

        waiting = [call for call in calls if call["id"] not in results]
        async with asyncio.TaskGroup() as group:
            for call in waiting:
                if self._independent(call):
                    group.create_task(one(call))
        for call in waiting:
            if not self._independent(call):
                await one(call)

    def _independent(self, call: ToolCall) -> bool:
        tool = self.registry.get(call["function"]["name"])
        return tool is None or tool.read_only

    async def _result(self, call: ToolCall, context: ToolContext, engine_tools: Mapping[str, EngineTool]) -> str:
        name = call["function"]["name"]
        try:
            arguments = _arguments(call["function"]["arguments"])
            engine_tool = engine_tools.get(name)
            if engine_tool is not None:
                return await self._timed(name, _ENGINE_SECONDS, engine_tool(name, arguments))
            tool = self.registry.get(name)
            if tool is None:
                raise ToolError(f"There is no tool named {name!r}. The tools are: {', '.join(self.registry.names)}.")
            return await self._timed(name, tool.timeout, tool.run(arguments, context))
        except ToolError as error:
            return f"Error: {error}"
        except Exception as error:
            # A tool is foreign code: whatever it raises is a result, not the end of the turn.
            log.exception("tool_failed", tool=name)
            return f"Error: {name} failed unexpectedly ({type(error).__name__})."

    async def _timed(self, name: str, seconds: float, work: Awaitable[object]) -> str:
        try:
            async with self._clock.limit(seconds):
                result = await work
        except TimeoutError:
            raise ToolError(f"{name} did not finish within {seconds:g} seconds.") from None
        # A transcript holds text only; whatever else a tool gives would make it unsendable for good.
        return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)


def _arguments(text: str) -> Mapping[str, Any]:
    try:
        arguments = json.loads(text or "{}")
    except ValueError as error:
        raise ToolError(f"The arguments are not valid JSON ({error}); send one JSON object.") from None
    if not isinstance(arguments, dict):
        raise ToolError("The arguments must be one JSON object.")
    return arguments
